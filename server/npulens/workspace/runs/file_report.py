"""What a check of one file came to."""

from dataclasses import dataclass

from npulens.catalog.model import Finding, LocalizedText
from npulens.text.document import Document
from npulens.workspace.files.not_read import Reason


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a check of one file came to.

    Attributes:
        findings: The wanted findings, in order of their place.
        document: The text they are in, or None where there are none.
        problem: Why there was no check, or None.
        traceback: Of the mistake of npulens that is the problem, or empty.
        digest: Under which the findings can be kept, or empty if they came from the cache or
            there is none.
        unread: Why nothing, or not all, is known of what it holds, or None.
        settled: What belongs to NVIDIA's world and needs nothing, each with its settlement.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    document: Document | None = None
    problem: LocalizedText | None = None
    traceback: str = ""
    digest: str = ""
    unread: Reason | None = None
    settled: tuple[Finding, ...] = ()
