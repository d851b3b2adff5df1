"""What the user can have done: migrate a file or the workspace, write a report, and so on.

Each command answers with what came of it; long ones report progress and can be cancelled.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from npulens.catalog.messages import about, cannot_be_written, message
from npulens.catalog.model import Applicability, Edit, Finding, Language
from npulens.catalog.rule_page import rule_page
from npulens.fixes.fix_differences import differences
from npulens.fixes.shim_edits import run_time_migration
from npulens.lsp.requests.code_actions import APPLY_COMMAND, EXPLAIN_COMMAND, edit_later
from npulens.lsp.requests.shape_list import files_below, records_of, records_on_disk, summary
from npulens.lsp.requests.small_edits import small_edits
from npulens.lsp.session.edits import (
    DocumentChange,
    document_changes,
    to_workspace_edit,
    workspace_edit,
)
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.progress import Progress
from npulens.lsp.session.session import file_path
from npulens.lsp.session.views import View
from npulens.text.document import Document
from npulens.text.kinds import Kind
from npulens.text.sources import read_source
from npulens.workspace.fixing.file_rewriting import Rewrite, rewrite
from npulens.workspace.runs.overview import FileState
from npulens.workspace.runs.records import finding_record

logger = logging.getLogger(__name__)

MIGRATE_FILE = "npulens.migrateFile"
MIGRATE_WORKSPACE = "npulens.migrateWorkspace"
WRITE_REPORT = "npulens.writeReport"
RESTART_INDEX = "npulens.restartIndex"
RANK_SHAPES = "npulens.rankShapes"
ADD_RUN_TIME = "npulens.addRunTimeMigration"
REMOVE_RUN_TIME = "npulens.removeRunTimeMigration"
_FILES_AT_ONCE = 8
_MOST_NAMES = 5
_LONE_RETURN = re.compile(r"\r(?!\n)")

_Command = Callable[[types.ExecuteCommandParams], Awaitable[Any]]


class _Migrated(NamedTuple):
    """What fixes would change in a file, their number, and whether an editor keeps the rest."""

    changes: dict[str, DocumentChange]
    fixes: int
    is_safe_to_edit: bool = True


class _Commands:
    """The commands of one server."""

    def __init__(self, server: NpulensServer) -> None:
        self._server = server
        self._session = server.session

    async def apply_action(self, params: types.ExecuteCommandParams) -> bool:
        edit = await edit_later(self._server, _argument(params, 0, dict))
        return edit is not None and await self._apply(edit, message("editor.fix-all").en)

    async def explain_rule(self, params: types.ExecuteCommandParams) -> str:
        """The page of a rule, which is shown as a message, too.

        Raises:
            JsonRpcInvalidParams: There is no such rule.
        """
        code = _argument(params, 0, str)
        for opened in self._session.opened.values():
            if opened.file_context is not None:
                rule = opened.file_context.catalogue.rule_named(code)
                if rule is not None:
                    wanted = opened.file_context.configuration.language
                    language = self._session.terms.in_project(wanted).language
                    text = f"{rule.code} {rule.name}\n\n{rule.explanation.in_language(language)}"
                    self._server.show_text(types.MessageType.Info, text)
                    return rule_page(rule, language)
        raise JsonRpcInvalidParams(f"There is no rule {code}.")

    async def migrate_file(self, params: types.ExecuteCommandParams) -> dict[str, Any]:
        """Apply the safe fixes of an open file, or all if the second argument says so."""
        analysis = await self._analysis(params)
        async with self._progress(params, message("editor.migrate-file")):
            allowed = _applicability(params, 1)
            document = analysis.view.document
            result = await asyncio.to_thread(rewrite, document, analysis.file_context, allowed)
        changes = document_changes(result.edits, analysis.view, analysis.terms)
        edit = workspace_edit(changes, analysis.terms)
        is_applied = bool(result.edits) and await self._apply(
            edit, message("editor.migrate-file").en
        )
        return {"fixes": result.applied, "applied": is_applied}

    async def migrate_workspace(self, params: types.ExecuteCommandParams) -> dict[str, Any]:
        """Offer the fixes of all files as one change, which a client may show before it is made.

        Such a client has each edit ticked. Its changes show which of them were taken.
        """
        allowed = _applicability(params, 0)
        files = fixes = 0
        changes: dict[str, DocumentChange] = {}
        left_out: list[Path] = []
        async with self._progress(params, message("editor.migrate-workspace")) as progress:
            async for state in self._states(progress):
                if state.has_findings:
                    found = await asyncio.to_thread(self._migrated, state, allowed)
                    if found.changes and not found.is_safe_to_edit:
                        left_out.append(state.path)
                        continue
                    changes |= found.changes
                    files += bool(found.changes)
                    fixes += found.fixes
        if left_out:
            self._report_left_out(left_out)
        edit = workspace_edit(changes, self._session.terms)
        title = message("editor.migrate-workspace").en
        is_applied = bool(changes) and await self._apply(edit, title, is_refactoring=True)
        return {"files": files, "fixes": fixes, "applied": is_applied}

    async def write_report(self, params: types.ExecuteCommandParams) -> dict[str, Any]:
        """Write the findings of the workspace to a file, as `check` prints them in JSON.

        Raises:
            JsonRpcInvalidParams: The argument is no file: URI.
        """
        target = file_path(_argument(params, 0, str))
        if target is None:
            raise JsonRpcInvalidParams("A report is written to a file: URI.")
        self._server.require_reach(target)
        records: list[dict[str, Any]] = []
        async with self._progress(params, message("editor.write-report")) as progress:
            async for state in self._states(progress):
                wanted = state.file_context.configuration.language
                language = self._session.terms.in_project(wanted).language
                if state.has_findings:
                    records += await asyncio.to_thread(_records, state, language)
            await asyncio.to_thread(_write, target, records)
        return {"findings": len(records), "path": str(target)}

    async def rank_shapes(self, params: types.ExecuteCommandParams) -> list[dict[str, Any]]:
        """The dynamic shapes of an open document or, without one, of the workspace.

        The worst come first; those are shown as a message, too, unless `{"quiet": true}` requests
        the answer alone.
        """
        given = params.arguments or []
        records: list[dict[str, Any]] = []
        if given and not isinstance(given[0], dict):
            records += records_of(await self._analysis(params))
        else:
            async with self._progress(params, message("editor.rank-shapes")) as progress:
                async for found in self._ranked(progress):
                    records += found
        records.sort(key=lambda record: -record["score"])
        if not _wants(given, "quiet"):
            text = summary(records, self._session.terms.language)
            self._server.show_text(types.MessageType.Info, text)
        return records

    async def _ranked(self, progress: Progress) -> Any:
        """The places in each file; what is open has been analysed already."""
        session = self._session
        folders = [(folder, session.settings_of(folder)) for folder in session.folders]
        files = await asyncio.to_thread(lambda: [*files_below(folders)])
        for done, (path, around, settings) in enumerate(files):
            progress.go_on(f"{done}/{len(files)}", 100 * done // len(files))
            uri = path.as_uri()
            if uri not in session.opened:
                terms = session.terms.speaking(settings.language)
                yield await asyncio.to_thread(records_on_disk, path, around, terms)
            elif (analysis := await session.analysis(uri)) is not None:
                yield records_of(analysis)

    async def restart_index(self, params: types.ExecuteCommandParams) -> None:
        """Forget what was read from the disk."""
        async with self._progress(params, message("editor.restart-index")):
            await asyncio.to_thread(self._server.overview.forget)
        self._session.look_again(self._session.opened.values(), rules=True, projects=True)
        self._server.refresh()

    async def change_run_time(self, params: types.ExecuteCommandParams, *, add: bool) -> bool:
        analysis = await self._analysis(params)
        progress = self._progress(params, message("editor.run-time-migration"))
        if params.work_done_token is not None:  # it takes a moment; else none is worth showing
            await progress.begin()
        try:
            fix = await asyncio.to_thread(run_time_migration, analysis.view.document.text, add=add)
            if fix is None:
                return False
            edit = to_workspace_edit(fix.edits, analysis.view, analysis.terms)
            return await self._apply(edit, fix.title.en)
        finally:
            progress.end()

    # What they share

    async def _analysis(self, params: types.ExecuteCommandParams) -> Analysis:
        uri = _argument(params, 0, str)
        analysis = await self._session.analysis(uri)
        if analysis is None:
            raise JsonRpcInvalidParams(f"{uri} is not open.")
        return analysis

    async def _apply(
        self, edit: types.WorkspaceEdit, label: str, *, is_refactoring: bool = False
    ) -> bool:
        """Have the client change its documents; whether it did.

        Of a refactoring, clients may show a preview, and save the files that were not open.
        """
        metadata = None
        if is_refactoring and self._session.terms.edit_metadata:
            metadata = types.WorkspaceEditMetadata(is_refactoring=True)
        params = types.ApplyWorkspaceEditParams(edit, label, metadata)
        try:
            answer = await self._server.workspace_apply_edit_async(params)
        except JsonRpcException as error:
            logger.warning("The client does not apply edits: %r", error)
            return False
        return bool(getattr(answer, "applied", False))

    async def _states(self, progress: Progress) -> Any:
        """The states of all files of the workspace, as long as nobody cancels."""
        cancelled = Event()
        states = self._all_states(cancelled)
        done = 0
        try:
            while portion := await asyncio.to_thread(lambda: [*islice(states, _FILES_AT_ONCE)]):
                done += len(portion)
                progress.go_on(f"{done}")
                for state in portion:
                    yield state
        finally:
            cancelled.set()

    def _all_states(self, cancelled: Event) -> Iterator[FileState]:
        session = self._session
        for folder in session.folders:
            settings = session.settings_of(folder)
            yield from self._server.overview.states(
                folder, settings.project, cancelled.is_set, keeps=settings.cache
            )

    def _migrated(self, state: FileState, allowed: Applicability) -> _Migrated:
        """What fixes make of a file, with the text that the editor has of it, if any."""
        terms = self._session.terms
        uri = state.path.as_uri()
        opened = self._session.opened.get(uri)
        is_kept = True
        if opened is not None:
            view = opened.view
        else:
            document, _ = state.read()
            view = View.of_file(uri, document or Document(str(state.path), ""))
            is_kept = _is_kept_by_editors(state.path, view.document)
        result = rewrite(view.document, state.file_context, allowed)
        if view.document.kind is Kind.NOTEBOOK:
            view, result = _in_its_file(uri, state.path, result)
        edits: list[Edit] = []
        labels: list[str] = []
        for edit, findings in zip(result.edits, result.reasons, strict=True):
            small = small_edits(view.document.text, edit)
            edits += small
            labels += [_label(findings, terms.language)] * len(small)
        return _Migrated(document_changes(edits, view, terms, labels), result.applied, is_kept)

    def _report_left_out(self, paths: Sequence[Path]) -> None:
        names = ", ".join(path.name for path in paths[:_MOST_NAMES])
        names += ", ..." if len(paths) > _MOST_NAMES else ""
        text = message("editor.left-out", files=names).in_language(self._session.terms.language)
        self._server.show_text(types.MessageType.Warning, text)

    def _progress(self, params: types.ExecuteCommandParams, title: Any) -> Progress:
        shown = title.in_language(self._session.terms.language)
        return Progress(self._server, shown, params.work_done_token)


def _is_kept_by_editors(path: Path, document: Document) -> bool:
    """Whether an editor that opens a file writes what it does not change as it was.

    Editors take files for UTF-8 and put a mark for each byte that is none; and they end lines
    otherwise that end as they did on the first Macintosh.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    is_same = document.kind is Kind.NOTEBOOK or text == document.text
    return is_same and not _LONE_RETURN.search(text)


