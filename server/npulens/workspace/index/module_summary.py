"""What one module says to others: its imports, classes, functions and names of libraries."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from npulens.syntax.bindings import Binding, Bindings, Function, bindings_of
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.values import Imported, Name, dotted_name
from npulens.syntax.walking import nodes_below
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.failing_imports import tried_parts
from npulens.verdicts.library_questions import queried_library
from npulens.workspace.index.contents import Content
from npulens.workspace.index.fact_memo import FactMemo, text, texts, truth

_OF_SUPER = re.compile(r"\bsuper\([^()]{0,200}\)\s*\.\s*(\w+)")


class ModuleImport(NamedTuple):
    """One import of a module.

    Attributes:
        level: Of a relative import its dots, 0 of an absolute one, -1 of a plain `import a.b`.
        module: What is imported from; empty if nothing is named.
        names: What is imported, each with the name that it gets.
        is_guarded: It may fail, or is under a condition that checks for a library.
    """

    level: int
    module: str
    names: tuple[tuple[str, str], ...]
    is_guarded: bool
    is_at_top: bool

    def paths(self, file: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
        """The modules that it may read, as parts of a path; whether from the root of one."""
        if self.level < 0:
            yield from ((tuple(name.split(".")), False) for name, _ in self.names)
            return
        module = tuple(self.module.split(".")) if self.module else ()
        if self.level:
            parents = file.parent.parts
            module = (*parents[: len(parents) - (self.level - 1)], *module)
        yield module, bool(self.level)
        yield from (((*module, name), bool(self.level)) for name, _ in self.names)


class ClassSummary(NamedTuple):
    """A class at the top of a module.

    Attributes:
        methods: Its methods, but for those that end in the one they override: a model whose `cuda`
            calls `super().cuda()` is one of PyTorch, and so is its `npu`.
        bases: Its base classes as the imports have them; of one of the module its name.
    """

    name: str
    methods: tuple[str, ...]
    bases: tuple[str, ...]


class ImportedName(NamedTuple):
    """A name at the top of a module that is bound by imports alone.

    Attributes:
        qualified: What it represents.
        is_public: A star takes it.
    """

    name: str
    qualified: str
    is_public: bool


class ModuleSummary(NamedTuple):
    """What one module says to others.

    Attributes:
        imports: All its imports, wherever they are.
        libraries: The names at its top that represent something of a library.
    """

    imports: tuple[ModuleImport, ...] = ()
    classes: tuple[ClassSummary, ...] = ()
    functions: tuple[str, ...] = ()
    libraries: tuple[ImportedName, ...] = ()


def summary_of(content: Content, memo: FactMemo) -> ModuleSummary:
    """The summary of a module; an empty one if it does not parse."""
    return memo.recall("summary", (content.digest,), lambda: _summary(content.text), _read)


def _summary(source: str) -> ModuleSummary:
    tree = parse(source)
    if isinstance(tree, SyntaxProblem):
        return ModuleSummary()
    bindings = bindings_of(tree.body, ())
    of_super = frozenset(_OF_SUPER.findall(source))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return ModuleSummary(
        tuple(_imports(tree)),
        tuple(_class(node, bindings, of_super) for node in classes),
        tuple(node.name for node in tree.body if isinstance(node, Function)),
        tuple(_libraries(tree, bindings)),
    )


def _imports(tree: ast.Module) -> Iterator[ModuleImport]:
    pending: list[tuple[ast.AST, bool, ast.AST]] = [(tree, False, tree)]
    while pending:
        node, is_guarded, owner = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            level, module = -1, ""
            if isinstance(node, ast.ImportFrom):
                level, module = node.level, node.module or ""
            names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
            yield ModuleImport(level, module, names, is_guarded, owner is tree)
            continue
        guarded: set[ast.AST] = set()
        if isinstance(node, ast.Try):
            guarded.update(tried_parts(node))
        elif isinstance(node, ast.If):
            answer = joined(node.test, _without_all)
            if answer.holds is not None:
                guarded.update(node.orelse if answer.holds else node.body)
        inside = [
            (child, is_guarded or child in guarded, node)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
        ]
        pending += reversed(inside)


def _without_all(part: ast.expr) -> Answer:
    """What a part of a condition comes to where nothing that it checks for exists."""
    return Answer(False) if queried_library(part) else UNKNOWN


def _class(node: ast.ClassDef, bindings: Bindings, of_super: frozenset[str]) -> ClassSummary:
    methods = (method for method in node.body if isinstance(method, Function))
    names = tuple(m.name for m in methods if m.name not in of_super or not _calls_overridden(m))
    return ClassSummary(node.name, names, tuple(_qualified(base, bindings) for base in node.bases))


def _calls_overridden(method: Function) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method.name
        and isinstance(node.value, ast.Call)
        and dotted_name(node.value.func) == Name("super")
        for node in nodes_below(method)
    )


def _qualified(base: ast.expr, bindings: Bindings) -> str:
    name = dotted_name(base)
    if name is None:
        return ""
    bound = next(iter(bindings.names.get(name.root, ())), None)
    root = bound.value.qualified if bound and isinstance(bound.value, Imported) else name.root
    return ".".join((root, *name.path))


def _libraries(tree: ast.Module, bindings: Bindings) -> Iterator[ImportedName]:
    listed = _listed(tree)
    for name, bound in bindings.names.items():
        is_public = not name.startswith("_") if listed is None else name in listed
        yield from (ImportedName(name, qualified, is_public) for qualified in _imported(bound))


def _imported(bound: Sequence[Binding]) -> Iterator[str]:
    """What a name means that only imports of one library bind."""
    names = [b.value.qualified if isinstance(b.value, Imported) else "" for b in bound]
    roots = {name.partition(".")[0] for name in names}
    if len(roots) == 1 and "" not in roots:  # nor relative imports
        yield names[-1]


def _listed(tree: ast.Module) -> set[str] | None:
    """The strings in `__all__`; `None` without one."""
    listed: set[str] | None = None
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
                listed = (listed or set()) | set(_strings(node.value))
    return listed


def _strings(node: ast.expr) -> Iterator[str]:
    for element in getattr(node, "elts", ()):
        if isinstance(element, ast.Constant) and isinstance(element.value, str):
            yield element.value


def _read(plain: Any) -> ModuleSummary:
    imports, classes, functions, libraries = plain
    return ModuleSummary(
        tuple(_read_import(*each) for each in imports),
        tuple(
            ClassSummary(text(name), texts(list(methods)), texts(list(bases)))
            for name, methods, bases in classes
        ),
        texts(list(functions)),
        tuple(ImportedName(text(n), text(q), truth(is_public)) for n, q, is_public in libraries),
    )


def _read_import(
    level: Any, module: Any, names: Any, is_guarded: Any, is_at_top: Any
) -> ModuleImport:
    if type(level) is not int:
        raise TypeError("no import")
    pairs = tuple((name, known_as) for name, known_as in map(texts, map(list, names)))
    return ModuleImport(level, text(module), pairs, truth(is_guarded), truth(is_at_top))
