"""Runs one script in this process, as `python script.py` or `python -m module` would.

    NPULENS_VERIFY=FOLDER python -m npulens_emulator.run

The `settings.json` in FOLDER also says

- `script` or `module`: what to run, and `arguments`;
- `cells`: if the script is a notebook, the Python of its cells, each with its first line;
- `root` and `original`: the folder of the user's code and the one it was copied from;
- `offline`: whether connections to other machines are refused;
- `memory`: how many bytes of data the process may have, or null.

PyTorch loads the emulated NPU by itself when it is imported.
"""

import ctypes
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from npulens_emulator.notebook import run_cells
from npulens_emulator.watch.lines import watch_lines
from npulens_emulator.watch.network import refuse_network
from npulens_emulator.watch.record import Record, record
from npulens_emulator.watch.standard_input import watch_input

_PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that a process gets when the thread that started it ends."""


def main() -> None:
    """Run it, and note how it ends."""
    _end_with_parent()
    ours = record()
    ours.is_main = True
    settings = ours.settings
    watch_input(ours)
    refuse_network(ours)
    watch_lines(ours)
    _limit_memory(settings["memory"])
    _find_the_copy(settings)
    arguments: list[str] = settings["arguments"]
    try:
        if settings["module"] is not None:
            sys.path.insert(0, str(Path.cwd()))
            if settings["module"] == "pytest":
                ours.tests = {}
                arguments = ["-p", "npulens_emulator.watch.pytest_watch", *arguments]
            sys.argv = [settings["module"], *arguments]
            runpy.run_module(settings["module"], run_name="__main__", alter_sys=True)
        else:
            script = settings["script"]
            sys.path.insert(0, str(Path(script).parent))
            sys.argv = [script, *arguments]
            if settings["cells"] is not None:
                run_cells(script, settings["cells"])
            else:
                runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            _note_exit(ours, error)
        raise


def _end_with_parent() -> None:
    """Who started the run enforces its limits; if that is killed, the run must not go on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _note_exit(ours: Record, error: SystemExit) -> None:
    ours.ended_by(error, error.__traceback__)
    ours.end["code"] = error.code if isinstance(error.code, int) else 1
    if not isinstance(error.code, int):
        ours.end["message"] = str(error.code)


def _limit_memory(memory: int | None) -> None:
    if memory is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _find_the_copy(settings: dict[str, Any]) -> None:
    """What is installed in place, or put on the path, is imported from the copy, too."""
    del sys.path[0]  # of this module
    original, root = Path(settings["original"]), Path(settings["root"])
    for number, entry in enumerate(sys.path):
        path = Path(os.path.realpath(entry))
        if path.is_relative_to(original):
            inside = root / path.relative_to(original)
            if inside.is_dir():
                sys.path[number] = str(inside)


if __name__ == "__main__":
    main()
