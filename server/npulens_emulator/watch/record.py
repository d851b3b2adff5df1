"""The report of one process."""

import atexit
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from multiprocessing import util
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from npulens_emulator.watch.errors import described

_MOST_SHAPES = 4
"""Of one name in one line."""
_MOST_NAMES = 20_000
Place = tuple[str, int]
"""A path relative to the folder of the user's code, and a line."""


class Record:
    """What happened in this process so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = json.loads(
            (folder / "settings.json").read_text(encoding="utf-8")
        )
        self.root = os.path.realpath(self.settings["root"]) + os.sep
        self.is_main = False
        self._known_files: dict[str, str | None] = {}
        self._start_again()

    def _start_again(self) -> None:
        self.started = time.monotonic()
        self.cuda_calls: Counter[tuple[str, int, str]] = Counter()
        self.events: Counter[tuple[str, int, str, str]] = Counter()
        self.apis: Counter[tuple[str, int, str]] = Counter()
        self.types: Counter[tuple[str, int, str, str]] = Counter()
        self.shapes: dict[tuple[str, int, str], list[tuple[int, ...]]] = {}
        self.input_places: set[Place] = set()
        self.refused: set[tuple[str, int, str]] = set()
        self.lines: set[int] = set()
        self.steps = 0
        self.losses: list[float] = []
        self.parameters: list[list[float]] = []
        self.trained: dict[str, int] = {}
        self.first_step: Place | None = None
        self.operators = 0
        self.unknown_names: list[str] = []
        self.tests: dict[str, dict[str, Any]] | None = None
        self.end: dict[str, Any] = {"kind": "finished"}
        self._written = False

    def start(self) -> None:
        """Write the report when the process ends, however it does."""
        sys.excepthook = self._on_error
        atexit.register(self.write)
        self._watch_leaving()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)
        util.register_after_fork(self, Record._write_at_end)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_terminate)

    def _watch_leaving(self) -> None:
        """`os._exit` asks nobody; what it ends is written down first."""
        leave = os._exit

        def leaving(status: int) -> NoReturn:
            if status and self.is_main:
                path, line = self.place_of(sys._getframe(1)) or (None, None)
                self.ended("exit", code=status, message="", path=path, line=line)
            self.write()
            leave(status)

        os._exit = leaving

    def _in_child(self) -> None:
        """What the parent did so far is in its own report."""
        self.is_main = False
        self._start_again()

    def _write_at_end(self) -> None:
        """A process that multiprocessing forked ends without `atexit`."""
        util.Finalize(None, self.write, exitpriority=0)

    def relative(self, filename: str) -> str | None:
        """The path of a file of the user's code below its folder; None for other files."""
        if filename not in self._known_files:
            path = os.path.realpath(filename)
            is_file = not filename.startswith("<")  # such as "<frozen os>"
            is_own = is_file and path.startswith(self.root) and "site-packages" not in path
            self._known_files[filename] = path[len(self.root) :] if is_own else None
        return self._known_files[filename]

    def place_of(self, frame: FrameType | None) -> Place | None:
        """The innermost line of the user's code from a frame outwards."""
        while frame is not None:
            path = self.relative(frame.f_code.co_filename)
            if path is not None:
                return path, frame.f_lineno
            frame = frame.f_back
        return None

    def note_shape(self, name: tuple[str, int, str], shape: tuple[int, ...]) -> None:
        """Note the shape of what a line assigns to a name, the first few different ones."""
        known = self.shapes.setdefault(name, []) if len(self.shapes) < _MOST_NAMES else []
        if shape not in known and len(known) < _MOST_SHAPES:
            known.append(shape)

    def ended(self, kind: str, **details: Any) -> None:
        """Note how the process ends."""
        self.end = {"kind": kind, **details}

    def ended_by(self, error: BaseException, trace: TracebackType | None) -> None:
        """Note the error that ends the process."""
        kind = "exit" if isinstance(error, SystemExit) else "error"
        self.ended(kind, **self.described(error, trace))

    def described(self, error: BaseException, trace: TracebackType | None) -> dict[str, Any]:
        """What an error is, at the innermost line of the user's code."""
        return described(
            error, trace, self.relative, lambda path, line: (path, line) in self.input_places
        )

    def _on_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self.ended_by(error, trace)
        sys.__excepthook__(kind, error, trace)

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        place = self.place_of(frame)
        path, line = place or (None, None)
        self.ended("terminated", path=path, line=line)
        self.write()
        os._exit(128 + number)

    def write(self) -> None:
        """Write the report, once."""
        if self._written:
            return
        self._written = True
        emulator = sys.modules.get("npulens_emulator.fallback")
        names = sys.modules.get("npulens_emulator.names")
        content = {
            "is_main": self.is_main,
            "rank": os.environ.get("RANK"),
            "files": self._files(),
            "seconds": round(time.monotonic() - self.started, 2),
            "steps": self.steps,
            "losses": self.losses,
            "parameters": self.parameters,
            "trained": self.trained,
            "first_step": self.first_step,
            "operators": sum(emulator.operators.values()) if emulator else 0,
            "tests": self.tests,
            "unknown_names": list(names.unknown) if names else [],
            "cuda_calls": [[*key, count] for key, count in self.cuda_calls.items()],
            "events": [[*key, count] for key, count in self.events.items()],
            "apis": [[*key, count] for key, count in self.apis.items()],
            "types": [[*key, count] for key, count in self.types.items()],
            "lines": sorted(self.lines),
            "shapes": [[*name, shapes] for name, shapes in self.shapes.items()],
            "refused": sorted(self.refused),
            "end": self.end,
        }
        target = self.folder / f"{os.getpid()}.json"
        unfinished = target.with_suffix(".part")
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(target)

    def _files(self) -> list[str]:
        """The files of the user's code that were imported or run."""
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        script = self.settings["script"]
        found = {self.relative(file) for file in (*files, script) if isinstance(file, str)}
        return sorted(path for path in found if path is not None)


_record: Record | None = None


def record() -> Record:
    """The report of this process, which is started when it is first asked for."""
    global _record
    if _record is None:
        _record = Record(Path(os.environ["NPULENS_VERIFY"]))
        _record.start()
    return _record
