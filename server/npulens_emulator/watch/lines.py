"""The lines of the script that were reached."""

import sys
import threading
from types import FrameType
from typing import Any

from npulens_emulator.watch.record import Record


def watch_lines(record: Record) -> None:
    """Note which lines of the script are run in this process, in all of its threads."""
    script: str | None = record.settings["script"]
    if script is None or record.settings["cells"] is not None:
        return

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        record.lines.add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename == script else None

    threading.settrace(on_call)
    sys.settrace(on_call)
