"""Mixed precision: autocast around what computes a loss, and a scaler for float16.

Lines that go into a `with` are only indented, and a line that becomes another is kept in a comment
(`marks.py`), so that all of it can be taken out again.
"""

import ast
import builtins
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from npulens.catalog.model import Edit
from npulens.fixes.instruments.between_passes import BetweenPasses, is_clip
from npulens.fixes.instruments.bfloat16_arrays import ArraySearch
from npulens.fixes.instruments.earlier_passes import earlier_passes
from npulens.fixes.instruments.half_hazards import HalfHazards
from npulens.fixes.instruments.host_scripts import (
    moves_to_host_alone,
    stays_on_host,
    takes_of_host,
)
from npulens.fixes.instruments.insertion import Insertion, before, behind
from npulens.fixes.instruments.loss_scaling import scaler_lines
from npulens.fixes.instruments.marks import marked, replaced_line
from npulens.fixes.instruments.region_start import RegionStart
from npulens.fixes.instruments.wrapped_optimizers import path_to_optimizer
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.strings import comments_and_strings
from npulens.syntax.values import Name, last_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import line_ending
from npulens.text.spans import Span
from npulens.training.call_sites import Site
from npulens.training.flow import Flow
from npulens.training.loss_regions import (
    LossRegion,
    UnclearLossError,
    loss_region,
)
from npulens.training.program import FindModule, FindPrograms, Module, Program
from npulens.training.statement_blocks import block_with
from npulens.training.step_blocks import WITHOUT_GRADIENTS
from npulens.training.training_script import TrainingScript, read_program
from npulens.training.turns import Turn, turns
from npulens.training.updates import Backward, is_in_two_passes

_CASTS_ALREADY = re.compile(
    r"\bautocast\b|\bGradScaler\b|\bamp\.(?:initialize|scale_loss)\b|\.half\(\)|\.bfloat16\(\)"
    r"|\bprepare_qat(?:_fx)?\b|\bmixed_precision\b|\bfp16\b|\btorch\.(?:float16|half|bfloat16)\b"
)
_REFUSES_AUTOCAST = re.compile(r"\bBCELoss\(|(?<!\w)binary_cross_entropy\(")
"""Losses that raise an error under autocast, as their logarithms need more than half precision."""
_GRADIENTS = re.compile(r"\bautograd\.grad\b|(?<![\w.])grad\(|\.grad\b(?!\s*=\s*None\b)")
"""Where a script has to do with gradients itself, which are scaled then."""
_IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:\([^)]*\)|[^\n]*)", re.MULTILINE
)
"""Statements that import something."""
_SETS_GRADIENTS = re.compile(
    r"\.grad\s*=(?!=|\s*(?:None\b|torch\.zeros|[\w.\[\]]+\.grad\b))"  # none, or what it was
)
"""Where gradients may come from no `backward()`, so that what computes their loss is not seen."""
_OF_MODELS = frozenset({"parameters", "named_parameters", "train", "eval", "state_dict"})
_STEP = "    "
_NO_MODELS = ("torch.", "F.", "nn.", "np.", "math.")


