"""Which files of a tree run under `transfer_to_npu` because the scripts that import them do.

The shim works for the whole process, so what counts is the entry script. A file runs under the
shim if a script that imports the shim leads to it, and no script without it does; or if a package
that it lies in imports the shim, which happens before. Adaptors of MindSpeed import the shim, too.
Imports are read from the bytes: thousands of files are looked at, and only where one names it.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from npulens.catalog.model import MigrationStyle, Shim
from npulens.fixes.shim_edits import SHIM_MODULE, is_adaptor, may_load_shim
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.late_patterns import late
from npulens.workspace.files.discovery import discover
from npulens.workspace.index.contents import Contents, Stamp, read, stamp
from npulens.workspace.index.import_lines import import_statements
from npulens.workspace.index.module_files import ModuleFiles, all_reached
from npulens.workspace.settings.configuration import Configuration, absolute

_SWITCH = late(rb"environ\[[\"']TORCH_TRANSFER_TO_NPU[\"']\]\s*=\s*[\"']1[\"']")
_ACTS = late(r"^(?:if __name__ ==|(?:for|while|with)\b|[A-Za-z_][\w.]*\()", re.MULTILINE)
_DEFINES = late(r"^(?:async def|def|class|@)", re.MULTILINE)
_COMPUTES = late(r"^[A-Za-z_][\w.,\[\] \t]*=[^=\n][^\n]*\(", re.MULTILINE)
_OUTER = late(rb"^(?:\w.*|[ \t]+(?:async[ \t]+)?(?:def|class)\b)", re.MULTILINE)
"""Lines in column 0, and definitions within blocks."""
_RUNS_AT_ONCE = late(rb"(?:if|elif|else|try|except|finally|with|for|while)\b(?!.*__name__)")
_SETUP_FILE = os.sep + "setup.py"
_PACKAGE_FILE = os.sep + "__init__.py"
_TEST_FILE = late(r"(?:\A|/)(?:tests?/|test_[^/]*\Z|[^/]*_test\.py\Z|conftest\.py\Z|setup\.py\Z)")


class _Import(NamedTuple):
    """What a statement imports; `later` if not at once, but in a function or what looks like it."""

    names: tuple[str, ...]
    later: bool

    @property
    def shim(self) -> Shim | None:
        """What of the shim it turns on."""
        if any(map(is_adaptor, self.names)):
            return Shim.ADAPTED
        return Shim.ACTIVE if SHIM_MODULE in self.names else None


@dataclass(frozen=True, slots=True)
class _Source:
    """What matters of one file.

    Attributes:
        imports: What it imports, in order.
        acts: Read as a script, it does something: it has a main guard, or top-level calls, which
            may be assigned where it defines nothing.
        names_cuda: It holds "cuda" or "nccl".
    """

    imports: tuple[_Import, ...]
    has_shim: bool
    acts: bool
    names_cuda: bool


class ShimFinder:
    """Finds out about the shim in a tree; called again, it reads only what has changed.

    `contents` has what was read of its files already; a later look has none.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        self._contents = contents
        self._mentions: dict[str, tuple[Stamp | None, bool]] = {}
        self._sources: dict[str, tuple[Stamp | None, _Source]] = {}
        self._tree: tuple[str, dict[str, _Source]] = ("", {})
        self._states: dict[str, Shim] = {}

    def states(
        self, files: Iterable[Path], root: Path, *, is_wanted: bool = False
    ) -> Mapping[str, Shim]:
        """For each file that runs under the shim, by its absolute path, since when it does.

        Scripts that import the shim themselves are not among them.

        Args:
            files: The Python files of a tree.
            root: Its folder, from which modules can be imported.
            is_wanted: Whether all of it is to run under the shim: then scripts are among them that
                name CUDA, or lead to what does, and do not import the shim.
        """
        paths = (os.path.abspath(file) for file in files)  # noqa: PTH100 (of thousands)
        python = (path for path in paths if kind_by_name(path) in (Kind.PYTHON, None))
        stamps = {path: stamp(path) for path in python}
        if not is_wanted and not any(map(self._mentions_shim, stamps, stamps.values())):
            self._sources.clear()
            return {}
        self._sources = {path: self._read(path, stamp) for path, stamp in stamps.items()}
        tree = str(absolute(root)), {path: source for path, (_, source) in self._sources.items()}
        if tree != self._tree:  # what was saved may import what it did before
            self._tree, self._states = tree, _Tree(*tree).states(is_wanted=is_wanted)
        return self._states

    def scripts_without_shim(
        self, files: Iterable[Path], root: Path, started: Path | None = None
    ) -> list[Path]:
        """The scripts of a tree that run with torch, or lead to it, but not under the shim.

        `started` is known to be one, whatever it looks like.
        """
        paths = [str(absolute(file)) for file in files]
        tree = _Tree(str(absolute(root)), {path: self._read(path, None)[1] for path in paths})
        known = None if started is None else str(absolute(started))
        return [Path(path) for path in tree.scripts_without_shim(known)]

    def states_of_project(
        self, configuration: Configuration, files: Iterable[Path] = (), folder: Path | None = None
    ) -> Mapping[str, Shim]:
        """The same for a project, which is the folder of its configuration.

        Args:
            configuration: Where the project is, and what of it does not count.
            files: The tree where there is no configuration.
            folder: The folder that they are in; without `files` these are all files below.
        """
        if configuration.source is not None:
            folder = configuration.root
        if folder is None:
            return {}
        if configuration.source is not None or not files:
            files = discover(
                [str(folder)], configuration.exclude, folder, configuration.respect_gitignore
            ).files
        is_wanted = configuration.style is MigrationStyle.RUNTIME_SHIM
        return self.states(files, folder, is_wanted=is_wanted)

    def _mentions_shim(self, path: str, stamp: Stamp | None) -> bool:
        known = self._mentions.get(path)
        if known is None or known[0] != stamp:
            data = self._content(path)
            known = stamp, may_load_shim(data.decode("latin-1"))
            self._mentions[path] = known
        return known[1]

    def _content(self, path: str) -> bytes:
        return read(path) if self._contents is None else self._contents.of(path).data

    def _read(self, path: str, stamp: Stamp | None) -> tuple[Stamp | None, _Source]:
        known = self._sources.get(path)
        if known is not None and known[0] == stamp:
            return known
        data = self._content(path)
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        imports = tuple(_imports(data))
        has_shim = any(each.shim for each in imports)
        names_cuda = "cuda" in text or "nccl" in text
        return stamp, _Source(imports, has_shim, _acts(text), names_cuda)


