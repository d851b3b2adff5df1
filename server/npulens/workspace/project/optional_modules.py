"""Modules that a project imports only where what they need is there.

A module of Triton kernels is right to need Triton if everyone who imports it asks first, or does
without it where the import fails.
"""

import ast
import os
import re
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.tables import Catalogue
from npulens.checks.intent.file_purpose import is_test_file
from npulens.checks.intent.optional_code import asks_for_kernels, is_absence, tried_parts
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.text.lines import LineMap
from npulens.workspace.project.optional_kernels import does_without_extension

_MAX_SIZE = 2_000_000
"""In bytes; larger files are generated."""
_OF_LIBRARIES = frozenset({"cuda-library", "library-needs-npu-build", "unverified-library"})
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_WORD = re.compile(rb"\w+")

Import = ast.Import | ast.ImportFrom


class OptionalParts(NamedTuple):
    """What a project does without where CUDA or a library is missing.

    Attributes:
        modules: Paths of modules that import a library and are imported only under a condition.
        extensions: Names of modules built of CUDA sources that are imported only in this way.
    """

    modules: frozenset[str]
    extensions: frozenset[str]


def python_files(files: Iterable[Path]) -> dict[Path, bytes]:
    """The content of the Python files among some."""
    return {file: data for file in files if file.suffix == ".py" and (data := _data(file))}


def optional_parts(
    modules: dict[Path, bytes], catalogue: Catalogue, extensions: Iterable[str]
) -> OptionalParts:
    """What is imported only under a condition.

    Args:
        modules: The content of the Python files of the project.
        catalogue: Says which libraries matter.
        extensions: Names of modules that the project builds of CUDA sources.
    """
    roots = {n for n, entry in catalogue.libraries.items() if entry.rule.name in _OF_LIBRARIES}
    built = {name for name in extensions if name}
    words = b"|".join(
        re.escape(os.fsencode(root)) for root in sorted({*roots, *built}) if "." not in root
    )
    any_library = re.compile(rb"^(?:from|import)[ \t]+(?:" + words + rb")\b", re.MULTILINE)
    candidates = [file for file, data in modules.items() if any_library.search(data) is not None]
    if not candidates and not built:
        return OptionalParts(frozenset(), frozenset())
    importers = _Importers(modules)
    careful = {file for file in candidates if importers.are_careful(file)}
    return OptionalParts(
        frozenset(map(str, careful)),
        frozenset(name for name in built if importers.ask_before(name, careful)),
    )


def _data(file: Path) -> bytes:
    """The content of a file, nothing of one that cannot be read; checking it says so."""
    try:
        return file.read_bytes() if file.stat().st_size <= _MAX_SIZE else b""
    except OSError:
        return b""


class _Importers:
    """Who imports the modules of a project, and whether under a condition.

    Args:
        texts: The content of its Python files.
    """

    def __init__(self, texts: dict[Path, bytes]) -> None:
        self._texts = texts
        self._imports = cache(self._read_imports)
        self._does_without = cache(self._read_uses)
        self._by_word: dict[bytes, list[Path]] = {}
        for file, data in texts.items():
            for found in {*_WORD.findall(b" ".join(_IMPORT.findall(data)))}:
                self._by_word.setdefault(found, []).append(file)

    def are_careful(self, module: Path) -> bool:
        """Whether a module is imported at all, and only where that may fail or was asked about.

        What only its own package imports is as careful as those who import the package.
        """
        is_imported = False
        for importer, is_guarded in self._importers(module):
            is_package = importer.stem == "__init__" and importer != module
            inside = is_package and importer.parent == module.parent
            if not (is_guarded or (inside and self.are_careful(importer))):
                return False
            is_imported = True
        return is_imported

    def ask_before(self, extension: str, careful: Container[Path]) -> bool:
        """Whether an extension is imported at all, and only in modules or places that take care."""
        is_imported = False
        for file in self._by_word.get(extension.encode(), ()):
            if is_test_file(str(file)):
                continue
            for node, is_guarded in self._imports(file):
                if any(extension == parts[-1] for parts, _ in _names(node, file) if parts):
                    if file not in careful and not (
                        is_guarded and self._does_without(file, extension)
                    ):
                        return False
                    is_imported = True
        return is_imported

    def _importers(self, module: Path) -> Iterator[tuple[Path, bool]]:
        parts = module.parent.parts if module.stem == "__init__" else module.with_suffix("").parts
        word = parts[-1].encode("utf-8", "surrogateescape")
        for file in self._by_word.get(word, ()):
            if file == module or is_test_file(str(file)):
                continue
            for node, is_guarded in self._imports(file):
                if any(_is_module(name, parts, file) for name in _names(node, file)):
                    yield file, is_guarded

    def _read_uses(self, file: Path, extension: str) -> bool:
        return does_without_extension(self._texts[file].decode("utf-8", "replace"), extension)

    def _read_imports(self, file: Path) -> list[tuple[Import, bool]]:
        text = self._texts[file].decode("utf-8", "replace")
        tree = parse(text)
        return [] if isinstance(tree, SyntaxProblem) else list(_imports(tree, text))


def _imports(tree: ast.Module, text: str) -> Iterator[tuple[Import, bool]]:
    """The imports of a module, each with whether it stands under a condition."""
    lines = LineMap(text)

    def source(node: ast.AST) -> str:
        assert isinstance(node, ast.expr | ast.stmt)
        start = lines.offset(node.lineno, node.col_offset)
        return text[start : lines.offset(node.end_lineno or 0, node.end_col_offset or 0)]

    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, is_guarded = pending.pop()
        if isinstance(node, Import):
            yield node, is_guarded
            continue
        guarded: set[ast.AST] = set()
        if isinstance(node, ast.Try):
            guarded.update(tried_parts(node, source))
        elif isinstance(node, ast.If):
            test = source(node.test)
            if asks_for_kernels(test):
                guarded.update(node.orelse if is_absence(test) else node.body)
        pending += (
            (child, is_guarded or child in guarded)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        )


def _names(node: Import, file: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The modules that an import may read, as parts of a path; whether from the root of one."""
    if isinstance(node, ast.Import):
        yield from ((tuple(alias.name.split(".")), False) for alias in node.names)
        return
    module = tuple(node.module.split(".")) if node.module else ()
    if node.level:
        parents = file.parent.parts
        module = (*parents[: len(parents) - (node.level - 1)], *module)
    yield module, bool(node.level)
    yield from (((*module, alias.name), bool(node.level)) for alias in node.names)


def _is_module(name: tuple[tuple[str, ...], bool], parts: tuple[str, ...], file: Path) -> bool:
    """Whether a name is that of a module with this path; a single word is one beside the file."""
    words, is_whole = name
    if is_whole:
        return words == parts
    if len(words) == 1:
        return parts[:-1] == file.parent.parts and words == parts[-1:]
    return parts[-len(words) :] == words
