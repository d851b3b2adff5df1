"""The lines of the script that were reached, and the shapes of names if these are requested."""

import sys
import threading
from types import FrameType
from typing import Any

from npulens_emulator.watch.assigned_shapes import with_shapes
from npulens_emulator.watch.record import Record


def watch_lines(record: Record) -> None:
    """Note what of the script is run in this process, in all of its threads."""
    script: str | None = record.settings["script"]
    if script is None or record.settings["cells"] is not None:
        return

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        record.lines.add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename == script else None

    follow = on_call if not record.settings.get("shapes") else with_shapes(record, on_call)
    threading.settrace(follow)
    sys.settrace(follow)
