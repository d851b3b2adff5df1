"""Functions of a project whose results have shapes that depend on data, for those who import them.

Only functions that another module imports by name, or through its module, are evaluated, in rounds:
one may return what another of these returns. Methods are not, since nobody knows whose they are.
"""

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
from npulens.workspace.index.cut_modules import CutModule, CutModules
from npulens.workspace.index.fact_memo import FactMemo, text, texts
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.re_exports import PACKAGE, packages, place_of, re_exported, triples

_ROUNDS = 3
"""How many functions a result may be returned through."""
_MAX_SIZE = 1_000_000
"""In bytes; larger modules are generated."""

Found = dict[tuple[str, str], ReturnedShape]
Names = dict[Path, tuple[str, ...]]
"""Functions by their modules."""


def returned_shapes(
    modules: Modules, catalogue: Catalogue, memo: FactMemo
) -> frozenset[tuple[str, str, ReturnedShape]]:
    """What functions return, by the paths of their modules without ending and their names."""
    cut = CutModules()
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
    file: Path, content: Content, imported: frozenset[str], memo: FactMemo, cut: CutModules
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
    content: Content, names: Iterable[str], memo: FactMemo, cut: CutModules
) -> tuple[str, ...]:
    """Of functions of a module those that hold a word of some source, or call one that does."""

    def answer() -> list[str]:
        functions = cut.of(content)
        return [name for name in names if _contains_source(functions.text_from(name.encode()))]

    return memo.recall("functions with source", (content.digest, *names), answer, texts)


def _calling(
    content: Content, names: Iterable[str], called: Collection[str], memo: FactMemo, cut: CutModules
) -> tuple[str, ...]:
    """Of functions of a module those that call any of some functions, or one that does."""

    def answer() -> list[str]:
        functions = cut.of(content)
        wanted = {name.encode() for name in called}
        return [n for n in names if not wanted.isdisjoint(functions.calls_from(n.encode()))]

    about = (content.digest, *names, "", *called)
    return memo.recall("functions that call", about, answer, texts)


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
        document = Document(
            str(file), decode_source(CutModule(data).excerpt(map(str.encode, names))).text
        )
    except UndecodableSource:
        return {}
    return analyze_returned_shapes(document, catalogue, project, names)
