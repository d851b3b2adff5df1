"""The one door to the engine: a document goes in, findings come out."""

from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.model import Edit, Finding, Fix, Target
from npulens.catalog.tables import Catalogue
from npulens.checks.context import Context, ModuleFacts
from npulens.checks.pieces import Piece, module_facts, module_signature, piece_of, worth_visiting
from npulens.checks.registry import checks
from npulens.checks.suppression import without_suppressed
from npulens.checks.visitor import visit
from npulens.fixes.imports import import_edit
from npulens.syntax.bindings import Bindings, walrus_lines
from npulens.syntax.parsing import SyntaxProblem
from npulens.syntax.scopes import ModuleScope
from npulens.syntax.statements import parse_statements, parse_whole
from npulens.text.document import Document
from npulens.text.lines import LineMap
from npulens.text.spans import Span


class StatementCache:
    """What the analysis of an earlier version of a text found out, so that only changes cost time.

    One for each open document, for use by one thread at a time; the answer is the same without.
    """

    def __init__(self) -> None:
        self.catalogue: Catalogue | None = None
        self.pieces: dict[str, Piece] = {}
        self.module: object = None


def analyze(
    document: Document,
    catalogue: Catalogue,
    target: Target,
    cache: StatementCache | None = None,
) -> tuple[Finding, ...]:
    """All findings of a document, in order of their place, suppressed ones left out.

    A pure function of its first three arguments: it touches no file and never raises for any
    content of the document.
    """
    if cache is None:
        pieces = [piece_of(parse_whole(document.text), catalogue.triggers)]
    else:
        pieces = _reused_pieces(document.text, catalogue, cache)
    facts = module_facts(pieces, target, catalogue.triggers)
    if cache is not None:
        state = (target, facts, module_signature(pieces))
        if cache.module != state:
            for piece in pieces:
                piece.findings = None
            cache.module = state
    insertion = _module_import(pieces)
    bindings = [piece.bindings for piece in pieces]
    findings: list[Finding] = []
    start = 0
    for index, piece in enumerate(pieces):
        if piece.findings is None:
            piece.findings = _findings(piece, bindings, index, facts, catalogue, target)
        findings += (_bound(finding.shifted(start), insertion) for finding in piece.findings)
        start += len(piece.parsed.text)
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return tuple(without_suppressed(document.text, findings, catalogue))


def _reused_pieces(text: str, catalogue: Catalogue, cache: StatementCache) -> list[Piece]:
    if cache.catalogue is not catalogue:
        cache.catalogue, cache.pieces, cache.module = catalogue, {}, None
    known = {piece_text: piece.parsed for piece_text, piece in cache.pieces.items()}
    used: set[str] = set()
    pieces = []
    for parsed in parse_statements(text, known):
        piece = cache.pieces.get(parsed.text)
        if piece is None or piece.parsed is not parsed:
            piece = piece_of(parsed, catalogue.triggers)
        elif parsed.text in used:
            # The same statement twice: names may mean something else at its second place.
            piece = replace(piece, findings=None)
        used.add(parsed.text)
        pieces.append(piece)
    cache.pieces = {piece.parsed.text: piece for piece in pieces}
    return pieces


def _findings(
    piece: Piece,
    bindings: Sequence[Bindings],
    index: int,
    facts: ModuleFacts,
    catalogue: Catalogue,
    target: Target,
) -> list[Finding]:
    module = ModuleScope(bindings, index, walrus_lines(piece.parsed.text))
    context = Context(piece.parsed.text, catalogue, target, facts, module)
    body = list(worth_visiting(piece, facts.aliases, context.lines))
    visit(body, module, checks(bool(module.stars())), context)
    rule = catalogue.rule_named("syntax-error")
    if rule is not None:
        for problem in piece.parsed.problems:
            span = _problem_span(problem, context.lines)
            context.findings.append(Finding(rule, span, {"detail": problem.detail}))
    return context.findings


def _problem_span(problem: SyntaxProblem, lines: LineMap) -> Span:
    def offset(line: int, column: int) -> int:
        line = min(line, len(lines.starts))
        end = lines.starts[line] if line < len(lines.starts) else len(lines.text)
        line_start = lines.starts[line - 1]
        line_end = line_start + len(lines.text[line_start:end].rstrip("\r\n"))
        return min(line_start + column - 1, line_end)

    start = offset(problem.line, problem.column)
    end = max(offset(problem.end_line, problem.end_column), start)
    if end == start:
        end = min(start + 1, len(lines.text))
    return Span(start, end)


def _module_import(pieces: Sequence[Piece]) -> Edit | None:
    """The edit that imports torch_npu at module level, `None` if there is no need or no place."""
    if any(piece.imports_torch_npu for piece in pieces):
        return None
    candidates: list[tuple[bool, Edit]] = []
    start = 0
    for piece in pieces:
        edit = import_edit(piece.torch_imports, "torch_npu", piece.parsed.text)
        if edit is not None:
            plain = any(found.plain for found in piece.torch_imports)
            candidates.append((plain, edit.shifted(start)))
        start += len(piece.parsed.text)
    plain_ones = [edit for plain, edit in candidates if plain]
    return plain_ones[0] if plain_ones else candidates[0][1] if candidates else None


def _bound(finding: Finding, insertion: Edit | None) -> Finding:
    """The finding with the edits its fixes need elsewhere in the document."""
    if not any(fix.imports for fix in finding.fixes):
        return finding
    return replace(finding, fixes=tuple(_with_import(fix, insertion) for fix in finding.fixes))


def _with_import(fix: Fix, insertion: Edit | None) -> Fix:
    if not fix.imports:
        return fix
    return replace(fix, edits=(*fix.edits, *((insertion,) if insertion else ())), imports="")
