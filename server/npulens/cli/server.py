"""`npulens server`."""

import os
from typing import TYPE_CHECKING

import click

from npulens.cli.help import Command
from npulens.cli.refusals import refusal, wrong_usage

if TYPE_CHECKING:
    from npulens.lsp.connection.admission import Admission

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
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="With --websocket: let pages of this origin connect, such as https://example.com.",
)
def server(
    port: int | None, websocket_port: int | None, host: str, origins: tuple[str, ...]
) -> None:
    """Serve an editor: the language server protocol.

    It is spoken over standard input and output or, with a PORT, with the first client that
    connects there and knows the token. The port, any free one for 0, and the token are printed to
    standard error. The token is a new one each time, or that of the variable NPULENS_TOKEN.
    """
    from npulens.catalog.messages import os_error
    from npulens.lsp.transports import serve_stdio, serve_tcp, serve_websocket

    if port is not None and websocket_port is not None:
        raise wrong_usage("usage.one-socket")
    if origins and websocket_port is None:
        raise wrong_usage("usage.origin-needs-websocket")
    try:
        if port is not None:
            serve_tcp(host, port, _admission(origins))
        if websocket_port is not None:
            serve_websocket(host, websocket_port, _admission(origins))
    except ImportError:
        raise refusal("error.needs-websockets") from None
    except OSError as error:
        raise refusal("error.cannot-listen", host=host, reason=os_error(error)) from error
    serve_stdio()


def _admission(origins: tuple[str, ...]) -> "Admission":
    """What clients have to bring."""
    from npulens.lsp.connection.admission import SHORTEST_TOKEN, TOKEN_VARIABLE, Admission

    token = os.environ.get(TOKEN_VARIABLE)
    if token and len(token) < SHORTEST_TOKEN:
        raise refusal("error.short-token", variable=TOKEN_VARIABLE, length=SHORTEST_TOKEN)
    return Admission(token, origins)
