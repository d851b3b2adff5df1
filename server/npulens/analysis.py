"""The one door to the engine: a document goes in, findings come out."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from npulens.catalog.model import Finding, MigrationStyle, Severity, Shim, Target
from npulens.catalog.project_model import Keeper, ProjectFacts, ReturnedShape
from npulens.catalog.rule_properties import Once
from npulens.catalog.tables import Catalogue
from npulens.checks.context import Context
from npulens.checks.insertions import Insertions, bound, with_line_endings
from npulens.checks.intent.extension_builds import with_builds_together
from npulens.checks.intent.extension_uses import (
    with_builds_beside,
    with_uses_together,
    without_exempt_extensions,
)
from npulens.checks.intent.file_purpose import filtered_by_file_role, without_counterpart
from npulens.checks.intent.kernel_arms import without_kernel_arms
from npulens.checks.intent.kernel_inputs import with_careful_moves
from npulens.checks.intent.library_hints import report_libraries
from npulens.checks.intent.needless_imports import with_needless_imports
from npulens.checks.intent.optional_imports import without_handled_imports
from npulens.checks.intent.own_devices import outside_of_own_devices
from npulens.checks.intent.refused_libraries import open_refused
from npulens.checks.intent.scripted_functions import without_plain_scripts
from npulens.checks.intent.told_elsewhere import with_true_places
from npulens.checks.intent.type_only_imports import without_types_only
from npulens.checks.intent.unused_code import with_unused_code, without_unused_advice
from npulens.checks.module_wide.module_wide_findings import module_wide_findings
from npulens.checks.one_code import with_one_code
from npulens.checks.optional_code import OptionalCode
from npulens.checks.other_files.cpp_bindings import cpp_binding_findings, cuda_source
from npulens.checks.other_files.launch_files import comments_of, is_run_by_service, launch_findings
from npulens.checks.python.devices.checkpoints import with_loaded_models
from npulens.checks.python.devices.result_members import with_result_members
from npulens.checks.python.devices.shim_imports import missing_shim
from npulens.checks.python.libraries.library_uses import deduplicated
from npulens.checks.python.parallelism.data_parallel import with_whole_module
from npulens.checks.python.registry import checks
from npulens.checks.relevance_filter import RelevanceFilter
from npulens.checks.segment_lookups import SegmentLookups
from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.changes import Signature, module_signature, words_affected
from npulens.checks.segments.following import follow_comment
from npulens.checks.segments.module_facts import ModuleFacts
from npulens.checks.segments.segment import Segment, never_cancel, segment_of, with_starts
from npulens.checks.segments.shape_answers import FunctionShapes, Hint
from npulens.checks.suppression import without_suppressed
from npulens.checks.syntax_findings import syntax_finding
from npulens.checks.visitor import visit
from npulens.checks.whole_module import WholeModule
from npulens.fixes.cell_edits import within_cells
from npulens.fixes.edit_guard import EditGuard, all_expecting
from npulens.fused.idioms import Idioms
from npulens.shapes.evaluation.kept_values import keepers_in
from npulens.shapes.ranking.findings import findings_of as shape_findings
from npulens.shapes.ranking.hotspots import Hotspots, Ranked
from npulens.syntax.bindings import walrus_lines
from npulens.syntax.cells import python_of_notebook, shell_of_notebook
from npulens.syntax.parsing import SyntaxProblem
from npulens.syntax.scopes import ModuleScope
from npulens.syntax.statements import parse_statements, parse_text
from npulens.syntax.strings import comments
from npulens.text.document import Document
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.verdicts.file_role import FileRole, file_role
from npulens.verdicts.ledger import Judgement, Ledger
from npulens.verdicts.npu_words import SegmentText
from npulens.verdicts.overruling import BY_COMMENT, overruled
from npulens.verdicts.regions import Regions


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """What is known of the shapes of a module.

    Attributes:
        ranked: Where they depend on data and where the host waits, the worst first.
        hints: The symbolic shapes of names, and what functions hold, in order of place.
        reads: The shapes of names where they are read, of `shapes_of_names` alone.
        functions: What functions take and give, likewise.
    """

    ranked: Sequence[Ranked]
    hints: Sequence[Hint]
    reads: Sequence[Hint] = ()
    functions: Sequence[FunctionShapes] = ()


NO_SHAPES = ShapeReport((), ())
_NO_TARGET = Target()


class StatementCache:
    """What the analysis of an earlier version of a text found out, so that only changes cost time.

    One for each open document, for use by one thread at a time; the answer is the same without.
    `shapes` is what the last call of `analyze` has come to know of shapes, and `module` what it
    has analysed, for `shapes_of_names`.
    """

    def __init__(self) -> None:
        self.module: AnalysedModule | None = None
        self.catalogue: Catalogue | None = None
        self.triggers: frozenset[str] = frozenset()
        self.segments: dict[str, Segment] = {}
        self.state: ModuleState | None = None
        self.signature = Signature((), {})
        self.shapes = NO_SHAPES

    def forget(
        self, segments: Sequence[Segment], state: "ModuleState", signature: Signature
    ) -> None:
        """Forget what was found in segments that a change of other segments may concern."""
        before, self.state = self.state, state
        affected = None
        if before is not None and before[:2] == state[:2]:
            parts = {name for name, _ in before.traits ^ state.traits}
            affected = words_affected(self.signature, signature, parts, segments)
        self.signature = signature
        for segment in segments:
            if affected is None or not affected.isdisjoint(segment.words.identifiers):
                segment.findings = None
                segment.fused.forget()
                segment.shapes.forget()
            elif before is not None and before.sources != state.sources:
                segment.shapes.forget()


class ModuleState(NamedTuple):
    """What the findings of all segments depend on, besides the names of the module.

    Attributes:
        target: What is analysed for.
        facts: What the segments have to know of each other.
        traits: Functions and classes that hold a part of some computation, with what says that.
        sources: What matches calls of functions that hold a source of dynamic shapes.
    """

    target: Target
    facts: ModuleFacts
    traits: frozenset[tuple[str, frozenset[str]]]
    sources: str


def analyze(
    document: Document,
    catalogue: Catalogue,
    target: Target,
    cache: StatementCache | None = None,
    check_cancelled: Callable[[], None] = never_cancel,
) -> tuple[Finding, ...]:
    """All findings of a document, in order of their place, settled and suppressed ones left out.

    A pure function of its first three arguments: it touches no file and never raises for any
    content of the document. `check_cancelled` is called on the way; what it raises ends the
    analysis, and the cache can be used for the next one.
    """
    return tuple(judge(document, catalogue, target, cache, check_cancelled).findings)


def judge(
    document: Document,
    catalogue: Catalogue,
    target: Target,
    cache: StatementCache | None = None,
    check_cancelled: Callable[[], None] = never_cancel,
) -> Judgement:
    """What `analyze` finds, and beside it what is settled with the reasons."""
    find_comments: Callable[[str], Iterable[Span]]
    if document.kind is Kind.NATIVE:
        given = document.text, catalogue, document.path, target
        bound = Judgement(tuple(cpp_binding_findings(*given)), tuple(cuda_source(*given)))
        return overruled(bound, document, target.reasons)
    if document.kind is Kind.PYTHON:
        judged = _python_findings(document, catalogue, target, cache, check_cancelled)
        find_comments = comments
    elif document.kind is Kind.NOTEBOOK:
        text = python_of_notebook(document.text)
        python = replace(document, text=text, language=Kind.PYTHON)
        judged = _python_findings(python, catalogue, target, cache, check_cancelled)
        commands = Ledger(_command_findings(document, catalogue, target))
        together = [*judged.findings, *commands.open]
        together.sort(key=lambda finding: (finding.span, finding.rule.code))
        settled = (*judged.settled, *commands.settled)
        judged = Judgement(tuple(within_cells(together, document)), settled)
        find_comments = _comments_of_notebook
    else:
        judged = _launch_findings(document, catalogue, target)
        find_comments = comments_of(document.kind)
    judged = overruled(judged, document, target.reasons)
    ledger = Ledger((*judged.findings, *judged.settled))
    wanted = without_suppressed(document, judged.findings, catalogue, find_comments)
    ledger.settle(wanted, BY_COMMENT)
    by_comment = [reason for reason in target.reasons if reason.name == BY_COMMENT]
    judged = Judgement(tuple(ledger.open), tuple(ledger.in_order()))
    return overruled(judged, document, by_comment)


def _python_findings(
    document: Document,
    catalogue: Catalogue,
    target: Target,
    cache: StatementCache | None,
    check_cancelled: Callable[[], None],
) -> Judgement:
    own = target.project.words
    triggers = catalogue.triggers | own if own else catalogue.triggers
    segments = None if cache is None else _reused_pieces(document.text, catalogue, triggers, cache)
    if segments is None or any(segment.signs.considers_npu for segment in segments):
        # Statements that decide about the NPU are read together with those beside them.
        segments = [segment_of(parse_text(document.text), triggers)]
    analysed = AnalysedModule(segments, document.path, catalogue, target, triggers)
    idioms = Idioms(analysed, is_kept=cache is not None, check_cancelled=check_cancelled)
    hotspots = Hotspots(
        analysed,
        reported_only=cache is None,
        check_cancelled=check_cancelled,
    )
    if cache is not None:
        state = ModuleState(target, analysed.facts, idioms.traits, hotspots.helpers)
        cache.forget(segments, state, module_signature(segments))
        cache.module = None
    insertions = Insertions(segments, document.text, target)
    idioms.find()
    hotspots.find()
    findings: list[Finding] = []
    for index, (start, segment) in enumerate(with_starts(segments)):
        if segment.findings is None:
            found_here = _findings(analysed, index)
            segment.findings = all_expecting(found_here, segment.parsed.text)
        found = (*segment.findings, *idioms.findings(segment))
        findings += (bound(f.shifted(start), insertions) for f in found)
    ranked = hotspots.ranked()
    if cache is not None:
        cache.shapes = ShapeReport(ranked, hotspots.hints())
        cache.module = analysed
    findings += shape_findings(ranked, catalogue)
    module = WholeModule(document.text, document.path, [segment.parsed for segment in segments])
    findings += module_wide_findings(module, analysed.facts.signs, catalogue)
    ledger = Ledger(findings)
    ledger.settle(without_types_only(ledger.open, module), "type-only")
    ledger.settle(outside_of_own_devices(ledger.open, module), "library-devices")
    ledger.settle(with_whole_module(ledger.open, module, analysed.known), "type-only")
    ledger.settle(with_result_members(ledger.open, module, catalogue), "reported-once")
    ledger.settle(without_counterpart(ledger.open, document.path, target.project), "counterpart")
    ledger.settle(
        filtered_by_file_role(ledger.open, document.path, target.project, document.text),
        "file-role",
    )
    ledger.settle(without_handled_imports(ledger.open, module, target.project), "fallback")
    ledger.settle(without_exempt_extensions(ledger.open, module, target.project), "fallback")
    ledger.settle(without_kernel_arms(ledger.open, module), "fallback")
    together = with_uses_together(with_builds_together(ledger.open, module), module)
    ledger.replace_open(with_careful_moves(together, module))
    ledger.settle(without_plain_scripts(ledger.open, module), "no-effect")
    advised = without_unused_advice(ledger.open, document.text, document.path, target.project)
    ledger.settle(advised, "unreachable")
    # Where it is configured that fallbacks are findings, these take the place of hints.
    is_overruled = any(reason.name == "fallback" for reason in target.reasons)
    report_libraries(ledger, module, target.project, None if is_overruled else catalogue)
    if not is_overruled:
        open_refused(ledger, module)
    findings = with_loaded_models(with_needless_imports(ledger.open, module), module)
    findings = with_unused_code(findings, document.text, document.path, target.project)
    if target.style is MigrationStyle.DEVICE_AGNOSTIC:
        findings = with_one_code(findings, module, target.torch_version)
    if target.shim is Shim.MISSING and not any(
        segment.imports.shim.shimmed for segment in segments
    ):
        findings += missing_shim(module, catalogue)
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    ledger.open = findings
    ledger.settle(_deduplicated(findings), "reported-once")
    reported = _without_reported_shapes(ledger.open, document.text)
    guard = EditGuard(document.text, triggers)
    reported = guard.guarded(all_expecting(reported, document.text))
    settled = with_true_places(ledger.settled, reported, module)
    settled = with_builds_beside(settled, reported, module)
    return Judgement(with_line_endings(reported, document.text), settled)


def _command_findings(
    document: Document, catalogue: Catalogue, target: Target
) -> Iterator[Finding]:
    """The findings of the commands among the Python of a notebook, settled ones too."""
    for start, end in shell_of_notebook(document.text):
        command = replace(document, text=document.text[start:end], language=Kind.SHELL)
        judged = _launch_findings(command, catalogue, target)
        for finding in (*judged.findings, *judged.settled):
            yield finding.shifted(start)


def _comments_of_notebook(text: str) -> Iterator[Span]:
    yield from comments(python_of_notebook(text))
    for start, end in shell_of_notebook(text):
        for comment in comments_of(Kind.SHELL)(text[start:end]):
            yield Span(start + comment.start, start + comment.end)


def shapes_of_names(
    cache: StatementCache, check_cancelled: Callable[[], None] = never_cancel
) -> ShapeReport:
    """What the text that was analysed last shows of shapes, also where none depends on data.

    Args:
        cache: That of the analysis.
        check_cancelled: Called on the way; what it raises ends the search.
    """
    if cache.module is None:
        return cache.shapes
    hotspots = Hotspots(cache.module, check_cancelled=check_cancelled)
    try:
        named = hotspots.named()
    except RecursionError:
        return cache.shapes
    hints = {hint.span: hint for hint in (*named.hints, *cache.shapes.hints)}
    return replace(
        cache.shapes,
        hints=sorted(hints.values()),
        reads=named.reads,
        functions=named.functions,
    )


def analyze_shapes(
    document: Document, catalogue: Catalogue, target: Target = _NO_TARGET
) -> ShapeReport:
    """The shapes of a document, reported or not; it reads no file and never raises."""
    if document.kind is Kind.NOTEBOOK:
        text = python_of_notebook(document.text)
        document = replace(document, text=text, language=Kind.PYTHON)
    if document.kind is not Kind.PYTHON:
        return NO_SHAPES
    hotspots = _hotspots(document, catalogue, target, every_function=True)
    hotspots.find()
    return ShapeReport(hotspots.ranked(), hotspots.hints())


def analyze_returned_shapes(
    document: Document, catalogue: Catalogue, project: ProjectFacts, functions: Container[str]
) -> Mapping[str, ReturnedShape]:
    """What functions of a module return whose result has a shape that depends on data.

    Args:
        document: The module.
        catalogue: The rules.
        project: What is known of other modules.
        functions: The names of the requested functions.
    """
    if document.kind is not Kind.PYTHON or FileRole.HOST in file_role(
        project.place_of(document.path)
    ):
        return {}
    return _hotspots(document, catalogue, Target(project=project)).returned(functions)


def analyze_kept_arguments(text: str) -> list[Keeper]:
    """What the classes of a text keep of what their methods are given."""
    return list(keepers_in(text))


def _hotspots(
    document: Document, catalogue: Catalogue, target: Target, *, every_function: bool = False
) -> Hotspots:
    segments = [segment_of(parse_text(document.text), catalogue.triggers)]
    module = AnalysedModule(segments, document.path, catalogue, target, catalogue.triggers)
    return Hotspots(module, every_function=every_function)


def _launch_findings(document: Document, catalogue: Catalogue, target: Target) -> Judgement:
    """The findings of a script, a Dockerfile or settings, and of files inside them."""
    place = target.project.place_of(document.path)
    report = launch_findings(document, catalogue, place, target)
    ledger = Ledger(report.findings)
    ledger.settle(without_counterpart(ledger.open, document.path, target.project), "counterpart")
    ledger.settle(
        filtered_by_file_role(ledger.open, document.path, target.project, document.text),
        "file-role",
    )
    findings = ledger.open
    inside = replace(target, reasons=())  # the whole document has them applied, with its lines
    for each in report.inner_files:
        inner = judge(Document(each.name, each.text(document.text)), catalogue, inside)
        # What a shell puts in is not known here, so that it may not be Python yet.
        found = [f.shifted(each.span.start) for f in inner.findings if f.rule.family != "engine"]
        # A fix might end the quotes or the line.
        findings += (replace(f, fixes=()) if each.quote else f for f in found)
        ledger.settled += (finding.shifted(each.span.start) for finding in inner.settled)
    if is_run_by_service(place):
        findings = [finding.at_most(Severity.INFO) for finding in findings]
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return Judgement(findings, ledger.settled)


def _reused_pieces(
    text: str, catalogue: Catalogue, triggers: frozenset[str], cache: StatementCache
) -> list[Segment]:
    if cache.catalogue is not catalogue or cache.triggers != triggers:
        cache.catalogue, cache.triggers, cache.segments, cache.state = catalogue, triggers, {}, None
    known = {piece_text: segment.parsed for piece_text, segment in cache.segments.items()}
    segments, new = [], []
    for parsed in parse_statements(text, known):
        segment = cache.segments.get(parsed.text)
        if segment is None or segment.parsed is not parsed:
            segment = segment_of(parsed, triggers)
            new.append(segment)
        segments.append(segment)
    gone = cache.segments.keys() - {segment.parsed.text for segment in segments}
    if len(new) == len(gone) == 1:
        segment, before = new[0], cache.segments[gone.pop()]
        segment.fused.take_over(before.fused)
        segment.shapes.take_over(before.shapes)
        if segment.parsed.body == before.parsed.body:  # the same nodes, so a comment was edited
            follow_comment(segment, before, [each for each in segments if each is not segment])
    # A statement that occurs twice may mean something else at its second place.
    times = Counter(segment.parsed.text for segment in segments)
    cache.segments = {p.parsed.text: p for p in segments if times[p.parsed.text] == 1}
    return segments


def _findings(analysed: AnalysedModule, index: int) -> list[Finding]:
    """The findings of the checks in one segment."""
    segment, facts, catalogue = analysed.segments[index], analysed.facts, analysed.catalogue
    module = ModuleScope(analysed.names, index, walrus_lines(segment.parsed.text))
    lines = segment.parsed.lines
    identifiers, stars = segment.words.identifiers, bool(module.stars())
    words = segment.triggers, facts.aliases, catalogue.parts, catalogue.computing
    relevance = RelevanceFilter(lines, identifiers, *words, stars)
    code = SegmentText(lines, segment.npu_words)
    lookups = SegmentLookups(code, identifiers, module)
    regions = Regions(code, analysed.known)
    optional = OptionalCode(analysed.known_without_libraries)
    given = catalogue, analysed.target, facts, module
    context = Context(*given, code, relevance, lookups, regions, optional)
    settled = dict(regions.statements(segment.parsed.body, module))
    body = [(node, settled[node]) for node in relevance.among(segment.parsed.body)]
    try:
        visit(body, module, checks(stars, facts.signs.names_gpus), context)
    except RecursionError:
        deep = SyntaxProblem(1, 1, 1, 1, "nested too deeply to be analysed")
        context.reported.findings.append(syntax_finding(deep, lines, catalogue))
    for problem in segment.parsed.problems:
        context.reported.findings.append(syntax_finding(problem, lines, catalogue))
    return context.reported.findings


_MINOR = (Severity.INFO, Severity.HINT)


def _deduplicated(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what need not be said twice, each kept at its first place.

    Newer syntax, missing mixed precision, advice on speed, cuDNN's tuning by trial, and whatever
    there is to say in passing of one of PyTorch's own APIs.
    """
    reported: set[str] = set()
    kept: list[Finding] = []
    for finding in findings:
        rule = finding.rule
        is_minor_api = rule.family == "api" and finding.effective_severity in _MINOR
        is_tuning = finding.arguments.get("symbol") == "torch.backends.cudnn.benchmark"
        if rule.once is Once.FILE or is_minor_api or is_tuning:
            detail = finding.arguments.get("detail", rule.code)
            if is_minor_api:
                detail += finding.arguments.get("symbol", "")
            if detail in reported:
                continue
            reported.add(detail)
        kept.append(finding)
    return deduplicated(kept)


def _without_reported_shapes(findings: Sequence[Finding], text: str) -> list[Finding]:
    """Leave out dynamic shapes where another rule reports the place; they stay in the ranked list.

    The place is reported if a finding starts there too, or is on the name that is called.
    """
    others = [finding.span for finding in findings if finding.rule.family != "dynamic"]
    starts, ends = {span.start for span in others}, {span.end for span in others}
    return [
        finding
        for finding in findings
        if finding.rule.family != "dynamic"
        or not (finding.span.start in starts or _callee_end(finding.span, text) in ends)
    ]


def _callee_end(span: Span, text: str) -> int:
    """Where in a call the name that is called ends; -1 of what is no call."""
    depth, end = 0, span.end
    if text[end - 1 : end] != ")":
        return -1
    while end > span.start:
        end = max(text.rfind(bracket, span.start, end) for bracket in "()")
        depth += 1 if text[end] == ")" else -1
        if depth == 0:
            return end
    return -1
