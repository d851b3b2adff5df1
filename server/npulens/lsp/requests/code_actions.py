"""What can be done about findings: fix, fix all, rewrite, silence, explain.

Edits that take an analysis are made when the user has chosen the action, where the client requests
them then; each action carries what it needs for that as its data.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Finding, Fix, MigrationStyle
from npulens.checks.one_code import is_about_devices
from npulens.checks.other_files.launch_files import comments_of
from npulens.fixes.apply import apply_edits, with_leftovers
from npulens.fixes.fix_differences import differences
from npulens.fixes.scripts import UnclearError
from npulens.fixes.shim_edits import shim_rewrite
from npulens.fixes.suppressing import suppress_in_file, suppress_on_line
from npulens.fixes.written_lines import writes_module
from npulens.lsp.requests.instrument_actions import instrument_actions
from npulens.lsp.session.edits import to_workspace_edit
from npulens.lsp.session.engine import Analysis
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.views import Part, View
from npulens.syntax.strings import comments
from npulens.text.kinds import Comments, Kind
from npulens.text.spans import Span
from npulens.workspace.fixing.file_rewriting import rewrite
from npulens.workspace.fixing.merging_in_project import (
    joined_projections,
    merged_in_project,
    project_of,
    told,
)

QUICK_FIX = types.CodeActionKind.QuickFix.value
REWRITE = types.CodeActionKind.RefactorRewrite.value
FIX_ALL_KIND = "source.fixAll.npulens"
EXPLAIN_KIND = "npulens.explain"
EXPLAIN_COMMAND = "npulens.explainRule"
APPLY_COMMAND = "npulens.applyAction"
KINDS = (QUICK_FIX, REWRITE, FIX_ALL_KIND, EXPLAIN_KIND)


@dataclass(frozen=True)
class _Request:
    """The request: a range of a part of a text, and the kinds of actions that are wanted."""

    analysis: Analysis
    part: Part
    span: Span
    only: Sequence[str] | None

    def wants(self, kind: str) -> bool:
        """Whether a kind of actions, or one that it belongs to, is requested."""
        if self.only is None:
            return True
        return any(not given or f"{kind}.".startswith(f"{given}.") for given in self.only)

    @property
    def wants_source(self) -> bool:
        """Whether actions for the whole file are requested, not just whatever there is."""
        return any(self.only or ()) and self.wants(FIX_ALL_KIND)

    def text(self, name: MessageId, /, **values: str) -> str:
        return message(name, **values).in_language(self.analysis.terms.language)


def actions(request: _Request) -> Iterator[types.CodeAction]:
    """All that is on offer; edits are left out if they can be requested later."""
    here = [
        index
        for index, finding in enumerate(request.analysis.findings)
        if finding.span.start <= request.span.end and request.span.start <= finding.span.end
    ]
    for index in here:
        yield from _fixes(request, index)
    if request.wants(QUICK_FIX):
        for code in dict.fromkeys(request.analysis.findings[index].rule.code for index in here):
            yield from _of_rule(request, code, here)
        yield from _suppressions(request, here)
    if request.wants(EXPLAIN_KIND):
        for code in dict.fromkeys(request.analysis.findings[index].rule.code for index in here):
            title = request.text("editor.explain", code=code)
            command = types.Command(title, EXPLAIN_COMMAND, arguments=[code])
            yield types.CodeAction(title, EXPLAIN_KIND, command=command)
    if request.wants_source and _is_fixable(request.analysis.findings):
        yield _lazy(request, request.text("editor.fix-all"), FIX_ALL_KIND, {"do": "fix all"})
    if request.wants(REWRITE):
        yield from _rewrites(request)
        yield from _mergings(request, here)


def _fixes(request: _Request, index: int) -> Iterator[types.CodeAction]:
    """The fixes of a finding; of a fused operator they are a matter of taste, too."""
    finding = request.analysis.findings[index]
    is_rewrite = finding.rule.family == "fused" and not request.wants(QUICK_FIX)
    kind = REWRITE if is_rewrite else QUICK_FIX
    if not request.wants(kind):
        return
    diagnostic = request.analysis.diagnostics[index]
    for number, fix in enumerate(finding.fixes):
        title = fix.title.in_language(request.analysis.terms.language)
        is_safe = fix.applicability is Applicability.SAFE
        title = title if is_safe else request.text("editor.unsafe", title=title)
        action = _lazy(request, title, kind, {"do": "fix", "finding": index, "fix": number})
        action.diagnostics = [diagnostic]
        action.is_preferred = number == 0 and is_safe
        yield action
    if not finding.fixes and request.analysis.terms.shows_disabled and not is_rewrite:
        title = request.text("editor.no-fix", code=finding.rule.code)
        reason = types.CodeActionDisabled(
            request.text("editor.by-hand", message=diagnostic.message)
        )
        yield types.CodeAction(title, kind, diagnostics=[diagnostic], disabled=reason)


def _of_rule(request: _Request, code: str, here: Sequence[int]) -> Iterator[types.CodeAction]:
    """To fix a rule everywhere, if it can be fixed in more than one place.

    It names the diagnostics that it is offered for: editors show what names none behind the rest.
    """
    findings, diagnostics = request.analysis.findings, request.analysis.diagnostics
    found = [f.fixes[0].applicability for f in findings if f.rule.code == code and f.fixes]
    fixable = [each for each in found if each in Applicability.UNSAFE.included]
    if len(fixable) > 1:
        title = request.text("editor.fix-all-of-rule", code=code)
        if any(each is not Applicability.SAFE for each in fixable):
            title = request.text("editor.unsafe", title=title)
        action = _lazy(request, title, QUICK_FIX, {"do": "fix rule", "code": code})
        action.diagnostics = [diagnostics[i] for i in here if findings[i].rule.code == code]
        yield action


def _suppressions(request: _Request, here: Sequence[int]) -> Iterator[types.CodeAction]:
    """To silence each rule on each line where it is found, and in the file; each once."""
    document = request.analysis.view.document
    if document.kind.comments is Comments.NOWHERE:
        return
    offered: set[tuple[str, int]] = set()
    for index in here:
        finding = request.analysis.findings[index]
        code = finding.rule.code
        line = document.position_at(finding.span.start).line
        titles = {
            "line": request.text("editor.suppress-on-line", code=code),
            "file": request.text("editor.suppress-in-file", code=code),
        }
        for where, at in (("line", line), ("file", -1)):
            data = {"do": "suppress", "finding": index, "where": where}
            action = _lazy(request, titles[where], QUICK_FIX, data)
            can_be_had = request.analysis.terms.resolves_edits or action.edit is not None
            if can_be_had and (code, at) not in offered:
                offered.add((code, at))
                action.diagnostics = [request.analysis.diagnostics[index]]
                yield action


def _rewrites(request: _Request) -> Iterator[types.CodeAction]:
    document = request.analysis.view.document
    shim = shim_rewrite(document.text, *request.span)
    if shim is not None:
        edit = to_workspace_edit(shim.edits, request.analysis.view, request.analysis.terms)
        title = shim.title.in_language(request.analysis.terms.language)
        yield types.CodeAction(title, REWRITE, edit=edit)
    for each in instrument_actions(document, request.span):
        edit = to_workspace_edit(each.edits, request.analysis.view, request.analysis.terms)
        title = each.title.in_language(request.analysis.terms.language)
        yield types.CodeAction(title, REWRITE, edit=edit)
    style = request.analysis.file_context.configuration.style
    kind = request.analysis.view.document.kind
    can_be_written = kind in (Kind.PYTHON, Kind.NOTEBOOK)
    if (can_be_written and style is not MigrationStyle.DEVICE_AGNOSTIC) and any(
        is_about_devices(finding)
        for finding in request.analysis.findings
        if finding.span.start <= request.span.end and request.span.start <= finding.span.end
    ):
        yield _lazy(request, request.text("editor.agnostic-style"), REWRITE, {"do": "agnostic"})


def _mergings(request: _Request, here: Sequence[int]) -> Iterator[types.CodeAction]:
    """To make one layer of two whose outputs a fused operator joins, or would after a fix.

    Not in a document without a file: of its project nothing is known.
    """
    document = request.analysis.view.document
    if document.kind is not Kind.PYTHON or not Path(document.path).is_absolute():
        return
    title = request.text("editor.unsafe", title=request.text("editor.merge-projections"))
    for index in here:
        for number, fix in enumerate(request.analysis.findings[index].fixes):
            if any(joined_projections(edit.replacement) is not None for edit in fix.edits):
                data = {"do": "merge", "finding": index, "fix": number}
                yield _lazy(request, title, REWRITE, data)
                return
    starts = document.line_starts
    first, last = (document.position_at(each).line for each in request.span)
    end = starts[last + 3] if last + 3 < len(starts) else len(document.text)
    place = joined_projections(document.text, starts[first], end)
    if place is not None:
        data = {"do": "merge", "line": document.position_at(place).line + 1}
        yield _lazy(request, title, REWRITE, data)


def _lazy(request: _Request, title: str, kind: str, data: dict[str, Any]) -> types.CodeAction:
    """An action whose edit is made later: by `codeAction/resolve`, or else by a command.

    What is quickly made is there at once if the client does not resolve; so is what it applies
    when it saves, where a command would come too late.
    """
    action = types.CodeAction(title, kind)
    data = {**data, "uri": request.part.uri, "analysis": request.analysis.serial}
    if request.analysis.terms.resolves_edits:
        action.data = data
    elif data["do"] in ("fix", "suppress", "fix all"):
        action.edit = edit_of(data, request.analysis)
    else:
        action.command = types.Command(title, APPLY_COMMAND, arguments=[data])
    return action


# Edits


def edit_of(data: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    """The edit of an action with this data, `None` if there is none after all.

    Raises:
        KeyError, IndexError, TypeError: The data is not what this server sends.
    """
    return _EDITS[data["do"]](data, analysis)


def _fix_edit(data: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit:
    fix = analysis.findings[data["finding"]].fixes[data["fix"]]
    document = analysis.view.document
    is_python = document.kind is Kind.PYTHON
    edits = with_leftovers(document.text, fix) if is_python else fix.edits
    if fix.applicability is not Applicability.SAFE:
        edits = _as_one(edits, analysis.view)
    return to_workspace_edit(edits, analysis.view, analysis.terms)


def _as_one(edits: Iterable[Edit], view: View) -> tuple[Edit, ...]:
    """One edit instead of all in a document, besides those of imports: no part makes sense alone.

    Editors can preview an action and let the user leave out some of its edits.
    """
    text = view.document.text
    imports: list[Edit] = []
    rewritten: dict[str, list[Edit]] = {}
    for edit in sorted(set(edits)):
        if _is_of_imports(text[edit.span.start : edit.span.end] + edit.replacement):
            imports.append(edit)
        else:
            rewritten.setdefault(view.part_of(edit.span.start).uri, []).append(edit)
    return (*imports, *(_joined(text, each) for each in rewritten.values()))


def _is_of_imports(text: str) -> bool:
    return all(line.startswith(("import ", "from ")) for line in text.split("\n") if line.strip())


def _joined(text: str, edits: Sequence[Edit]) -> Edit:
    """Edits in the order of their places, and what is between them, as one."""
    start, end = edits[0].span.start, edits[-1].span.end
    shifted = (edit.shifted(-start) for edit in edits)
    return Edit(Span(start, end), apply_edits(text[start:end], shifted))


def _rule_edit(data: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    code: str = data["code"]

    def wanted(finding: Finding) -> bool:
        return finding.rule.code == code

    return _rewritten(analysis, Applicability.UNSAFE, wanted)


def _all_edit(_: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    return _rewritten(analysis, Applicability.SAFE)


def _agnostic_edit(_: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    def wanted(finding: Finding) -> bool:
        return any(map(writes_module, finding.fixes))

    style = MigrationStyle.DEVICE_AGNOSTIC
    return _rewritten(analysis, Applicability.UNSAFE, wanted, style)


def _rewritten(
    analysis: Analysis,
    applicability: Applicability,
    wanted: Callable[[Finding], bool] = lambda finding: True,
    style: MigrationStyle | None = None,
) -> types.WorkspaceEdit | None:
    document = analysis.view.document
    result = rewrite(document, analysis.file_context, applicability, wanted, style)
    if not result.edits:
        return None
    return to_workspace_edit(result.edits, analysis.view, analysis.terms)


def _merge_edit(data: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    """One layer instead of two at one place, after the fix that joins their outputs there.

    Raises:
        UnclearError: They cannot be merged.
    """
    document = analysis.view.document
    text, line = document.text, data.get("line")
    if line is None:
        text, line = _with_joined(text, analysis.findings[data["finding"]].fixes[data["fix"]])
    path = Path(document.path)
    project = project_of(path, analysis.file_context.configuration)
    merged, refusals = merged_in_project(path, text, project, line)
    for error in told(refusals, text, document.text):
        raise error
    edits = _as_one(differences(document.text, merged), analysis.view)
    return to_workspace_edit(edits, analysis.view, analysis.terms)


def _with_joined(text: str, fix: Fix) -> tuple[str, int]:
    """A text after a fix that joins outputs, and the line where it does that then."""
    edits = sorted(set(with_leftovers(text, fix)))
    moved = 0
    for edit in edits:
        place = joined_projections(edit.replacement)
        if place is not None:
            break
        moved += len(edit.replacement) - (edit.span.end - edit.span.start)
    fixed = apply_edits(text, edits)
    return fixed, fixed.count("\n", 0, edit.span.start + moved + (place or 0)) + 1


def _suppress_edit(data: dict[str, Any], analysis: Analysis) -> types.WorkspaceEdit | None:
    finding = analysis.findings[data["finding"]]
    document = analysis.view.document
    find_comments = comments if document.kind is Kind.PYTHON else comments_of(document.kind)
    if data["where"] == "file":
        edit = suppress_in_file(document.lines, finding.rule.code, find_comments)
    else:
        edit = suppress_on_line(document.lines, finding.span, finding.rule.code, find_comments)
    return None if edit is None else to_workspace_edit([edit], analysis.view, analysis.terms)


_EDITS: dict[str, Callable[[dict[str, Any], Analysis], types.WorkspaceEdit | None]] = {
    "fix": _fix_edit,
    "fix rule": _rule_edit,
    "fix all": _all_edit,
    "agnostic": _agnostic_edit,
    "merge": _merge_edit,
    "suppress": _suppress_edit,
}


def _is_fixable(findings: Sequence[Finding]) -> bool:
    first = [finding.fixes[0] for finding in findings if finding.fixes]
    return any(fix.applicability is Applicability.SAFE for fix in first)


def register(server: NpulensServer) -> None:
    """Offer code actions."""
    session = server.session

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[*KINDS], resolve_provider=True),
    )
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        only = params.context.only
        wanted = None if only is None else [getattr(kind, "value", kind) for kind in only]
        analysed = await session.analysed_part(params.text_document.uri)
        if analysed is None:
            return None
        analysis, part = analysed
        span = analysis.view.span_of(part, params.range, analysis.terms.encoding)
        request = _Request(analysis, part, span, wanted)
        if not any(request.wants(kind) for kind in KINDS):
            return None
        return await asyncio.to_thread(lambda: [*actions(request)])

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        if action.data is not None:
            action.edit = await edit_later(server, action.data)
        return action


async def edit_later(server: NpulensServer, data: object) -> types.WorkspaceEdit | None:
    """The edit of an action that was offered before; where there is none, the user sees why.

    Raises:
        JsonRpcContentModified: It was for another text.
        JsonRpcInvalidParams: It is no data of an action.
    """
    if not isinstance(data, dict) or not isinstance(data.get("uri"), str):
        raise JsonRpcInvalidParams("This is no action of npulens.")
    analysis = server.session.current(data["uri"])
    if analysis is None or analysis.serial != data.get("analysis"):
        raise JsonRpcContentModified("The document has changed.")
    try:
        return await asyncio.to_thread(edit_of, data, analysis)
    except UnclearError as error:
        place = f"{analysis.view.document.path}:{error.line}"
        text = message("merging.not-merged", place=place, reason=error.text)
        server.show_text(types.MessageType.Warning, text.in_language(analysis.terms.language))
        return None
    except (KeyError, IndexError, TypeError):
        raise JsonRpcInvalidParams("This is no action of npulens.") from None
