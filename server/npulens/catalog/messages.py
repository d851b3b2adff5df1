"""What npulens says: each text has an id, and is in English and Chinese in `messages/`.

The texts are read when the first one is needed, which no module may do while it is imported.
"""

import errno
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from npulens.catalog.compiled_tables import CompiledTables, data_folder
from npulens.catalog.localized import LANGUAGES, Language, LocalizedText
from npulens.catalog.message_ids import MessageId, MessageTable
from npulens.text.unreadable import Unreadable, UnsuitableFile


class LocalizedError(Exception):
    """A mistake that users see, in each language.

    Attributes:
        text: The message.
    """

    def __init__(self, text: LocalizedText) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text.en


def message(name: MessageId, /, **values: object) -> LocalizedText:
    """A text with its values put in, those that are texts themselves in the language of each."""
    return _filled(_texts()[name], values)


def message_of(table: MessageTable, key: str, /, **values: object) -> LocalizedText:
    """The text for one of several values, such as those of an enumeration."""
    return _filled(_texts()[f"{table}.{key}"], values)


def message_if_any(table: MessageTable, key: str, /, **values: object) -> LocalizedText | None:
    """The same, `None` if there is no text for this value."""
    text = _texts().get(f"{table}.{key}")
    return None if text is None else _filled(text, values)


def joined(parts: Iterable[LocalizedText], between: MessageId) -> LocalizedText:
    """Texts joined, with a separator between them."""
    texts, separator = list(parts), message(between)
    english = separator.en.join(text.en for text in texts)
    return LocalizedText(english, separator.zh.join(text.zh for text in texts))


def plural(name: MessageId, number: int, /, **values: object) -> LocalizedText:
    """A text about a number; of one the text is that of the id with `-one` behind it."""
    text = _texts()[f"{name}-one" if number == 1 else name]
    return _filled(text, {"number": number, **values})


def about(what: object, problem: LocalizedText) -> LocalizedText:
    """What is wrong with something, such as a file."""
    return message("error.about", what=what, problem=problem)


def cannot_be_read(error: OSError) -> LocalizedText:
    """That something cannot be read, and why."""
    return message("error.cannot-be-read", reason=os_error(error))


def cannot_be_written(error: OSError) -> LocalizedText:
    """That something cannot be written, and why."""
    return message("error.cannot-be-written", reason=os_error(error))


def not_toml(error: ValueError) -> LocalizedText:
    """That something is no TOML, and why."""
    reason = unreadable(error) if isinstance(error, Unreadable) else error
    return message("error.not-toml", reason=reason)


def unreadable(error: Unreadable) -> LocalizedText:
    """Why a file is not what it should be."""
    return message_of("unreadable", error.problem, **error.values)


def os_error(error: OSError) -> LocalizedText:
    """Why the system, or we, cannot read or write; in English what has no text here."""
    if isinstance(error, UnsuitableFile):
        return unreadable(error)
    name = errno.errorcode.get(error.errno or 0, "").lower()
    reason = str(error.strerror)
    return message_if_any("os", name) or LocalizedText(reason, reason)


def messages() -> CompiledTables:
    """The files of all texts."""
    return CompiledTables(data_folder("messages"), "*.toml", _read)


def _read(path: Path, label: str) -> dict[str, str]:
    """The texts of one language by id."""
    from npulens.text.toml import parse_toml  # seldom needed

    tables = parse_toml(path.read_text(encoding="utf-8"))
    return {
        f"{table}.{key}": text for table, texts in tables.items() for key, text in texts.items()
    }


@cache
def _texts() -> dict[str, LocalizedText]:
    english, chinese = (texts for _, texts in messages().contents())
    return {name: LocalizedText(english.get(name, ""), text) for name, text in chinese.items()}


def _filled(text: LocalizedText, values: dict[str, object]) -> LocalizedText:
    if not any(isinstance(value, LocalizedText) for value in values.values()):
        return LocalizedText(text.en.format(**values), text.zh.format(**values))
    return LocalizedText(*(_filled_in(text, values, language) for language in LANGUAGES))


def _filled_in(text: LocalizedText, values: dict[str, object], language: Language) -> str:
    shown_values = {
        name: value.in_language(language) if isinstance(value, LocalizedText) else value
        for name, value in values.items()
    }
    return text.in_language(language).format(**shown_values)
