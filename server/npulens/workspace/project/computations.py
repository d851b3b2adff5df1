"""Functions and classes of a project that compute something, for those who import them.

Whoever evaluates a function that uses one looks into it (`graphs/other_definitions.py`): a softmax
by hand, an activation, a rotation of halves, a base class. Of a module all that others may import
goes together, with what it needs of its module, so that one text says what each of them computes.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.project_model import Computation
from npulens.catalog.tables import Catalogue
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.cut_modules import CutModules
from npulens.workspace.index.fact_memo import FactMemo, text, texts
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.re_exports import PACKAGE, packages, place_of, re_exported, triples

_TENSOR_WORDS = (
    *("masked_fill", "where(", "cat(", "stack(", "matmul", "bmm(", "einsum", " @ ", "rearrange("),
    *(".view(", "reshape(", "transpose(", "expand(", "repeat", "chunk(", "split("),
    *("amax(", ".max(", ".sum(", "exp(", "pow(", "norm("),
)
"""What steps of computations hold, besides the words of patterns."""
_MAX_SIZE = 500_000
"""In bytes; larger modules are generated."""
_LONGEST_FUNCTION, _LONGEST_CLASS, _LONGEST_BASE = 3_000, 1_500, 12_000
_LONGEST_EXCERPT = 30_000
_MOST_DEFINITIONS = 40
_CLASS = b"class "
_COMMENT = re.compile(rb"\n[ \t]*#[^\n]*")
_STAR = b"import *"
_WORD = re.compile(rb"\w+")


class _Used(NamedTuple):
    """Words of imports, and those in heads of classes, anywhere in the project.

    `starred` has the words of modules from which everything is imported.
    """

    imported: frozenset[str]
    starred: frozenset[str]
    bases: frozenset[str]


def computations(
    modules: Modules, catalogue: Catalogue, memo: FactMemo
) -> frozenset[tuple[str, str, Computation]]:
    """The definitions, by the paths of their modules without ending and their names."""
    used = _Used(
        frozenset().union(*(import_words(each, memo).names for each in modules.values())),
        frozenset().union(
            *(import_words(each, memo).modules for each in modules.values() if _STAR in each.data)
        ),
        frozenset().union(*(_heads(each, memo) for each in modules.values())),
    )
    of_patterns = {word for source in catalogue.patterns for word in source.words}
    words = [word.encode() for word in sorted(of_patterns.union(_TENSOR_WORDS))]
    cut = CutModules(with_classes=True)
    found = {}
    for file, content in modules.items():
        if b"torch" in content.data and len(content.data) <= _MAX_SIZE:
            names = _importable(file, content, used, memo, cut)
            excerpt = _excerpt(content, names, words, memo, cut) if names else _Excerpt((), "")
            for name in excerpt.names:
                found[place_of(file), name] = Computation(file.as_posix(), name, excerpt.source)
    found.update(re_exported(packages(modules), found, memo))
    return triples(found)


def _heads(content: Content, memo: FactMemo) -> frozenset[str]:
    """The words of the bases of a module's classes."""
    if _CLASS not in content.data:
        return frozenset()

    def answer() -> str:
        heads = [line for line in content.data.split(b"\n") if line.startswith(_CLASS)]
        named = b" ".join(line.partition(b"(")[2] for line in heads)
        return b" ".join(sorted({*_WORD.findall(named)})).decode("ascii")

    return memo.recall("words of heads", (content.digest,), answer, _read_words)


def _read_words(plain: Any) -> frozenset[str]:
    return frozenset(text(plain).split())


def _importable(
    file: Path, content: Content, used: _Used, memo: FactMemo, cut: CutModules
) -> list[str]:
    """The definitions of a module that others may import and that are short enough."""

    def answer(longest: int, *, of_classes: bool) -> list[str]:
        found = cut.of(content).texts.items()
        fitting = (n for n, t in found if len(t) <= longest and t.startswith(_CLASS) is of_classes)
        return [name.decode() for name in fitting]

    stem = file.parent.name if file.stem == PACKAGE else file.stem
    names: list[str] = []
    for kind, longest, wanted in (
        ("functions", _LONGEST_FUNCTION, used.imported),
        ("classes", _LONGEST_CLASS, used.imported),
        ("bases", _LONGEST_BASE, used.bases),
    ):
        if kind != "functions" and _CLASS not in content.data:
            continue  # nothing of it has to be kept for each of many files
        find = partial(answer, longest, of_classes=kind != "functions")
        known = memo.recall(f"short {kind}", (content.digest,), find, texts)
        takes_all = kind != "bases" and (stem in used.starred or stem in used.imported)
        names += (name for name in known if takes_all or name in wanted)
    return sorted(set(names))


class _Excerpt(NamedTuple):
    """Those of some definitions that compute something, and their text."""

    names: tuple[str, ...]
    source: str


def _excerpt(
    content: Content, names: Sequence[str], words: Sequence[bytes], memo: FactMemo, cut: CutModules
) -> _Excerpt:
    """Of definitions what computes something, with what it needs of its module.

    Nothing if that is very much.
    """

    def answer() -> list[object]:
        module = cut.of(content)
        chosen = [n for n in names if any(word in module.texts[n.encode()] for word in words)]
        excerpt = module.excerpt(map(str.encode, chosen), _MOST_DEFINITIONS) if chosen else b""
        excerpt = _COMMENT.sub(b"", excerpt)
        is_much = len(excerpt) > _LONGEST_EXCERPT
        return [[], ""] if is_much else [chosen, excerpt.decode("utf-8", "replace")]

    return memo.recall("excerpt", (content.digest, *names), answer, _read_excerpt)


def _read_excerpt(plain: Any) -> _Excerpt:
    names, source = plain
    return _Excerpt(texts(names), text(source))
