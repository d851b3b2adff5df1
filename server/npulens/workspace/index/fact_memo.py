"""Answers to questions about the contents of files, so that each is computed once."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeVar, cast

_Answer = TypeVar("_Answer")
_MOST_ANSWERS = 20_000
"""So many are kept where a run requests fewer, as one for a single file does."""
_NONE: list[Any] = []
"""Most answers about a file are this one, of which there is no need for thousands."""


class FactMemo:
    """Remembers answers; each depends on `about` alone.

    They are plain data, as JSON has, so that they can be written down. What comes back from there
    may be anything, so it is looked at before it is believed.
    """

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self._known = dict(known or {})
        self._requested: dict[str, Any] = {}
        self._found: defaultdict[str, dict[tuple[str, ...], Any]] = defaultdict(dict)
        self.has_new = False

    def recall(
        self,
        question: str,
        about: tuple[str, ...],
        answer: Callable[[], Any],
        read: Callable[[Any], _Answer],
    ) -> _Answer:
        """The answer to a question, the same object each time: nobody changes it.

        Args:
            question: A name for it.
            about: All that the answer depends on, such as digests of contents.
            answer: Finds the answer as plain data.
            read: Turns plain data into the answer; raises `TypeError` or `ValueError` for data of
                another form.
        """
        found = self._found[question]
        if about not in found:
            found[about] = self._recalled(question, about, answer, read)
        return cast(_Answer, found[about])

    def _recalled(
        self,
        question: str,
        about: tuple[str, ...],
        answer: Callable[[], Any],
        read: Callable[[Any], _Answer],
    ) -> _Answer:
        name = "\0".join((question, *about)).encode("utf-8", "surrogatepass")
        key = blake2b(name, digest_size=16).hexdigest()
        plain = self._requested.get(key, self._known.get(key))
        if plain is not None:
            try:
                found = read(plain)
            except (TypeError, ValueError, RecursionError):
                pass
            else:
                self._requested[key] = plain
                return found
        plain = answer()
        self._requested[key] = _NONE if plain == [] else plain
        self.has_new = True
        return read(plain)

    def is_so(self, question: str, about: str, answer: Callable[[], bool]) -> bool:
        """The answer, yes or no, to a question about thousands of contents.

        All those about one content are kept together, for finding each alone takes as long as to
        search a file for a word.
        """
        known = self.recall("truths", (about,), dict, _truths)
        found = known.get(question)
        if found is None:
            found = known[question] = answer()
            self.has_new = True
        return found

    def forget_unrequested(self) -> None:
        """Forget answers not requested since the last call, as those for files that changed."""
        self._known, self._requested = self._requested, {}
        self._found.clear()

    def answers(self) -> dict[str, Any]:
        """The answers worth keeping: those requested, and some that were known before."""
        room = max(_MOST_ANSWERS - len(self._requested), 0)
        others = [key for key in self._known if key not in self._requested]
        kept = {key: self._known[key] for key in others[len(others) - room :] if room}
        return {**kept, **self._requested}


def text(plain: Any) -> str:
    """Read a text.

    Raises:
        TypeError: It is none.
        UnicodeEncodeError: It has half of a surrogate pair, as JSON may have.
    """
    if not isinstance(plain, str):
        raise TypeError("no text")
    if not plain.isascii():
        plain.encode()
    return plain


def texts(plain: Any) -> tuple[str, ...]:
    """Read a list of texts.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(plain, list):
        raise TypeError("no list")
    return tuple(map(text, plain))


def _truths(plain: Any) -> dict[str, bool]:
    """Read answers of yes or no; what is added to them is kept with them."""
    if not isinstance(plain, dict) or not all(isinstance(each, bool) for each in plain.values()):
        raise TypeError("no answers")
    return plain


def truth(plain: Any) -> bool:
    """Read a yes or no.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(plain, bool):
        raise TypeError("neither yes nor no")
    return plain
