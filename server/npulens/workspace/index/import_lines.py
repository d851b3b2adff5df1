"""What the imports of a module name, read from its bytes: thousands of files are read so."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from npulens.workspace.index.contents import Content
from npulens.workspace.index.fact_memo import FactMemo, text, texts

_IMPORT = b"import"
"""Plain searches: an expression takes seconds for large projects."""
_COMMENT = re.compile(rb"[#\\].*")
_WORD = re.compile(rb"\w+")
_STATEMENT = re.compile(rb"[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?")


class ImportWords(NamedTuple):
    """The words of all imports: in `from a.b import c` `a` and `b` are modules, `c` is a name."""

    modules: frozenset[str]
    names: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """All words of the imports."""
        return self.modules | self.names


class _Line(NamedTuple):
    """The text before an `import` in its line, what it imports, and the offset of the word.

    What it imports goes up to the closing bracket, or to the end of the line, which may go on
    behind a backslash.
    """

    before: bytes
    behind: bytes
    offset: int


def import_words(content: Content, memo: FactMemo) -> ImportWords:
    """The words of a module's imports, and some more: comments may speak of imports."""

    def answer() -> list[str]:
        lines = list(_imports(content.data))
        return [_words([line.before for line in lines]), _words([line.behind for line in lines])]

    return memo.recall("words of imports", (content.digest,), answer, _read_words)


def _words(parts: list[bytes]) -> str:
    return b" ".join(sorted({*_WORD.findall(b" ".join(parts))})).decode("ascii")


def _read_words(plain: Any) -> ImportWords:
    modules, names = plain
    return ImportWords(frozenset(text(modules).split()), frozenset(text(names).split()))


def imported_names(content: Content, memo: FactMemo) -> tuple[str, ...]:
    """What `imported_modules` says of a module, each once and in order."""

    def answer() -> list[str]:
        return sorted(set(imported_modules(content.data)))

    return memo.recall("imported modules", (content.digest,), answer, texts)


def imported_from(data: bytes) -> Iterator[tuple[str, frozenset[str]]]:
    """The last part of the name of each module that a text imports from, and the words behind."""
    for line in _imports(data):
        last = _WORD.findall(line.before)[-1:]
        if last:
            yield last[0].decode("ascii"), frozenset(_words([line.behind]).split())


def imported_modules(data: bytes) -> Iterator[str]:
    """What a text imports: of `from .a import b` both `.a` and `.a.b`, for both may be modules."""
    for line in _imports(data):
        yield from _modules(line)


def import_statements(data: bytes) -> Iterator[tuple[tuple[str, ...], bool, int]]:
    """The statements that import, in order; not what a comment says of imports.

    Returns:
        For each what it imports, as in `imported_modules`, whether it is indented, and the offset
        of its `import`.
    """
    for line in _imports(data):
        before = line.before.lstrip(b"\n")
        if _STATEMENT.fullmatch(before) is not None:
            yield tuple(_modules(line)), before[:1] in (b" ", b"\t"), line.offset


def _modules(line: _Line) -> Iterator[str]:
    listed = _COMMENT.sub(b"", line.behind).strip(b"() \t").split(b",")
    names = [each.split()[:1] for each in listed]
    first = [b"".join(words).decode("ascii", "ignore") for words in names]
    source = line.before.split()
    if source[:1] != [b"from"]:
        yield from filter(None, first)
        return
    module = b"".join(source[1:]).decode("ascii", "ignore")
    yield module
    joint = "" if module.endswith(".") else "."
    yield from (f"{module}{joint}{name}" for name in first if name.isidentifier())


def _imports(data: bytes) -> Iterator[_Line]:
    end = 0
    at = data.find(_IMPORT)
    while at >= 0:
        start = at + len(_IMPORT)
        if data[start : start + 1] in (b" ", b"\t", b"(", b"\\"):
            before = data[max(data.rfind(b"\n", end, at), end) : at]
            bracket = data.startswith((b"(", b" ("), start)
            end = data.find(b")", start) if bracket else _end_of_lines(data, start)
            end = len(data) if end < 0 else end
            yield _Line(before, data[start:end], at)
            start = end
        at = data.find(_IMPORT, start)


def _end_of_lines(data: bytes, start: int) -> int:
    """The end of a line and of those that go on with it, -1 for the end of the text."""
    end = data.find(b"\n", start)
    while end >= 0 and data[start:end].rstrip(b"\r").endswith(b"\\"):
        if b"#" in data[start:end]:
            return end
        start, end = end + 1, data.find(b"\n", end + 1)
    return end
