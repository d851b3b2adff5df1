"""Functions of a project whose results have shapes that depend on data, for those who import them.

Only functions that another module imports by name, or through its module, are evaluated, in rounds:
one may return what another of these returns. Methods are not, since nobody knows whose they are.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from threading import Lock
from typing import NamedTuple

from npulens.analysis import analyze_returned_shapes
from npulens.catalog.model import ProjectFacts, ReturnedShape
from npulens.catalog.tables import Catalogue
from npulens.shapes.worth import Sources
from npulens.syntax.parsing import module_tree
from npulens.syntax.words import identifiers_in
from npulens.text.decoding import UndecodableSource, decode_source
from npulens.text.document import Document

_ROUNDS = 3
"""How many functions a result may be handed on through."""
_IMPORT = b"import "
"""Plain searches: an expression takes seconds for large projects."""
_WORD = re.compile(rb"\w+")
_FUNCTION = re.compile(rb"\n(?:async )?def (\w+)\(")
_STATEMENT = re.compile(rb"\n(?=[^\s#)\]}])")
_DEFINED = re.compile(rb"(?:async )?def (\w+)\(")
_CALLED = re.compile(rb"(\w+)\(")
_ASSIGNED = re.compile(rb"\w+ = ")
_CONTEXT = re.compile(rb"(?:from|import|if|elif|else|try|except|finally)\b")
_LONGEST_CONSTANT = 200
_MAX_SIZE = 1_000_000
"""In bytes; larger modules are generated."""
_MOST_KNOWN = 2000
_MOST_CALLED = 20
"""Functions of its module that one is looked through for."""
_PACKAGE = "__init__"

Found = dict[tuple[str, str], ReturnedShape]


class _Candidate(NamedTuple):
    """A function that others import, by its module and name.

    Attributes:
        text: Its definition, and those of the functions of its module that it calls.
    """

    file: Path
    name: str
    text: bytes


def returned_shapes(
    modules: Mapping[Path, bytes], catalogue: Catalogue
) -> frozenset[tuple[str, str, ReturnedShape]]:
    """What functions return, by the paths of their modules without ending and their names.

    Args:
        modules: The content of the Python files of the project.
        catalogue: The rules.
    """
    imported = _imported_words(modules.values())
    candidates = [c for file, data in modules.items() for c in _candidates(file, data, imported)]
    found: Found = {}
    wanted = [candidate for candidate in candidates if _holds_source(candidate.text)]
    for _ in range(_ROUNDS):
        new = dict(_evaluated(wanted, modules, catalogue, found))
        new.update(_handed_on(modules, {**found, **new}))
        new = {key: shape for key, shape in new.items() if found.get(key) != shape}
        if not new:
            break
        found.update(new)
        calls = [f"{name}(".encode() for _, name in new]
        wanted = [c for c in candidates if any(call in c.text for call in calls)]
    return _facts(found).returned_shapes


def _facts(found: Found) -> ProjectFacts:
    return ProjectFacts(
        returned_shapes=frozenset((path, name, shape) for (path, name), shape in found.items())
    )


def _imported_words(modules: Iterable[bytes]) -> frozenset[bytes]:
    """What stands in the imports of all modules: names of functions, classes and modules."""
    return frozenset(word for data in modules for word in _words_imported(data))


@lru_cache(maxsize=8192)
def _words_imported(data: bytes) -> frozenset[bytes]:
    return frozenset(_WORD.findall(b" ".join(_imports(data))))


def _imports(data: bytes) -> Iterator[bytes]:
    """What stands behind each `import`: up to the closing bracket, or to the end of the line."""
    at = data.find(_IMPORT)
    while at >= 0:
        start = at + len(_IMPORT)
        end = data.find(b")" if data.startswith(b"(", start) else b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        at = data.find(_IMPORT, end)


def _candidates(file: Path, data: bytes, imported: frozenset[bytes]) -> Iterator[_Candidate]:
    if b"torch" not in data or len(data) > _MAX_SIZE:
        return
    stem = file.parent.name if file.stem == _PACKAGE else file.stem
    by_module = os.fsencode(stem) in imported
    names = [d[1] for d in _FUNCTION.finditer(data) if by_module or d[1] in imported]
    functions = _functions(_STATEMENT.split(data)) if names else {}
    for name in names:
        if b"return " in functions.get(name, b""):
            text = b"\n".join(functions[called] for called in _called_by([name], functions))
            yield _Candidate(file, name.decode(), text)


def _functions(statements: Iterable[bytes]) -> dict[bytes, bytes]:
    """The functions among the statements of a module."""
    found = ((_DEFINED.match(statement), statement) for statement in statements)
    return {defined[1]: statement for defined, statement in found if defined is not None}


def _called_by(
    names: Iterable[bytes], functions: Mapping[bytes, bytes], limit: int = _MOST_CALLED
) -> set[bytes]:
    """Functions of a module, and so many of it that they call."""
    reached: set[bytes] = set()
    pending = list(names)
    while pending and len(reached) < limit:
        name = pending.pop()
        if name in functions and name not in reached:
            reached.add(name)
            pending += _CALLED.findall(functions[name])
    return reached


@lru_cache(maxsize=8192)
def _holds_source(text: bytes) -> bool:
    """Whether a function holds a word of some source."""
    decoded = text.decode("utf-8", "replace")
    return Sources(decoded, identifiers_in(decoded)).has_some(0, len(decoded))


def _evaluated(
    wanted: Iterable[_Candidate],
    modules: Mapping[Path, bytes],
    catalogue: Catalogue,
    found: Found,
) -> Iterator[tuple[tuple[str, str], ReturnedShape]]:
    by_file: dict[Path, set[str]] = {}
    for candidate in wanted:
        by_file.setdefault(candidate.file, set()).add(candidate.name)
    project = _facts(found)
    for file, names in by_file.items():
        shapes = _memory.returned(file, modules[file], catalogue, project, frozenset(names))
        for name, shape in shapes.items():
            yield (_place(file), name), shape


class _Memory:
    """What modules were found to return, since an editor asks again whenever a file changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._catalogue: Catalogue | None = None
        self._known: dict[object, Mapping[str, ReturnedShape]] = {}

    def returned(
        self,
        file: Path,
        data: bytes,
        catalogue: Catalogue,
        project: ProjectFacts,
        names: frozenset[str],
    ) -> Mapping[str, ReturnedShape]:
        with self._lock:
            if catalogue is not self._catalogue or len(self._known) > _MOST_KNOWN:
                self._catalogue, self._known = catalogue, {}
            key = (file, data, project.returned_shapes, names)
            if key not in self._known:
                self._known[key] = _returned(file, data, catalogue, project, names)
            return self._known[key]


