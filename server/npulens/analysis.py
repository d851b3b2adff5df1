"""The one door to the engine: a document goes in, findings come out."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from npulens.catalog.model import (
    Applicability,
    Edit,
    Finding,
    Fix,
    LocalizedText,
    MigrationStyle,
    Rule,
    Target,
)
from npulens.catalog.tables import Catalogue
from npulens.checks.context import Context, ModuleFacts
from npulens.checks.registry import checks
from npulens.checks.visitor import visit
from npulens.fixes.imports import TorchImport, import_edit, imports_module, torch_imports
from npulens.syntax.bindings import Bindings, bindings_of, walrus_lines
from npulens.syntax.comments import Suppression, suppressions
from npulens.syntax.parsing import SyntaxProblem
from npulens.syntax.scopes import ModuleScope
from npulens.syntax.statements import ParsedText, parse_statements, parse_whole
from npulens.syntax.values import Defined
from npulens.text.document import Document
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_WORD = re.compile(r"[A-Za-z_]\w*")
_SHIM = re.compile(r"\btransfer_to_npu\b")
_NPU_PROBE = re.compile(r"\bdef \w*npu\w*available")
_DEVICE_USE = re.compile(
    r"(?:\.to\(|\bdevice\s*=\s*|torch\.device\(|map_location\s*=\s*)(?:\w+\.)*(\w+)\s*[,)]"
)


class StatementCache:
    """What the analysis of an earlier version of a text found out, so that only changes cost time.

    One for each open document, for use by one thread at a time; the answer is the same without.
    """

    def __init__(self) -> None:
        self.pieces: dict[str, _Piece] = {}
        self.module: object = None


@dataclass(slots=True)
class _Piece:
    """One top-level statement, or a whole file, with what it says to the others.

    `findings` holds for one state of the module, in offsets from the start of the piece; `None`
    until they are computed.
    """

    parsed: ParsedText
    bindings: Bindings
    torch_imports: list[TorchImport]
    imports_torch_npu: bool
    shimmed: bool
    asks_for_npu: bool
    device_names: frozenset[str]
    methods: frozenset[str]
    findings: list[Finding] | None = None


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
    pieces = _pieces(document.text, cache)
    facts = _facts(pieces, target)
    if cache is not None:
        state = (catalogue, target, facts, _signature(pieces))
        if cache.module != state:
            for piece in pieces:
                piece.findings = None
            cache.module = state
        cache.pieces = {piece.parsed.text: piece for piece in pieces}
    insertion = _module_import(pieces)
    bindings = [piece.bindings for piece in pieces]
    findings: list[Finding] = []
    start = 0
    for index, piece in enumerate(pieces):
        if piece.findings is None:
            piece.findings = _piece_findings(piece, bindings, index, facts, catalogue, target)
        findings += (_bound(finding.shifted(start), insertion) for finding in piece.findings)
        start += len(piece.parsed.text)
    findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return tuple(_without_suppressed(document.text, findings, catalogue))


def _pieces(text: str, cache: StatementCache | None) -> list[_Piece]:
    if cache is None:
        return [_piece(parse_whole(text))]
    known = {piece_text: piece.parsed for piece_text, piece in cache.pieces.items()}
    used: set[str] = set()
    pieces = []
    for parsed in parse_statements(text, known):
        piece = cache.pieces.get(parsed.text)
        if piece is None or piece.parsed is not parsed:
            piece = _piece(parsed)
        elif parsed.text in used:
            piece = replace(
                piece, findings=None
            )  # the same statement twice: each has its own place
        used.add(parsed.text)
        pieces.append(piece)
    return pieces


def _piece(parsed: ParsedText) -> _Piece:
    lines = LineMap(parsed.text)
    bindings = bindings_of(parsed.body, walrus_lines(parsed.text))
    return _Piece(
        parsed,
        bindings,
        torch_imports(parsed.body, lines) if "import" in parsed.text else [],
        imports_module(parsed.body, "torch_npu"),
        _SHIM.search(parsed.text) is not None and "import" in parsed.text,
        _NPU_PROBE.search(parsed.text) is not None,
        frozenset(_DEVICE_USE.findall(parsed.text)),
        frozenset(_own_methods(bindings)),
    )


def _own_methods(bindings: Bindings) -> Iterable[str]:
    for found in bindings.names.values():
        for binding in found:
            if isinstance(binding.value, Defined) and binding.value.is_class:
                yield from (
                    name for name, value in binding.value.members if isinstance(value, Defined)
                )


def _facts(pieces: Sequence[_Piece], target: Target) -> ModuleFacts:
    return ModuleFacts(
        shimmed=target.style is MigrationStyle.RUNTIME_SHIM or any(p.shimmed for p in pieces),
        device_names=frozenset().union(*(p.device_names for p in pieces)),
        own_methods=frozenset().union(*(p.methods for p in pieces)),
        asks_for_npu=any(p.asks_for_npu for p in pieces),
    )


def _signature(pieces: Sequence[_Piece]) -> object:
    """What statements know of each other: the findings of one hold while this stays the same."""
    names: dict[str, list[tuple[object, ...]]] = {}
    stars: list[str] = []
    for index, piece in enumerate(pieces):
        stars += piece.bindings.stars
        for name, found in piece.bindings.names.items():
            names.setdefault(name, []).append((index, *(b.value for b in found)))
    return (
        stars,
        # Where a name is bound only once, the place of the statement does not matter.
        {name: found if len(found) > 1 else found[0][1:] for name, found in names.items()},
    )


def _piece_findings(
    piece: _Piece,
    bindings: Sequence[Bindings],
    index: int,
    facts: ModuleFacts,
    catalogue: Catalogue,
    target: Target,
) -> list[Finding]:
    module = ModuleScope(bindings, index, walrus_lines(piece.parsed.text))
    context = Context(piece.parsed.text, catalogue, target, facts, module)
    aliases = _aliases(bindings, catalogue.triggers)
    body = list(_worth_visiting(piece.parsed.body, context, catalogue.triggers | aliases))
    visit(body, module, checks(bool(module.stars())), context)
    rule = catalogue.rule_named("syntax-error")
    if rule is not None:
        for problem in piece.parsed.problems:
            span = _problem_span(problem, context.lines)
            context.findings.append(Finding(rule, span, {"detail": problem.detail}))
    return context.findings


def _aliases(pieces: Sequence[Bindings], triggers: frozenset[str]) -> set[str]:
    """Names of the module that stand for something a table may know: `c` for `torch.cuda`."""
    return {
        name
        for piece in pieces
        for name, found in piece.names.items()
        if name not in triggers and any(_mentions(b.value, triggers) for b in found)
    }


def _mentions(value: object, triggers: frozenset[str]) -> bool:
    if isinstance(value, str):
        return not triggers.isdisjoint(_WORD.findall(value))
    return isinstance(value, tuple) and any(_mentions(part, triggers) for part in value)


def _worth_visiting(
    body: Iterable[ast.stmt], context: Context, triggers: frozenset[str]
) -> Iterator[ast.stmt]:
    """The statements whose text holds a word that a rule could be about."""
    starts, text = context.lines.starts, context.text
    for node in body:
        decorators = getattr(node, "decorator_list", None)
        first = decorators[0].lineno if decorators else node.lineno
        last = node.end_lineno or node.lineno
        end = starts[last] if last < len(starts) else len(text)
        if not triggers.isdisjoint(_WORD.findall(text, starts[first - 1], end)):
            yield node


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


def _module_import(pieces: Sequence[_Piece]) -> Edit | None:
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


def _without_suppressed(
    text: str, findings: list[Finding], catalogue: Catalogue
) -> Iterable[Finding]:
    comments = list(suppressions(text))
    if not comments:
        return findings
    used: set[tuple[Suppression, str]] = set()
    kept = [f for f in findings if not _is_suppressed(f, text, comments, used, catalogue)]
    rule = catalogue.rule_named("unused-suppression")
    for comment in comments:
        codes = [code for code, _ in comment.codes] or [""]
        unused = [code for code in codes if (comment, code) not in used]
        if unused and rule is not None:
            kept.append(_unused(rule, comment, unused, text))
    return sorted(kept, key=lambda finding: (finding.span, finding.rule.code))


def _is_suppressed(
    finding: Finding,
    text: str,
    comments: Sequence[Suppression],
    used: set[tuple[Suppression, str]],
    catalogue: Catalogue,
) -> bool:
    suppressed = False
    for comment in comments:
        if not comment.whole_file and not _same_line(text, finding.span, comment.span.start):
            continue
        for code in [code for code, _ in comment.codes] or [""]:
            if code in ("", finding.rule.code, finding.rule.name):
                used.add((comment, code))
                suppressed = True
    return suppressed


def _same_line(text: str, span: Span, offset: int) -> bool:
    """Whether an offset is on one of the lines of a span, seen from its first or its last line."""
    if offset >= span.end:
        return "\n" not in text[span.end : offset]
    line_end = text.find("\n", span.start)
    return span.start <= offset and (line_end < 0 or offset <= line_end)


def _unused(rule: Rule, comment: Suppression, unused: Sequence[str], text: str) -> Finding:
    kept = [code for code, _ in comment.codes if code not in unused]
    title = LocalizedText("Remove the unused suppression", "删除未使用的忽略注释")
    if kept:
        opening = text.index("[", comment.span.start)
        edit = Edit(Span(opening, comment.span.end), f"[{', '.join(kept)}]")
    else:
        start = comment.span.start
        while start and text[start - 1] in " \t":
            start -= 1
        edit = Edit(Span(start, comment.span.end), "")
    fix = Fix(title, Applicability.SAFE, (edit,))
    codes = ", ".join(unused) if unused != [""] else "all"
    return Finding(rule, comment.span, {"codes": codes}, fixes=(fix,))
