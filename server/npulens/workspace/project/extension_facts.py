"""The CUDA code of a project: what it builds and binds for Python, and what it does without."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from npulens.catalog.project_model import ExtensionFacts, OptionalFacts
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
from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo, texts, truth
from npulens.workspace.project.built_extensions import Extension, cmake_extensions, extensions_of
from npulens.workspace.project.extension_names import extension_names
from npulens.workspace.project.foreign_extensions import foreign_extensions
from npulens.workspace.project.npu_builders import copies, npu_builders
from npulens.workspace.project.optional_kernels import optional_kernels
from npulens.workspace.project.optional_modules import optional_parts


def extension_facts(
    files: Sequence[Path],
    modules: Modules,
    catalogue: Catalogue,
    contents: Contents,
    memo: FactMemo,
) -> tuple[ExtensionFacts, OptionalFacts]:
    """The CUDA code of a project, and what the project does without."""
    built = extensions_of(modules, memo)
    cmake = [file for file in files if kind_by_name(str(file)) is Kind.CMAKE]
    extensions = [extension for found in built.values() for extension in found]
    extensions += cmake_extensions({file: contents.of(file) for file in cmake}, memo)
    importable = [extension for extension in extensions if not extension.is_loaded]
    natives = {f: contents.of(f) for f in files if kind_by_name(str(f)) is Kind.NATIVE}
    sources = {file: _native_source(file, content, memo) for file, content in natives.items()}
    beside = frozenset(_beside_cuda(sources, importable))
    bindings = {
        file: list(_named(cuda_bindings(source, str(file) in beside), _modules(file, importable)))
        for file, source in sources.items()
    }
    made_of_cuda = {extension.name for extension in importable if extension.is_cuda}
    bound = {b.owner for each in bindings.values() for b in each if not b.registered}
    loaded = {name for extension in extensions for name in extension.bound}
    optional = optional_parts(modules, catalogue, bound | made_of_cuda, memo, loaded)
    replaced = npu_builders(modules, memo) & sources.keys()
    kernels = optional_kernels([f for f, each in bindings.items() if each], modules, memo)
    settled = {f for f, each in bindings.items() if each and _are_in(each, optional.extensions)}
    settled |= replaced | kernels.sources
    ported = _ported(sources, replaced)
    left = [b for file, each in bindings.items() if file not in settled for b in each]
    foreign = foreign_extensions(files, modules, catalogue, memo)
    facts = ExtensionFacts(
        operators=frozenset((b.owner, b.name) for b in left if not b.registered) - ported,
        registered=_registered(left) - {".".join(pair) for pair in ported},
        names=extension_names(extensions, modules, files, memo),
        foreign=foreign.certain - made_of_cuda,
        likely=foreign.likely - {extension.name for extension in extensions},
        beside_cuda=beside,
        settled_sources=frozenset(map(str, {*settled, *copies(natives)})),
        is_for_host=bool(sources) and not any(map(_is_for_cuda, sources, sources.values())),
    )
    compilers = map(str, kernels.modules)
    # A build of sources that are elsewhere may fail in other ways than those that are handled.
    builds = _only_of(optional.extensions, built) if sources else ()
    without = optional.modules.union(compilers, builds)
    return facts, OptionalFacts(without, optional.exempt_imports)


def _only_of(names: frozenset[str], built: Mapping[Path, Sequence[Extension]]) -> Iterator[str]:
    """The files that build some of these extensions and no other."""
    for file, found in built.items():
        if found and all(extension.name in names for extension in found):
            yield str(file)


def _registered(bindings: Iterable[Binding]) -> frozenset[str]:
    """What sources register with PyTorch, each with its namespace."""
    found = (b for b in bindings if b.registered and b.owner not in ("", "aten"))
    return frozenset(f"{binding.owner}.{binding.name}" for binding in found)


def _ported(sources: Mapping[Path, CppBindings], replaced: frozenset[Path]) -> set[tuple[str, str]]:
    """What sources bind that have code for the NPU."""
    ported = (s for file, s in sources.items() if s.is_ported and file not in replaced)
    return {(binding.owner, binding.name) for source in ported for binding in source.bindings}


def _is_for_cuda(file: Path, source: CppBindings) -> bool:
    return source.is_cuda or file.suffix in CUDA_SUFFIXES


def _named(bindings: Iterable[Binding], modules: Sequence[str]) -> Iterator[Binding]:
    """Bindings with the module that they go into: each of them, if the build fills in the name."""
    for binding in bindings:
        owners = modules if binding.owner == UNNAMED_MODULE else [binding.owner]
        yield from (binding._replace(owner=owner) for owner in owners)


def _are_in(bindings: Iterable[Binding], extensions: frozenset[str]) -> bool:
    return all(not b.registered and b.owner in extensions for b in bindings)


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
        if source.is_ported or file.suffix in CUDA_SUFFIXES:
            continue
        kernels = by_folder.get(file.parent, ())
        if (
            any(e.folder in file.parents and file.name in e.sources for e in with_cuda)
            or any(stem == file.stem or stem.startswith(f"{file.stem}_") for stem in kernels)
            or file.parent / "cuda" in by_folder
            or (kernels and any(folder in file.parents for folder in of_all))
        ):
            yield str(file)
