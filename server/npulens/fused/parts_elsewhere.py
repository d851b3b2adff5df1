"""What a module uses of other modules of the project that holds a part of some computation."""

from functools import lru_cache

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.fused.candidates import Parts, parts_in, word_places
from npulens.fused.parts import Part
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.values import Imported
from npulens.syntax.walking import names_in
from npulens.syntax.words import Words
from npulens.text.lines import LineMap


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
                        part = parts_elsewhere(known.source, searched).get(known.name)
                        if part is not None:
                            found[f"{name}.{inner}" if inner else name] = part
        for star in segment.bindings.stars:
            for inner, known in elsewhere.members(star):
                part = parts_elsewhere(known.source, searched).get(known.name)
                if part is not None:
                    found.setdefault(inner, part)
    return found


@lru_cache(maxsize=128)
def parts_elsewhere(source: str, searched: tuple[str, ...]) -> Parts:
    """The functions of an excerpt that hold words, or call one that does."""
    tree = tree_or_none(source)
    body = [] if tree is None else tree.body
    parts = parts_in(body, LineMap(source), word_places(Words(source), searched))
    with_helpers = {}
    for node in body:
        name = getattr(node, "name", "")
        called = [parts[each] for each in names_in(node) if each in parts and each != name]
        if called:
            own = [parts[name]] if name in parts else []
            with_helpers[name] = Part((), source, (), [*own, *called])
    return {**parts, **with_helpers}
