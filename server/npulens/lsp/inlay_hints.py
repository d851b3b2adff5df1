from npulens.lsp.server import NpulensServer


def register(server: NpulensServer) -> None:
    """Nothing yet."""
