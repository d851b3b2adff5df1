"""What the files of a project tell each other: own modules, and operators of its CUDA sources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from npulens.catalog.model import ProjectFacts
from npulens.catalog.tables import Catalogue
from npulens.checks.other_files.cpp_bindings import (
    CUDA_SUFFIXES,
    UNNAMED_MODULE,
    Binding,
    CppBindings,
    cuda_bindings,
    read_native_source,
)
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.spans import Span
from npulens.workspace.project.built_extensions import Extension, cmake_extensions, extensions_of
from npulens.workspace.project.configured import configured_activations
from npulens.workspace.project.contents import Content, Contents
from npulens.workspace.project.counterparts import with_counterparts
from npulens.workspace.project.device_functions import device_functions
from npulens.workspace.project.extension_names import extension_names
from npulens.workspace.project.fact_memo import FactMemo, texts, truth
from npulens.workspace.project.foreign_extensions import foreign_extensions
from npulens.workspace.project.npu_builders import copies, npu_builders
from npulens.workspace.project.optional_kernels import optional_kernels
from npulens.workspace.project.optional_modules import optional_parts
from npulens.workspace.project.reexported_libraries import reexported_libraries
from npulens.workspace.project.returned_shapes import returned_shapes
from npulens.workspace.project.tensor_method_overrides import tensor_method_overrides
from npulens.workspace.project.unused import unused_classes, unused_functions
from npulens.workspace.project.unused_modules import unused_modules

_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def project_facts(
    files: Sequence[Path],
    folders: Iterable[Path],
    catalogue: Catalogue,
    contents: Contents | None = None,
    memo: FactMemo | None = None,
) -> ProjectFacts:
    """Read what is to be known of a project before its files are checked.

    Args:
        files: All files of it that are checked, C++ and CUDA sources among them.
        folders: The folders that the user named.
        catalogue: Says which names of modules matter.
        contents: What was read of the files already.
        memo: What was known of contents before, with the same catalogue and the same npulens.
    """
    contents, memo = contents or Contents(), memo or FactMemo()
    folders = list(folders)
    own = frozenset(_own_modules(files, folders, catalogue))
    native = [file for file in files if kind_by_name(str(file)) is Kind.NATIVE]
    modules = contents.modules(files)
    stood_in_for = npu_builders(modules, memo)
    built = extensions_of(modules, memo)
    extensions = [extension for found in built.values() for extension in found]
    cmake = [file for file in files if kind_by_name(str(file)) is Kind.CMAKE]
    extensions += cmake_extensions({file: contents.of(file) for file in cmake}, memo)
    importable = [extension for extension in extensions if not extension.is_loaded]
    made_of_cuda = {extension.name for extension in importable if extension.is_cuda}
    held = {name for extension in extensions for name in extension.bound}
    facts = ProjectFacts(
        own,
        unused_names=(
            unused_classes(files, folders, contents, memo)
            | unused_functions(modules, folders, memo)
        ),
        unused_modules=unused_modules(modules, files, folders, contents, memo),
        returned_shapes=returned_shapes(modules, catalogue, memo),
        tensor_method_overrides=tensor_method_overrides(modules, catalogue, memo),
        reexported_libraries=reexported_libraries(modules, memo, catalogue.missing_libraries - own),
        configured=configured_activations(modules, memo),
        with_counterparts=with_counterparts(files),
        device_functions=device_functions(modules, memo),
        extension_names=extension_names(extensions, modules, files, memo),
        foreign_extensions=foreign_extensions(files, modules, catalogue, memo) - made_of_cuda,
    )
    if not native:
        optional = optional_parts(modules, catalogue, made_of_cuda, memo, held)
        return replace(
            facts,
            optional_modules=optional.modules,
            exempt_imports=optional.exempt_imports,
        )
    natives = {file: contents.of(file) for file in native}
    sources = {file: _native_source(file, content, memo) for file, content in natives.items()}
    beside = frozenset(_beside_cuda(sources, importable))
    bindings = {
        file: list(_named(cuda_bindings(source, str(file) in beside), _modules(file, importable)))
        for file, source in sources.items()
    }
    optional = optional_parts(
        modules,
        catalogue,
        {b.owner for each in bindings.values() for b in each if not b.registered} | made_of_cuda,
        memo,
        held,
    )
    settled = {file for file in sources if file in stood_in_for}
    settled |= {f for f, each in bindings.items() if each and _are_in(each, optional.extensions)}
    kernels = optional_kernels([f for f, each in bindings.items() if each], modules, memo)
    settled |= kernels.sources
    told = [binding for file, each in bindings.items() if file not in settled for binding in each]
    ported = {
        (b.owner, b.name)
        for file, source in sources.items()
        if source.is_ported and file not in stood_in_for
        for b in source.bindings
    }
    bound = {(b.owner, b.name) for b in told if not b.registered}
    registered = {
        f"{b.owner}.{b.name}" for b in told if b.registered and b.owner not in ("", "aten")
    }
    only_optional = {
        str(file)
        for file, found in built.items()
        if found and all(extension.name in optional.extensions for extension in found)
    }
    return replace(
        facts,
        bound_operators=frozenset(bound - ported),
        registered_operators=frozenset(registered - {".".join(pair) for pair in ported}),
        sources_beside_cuda=beside,
        settled_sources=frozenset(map(str, {*settled, *copies(natives)})),
        optional_modules=optional.modules | only_optional | set(map(str, kernels.modules)),
        compiles_for_host=not any(
            s.is_cuda or file.suffix in CUDA_SUFFIXES for file, s in sources.items()
        ),
        exempt_imports=optional.exempt_imports,
    )


def _named(bindings: Iterable[Binding], modules: Sequence[str]) -> Iterator[Binding]:
    """Bindings with the module that they go into: each of them, if the build fills in the name."""
    for binding in bindings:
        owners = modules if binding.owner == UNNAMED_MODULE else [binding.owner]
        yield from (binding._replace(owner=owner) for owner in owners)


def _are_in(bindings: Iterable[Binding], extensions: frozenset[str]) -> bool:
    return all(not b.registered and b.owner in extensions for b in bindings)


def project_root(file: Path) -> Path | None:
    """The folder of the project that a file belongs to, `None` if nothing marks one."""
    for folder in file.parents:
        if any(_is_there(folder / marker) for marker in _ROOT_MARKERS):
            return folder
    return None


def _own_modules(
    files: Sequence[Path], folders: Iterable[Path], catalogue: Catalogue
) -> Iterator[str]:
    """Names of libraries that are top-level modules of the project."""
    libraries = {name.partition(".")[0] for name in catalogue.libraries}
    tops: dict[Path, Path] = {}
    for folder in {file.parent for file in files}:
        top = outermost_package(folder, tops)
        if top != folder:  # a package, perhaps in a namespace package
            yield from libraries & {folder.name if folder.parent == top else "", top.name}
    built = {file.parent for file in files if file.name == "setup.py"}
    for top in {*tops.values(), *folders, *built}:
        there = _names_in(top)
        for name in libraries:
            is_package = name in there and _is_there(top / name / "__init__.py")
            if is_package or f"{name}.py" in there:
                yield name
    for folder in folders:
        if folder.resolve().name in libraries:
            yield folder.resolve().name
        for parent in (folder, folder / "src"):
            yield from (name for name in libraries if _is_package(parent / name))


def _names_in(folder: Path) -> set[str]:
    """What stands in a folder; asking for each name alone takes long where there are many."""
    try:
        return {entry.name for entry in folder.iterdir()}
    except OSError:
        return set()


def _is_package(folder: Path) -> bool:
    """Whether a folder holds Python files, perhaps only in its own folders."""
    return _is_there(folder) and (
        next(folder.glob("*.py"), None) is not None
        or next(folder.glob("*/__init__.py"), None) is not None
    )


def _is_there(path: Path) -> bool:
    """Whether a path is there and can be looked at."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def outermost_package(folder: Path, known: dict[Path, Path]) -> Path:
    """The folder that holds the outermost package around a folder; `known` is filled on the way."""
    climbed = []
    while folder not in known and _is_there(folder / "__init__.py") and folder.parent != folder:
        climbed.append(folder)
        folder = folder.parent
    top = known.setdefault(folder, folder)
    known.update(dict.fromkeys(climbed, top))
    return top


