"""What is asked about a node again and again, and found once as long as the tree is there."""

import ast
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Node = TypeVar("Node", bound=ast.AST)
Answer = TypeVar("Answer")
Others = ParamSpec("Others")


def once_by_node(
    answer: Callable[Concatenate[Node, Others], Answer],
) -> Callable[Concatenate[Node, Others], Answer]:
    """Remember the answers of a function by its first argument; they must not refer to that node.

    Other arguments may only help to find the answer. Trees outlive one analysis while a text is
    edited, and several parts of one ask the same.
    """
    known: WeakKeyDictionary[Node, Answer] = WeakKeyDictionary()

    def remembered(node: Node, /, *args: Others.args, **keywords: Others.kwargs) -> Answer:
        try:
            return known[node]
        except KeyError:
            found = known[node] = answer(node, *args, **keywords)
            return found

    return remembered