def _acts(text: str) -> bool:
    if _ACTS.search(text) is not None:
        return True
    return _DEFINES.search(text) is None and _COMPUTES.search(text) is not None


def _imports(data: bytes) -> Iterator[_Import]:
    found = _SWITCH.search(data)
    switch = len(data) if found is None else found.start()
    outer = list(_OUTER.finditer(data))
    starts = [each.start() for each in outer]
    for names, is_indented, at in import_statements(data):
        if at > switch:
            yield _Import((SHIM_MODULE,), False)
            switch = len(data)
        around = bisect_left(starts, at) - 1
        head = outer[around][0] if is_indented and around >= 0 else b""
        if b"TYPE_CHECKING" not in head:
            yield _Import(names, is_indented and _RUNS_AT_ONCE.match(head) is None)
    if switch < len(data):
        yield _Import((SHIM_MODULE,), False)


def _names_torch(source: _Source) -> bool:
    return any(name.partition(".")[0] == "torch" for each in source.imports for name in each.names)


_END: tuple[None, None] = (None, None)
_Target: TypeAlias = str | Shim
"""A file, or the shim: `ADAPTED` through an adaptor, `ACTIVE` by itself."""


class _Tree:
    """The import graph of a tree."""

    def __init__(self, root: str, sources: Mapping[str, _Source]) -> None:
        self._sources = sources
        self._root = root
        self._files = ModuleFiles(sources)
        self._targets: dict[str, list[tuple[_Target, bool]]] = {}

    def states(self, *, is_wanted: bool) -> dict[str, Shim]:
        """For each file, whether the shim is there when scripts have imported it."""
        imported = {t for path in self._sources for t, _ in self._edges(path) if t != path}
        started = [path for path in self._sources if path not in imported]
        shimmed = self._with_shim()
        unshimmed = self._reached(
            p for p in started if p not in shimmed and self._starts_program(p)
        )
        packaged = {
            file: state
            for package in self._shimmed_packages()
            for file, state in self._of_package(package)
        }
        tests = [path for path in started if path in shimmed and self._is_test(path)]
        states = self._of_scripts({t for t in started if t in shimmed}.difference(tests), packaged)
        states = self._of_scripts(tests, packaged) | states
        states = {file: state for file, state in states.items() if file not in unshimmed}
        for file, state in packaged.items():
            if state is Shim.LATE or not self._sources[file].has_shim:
                states[file] = state
        for script in self.scripts_without_shim() if is_wanted else ():
            if any(self._sources[each].names_cuda for each in self._reached([script])):
                states[script] = Shim.MISSING
        return states

    def _of_scripts(self, scripts: Iterable[str], packaged: Mapping[str, Shim]) -> dict[str, Shim]:
        """The state of each file that some scripts lead to, all of which import the shim.

        Not in this order where their package does it before.
        """
        states: dict[str, Shim] = {}
        for script in scripts:
            for file, state in self._run(script, packaged.get(script))[0].items():
                if states.get(file) is not Shim.LATE:
                    states[file] = state
        return states

    def scripts_without_shim(self, started: str | None = None) -> list[str]:
        """The scripts that lead to torch, not to the shim.

        Besides the one known to be started, they are those that nothing of the tree imports.
        """
        imported = {t for path in self._sources for t, _ in self._edges(path) if t != path}
        shimmed = self._with_shim()
        return [
            path
            for path in self._sources
            if path not in shimmed
            and (path == started or (path not in imported and self._starts_program(path)))
            and any(_names_torch(self._sources[each]) for each in self._reached([path]))
        ]

    def _starts_program(self, path: str) -> bool:
        """Whether a file looks as if somebody starts it; in a package it has to say so."""
        if not self._is_script(path):
            return False
        return not self._is_in_package(path) or b"__name__ ==" in read(path)

    def _with_shim(self) -> set[str]:
        """The files that lead to the shim, or to an adaptor at once; some call one on request."""
        return self._leading_to(Shim.ACTIVE, self._edges) | self._leading_to(
            Shim.ADAPTED, self._at_once
        )

    def _leading_to(
        self, shim: Shim, edges: Callable[[str], list[tuple[_Target, bool]]]
    ) -> set[str]:
        """The files that import the shim, and those that import these, and so on."""
        importers: dict[_Target, list[str]] = {}
        for path in self._sources:
            for target, _ in edges(path):
                importers.setdefault(target, []).append(path)
        return all_reached(importers.get(shim, ()), lambda path: importers.get(path, ()))

    def _shimmed_packages(self) -> list[str]:
        """Each `__init__.py` that imports the shim at once, and lies in no package that does."""
        at_once = (self._leading_to(each, self._at_once) for each in (Shim.ACTIVE, Shim.ADAPTED))
        there = {path for path in set().union(*at_once) if path.endswith(_PACKAGE_FILE)}
        return [path for path in there if there.isdisjoint(self._packages_above(path))]

    def _of_package(self, package: str) -> Iterator[tuple[str, Shim]]:
        """The state of each file of a package that imports the shim; all run after that.

        Not of those that it imports before, nor of what is started as a script.
        """
        run, since = self._run(package)
        inside = os.path.dirname(package) + os.sep  # noqa: PTH120
        for path in self._sources:
            is_script = self._starts_program(path) or path.endswith(_SETUP_FILE)
            runs_after = path.startswith(inside) and not is_script
            if runs_after:
                yield path, run.get(path, since or Shim.ACTIVE)

    def _packages_above(self, path: str) -> Iterator[str]:
        """Where the packages that a package lies in would have their file."""
        folder = os.path.dirname(os.path.dirname(path))  # noqa: PTH120
        while folder.startswith(self._root):
            yield folder + _PACKAGE_FILE
            folder, below = os.path.dirname(folder), folder  # noqa: PTH120
            if folder == below:
                break

    def _at_once(self, path: str) -> list[tuple[_Target, bool]]:
        return [edge for edge in self._edges(path) if not edge[1]]

    def _reached(self, scripts: Iterable[str]) -> set[str]:
        """The scripts, and all that they lead to."""
        return all_reached(scripts, self._files_imported)

    def _files_imported(self, path: str) -> list[str]:
        return [target for target, _ in self._edges(path) if not isinstance(target, Shim)]

    def _is_script(self, path: str) -> bool:
        """Whether somebody starts a file; tests, which mostly run elsewhere, do not count."""
        return self._sources[path].acts and not self._is_test(path)

    def _is_test(self, path: str) -> bool:
        relative = os.path.relpath(path, self._root).replace(os.sep, "/")
        return _TEST_FILE.search(relative) is not None

    def _is_in_package(self, path: str) -> bool:
        return os.path.join(os.path.dirname(path), "__init__.py") in self._sources  # noqa: PTH118, PTH120

    def _run(self, script: str, before: Shim | None = None) -> tuple[dict[str, Shim], Shim | None]:
        """Follow the imports of a script in the order in which they happen.

        Returns:
            The state of each file, and what of the shim is there in the end.
        """
        active: Shim | None = None if before is Shim.LATE else before
        states: dict[str, Shim] = {}
        seen = {script}
        later = [script]
        for start in later:  # grows on the way
            stack = [iter(self._edges(start))]
            while stack:
                edges = stack[-1]
                target, is_later = next(edges, _END)
                if target is None:
                    stack.pop()
                elif isinstance(target, Shim):
                    active = target if active is not Shim.ADAPTED else active
                elif target not in seen:
                    seen.add(target)
                    if is_later:
                        later.append(target)
                    else:
                        stack.append(iter(self._edges(target)))
                        states[target] = active or Shim.LATE
            if start != script:
                states[start] = active or Shim.LATE
        if not self._sources[script].has_shim:  # else its own order is looked at in the file
            states[script] = active or Shim.ACTIVE
        return states, active

    def _edges(self, path: str) -> list[tuple[_Target, bool]]:
        """What a file imports, in order: files, and the shim."""
        if path not in self._targets:
            self._targets[path] = list(self._found(path))
        return self._targets[path]

    def _found(self, path: str) -> Iterator[tuple[_Target, bool]]:
        for each in self._sources[path].imports:
            if each.shim is Shim.ACTIVE or (each.shim is not None and not each.later):
                yield each.shim, each.later
            for name in each.names:
                for target in self._files.run_by(name, path, self._search_path(path)):
                    yield target, each.later

    def _search_path(self, path: str) -> Iterator[str]:
        """Where modules are looked for: beside the file, above it up to the root, and `src`."""
        folder = os.path.dirname(path)  # noqa: PTH120
        while True:
            yield folder
            above = os.path.dirname(folder)  # noqa: PTH120
            if folder == self._root or above == folder:
                break
            folder = above
        yield os.path.join(self._root, "src")  # noqa: PTH118
