"""What a project builds for the NPU already: operators with a builder in a folder of its own.

Such projects keep one builder of each operator for CUDA, and in a folder `npu` or `ascend` beside
it one of the same name for the NPU. What only the first compiles is not left to be ported.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from npulens.syntax.parsing import tree_or_none
from npulens.syntax.walking import nodes_below
from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, text, texts

_NPU_FOLDERS = frozenset({"npu", "ascend"})


def npu_builders(modules: Modules, memo: FactMemo) -> frozenset[Path]:
    """The sources of operators that a class of the same name builds for the NPU."""
    for_npu: dict[Path, set[str]] = {}
    for file, content in modules.items():
        if file.parent.name in _NPU_FOLDERS:
            names = (name for name, _ in _classes(content, memo))
            for_npu.setdefault(file.parent.parent, set()).update(names)
    return frozenset(
        folder / source
        for file, content in modules.items()
        if file.parent in for_npu
        for name, sources in _classes(content, memo)
        if name in for_npu[file.parent]
        for source in sources
        for folder in (file.parent, file.parent.parent)
    )


def copies(contents: Mapping[Path, Content]) -> Iterator[Path]:
    """Files that say what another of the same name says that is less deep in the project."""
    known: set[tuple[str, str]] = set()
    for file in sorted(contents, key=lambda file: (len(file.parts), file)):
        content = (file.name, contents[file].digest)
        if contents[file].data and content in known:
            yield file
        known.add(content)


def _classes(module: Content, memo: FactMemo) -> list[tuple[str, tuple[str, ...]]]:
    """The classes of a module, each with the C++ and CUDA sources that it names."""

    def answer() -> list[tuple[str, list[str]]]:
        tree = tree_or_none(module.text)
        classes = () if tree is None else (n for n in tree.body if isinstance(n, ast.ClassDef))
        return [(node.name, list(_sources(node))) for node in classes]

    return memo.recall("classes with sources", (module.digest,), answer, _read_classes)


def _read_classes(plain: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(text(name), texts(sources)) for name, sources in plain]


def _sources(builder: ast.ClassDef) -> Iterator[str]:
    """Sources that a builder names, by paths from its folder or from the one around."""
    for node in nodes_below(builder):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and kind_by_name(text) is Kind.NATIVE:
            yield text
