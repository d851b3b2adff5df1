"""Running the engine over files."""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from npulens.analysis import analyze
from npulens.catalog.model import Finding, ProjectFacts, Shim, Target
from npulens.catalog.tables import Catalogue
from npulens.checks.native_sources import BINDERS
from npulens.text.decoding import UndecodableReason, UndecodableSource, decode_source
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name, kind_of
from npulens.text.spans import Span
from npulens.workspace.configuration import Configuration, absolute, is_selected

_NO_SHIMS: Mapping[str, Shim] = {}

MAX_FILE_SIZE = 20_000_000
"""In bytes; a larger file is data and no program that a person wrote."""
_NO_PROJECT = ProjectFacts()


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a check of one file came to.

    Attributes:
        path: The path as the user names it.
        findings: The wanted findings, in order of their place.
        document: The text they are in, or None where there are none.
        problem: Why there was no check, or None.
        traceback: Of the mistake of npulens that is the problem, or empty.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    document: Document | None = None
    problem: str | None = None
    traceback: str = ""


def selected(findings: Iterable[Finding], configuration: Configuration) -> tuple[Finding, ...]:
    """The findings that the configuration wants."""
    wanted: dict[str, bool] = {}
    kept = []
    for finding in findings:
        code = finding.rule.code
        if code not in wanted:
            wanted[code] = is_selected(finding.rule, configuration)
        if wanted[code]:
            kept.append(finding)
    return tuple(kept)


