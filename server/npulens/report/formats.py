"""The forms in which findings are shown: what they have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from npulens.catalog.model import Finding, Language
from npulens.text.document import Document


class Report(ABC):
    """Turns findings into text, file by file."""

    def __init__(self, language: Language) -> None:
        self._language: Language = language

    @abstractmethod
    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file, or nothing if all comes at the end."""

    def end(self, checked: int) -> str:
        """What follows the last of so many files checked."""
        return ""


@runtime_checkable
class ListsSettled(Protocol):
    """A report that has a form of its own for places where nothing is to be done."""

    def settled(self, document: Document, settled: Sequence[Finding]) -> str:
        """The part of what is settled in one file."""


KNOW_PROBLEMS_ONLY = frozenset({"github", "gitlab", "junit"})
"""The forms that cannot say of a place that nothing is to be done there."""
