"""What the analysis thread runs: from a text in an editor to the diagnostics it shows."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from lsprotocol import types

from npulens.analysis import NO_SHAPES, ShapeReport, StatementCache, judge, shapes_of_names
from npulens.catalog.messages import message
from npulens.catalog.model import Finding
from npulens.checks.syntax_findings import unread_finding
from npulens.lsp.session.convert import ClientTerms, to_diagnostic
from npulens.lsp.session.slots import IsSuperseded
from npulens.lsp.session.views import View
from npulens.verdicts.ledger import Judgement
from npulens.workspace.project.file_context import FileContext
from npulens.workspace.settings.selection import chosen

logger = logging.getLogger(__name__)
ShapesShown = tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, int], ...]]
"""What hints and code lenses are made of."""


@dataclass(eq=False)
class OpenDocument:
    """A file or notebook that the client has open. All but `statements` belongs to the event loop.

    Attributes:
        uri: Its name in the protocol.
        path: The file behind it, or `None` for an unsaved one.
        file_context: What counts for it; `None` until that was looked up.
        mentions_shim: Whether the text named the shim when it was last opened or saved.
        is_code_saved: It was saved, and may have changed what is known of its project.
        shapes_shown: What an editor shows of shapes, if it requested that; `None` before the first
            analysis.
        statements: What its last analysis found. Belongs to the analysis thread.
    """

    uri: str
    path: Path | None
    view: View
    file_context: FileContext | None = None
    mentions_shim: bool = False
    is_code_saved: bool = False
    shapes_shown: ShapesShown | None = None
    statements: StatementCache = field(default_factory=StatementCache)


@dataclass(frozen=True, slots=True)
class Task:
    """One text of an open document, to be analysed."""

    opened: OpenDocument
    view: View
    file_context: FileContext
    terms: ClientTerms


_serials = count(1)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one text of an open document is found to hold.

    Attributes:
        file_context: What counted for it.
        terms: The terms of the client, in the language of the project.
        findings: In the order of their places.
        settled: Where nothing is to be done, each with its settlement, in that order, too.
        diagnostics: One for each finding.
        shapes: The hotspots and symbolic shapes.
        shapes_shown: What an editor shows of these, apart from where.
        is_whole: The shapes of all names are among them.
        serial: Its number, which no other analysis has.
    """

    view: View
    file_context: FileContext
    terms: ClientTerms
    findings: Sequence[Finding]
    settled: Sequence[Finding]
    diagnostics: Sequence[types.Diagnostic]
    shapes: ShapeReport
    shapes_shown: ShapesShown
    is_whole: bool = False
    serial: int = field(default_factory=lambda: next(_serials))

    def of_part(self, uri: str) -> list[types.Diagnostic]:
        """The diagnostics of one part."""
        if len(self.view.parts) == 1:
            return [*self.diagnostics]
        return [
            diagnostic
            for finding, diagnostic in zip(self.findings, self.diagnostics, strict=True)
            if self.view.part_of(finding.span.start).uri == uri
        ]


class Analyser:
    """Analyses texts.

    What was found in each statement is remembered for the documents that were analysed last; for
    others it takes much memory, and to find it anew, when somebody types there, takes one analysis.
    """

    def __init__(self) -> None:
        self._recent: dict[OpenDocument, None] = {}

    def run(self, task: Task, is_superseded: IsSuperseded) -> Analysis | None:
        """The analysis of a task, or `None` if it was superseded on the way."""
        self._recent.pop(task.opened, None)
        self._recent[task.opened] = None
        if len(self._recent) > _REMEMBERED:
            oldest = next(iter(self._recent))
            del self._recent[oldest]
            oldest.statements = StatementCache()
        try:
            return _analysis(task, is_superseded)
        except Exception:
            logger.exception("The analysis of %s failed.", task.opened.uri)
            task.opened.statements = StatementCache()
            return _failure(task)

    def complete(
        self, task: Task, analysis: Analysis, is_superseded: IsSuperseded
    ) -> Analysis | None:
        """An analysis with the shapes of all names, as long as its text is the last one."""

        def check_cancelled() -> None:
            if is_superseded():
                raise _SupersededError

        try:
            # Of a document that many others came after, nothing is remembered any more.
            if task.opened not in self._recent and self.run(task, is_superseded) is None:
                return None
            shapes = shapes_of_names(task.opened.statements, check_cancelled)
            return replace(analysis, shapes=shapes, is_whole=True)
        except _SupersededError:
            return None
        except Exception:
            logger.exception("The shapes of %s could not be named.", task.opened.uri)
            task.opened.statements = StatementCache()
            return analysis


_REMEMBERED = 20


class _SupersededError(Exception):
    """Nobody waits for the analysis any more."""


def _analysis(task: Task, is_superseded: IsSuperseded) -> Analysis | None:
    file_context, view = task.file_context, task.view
    statements = task.opened.statements

    def check_cancelled() -> None:
        if is_superseded():
            raise _SupersededError

    try:
        judged = judge(
            view.document, file_context.catalogue, file_context.target, statements, check_cancelled
        )
        check_cancelled()
    except _SupersededError:
        return None
    return _analysis_of(task, judged, statements.shapes)


def _failure(task: Task) -> Analysis:
    """What is shown where analysing failed: that it did, and nothing of an earlier text."""
    failed = Judgement([unread_finding(message("editor.failed"), task.file_context.catalogue)])
    return _analysis_of(task, failed, NO_SHAPES)


def _analysis_of(task: Task, judged: Judgement, shapes: ShapeReport) -> Analysis:
    view, file_context = task.view, task.file_context
    kept = chosen(judged, file_context.configuration, view.document.path)
    terms = task.terms.in_project(file_context.configuration.language)
    diagnostics = [to_diagnostic(finding, view, terms) for finding in kept.findings]
    return Analysis(view, file_context, terms, *kept, diagnostics, shapes, _shown(shapes))


def _shown(shapes: ShapeReport) -> ShapesShown:
    hints = tuple((hint.shape, hint.is_dynamic) for hint in shapes.hints)
    return hints, tuple((each.hotspot.function, each.score) for each in shapes.ranked)
