"""What has no neutral way: an arm for CUDA, and one for the NPU beside it where it has the same."""

import ast
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.one_card import wrapped_models
from npulens.fixes.one_code.neutral_functions import CUDA, STEP
from npulens.fixes.one_code.neutral_strings import Strings
from npulens.fixes.one_code.vocabulary import CALLED, neutral
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_CARDS = (ast.Gt, ast.GtE, ast.NotEq)
"""How a number of cards is compared with one."""


class _OfCuda(NamedTuple):
    """A statement for CUDA alone.

    Attributes:
        statement: It.
        place: The name of CUDA in it.
        for_npu: The same for the NPU, empty if there is none.
    """

    statement: ast.Expr
    place: Span
    for_npu: str


class VendorArms(Strings):
    """Puts code of one vendor where only its devices run it."""

    def _arm(self, statement: ast.Expr, scope: Scope) -> None:
        """`torch.cuda.nvtx.range_push("x")`: statements of their own, those that follow with it."""
        run = list(self._run_from(statement, scope))
        if not run or self._is_behind_backend(statement):
            return
        device = self._devices.at(statement.value, scope)
        if device is None:
            return
        first, last = self._span(run[0].statement), self._span(run[-1].statement)
        start = self._script.lines.starts[statement.lineno - 1]
        indentation = self._script.lines.text[start : first.start]
        before = f'if {device.kind} == "cuda":\n{indentation}{STEP}'
        self.edits.append(Edit(Span(first.start, first.start), before))
        for each in run[1:]:
            place = self._span(each.statement).start
            self.edits.append(Edit(Span(place, place), STEP))
        texts = [each.for_npu for each in run if each.for_npu]
        if texts:
            arm = "".join(f"\n{indentation}{STEP}{text}" for text in texts)
            arm = f'\n{indentation}elif {device.kind} == "npu":{arm}'
            self.edits.append(Edit(Span(last.end, last.end), arm))
        for each in run:
            self.places.add(each.place)
            self._done.update(nodes_below(each.statement))
        self.is_sure = False

    def _is_behind_backend(self, node: ast.AST) -> bool:
        """Whether a comparison with nccl leads to a statement, which is an arm for CUDA."""
        return any(
            isinstance(part, ast.Constant) and part.value == "nccl" and self._is_found(part)
            for test in self._leading_to(node)
            for part in nodes_below(test)
        )

    def _run_from(self, statement: ast.Expr, scope: Scope) -> Iterator[_OfCuda]:
        """A statement for CUDA alone, and those on the lines right behind it."""
        block = self._blocks[statement]
        line = statement.lineno
        for each in block.body[block.at :]:
            found = self._of_cuda(each, scope) if isinstance(each, ast.Expr) else None
            if found is None or each.lineno != line:
                return
            yield found
            line = (each.end_lineno or line) + 1

    def _of_cuda(self, statement: ast.Expr, scope: Scope) -> _OfCuda | None:
        """A statement if there is one thing of CUDA in it, which has no neutral way."""
        parts = [
            part
            for part in nodes_below(statement)
            if isinstance(part, (ast.Attribute, ast.Name)) and self._is_only_for_cuda(part, scope)
        ]
        span = self._span(statement)
        if len(parts) != 1 or len(self._found_in(span)) != 1:
            return None
        if not self._has_own_lines(statement):
            return None
        place = self._span(parts[0])
        counterpart = self._counterparts.get(place, "")
        text = self._script.lines.text
        ours = (
            counterpart
            and f"{text[span.start : place.start]}{counterpart}{text[place.end : span.end]}"
        )
        return _OfCuda(statement, place, ours)

    def _is_only_for_cuda(self, node: ast.Attribute | ast.Name, scope: Scope) -> bool:
        if self._span(node) not in self._found:
            return False
        names = qualified_names(node, scope)
        last = names[0].removeprefix(CUDA) if len(names) == 1 else ""
        is_cuda = bool(last) and names[0].startswith(CUDA)
        is_written = last.rpartition(".")[2] in CALLED or neutral(last, self._release) is not None
        return is_cuda and not is_written

    def _keep_arms(self) -> None:
        """Leave a condition as it is if all that it leads to stays CUDA's."""
        dropped: set[Edit] = set()
        for condition, edits in self._conditions.items():
            leading = self._statement_led_by(condition)
            if leading is None:
                continue
            tested = self._found_in(self._span(leading.test))
            found = set(self._found_in(self._span(leading))).difference(tested)
            if found and not self.places.intersection(found):
                dropped.update(edits)
                self.places.difference_update(tested)
                self.arms.update(tested)
        self.edits = [each for each in self.edits if each not in dropped]

    def _found_in(self, span: Span) -> list[Span]:
        """What is found in a part of the module."""
        first, behind = (bisect_left(self._sorted, Span(at, 0)) for at in span)
        return [each for each in self._sorted[first:behind] if each.end <= span.end]

    @cached_property
    def _sorted(self) -> list[Span]:
        return sorted(self._found)

    def _statement_led_by(self, node: ast.AST) -> ast.If | ast.IfExp | None:
        """What is led by a condition that a node is, or is a part of."""
        owner = self._owners.get(node)
        while isinstance(owner, (ast.BoolOp, ast.UnaryOp)):
            node, owner = owner, self._owners.get(owner)
        return owner if isinstance(owner, (ast.If, ast.IfExp)) and node is owner.test else None

    def _data_parallel(self, node: ast.Call, scope: Scope) -> None:
        """`if torch.cuda.device_count() > 1: model = nn.DataParallel(model)`: on CUDA alone.

        Where a condition on the number of cards leads to it, the script runs without it, too.
        """
        if self._span(node.func) not in self._found:
            return
        test = self._check_of_cards(node)
        device = None if test is None else self._devices.at(test, scope)
        if test is None:
            self._wrapped_for_cuda(node, scope)
        if test is None or device is None:
            return
        self.places.add(self._span(node.func))
        self.is_sure = False
        if test in self._armed:
            return
        self._armed.add(test)
        span = self._span(test)
        is_one = isinstance(test, (ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.UnaryOp))
        is_one |= isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
        before, behind = ("", "") if is_one else ("(", ")")
        arm = f'{device.kind} == "cuda" and {before}'
        self.edits.append(Edit(Span(span.start, span.start), arm))
        self.edits.append(Edit(Span(span.end, span.end), behind))

    def _wrapped_for_cuda(self, node: ast.Call, scope: Scope) -> None:
        """`nn.DataParallel(m) if device.type == "cuda" else m`, if `m` does without the wrapper."""
        tests = (part for test in self._leading_to(node) for part in nodes_below(test))
        if any(self._is_found(part) for part in tests if isinstance(part, ast.expr)):
            return  # it is an arm for CUDA already
        model = self._models.get(node)
        device = None if model is None else self._devices.at(node, scope)
        if device is None or not isinstance(model, (ast.Name, ast.Attribute)):
            return
        span, text = self._span(node), self._script.source(model)
        is_value = isinstance(self._owners.get(node), ast.Assign)
        before, behind = ("", "") if is_value else ("(", ")")
        arm = f' if {device.kind} == "cuda" else {text}{behind}'
        self.places.add(self._span(node.func))
        self.is_sure = False
        self.edits.append(Edit(Span(span.start, span.start), before))
        self.edits.append(Edit(Span(span.end, span.end), arm))

    @cached_property
    def _models(self) -> dict[ast.Call, ast.expr]:
        return {each.call: each.model for each in wrapped_models(self._script)}

    def _check_of_cards(self, node: ast.AST) -> ast.expr | None:
        """The condition on the number of cards around a node, if there is one."""
        for test in self._leading_to(node):
            parts = (part for part in nodes_below(test) if isinstance(part, ast.expr))
            if any(map(self._is_found, parts)):
                return None  # it is an arm for CUDA already
            if _counts_cards(test):
                return test
        return None


def _counts_cards(test: ast.expr) -> bool:
    """`torch.cuda.device_count() > 1`, `args.n_gpu > 1`, `len(gpus) >= 2`."""
    return any(
        isinstance(part, ast.Compare)
        and len(part.ops) == 1
        and isinstance(part.ops[0], _CARDS)
        and isinstance(part.comparators[0], ast.Constant)
        and part.comparators[0].value in (1, 2)
        for part in nodes_below(test)
    )
