"""Facts about a node that are needed again and again, computed once per tree."""

import ast
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

Node = TypeVar("Node", bound=ast.AST)
Answer = TypeVar("Answer")


def once_by_node(answer: Callable[[Node], Answer]) -> Callable[[Node], Answer]:
    """Remember the answers of a function of a node alone; they must not refer to that node.

    Trees outlive one analysis while a text is edited, and several parts of one need the same.
    """
    known: WeakKeyDictionary[Node, Answer] = WeakKeyDictionary()

    def remembered(node: Node) -> Answer:
        try:
            return known[node]
        except KeyError:
            found = known[node] = answer(node)
            return found

    return remembered
