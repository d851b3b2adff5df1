"""Facts about a node that are needed again and again, computed once per tree."""

import ast
from collections.abc import Callable
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Answer = TypeVar("Answer")


def once_by_node(answer: Callable[[Node], Answer]) -> Callable[[Node], Answer]:
    """Remember the answers of a function of a node alone; they must not refer to that node.

    Trees outlive one analysis while a text is edited, and several parts of one need the same. An
    answer is kept with its node, and goes with it: a table with weak references to nodes takes
    longer to ask, and longest when a tree is freed.
    """
    name = f"{answer.__module__}.{answer.__qualname__}"

    def remembered(node: Node) -> Answer:
        known = node.__dict__
        if name not in known:
            known[name] = answer(node)
        found: Answer = known[name]
        return found

    return remembered