_memory = _Memory()


def _returned(
    file: Path, data: bytes, catalogue: Catalogue, project: ProjectFacts, names: frozenset[str]
) -> Mapping[str, ReturnedShape]:
    try:
        document = Document(str(file), decode_source(_excerpt(data, names)).text)
    except UndecodableSource:
        return {}
    return analyze_returned_shapes(document, catalogue, project, names)


def _excerpt(data: bytes, names: frozenset[str]) -> bytes:
    """Of a module the functions asked about, those that they call, imports and short constants.

    The rest need not be parsed. Where the cutting at unindented lines errs, less is known.
    """
    statements = _STATEMENT.split(data)
    kept = _called_by(map(str.encode, names), _functions(statements), len(statements))
    return b"\n".join(statement for statement in statements if _is_kept(statement, kept)) + b"\n"


def _is_kept(statement: bytes, functions: set[bytes]) -> bool:
    defined = _DEFINED.match(statement)
    if defined is not None:
        return defined[1] in functions
    is_short = len(statement) < _LONGEST_CONSTANT and _ASSIGNED.match(statement) is not None
    return is_short or _CONTEXT.match(statement) is not None


def _handed_on(
    modules: Mapping[Path, bytes], found: Found
) -> Iterator[tuple[tuple[str, str], ReturnedShape]]:
    """The same functions under the names of packages that import them."""
    names = {name.encode() for _, name in found}
    for file, data in modules.items():
        if file.stem != _PACKAGE or b"import" not in data:
            continue
        if b"import *" not in data and names.isdisjoint(_words_imported(data)):
            continue
        for node in _from_imports(data):
            origin = _origin(file, node)
            for alias in node.names:
                for path, name in [key for key in found if key[0] == origin]:
                    if alias.name in ("*", name):
                        yield (_place(file), alias.asname or name), found[path, name]


def _from_imports(data: bytes) -> Iterator[ast.ImportFrom]:
    try:
        body = module_tree(data.decode("utf-8", "replace")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (node for node in body if isinstance(node, ast.ImportFrom) and node.level)


def _origin(file: Path, node: ast.ImportFrom) -> str:
    """The place of the module that a package imports from."""
    folder = file.parent
    for _ in range(node.level - 1):
        folder = folder.parent
    return folder.joinpath(*(node.module or "").split(".")).as_posix()


def _place(file: Path) -> str:
    """The path of a module without its ending; of a package its folder."""
    path = PurePath(file)
    return (path.parent if path.stem == _PACKAGE else path.with_suffix("")).as_posix()
