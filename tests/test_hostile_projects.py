"""Projects whose files would hold up whoever reads them: they cost only themselves, and little."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import command
from lsp_client import LspClient
from npulens.catalog.name_expressions import is_quick
from npulens.workspace.settings.path_patterns import Pattern, Patterns, read_pattern

CODE = "import torch\ntorch.cuda.synchronize()\n"
SOON = 15.0
"""Seconds; without bounds, each of these takes hours or all memory."""
STARS = "*a" * 40 + "*b"
RULE = {
    "code": "OWN001",
    "name": "own-key",
    "severity": "error",
    "message": {"en": "No.", "zh": "不。"},
    "explanation": {"en": "No.", "zh": "不。"},
    "examples": [{"before": ["x = 1"], "after": ["x = 1"]}],
}


def pipe(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        if name == "rules.json":
            (folder / "npulens.toml").write_text('extend-rules = ["rules.json"]\n')
        os.mkfifo(folder / name)

    return make


def endless(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        if name.startswith("rules."):
            (folder / "npulens.toml").write_text(f'extend-rules = ["{name}"]\n')
        (folder / name).symlink_to("/dev/zero")

    return make


def configured(text: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "npulens.toml").write_text(text)

    return make


def own_launch_rule(value: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        entry = {"place": "key", "name": "k", "value": value, "rule": "own-key", "source": "us"}
        content = {"family": "own", "rules": [RULE], "launch": [entry]}
        (folder / "rules.json").write_text(json.dumps(content))
        (folder / "npulens.toml").write_text('extend-rules = ["rules.json"]\n')
        (folder / "conf.yaml").write_text(f"k: {'a' * 200}!\n")

    return make


def requirements(folder: Path) -> None:
    for name in ("requirements.txt", "setup.cfg", "environment.yml", ".gitignore"):
        os.mkfifo(folder / name)
    (folder / "setup.py").symlink_to("/dev/zero")
    (folder / "pyproject.toml").write_text("a." * 60_000 + "a = 1\n")


SPECIAL = "it is a pipe, a device or the like"
REFUSED = {
    "pipe npulens.toml": (pipe("npulens.toml"), f"npulens.toml: cannot be read: {SPECIAL}"),
    "pipe pyproject.toml": (pipe("pyproject.toml"), f"pyproject.toml: cannot be read: {SPECIAL}"),
    "pipe rules": (pipe("rules.json"), f"rules.json: cannot be read: {SPECIAL}"),
    "endless npulens.toml": (endless("npulens.toml"), f"npulens.toml: cannot be read: {SPECIAL}"),
    "endless pyproject.toml": (
        endless("pyproject.toml"),
        f"pyproject.toml: cannot be read: {SPECIAL}",
    ),
    "endless rules": (endless("rules.json"), f"rules.json: cannot be read: {SPECIAL}"),
    "endless patterns": (endless("rules.py"), f"rules.py: cannot be read: {SPECIAL}"),
    "dotted key": (
        configured("a." * 60_000 + "a = 1\n"),
        "npulens.toml: not valid TOML: line 1: a key has more than 100 parts",
    ),
    "dotted header": (
        configured("\n[" + "a . 'b'." * 30_000 + "a]\n"),
        "npulens.toml: not valid TOML: line 2: a key has more than 100 parts",
    ),
    "dotted key inside": (
        configured("x = {y = 1, " + '"a".' * 30_000 + "a = 1}\n"),
        "npulens.toml: not valid TOML: line 1: a key has more than 100 parts",
    ),
    "nested": (
        configured("x = " + "[" * 100_000),
        "npulens.toml: not valid TOML: it is nested too deeply",
    ),
    "long number": (
        configured("x = " + "1" * 5000 + "\n"),
        "npulens.toml: not valid TOML: Exceeds the limit",
    ),
    "large": (configured("#" * 1_000_001), "npulens.toml: cannot be read: it is larger than 1 MB"),
    "expression": (
        own_launch_rule("(a+)+b"),
        'key k (a+)+b: "value" must repeat single characters only, in two places at most',
    ),
}
TAKEN: dict[str, Callable[[Path], None]] = {
    "exclude": configured(f'exclude = ["{STARS}"]\n'),
    "exclude folders": configured(f'exclude = ["{"**/a*/" * 200}b"]\n'),
    "per-file-ignores": configured(f'[per-file-ignores]\n"{STARS}" = ["NPU1"]\n'),
    "requirements": requirements,
    "expression that is quick": own_launch_rule("(a.*a|a?b?a*)c"),
}
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")


def project(folder: Path, make: Callable[[Path], None]) -> Path:
    """A hostile project with a file whose path has many ways to fit its patterns."""
    folder.mkdir()
    make(folder)
    file = folder / f"{'a' * 120}.py"
    file.write_text(CODE)
    return file


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_configuration_is_refused(here: Path, name: str) -> None:
    make, sentence = REFUSED[name]
    project(here / "bad", make)
    started = time.monotonic()
    result = command("check", "bad")
    assert time.monotonic() - started < SOON
    told = result.stderr.decode()
    assert result.returncode == 2 and told.count("\n") == 1
    assert sentence in told and "internal" not in told


@pytest.mark.parametrize("name", TAKEN)
def test_what_could_take_long_does_not(here: Path, name: str) -> None:
    file = project(here / "bad", TAKEN[name])
    started = time.monotonic()
    result = command("check", "bad")
    assert time.monotonic() - started < SOON
    assert result.returncode == 1 and file.name in result.stdout.decode()


@pytest.mark.family(4)
@pytest.mark.parametrize("name", [*REFUSED, *TAKEN])
def test_in_an_editor_other_projects_are_served(tmp_path: Path, name: str) -> None:
    bad = project(tmp_path / "bad", REFUSED[name][0] if name in REFUSED else TAKEN[name])
    good = tmp_path / "good/a.py"
    good.parent.mkdir()
    good.write_text(CODE)
    folders = [{"uri": file.parent.as_uri(), "name": file.parent.name} for file in (bad, good)]
    with LspClient() as client:
        client.initialize(workspaceFolders=folders)
        client.open(bad.as_uri(), CODE)
        client.open(good.as_uri(), CODE)
        started = time.monotonic()
        assert [found["code"] for found in client.diagnostics(good.as_uri(), 1)] == ["NPU101"]
        place = {"line": 1, "character": 15}
        hover = {"textDocument": {"uri": good.as_uri()}, "position": place}
        assert "torch.npu.synchronize" in str(client.request("textDocument/hover", hover))
        # The hostile one is analysed as well, and its user hears what is wrong.
        assert [found["code"] for found in client.diagnostics(bad.as_uri(), 1)] == ["NPU101"]
        if name in REFUSED:
            client.wait(lambda: bool(client.shown))
            assert REFUSED[name][1] in client.shown[0]["message"]
        assert time.monotonic() - started < SOON


def test_a_project_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    """A disk that does not answer: here, a program that waits before each look at the folder."""
    bad = project(tmp_path / "bad", lambda folder: None)
    good = tmp_path / "good/a.py"
    good.parent.mkdir()
    good.write_text(CODE)
    program = tmp_path / "slow.py"
    program.write_text(
        "import sys, time\n"
        "from npulens.lsp import transports\n"
        "from npulens.workspace.project import file_context\n"
        "find = file_context.find_configuration\n"
        "def slow(path, settings):\n"
        "    if 'bad' in str(path):\n"
        "        time.sleep(600)\n"
        "    return find(path, settings)\n"
        "file_context.find_configuration = slow\n"
        "transports.serve_stdio()\n"
    )
    folders = [{"uri": file.parent.as_uri(), "name": file.parent.name} for file in (bad, good)]
    with LspClient([sys.executable, str(program)]) as client:
        client.initialize(workspaceFolders=folders)
        client.open(bad.as_uri(), CODE)
        client.open(good.as_uri(), CODE)
        assert [found["code"] for found in client.diagnostics(good.as_uri(), 1)] == ["NPU101"]
        client.save(bad.as_uri())
        client.save(good.as_uri())
        client.open((good.parent / "b.py").as_uri(), CODE)
        assert client.diagnostics((good.parent / "b.py").as_uri(), 1)


# Patterns


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_patterns_mean_what_they_mean_to_git(here: Path) -> None:
    chosen = random.Random(7)
    letters = ["a", "b", "*", "**", "?", "/", "[ab]", "[!a]", "[^b-c]", "\\*", "\\a", "/", "c"]
    extras = ["*", "!a", "a/", "/a", "**/b", "a/**", "a/**/b", "**", "!**/", "[]a]", "[a]]", "\\!a"]
    extras += ["a\\ ", "b ", "*.*", "a**b", "**a", "[a-]", "[\\]a]", "!/b/", "***/a", "[b", "\\#a"]
    patterns = ["".join(chosen.choices(letters, k=chosen.randint(1, 6))) for _ in range(300)]
    lists = [chosen.sample(patterns + extras * 4, chosen.randint(1, 4)) for _ in range(150)]
    lists += [[extra] for extra in extras]
    names = ["a", "b", "ab", "ba", "*", "c", "!a", "]", "a ", "a.b", "-", "#a"]
    paths = {"/".join(chosen.choices(names, k=chosen.randint(1, 3))) for _ in range(120)}
    subprocess.run(["git", "init", "-q"], check=True)
    asked = "\0".join(sorted(paths)).encode()
    for lines in lists:
        if any(line.startswith("#") for line in lines):
            continue
        (here / ".gitignore").write_text("\n".join(lines) + "\n")
        told = subprocess.run(
            ["git", "check-ignore", "--no-index", "-z", "--stdin"],
            input=asked,
            capture_output=True,
            check=False,
        )
        expected = set(told.stdout.decode().split("\0")) - {""}
        ignoring = Patterns(pattern for line in lines for pattern in valid(line))
        found = {path for path in paths if ignoring.ignores(path)}
        assert found == expected, lines


def valid(line: str) -> list[Pattern]:
    try:
        return [read_pattern(line)]
    except ValueError:
        return []


@pytest.mark.parametrize("pattern", ["", "!", "/", "[z-a]", "[", "a\\", "a" * 5000])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(ValueError):
        read_pattern(pattern)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cuda", True),
        (r"(gpu|cuda)(:\d+)?", True),
        (r"nvidia\.com/gpu.*", True),
        (r".*gpu.*", True),
        (r"[\w.-]+/team:.*-cu1\d", True),
        (r"a{2,4}b{3}", True),
        ("(?:a|b|c)?", True),
        (r"\(\[", True),
        ("(a+)+", False),
        ("(a|a)*", False),
        ("(?:a?){30}", False),
        ("a?" * 40, False),
        (".*.*.*b", False),
        ("(?:(?:.*)?.*)?.*", False),
        ("(?=a)b", False),
        ("(?<!a)b", False),
        (r"(a)\1", False),
        ("(?i:a)", False),
        ("((((a?b?)?c?)?d?)?e?)?" * 9, False),
    ],
)
def test_expressions_that_are_quick(expression: str, expected: bool) -> None:
    assert is_quick(expression) is expected
