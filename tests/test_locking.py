"""The lock that keeps two runs from one tree."""

import errno
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from npulens.workspace.files import locking


def windows_like(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as Windows loads it, on locks that behave as those of Windows."""
    taken: set[tuple[int, int]] = set()
    open_handles: dict[int, tuple[int, int]] = {}
    close, unlink = os.close, Path.unlink

    def identity(status: os.stat_result) -> tuple[int, int]:
        return status.st_dev, status.st_ino

    def lock(handle: int, mode: int, length: int) -> None:
        assert (mode, length) == (2, 1)
        file = identity(os.fstat(handle))
        if file in taken:
            raise OSError(errno.EACCES, "Permission denied")
        taken.add(file)
        open_handles[handle] = file

    def close_and_release(handle: int) -> None:
        taken.discard(open_handles.pop(handle, (0, 0)))
        close(handle)

    def unlink_closed(path: Path, missing_ok: bool = False) -> None:
        if identity(path.stat()) in open_handles.values():
            raise PermissionError(errno.EACCES, "in use")
        unlink(path, missing_ok)

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=lock, LK_NBLCK=2))
    monkeypatch.setattr(os, "close", close_and_release)
    monkeypatch.setattr(Path, "unlink", unlink_closed)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("locking_on_windows", locking.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_at_a_time_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = windows_like(monkeypatch)
    place = tmp_path / "lock"
    for _ in range(2):
        with module.Lock(place):
            assert place.exists()
            with pytest.raises(module.LockedError), module.Lock(place):
                raise AssertionError
            assert place.exists()
        assert not place.exists()


def test_of_two_processes_one_waits_for_none(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    script = (
        "import sys\nfrom pathlib import Path\nfrom npulens.workspace.files.locking import Lock\n"
        "with Lock(Path(sys.argv[1])):\n    print('taken', flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline().strip() == b"taken"
    with pytest.raises(locking.LockedError), locking.Lock(place):
        raise AssertionError
    other.kill()
    other.communicate()
    with locking.Lock(place):
        assert place.exists()
    assert not place.exists()
