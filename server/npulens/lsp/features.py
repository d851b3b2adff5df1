"""All features, put together."""

from npulens.lsp import documents, lifecycle, notebook_documents
from npulens.lsp.requests import (
    code_actions,
    code_completion,
    code_lens,
    commands,
    diagnostics,
    guiding_command,
    hover,
    inlay_hints,
    links,
    verifying,
)
from npulens.lsp.session.language_server import NpulensServer


def create_server() -> NpulensServer:
    """A server that is not connected yet."""
    server = NpulensServer(notebook_documents.SYNCHRONISATION)
    for feature in (
        lifecycle,
        documents,
        notebook_documents,
        diagnostics,
        code_actions,
        hover,
        code_completion,
        code_lens,
        inlay_hints,
        links,
        commands,
        guiding_command,
        verifying,
    ):
        feature.register(server)
    return server
