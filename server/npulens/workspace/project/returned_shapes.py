"""Functions of a project whose results have shapes that depend on data, for those who import them.

Only functions that another module imports by name, or through its module, are evaluated, in rounds:
one may return what another of these returns. Methods are not, since nobody knows whose they are.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npulens.analysis import analyze_returned_shapes
from npulens.catalog.project_model import ModuleMembers, ProjectFacts, ReturnedShape
from npulens.catalog.tables import Catalogue
from npulens.shapes.ranking.evaluation_prefilter import Sources
from npulens.syntax.words import Words
from npulens.text.decoding import UndecodableSource, decode_source
from npulens.text.document import Document
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, text, texts
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.re_exports import PACKAGE, packages, place_of, re_exported, triples

_ROUNDS = 3
"""How many functions a result may be returned through."""
_FUNCTION = re.compile(rb"\n(?:async )?def (\w+)\(")
_STATEMENT = re.compile(rb"\n(?=[^\s#)\]}])")
_DEFINED = re.compile(rb"(?:async )?def (\w+)\(")
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_ASSIGNED = re.compile(rb"\w+ = ")
_CONTEXT = re.compile(rb"(?:from|import|if|elif|else|try|except|finally)\b")
_LONGEST_CONSTANT = 200
_MAX_SIZE = 1_000_000
"""In bytes; larger modules are generated."""
_MOST_CALLED = 20
"""Functions of its module that one is looked through for."""

Found = dict[tuple[str, str], ReturnedShape]
Names = dict[Path, tuple[str, ...]]
"""Functions by their modules."""


def returned_shapes(
    modules: Modules, catalogue: Catalogue, memo: FactMemo
) -> frozenset[tuple[str, str, ReturnedShape]]:
    """What functions return, by the paths of their modules without ending and their names."""
    cut = _Cut()
    imported = frozenset().union(*(import_words(each, memo).names for each in modules.values()))
    candidates = {
        file: names
        for file, content in modules.items()
        if (names := _imported_functions(file, content, imported, memo, cut))
    }
    found: Found = {}
    wanted = {f: _with_source(modules[f], names, memo, cut) for f, names in candidates.items()}
    for _ in range(_ROUNDS):
        new = dict(_evaluated(wanted, modules, catalogue, found, memo))
        new.update(re_exported(packages(modules), {**found, **new}, memo))
        new = {key: shape for key, shape in new.items() if found.get(key) != shape}
        if not new:
            break
        found.update(new)
        called = sorted({name for _, name in new})
        wanted = {
            f: _calling(modules[f], names, called, memo, cut) for f, names in candidates.items()
        }
    return triples(found)


def _imported_functions(
    file: Path, content: Content, imported: frozenset[str], memo: FactMemo, cut: "_Cut"
) -> tuple[str, ...]:
    """The functions of a module that return something and that others may import."""
    if b"torch" not in content.data or len(content.data) > _MAX_SIZE:
        return ()

    def answer() -> list[str]:
        functions = cut.of(content)
        return [name.decode() for name, text in functions.texts.items() if b"return " in text]

    names = memo.recall("functions that return", (content.digest,), answer, texts)
    stem = file.parent.name if file.stem == PACKAGE else file.stem
    return names if stem in imported else tuple(name for name in names if name in imported)


def _with_source(
    content: Content, names: Iterable[str], memo: FactMemo, cut: "_Cut"
) -> tuple[str, ...]:
    """Of functions of a module those that hold a word of some source, or call one that does."""

    def answer() -> list[str]:
        functions = cut.of(content)
        return [name for name in names if _contains_source(functions.text_from(name.encode()))]

    return memo.recall("functions with source", (content.digest, *names), answer, texts)


def _calling(
    content: Content, names: Iterable[str], called: Collection[str], memo: FactMemo, cut: "_Cut"
) -> tuple[str, ...]:
    """Of functions of a module those that call any of some functions, or one that does."""

    def answer() -> list[str]:
        functions = cut.of(content)
        wanted = {name.encode() for name in called}
        return [n for n in names if not wanted.isdisjoint(functions.calls_from(n.encode()))]

    about = (content.digest, *names, "", *called)
    return memo.recall("functions that call", about, answer, texts)


class _Functions:
    """The functions among the statements of a module, and what they call."""

    def __init__(self, statements: Iterable[bytes]) -> None:
        found = ((_DEFINED.match(statement), statement) for statement in statements)
        self.texts = {defined[1]: text for defined, text in found if defined is not None}
        self._calls: dict[bytes, list[bytes]] = {}

    def reached(self, names: Iterable[bytes], limit: int = _MOST_CALLED) -> set[bytes]:
        """Functions by their names, and so many of the module that they call."""
        reached: set[bytes] = set()
        pending = list(names)
        while pending and len(reached) < limit:
            name = pending.pop()
            if name in self.texts and name not in reached:
                reached.add(name)
                pending += self._called_in(name)
        return reached

    def text_from(self, name: bytes) -> bytes:
        """The text of a function and of those of the module that it calls."""
        return b"\n".join(self.texts[each] for each in self.reached([name]))

    def calls_from(self, name: bytes) -> set[bytes]:
        """What a function calls, and those of the module that it calls."""
        return {called for each in self.reached([name]) for called in self._called_in(each)}

    def _called_in(self, name: bytes) -> list[bytes]:
        calls = self._calls.get(name)
        if calls is None:
            calls = self._calls[name] = list(_called_in(self.texts[name]))
        return calls


class _Cut:
    """Modules cut into their functions, each once while a project is looked through."""

    def __init__(self) -> None:
        self._known: dict[str, _Functions] = {}

    def of(self, content: Content) -> _Functions:
        """The functions of a module."""
        if content.digest not in self._known:
            functions = _Functions(_STATEMENT.split(content.data))
            self._known[content.digest] = functions
        return self._known[content.digest]


def _called_in(text: bytes) -> Iterator[bytes]:
    """The words before brackets, but for those that `def` defines.

    Cutting at brackets is several times as fast as an expression that begins with any word.
    """
    for part in text.split(b"(")[:-1]:
        before = part.rstrip(_LETTERS)
        if len(before) < len(part) and not before.endswith(b"def "):
            yield part[len(before) :]


def _contains_source(text: bytes) -> bool:
    """Whether a function holds a word of some source."""
    words = Words(text.decode("utf-8", "replace"))
    return Sources(words).has_some(0, len(words.text))


def _evaluated(
    wanted: Mapping[Path, Collection[str]],
    modules: Modules,
    catalogue: Catalogue,
    found: Found,
    memo: FactMemo,
) -> Iterator[tuple[tuple[str, str], ReturnedShape]]:
    project = ProjectFacts(members=ModuleMembers(triples(found)))
    others = blake2b(repr(sorted(project.members.returned_shapes)).encode("utf-8", "surrogatepass"))
    for file, names in wanted.items():
        if not names:
            continue

        def answer(file: Path = file, names: Collection[str] = names) -> Any:
            shapes = _returned(file, modules[file].data, catalogue, project, frozenset(names))
            return sorted(shapes.items())

        about = (str(file), modules[file].digest, others.hexdigest(), *names)
        for name, shape in memo.recall("shapes", about, answer, _read_shapes):
            yield (place_of(file), name), shape


def _read_shapes(plain: Any) -> list[tuple[str, ReturnedShape]]:
    return [(text(name), _read_shape(*shape)) for name, shape in plain]


def _read_shape(
    kind: Any,
    dims: Any,
    is_open: Any,
    depends: Any,
    element: Any,
    parts: Any,
    synchronizes: Any,
    unless: Any,
) -> ReturnedShape:
    known = texts([kind, element])
    if not all(isinstance(each, bool) for each in (is_open, depends, synchronizes)):
        raise TypeError("no shape")
    inside = tuple(_read_shape(*part) for part in parts)
    given = tuple(_read_parameter(*parameter) for parameter in unless)
    dims = texts(list(dims))
    return ReturnedShape(known[0], dims, is_open, depends, known[1], inside, synchronizes, given)


def _read_parameter(place: Any, name: Any) -> tuple[int, str]:
    if not isinstance(place, int) or place < 0:
        raise TypeError("no place")
    return place, text(name)


def _returned(
    file: Path, data: bytes, catalogue: Catalogue, project: ProjectFacts, names: frozenset[str]
) -> Mapping[str, ReturnedShape]:
    try:
        document = Document(str(file), decode_source(_excerpt(data, names)).text)
    except UndecodableSource:
        return {}
    return analyze_returned_shapes(document, catalogue, project, names)


def _excerpt(data: bytes, names: frozenset[str]) -> bytes:
    """Of a module the requested functions, those that they call, imports and short constants.

    The rest need not be parsed. Where the cutting at unindented lines errs, less is known.
    """
    statements = _STATEMENT.split(data)
    kept = _Functions(statements).reached(map(str.encode, names), len(statements))
    return b"\n".join(statement for statement in statements if _is_kept(statement, kept)) + b"\n"


def _is_kept(statement: bytes, functions: set[bytes]) -> bool:
    defined = _DEFINED.match(statement)
    if defined is not None:
        return defined[1] in functions
    is_short = len(statement) < _LONGEST_CONSTANT and _ASSIGNED.match(statement) is not None
    return is_short or _CONTEXT.match(statement) is not None
