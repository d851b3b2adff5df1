"""How a replacement is written: without arguments it has no value for, in short lines."""

import ast
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from npulens.syntax.parsing import expression_tree
from npulens.syntax.walking import names_in, nodes_below

_WIDTH = 100


def without_unbound(text: str, defaults: Mapping[str, str], unbound: AbstractSet[str]) -> str:
    """A call without keyword arguments that are computed from names without a value.

    An argument that is just such a name gets its default, so that it is there to be seen. What is
    chosen by such a name alone becomes what it is if true, or not `None`.
    """
    text = _chosen(text, unbound)
    nodes = list(nodes_below(expression_tree(text)))
    given = [argument for call in nodes if isinstance(call, ast.Call) for argument in call.args]
    keywords = [node for node in nodes if isinstance(node, ast.keyword)]
    edits = [
        (value.col_offset, value.end_col_offset or 0, defaults[value.id])
        for value in (*given, *(keyword.value for keyword in keywords))
        if isinstance(value, ast.Name) and value.id in unbound
    ]
    for keyword in keywords:
        names = set(names_in(keyword.value))
        if not isinstance(keyword.value, ast.Name) and not names.isdisjoint(unbound):
            start = text.rindex(",", 0, keyword.col_offset)
            edits.append((start, keyword.end_col_offset or 0, ""))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _chosen(text: str, unbound: AbstractSet[str]) -> str:
    """`X if wanted else None` and `None if given is None else X` as X."""
    for node in nodes_below(expression_tree(text)):
        if not isinstance(node, ast.IfExp):
            continue
        checks_none = isinstance(node.test, ast.Compare)
        name = node.test.left if isinstance(node.test, ast.Compare) else node.test
        if isinstance(name, ast.Name) and name.id in unbound:
            kept = ast.get_source_segment(text, node.orelse if checks_none else node.body) or ""
            return _chosen(text[: node.col_offset] + kept + text[node.end_col_offset :], unbound)
    return text


def in_short_lines(text: str, indent: str, column: int) -> str:
    """A call that is too long for its line, with one argument to a line.

    Args:
        text: One line.
        indent: What the line that it goes into starts with.
        column: How many characters of that line stay beside it.
    """
    if column + len(text) <= _WIDTH:
        return text
    call = _first_call(expression_tree(text))
    if call is None or not (call.args or call.keywords):
        return text
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    spans = [(argument.col_offset, argument.end_col_offset or 0) for argument in given]
    step = "\t" if "\t" in indent else "    "
    lines = [f"{indent}{step}{text[start:end]},\n" for start, end in spans]
    end = call.end_col_offset or len(text)
    head = text[: spans[0][0]].rstrip()
    return f"{head}\n{''.join(lines)}{indent}){text[end:]}"


def _first_call(node: ast.expr) -> ast.Call | None:
    """The call that an expression starts with, before what is done to its result."""
    found: ast.Call | None = None
    while True:
        if isinstance(node, ast.Call):
            found, node = node, node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        else:
            return found
