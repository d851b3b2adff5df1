"""Runs a script in processes of its own, with limits, and gathers what they report."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Literal

import npulens_emulator
from npulens.catalog.messages import LocalizedError, message
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.notebooks import notebook_text
from npulens.workspace.verifying.notebook_cells import RunCell, cells_to_run

Device = Literal["npu", "cpu"]
"""Where a script runs: on the emulated NPU, or with CUDA redirected to the CPU."""

_ENTRY_POINTS: Mapping[Device, str] = {
    "npu": "torch_npu = torch_npu:_autoload",
    "cpu": "npulens_cuda_on_cpu = npulens_emulator.cuda_on_cpu:_autoload",
}
"""What PyTorch loads when it is imported."""

_GRACE = 3.0
"""Seconds between the request to end and the end."""
_INTERVAL = 0.02
_KEPT_LINES = 40
_SECONDS = 300.0
"""The limit unless another is given."""


IsCancelled = Callable[[], bool]
"""Tells whether nobody waits for a run any more."""


class CannotVerifyError(LocalizedError):
    """No run is possible here; the text says why."""


class CancelledRunError(Exception):
    """Nobody waits for the run any more; its processes were ended."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to run.

    Attributes:
        script: The path of the script or notebook below the folder of the project, or None.
        module: The name of the module, or None.
        processes: How many processes to start as a launcher would, or None for one without.
        place: The folder below that of the project in which it runs, or None for the usual one.
    """

    script: str | None
    module: str | None
    arguments: tuple[str, ...]
    processes: int | None = None
    place: str | None = None

    @property
    def notebook(self) -> str | None:
        """The path of the script if it is a notebook."""
        is_notebook = self.script is not None and kind_by_name(self.script) is Kind.NOTEBOOK
        return self.script if is_notebook else None


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends.

    Attributes:
        steps: After so many optimizer steps, or None.
        seconds: After so many seconds.
        memory: With so many bytes of data in one process, or None.
        steps_are_given: Whether the user has set that limit.
        seconds_are_given: The same of the seconds.
    """

    steps: int | None
    seconds: float
    memory: int | None
    steps_are_given: bool = False
    seconds_are_given: bool = False

    @classmethod
    def given(
        cls, steps: int | None, seconds: float | None, memory: int | None = None, usual: int = 3
    ) -> "Limits":
        """The limits that a user sets, with those that hold where none is given.

        Args:
            steps: How many optimizer steps; 0 for no such limit.
            seconds: How many seconds.
            memory: How many bytes of data in one process.
            usual: How many steps where none are given; 0 for no such limit.
        """
        return cls(
            steps=(usual if steps is None else steps) or None,
            seconds=_SECONDS if seconds is None else float(seconds),
            memory=memory,
            steps_are_given=steps is not None,
            seconds_are_given=seconds is not None,
        )


@dataclass(frozen=True, slots=True)
class Watching:
    """What else the processes are told.

    Attributes:
        seed: What random numbers start from.
        parameters: Whether the sizes of parameters are reported.
        apis: APIs that do not work on the NPU, and why.
        types: APIs with the types of tensors that they do not take there.
        offline: Whether connections to other machines are refused.
        shapes: Whether the shapes of what is assigned to names are reported.
    """

    seed: int
    parameters: bool
    apis: Mapping[str, str]
    types: Mapping[str, list[str]]
    offline: bool = False
    shapes: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run left.

    Attributes:
        reports: Those of the processes, the started ones first, by rank.
        timed_out: Whether it was ended by the limit of seconds.
        code: The exit code of the first process that failed, or 0.
    """

    reports: tuple[dict[str, Any], ...]
    timed_out: bool
    code: int
    output: tuple[str, ...]
    limits: Limits = Limits(None, 0, None)

    @property
    def steps(self) -> int:
        """The optimizer steps of the process that made most."""
        return max((report["steps"] for report in self.reports), default=0)

    @property
    def main(self) -> dict[str, Any] | None:
        """The report that losses are taken from: the first of a process that trained, if any."""
        trained = [report for report in self.reports if report["steps"]]
        return next(iter(trained or self.reports), None)


def torch_release() -> str:
    """The version of PyTorch that scripts would run with, without importing it.

    Raises:
        CannotVerifyError: There is none, or none that the emulator is made for.
    """
    oldest, newest = (".".join(map(str, each)) for each in npulens_emulator.RELEASES)
    wanted = message("error.wanted-pytorch", oldest=oldest, newest=newest)
    try:
        found = version("torch")
    except PackageNotFoundError:
        raise CannotVerifyError(message("error.no-pytorch", wanted=wanted)) from None
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not npulens_emulator.RELEASES[0] <= numbers <= npulens_emulator.RELEASES[1]:
        raise CannotVerifyError(message("error.other-pytorch", wanted=wanted, found=found))
    return found


def run(
    task: Task,
    device: Device,
    folder: Path,
    original: Path,
    work: Path,
    limits: Limits,
    watching: Watching,
    is_cancelled: IsCancelled = lambda: False,
) -> RunResult:
    """Run a task and end all its processes.

    Args:
        task: What to run.
        device: Where.
        folder: The folder that holds the code.
        original: The folder of the user that it was copied from.
        work: An empty folder for the run itself.
        limits: When it ends.
        watching: What is told to the processes.
        is_cancelled: Asked all the time.

    Raises:
        CancelledRunError: Nobody waits for it any more.
    """
    if is_cancelled():
        raise CancelledRunError
    _write_settings(work, task, folder, original, limits, watching)
    _write_entry_point(work, device)
    environment = _environment(work, task, device, watching.offline)
    place = _place(task, folder)
    processes = [_start(place, {**environment, **ranks}) for ranks in _ranks(task.processes)]
    tails = [_Tail(process.stdout) for process in processes]
    try:
        timed_out = _wait(processes, limits.seconds, is_cancelled)
    finally:
        _end_all(processes, work)
    output = [line for tail in tails for line in tail.lines()]
    codes = [process.returncode for process in processes]
    return RunResult(
        _reports(work),
        timed_out,
        next(filter(None, codes), 0),
        tuple(output[-_KEPT_LINES:]),
        limits,
    )


def _place(task: Task, folder: Path) -> Path:
    """Where it runs: a kernel works where its notebook is, a shell where the project is."""
    if task.place is not None:
        return folder / task.place
    return folder if task.notebook is None else (folder / task.notebook).parent


def _write_settings(
    work: Path, task: Task, folder: Path, original: Path, limits: Limits, watching: Watching
) -> None:
    content = {
        "root": str(folder),
        "original": str(original),
        "script": None if task.script is None else str(folder / task.script),
        "cells": None if task.notebook is None else _cells(folder / task.notebook),
        "module": task.module,
        "arguments": task.arguments,
        "steps": limits.steps,
        "memory": limits.memory,
        "seed": watching.seed,
        "parameters": watching.parameters,
        "apis": dict(watching.apis),
        "types": dict(watching.types),
        "offline": watching.offline,
        "shapes": watching.shapes,
    }
    (work / "settings.json").write_text(json.dumps(content), encoding="utf-8")


def _cells(notebook: Path) -> list[RunCell]:
    return [*cells_to_run(notebook_text(notebook.read_bytes()))]


def _write_entry_point(work: Path, device: Device) -> None:
    """A distribution beside PyTorch's, by which it finds the device, as on a machine with NPUs."""
    name = "torch_npu" if device == "npu" else "npulens_cuda_on_cpu"
    release = version("torch").partition("+")[0]
    metadata = work / "path" / f"{name}-{release}.dist-info"
    metadata.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
    (metadata / "METADATA").write_text(head, encoding="utf-8")
    entry_points = f"[torch.backends]\n{_ENTRY_POINTS[device]}\n"
    (metadata / "entry_points.txt").write_text(entry_points, encoding="utf-8")


