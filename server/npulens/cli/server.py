"""`npulens server`."""

import click


@click.command()
def server() -> None:
    """Serve an editor: the language server protocol over standard input and output."""
    from npulens.lsp.server import serve_stdio

    serve_stdio()
