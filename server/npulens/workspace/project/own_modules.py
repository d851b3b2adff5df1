"""Where a project is, and which modules of its own hide libraries of the same name."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from npulens.catalog.tables import Catalogue
from npulens.workspace.index.contents import read

_TRACES = {"apex": (b"amp_C", b"apex_C", b"fused_layer_norm_cuda", b"multi_tensor_applier")}
"""Of libraries that projects bring along: their extension modules, and what calls them."""
_MOST_FILES = 200

_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def project_root(file: Path) -> Path | None:
    """The folder of the project that a file belongs to, `None` if nothing marks one."""
    return marked_folder(file.parent, {})


def marked_folder(folder: Path, known: dict[Path, Path | None]) -> Path | None:
    """The nearest folder around that marks a project; `known` is filled on the way."""
    if folder not in known:
        if any(_is_there(folder / marker) for marker in _ROOT_MARKERS):
            known[folder] = folder
        else:
            known[folder] = marked_folder(folder.parent, known) if folder.parent != folder else None
    return known[folder]


def own_modules(
    files: Sequence[Path], folders: Iterable[Path], catalogue: Catalogue
) -> Iterator[str]:
    """Names of libraries that are top-level modules of the project.

    One that holds the library itself, as a copy of apex does, is not among them.
    """
    for name, folder in _named_like_libraries(files, folders, catalogue):
        if name not in _TRACES or not _holds(folder, _TRACES[name]):
            yield name


def _named_like_libraries(
    files: Sequence[Path], folders: Iterable[Path], catalogue: Catalogue
) -> Iterator[tuple[str, Path]]:
    """The modules of the project that have the name of a library, and where they are."""
    libraries = {name.partition(".")[0] for name in catalogue.libraries}
    tops: dict[Path, Path] = {}
    for folder in {file.parent for file in files}:
        top = outermost_package(folder, tops)
        if top != folder:  # a package, perhaps in a namespace package
            names = libraries & {folder.name if folder.parent == top else "", top.name}
            yield from ((name, folder) for name in names)
    built = {file.parent for file in files if file.name == "setup.py"}
    for top in {*tops.values(), *folders, *built}:
        there = _names_in(top)
        for name in libraries & {each.removesuffix(".py") for each in there}:
            is_package = name in there and _is_there(top / name / "__init__.py")
            if is_package or f"{name}.py" in there:
                yield name, top / name
    for folder in folders:
        if folder.resolve().name in libraries:
            yield folder.resolve().name, folder
        for parent in (folder, folder / "src"):
            named = ((name, parent / name) for name in libraries & _names_in(parent))
            yield from ((name, place) for name, place in named if _is_package(place))


def _holds(folder: Path, traces: Sequence[bytes]) -> bool:
    """Whether Python files below a folder name what only the library has."""
    for path in sorted(folder.glob("**/*.py"))[:_MOST_FILES]:
        data = read(str(path))
        if any(trace in data for trace in traces):
            return True
    return False


def _names_in(folder: Path) -> set[str]:
    """The content of a folder; a query for each name takes long where there are many."""
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


def outermost_package(folder: Path, known: dict[Path, Path]) -> Path:
    """The folder that holds the outermost package around a folder; `known` is filled on the way."""
    if folder not in known:
        is_package = _is_there(folder / "__init__.py") and folder.parent != folder
        known[folder] = outermost_package(folder.parent, known) if is_package else folder
    return known[folder]


def _is_there(path: Path) -> bool:
    """Whether a path is there and can be looked at."""
    try:
        path.stat()
    except OSError:
        return False
    return True