def _environment(work: Path, task: Task, device: Device, offline: bool) -> dict[str, str]:
    environment = dict(os.environ)
    if offline:  # a proxy may be of this machine
        proxies = [name for name in environment if name.lower().endswith("_proxy")]
        for name in proxies:
            del environment[name]
    path = [str(work / "path"), *([str(npulens_emulator.STAND_IN)] if device == "npu" else [])]
    # What was relative to the folder of the user is not so to the copy.
    given = environment.get("PYTHONPATH", "").split(os.pathsep)
    path += [str(Path(entry).absolute()) for entry in given if entry]
    environment |= {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "NPULENS_VERIFY": str(work),
        "NPULENS_SHARED_RANDOM": "1",
        "NPULENS_EMULATED_NPUS": str(max(1, task.processes or 1)),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    }
    # Threads that wait for each other on busy cores cost more than they save on small models.
    environment.setdefault("OMP_NUM_THREADS", "1")
    return environment


def _ranks(processes: int | None) -> list[dict[str, str]]:
    """The variables of each process, as launchers set them."""
    if processes is None:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]


def _start(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "npulens_emulator.run"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


class _Tail:
    """The last lines of what a process prints, read as it comes."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while line := self._stream.readline(1 << 16):
                self._lines.append(line)
        except (OSError, ValueError):  # closed
            return

    def lines(self) -> list[str]:
        """What is known so far."""
        self._thread.join(_GRACE)
        return [line.decode("utf-8", "replace").rstrip("\r\n") for line in list(self._lines)]


def _wait(
    processes: Sequence["subprocess.Popen[bytes]"], seconds: float, is_cancelled: IsCancelled
) -> bool:
    """Wait until all ended, or one failed; True if the time was over before."""
    end = time.monotonic() + seconds
    while any(process.poll() is None for process in processes):
        if any(process.returncode for process in processes):  # the others would wait for it
            return False
        if time.monotonic() > end:
            return True
        if is_cancelled():
            raise CancelledRunError
        time.sleep(_INTERVAL)
    return False


def _end_all(processes: Sequence["subprocess.Popen[bytes]"], work: Path) -> None:
    """End the processes and all that they started."""
    _signal_groups([each for each in processes if each.poll() is None], signal.SIGTERM)
    end = time.monotonic() + _GRACE
    while any(process.poll() is None for process in processes) and time.monotonic() < end:
        time.sleep(_INTERVAL)
    _signal_groups(processes, getattr(signal, "SIGKILL", signal.SIGTERM))
    for process in processes:
        process.wait()
    _end_strays(work)


def _signal_groups(processes: Sequence["subprocess.Popen[bytes]"], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):  # ended already
            if sys.platform == "win32":
                process.terminate()
            else:
                os.killpg(process.pid, number)


def _end_strays(work: Path) -> None:
    """End what left its group; on Linux it is known by the folder in its environment."""
    mark = f"NPULENS_VERIFY={work}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or ended
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), getattr(signal, "SIGKILL", signal.SIGTERM))


def _reports(work: Path) -> tuple[dict[str, Any], ...]:
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(work.glob("*.json"))
        if path.stem.isdigit()
    ]
    return tuple(sorted(found, key=lambda each: (not each["is_main"], int(each["rank"] or 0))))
