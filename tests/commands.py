"""The command as a user runs it, and files for it to read."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import npulens
from forked_processes import can_fork, run_forked
from npulens.cli.main import cli

CODE = "import torch\ntorch.cuda.synchronize()\n"
CLEAN = "import torch\n"
PACKAGE_FOLDER = str(Path(npulens.__file__).parents[1])


def command(
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """Run the real command in a process of its own; what it prints is bytes."""
    given = {**os.environ, **(environment or {})}
    if can_fork():
        return run_forked(arguments, stdin, given, timeout)
    return subprocess.run(
        [sys.executable, "-m", "npulens", *arguments],
        input=stdin,
        capture_output=True,
        env=given,
        timeout=timeout,
        check=False,
    )


def git(*arguments: str, at: Path | None = None) -> str:
    """Run git with the name of an author, in a folder; what it prints."""
    settings = ["user.name=A", "user.email=a@b", "protocol.file.allow=always"]
    command = ["git", *(word for each in settings for word in ("-c", each)), *arguments]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, check=True).stdout


def invoke(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    """Run the command in this process: its exit code, output, and errors."""
    result = CliRunner().invoke(cli, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def records(*arguments: str, stdin: bytes | None = None) -> list[dict[str, Any]]:
    _, output, _ = invoke("check", "--output-format", "json", *arguments, stdin=stdin)
    found: list[dict[str, Any]] = json.loads(output)
    return found


def codes(*arguments: str, stdin: bytes | None = None) -> list[str]:
    return [record["code"] for record in records(*arguments, stdin=stdin)]


def found_in(here: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    """Paths and codes of what `check` finds in a folder that holds these files."""
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    _, output, errors = invoke("check", ".", "--output-format", "json")
    assert errors == ""
    return [(each["path"], each["code"]) for each in json.loads(output)]
