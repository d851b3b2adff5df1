"""Documents that are opened, changed, saved and closed.

The handlers are coroutines without a wait, which are started in the order of the messages.
"""

from lsprotocol import types

from npulens.lsp.session.language_server import NpulensServer


def register(server: NpulensServer) -> None:
    """Keep up with the client's documents."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenTextDocumentParams) -> None:
        session.open(params.text_document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeTextDocumentParams) -> None:
        session.change(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.overview.files_changed()
        session.save(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)
