"""Modules that nothing of a project imports, such as copies that were replaced by others."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import imported_names
from npulens.workspace.project.unused import READS, runs_alone, runs_something

_IMPORTING = (b"import_module", b"__import__", b"iter_modules", b"walk_packages", b"run_module")
"""What imports modules by names that are made up."""
_COMPUTES = re.compile(rb"softmax|rsqrt|silu|gelu|optim\.")
"""What a fused operator may do."""
_ENTRANCES = frozenset({"__init__.py", "hubconf.py", "conftest.py"})
"""Modules that Python, PyTorch's hub and pytest read by their names."""


def imports_made_up_names(modules: Modules) -> bool:
    """Whether modules are imported by names that are put together: then any may be."""
    return any(word in content.data for content in modules.values() for word in _IMPORTING)


def unused_modules(
    modules: Modules,
    files: Sequence[Path],
    folders: Iterable[Path],
    contents: Contents,
    memo: FactMemo,
) -> frozenset[str]:
    """The paths of modules that only define something, and that no file of the project names.

    Or only others of which that is true.

    Only projects of scripts are looked at, and only as a whole: others may import what a package
    offers. Where modules are imported by names that are made up, all may be, and
    what lies in the root of a project may be tried out in a shell.
    """
    named = list(folders)
    if not runs_alone(named) or imports_made_up_names(modules):
        return frozenset()
    if not any(runs_something(content, memo) for content in modules.values()):
        return frozenset()  # nothing is run here
    roots = {folder.resolve() for folder in named}
    inner = {
        file: content
        for file, content in modules.items()
        if _may_matter(content, memo) and file.parent.resolve() not in roots
    }
    left = {
        file
        for file, content in inner.items()
        if file.name not in _ENTRANCES and not runs_something(content, memo)
    }
    imports = {file: set(_imported(file, modules[file], memo)) for file in modules if left}
    unused: set[Path] = set()
    while left:
        used = set().union(*(names for file, names in imports.items() if file not in unused))
        others = [file for file in files if file not in unused]
        found = {
            file
            for file in left
            if not _is_among(file, used) and not _is_named(file, others, contents)
        }
        if not found:
            break
        unused |= found
        left -= found
    return frozenset(map(str, unused))


def _imported(file: Path, content: Content, memo: FactMemo) -> Iterator[tuple[str, ...]]:
    """What the imports of a module may read, as last parts of paths, also of those in comments."""
    above = file.parents
    for name in imported_names(content, memo):
        plain = name.lstrip(".")
        dots = min(len(name) - len(plain), len(above))
        folder = above[dots - 1].parts if dots else ()
        yield (*folder, *plain.split("."))


def _is_among(file: Path, imported: set[tuple[str, ...]]) -> bool:
    parts = file.with_suffix("").parts
    return any(parts[index:] in imported for index in range(len(parts)))


def _may_matter(content: Content, memo: FactMemo) -> bool:
    """Whether findings may be in a module that depend on its being used."""
    data = content.data
    return memo.is_so(
        "may matter",
        content.digest,
        lambda: READS.search(data) is not None or _COMPUTES.search(data) is not None,
    )


def _is_named(file: Path, files: Sequence[Path], contents: Contents) -> bool:
    """Whether another file names a module: in a string, a setting, or a command."""
    around, name = file.parent.name.encode(), file.stem.encode()
    written = re.compile(
        rb"(?<!\w)(?:%b[./])%b(?!\w)|(?<!\w)%b\.py(?!\w)"
        % (re.escape(around), re.escape(name), re.escape(name))
    )
    texts = (contents.of(other).data for other in files if other != file)
    places = ((text, at) for text in texts for at in _places(text, name))
    behind = len(around) + 1
    return any(
        written.match(text, at) or (at >= behind and written.match(text, at - behind))
        for text, at in places
    )


def _places(text: bytes, name: bytes) -> Iterator[int]:
    """The place of a name: an expression that begins with any word takes several times as long."""
    at = text.find(name)
    while at >= 0:
        yield at
        at = text.find(name, at + 1)
