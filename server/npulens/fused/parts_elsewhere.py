"""What a module uses of other modules of the project that holds a part of some computation."""

import ast
from functools import lru_cache

from npulens.catalog.project_model import Computation
from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.fused.candidates import Parts, defined_name, parts_in, word_places
from npulens.fused.parts import Part
from npulens.graphs.other_definitions import parsed_excerpt
from npulens.syntax.values import Imported
from npulens.syntax.walking import names_in
from npulens.syntax.words import Words
from npulens.text.lines import LineMap

_MOST_LINES = 30
"""Of a class that only computes something."""


def helpers_elsewhere(module: AnalysedModule, searched: tuple[str, ...]) -> Parts:
    """Functions of other modules, by the names that the module has for them.

    Args:
        module: The module.
        searched: The words that patterns are recognized by.
    """
    elsewhere = module.elsewhere
    if elsewhere.is_empty:
        return {}
    found: dict[str, Part] = {}
    for segment in module.segments:
        for name, bindings in segment.bindings.names.items():
            for binding in bindings:
                if isinstance(binding.value, Imported):
                    for inner, known in elsewhere.under(binding.value.qualified):
                        part = _helper(known, searched)
                        if part is not None:
                            found[f"{name}.{inner}" if inner else name] = part
        for star in segment.bindings.stars:
            for inner, known in elsewhere.members(star):
                part = _helper(known, searched)
                if part is not None:
                    found.setdefault(inner, part)
    return found


def _helper(known: Computation, searched: tuple[str, ...]) -> Part | None:
    """What a name holds that is called; classes with much in them are bases, or found there."""
    part = parts_elsewhere(known.source, searched).get(known.name)
    return None if part is None or known.name in _large_classes(known.source) else part


@lru_cache(maxsize=128)
def _large_classes(source: str) -> frozenset[str]:
    classes = (node for node in parsed_excerpt(source).body if isinstance(node, ast.ClassDef))
    return frozenset(
        node.name for node in classes if (node.end_lineno or 0) - node.lineno > _MOST_LINES
    )


@lru_cache(maxsize=128)
def parts_elsewhere(source: str, searched: tuple[str, ...]) -> Parts:
    """The functions of an excerpt that hold words, or call one that does."""
    body = parsed_excerpt(source).body
    parts = parts_in(body, LineMap(source), word_places(Words(source), searched))
    whole = {}
    for node in body:
        name = defined_name(node)
        if name is None:
            continue
        named = [parts[each] for each in names_in(node) if each in parts and each != name]
        used = [parts[name], *named] if name in parts else named
        if used:
            whole[name] = Part((), source, (), used, is_elsewhere=True)
    return whole
