"""Waiting for files to change."""

import os
import sys
import time
from collections.abc import Iterator, Sequence

import click

from npulens.cli.options import configuration_for
from npulens.cli.refusals import Refusal, refusals

_PAUSE = 0.5
"""In seconds, between two looks at the files."""
_SHARE = 10
"""Looking takes at most one part in so many of the time, however many files there are."""

_State = frozenset[tuple[str, int, int]]


def watched(paths: Sequence[str], config: str | None) -> Iterator[None]:
    """Come back at once, and whenever a file at or below the paths, or a configuration, changes."""
    seen: _State | None = None
    while True:
        started = time.monotonic()
        now = _state(paths, config)
        took = time.monotonic() - started
        if now != seen:
            seen = now
            if sys.stdout.isatty():
                click.clear()
            yield
            sys.stdout.flush()
        else:
            time.sleep(max(_PAUSE, took * _SHARE))


def _state(paths: Sequence[str], config: str | None) -> _State:
    """The names, times and sizes of all files that matter."""
    from npulens.workspace.files.discovery import discover

    try:
        with refusals():
            configuration = configuration_for(paths, config, {})
    except Refusal as error:
        return frozenset({(error.message, 0, 0)})
    found = discover(
        paths, configuration.exclude, configuration.root, configuration.respect_gitignore
    )
    files = [*found.files, *configuration.extend_rules]
    files += [configuration.source] if configuration.source is not None else []
    stamps = {(str(configuration.target), 0, 0)}
    for file in map(str, files):
        try:
            now = os.stat(file)  # noqa: PTH116 (a Path for each of thousands costs more)
        except OSError:
            continue
        stamps.add((file, now.st_mtime_ns, now.st_size))
    return frozenset(stamps)
