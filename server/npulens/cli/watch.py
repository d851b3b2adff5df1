"""Waiting for files to change."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from npulens.cli.options import Settings

_PAUSE = 0.5
"""In seconds, between two looks at the files."""
_SHARE = 10
"""Looking takes at most one part in so many of the time, however many files there are."""

_State = frozenset[tuple[str, int, int]]


def watched(paths: Sequence[str], asked: "Settings") -> Iterator[None]:
    """Come back at once, and then whenever a file at or below the paths has changed."""
    seen: _State | None = None
    while True:
        started = time.monotonic()
        now = _state(paths, asked)
        took = time.monotonic() - started
        if now != seen:
            seen = now
            if sys.stdout.isatty():
                click.clear()
            yield
            sys.stdout.flush()
        else:
            time.sleep(max(_PAUSE, took * _SHARE))


def _state(paths: Sequence[str], asked: "Settings") -> _State:
    """The names, times and sizes of the files, and of the configuration."""
    from npulens.workspace.discovery import discover

    configuration = asked.configuration
    files = [str(file) for file in discover(paths, configuration.exclude, configuration.root).files]
    files += [str(file) for file in (configuration.source, *configuration.extend_rules) if file]
    stamps = set()
    for file in files:
        try:
            found = os.stat(file)  # noqa: PTH116 (a Path for each of thousands costs more)
        except OSError:
            continue
        stamps.add((file, found.st_mtime_ns, found.st_size))
    return frozenset(stamps)
