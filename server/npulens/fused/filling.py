"""Puts the user's expressions in the place of a replacement's names."""

import ast
from collections import Counter
from collections.abc import Iterator

from npulens.fused.contracts import adapted, cast_text, may_be_repeated
from npulens.fused.matching import Match
from npulens.fused.patterns import Replacement
from npulens.fused.replacement_layout import without_unbound
from npulens.fused.writable_values import Sources, atom
from npulens.syntax.parsing import expression_tree
from npulens.syntax.walking import names_in, nodes_below


def filled(match: Match, replacement: Replacement, sources: Sources) -> str | None:
    """The replacement's text with the user's expressions for its names."""
    unbound = replacement.defaults.keys() - match.bound.keys()
    text = without_unbound(replacement.text, replacement.defaults, unbound)
    expression = expression_tree(text)
    arguments = {
        id(argument)
        for call in nodes_below(expression)
        if isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
    }
    arguments |= {id(node.test) for node in nodes_below(expression) if isinstance(node, ast.IfExp)}
    names = [
        node
        for node in nodes_below(expression)
        if isinstance(node, ast.Name) and node.id in match.bound
    ]
    uses = Counter(name.id for name in names)
    guards = {id(name): test for test, name in _guarded(expression)}
    for node in sorted(names, key=lambda name: (name.lineno, name.col_offset), reverse=True):
        guard = match.bound.get(guards.get(id(node), ""))
        known = sources if guard is None else sources.where_given(guard)
        source = _argument(match, node.id, known)
        if source is None and node.id in guards.values():
            source = sources.of_given(match.bound[node.id])
        if source is None or node.lineno != 1:
            return None
        if uses[node.id] > 1 and not may_be_repeated(source):
            return None
        adapting = adapted(match, node.id, sources)
        if adapting is None:
            return None
        source = f"{atom(source)}{adapting}" if adapting else source
        shown = source if id(node) in arguments else atom(source)
        text = text[: node.col_offset] + shown + text[node.end_col_offset :]
    if match.result_cast is None:
        return text
    written = cast_text(match.result_cast, sources)
    return None if written is None else f"{text}{written}"


def _guarded(expression: ast.expr) -> Iterator[tuple[str, ast.Name]]:
    """The names in the X of `None if given is None else X`, each with the name that is tested."""
    for node in nodes_below(expression):
        match node:
            case ast.IfExp(ast.Compare(ast.Name(given), [ast.Is()]), _, otherwise):
                for name in nodes_below(otherwise):
                    if isinstance(name, ast.Name):
                        yield given, name


def _argument(match: Match, name: str, sources: Sources) -> str | None:
    """What a variable represents, with the cast that its parts had."""
    source = sources.of(match.bound[name]) or sources.of(match.outer[name])
    cast = match.argument_casts.get(name)
    if source is None or cast is None:
        return source
    written = cast_text(cast, sources)
    return None if written is None else f"{atom(source)}{written}"


def bound_names(match: Match, replacement: Replacement) -> set[str]:
    """The names of a pattern that its replacement uses."""
    return match.bound.keys() & names_in(replacement.expression)
