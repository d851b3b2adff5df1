"""`npulens server`."""

import click

from npulens.cli.help import Command
from npulens.cli.refusals import Refusal

_EPILOG = """\b
Examples:
  npulens server
  npulens server --tcp 2087
  npulens server --websocket 0 --host 127.0.0.1"""


@click.command(cls=Command, epilog=_EPILOG)
@click.option("--tcp", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Use a socket.")
@click.option(
    "--websocket",
    "websocket_port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Use a WebSocket; needs the package websockets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
def server(port: int | None, websocket_port: int | None, host: str) -> None:
    """Serve an editor: the language server protocol.

    It is spoken over standard input and output or, with a PORT, with the first client that
    connects there; of port 0, which is any free one, the number is told on standard error.
    """
    from npulens.lsp.transports import serve_stdio, serve_tcp, serve_websocket

    if port is not None and websocket_port is not None:
        raise click.UsageError("--tcp and --websocket cannot be used at once")
    try:
        if port is not None:
            serve_tcp(host, port)
        if websocket_port is not None:
            serve_websocket(host, websocket_port)
    except ImportError:
        raise Refusal("a WebSocket needs the package websockets") from None
    except OSError as error:
        raise Refusal(f"cannot listen at {host}: {error.strerror}") from error
    serve_stdio()
