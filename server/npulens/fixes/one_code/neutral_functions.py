"""Functions of `torch.cuda`, and checks of the device of a tensor."""

import ast

from npulens.catalog.model import Edit
from npulens.fixes.one_code.neutral_precision import Precision
from npulens.fixes.one_code.vocabulary import (
    ACTIVITY,
    DECORATORS,
    ON_APPLE,
    SEEDS,
    Without,
    neutral,
)
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

CUDA = "torch.cuda."
STEP = "    "
_FEW = 4
"""So many statements before one are looked at."""


_ACTIVITIES = [[f"{ACTIVITY}CPU"], [f"{ACTIVITY}CUDA"]]


class Functions(Precision):
    """Writes calls of `torch.cuda` as those of whatever accelerator there is."""

    def _function(self, node: ast.Call, name: str) -> None:
        """A call of a function of `torch.cuda`."""
        found = neutral(name, self._release)
        if found is None or not self._is_meant(node.func):
            return
        statement = self._owners.get(node)
        is_statement = isinstance(statement, ast.Expr)
        if name in SEEDS and isinstance(statement, ast.Expr) and self._is_seeded(statement, node):
            self._removed(statement, node)
            return
        self._note_module(found.text)
        if found.without is Without.NOTHING and not self._is_under_cuda_check(node):
            if not isinstance(statement, ast.Expr) or not self._guard(statement):
                return
        elif found.without is Without.ZERO and not self._is_under_cuda_check(node):
            span = self._span(node)
            fallback = f" if {self._torch}.accelerator.is_available() else 0"
            before, behind = ("", fallback) if is_statement else ("(", f"{fallback})")
            self.edits.append(Edit(Span(span.start, span.start), before))
            self.edits.append(Edit(Span(span.end, span.end), behind))
        self._callee(node.func, found.text)

    def _note_module(self, text: str) -> None:
        """Note what the module of some device does not have."""
        name = text.removeprefix("get_device_module().")
        self.is_sure &= name == text or name in ON_APPLE

    def _removed(self, statement: ast.Expr, call: ast.Call) -> None:
        """Take out a statement that adds nothing to one before it."""
        lines = self._script.lines
        start, end = lines.starts[statement.lineno - 1], self._span(statement).end
        newline = lines.text.find("\n", end)
        has_own_line = not lines.text[start : self._span(statement).start].strip()
        if not has_own_line or newline < 0 or lines.text[end:newline].strip():
            self._callee(call.func, "manual_seed")
            return
        self.edits.append(Edit(Span(start, newline + 1), ""))
        self.places.add(self._span(call.func))
        self._done.update(nodes_below(statement))

    def _is_seeded(self, statement: ast.Expr, call: ast.Call) -> bool:
        """Whether `torch.manual_seed` gets the same seed right before."""
        block = self._blocks[statement]
        seed = [self._script.source(each) for each in call.args]
        for before in reversed(block.body[max(block.at - _FEW, 0) : block.at]):
            value = before.value if isinstance(before, ast.Expr) else None
            if not isinstance(value, ast.Call) or "seed" not in self._script.source(value.func):
                return False
            if self._script.source(value.func) == f"{self._torch}.manual_seed":
                return [self._script.source(each) for each in value.args] == seed
        return False

    def _guard(self, statement: ast.stmt) -> bool:
        """Put `if torch.accelerator.is_available():` before a statement that fails without one."""
        if not self._has_own_lines(statement):
            return False
        place = self._span(statement)
        start = self._script.lines.starts[statement.lineno - 1]
        indentation = self._script.lines.text[start : place.start]
        block = self._blocks[statement]
        follows = block.at > 0 and block.body[block.at - 1] in self._guarded
        text = f"if {self._torch}.accelerator.is_available():\n{indentation}{STEP}"
        self.edits.append(Edit(Span(place.start, place.start), STEP if follows else text))
        self._guarded.add(statement)
        return True

    def _name(self, node: ast.Attribute | ast.Name, scope: Scope) -> None:
        """A name of `torch.cuda` that is called, or taken without a call; `tensor.is_cuda`."""
        owner = self._owners.get(node)
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
            self._device_check(node)
            return
        if isinstance(owner, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return
        if not self._is_meant(node):
            return
        names = qualified_names(node, scope)
        name = names[0] if len(names) == 1 else ""
        is_called = isinstance(owner, ast.Call) and owner.func is node
        if name in DECORATORS and not is_called:
            device = self._devices.at(node, scope)
            if device is not None:
                text = f"amp.{name.rpartition('.')[2]}(device_type={device.kind})"
                self._callee(node, text)
        elif name == "torch.cuda" and not is_called:
            self._callee(node, "get_device_module()")
        elif name.startswith(CUDA):
            found = neutral(name.removeprefix(CUDA), self._release)
            is_same = found is not None and found.without is Without.SAME
            if found is not None and is_same and not is_called:
                self._note_module(found.text)
                self._callee(node, found.text)

    def _activities(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> None:
        """`activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`: all that there are."""
        names = [qualified_names(each, scope)[:1] for each in node.elts if _is_name(each)]
        of_cuda = [each for each in node.elts if self._is_meant(each)]
        if sorted(names) == _ACTIVITIES and len(node.elts) == len(names) and of_cuda:
            self._replace(node, f"{self._torch}.profiler.supported_activities()", of_cuda[-1])
            self.places.update(map(self._span, of_cuda))
            self.is_sure = False  # XPU's are among them

    def _imports_of_modules(self) -> None:
        """Imports of CUDA's names of which each use is written in another way: they go."""
        uses: dict[str, list[ast.Name]] = {}
        for node, _ in self._nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses.setdefault(node.id, []).append(node)
        for node, _ in self._nodes:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            for alias in node.names:
                span, name = self._span(alias), alias.asname or alias.name.partition(".")[0]
                is_left = span in self._found and span not in self.places
                if is_left and uses.get(name) and self._done.issuperset(uses[name]):
                    self.places.add(span)

    def _device_check(self, node: ast.Attribute) -> None:
        """`x.is_cuda`: whether it is on a device with a memory of its own."""
        whole = self._span(node)
        place = Span(whole.end - len(node.attr), whole.end)
        if place not in self._found:
            return
        owner = self._owners.get(node)
        is_alone = isinstance(owner, (ast.If, ast.While, ast.Assert, ast.Assign, ast.Return))
        before, behind = ("", "") if is_alone or isinstance(owner, ast.keyword) else ("(", ")")
        self.edits.append(Edit(Span(whole.start, whole.start), before))
        self.edits.append(Edit(place, f'device.type != "cpu"{behind}'))
        self.places.add(place)


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, (ast.Attribute, ast.Name))
