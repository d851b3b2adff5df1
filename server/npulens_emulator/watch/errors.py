"""What an error is, as npulens is told."""

import builtins
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

_MAX_MESSAGE = 2000
_EMULATOR = str(Path(__file__).parents[1])
_WATCH = str(Path(__file__).parent)
_TRACE = "Traceback (most recent call last):"
_FILE = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
_NAMED = re.compile(r"([\w.]+)(?:: (.*))?")


def described(
    error: BaseException,
    trace: TracebackType | None,
    relative: Callable[[str], str | None],
    is_input: Callable[[str, int], bool],
) -> dict[str, Any]:
    """What an error is, at the innermost line of the user's code.

    Args:
        error: The error.
        trace: Where it was raised.
        relative: The path of a file of the user's code below its folder; None for other files.
        is_input: Whether a line of the user's code has read from standard input.
    """
    frames = traceback.extract_tb(trace)
    own = [(path, each) for each in frames if (path := relative(each.filename)) is not None]
    path, line = (own[-1][0], own[-1][1].lineno) if own else (None, None)
    found: dict[str, Any] = {
        "type": type(error).__name__,
        "bases": _names(error),
        "message": str(error),
        "name": getattr(error, "name", None) or getattr(error, "filename", None),
        "path": path,
        "line": line,
        "source": own[-1][1].line if own else "",
        "asks_capability": bool(frames)
        and relative(frames[-1].filename) is None
        and _asks_capability(error, frames[-1]),
        "asks_environment": bool(frames) and _asks_environment(error, frames[-1]),
        "in_data_parallel": _is_of_data_parallel(frames[frames.index(own[-1][1]) :] if own else []),
        "in_emulator": bool(frames) and _is_ours(frames[-1]) and not _raises(frames[-1]),
        "refused_by_npu": bool(frames) and _is_ours(frames[-1]) and _raises(frames[-1]),
        "lacks_network": any("RefusedConnectionError" in _names(each) for each in _chain(error)),
        "lacks_module": _lacking_module(error),
        "reads_input": path is not None and line is not None and is_input(path, line),
    }
    if isinstance(error, SyntaxError) and (path := relative(error.filename or "<none>")):
        found |= {"path": path, "line": error.lineno, "message": error.msg}
    elif _TRACE in str(error):
        found |= _of_other_process(str(error), relative)
    found["message"] = found["message"][:_MAX_MESSAGE]
    return found


def _names(error: BaseException) -> list[str]:
    return [each.__name__ for each in type(error).__mro__]


def _lacking_module(error: BaseException) -> str | None:
    """The module for which an import error was raised that names another reason."""
    if not isinstance(error, ImportError) or error.name is not None:
        return None
    missing = (each for each in _chain(error) if isinstance(each, ModuleNotFoundError))
    return next((each.name for each in missing), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from, the latest first."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _asks_environment(error: BaseException, frame: traceback.FrameSummary) -> bool:
    """Whether `os.environ[...]` has raised it."""
    is_os = frame.filename == "<frozen os>" or frame.filename.endswith("os.py")
    return isinstance(error, KeyError) and is_os and frame.name == "__getitem__"


def _asks_capability(error: BaseException, frame: traceback.FrameSummary) -> bool:
    """Whether the capability of the device, which is `None`, was taken apart."""
    is_of_none = isinstance(error, TypeError) and "NoneType" in str(error)
    return is_of_none and "get_device_capability" in (frame.line or "")


def _is_of_data_parallel(frames: list[traceback.FrameSummary]) -> bool:
    """Whether `DataParallel` itself has failed, not the model that it calls."""
    files = [frame.filename.replace("\\", "/") for frame in frames]
    return any(file.endswith("/torch/nn/parallel/data_parallel.py") for file in files)


def _is_ours(frame: traceback.FrameSummary) -> bool:
    """Whether it is code of the emulator."""
    return frame.filename.startswith(_EMULATOR) and not frame.filename.startswith(_WATCH)


def _raises(frame: traceback.FrameSummary) -> bool:
    """Whether it refuses something, as an NPU does, and has not failed."""
    return (frame.line or "").startswith("raise")


def _of_other_process(message: str, relative: Callable[[str], str | None]) -> dict[str, Any]:
    """The error in the traceback that a worker of a loader, or a process, has handed over."""
    text = message[message.index(_TRACE) :]
    found: dict[str, Any] = {}
    places = [(relative(name), int(line)) for name, line in _FILE.findall(text)]
    own = [place for place in places if place[0] is not None]
    if own:
        found["path"], found["line"] = own[-1]
    behind = text[[*_FILE.finditer(text)][-1].end() :] if places else text
    told = next((each for each in behind.split("\n") if re.match(r"[A-Za-z_]", each)), "")
    named = _NAMED.match(told)
    if named is not None:
        name = named[1].rpartition(".")[2]
        kind = getattr(builtins, name, None)
        bases = kind.__mro__ if isinstance(kind, type) else ()
        found |= {"type": name, "message": named[2] or ""}
        found["bases"] = [name, *(each.__name__ for each in bases[1:])]
    return found
