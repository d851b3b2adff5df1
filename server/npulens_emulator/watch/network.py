"""Refuses connections to other machines in a run that is to have none, and notes their lines."""

import socket
import sys
from ipaddress import ip_address
from typing import Any

from npulens_emulator.watch.record import Record

_HOST = {"socket.connect": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}
"""By the event of the interpreter, which of its arguments has the host."""
_is_watching = False


class RefusedConnectionError(ConnectionError):
    """The run has no network."""


def refuse_network(record: Record) -> None:
    """Do so from now on, if the settings of the run say it."""
    global _is_watching
    if _is_watching or not record.settings["offline"]:
        return
    _is_watching = True
    own = {"", "localhost", socket.gethostname()}

    def on_event(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _HOST:
            return
        host = arguments[_HOST[event]]
        if event == "socket.connect":
            host = host[0] if isinstance(host, tuple) else None  # a path of this machine
        if host is None or _is_of_this_machine(host, own):
            return
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        place = record.place_of(sys._getframe(1))
        if place is not None:
            record.refused.add((*place, name))
        raise RefusedConnectionError(f"no connection to {name}, as the run has no network")

    sys.addaudithook(on_event)


def _is_of_this_machine(host: str | bytes, own: set[str]) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in own:
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
