"""By which names the modules of a project import what its build makes of CUDA code."""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.project_model import ExtensionName
from npulens.syntax.other_modules import OtherModules, member_of
from npulens.workspace.index.contents import Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.module_summary import summary_of
from npulens.workspace.project.built_extensions import Extension

Named = tuple[str, str, ExtensionName]
"""The path of a module or package, a name in it, and the extension that this name is."""


def extension_names(
    extensions: Iterable[Extension], modules: Modules, files: Iterable[Path], memo: FactMemo
) -> frozenset[Named]:
    """The names of the extensions that are made of CUDA code.

    An extension lies in its package below the folder that builds it, or wherever a module takes it
    from by a relative import that no file of Python answers.
    """
    of_cuda = [extension for extension in extensions if extension.is_cuda]
    if not of_cuda:
        return frozenset()
    python = [file for file in files if file.suffix == ".py"]
    there = {file.with_suffix("") for file in python}
    packages = {file.parent for file in python if file.stem == "__init__"}
    names = {named for extension in of_cuda for named in _declared(extension, there | packages)}
    importable = [extension for extension in of_cuda if not extension.is_loaded]
    names.update(_taken(importable, modules, _Files(there, packages), memo))
    apart = [e for e in importable if any(e.folder not in file.parents for file in python)]
    names.update(_packages_of(apart, modules, memo))
    return frozenset(names.union(_handed_on(frozenset(names), modules, memo)))


class _Files(NamedTuple):
    """The Python files of a project: modules, without their ending, and packages."""

    modules: set[Path]
    packages: set[Path]

    def answer(self, place: Path) -> bool:
        """Whether a name is a file of Python, or defined in one."""
        if place in self.modules or place in self.packages:
            return True
        return place.parent in self.modules and place.parent not in self.packages


def _declared(extension: Extension, there: Container[Path]) -> Iterator[Named]:
    known = _known(extension)
    module = extension.file.with_suffix("").as_posix()
    yield from ((module, name, known) for name in extension.bound)
    if extension.is_loaded:
        return
    place = extension.folder.joinpath(*extension.module.split("."))
    if place not in there:
        yield place.parent.as_posix(), place.name, known


def _known(extension: Extension) -> ExtensionName:
    file = extension.file.as_posix()
    return ExtensionName(extension.module, file, extension.line, extension.is_loaded)


def _taken(
    extensions: Iterable[Extension], modules: Modules, files: "_Files", memo: FactMemo
) -> Iterator[Named]:
    """What relative imports take that is no file of Python, but has the name of an extension."""
    by_name: dict[str, list[Extension]] = {}
    for extension in extensions:
        by_name.setdefault(extension.name, []).append(extension)
    for file, content in modules.items():
        if by_name.keys().isdisjoint(import_words(content, memo).all):
            continue
        for each in summary_of(content, memo).imports:
            for parts, is_whole in each.paths(file) if each.level > 0 else ():
                place = Path(*parts)
                if not is_whole or files.answer(place):
                    continue
                for extension in by_name.get(place.name, ()):
                    if _may_be(extension, place):
                        yield place.parent.as_posix(), place.name, _known(extension)


def _packages_of(
    extensions: Iterable[Extension], modules: Modules, memo: FactMemo
) -> Iterator[Named]:
    """Packages with a build of their own that cannot be imported without their extension.

    `kernels/setup.py` builds `fastkernels._C`, and `fastkernels/__init__.py` imports that: the
    rest of the project, which imports `fastkernels`, needs the extension.
    """
    for extension in extensions:
        package, _, inner = extension.module.partition(".")
        file = extension.folder / package / "__init__.py"
        if not inner or file not in modules:
            continue
        module = tuple(extension.module.split("."))
        place = (*extension.folder.parts, *module)
        read = (
            parts[: len(place)] == place if is_whole else parts[: len(module)] == module
            for each in summary_of(modules[file], memo).imports
            if each.is_at_top and not each.is_guarded
            for parts, is_whole in each.paths(file)
        )
        if any(read):
            known = _known(extension)._replace(module=package)
            yield extension.folder.as_posix(), package, known


def _handed_on(names: frozenset[Named], modules: Modules, memo: FactMemo) -> Iterator[Named]:
    """The names by which a module hands extensions on: `from . import _C as kernels` at its top."""
    words = {name for _, name, _ in names}
    for file, content in modules.items():
        if words.isdisjoint(import_words(content, memo).names):
            continue
        known = OtherModules(names, file.as_posix())
        place = file.parent if file.stem == "__init__" else file.with_suffix("")
        for each in summary_of(content, memo).imports:
            if each.level < 0 or each.is_guarded or not each.is_at_top:
                continue
            module = "." * each.level + each.module
            for name, bound in each.names:
                extension = known.find(member_of(module, name))
                if extension is not None:
                    yield place.as_posix(), bound, extension


def _may_be(extension: Extension, place: Path) -> bool:
    """Whether an extension may be found in a place: below its build file or in its package."""
    parts = tuple(extension.module.split("."))
    if len(parts) > 1 and place.parts[-len(parts) :] != parts:
        return False
    return extension.folder in place.parents
