"""What goes wrong is told in English and in Chinese."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import npulens
from commands import CODE, command
from npulens.catalog.error_messages import error_message

pytestmark = pytest.mark.usefixtures("here")

PACKAGE = Path(npulens.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
RAISED = {
    *("Refusal", "UsageError", "BadParameter", "ConfigurationError", "CatalogueError"),
    *(
        "PlaceError",
        "BaselineError",
        "GitError",
        "CommittedError",
        "NotReplacedError",
        "CannotVerifyError",
    ),
    *("UnreadableNotebook", "_UnknownReasonError"),
}
"""What ends a command, or is a part of the sentence that does."""


def shown(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be; values in it are an `X`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(map(part_shown, node.values))


def part_shown(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    # What may be added to a sentence may be nothing.
    return "" if ast.unparse(part.value).partition("(")[0] in ("nearest", "but") else "X"


def sentences() -> Iterator[tuple[str, str]]:
    """All sentences of the sources, with their places."""
    for folder in ("cli", "workspace", "catalog", "text"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                given: list[ast.expr] = []
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    if name in RAISED or name in ("complain", "_not_fixed"):
                        given += node.args
                    given += [word.value for word in node.keywords if word.arg == "problem"]
                elif isinstance(node, ast.Assign):
                    targets = [ast.unparse(target) for target in node.targets]
                    if any(target == "problem" or "problems[" in target for target in targets):
                        given.append(node.value)
                for text in (text for each in given for text in shown(each)):
                    if " " in text:
                        yield f"{file.relative_to(PACKAGE)}:{node.lineno}", text


def test_every_sentence_is_translated() -> None:
    found = list(sentences())
    assert len(found) > 60
    of_parts = re.compile(r"(?:--log-folder )?X(?:: (?:rules )?X)+")
    missing = [
        (place, text)
        for place, text in found
        if not of_parts.fullmatch(text) and not CHINESE.search(error_message(text, "zh"))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("a.py: cannot be read: Permission denied", "a.py：无法读取：权限不足"),
        ("a: b.py: cannot be read: Odd reason", "a: b.py：无法读取：Odd reason"),
        (
            'x.toml: unknown key "selct"; did you mean "select"?',
            "x.toml：未知的键“selct”；是否想输入“select”？",
        ),
        (
            'x.toml: "select" must be a list of texts that are not empty',
            "x.toml：“select”必须是由非空文本组成的列表",
        ),
        (
            "nothing is migrated: src/a.py changed meanwhile; try again",
            "未做任何迁移：src/a.py 在此期间发生变化；请重试",
        ),
        ("something nobody foresaw", "something nobody foresaw"),
        (": " * 400 + "x", ": " * 400 + "x"),
    ],
)
def test_sentences(english: str, chinese: str) -> None:
    assert error_message(english, "en") == english
    assert error_message(english, "zh") == chinese


CASES = {
    "path": (["check", "none"], "npulens: none：文件或目录不存在"),
    "usage": (["check", "--fix", "--watch"], "错误：--watch 不修改文件"),
    "option": (["check", "--nix"], "错误：没有选项 --nix（是否想输入："),
    "value": (["check", "--jobs", "x"], "错误：“--jobs”的值无效：'x' 不是有效的整数"),
    "one option alike": (["check", "--foo"], "错误：没有选项 --foo。是否想输入 '--fix'？"),
    "command": (["chek"], "错误：没有命令“chek”。是否想输入 'check'？"),
    "how": (["migrate"], "用法：npulens migrate [OPTIONS] SRC\n请用“npulens migrate --help”"),
    "rule": (["rule", "NPU9999"], "npulens: 没有规则“NPU9999”"),
    "migration": (["migrate", ".", "-o", "sub"], "npulens: sub：位于要迁移的目录之内"),
    "baseline": (["check", "--baseline", "none"], "npulens: none：无法读取：文件或目录不存在"),
}


@pytest.mark.family(4)
@pytest.mark.parametrize("name", CASES)
def test_in_the_language_of_the_environment(here: Path, name: str) -> None:
    arguments, expected = CASES[name]
    (here / "a.py").write_text(CODE)
    result = command(*arguments, environment={"LANG": "zh_CN.UTF-8", "LC_ALL": ""})
    assert result.returncode == 2
    assert expected in result.stderr.decode()
    english = command(*arguments, environment={"LANG": "C", "LC_ALL": ""})
    assert not CHINESE.search(english.stderr.decode())


def test_in_the_language_that_is_asked_for(here: Path) -> None:
    for arguments in (["none", "--language", "zh"], ["--jobs", "x", "--language", "zh"]):
        assert CHINESE.search(command("check", *arguments).stderr.decode())
    (here / "npulens.toml").write_text('language = "zh"\n')
    assert command("check", "none").stderr.decode() == "npulens: none：文件或目录不存在\n"
    asked = command("check", "none", "--language", "en").stderr.decode()
    assert asked == "npulens: none: No such file or directory\n"


def test_in_the_log_of_a_migration(here: Path) -> None:
    (here / "src").mkdir()
    # One character of cp932 that has two codes.
    (here / "src/b.py").write_bytes(b"# coding: cp932\n# \xfa\x5c\n" + CODE.encode())
    result = command("migrate", "src", "-o", "dst", "--language", "zh")
    assert result.returncode == 2
    assert result.stderr.decode() == "npulens: b.py：未修复：编码 cp932 无法还原出相同的字节\n"
    log = (here / "dst/npulens-migration/change_log.md").read_text(encoding="utf-8")
    assert "未修复：编码 cp932 无法还原出相同的字节" in log