class MixedPrecision:
    """The edits of one script.

    Args:
        dtype: `bfloat16`, or `float16` with a scaler.
        scaler: What the scaler is called.
        find: Finds the modules that the script imports; without it they are not looked at.
        above: Finds the programs that import the script: they make the models that it is given.

    Raises:
        UnclearError: It casts already, its loop is in a library, or it is not clear what
            computes a loss; the edits raise it too.
    """

    def __init__(
        self,
        script: Script,
        training: TrainingScript,
        dtype: str,
        scaler: str,
        find: FindModule | None = None,
        above: FindPrograms | None = None,
    ) -> None:
        text = _code_alone(script.lines.text)
        if casts := _casts(text, script, training):
            line = text.count("\n", 0, casts.start()) + 1
            raise UnclearError(line, "instrument.casts-already", code=casts[0])
        if refuses := _REFUSES_AUTOCAST.search(text):
            line = text.count("\n", 0, refuses.start()) + 1
            raise UnclearError(line, "instrument.refuses-autocast")
        changed = _gradients(text, script, training) if dtype == "float16" else None
        if changed is not None:
            line = text.count("\n", 0, changed.start()) + 1
            raise UnclearError(line, "instrument.gradients-by-hand", code=changed[0])
        sets = _SETS_GRADIENTS.search(text)
        if sets is not None:
            line = text.count("\n", 0, sets.start()) + 1
            raise UnclearError(line, "instrument.unclear-loss")
        if training.runs:
            line = training.runs[0].site.node.lineno
            option = {"bfloat16": "bf16=True", "float16": "fp16=True"}[dtype]
            raise UnclearError(line, "instrument.precision-of-library", option=option)
        self._script, self._training = script, training
        self._dtype, self._scaler, self._find = dtype, scaler, find
        self._above = above
        self._barriers = training.barriers
        self._program, self._read = self._read_program()
        self._whole = self._read[0].sites
        self._turns = turns(training)
        self._start = RegionStart(training.sites, self._whole)
        strings = comments_and_strings(script.lines.text)
        unused = {script.lines.span(node).start for node in _unused_strings(script.tree)}
        self._long_strings = [
            span for span in strings if "\n" in text[slice(*span)] and span.start not in unused
        ]

        for update in training.updates if dtype == "float16" else ():
            if is_in_two_passes(update):
                node = update.site.node
                code = script.source(node)
                raise UnclearError(node.lineno, "instrument.two-passes-scaled", code=code)

    def _read_program(self) -> tuple[Program, tuple[TrainingScript, Flow]]:
        """The script with what it imports, as far as that is looked at."""
        start = Module("", self._script.tree, self._script.module)
        if self._find is None:
            sites = self._training.sites
            return sites.program, (self._training, Flow(sites.program, sites))
        program = Program(start, self._find)
        return program, read_program(program)

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
        for step in self._turns:
            for backward in step.backwards:
                if backward.owner is not None:
                    line = backward.site.node.lineno
                    raise UnclearError(line, "instrument.goes-back-by-other")
                region = self._region(step, backward)
                regions[region.statements[0]] = region
        if not regions:
            return
        regions = self._joined(regions)
        sites = self._training.sites
        for each in earlier_passes([*regions.values()], sites, self._start, self._barriers):
            regions[each.statements[0]] = each
        _require_apart([*regions.values()])
        self._require_no_hazard([*regions.values()])
        for region in regions.values():
            yield from self._indented(region)
        if self._dtype == "float16":
            yield from self._scaled()

    def _require_no_hazard(self, regions: Sequence[LossRegion]) -> None:
        """See that what the script imports can be computed in half precision as well."""
        start = self._program.start
        training, flow = self._read
        above = () if self._above is None else self._above(start)
        if self._find is not None and self._is_of_host(self._program, above, regions):
            raise UnclearError(regions[0].statements[0].lineno, "instrument.on-host")
        if self._dtype == "bfloat16":
            ArraySearch(training.sites, flow, regions).require_none()
        if self._dtype == "float16":
            self._require_no_wrapper(flow)
        loops = [turn.around for turn in self._turns]
        HalfHazards(training, flow, self._dtype, start).require_none(regions, loops)
        for larger in above:
            training, flow = read_program(larger)
            HalfHazards(training, flow, self._dtype, start).require_none(regions, loops)

    def _is_of_host(
        self, program: Program, above: Sequence[Program], regions: Sequence[LossRegion]
    ) -> bool:
        if any(takes_of_host(program, each, self._start.is_model) for each in regions):
            return True
        if moves_to_host_alone(self._script.tree, self._read[1]):
            return True
        return stays_on_host(program, above, regions)

    def _require_no_wrapper(self, flow: Flow) -> None:
        """See that a scaler is given optimizers, and no wrappers of them."""
        try:
            path = path_to_optimizer(self._training, flow, None)
        except UnclearError as unclear:
            raise UnclearError(unclear.line, "instrument.step-of-wrapper") from unclear
        if path:
            line = self._turns[0].updates[0].site.node.lineno
            raise UnclearError(line, "instrument.step-of-wrapper")

    def _joined(self, regions: Mapping[ast.stmt, LossRegion]) -> dict[ast.stmt, LossRegion]:
        """Regions of one block that overlap, as one: nothing goes backward between."""
        joined: list[LossRegion] = []
        for region in sorted(regions.values(), key=lambda each: each.statements[0].lineno):
            before = joined[-1] if joined else None
            if before is None or region.statements[0] not in before.statements:
                joined.append(region)
                continue
            new = [each for each in region.statements if each not in before.statements]
            joined[-1] = before._replace(statements=(*before.statements, *new))
        return {each.statements[0]: each for each in joined}

    def insertions(self) -> Iterator[Insertion]:
        """The lines of a scaler: `unscale_` before clipping, `update` behind the last step."""
        if self._dtype != "float16":
            return
        script, sites = self._script, self._training.sites
        between = BetweenPasses(script, sites, self._whole)
        found = (
            line
            for turn in self._turns
            for line in scaler_lines(script, sites, turn, self._scaler, {*between.clipping(turn)})
        )
        yield from dict.fromkeys(found)  # several loops may run the same function

    def _region(self, step: Turn, backward: Backward) -> LossRegion:
        ways = [path for path in self._training.sites.paths_to(backward.site) if step.holds(path)]
        try:
            return self._start.trimmed(loss_region(backward, ways[0], self._barriers))
        except UnclearLossError as error:
            raise UnclearError(error.line, "instrument.unclear-loss") from error

    def _indented(self, region: LossRegion) -> Iterator[Edit]:
        """`with torch.autocast(...):` around statements."""
        script, first, last = self._script, region.statements[0], region.statements[-1]
        lines = script.lines
        caching = ", cache_enabled=False" if self._runs_twice(region) else ""
        head = f'with torch.autocast("npu", dtype=torch.{self._dtype}{caching}):'
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

    def _runs_twice(self, region: LossRegion) -> bool:
        """Whether a model runs without gradients and with them.

        Autocast keeps weights that it casts, and those of the first pass have no gradients.
        Source: PyTorch, `cached_cast` in `aten/src/ATen/autocast_mode.cpp`.
        """
        nodes = (n for each in region.statements for n in nodes_below(each))
        functions = {f for node in nodes for f in self._functions_run(node)}
        bodies = [each.body for each in functions if not _is_without_gradients(each)]
        return any(map(self._is_with_and_without_gradients, (region.statements, *bodies)))

    def _functions_run(self, node: ast.AST) -> Sequence[Function]:
        site = self._training.sites.site_of.get(node) if isinstance(node, ast.expr) else None
        return () if site is None else self._training.sites.run_by(site)

    def _is_with_and_without_gradients(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements call something without gradients, and with them further down."""
        without: set[ast.Call] = set()
        every: list[ast.Call] = []
        first: dict[str, int] = {}
        for node in (part for statement in body for part in nodes_below(statement)):
            if isinstance(node, ast.With) and _names_no_gradients(
                e.context_expr for e in node.items
            ):
                without.update(_calls(node.body))
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                every.append(node)
        inside = [(each, each.lineno) for each in every if each in without]
        inside += [
            (each, node.lineno)
            for node in every
            for function in self._functions_run(node)
            if _is_without_gradients(function)
            for each in _calls(function.body)
        ]
        for call, line in inside:
            text = ast.unparse(call.func)
            if not text.startswith(_NO_MODELS) and not hasattr(builtins, text):
                first[text] = min(line, first.get(text, line))
        return any(
            each not in without and each.lineno > first.get(ast.unparse(each.func), each.lineno)
            for each in every
        )

    def _require_all_scaled(self) -> None:
        """See that no optimizer is stepped outside of the steps: its gradients were scaled."""
        scaled = {id(update) for turn in self._turns for update in turn.updates}
        names = {self._script.source(u.optimizer) for t in self._turns for u in t.updates}
        for update in self._training.updates:
            if id(update) not in scaled and self._script.source(update.optimizer) in names:
                raise UnclearError(update.site.node.lineno, "instrument.stepped-outside")

    def _scaled(self) -> Iterator[Edit]:
        """`loss.backward()` and `optimizer.step()` through the scaler."""
        script, scaler = self._script, self._scaler
        self._require_all_scaled()
        for step in self._turns:
            for backward in step.backwards:
                loss = script.source(backward.loss)
                yield self._replaced(backward.site.node, loss, f"{scaler}.scale({loss})")
            for update in step.updates:
                node = update.site.node
                if update.scaler is not None or (isinstance(node, ast.Call) and node.args):
                    raise UnclearError(node.lineno, "instrument.step-with-closure")
                if getattr(getattr(node, "func", None), "attr", "") != "step":
                    raise UnclearError(node.lineno, "instrument.step-of-wrapper")
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


def _casts(text: str, script: Script, training: TrainingScript) -> re.Match[str] | None:
    """What is about precision in a script, but for data that is stored in less of it."""
    found = [*_CASTS_ALREADY.finditer(text)]
    if not any(each[0] == ".half()" for each in found):
        return found[0] if found else None
    models = {ast.unparse(call.func) for _, call in training.sites.calls()}
    models.update(
        ast.unparse(call.func.value)
        for _, call in training.sites.calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_MODELS
    )
    stored = set[int]()
    is_widened = False
    for site, call in training.sites.calls():
        # Alone it is of a module, which it changes; of a tensor it would do nothing.
        if isinstance(call.func, ast.Attribute) and not isinstance(site.statement, ast.Expr):
            is_widened |= call.func.attr == "float"
            if call.func.attr == "half" and _root(call.func.value) not in models:
                stored.add(script.lines.span(call).end - len(".half()"))
    return next((e for e in found if not is_widened or e.start() not in stored), None)


def _gradients(text: str, script: Script, training: TrainingScript) -> re.Match[str] | None:
    """Where a script has to do with gradients that are scaled: not behind what clips them."""
    found = [*_GRADIENTS.finditer(text)]
    if len({script.source(each.optimizer) for each in training.updates}) != 1:
        return found[0] if found else None
    clips = [site for site, call in training.sites.calls() if is_clip(call)] if found else []
    statements = {clip.statement for clip in clips}
    unscaled = {
        script.lines.span(node).end - len(".grad")
        for clip in clips
        for node in _behind(clip, statements, training)
        if isinstance(node, ast.Attribute) and node.attr == "grad"
    }
    return next((each for each in found if each.start() not in unscaled), None)


def _behind(clip: Site, clips: Container[ast.stmt], training: TrainingScript) -> Iterator[ast.AST]:
    """The nodes behind a clip of the gradients of a backward pass, to the next clip."""
    own = [b.site for b in training.backwards if b.site.function is clip.function]
    lines = [site.node.lineno for site in own]
    around = clip.statements[-2] if len(clip.statements) > 1 else clip.function
    if around is None or not any(line < clip.node.lineno for line in lines):
        return
    block = block_with(around, clip.statement) or ()
    for statement in block[block.index(clip.statement) + 1 :] if block else ():
        if any(clip.node.lineno < line <= (statement.end_lineno or 0) for line in lines):
            return
        yield from nodes_below(statement)
        if statement in clips:
            return


def _root(node: ast.expr) -> str:
    """What methods are called of: `x` of `x[0].unsqueeze(0)`."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        inner = node.func if isinstance(node, ast.Call) else node.value
        node = inner.value if isinstance(inner, ast.Attribute) else inner
    return ast.unparse(node)


def _is_without_gradients(function: Function) -> bool:
    """Whether a function runs under `@torch.no_grad()` or the like."""
    return _names_no_gradients(function.decorator_list)


def _names_no_gradients(nodes: Iterable[ast.expr]) -> bool:
    parts = (part for node in nodes for part in nodes_below(node) if isinstance(part, ast.expr))
    return any(last_name(part) in WITHOUT_GRADIENTS for part in parts)


def _calls(body: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    for node in (part for statement in body for part in nodes_below(statement)):
        if isinstance(node, ast.Call):
            yield node


def _require_apart(regions: Sequence[LossRegion]) -> None:
    """See that no statement is in two regions."""
    seen: set[ast.AST] = set()
    for region in regions:
        nodes = {node for statement in region.statements for node in nodes_below(statement)}
        if seen & nodes:
            raise UnclearError(region.statements[0].lineno, "instrument.unclear-loss")
        seen |= nodes


def _unused_strings(tree: ast.Module) -> Iterator[ast.expr]:
    """Strings that stand for comments: statements of their own that document nothing."""
    documents = (ast.Module, ast.ClassDef, Function)
    first = {id(n.body[0]) for n in nodes_below(tree) if isinstance(n, documents) and n.body}
    for node in nodes_below(tree):
        is_string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_string and isinstance(node, ast.Expr) and id(node) not in first:
            yield node.value


def _code_alone(text: str) -> str:
    """A text in which comments, strings and imports are blank: they compute nothing."""
    spans = [*comments_and_strings(text)]
    parts, at = list[str](), 0
    for span in spans:
        parts += (text[at : span.start], _blank(text[slice(*span)]))
        at = span.end
    return _IMPORTS.sub(lambda found: _blank(found[0]), "".join((*parts, text[at:])))


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _line_start(starts: Sequence[int], number: int) -> int | None:
    return starts[number - 1] if number <= len(starts) else None
