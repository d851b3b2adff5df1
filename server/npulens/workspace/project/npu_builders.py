"""What a project builds for the NPU already: operators with a builder in a folder of its own.

Such projects keep one builder of each operator for CUDA, and in a folder `npu` or `ascend` beside
it one of the same name for the NPU. What only the first compiles is not left to be ported.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from npulens.syntax.parsing import module_tree
from npulens.text.kinds import Kind, kind_by_name

_NPU_FOLDERS = frozenset({"npu", "ascend"})


class NpuBuilders(NamedTuple):
    """What stands in for CUDA on the NPU.

    Attributes:
        classes: Classes of folders for the NPU.
        sources: Sources of operators that another class of the same name builds for CUDA.
    """

    classes: frozenset[str]
    sources: frozenset[Path]


def npu_builders(files: Sequence[Path]) -> NpuBuilders:
    """Read the builders in folders for the NPU, and those that they stand in for.

    Args:
        files: All files of the project that are checked.
    """
    for_npu: dict[Path, set[str]] = {}
    for file in files:
        if file.parent.name in _NPU_FOLDERS and file.suffix == ".py":
            names = {node.name for node in _classes(file)}
            for_npu.setdefault(file.parent.parent, set()).update(names)
    sources = {
        source
        for file in files
        if file.suffix == ".py" and file.parent in for_npu
        for node in _classes(file)
        if node.name in for_npu[file.parent]
        for source in _sources(node, file.parent)
    }
    return NpuBuilders(frozenset().union(*for_npu.values()), frozenset(sources))


def copies(texts: Mapping[Path, str]) -> Iterator[Path]:
    """Files that say what another of the same name says that is less deep in the project."""
    told: set[tuple[str, str]] = set()
    for file in sorted(texts, key=lambda file: (len(file.parts), file)):
        content = (file.name, texts[file])
        if texts[file] and content in told:
            yield file
        told.add(content)


def _classes(file: Path) -> Iterator[ast.ClassDef]:
    """The classes of a module; none if it cannot be read, which is told when it is checked."""
    try:
        tree = module_tree(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (node for node in tree.body if isinstance(node, ast.ClassDef))


def _sources(builder: ast.ClassDef, folder: Path) -> Iterator[Path]:
    """Sources that a builder names, by paths from its folder or from the one around."""
    for node in ast.walk(builder):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and kind_by_name(text) is Kind.NATIVE:
            yield folder / text
            yield folder.parent / text
