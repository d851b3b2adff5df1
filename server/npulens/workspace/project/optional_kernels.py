"""CUDA sources that a project compiles when it runs, and does without where that fails.

Such a source need not be ported: a module loads it where CUDA is there, and calls a function of
PyTorch's own operators elsewhere.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType
from typing import NamedTuple

from npulens.syntax.bindings import target_names
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.walking import nodes_below, parents_below
from npulens.text.lines import LineMap
from npulens.verdicts.failing_imports import tried_parts
from npulens.verdicts.file_role import FileRole, file_role
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, texts, truth

_MAX_USES = 100
"""What is used more often is not looked into, which bounds the work for hostile modules."""
_CHECKS_DEVICE = re.compile(r"\bdevice\b|is_cuda|cuda")
_COMPILES = b"cpp_extension.load("
BUILD_FILE = re.compile(r"setup|build|extension", re.IGNORECASE)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class OptionalKernels(NamedTuple):
    """What a project does without where it cannot compile for CUDA.

    Attributes:
        sources: CUDA sources of which every module that names them has another way.
        modules: Modules that only compile sources for such modules.
    """

    sources: frozenset[Path]
    modules: frozenset[Path]


def optional_kernels(sources: Iterable[Path], modules: Modules, memo: FactMemo) -> OptionalKernels:
    """Of some C++ and CUDA files that bind operators those which need not be ported."""
    loaders = {source: _loaders(source, modules, memo) for source in sources}
    named: dict[Path, set[str]] = {}
    for source, files in loaders.items():
        for file in files:
            named.setdefault(file, set()).add(source.name)
    without = {file: _does_without(modules[file], names, memo) for file, names in named.items()}
    exempt = {
        source
        for source, files in loaders.items()
        if files and all(source.name in without[file] for file in files)
    }
    careful = {file for source in exempt for file in loaders[source]}
    compilers = {
        file
        for file, content in (modules.items() if careful else ())
        if _COMPILES in content.data and _serves_only(file, careful, modules)
    }
    return OptionalKernels(frozenset(exempt), frozenset(compilers))


def _loaders(source: Path, modules: Modules, memo: FactMemo) -> list[Path]:
    """The modules that name a source; none if a build file does, which compiles it in any case."""
    folder = os.fsencode(source.parent.name)
    loaders = [
        file
        for file, content in modules.items()
        if _names(content, source.name, memo)
        and (folder in content.data or file.parent == source.parent)
        and FileRole.TEST not in file_role(str(file))
    ]
    return [] if any(BUILD_FILE.search(file.stem) for file in loaders) else loaders


def _names(content: Content, source: str, memo: FactMemo) -> bool:
    """Whether a module names a source."""
    name = os.fsencode(source)
    return memo.is_so(f"names {source}", content.digest, lambda: name in content.data)


def _serves_only(module: Path, careful: set[Path], modules: Modules) -> bool:
    """Whether the functions of a module that compile sources are named by careful modules only."""
    tree = parse(modules[module].text)
    if isinstance(tree, SyntaxProblem):
        return False
    compiling = [
        node.name.encode()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(part, ast.Attribute) and part.attr == "load" for part in nodes_below(node)
        )
    ]
    users = {
        file
        for file, content in modules.items()
        if file != module and any(name in content.data for name in compiling)
    }
    return bool(users) and users <= careful


def _does_without(module: Content, sources: Iterable[str], memo: FactMemo) -> tuple[str, ...]:
    """Of the sources that a module loads those for each use of which it has another way."""
    names = sorted(sources)

    def answer() -> list[str]:
        user = _user(module.text)
        return [] if user is None else [name for name in names if user.does_without(name)]

    return memo.recall("does without sources", (module.digest, *names), answer, texts)


def does_without_extension(
    module: Content, extension: str, built: frozenset[str], memo: FactMemo
) -> bool:
    """Whether a module that imports an extension has another way for each use of it.

    Args:
        module: The module.
        extension: The last part of the name of the extension.
        built: The names by which modules take what the project builds of CUDA code.
        memo: What is known of the module.
    """

    def answer() -> bool:
        user = _user(module.text)
        return user is not None and user.can_miss(extension, built)

    about = (module.digest, extension, *sorted(built))
    return memo.recall("does without extension", about, answer, truth)


def _user(text: str) -> "_User | None":
    tree = parse(text)
    return None if isinstance(tree, SyntaxProblem) else _User(tree, text)


class _User:
    """A module that compiles or imports kernels, and calls them."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._text = text
        self._lines = LineMap(text)
        self._owners = parents_below(tree)
        self._defined = {node.name: node for node in tree.body if isinstance(node, Definition)}
        self._uses: dict[str, list[ast.Name]] = {}
        self._replaced: dict[Definition, bool] = {}
        self._texts: list[ast.Constant] = []
        self._imports: list[ast.Import | ast.ImportFrom] = []
        for node in nodes_below(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._uses.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._texts.append(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._imports.append(node)

    def does_without(self, source: str) -> bool:
        """Whether all code that runs a source may fail to load it, and does something else then."""
        named = [n for n in self._texts if n.value == source or str(n.value).endswith("/" + source)]
        loaders = {self._definition_around(node) for node in named}
        if not loaders or None in loaders:
            return False
        kernels = {name for loader in loaders if loader for name in globals_of(loader)}
        users = {
            self._definition_around(use)
            for kernel in kernels
            for use in self._uses.get(kernel, ())
            if self._is_run(use)
        } - loaders
        marks = re.compile("|".join(map(re.escape, (*kernels, *(n.name for n in loaders if n)))))
        return (
            bool(users)
            and all(loader and self._may_fail(loader) for loader in loaders)
            and all(user and self._has_another_way(user, marks) for user in users)
        )

    def can_miss(self, extension: str, built: frozenset[str]) -> bool:
        """Whether each use of what an extension brings may fail, or is left out without it."""
        brought = [(n, name) for n in self._imports for name in _brought(n, extension)]
        names = {name for node, name in brought if name not in self._bound_else(node, built)}
        if brought and not names:
            return True
        marks = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
        uses = [use for name in names for use in self._uses.get(name, ())]
        return (
            bool(names)
            and len(uses) <= _MAX_USES
            and all(self._is_exempt(use, marks) for use in uses)
        )

    def _bound_else(self, node: ast.AST, built: frozenset[str]) -> set[str]:
        """The names that are bound to something that works where an import fails."""
        while not isinstance(owner := self._owners[node], (Definition, ast.Module)):
            if isinstance(owner, ast.Try) and node in tried_parts(owner):
                bodies = [handler.body for handler in owner.handlers]
                return {n for body in bodies for s in body for n in _bound_to_other(s, built)}
            node = owner
        return set()

    def _is_exempt(self, use: ast.Name, marks: re.Pattern[str]) -> bool:
        if isinstance(self._owners[use], ast.Compare):
            return True
        for other in self._alternatives(use, marks):
            if not (other and isinstance(other[-1], ast.Raise)):
                return True
        user = self._definition_around(use)
        return user is not None and self._has_another_way(user, marks)

    def _is_run(self, kernel: ast.Name) -> bool:
        """Whether a function is taken from a kernel, more than a number to compare with."""
        member = self._owners[kernel]
        return isinstance(member, ast.Attribute) and not (
            isinstance(member.ctx, ast.Store) or isinstance(self._owners[member], ast.Compare)
        )

    def _definition_around(self, node: ast.AST) -> Definition | None:
        """The function or class of the module that holds a node."""
        while not isinstance(self._owners.get(node, None), (ast.Module, NoneType)):
            node = self._owners[node]
        return node if isinstance(node, Definition) else None

    def _outside(self, definition: Definition) -> list[ast.Name]:
        uses = self._uses.get(definition.name, ())
        return [use for use in uses if self._definition_around(use) is not definition]

    def _may_fail(self, loader: Definition) -> bool:
        """Whether a function catches what goes wrong in it, or all its callers do."""
        if any(isinstance(n, ast.Try) and tried_parts(n) for n in nodes_below(loader)):
            return True
        uses = self._outside(loader)
        return bool(uses) and all(any(self._alternatives(use, None)) for use in uses)

    def _has_another_way(self, user: Definition, marks: re.Pattern[str]) -> bool:
        """Whether wherever something is called, a function of the module can take its place."""
        if user not in self._replaced:
            uses = self._outside(user)
            self._replaced[user] = 0 < len(uses) <= _MAX_USES and all(
                any(self._calls_own(way, user) for way in self._alternatives(use, marks))
                for use in uses
            )
        return self._replaced[user]

    def _alternatives(
        self, use: ast.AST, marks: re.Pattern[str] | None
    ) -> Iterator[list[ast.stmt]]:
        """What happens instead of a use: where it fails or, if `marks` are given, on a condition.

        The condition names one of the marks or a device.
        """
        node = use
        while not isinstance(owner := self._owners[node], (Definition, ast.Module)):
            if isinstance(owner, ast.Try) and node in tried_parts(owner):
                yield [part for handler in owner.handlers for part in handler.body]
            elif isinstance(owner, ast.If) and marks and node is not owner.test:
                test = self._source(owner.test)
                if marks.search(test) or _CHECKS_DEVICE.search(test):
                    other = owner.orelse if node in owner.body else owner.body
                    yield other or self._behind(owner)
            elif marks and isinstance(node, ast.stmt):
                yield from self._left_before(node, owner, marks)
            node = owner
        if marks and isinstance(node, ast.stmt):
            yield from self._left_before(node, owner, marks)

    def _left_before(
        self, statement: ast.stmt, owner: ast.AST, marks: re.Pattern[str]
    ) -> Iterator[list[ast.stmt]]:
        """What is done before a statement where a condition leaves the function: no kernel."""
        block = next((b for b in _blocks(owner) if statement in b), [])
        for before in block[: block.index(statement) if block else 0]:
            leaves = isinstance(before, ast.If) and isinstance(before.body[-1], ast.Return)
            if isinstance(before, ast.If) and leaves and marks.search(self._source(before.test)):
                yield before.body

    def _behind(self, statement: ast.If) -> list[ast.stmt]:
        """What follows an `if` whose body leaves the function."""
        if not isinstance(statement.body[-1], ast.Return):
            return []
        block = next(b for b in _blocks(self._owners[statement]) if statement in b)
        return block[block.index(statement) + 1 :]

    def _calls_own(self, body: list[ast.stmt], user: Definition) -> bool:
        return any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and self._defined.get(node.func.id, user) is not user
            for statement in body
            for node in nodes_below(statement)
        )

    def _source(self, node: ast.AST) -> str:
        assert isinstance(node, (ast.expr, ast.stmt))
        return self._text[slice(*self._lines.span(node))]


def _brought(node: ast.Import | ast.ImportFrom, extension: str) -> Iterator[str]:
    """The names by which an import brings an extension, or what is in it."""
    inside = isinstance(node, ast.ImportFrom) and (node.module or "").endswith(extension)
    for alias in node.names:
        if inside or alias.name.rpartition(".")[2] == extension:
            yield alias.asname or alias.name.partition(".")[0]


def _bound_to_other(statement: ast.stmt, built: frozenset[str]) -> Iterator[str]:
    """The names that a statement binds to something that runs without CUDA code of the project."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            if alias.name.rpartition(".")[2] not in built:
                yield alias.asname or alias.name
    elif isinstance(statement, ast.Assign):
        value = statement.value
        if not isinstance(value, (ast.Constant, ast.Call)):
            yield from (name for target in statement.targets for name in target_names(target))


def globals_of(function: ast.AST) -> set[str]:
    """The names that a function declares to be those of the module."""
    declared = (node for node in nodes_below(function) if isinstance(node, ast.Global))
    return {name for node in declared for name in node.names}


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a statement."""
    found = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block]
