"""What a run did not read, and why."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Reason(str, Enum):
    """Why a file or folder was not read; the values are in files that programs read."""

    IGNORED = "ignored-by-git"
    ENVIRONMENT = "environment"
    INSTALLED = "installed-packages"
    BUILT = "build-output"
    OUTSIDE = "leads-outside"
    SPECIAL = "special-file"
    TOO_LARGE = "too-large"
    NOT_TEXT = "not-readable-as-text"
    CANNOT_BE_READ = "cannot-be-read"
    FAILED = "internal-error"
    EXCLUDED = "excluded"


class NotRead(NamedTuple):
    """A file or a whole folder that was not read.

    Attributes:
        path: As the user would name it.
    """

    path: str
    reason: Reason
    is_folder: bool = False

    @property
    def counts(self) -> bool:
        """Whether users have to know of it without a request: they did not choose it."""
        return self.reason is not Reason.EXCLUDED


def numbers(not_read: Iterable[NotRead]) -> tuple[int, int]:
    """How many folders and how many files were not read, without what the user excluded."""
    folders = [each.is_folder for each in not_read if each.counts]
    return sum(folders), len(folders) - sum(folders)
