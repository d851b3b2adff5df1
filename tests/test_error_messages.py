"""What goes wrong is told in English and in Chinese."""

import errno
import os
import pickle
import re
from pathlib import Path

import pytest

from commands import CODE, command
from npulens.catalog.messages import (
    LocalizedError,
    about,
    cannot_be_read,
    message,
    os_error,
    plural,
)
from npulens.catalog.model import LocalizedText
from npulens.text.regular_files import read_regular

pytestmark = pytest.mark.usefixtures("here")

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def error_of(number: int, said: str) -> LocalizedText:
    return about("a.py", cannot_be_read(OSError(number, said)))


def test_a_reason_is_put_in_in_each_language() -> None:
    denied = error_of(errno.EACCES, os.strerror(errno.EACCES))
    assert denied.en == "a.py: cannot be read: Permission denied"
    assert denied.zh == "a.py：无法读取：权限不足"
    odd = error_of(9999, "Odd reason")
    assert odd == ("a.py: cannot be read: Odd reason", "a.py：无法读取：Odd reason")


def test_reasons_of_the_system_are_those_that_it_gives_itself() -> None:
    for name in ("ENOENT", "EACCES", "ENOSPC", "EROFS", "EISDIR", "ENOTDIR", "ENAMETOOLONG"):
        number = getattr(errno, name)
        text = os_error(OSError(number, os.strerror(number)))
        assert text.en == os.strerror(number)
        assert CHINESE.search(text.zh)


def test_files_that_are_not_read_say_why(here: Path) -> None:
    def why(path: Path) -> LocalizedText:
        with pytest.raises(OSError) as caught:
            read_regular(path, 0)
        return os_error(caught.value)

    (here / "large").write_text("x")
    os.mkfifo(here / "pipe")
    assert why(here).zh == "是一个目录"
    assert why(here / "large") == ("it is larger than 0 MB", "文件大于 0 MB")
    assert why(here / "pipe").zh == "它是管道、设备之类，不是普通文件"


def test_values_that_look_like_placeholders_stay_as_they_are() -> None:
    text = about("{what} {0}", message("error.no-such-line", file="{line}", line=1))
    assert text.en == "{what} {0}: {line} has no line 1"
    assert text.zh == "{what} {0}：{line} 没有第 1 行"


def test_numbers_have_a_form_for_one() -> None:
    assert plural("report.files", 1).en == "1 file"
    assert plural("report.files", 0).en == "0 files"


def test_errors_come_back_from_other_processes() -> None:
    error = LocalizedError(message("error.read-only"))
    again = pickle.loads(pickle.dumps(error))
    assert again.text == error.text
    assert str(again) == "is read-only"


CASES = {
    "path": (["check", "none"], "npulens: none：文件或目录不存在"),
    "usage": (["check", "--fix", "--watch"], "错误：--watch 不修改文件"),
    "option": (["check", "--nix"], "错误：没有选项 --nix（是否想输入："),
    "number": (["check", "--jobs", "x"], "错误：“--jobs”的值无效：必须是满足 x>=1 的整数"),
    "range": (["server", "--tcp", "-1"], "错误：“--tcp”的值无效：必须是满足 0<=x<=65535 的整数"),
    "choice": (["check", "--language", "x"], "错误：“--language”的值无效：只能是 'en', 'zh' 之一"),
    "version": (["check", "--torch-version", "x"], "错误：“--torch-version”的值无效：“x”不是"),
    "no value": (["check", "--jobs"], ": 选项 --jobs 需要一个值"),
    "value of a switch": (["check", "--fix=1"], ": 选项 --fix 不接受值"),
    "more": (["rule", "a", "b", "c"], "错误：多余的参数：b c"),
    "argument": (["rule"], "错误：缺少参数 CODE"),
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
