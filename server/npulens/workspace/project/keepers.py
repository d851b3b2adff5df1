"""Classes of a project that keep what their methods are given, such as meters of losses.

Whoever imports one knows by this which attributes are tensors after `losses.update(loss)`, and
that those of a class that reads its arguments are none.
"""

import re
from collections.abc import Iterator
from typing import Any

from npulens.analysis import analyze_kept_arguments
from npulens.catalog.project_model import Keeper, KeptArguments
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.cut_modules import CutModules
from npulens.workspace.index.fact_memo import FactMemo, text, texts
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.re_exports import PACKAGE, packages, place_of, re_exported, triples

_MAX_SIZE = 500_000
"""In bytes; larger modules are generated."""
_LONGEST_CLASS = 6_000
_WITHOUT_BASE = re.compile(rb"class \w+[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:")
_ADDS_UP = re.compile(rb"\n[ \t]+self\.\w+[ \t]*\+=")
_UPDATES = b" def update("


def keepers(modules: Modules, memo: FactMemo) -> frozenset[tuple[str, str, Keeper]]:
    """The classes, by the paths of their modules without ending and their names."""
    imported = frozenset().union(*(import_words(each, memo).names for each in modules.values()))
    cut = CutModules(with_classes=True)
    found = {}
    for file, content in modules.items():
        if len(content.data) > _MAX_SIZE or not _may_define(content, memo):
            continue
        stem = file.parent.name if file.stem == PACKAGE else file.stem
        for keeper in _keepers(content, memo, cut):
            if stem in imported or keeper.name in imported:
                found[place_of(file), keeper.name] = keeper
    found.update(re_exported(packages(modules), found, memo))
    return triples(found)


def _may_define(content: Content, memo: FactMemo) -> bool:
    return memo.is_so("adds up", content.digest, lambda: _keeps(content.data))


def _keeps(data: bytes) -> bool:
    """Whether a text adds something up in an instance, or updates one."""
    return b"class " in data and (_UPDATES in data or _ADDS_UP.search(data) is not None)


def _keepers(content: Content, memo: FactMemo, cut: CutModules) -> tuple[Keeper, ...]:
    def answer() -> list[list[object]]:
        return [list(keeper) for text in _classes(content, cut) for keeper in _kept_in(text)]

    return memo.recall("keepers", (content.digest,), answer, _read)


def _classes(content: Content, cut: CutModules) -> Iterator[bytes]:
    """The classes of a module that derive from no other and keep something."""
    for definition in cut.of(content).texts.values():
        is_short = len(definition) <= _LONGEST_CLASS
        if is_short and _WITHOUT_BASE.match(definition) is not None and _keeps(definition):
            yield definition


def _kept_in(definition: bytes) -> Iterator[Keeper]:
    yield from analyze_kept_arguments(definition.decode("utf-8", "replace"))


def _read(plain: Any) -> tuple[Keeper, ...]:
    return tuple(Keeper(text(name), tuple(_read_method(*m) for m in ms)) for name, ms in plain)


def _read_method(name: Any, parameters: Any, kept: Any) -> KeptArguments:
    pairs = tuple((text(attribute), text(parameter)) for attribute, parameter in kept)
    return KeptArguments(text(name), texts(list(parameters)), pairs)
