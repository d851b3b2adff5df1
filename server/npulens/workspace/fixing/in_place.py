"""Writing what fixes made of files, where the files are."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.workspace.files.git import GitTrees
from npulens.workspace.files.leftovers import remove_leftovers
from npulens.workspace.files.writing import NotReplacedError, replace_content
from npulens.workspace.fixing.file_fixes import FixedFile
from npulens.workspace.runs.file_report import FileReport


def write_fixed(fixed: FixedFile, trees: GitTrees | None) -> FileReport:
    """Put what a file shall hold into it, unless it stays as it is.

    Args:
        fixed: The file.
        trees: Those that could take the change back, or `None` if nobody has to.

    Returns:
        The report of what is left, or that the file was not written and why.
    """
    if fixed.after == fixed.before:
        return fixed.report
    path = Path(fixed.report.path)
    if trees is not None and trees.is_unknown(path):
        return _not_fixed(fixed, message("error.not-in-git"))
    try:
        replace_content(path, fixed.before, fixed.after)
    except NotReplacedError as error:
        return _not_fixed(fixed, error.text)
    return fixed.report


def clean_places(files: Iterable[Path]) -> None:
    """Remove what runs that were killed left beside files that are to be written."""
    remove_leftovers({Path(os.path.realpath(file)).parent for file in files})


def _not_fixed(fixed: FixedFile, reason: LocalizedText) -> FileReport:
    problem = message("error.not-fixed", reason=reason)
    return replace(fixed.report, findings=(), document=None, problem=problem)
