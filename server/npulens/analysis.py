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
from npulens.fixes.imports import import_edit, leading_imports_end
from npulens.syntax.bindings import Bindings, walrus_lines
from npulens.syntax.parsing import SyntaxProblem
from npulens.syntax.scopes import ModuleScope
from npulens.syntax.statements import parse_statements, parse_whole
from npulens.syntax.versions import newer_syntax
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
        findings += (_bound(f.shifted(start), insertion, pieces) for f in piece.findings)
        start += len(piece.parsed.text)
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return tuple(without_suppressed(document.text, _told_once(findings), catalogue))


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
    for problem in piece.parsed.problems:
        context.findings.append(_syntax_finding(problem, context.lines, catalogue))
    return context.findings


def _syntax_finding(problem: SyntaxProblem, lines: LineMap, catalogue: Catalogue) -> Finding:
    span = _problem_span(problem, lines)
    start = lines.starts[min(problem.line, len(lines.starts)) - 1]
    version = newer_syntax(lines.text[start:].split("\n", 1)[0])
    if version is None:
        return Finding(catalogue.rules["NPU001"], span, {"detail": problem.detail})
    detail = f"Python {version[0]}.{version[1]}"
    return Finding(catalogue.rules["NPU004"], span, {"detail": detail})


def _told_once(findings: Sequence[Finding]) -> list[Finding]:
    """Newer syntax is reported at its first place only."""
    told: set[str] = set()
    kept: list[Finding] = []
    for finding in findings:
        if finding.rule.code == "NPU004":
            if finding.arguments["detail"] in told:
                continue
            told.add(finding.arguments["detail"])
        kept.append(finding)
    return kept


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


def _import_at_top(pieces: Sequence[Piece]) -> Edit:
    """Import torch_npu behind the docstring and imports that a module starts with."""
    place = start = 0
    for piece in pieces:
        end, is_all = leading_imports_end(piece.parsed.body, LineMap(piece.parsed.text))
        place = start + end if end else place
        start += len(piece.parsed.text)
        if not is_all:
            break
    return Edit(Span(place, place), "import torch_npu\n")


def _bound(finding: Finding, insertion: Edit | None, pieces: Sequence[Piece]) -> Finding:
    """The finding with the edits its fixes need elsewhere in the document."""
    if not any(fix.imports for fix in finding.fixes):
        return finding
    fixes = tuple(_with_import(fix, insertion, pieces) for fix in finding.fixes)
    return replace(finding, fixes=fixes)


def _with_import(fix: Fix, insertion: Edit | None, pieces: Sequence[Piece]) -> Fix:
    if not fix.imports:
        return fix
    if insertion is None and fix.names_import and not any(p.imports_torch_npu for p in pieces):
        insertion = _import_at_top(pieces)
    return replace(fix, edits=(*fix.edits, *((insertion,) if insertion else ())), imports="")