def _in_its_file(uri: str, path: Path, result: Rewrite) -> tuple[View, Rewrite]:
    """What becomes of the file of a notebook that is not open, in which its cells are JSON."""
    data = path.read_bytes()
    before = data.decode()
    after = read_source(str(path), data).encode(result.text).decode()
    edits = differences(before, after)
    every = tuple(finding for findings in result.reasons for finding in findings)
    view = View.of_file(uri, Document(str(path), before))
    return view, replace(result, edits=edits, reasons=(every,) * len(edits))


def _label(findings: Sequence[Finding], language: Language) -> str:
    """What a preview calls an edit, by the rules that it is for."""
    if not findings:
        return message("editor.needed-import").in_language(language)
    rules = sorted({f"{finding.rule.code} {finding.rule.name}" for finding in findings})
    label = ", ".join(rules)
    is_safe = all(each.fixes[0].applicability is Applicability.SAFE for each in findings)
    return label if is_safe else message("editor.unsafe", title=label).in_language(language)


def _records(state: FileState, language: Language) -> list[dict[str, Any]]:
    document, findings = state.read()
    assert document is not None
    return [finding_record(document, finding, language) for finding in findings]


def _argument(params: types.ExecuteCommandParams, index: int, kind: type[Any]) -> Any:
    given = params.arguments or []
    if index >= len(given) or not isinstance(given[index], kind):
        raise JsonRpcInvalidParams(f"Argument {index + 1} must be of type {kind.__name__}.")
    return given[index]


