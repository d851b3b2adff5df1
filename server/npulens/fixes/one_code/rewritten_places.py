"""The structure of a module: scopes, parents and blocks, read once."""

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from npulens.fixes.scripts import Script
from npulens.syntax.scoped_nodes import ScopedNode, scoped_nodes
from npulens.syntax.walking import nodes_below, parents_below


class Block(NamedTuple):
    """The statements of a block, and where it is."""

    body: list[ast.stmt]
    at: int


class Places(NamedTuple):
    """The structure of a module.

    Attributes:
        nodes: The nodes with their scopes, outer ones first.
        owners: The parent of each node.
        blocks: For each statement the block it is in.
    """

    nodes: Sequence[ScopedNode]
    owners: Mapping[ast.AST, ast.AST]
    blocks: Mapping[ast.stmt, Block]


def places_of(script: Script) -> Places:
    """The structure of a module."""
    nodes = list(scoped_nodes(script.tree.body, script.module))
    return Places(nodes, parents_below(script.tree), _blocks_of(script.tree))


def _blocks_of(tree: ast.Module) -> dict[ast.stmt, Block]:
    found: dict[ast.stmt, Block] = {}
    for node in nodes_below(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                found.update((s, Block(body, i)) for i, s in enumerate(body))
    return found
