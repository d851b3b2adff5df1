"""Mixed precision: autocast around what computes a loss, and a scaler for float16.

Lines that go into a `with` are only indented, and a line that becomes another is kept in a comment
(`marks.py`), so that all of it can be taken out again.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Edit
from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.marks import marked, replaced_line
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.strings import comments_and_strings
from npulens.syntax.values import Name, dotted_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import line_ending
from npulens.text.spans import Span
from npulens.training.call_sites import Site
from npulens.training.loss_regions import (
    LossRegion,
    UnclearLossError,
    assigned_names,
    loss_region,
)
from npulens.training.step_loops import StepLoop
from npulens.training.training_script import TrainingScript
from npulens.training.updates import Backward, Update

_CASTS_ALREADY = re.compile(
    r"\bautocast\b|\bGradScaler\b|\bamp\.(?:initialize|scale_loss)\b|\.half\(\)|\.bfloat16\(\)"
    r"|\bmixed_precision\b|\bfp16\b"
)
_REFUSES_AUTOCAST = re.compile(r"\bBCELoss\(|(?<!\w)binary_cross_entropy\(")
"""Losses that raise an error under autocast, as their logarithms need more than half precision."""
_GRADIENTS = re.compile(r"\bautograd\.grad\b|(?<![\w.])grad\(|\.grad\b(?!\s*=\s*None\b)")
"""Where a script has to do with gradients itself, which are scaled then."""
_STEP = "    "


class MixedPrecision:
    """The edits of one script.

    Args:
        dtype: `bfloat16`, or `float16` with a scaler.
        scaler: What the scaler is called.

    Raises:
        UnclearError: It casts already, its loop is in a library, or it is not clear what
            computes a loss; the edits raise it too.
    """

    def __init__(self, script: Script, training: TrainingScript, dtype: str, scaler: str) -> None:
        text = script.lines.text
        if casts := _CASTS_ALREADY.search(text):
            line = text.count("\n", 0, casts.start()) + 1
            raise UnclearError(line, "instrument.casts-already", code=casts[0])
        if refuses := _REFUSES_AUTOCAST.search(text):
            line = text.count("\n", 0, refuses.start()) + 1
            raise UnclearError(line, "instrument.refuses-autocast")
        if dtype == "float16" and (changed := _GRADIENTS.search(text)):
            line = text.count("\n", 0, changed.start()) + 1
            raise UnclearError(line, "instrument.gradients-by-hand", code=changed[0])
        if training.runs:
            line = training.runs[0].site.node.lineno
            raise UnclearError(line, "instrument.precision-of-library")
        self._script, self._training = script, training
        self._dtype, self._scaler = dtype, scaler
        going_back = (each.site.node for each in training.backwards)
        self._barriers = frozenset((*going_back, *(each.site.node for each in training.updates)))
        strings = comments_and_strings(text)
        self._long_strings = [span for span in strings if "\n" in text[slice(*span)]]

    def imports(self) -> tuple[str, ...]:
        """The import of torch, where the module has no such name."""
        bound = self._script.module.module.names.get("torch")
        if bound is None:
            return ("import torch",)
        if resolve_name(Name("torch"), self._script.module, None) != [Qualified("torch")]:
            raise UnclearError(1, "instrument.without-torch")
        return ()

    def edits(self) -> Iterator[Edit]:
        """The edits that indent and replace lines."""
        regions: dict[ast.stmt, LossRegion] = {}
        for step in self._training.steps:
            for backward in step.backwards:
                if backward.owner is not None:
                    line = backward.site.node.lineno
                    raise UnclearError(line, "instrument.goes-back-by-other")
                region = self._region(step, backward)
                if self._dtype == "bfloat16":
                    _require_no_array(step, region)
                regions[region.statements[0]] = region
        _require_apart([*regions.values()])
        for region in regions.values():
            yield from self._indented(region)
        if self._dtype == "float16":
            yield from self._scaled()

    def insertions(self) -> Iterator[Insertion]:
        """The lines of a scaler: `unscale_` before clipping, `update` behind the last step."""
        if self._dtype != "float16":
            return
        for step in self._training.steps:
            yield from self._unscaled(step)
            yield from self._updated(step)

    def _region(self, step: StepLoop, backward: Backward) -> LossRegion:
        ways = [
            path for path in self._training.sites.paths_to(backward.site) if step.loop in path.loops
        ]
        try:
            return loss_region(backward, ways[0], self._barriers)
        except UnclearLossError as error:
            raise UnclearError(error.line, "instrument.unclear-loss") from error

    def _indented(self, region: LossRegion) -> Iterator[Edit]:
        """`with torch.autocast(...):` around statements."""
        script, first, last = self._script, region.statements[0], region.statements[-1]
        lines = script.lines
        head = f'with torch.autocast("npu", dtype=torch.{self._dtype}):'
        insertion = before(lines, first, (head,))
        behind(lines, last, ())  # the last statement must not share its line either
        unit = "\t" if insertion.indentation.endswith("\t") else _STEP
        end = last.end_lineno or last.lineno
        start, stop = lines.starts[insertion.line - 1], _line_start(lines.starts, end + 1)
        stop = len(lines.text) if stop is None else stop
        for span in self._long_strings:
            if span.start < stop and span.end > start:
                line = lines.text.count("\n", 0, span.start) + 1
                raise UnclearError(line, "instrument.long-string")
        ending = line_ending(lines.text)
        text = marked(insertion.indentation + head, self._dtype) + ending
        yield Edit(Span(start, start), text + unit)
        for number in range(insertion.line + 1, end + 1):
            at = lines.starts[number - 1]
            if lines.text[at : _line_start(lines.starts, number + 1)].strip():
                yield Edit(Span(at, at), unit)

    def _scaled(self) -> Iterator[Edit]:
        """`loss.backward()` and `optimizer.step()` through the scaler."""
        script, scaler = self._script, self._scaler
        for step in self._training.steps:
            for backward in step.backwards:
                loss = script.source(backward.loss)
                yield self._replaced(backward.site.node, loss, f"{scaler}.scale({loss})")
            for update in step.updates:
                node = update.site.node
                if update.scaler is not None or (isinstance(node, ast.Call) and node.args):
                    raise UnclearError(node.lineno, "instrument.step-with-closure")
                optimizer = script.source(update.optimizer)
                called = script.source(node)
                yield self._replaced(node, called, f"{scaler}.step({optimizer})")

    def _replaced(self, node: ast.expr, old: str, new: str) -> Edit:
        """A line in which one expression becomes another, with the old line in a comment."""
        lines = self._script.lines
        if node.lineno != node.end_lineno:
            raise UnclearError(node.lineno, "instrument.over-several-lines")
        start = lines.starts[node.lineno - 1]
        stop = _line_start(lines.starts, node.lineno + 1)
        line = lines.text[start : len(lines.text) if stop is None else stop]
        at = lines.span(node).start - start
        content = line.rstrip("\r\n")
        changed = content[:at] + content[at:].replace(old, new, 1)
        text = replaced_line(content, changed, self._dtype, line_ending(lines.text))
        return Edit(Span(start, start + len(content)), text)

    def _unscaled(self, step: StepLoop) -> Iterator[Insertion]:
        """`scaler.unscale_(optimizer)` before the gradients of a step are clipped."""
        clips = [
            site
            for site, call in self._training.sites.calls()
            if _clips(call) and step.loop in _loops_of(self._training, site)
        ]
        if not clips:
            return
        optimizers = list(dict.fromkeys(self._script.source(u.optimizer) for u in step.updates))
        if len(optimizers) != 1:
            raise UnclearError(clips[0].node.lineno, "instrument.clips-for-several")
        text = f"{self._scaler}.unscale_({optimizers[0]})"
        first = _first_of(clips)
        if first is None:
            raise UnclearError(clips[0].node.lineno, "instrument.clips-for-several")
        yield before(self._script.lines, first, (text,), order=3)

    def _updated(self, step: StepLoop) -> Iterator[Insertion]:
        """`scaler.update()` behind each step that no other follows before the next backward."""
        lines = self._script.lines
        events: list[Backward | Update] = [*step.backwards, *step.updates]
        events.sort(key=lambda each: (each.site.node.lineno, each.site.node.col_offset))
        following = [*events[1:], None]
        for event, later in zip(events, following, strict=True):
            if isinstance(event, Update) and not self._steps_another(event, later):
                yield behind(lines, event.site.statement, (f"{self._scaler}.update()",), order=0)

    def _steps_another(self, event: Update, later: Backward | Update | None) -> bool:
        """Whether another optimizer is stepped next with the same gradients."""
        source = self._script.source
        return isinstance(later, Update) and source(later.optimizer) != source(event.optimizer)


def _clips(call: ast.Call) -> bool:
    name: str = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name.startswith("clip_grad")


def _first_of(clips: Sequence[Site]) -> ast.stmt | None:
    """The statement before which gradients are unscaled once for all clips, if there is one."""
    if any(clip.function is not clips[0].function for clip in clips):
        return None
    chains = [clip.statements for clip in clips]
    depth = 0
    while all(len(c) > depth + 1 and c[depth] is chains[0][depth] for c in chains):
        depth += 1
    return min((chain[depth] for chain in chains), key=lambda statement: statement.lineno)


def _loops_of(training: TrainingScript, site: Site) -> set[ast.AST]:
    return {loop for path in training.sites.paths_to(site) for loop in path.loops}


_OTHER_TYPE = frozenset(
    {"float", "double", "half", "long", "int", "bool", "argmax", "argsort", "to"}
)
_WITH_INDICES = frozenset({"max", "min", "topk", "sort", "median"})
"""What has indices beside its values, as the second of two."""


def _require_no_array(step: StepLoop, region: LossRegion) -> None:
    """See that nothing computed in bfloat16 becomes an array of NumPy, which has no such type."""
    inside = {node for statement in region.statements for node in nodes_below(statement)}
    stored = {name for statement in region.statements for name in assigned_names(statement)}
    for node in nodes_below(step.loop):
        if node not in inside and isinstance(node, ast.Attribute) and node.attr == "numpy":
            names, has_other_type = _receiver(node)
            if not stored.isdisjoint(names) and not has_other_type:
                raise UnclearError(node.lineno, "instrument.no-array-of-bfloat16")


def _receiver(node: ast.expr) -> tuple[list[str], bool]:
    """The names at the root of `self.out.max(1)[1].cpu()`, and whether that has another type."""
    has_other_type = False
    root = node
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            has_other_type |= node.attr in _OTHER_TYPE
        elif isinstance(node, ast.Subscript):
            is_second = isinstance(node.slice, ast.Constant) and node.slice.value == 1
            called = node.value.func if isinstance(node.value, ast.Call) else node.value
            has_other_type |= is_second and getattr(called, "attr", "") in _WITH_INDICES
        if not isinstance(node, ast.Attribute):
            root = node.func if isinstance(node, ast.Call) else node.value
        node = node.func if isinstance(node, ast.Call) else node.value
    name = dotted_name(root)
    parts = () if name is None else (name.root, *name.path)
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)], has_other_type


def _require_apart(regions: Sequence[LossRegion]) -> None:
    """See that no statement is in two regions."""
    seen: set[ast.AST] = set()
    for region in regions:
        nodes = {node for statement in region.statements for node in nodes_below(statement)}
        if seen & nodes:
            raise UnclearError(region.statements[0].lineno, "instrument.unclear-loss")
        seen |= nodes


def _line_start(starts: Sequence[int], number: int) -> int | None:
    return starts[number - 1] if number <= len(starts) else None
