"""What was not read, in words."""

from collections.abc import Sequence

from npulens.catalog.messages import joined, message, message_of, plural
from npulens.catalog.model import Language
from npulens.report.human import printable
from npulens.report.report_wording import Counts
from npulens.workspace.files.not_read import NotRead, numbers


def reason_of(each: NotRead, language: Language) -> str:
    """Why something was not read."""
    return message_of("not-read", each.reason.value).in_language(language)


def counted(not_read: Sequence[NotRead], language: Language) -> str:
    """How many folders and files were not read, in a part of a sentence; empty if none."""
    folders, files = numbers(not_read)
    counts: Counts = (("report.folders", folders), ("report.files", files))
    parts = [plural(name, number) for name, number in counts if number]
    if not parts:
        return ""
    what = joined(parts, "punctuation.and")
    return message("report.not-read", what=what).in_language(language)


def not_read_lines(not_read: Sequence[NotRead], is_listed: bool, language: Language) -> str:
    """What a command ends with; empty if all was read.

    Where each is listed, so is what the user excluded.
    """
    listed = not_read_list(not_read, language) if is_listed else ""
    number = counted(not_read, language)
    if not number:
        return listed
    hint = "" if is_listed else message("report.not-read-option").in_language(language)
    stop = message("punctuation.full-stop").in_language(language)
    return f"{listed}{number}{hint}{stop}\n"


def not_read_list(not_read: Sequence[NotRead], language: Language) -> str:
    """A line for each file and folder, with the reason."""
    colon = message("punctuation.colon").in_language(language)
    return "".join(
        f"{printable(each.path)}{'/' * each.is_folder}{colon}{reason_of(each, language)}\n"
        for each in not_read
    )
