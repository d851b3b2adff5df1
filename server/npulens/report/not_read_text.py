"""What was not read, in each language."""

from collections.abc import Mapping, Sequence

from npulens.catalog.model import Language, LocalizedText
from npulens.report.human import printable
from npulens.workspace.files.not_read import NotRead, Reason, numbers

_REASONS: Mapping[Reason, LocalizedText] = {
    Reason.IGNORED: LocalizedText("git ignores it and does not track it", "被 git 忽略且未跟踪"),
    Reason.ENVIRONMENT: LocalizedText("a virtual environment", "虚拟环境"),
    Reason.INSTALLED: LocalizedText("installed packages", "已安装的软件包"),
    Reason.BUILT: LocalizedText("made by a tool, by its name", "按名称判断为工具生成的内容"),
    Reason.OUTSIDE: LocalizedText("a link that leads out of the folder", "指向目录之外的链接"),
    Reason.SPECIAL: LocalizedText("neither a file nor a folder", "既不是文件也不是目录"),
    Reason.TOO_LARGE: LocalizedText("too large", "文件过大"),
    Reason.NOT_TEXT: LocalizedText("cannot be read as text", "无法作为文本读取"),
    Reason.CANNOT_BE_READ: LocalizedText("cannot be opened", "无法打开"),
    Reason.FAILED: LocalizedText("an internal error of npulens", "npulens 内部错误"),
    Reason.EXCLUDED: LocalizedText("excluded by the configuration", "被配置排除"),
}
_OPTION = LocalizedText(" (--show-skipped lists them)", "（--show-skipped 可列出）")


def reason_of(each: NotRead, language: Language) -> str:
    """Why something was not read."""
    return _REASONS[each.reason].in_language(language)


def counted(not_read: Sequence[NotRead], language: Language) -> str:
    """How many folders and files were not read, in a part of a sentence; empty if none."""
    folders, files = numbers(not_read)
    if language == "zh":
        parts = [f"{folders} 个目录"] * bool(folders) + [f"{files} 个文件"] * bool(files)
        return f"{'和 '.join(parts)}未读取" if parts else ""
    parts = [_counted(folders, "folder")] * bool(folders) + [_counted(files, "file")] * bool(files)
    return f"{' and '.join(parts)} not read" if parts else ""


def not_read_lines(not_read: Sequence[NotRead], is_listed: bool, language: Language) -> str:
    """What a command ends with; empty if all was read.

    Args:
        not_read: The files and folders.
        is_listed: Whether each is named, with what the user excluded.
        language: The language to say it in.
    """
    listed = not_read_list(not_read, language) if is_listed else ""
    number = counted(not_read, language)
    if not number:
        return listed
    hint = "" if is_listed else _OPTION.in_language(language)
    return f"{listed}{number}{hint}{'。' if language == 'zh' else '.'}\n"


def not_read_list(not_read: Sequence[NotRead], language: Language) -> str:
    """A line for each file and folder, with the reason."""
    colon = "：" if language == "zh" else ": "
    return "".join(
        f"{printable(each.path)}{'/' * each.is_folder}{colon}{reason_of(each, language)}\n"
        for each in not_read
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
