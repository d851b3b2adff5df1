"""What a verified run saw, put as notes to its lines."""

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from npulens.catalog.model import Language, LocalizedText
from npulens.lsp.session import editor_wording as say
from npulens.lsp.session.run_diagnostics import RunNote
from npulens.workspace.verifying.npu_apis import FAILS
from npulens.workspace.verifying.outcomes import LEFT_TO_DO, LIMITED, Outcome, Site
from npulens.workspace.verifying.run_verdicts import PROBES
from npulens.workspace.verifying.run_wording import KINDS, verdict_sentence
from npulens.workspace.verifying.verification import Verification

_ERROR = types.DiagnosticSeverity.Error
_WARNING = types.DiagnosticSeverity.Warning
_INFORMATION = types.DiagnosticSeverity.Information
_HINT = types.DiagnosticSeverity.Hint


def run_notes(folder: Path, found: Verification) -> Iterator[RunNote]:
    """What there is to say of each line.

    Args:
        folder: The folder of the project that was run, without links.
        found: What came of it.
    """
    verdict = found.verdict
    told = [(site.path, site.line, site.name) for site in (*found.cuda_calls, *found.apis)]
    is_reported = (verdict.path, verdict.line, verdict.detail) in told
    if verdict.path is not None and verdict.line is not None and not is_reported:
        severity = _severity(verdict.outcome)
        sentences = [
            verdict_sentence(verdict, found.steps, language, placed=False)
            for language in _LANGUAGES
        ]
        message = LocalizedText(*sentences)
        path = str(folder / verdict.path)
        yield RunNote(path, verdict.line, verdict.cell, severity, verdict.outcome.value, message)
    for site in found.cuda_calls:
        is_probe = site.name in PROBES
        template = say.RUN_PROBE if is_probe else say.RUN_CUDA_CALL
        yield _note(folder, site, _HINT if is_probe else _ERROR, "cuda-call", template)
    for site in found.apis:
        severity = _ERROR if site.kind == FAILS else _INFORMATION
        yield _note(folder, site, severity, "api", say.RUN_API)
    for site in found.events:
        template = say.RUN_WAIT if site.kind == "wait" else say.RUN_SHAPE
        yield _note(folder, site, _INFORMATION, site.kind, template)


def _severity(outcome: Outcome) -> types.DiagnosticSeverity:
    if outcome in LIMITED:
        return _INFORMATION
    return _ERROR if outcome in LEFT_TO_DO else _WARNING


_LANGUAGES: tuple[Language, Language] = ("en", "zh")


def _note(
    folder: Path, site: Site, severity: types.DiagnosticSeverity, code: str, template: LocalizedText
) -> RunNote:
    sentences = (
        template.in_language(language).format(
            name=site.name, count=site.count, kind=KINDS[site.kind].in_language(language)
        )
        for language in _LANGUAGES
    )
    path = str(folder / site.path)
    return RunNote(path, site.line, site.cell, severity, code, LocalizedText(*sentences))
