"""What the style `device-agnostic` makes of scripts and settings, which choose one device each.

A value that holds for all devices is written where the tables have one, and variables of the NPU
are added behind those of CUDA. For the rest there is a sentence on what to do by hand.
"""

from collections.abc import Collection, Mapping

from npulens.catalog.localized import LocalizedText
from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import Edit
from npulens.catalog.tables import Choice, EnvironmentEntry, LaunchEntry, Place
from npulens.text.kinds import Kind
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_CHOICES: Mapping[Choice, MessageId] = {
    Choice.DEVICE: "check.device-for-each",
    Choice.BACKEND: "check.backend-for-each",
    Choice.ACCELERATOR: "check.accelerator-for-each",
}
_SETTINGS = frozenset({Place.OPTION, Place.SETTING})
"""What a program reads; keys without such an entry are for schedulers and containers."""
_PACKAGES = frozenset({Place.PACKAGE, Place.EXTRA, Place.INDEX})
_PLAIN = r"(?:[\w.,:+/@=-]|\$(?=\w)|\$\{\w+\})*"
_ASSIGNMENT = rf"(?P<value>\"{_PLAIN}\"|'[\w.,:+/@=-]*'|{_PLAIN})[ \t]*(?:#[^\n]*)?(?=\r?\n|\Z)"
_LINES = {
    Kind.SHELL: late(rf"(?P<before>[ \t]*export[ \t]+)\w+={_ASSIGNMENT}"),
    Kind.ENVIRONMENT: late(rf"(?P<before>[ \t]*(?:export[ \t]+)?)\w+={_ASSIGNMENT}"),
}
"""A line that sets one variable for all that follows; of a script without `export` it may not."""


def by_hand(entry: LaunchEntry) -> LocalizedText | None:
    """What to do where nothing written at a place holds for all devices."""
    if not entry.rule.per_device or entry.any_device is not None:
        return None
    if entry.chooses is not None:
        return message(_CHOICES[entry.chooses])
    if entry.place in _PACKAGES:
        return message("check.packages-for-each")
    is_setting = entry.place in _SETTINGS
    return message("check.setting-for-each" if is_setting else "check.file-for-each")


def variable_by_hand(entry: EnvironmentEntry) -> LocalizedText:
    """What to do with a variable that only CUDA reads, in a script for all devices."""
    is_alone = entry.becomes is None
    return message("check.variable-stays" if is_alone else "check.variable-beside")


def set_beside(text: str, kind: Kind | None, names: Collection[Span], becomes: str) -> list[Edit]:
    """Lines that set the NPU's variable behind those that set CUDA's; none if one cannot be added.

    A script that sets or unsets one in some places alone would be half for the NPU.

    Args:
        text: The script.
        kind: What kind of file it is.
        names: Where CUDA's variable is set.
        becomes: The NPU's.
    """
    edits: list[Edit] = []
    unset = "".join(line for line in text.split("\n") if "unset" in line)
    if any(text[slice(*name)] in unset for name in names):
        return edits
    for name in sorted(names):
        edit = _line_behind(text, kind, name, becomes)
        if edit is None:
            return []
        edits.append(edit)
    return edits


def _line_behind(text: str, kind: Kind | None, name: Span, becomes: str) -> Edit | None:
    start = text.rfind("\n", 0, name.start) + 1
    line = _LINES[kind].match(text, start) if kind in _LINES else None
    is_continued = text[:start].rstrip("\r\n").endswith("\\")
    if line is None or is_continued or line.end("before") != name.start:
        return None
    end = text.find("\n", line.end())
    end = len(text) if end < 0 else end - (text[end - 1] == "\r")
    newline = "\r\n" if text.startswith("\r\n", end) else "\n"
    return Edit(Span(end, end), f"{newline}{line['before']}{becomes}={line['value']}")
