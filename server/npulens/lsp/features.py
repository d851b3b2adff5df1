"""All features, put together."""

from npulens.lsp import (
    code_actions,
    code_lens,
    commands,
    completion,
    diagnostics,
    documents,
    hover,
    inlay_hints,
    lifecycle,
    links,
    notebooks,
    verifying,
)
from npulens.lsp.server import NpulensServer


def create_server() -> NpulensServer:
    """A server that is not connected yet."""
    server = NpulensServer(notebooks.SYNCHRONISATION)
    for feature in (
        lifecycle,
        documents,
        notebooks,
        diagnostics,
        code_actions,
        hover,
        completion,
        code_lens,
        inlay_hints,
        links,
        commands,
        verifying,
    ):
        feature.register(server)
    return server