def _native_source(file: Path, content: Content, memo: FactMemo) -> CppBindings:
    """What a C++ or CUDA source binds."""
    about = (str(file), content.digest)
    return memo.recall(
        "native source",
        about,
        lambda: read_native_source(content.text, str(file)),
        _read_native_source,
    )


def _read_native_source(plain: Any) -> CppBindings:
    bindings, is_cuda, is_ported = plain
    return CppBindings(
        tuple(_read_binding(*each) for each in bindings), truth(is_cuda), truth(is_ported)
    )


def _read_binding(
    owner: Any, name: Any, registered: Any, key: Any, has_code: Any, span: Any, block: Any
) -> Binding:
    start, end = span
    if not all(isinstance(number, int) for number in (start, end, block)):
        raise TypeError("no binding")
    owner, name, key = texts([owner, name, key])
    return Binding(owner, name, truth(registered), key, truth(has_code), Span(start, end), block)


def _modules(file: Path, extensions: Sequence[Extension]) -> list[str]:
    """What the extension module may be called that a source goes into; empty if not known."""
    near = [extension for extension in extensions if extension.folder in file.parents]
    listed = [extension.name for extension in near if file.name in extension.sources]
    unlisted = [extension.name for extension in near if not extension.sources]
    return sorted(set(listed or unlisted)) or [""]


def _beside_cuda(
    sources: Mapping[Path, CppBindings], extensions: Sequence[Extension]
) -> Iterator[str]:
    """C++ sources that a build file lists with CUDA files, or that have CUDA files beside them."""
    with_cuda = [e for e in extensions if any(s.endswith(CUDA_SUFFIXES) for s in e.sources)]
    of_all = [e.folder for e in extensions if e.is_cuda and not e.sources]
    by_folder: dict[Path, list[str]] = {}
    for file in sources:
        if file.suffix == ".cu":
            by_folder.setdefault(file.parent, []).append(file.stem)
    for file, source in sources.items():
        if not source.bindings or source.is_ported or file.suffix in CUDA_SUFFIXES:
            continue
        kernels = by_folder.get(file.parent, ())
        if (
            any(e.folder in file.parents and file.name in e.sources for e in with_cuda)
            or any(stem == file.stem or stem.startswith(f"{file.stem}_") for stem in kernels)
            or file.parent / "cuda" in by_folder
            or (kernels and any(folder in file.parents for folder in of_all))
        ):
            yield str(file)
