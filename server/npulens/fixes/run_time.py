"""The switch from rewriting code to running it under `transfer_to_npu`, for a whole text."""

import re

from npulens.catalog.model import Fix
from npulens.fixes.shim_edits import shim_rewrite

_TORCH = re.compile(r"^import[ \t]+torch\b", re.MULTILINE)
_SHIM = re.compile(r"^(?:from|import)[ \t]+torch_npu\.contrib\b", re.MULTILINE)
_MOST_TRIED = 20
"""Imports; each is looked at with the text before it."""


def run_time_migration(text: str, *, add: bool) -> Fix | None:
    """What imports the shim, or takes its import out; `None` where there is nothing to do."""
    places = [match.start() for match in (_TORCH if add else _SHIM).finditer(text)]
    for place in places[:_MOST_TRIED]:
        fix = shim_rewrite(text, place, place)
        if fix is not None:
            return fix
    return None
