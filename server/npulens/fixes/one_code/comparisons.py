"""Comparisons of devices with CUDA: they become a check that it is not the CPU."""

import ast
from collections.abc import Iterator
from functools import cached_property

from npulens.catalog.model import Edit
from npulens.fixes.one_code.editing import text_of
from npulens.fixes.one_code.tensor_types import TensorTypes
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_OTHERS = frozenset({"mps", "xpu", "hpu", "mlu", "xla", "tpu"})
_LISTS = (ast.Tuple, ast.List, ast.Set)
_OPPOSITE = {ast.Eq: "!=", ast.NotEq: "==", ast.In: "!=", ast.NotIn: "=="}


class Comparisons(TensorTypes):
    """Writes comparisons with CUDA as comparisons with the CPU."""

    def _comparison(self, node: ast.Compare, scope: Scope) -> None:
        """`device.type == "cuda"`, `"cuda" in str(device)`, `device in ("cuda", "mps")`."""
        constants = (p for p in nodes_below(node) if isinstance(p, ast.Constant))
        parts = [part for part in constants if self._is_cuda(part)]
        operands = [node.left, *node.comparators]
        literal = next((p for p in parts if self._is_operand(p, operands, scope)), None)
        if literal is None:
            return
        self._done.update(part for part in parts if self._is_operand(part, operands, scope))
        opposite = _OPPOSITE.get(type(node.ops[0]))
        if len(node.ops) != 1 or opposite is None:
            return
        left, right = operands
        subject = right if literal in nodes_below(left) else left
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self._membership(node, literal, right, opposite)
            return
        is_device = literal not in operands
        text = self._script.source(subject) + (".type" if is_device else "")
        if not self._distinguishes_others(node):
            self._replace(node, f'{text} {opposite} "cpu"', literal)
            self.is_sure &= not is_device and _is_type(subject)
        elif others := self._others_beside(node):
            listed = ", ".join(f'"{each}"' for each in ("cpu", *sorted(others)))
            negated = "not in" if opposite == "!=" else "in"
            self._replace(node, f"{text} {negated} ({listed})", literal)
            self.is_sure = False

    def _membership(
        self, node: ast.Compare, literal: ast.Constant, right: ast.expr, opposite: str
    ) -> None:
        if node.left is literal:
            if self._distinguishes_others(node):
                return
            negated = "not in" if opposite == "!=" else "in"
            self._replace(node, f'"cpu" {negated} {self._script.source(right)}', literal)
            self.is_sure &= _is_type(right)
        elif isinstance(right, _LISTS):
            texts = {text_of(each) for each in right.elts}
            if texts <= {"cuda", *_OTHERS}:
                text = f'{self._script.source(node.left)} {opposite} "cpu"'
                self._replace(node, text, literal)
                self.is_sure &= _is_type(node.left)

    def _started(self, node: ast.Call) -> None:
        """`str(device).startswith("cuda")`."""
        literal = node.args[0] if node.args else None
        if not isinstance(literal, ast.Constant) or not self._is_cuda(literal):
            return
        self._done.add(literal)
        owner = self._owners.get(node)
        if self._distinguishes_others(node) or isinstance(owner, (ast.Compare, ast.BinOp)):
            return
        assert isinstance(node.func, ast.Attribute)
        start = self._span(node).start
        if isinstance(owner, ast.UnaryOp):
            self.edits.append(Edit(Span(self._span(owner).start, start), ""))
        else:
            self.edits.append(Edit(Span(start, start), "not "))
        self._replace(literal, '"cpu"', literal)
        self.is_sure &= _is_type(node.func.value)

    def _is_cuda(self, node: ast.Constant) -> bool:
        return self._is_found(node) and text_of(node) == "cuda"

    def _is_operand(self, node: ast.AST, operands: list[ast.expr], scope: Scope) -> bool:
        """Whether a string is compared: itself, in a list, or as `torch.device("cuda")`."""
        owner = self._owners[node]
        if node in operands or (isinstance(owner, _LISTS) and owner in operands):
            return True
        if not isinstance(owner, ast.Call) or owner not in operands or owner.args != [node]:
            return False
        return "torch.device" in qualified_names(owner.func, scope)

    def _distinguishes_others(self, node: ast.AST) -> bool:
        """Whether what is beside a comparison checks for other accelerators one by one."""
        while not isinstance(node, ast.stmt):
            node = self._owners[node]
        if isinstance(node, ast.If):
            return node in self._distinguishing
        return any(map(_names_other, nodes_below(node)))

    def _others_beside(self, node: ast.Compare) -> frozenset[str]:
        """The others that are checked for beside a condition; none if it asks for one itself."""
        owner: ast.AST = node
        while not isinstance(owner, ast.stmt):
            owner = self._owners[owner]
        if not isinstance(owner, ast.If) or any(map(_names_other, nodes_below(owner.test))):
            return frozenset()
        return self._distinguishing.get(owner, frozenset())

    @cached_property
    def _distinguishing(self) -> dict[ast.stmt, frozenset[str]]:
        """Each `if`, with its `elif`, in a block where one checks for others; and these."""
        found: dict[ast.stmt, frozenset[str]] = {}
        for block in self._blocks.values():
            if block.at:
                continue  # its first statement has come with it
            chains = [list(_chain(each)) for each in block.body if isinstance(each, ast.If)]
            statements = [each for chain in chains for each in chain]
            parts = (part for each in statements for part in nodes_below(each.test))
            constants = (part for part in parts if isinstance(part, ast.Constant))
            others = frozenset(text_of(each) for each in constants if _names_other(each))
            if others:
                found.update(dict.fromkeys(statements, others))
        return found


def _chain(statement: ast.If) -> Iterator[ast.If]:
    """An `if`, and each `elif` of it."""
    yield statement
    while len(statement.orelse) == 1 and isinstance(follows := statement.orelse[0], ast.If):
        statement = follows
        yield statement


def _names_other(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and text_of(node) in _OTHERS


def _is_type(node: ast.expr) -> bool:
    """Whether an expression is the type of a device, or a device as a string."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "str"
    return isinstance(node, ast.Attribute) and node.attr == "type"
