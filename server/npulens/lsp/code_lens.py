"""How far the migration of a file is, above its first line."""

from lsprotocol import types

from npulens.catalog.model import Applicability, Language, Severity
from npulens.lsp import wording as say
from npulens.lsp.commands import MIGRATE_FILE
from npulens.lsp.engine import Analysis
from npulens.lsp.server import NpulensServer

_WORK = (Severity.ERROR, Severity.WARNING)
_FIRST_LINE = types.Range(types.Position(0, 0), types.Position(0, 0))


def state_of(analysis: Analysis, language: Language) -> str:
    """The state of a file in a few words, empty if it has nothing to do with GPUs or NPUs."""
    todo = [f for f in analysis.findings if f.effective_severity in _WORK]
    advice = len(analysis.findings) - len(todo)
    safe = sum(bool(f.fixes) and f.fixes[0].applicability is Applicability.SAFE for f in todo)
    if todo:
        text = say.TO_MIGRATE.in_language(language)
        return text.format(todo=len(todo), safe=safe, advice=advice)
    if advice:
        return say.ONLY_ADVICE.in_language(language).format(advice=advice)
    return say.MIGRATED.in_language(language) if _names_npu(analysis) else ""


def _names_npu(analysis: Analysis) -> bool:
    text = analysis.view.document.text
    return "torch_npu" in text or "torch.npu" in text or "torch.accelerator" in text


def register(server: NpulensServer) -> None:
    """Show the state of files."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        uri = params.text_document.uri
        opened = session.of_document(uri)
        if opened is None or not session.settings_of(session.folder_of(opened.path)).code_lens:
            return None
        analysis = await session.analysis(uri)
        if analysis is None or uri != analysis.view.parts[0].uri:
            return None
        title = state_of(analysis, analysis.terms.language)
        if not title:
            return None
        command = types.Command(title, MIGRATE_FILE, arguments=[opened.uri])
        return [types.CodeLens(_FIRST_LINE, command)]
