"""What a verified run saw, put as notes to its lines."""

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.lsp.session.run_diagnostics import RunNote
from npulens.workspace.verifying.npu_apis import FAILS
from npulens.workspace.verifying.outcomes import LEFT_TO_DO, LIMITED, Outcome, Site
from npulens.workspace.verifying.run_verdicts import PROBES
from npulens.workspace.verifying.run_wording import kind_of_site, verdict_sentence
from npulens.workspace.verifying.verification import Verification

_ERROR = types.DiagnosticSeverity.Error
_WARNING = types.DiagnosticSeverity.Warning
_INFORMATION = types.DiagnosticSeverity.Information
_HINT = types.DiagnosticSeverity.Hint


def run_notes(folder: Path, found: Verification) -> Iterator[RunNote]:
    """What there is to say of each line."""
    verdict = found.verdict
    reported = [(site.path, site.line, site.name) for site in (*found.cuda_calls, *found.apis)]
    is_reported = (verdict.path, verdict.line, verdict.detail) in reported
    if verdict.path is not None and verdict.line is not None and not is_reported:
        severity = _severity(verdict.outcome)
        sentence = verdict_sentence(verdict, found.steps, placed=False)
        path = str(folder / verdict.path)
        yield RunNote(path, verdict.line, verdict.cell, severity, verdict.outcome.value, sentence)
    for site in found.cuda_calls:
        is_probe = site.name in PROBES
        name: MessageId = "editor.run-probe" if is_probe else "editor.run-cuda-call"
        yield _note(folder, site, _HINT if is_probe else _ERROR, "cuda-call", name)
    for site in found.apis:
        severity = _ERROR if site.kind == FAILS else _INFORMATION
        yield _note(folder, site, severity, "api", "editor.run-api")
    for site in found.events:
        name = "editor.run-wait" if site.kind == "wait" else "editor.run-shape"
        yield _note(folder, site, _INFORMATION, site.kind, name)


def _severity(outcome: Outcome) -> types.DiagnosticSeverity:
    if outcome in LIMITED:
        return _INFORMATION
    return _ERROR if outcome in LEFT_TO_DO else _WARNING


def _note(
    folder: Path, site: Site, severity: types.DiagnosticSeverity, code: str, name: MessageId
) -> RunNote:
    sentence = message(name, name=site.name, count=site.count, kind=kind_of_site(site))
    return RunNote(str(folder / site.path), site.line, site.cell, severity, code, sentence)