class Checker:
    """Checks files one by one, with one catalogue, one configuration and one project."""

    def __init__(
        self,
        catalogue: Catalogue,
        configuration: Configuration,
        project: ProjectFacts = _NO_PROJECT,
        shims: Mapping[str, Shim] = _NO_SHIMS,
    ) -> None:
        """Set up.

        Args:
            catalogue: The rules.
            configuration: The settings.
            project: What a file cannot know of its project.
            shims: The files that run under `transfer_to_npu`, as `ShimFinder` finds them.
        """
        self._catalogue = catalogue
        self._configuration = configuration
        self._project_target = replace(configuration.target, project=project)
        self._shims = shims
        self._words = (*_words_of_interest(catalogue), *(w.encode() for w in project.words))

    def check_file(self, path: Path) -> FileReport:
        """Check a file; whatever is wrong with it is in the report."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_FILE_SIZE:
                    return self._refused(str(path), _TOO_LARGE)
                data = file.read()
        except OSError as error:
            return FileReport(str(path), problem=f"cannot be read: {error.strerror}")
        return self.check_bytes(str(path), data)

    def check_bytes(self, path: str, data: bytes) -> FileReport:
        """Check what a file of this path holds, or would hold."""
        if len(data) > MAX_FILE_SIZE:
            return self._refused(path, _TOO_LARGE)
        # UTF-16 has no such word, but NULs.
        if b"\0" not in data and not any(word in data for word in self._words_for(path, data)):
            return FileReport(path)
        try:
            document = Document(path, _decoded(path, data))
        except UndecodableSource as error:
            detail = _DETAILS[error.reason].format(offset=error.byte_offset)
            return self._refused(path, detail)
        try:
            findings = analyze(document, self._catalogue, self._target(path))
        except Exception as error:  # one file must not end the check of the others
            problem, traceback = internal_error(error)
            return FileReport(path, problem=problem, traceback=traceback)
        findings = selected(findings, self._configuration)
        return FileReport(path, findings, document if findings else None)

    def _target(self, path: str) -> Target:
        target = self._project_target
        shim = self._shims.get(str(absolute(Path(path)))) if self._shims else None
        return target if shim is None else replace(target, shim=shim)

    def _words_for(self, path: str, data: bytes) -> tuple[bytes, ...]:
        kind = kind_of(path, data[:200].decode("latin-1"))
        if kind is Kind.NATIVE:
            return _NATIVE_WORDS
        return self._words if kind is Kind.PYTHON else _LAUNCH_WORDS

    def _refused(self, path: str, detail: str) -> FileReport:
        rule = self._catalogue.rules["NPU003"]
        findings = selected([Finding(rule, Span(0, 0), {"detail": detail})], self._configuration)
        return FileReport(path, findings, Document(path, ""))


def _decoded(path: str, data: bytes) -> str:
    """The text of a file; of C++, which declares no encoding, whatever can be read."""
    if kind_by_name(path) is Kind.NATIVE:
        return data.decode("utf-8", "replace").removeprefix("\ufeff")
    return decode_source(data).text


def internal_error(error: Exception) -> tuple[str, str]:
    """What to say of a mistake of npulens, and its traceback."""
    from traceback import format_exception

    sentence = f"internal error ({type(error).__name__}), please report it"
    return sentence, "".join(format_exception(error))


_TOO_LARGE = f"it is larger than {MAX_FILE_SIZE // 1_000_000} MB"
_DETAILS = {
    UndecodableReason.BAD_COOKIE: "it declares an encoding that Python source cannot have",
    UndecodableReason.BAD_BYTES: "byte {offset} is not text in its encoding",
    UndecodableReason.NUL_BYTE: "byte {offset} is a NUL character",
    UndecodableReason.UTF16_OR_32: "it is UTF-16 or UTF-32, which Python source cannot be",
}

_WORDS = ("torch", "cuda", "CUDA", "nccl", "NCCL", "npulens")
"""Of files without any of these, and without the words of the tables, nothing is to be said."""
_NATIVE_WORDS = tuple(word.encode() for word in BINDERS)


_LAUNCH_WORDS = tuple(
    word.encode()
    for word in (
        *("cuda", "CUDA", "nccl", "NCCL", "nvidia", "NVIDIA", "gpu", "GPU", "npulens"),
        *("nsys", "ncu", "nvprof", "flash", "+cu", "-cu", "/cu", "transformer"),
        *("tensorrt", "HCCL", "ASCEND_", "TASK_QUEUE", "torch"),
    )
)
"""The same of files that are not Python."""


def _words_of_interest(catalogue: Catalogue) -> tuple[bytes, ...]:
    words = {
        *_WORDS,
        *(symbol.partition(".")[0] for symbol in catalogue.symbols),
        *(library.partition(".")[0] for library in catalogue.libraries),
        *catalogue.methods,
        *catalogue.environment,
    }
    ordered = [*_WORDS, *sorted(words.difference(_WORDS))]  # the commonest first
    # One by one they are found sooner than by one regular expression.
    return tuple(w.encode() for w in ordered if not any(o in w for o in words if o != w))


def check_files(
    paths: Sequence[Path],
    catalogue: Catalogue,
    configuration: Configuration,
    jobs: int | None = None,
    project: ProjectFacts = _NO_PROJECT,
    shims: Mapping[str, Shim] = _NO_SHIMS,
) -> Iterator[FileReport]:
    """Check files, in so many processes; the reports come in the order of the paths."""
    # A fork is quickest by far, but of a process with threads it may hang.
    start = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    if jobs is None:
        jobs = 1 if len(paths) < _TOO_FEW_FILES[start] else min(_usable_processors(), _MOST_JOBS)
    jobs = min(jobs, len(paths))
    if jobs <= 1:
        yield from map(Checker(catalogue, configuration, project, shims).check_file, paths)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    executor = ProcessPoolExecutor(
        jobs, get_context(start), _start_worker, (catalogue, configuration, project, shims)
    )
    try:
        chunk = max(1, min(_FILES_AT_ONCE, len(paths) // (jobs * 4)))
        yield from executor.map(_check_in_worker, paths, chunksize=chunk)
    finally:  # also where the caller wants no more
        executor.shutdown(cancel_futures=True)


_FILES_AT_ONCE = 16
_TOO_FEW_FILES = {"fork": 32, "spawn": 256}
"""Fewer are checked sooner than processes are started; measured on two processors."""
_MOST_JOBS = 4


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


_worker_checker: Checker


def _start_worker(
    catalogue: Catalogue,
    configuration: Configuration,
    project: ProjectFacts,
    shims: Mapping[str, Shim],
) -> None:
    global _worker_checker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    _worker_checker = Checker(catalogue, configuration, project, shims)


def _check_in_worker(path: Path) -> FileReport:
    return _worker_checker.check_file(path)