def _applicability(params: types.ExecuteCommandParams, index: int) -> Applicability:
    """`{"unsafe": true}` includes unsafe fixes."""
    given = (params.arguments or [])[index : index + 1]
    return Applicability.UNSAFE if _wants(given, "unsafe") else Applicability.SAFE


def _wants(given: Sequence[object], key: str) -> bool:
    """Whether the last argument is an object that says so."""
    options = given[-1] if given else None
    return isinstance(options, dict) and options.get(key) is True


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    text = json.dumps(records, ensure_ascii=False, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise JsonRpcInvalidParams(about(path, cannot_be_written(error)).en) from error


def _as_function(command: _Command) -> _Command:
    """Pygls notes the name of a command on the function, which a method does not allow."""

    async def run(params: types.ExecuteCommandParams) -> Any:
        return await command(params)

    return run


def register(server: NpulensServer) -> None:
    """Take commands."""
    commands = _Commands(server)
    table: dict[str, _Command] = {
        APPLY_COMMAND: commands.apply_action,
        EXPLAIN_COMMAND: commands.explain_rule,
        MIGRATE_FILE: commands.migrate_file,
        MIGRATE_WORKSPACE: commands.migrate_workspace,
        WRITE_REPORT: commands.write_report,
        RESTART_INDEX: commands.restart_index,
        RANK_SHAPES: commands.rank_shapes,
        ADD_RUN_TIME: partial(commands.change_run_time, add=True),
        REMOVE_RUN_TIME: partial(commands.change_run_time, add=False),
    }
    for name, command in table.items():
        server.command(name)(_as_function(command))
