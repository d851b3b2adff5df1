"""Real files of released packages, which `scripts/install_corpora.sh` unpacks."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / ".corpora"
_WORDS = (b"cuda", b"nccl", b"torch")
_LARGEST = 120_000


def packages() -> list[Path]:
    """The folders of all packages.

    They are skipped on machines without a network, but for those that set `NPULENS_CORPORA`.
    """
    if not FOLDER.is_dir():
        if os.environ.get("NPULENS_CORPORA") == "required":
            raise AssertionError("run scripts/install_corpora.sh first")
        pytest.skip("scripts/install_corpora.sh has not been run")
    return sorted(path for path in FOLDER.iterdir() if path.is_dir())


def files(count: int, seed: int) -> list[Path]:
    """Some Python files about GPUs or PyTorch, drawn from all packages, which may be skipped."""
    packages()
    return random.Random(seed).sample(sorted(_candidates()), count)


def _candidates() -> Iterator[Path]:
    for path in FOLDER.rglob("*.py"):
        if path.stat().st_size < _LARGEST:
            content = path.read_bytes()
            if any(word in content for word in _WORDS):
                yield path


def texts(count: int, seed: int) -> Iterator[tuple[Path, str]]:
    """The same with their texts, which end with a line ending."""
    for path in files(count, seed):
        text = path.read_text(encoding="utf-8", errors="replace")
        yield path, text if text.endswith("\n") else f"{text}\n"
