"""The least that a server of Python can do: it parses the whole text for each key.

A script, not a test: `editor_requests.py` runs it beside npulens.
"""

import ast

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("parsing-server", "1")


def publish(uri: str) -> None:
    document = server.workspace.get_text_document(uri)
    try:
        ast.parse(document.source)
    except SyntaxError:
        found = [
            types.Diagnostic(types.Range(types.Position(0, 0), types.Position(0, 1)), "broken")
        ]
    else:
        found = []
    server.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri, found, document.version)
    )


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(params: types.DidOpenTextDocumentParams) -> None:
    publish(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def changed(params: types.DidChangeTextDocumentParams) -> None:
    publish(params.text_document.uri)


server.start_io()
