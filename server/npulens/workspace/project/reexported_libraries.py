"""Modules of libraries that modules of a project re-export: `from .common import torch`."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePath

from npulens.catalog.project_model import LibraryName
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words, imported_from
from npulens.workspace.index.module_summary import summary_of
from npulens.workspace.index.re_exports import place_of, re_exported, triples

_STAR = b"import *"
_TRACES = (b"cuda", b"nccl", b"DataParallel")
"""A file that takes all of a module and names none of these has hardly any findings."""
_NAMED = (b"import torch", b", torch")
_FROM_OTHER = re.compile(rb"from[ \t]+(?!torch\b)")
_MODULES = frozenset(
    {
        *("torch", "torch.nn", "torch.nn.functional", "torch.nn.parallel", "torch.distributed"),
        *("torch.backends", "torch.backends.cudnn", "torch.multiprocessing", "torch.optim"),
        *("torch.utils", "torch.utils.data", "torch.autograd", "torch.amp", "torch.jit"),
    }
)
"""Re-exports of `torch.cuda`, and of classes, are reported at their first import."""
_MOST_ROUNDS = 4
"""Through so many modules, each of which takes from the next, a name is followed."""
_Facts = frozenset[tuple[str, str, LibraryName]]


def reexported_libraries(modules: Modules, memo: FactMemo, libraries: AbstractSet[str]) -> _Facts:
    """Names of modules of libraries that others take from a module, by its path without ending.

    Only modules are looked at from which some file takes everything, or something called `torch`,
    those that they take from, and those that import a library that the NPU does not have.
    """
    takers = [file for file, content in modules.items() if _takes(content, memo)]
    sources = dict(_importing(modules, memo, libraries))
    for _ in range(_MOST_ROUNDS):
        wanted = {name for file in takers for name in _taken_from(file, modules[file], memo)}
        found = {
            file: content
            for file, content in modules.items()
            if PurePath(place_of(file)).name in wanted and file not in sources
        }
        sources |= found
        takers = [file for file, content in found.items() if b"import" in content.data]
        if not takers:
            break
    known = {
        (place_of(file), name): LibraryName(qualified, is_public)
        for file, content in sources.items()
        for name, qualified, is_public in summary_of(content, memo).libraries
        if qualified in _MODULES or qualified.partition(".")[0] in libraries
    }
    for _ in range(_MOST_ROUNDS if known else 0):
        new = dict(re_exported(sources, known, memo))
        if new.keys() <= known.keys():
            break
        known = {**new, **known}
    return triples(known)


def _importing(
    modules: Modules, memo: FactMemo, libraries: AbstractSet[str]
) -> Iterator[tuple[Path, Content]]:
    """The modules that import such a library, and from which another takes a name of an import."""
    words = {file: import_words(content, memo) for file, content in modules.items()}
    providers = {
        file: each.all for file, each in words.items() if not libraries.isdisjoint(each.all)
    }
    names = {PurePath(place_of(file)).name for file in providers}
    taken: dict[str, set[str]] = {name: set() for name in names}
    for file, content in modules.items():
        if not names.isdisjoint(words[file].modules):
            for module, imported in imported_from(content.data):
                if module in taken:
                    taken[module] |= imported
    for file, brought in providers.items():
        if not brought.isdisjoint(taken[PurePath(place_of(file)).name]):
            yield file, modules[file]


def _takes(content: Content, memo: FactMemo) -> bool:
    """Whether a file may take something of PyTorch from a module that is none of PyTorch's."""
    return memo.is_so("takes of PyTorch", content.digest, lambda: _may_take(content.data))


def _may_take(data: bytes) -> bool:
    if _STAR in data and any(trace in data for trace in _TRACES):
        return True
    return any(_is_from_other(data, named) for named in _NAMED)


def _is_from_other(data: bytes, named: bytes) -> bool:
    place = data.find(named)
    while place >= 0:
        start, end = data.rfind(b"\n", 0, place) + 1, place + len(named)
        is_whole = not (data[end : end + 1].isalnum() or data.startswith(b"_", end))
        if is_whole and _FROM_OTHER.match(data, start) is not None:
            return True
        place = data.find(named, end)
    return False


def _taken_from(file: Path, content: Content, memo: FactMemo) -> Iterator[str]:
    """The last parts of the names of modules from which a file takes all, or `torch`."""
    for import_ in summary_of(content, memo).imports:
        if import_.level >= 0 and any(name in ("*", "torch") for name, _ in import_.names):
            above = file.parents[min(import_.level, len(file.parents)) - 1].name
            yield import_.module.rpartition(".")[2] or above
