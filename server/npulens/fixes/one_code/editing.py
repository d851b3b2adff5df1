"""The edits of one module, and questions about its nodes."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from npulens.catalog.model import Edit, TorchVersion
from npulens.fixes.one_code.devices import Devices
from npulens.fixes.one_code.rewritten_places import Places
from npulens.fixes.scripts import Script
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span


class Editing:
    """Collects the edits of one module.

    Args:
        script: The module.
        torch: What it calls `torch`.
        found: Where something of CUDA is that is to be written, with what the NPU has for it in
            the same form, if anything.
        release: The release of PyTorch to run on.
        places: Its parts and their places.
        name: What the variable for the device is called if one is introduced.

    Attributes:
        edits: The edits.
        places: Those places of `found` and around that they take away.
        arms: Those of conditions that stay, because they lead to code for CUDA alone.
        is_sure: Whether every device does what the original did, as far as this part goes.
    """

    def __init__(
        self,
        script: Script,
        torch: str,
        found: Mapping[Span, str],
        release: TorchVersion,
        places: Places,
        name: str,
    ) -> None:
        self.edits: list[Edit] = []
        self.places: set[Span] = set()
        self.arms: set[Span] = set()
        self.is_sure = True
        self._script = script
        self._opened: ast.Call | None = None
        self._torch = torch
        self._found = found.keys()
        self._counterparts = found
        self._release = release
        self._nodes, self._owners, self._blocks = places
        self._devices = Devices(places, script.tree, torch, release, name)
        self._done: set[ast.AST] = set()
        self._guarded: set[ast.stmt] = set()
        self._armed: set[ast.expr] = set()
        self._conditions: dict[ast.expr, list[Edit]] = {}

    def _device(self, node: ast.expr, literal: ast.expr, scope: Scope) -> str | None:
        """A device for a place: the one that a condition checks, else that of the script."""
        if self._is_under_cuda_check(literal):
            return f"{self._torch}.accelerator.current_accelerator()"
        if self._devices.is_chosen_by(self._owners[node]):
            return self._devices.chosen
        device = self._devices.at(node, scope)
        return None if device is None else device.text

    def _kind(self, node: ast.expr, scope: Scope) -> str | None:
        """The type of that device, a string."""
        if self._is_under_cuda_check(node):
            return f"{self._torch}.accelerator.current_accelerator().type"
        device = self._devices.at(node, scope)
        return None if device is None else device.kind

    def _is_under_cuda_check(self, node: ast.AST) -> bool:
        """Whether code is only reached where a condition has checked for CUDA."""
        return any(map(self._checks_for_cuda, self._leading_to(node)))

    def _leading_to(self, node: ast.AST) -> Iterator[ast.expr]:
        """The conditions around a node, in its function, that hold where it is reached."""
        while (owner := self._owners.get(node)) is not None:
            if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return
            if isinstance(owner, ast.If) and isinstance(node, ast.stmt):
                if self._blocks[node].body is owner.body:
                    yield owner.test
            elif isinstance(owner, ast.IfExp) and node is owner.body:
                yield owner.test
            node = owner

    def _checks_for_cuda(self, test: ast.expr) -> bool:
        """Whether a condition holds only where there is CUDA."""
        return any(
            self._is_question(part) or self._script.source(part) in self._flags
            for part in _joined(test)
        )

    def _is_question(self, test: ast.expr) -> bool:
        return self._script.source(test) == f"{self._torch}.cuda.is_available()"

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        """What variables and attributes are assigned, by how they are written."""
        values: dict[str, list[ast.expr]] = {}
        for node, _ in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    parts = target.elts if isinstance(target, ast.Tuple) else [target]
                    for part in parts:
                        values.setdefault(self._script.source(part), []).append(node.value)
        return values

    @cached_property
    def _flags(self) -> set[str]:
        """Variables and attributes that hold only where there is CUDA."""
        return {
            name
            for name, given in self._values.items()
            if all(any(map(self._is_question, _joined(each))) for each in given)
        }

    def _callee(self, node: ast.expr, text: str) -> None:
        """Write a name of PyTorch; one that is imported as itself stays as it is."""
        span = self._span(node)
        if isinstance(node, ast.Attribute):
            owner = self._script.source(node.value)
            last = text.removeprefix("amp.")
            if text.startswith("amp.") and owner.rpartition(".")[2] == "amp" and "." not in owner:
                self.edits.append(Edit(span, f"{owner}.{last}"))
            else:
                self.edits.append(Edit(span, f"{self._torch}.{text}"))
        elif not text.startswith("amp."):
            self.edits.append(Edit(span, f"{self._torch}.{text}"))
        elif "(" in text:
            name = self._script.source(node)
            self.edits.append(Edit(span, name + text[text.index("(") :]))
        self.places.add(span)
        self._done.update(nodes_below(node))

    def _named(self, node: ast.Call, parameters: Sequence[str]) -> None:
        """Name the arguments that are given by position."""
        for parameter, argument in zip(parameters, node.args, strict=False):
            start = self._span(argument).start
            self.edits.append(Edit(Span(start, start), f"{parameter}="))

    def _first(self, node: ast.Call, text: str) -> None:
        """Put an argument before all others."""
        opening = self._script.lines.text.find("(", self._span(node.func).end) + 1
        more = bool(node.args or node.keywords)
        edit = Edit(Span(opening, opening), text + (", " if more else ""))
        self.edits.insert(0, edit)
        self._opened = node

    def _inserts_into(self, node: ast.Call) -> bool:
        return self._opened is node

    def _argument(self, node: ast.Call, position: int, name: str) -> ast.expr | None:
        named = next((k.value for k in node.keywords if k.arg == name), None)
        return named or (node.args[position] if len(node.args) > position else None)

    def _replace(self, node: ast.expr, text: str, literal: ast.expr) -> None:
        """Write something else in the place of an expression, for a literal in it."""
        self.edits.append(Edit(self._span(node), text))
        self.places.add(self._span(literal))
        self._done.update(nodes_below(node))

    def _in_brackets(self, node: ast.expr, text: str) -> str:
        """An expression of several words where something follows or goes before it."""
        owner = self._owners.get(node)
        is_operand = isinstance(owner, (ast.Attribute, ast.BinOp, ast.BoolOp, ast.UnaryOp))
        is_operand = is_operand or isinstance(owner, (ast.Compare, ast.Subscript, ast.IfExp))
        return f"({text})" if is_operand else text

    def _is_meant(self, node: ast.expr) -> bool:
        """Whether a name of CUDA is to be written: it is found, or its import is."""
        if isinstance(node, ast.Name):
            return node.id in self._imported
        return self._span(node) in self._found

    @cached_property
    def _imported(self) -> set[str]:
        """Names that imports give; one that is assigned has its value written instead."""
        imports = (n for n, _ in self._nodes if isinstance(n, (ast.Import, ast.ImportFrom)))
        return {alias.asname or alias.name for node in imports for alias in node.names}

    def _has_own_lines(self, statement: ast.stmt) -> bool:
        """Whether nothing but a comment is on the lines of a statement beside it."""
        text = self._script.lines.text
        start, place = self._script.lines.starts[statement.lineno - 1], self._span(statement)
        end = text.find("\n", place.end)
        behind = text[place.end : end if end >= 0 else len(text)].strip()
        return not text[start : place.start].strip() and (not behind or behind.startswith("#"))

    def _is_found(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.Constant, ast.JoinedStr)) and self._span(node) in self._found

    def _span(self, node: ast.expr | ast.stmt | ast.alias) -> Span:
        return self._script.span(node)


def text_of(node: ast.expr) -> str:
    """What a string says, of everything else nothing."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _joined(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition that all have to hold."""
    is_and = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    return test.values if is_and and isinstance(test, ast.BoolOp) else [test]
