"""Putting an instrument into a file of the user's, with its settings, and taking it out."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.messages import LocalizedError, about, cannot_be_written, message
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.instrument_model import Instrument
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.instruments.marks import Removed, without
from npulens.fixes.scripts import UnclearError
from npulens.text.decoding import DecodedSource, UnencodableText, encode_source
from npulens.workspace.files.writing import NotReplacedError, replace_content, write_whole
from npulens.workspace.fixing.rewriting_files import read_source
from npulens.workspace.imported_modules import imported_modules
from npulens.workspace.importing_programs import ImportingPrograms


class NotInstrumentedError(LocalizedError):
    """Nothing was changed; the text says where and why."""


class Plan(NamedTuple):
    """What becomes of a file.

    Attributes:
        path: The file.
        source: What it holds.
        after: Its text with the instrument, or without.
        removed: What goes, if something does.
    """

    path: Path
    source: DecodedSource
    after: str
    removed: Removed | None = None


def plan_insertion(path: Path, instrument: Instrument) -> Plan:
    """How a file looks with an instrument.

    Raises:
        NotInstrumentedError: It cannot be read, or the instrument does not fit it.
    """
    source = _source(path)
    try:
        find, above = imported_modules(path), ImportingPrograms(path)
        return Plan(path, source, instrumented(source.text, instrument, find, above))
    except UnclearError as error:
        raise NotInstrumentedError(about(f"{path}:{error.line}", error.text)) from error


def plan_removal(path: Path, names: Sequence[str] | None) -> Plan:
    """How a file looks without some instruments, or without all.

    Raises:
        NotInstrumentedError: It cannot be read, or statements were moved out of a `with`.
    """
    source = _source(path)
    try:
        removed = without(source.text, names)
    except UnclearError as error:
        raise NotInstrumentedError(about(f"{path}:{error.line}", error.text)) from error
    return Plan(path, source, removed.text, removed)


def contents(plan: Plan) -> tuple[bytes, bytes]:
    """The bytes of the file, before and after.

    Raises:
        NotInstrumentedError: The encoding of the file lacks a character of the text.
    """
    source = plan.source
    try:
        before = encode_source(source.text, source.encoding, source.has_bom)
        return before, encode_source(plan.after, source.encoding, source.has_bom)
    except UnencodableText as error:
        problem = message("error.is-not-in-encoding")
        raise NotInstrumentedError(about(str(plan.path), problem)) from error


def carry_out(plan: Plan) -> None:
    """Write the file.

    Raises:
        NotInstrumentedError: It cannot be written, or has changed meanwhile.
    """
    before, after = contents(plan)
    try:
        if before != after:
            replace_content(plan.path, before, after)
    except NotReplacedError as error:
        raise NotInstrumentedError(about(str(plan.path), error.text)) from error


def write_settings(path: Path, instrument: Instrument) -> tuple[Path, bool] | None:
    """Put the settings that an instrument reads beside a script, unless they are there.

    Returns:
        The file and whether it was written; `None` if the instrument reads none.

    Raises:
        NotInstrumentedError: They cannot be written.
    """
    if instrument.settings is None:
        return None
    file = path.with_name(instrument.settings[0])
    if file.exists():
        return file, False
    try:
        write_whole(file, instrument.settings[1].encode())
    except OSError as error:
        raise NotInstrumentedError(about(str(file), cannot_be_written(error))) from error
    return file, True


def remove_settings(path: Path, names: Sequence[str]) -> list[tuple[Path, bool]]:
    """Delete the settings of instruments that went, as far as nobody has changed them.

    Returns:
        The files that are there, each with whether it was deleted.
    """
    found = []
    for name in names:
        instrument = BY_NAME.get(name)
        if instrument is None or instrument.settings is None:
            continue
        file = path.with_name(instrument.settings[0])
        if file.is_file():
            is_ours = file.read_bytes() == instrument.settings[1].encode()
            if is_ours:
                file.unlink()
            found.append((file, is_ours))
    return found


def _source(path: Path) -> DecodedSource:
    try:
        return read_source(path)
    except LocalizedError as error:
        raise NotInstrumentedError(about(str(path), error.text)) from error
