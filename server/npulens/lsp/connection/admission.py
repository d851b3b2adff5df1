"""Who may use a server that listens at a socket.

A port is open to every program and every user of the machine, and a WebSocket to each page that a
browser shows. So a client has to know a token, and a page has to come from this machine.
"""

import hmac
import json
import re
import secrets
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

TOKEN_VARIABLE = "NPULENS_TOKEN"
SHORTEST_TOKEN = 16
LARGEST_FIRST_MESSAGE = 1_000_000
"""In bytes; so much is read of a client that has not given the token yet."""

_LOCAL_ORIGIN = re.compile(
    r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?|vscode-webview://[\w.-]+",
    re.ASCII | re.IGNORECASE,
)
_HTTP_REQUEST = re.compile(rb"[A-Z]{3,10} [^\r\n]* HTTP/\d")


class Refused(NamedTuple):
    """Why a client is not served."""

    request: str | int | None
    reason: str


class Admission:
    """What a client has to bring.

    Attributes:
        token: The secret that the server prints for the user who starts it.
    """

    def __init__(self, token: str | None = None, origins: Sequence[str] = ()) -> None:
        """Demand this token, or a new one; pages of these origins and local ones may connect."""
        self.token = token or secrets.token_urlsafe(24)
        self._origins = frozenset(origins)

    def takes_page(self, origins: Sequence[str]) -> bool:
        """Whether a connection with these `Origin` headers may be made; programs send none."""
        return len(origins) <= 1 and all(
            origin in self._origins or _LOCAL_ORIGIN.fullmatch(origin) for origin in origins
        )

    def takes_target(self, target: str) -> bool:
        """Whether the target of an HTTP request, `/?token=...`, holds the token."""
        try:
            given = parse_qs(urlsplit(target).query).get("token", [])
        except ValueError:
            return False
        return len(given) == 1 and self._is_token(given[0])

    def first_message(self, body: bytes) -> bytes | Refused:
        """The first message of a client, without the token that it has to hold.

        It must be `initialize` with the token as `token` in its `initializationOptions`.
        """
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return Refused(None, "The message is not JSON.")
        found = message.get("id") if isinstance(message, dict) else None
        request = found if isinstance(found, (str, int)) else None
        if not isinstance(message, dict) or message.get("method") != "initialize":
            return Refused(request, "The first request is `initialize`, with the token.")
        params = message.get("params")
        options = params.get("initializationOptions") if isinstance(params, dict) else None
        if not isinstance(options, dict) or not self._is_token(options.pop("token", None)):
            reason = "`initializationOptions.token` must be the token that the server has printed."
            return Refused(request, reason)
        return json.dumps(message).encode()

    def _is_token(self, given: object) -> bool:
        if not isinstance(given, str):
            return False
        expected = self.token.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected)


def is_http(data: bytes) -> bool:
    """Whether a client begins with an HTTP request, such as one that a web page makes."""
    return _HTTP_REQUEST.match(data) is not None
