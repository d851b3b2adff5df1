"""The one door to the engine: a document goes in, findings come out."""

from npulens.catalog.model import Finding, Target
from npulens.catalog.tables import Catalogue
from npulens.text.document import Document


class StatementCache:
    """What an earlier analysis of a similar text found out, so that only changes cost time.

    One per open document; never needed for a correct answer.
    """


def analyze(
    document: Document,
    catalogue: Catalogue,
    target: Target,
    cache: StatementCache | None = None,
) -> tuple[Finding, ...]:
    """All findings of a document, in order of their place, suppressed ones left out.

    A pure function of its first three arguments: it touches no file and never raises for any
    content of the document.
    """
    raise NotImplementedError
