"""A module as a whole, for what no single segment shows."""

import ast
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePath
from urllib.parse import unquote

from npulens.syntax.bindings import bindings_of
from npulens.syntax.scoped_nodes import ScopedNode, scoped_nodes
from npulens.syntax.scopes import ModuleNames, ModuleScope
from npulens.syntax.statements import ParsedText, joined
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap


class WholeModule:
    """The text of a module, where it is, and its tree once that is needed.

    The path is what the document is called: in an editor that may be an address.
    """

    def __init__(self, text: str, path: str, parsed: Sequence[ParsedText]) -> None:
        self.text = text
        self.path = path
        self._parsed = parsed

    @cached_property
    def tree(self) -> ast.Module:
        """The tree, without statements that do not parse."""
        return ast.Module(joined(self.text, self._parsed).body, [])

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes of the tree, in the order of the source."""
        return list(nodes_below(self.tree))

    @cached_property
    def scope(self) -> ModuleScope:
        """Where the names of the module are looked up."""
        return ModuleScope(ModuleNames([bindings_of(self.tree.body, ())]), 0)

    @cached_property
    def scoped(self) -> Sequence[ScopedNode]:
        """The nodes of the tree with their scopes, outer ones first."""
        return list(scoped_nodes(self.tree.body, self.scope))

    @cached_property
    def lines(self) -> LineMap:
        """Where the lines of the text start."""
        return LineMap(self.text)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.text[slice(*self.lines.span(node))]

    @property
    def is_complete(self) -> bool:
        """Whether all of its statements parse: else something may be used where nobody sees it."""
        return not any(parsed.problems for parsed in self._parsed)

    @property
    def place(self) -> PurePath:
        """The path of the document."""
        return place_of(self.path)


def place_of(path: str) -> PurePath:
    """The path of a document, also where an editor names it by an address."""
    return PurePath(unquote(path.removeprefix("file://")))
