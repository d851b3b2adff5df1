"""Modules that a project imports only where what they need is there.

A module of Triton kernels is right to need Triton if everyone who imports it checks first, or does
without it where the import fails.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.tables import Catalogue
from npulens.verdicts.file_role import FileRole, file_role
from npulens.workspace.index.contents import Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.module_summary import ModuleImport, summary_of
from npulens.workspace.project.optional_kernels import does_without_extension


class OptionalParts(NamedTuple):
    """What a project does without where CUDA or a library is missing.

    Attributes:
        modules: Paths of modules that import a library and are imported only under a condition.
        extensions: Names of modules built of CUDA sources that are imported only in this way.
        exempt_imports: Modules that do without an extension, each with the name of the extension.
    """

    modules: frozenset[str]
    extensions: frozenset[str]
    exempt_imports: frozenset[tuple[str, str]]


def optional_parts(
    modules: Modules,
    catalogue: Catalogue,
    extensions: Iterable[str],
    memo: FactMemo,
    built_at_run: Iterable[str],
) -> OptionalParts:
    """What is imported only under a condition.

    Args:
        modules: The Python files of the project.
        catalogue: Says which libraries matter.
        extensions: Names of modules that the project builds of CUDA sources.
        memo: What is known of the modules.
        built_at_run: Names of modules that hold an extension which is built when the program runs.
    """
    built = {name for name in extensions if name}
    words = {*catalogue.optional_libraries, *(name for name in built if "." not in name)}
    either = b"|".join(re.escape(os.fsencode(word)) for word in sorted(words))
    any_library = rb"^(?:from|import)[ \t]+(?:" + either + rb")\b"
    importers = _Importers(modules, memo, frozenset((*built, *built_at_run)))
    candidates = [
        file
        for file in importers.naming(words)
        if re.search(any_library, modules[file].data, re.MULTILINE) is not None
    ]
    careful = {file for file in candidates if importers.are_careful(file)}
    return OptionalParts(
        frozenset(map(str, careful)),
        frozenset(name for name in built if importers.is_always_guarded(name, careful)),
        frozenset((str(file), name) for name in built for file in importers.without(name, careful)),
    )


class _Importers:
    """Who imports the modules of a project, and whether under a condition.

    `built` are the names by which they take what the project builds of CUDA code.
    """

    def __init__(self, modules: Modules, memo: FactMemo, built: frozenset[str]) -> None:
        self._modules = modules
        self._memo = memo
        self._built = built
        self._by_word: dict[str, list[Path]] = {}
        for file, content in modules.items():
            for word in import_words(content, memo).all:
                self._by_word.setdefault(word, []).append(file)

    def naming(self, words: Iterable[str]) -> list[Path]:
        """The modules with any of some words in their imports, in their order."""
        found = {file for word in words for file in self._by_word.get(word, ())}
        return [file for file in self._modules if file in found]

    def are_careful(self, module: Path) -> bool:
        """Whether a module is imported at all, and only where that may fail or was checked before.

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

    def is_always_guarded(self, extension: str, careful: Container[Path]) -> bool:
        """Whether an extension is imported at all, and only in modules or places that take care."""
        found = [
            is_exempt
            for file, is_exempt in self._of_extension(extension, careful)
            if FileRole.TEST not in file_role(str(file))
        ]
        return bool(found) and all(found)

    def without(self, extension: str, careful: Container[Path]) -> Iterator[Path]:
        """The modules that import an extension, and do without it wherever they do."""
        found: dict[Path, bool] = {}
        for file, is_exempt in self._of_extension(extension, careful):
            found[file] = found.get(file, True) and is_exempt
        return (file for file, is_exempt in found.items() if is_exempt)

    def _of_extension(
        self, extension: str, careful: Container[Path]
    ) -> Iterator[tuple[Path, bool]]:
        """The modules that import an extension, and whether they take care, for each import."""
        for file in self._by_word.get(extension, ()):
            for each in self._imports(file):
                if any(extension == parts[-1] for parts, _ in each.paths(file) if parts):
                    is_exempt = each.is_guarded and self._does_without(file, extension)
                    yield file, file in careful or is_exempt

    def _importers(self, module: Path) -> Iterator[tuple[Path, bool]]:
        parts = module.parent.parts if module.stem == "__init__" else module.with_suffix("").parts
        for file in self._by_word.get(parts[-1], ()):
            if file == module or FileRole.TEST in file_role(str(file)):
                continue
            for each in self._imports(file):
                if any(_is_module(name, parts, file) for name in each.paths(file)):
                    yield file, each.is_guarded

    def _does_without(self, file: Path, extension: str) -> bool:
        return does_without_extension(self._modules[file], extension, self._built, self._memo)

    def _imports(self, file: Path) -> tuple[ModuleImport, ...]:
        return summary_of(self._modules[file], self._memo).imports


def _is_module(name: tuple[tuple[str, ...], bool], parts: tuple[str, ...], file: Path) -> bool:
    """Whether a name is that of a module with this path; a single word is one beside the file."""
    words, is_whole = name
    if is_whole:
        return words == parts
    if len(words) == 1:
        return parts[:-1] == file.parent.parts and words == parts[-1:]
    return parts[-len(words) :] == words
