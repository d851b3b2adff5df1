"""What earlier runs found, kept in `.npulens_cache` so that only what changed is analysed again.

A file for each state of all that findings depend on besides the checked file itself: npulens, its
rules, the settings, the facts of the project. In it, the findings of each checked file with a
digest of its path, its text and whether it runs under the shim. The analysis is a function of
these and nothing else, so what fits is as good as a new analysis.

Beside them a file with what is known of the contents of single files for the facts of the project,
see `project/memo.py`, for each npulens with its rules.

The folder may come with a project from anywhere. So it is data, of which nothing is run, and what
changes files does not read it. Whatever is wrong with it, it counts as not there.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import npulens
from npulens.catalog.messages import messages
from npulens.catalog.model import Shim
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_file import MEGABYTES
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.tables import Catalogue
from npulens.text.regular_files import read_regular
from npulens.verdicts.ledger import Judgement
from npulens.workspace.files.writing import write_whole
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.finding_records import finding_of, record_of
from npulens.workspace.settings.configuration import Configuration

FOLDER = ".npulens_cache"
_MOST_STATES = 8
"""Of so many states of settings and project, those used last, the findings are kept."""
_FINDINGS, _FACTS = ".json", ".facts"
_MAX_SIZE = 500_000_000
"""In bytes; no run writes a larger file."""


class FindingCache:
    """The findings of one state; read when made, and written by `save`."""

    def __init__(
        self,
        folder: Path,
        catalogue: Catalogue,
        configuration: Configuration,
        project: ProjectFacts,
    ) -> None:
        """Read what is in `.npulens_cache` of a folder."""
        self._rules = catalogue.rules
        self._file = folder / FOLDER / f"{_state(catalogue, configuration, project)}{_FINDINGS}"
        self._known = _read_findings(self._file)
        self._new: dict[str, tuple[str, list[Any], list[Any]]] = {}

    def digest(self, path: str, shim: Shim, data: bytes, root: str) -> str:
        """The key of the findings of a file: all that they depend on in this state."""
        name = f"{path}\0{shim.value}\0{root}\0".encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=16, key=blake2b(name, digest_size=16).digest()).hexdigest()

    def judgement(self, path: str, digest: str) -> Judgement | None:
        """The findings of a file and what is settled there, `None` if they are not known."""
        known = self._known.get(path)
        if known is None or known[0] != digest:
            return None
        try:
            return Judgement(
                tuple(finding_of(record, self._rules) for record in known[1]),
                tuple(finding_of(record, self._rules) for record in known[2]),
            )
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def add(self, report: FileReport) -> None:
        """Remember the findings of a file, if they are new and can be shown again."""
        if report.digest and report.problem is None:
            if report.findings and not (report.document and report.document.text):
                return  # no text could be read, which is found out quickly
            records = [record_of(finding) for finding in report.findings]
            settled = [record_of(finding) for finding in report.settled]
            self._new[report.path] = (report.digest, records, settled)

    def save(self) -> None:
        """Write what is new, beside what other runs wrote meanwhile; where that fails, let it be.

        A run beside this one may write at the same time. Then the findings of one of them are
        missing in the file, which is whole all the same.
        """
        if not self._new:
            return
        known = _read_findings(self._file).items()
        kept = {path: entry for path, entry in known if os.path.lexists(path)}
        _write(self._file, {**kept, **self._new})


class FactCache:
    """What is known of the contents of files, whichever project they belong to."""

    def __init__(self, folder: Path, catalogue: Catalogue, configuration: Configuration) -> None:
        """Read what is in `.npulens_cache` of a folder."""
        state = _digest(_rules_state(catalogue, configuration))
        self._file = folder / FOLDER / f"{state}{_FACTS}"
        self.memo = FactMemo(_read(self._file))

    def save(self) -> None:
        """Write what is new; of two runs at once the last wins."""
        if self.memo.has_new:
            _write(self._file, self.memo.answers())


def _state(catalogue: Catalogue, configuration: Configuration, project: ProjectFacts) -> str:
    """A name for all that findings depend on besides the file."""
    parts = _rules_state(catalogue, configuration)
    plain = replace(
        configuration, language=None, exclude=(), respect_gitignore=True, extend_rules=()
    )
    # Patterns for files are relative to one folder, and the names of files to another.
    return _digest([*parts, plain, Path.cwd(), *_plain(project)])


def _plain(facts: Any) -> Iterator[object]:
    """What is known, in an order that does not differ from run to run."""
    for field in fields(facts):
        fact = getattr(facts, field.name)
        if is_dataclass(fact):
            yield from _plain(fact)
        else:
            yield sorted(fact) if isinstance(fact, frozenset) else fact


def _rules_state(catalogue: Catalogue, configuration: Configuration) -> list[object]:
    """The version of npulens and all rules, those of the user among them."""
    parts: list[object] = [npulens.__version__, sys.version_info[:3], *_program()]
    parts += [read_regular(path, MEGABYTES) for path in configuration.extend_rules]
    return [*parts, bool(catalogue.native.verified)]


def _digest(parts: Iterable[object]) -> str:
    return blake2b("\0".join(map(repr, parts)).encode(), digest_size=16).hexdigest()


def _program() -> list[tuple[str, int, int]]:
    """What npulens consists of: a changed file of it may find something else."""
    package = Path(npulens.__file__).parent
    stamps = []
    for folder, suffixes in (
        (package, (".py",)),
        (rules_folder(), (".json", ".py", ".tsv")),
        (messages().folder, (".toml",)),
    ):
        for place, _, names in os.walk(folder):
            for name in names:
                if name.endswith(suffixes):
                    found = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118
                    stamps.append((f"{place}/{name}", found.st_size, found.st_mtime_ns))
    return sorted(stamps)


def _read_findings(file: Path) -> dict[str, tuple[str, list[Any], list[Any]]]:
    known = _read(file).items()
    return {path: (e[0], e[1], e[2]) for path, e in known if isinstance(e, list) and len(e) == 3}


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MAX_SIZE:
            return {}
        checksum, _, body = file.read_bytes().partition(b"\n")
        if checksum != _checksum(body):
            return {}
        known = json.loads(body)
        with suppress(OSError):
            os.utime(file)  # used last
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(file: Path, known: Mapping[str, Any]) -> None:
    body = json.dumps(known, separators=(",", ":")).encode()
    with suppress(OSError):
        _prepare(file.parent)
        write_whole(file, _checksum(body) + b"\n" + body)
        for suffix in (_FINDINGS, _FACTS):
            _drop_oldest(file.parent, suffix)


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()


def _prepare(folder: Path) -> None:
    """Make the folder, one that neither git nor a backup wants.

    Raises:
        OSError: It cannot be made; or it is a link, by which a project could lead anywhere.
    """
    if folder.is_symlink():
        raise NotADirectoryError(folder)
    folder.mkdir(exist_ok=True)
    for name, text in (
        (".gitignore", "*\n"),
        ("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
    ):
        if not (folder / name).exists():
            write_whole(folder / name, text.encode())


def _drop_oldest(folder: Path, suffix: str) -> None:
    states = sorted(folder.glob(f"*{suffix}"), key=lambda file: file.stat().st_mtime_ns)
    for file in states[:-_MOST_STATES]:
        file.unlink(missing_ok=True)
