"""What the last verified run saw, as diagnostics of the texts that were run."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from npulens.catalog.model import Language, LocalizedText
from npulens.lsp import wording as say
from npulens.lsp.convert import ClientTerms
from npulens.lsp.views import Part, View
from npulens.text.document import Document
from npulens.text.notebooks import cell_sources
from npulens.workspace.verifying.npu_apis import FAILS
from npulens.workspace.verifying.outcomes import LEFT_TO_DO, Site
from npulens.workspace.verifying.verdicts import PROBES
from npulens.workspace.verifying.verification import Verification
from npulens.workspace.verifying.wording import KINDS, verdict_sentence

SOURCE = "npulens (run)"
"""Tells these diagnostics from those of the analysis."""

_ERROR = types.DiagnosticSeverity.Error
_WARNING = types.DiagnosticSeverity.Warning
_INFORMATION = types.DiagnosticSeverity.Information
_HINT = types.DiagnosticSeverity.Hint


def is_text_of(document: Document, view: View) -> bool:
    """Whether an editor shows what a file holds, or the cells of it."""
    shown = [part.document.text for part in view.parts]
    if not document.cell_marks:
        return shown == [document.text]
    cells = cell_sources(document.text)  # each ends with a line feed, which editors leave out
    return [text.removesuffix("\n") for text in shown] == [cell[:-1] for cell in cells]


@dataclass(frozen=True, slots=True)
class _Note:
    """One diagnostic in the making: a line, and what to say of it."""

    line: int
    cell: int | None
    severity: types.DiagnosticSeverity
    code: str
    message: LocalizedText


class RunDiagnostics:
    """The diagnostics of the last run.

    They belong to the texts that were run: another text of the same file has none.
    """

    def __init__(self) -> None:
        """There was no run yet."""
        self._documents: Mapping[str, Document] = {}
        self._notes: dict[str, list[_Note]] = {}

    def take(self, folder: Path, found: Verification) -> int:
        """Forget the run before; how many diagnostics there are now.

        Args:
            folder: The folder of the project that was run, without links.
            found: What came of it.
        """
        self._documents = {str(folder / path): each for path, each in found.documents.items()}
        self._notes = {}
        for path, note in _notes(found):
            self._notes.setdefault(str(folder / path), []).append(note)
        return sum(map(len, self._notes.values()))

    def clear(self) -> None:
        """Forget the run."""
        self._documents = {}
        self._notes = {}

    def of_part(
        self, path: Path | None, view: View, uri: str, terms: ClientTerms
    ) -> list[types.Diagnostic]:
        """The diagnostics of one part of a file as an editor shows it."""
        if path is None or not self._notes:
            return []
        name = os.path.realpath(path)
        document = self._documents.get(name)
        part = view.part_named(uri)
        if document is None or part is None or not is_text_of(document, view):
            return []
        numbers = [mark.number for mark in document.cell_marks]
        cell = numbers[view.parts.index(part)] if numbers else None
        notes = [note for note in self._notes.get(name, ()) if note.cell == cell]
        return [_diagnostic(note, part, terms) for note in notes]


def _diagnostic(note: _Note, part: Part, terms: ClientTerms) -> types.Diagnostic:
    document = part.document
    start = end = document.line_starts[-1]
    if note.line <= document.line_count:
        text = document.line_text(note.line - 1)
        start = document.line_starts[note.line - 1] + len(text) - len(text.lstrip())
        end = document.line_starts[note.line - 1] + len(text.rstrip())
    ends = (document.position_at(offset, terms.encoding) for offset in (start, max(start, end)))
    return types.Diagnostic(
        range=types.Range(*(types.Position(*place) for place in ends)),
        severity=note.severity,
        code=note.code,
        source=SOURCE,
        message=note.message.in_language(terms.language),
    )


def _notes(found: Verification) -> Iterator[tuple[str, _Note]]:
    """What there is to say of each line, with the path of its file."""
    verdict = found.verdict
    told = [(site.path, site.line, site.name) for site in (*found.cuda_calls, *found.apis)]
    is_told = (verdict.path, verdict.line, verdict.detail) in told
    if verdict.path is not None and verdict.line is not None and not is_told:
        severity = _ERROR if verdict.outcome in LEFT_TO_DO else _WARNING
        sentences = [
            verdict_sentence(verdict, found.steps, language, placed=False)
            for language in _LANGUAGES
        ]
        message = LocalizedText(*sentences)
        yield (
            verdict.path,
            _Note(verdict.line, verdict.cell, severity, verdict.outcome.value, message),
        )
    for site in found.cuda_calls:
        is_probe = site.name in PROBES
        template = say.RUN_PROBE if is_probe else say.RUN_CUDA_CALL
        yield site.path, _note(site, _HINT if is_probe else _ERROR, "cuda-call", template)
    for site in found.apis:
        severity = _ERROR if site.kind == FAILS else _INFORMATION
        yield site.path, _note(site, severity, "api", say.RUN_API)
    for site in found.events:
        template = say.RUN_WAIT if site.kind == "wait" else say.RUN_SHAPE
        yield site.path, _note(site, _INFORMATION, site.kind, template)


_LANGUAGES: tuple[Language, Language] = ("en", "zh")


def _note(
    site: Site, severity: types.DiagnosticSeverity, code: str, template: LocalizedText
) -> _Note:
    sentences = (
        template.in_language(language).format(
            name=site.name, count=site.count, kind=KINDS[site.kind].in_language(language)
        )
        for language in _LANGUAGES
    )
    return _Note(site.line, site.cell, severity, code, LocalizedText(*sentences))
