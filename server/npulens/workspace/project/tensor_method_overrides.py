"""Classes of a project with methods that tensors have, too: `batch.cuda()` is its own.

Such a class, or one that derives from it, has no `npu` method, so its callers stay as they are.
Neither has a module with a function of such a name: `utils.cuda(batch)`. Functions are kept beside
the classes, each with its own name and brackets in the place of methods.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from npulens.catalog.tables import Catalogue
from npulens.syntax.bindings import Bindings, Function, bindings_of
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.values import Imported, Name, dotted_name
from npulens.syntax.walking import nodes_below
from npulens.workspace.project.contents import Content, Modules
from npulens.workspace.project.fact_memo import FactMemo, text, texts
from npulens.workspace.project.module_imports import import_words
from npulens.workspace.project.re_exports import packages, place_of, re_exported

_ROUNDS = 4
"""How many classes a method may be inherited through, from module to module."""
_Methods = frozenset[str]
_Facts = frozenset[tuple[str, str, _Methods]]
_ClassHere = tuple[str, list[str], list[str]]
"""A class with its methods and, as the imports have them, the names of its base classes."""


def tensor_method_overrides(modules: Modules, catalogue: Catalogue, memo: FactMemo) -> _Facts:
    """The classes and functions, by the paths of their modules without ending and their names.

    Args:
        modules: The Python files of the project.
        catalogue: Has the methods.
        memo: What is known of the modules.
    """
    heads = [f"def {name}(".encode() for name in catalogue.methods]
    wanted = frozenset(catalogue.methods) | {f"{name}()" for name in catalogue.methods}
    found: dict[tuple[str, str], _Methods] = {}
    looked_at = {f for f, content in modules.items() if _holds_any(heads, content, memo)}
    for _ in range(_ROUNDS):
        known = _facts(found)
        new = dict(found)
        for file in looked_at:
            new.update(_classes(file, modules[file], wanted, known, memo))
        new.update(re_exported(packages(modules), new, memo))
        if new == found:
            break
        found = new
        classes = {name for (_, name), methods in found.items() if f"{name}()" not in methods}
        looked_at = {f for f, c in modules.items() if not classes.isdisjoint(_imported(c, memo))}
    return _facts(found)


def _holds_any(heads: list[bytes], content: Content, memo: FactMemo) -> bool:
    """Whether a module defines some method that tensors have."""
    return memo.is_so(
        "methods of tensors", content.digest, lambda: any(head in content.data for head in heads)
    )


def _facts(found: Mapping[tuple[str, str], _Methods]) -> _Facts:
    return frozenset((path, name, methods) for (path, name), methods in found.items())


def _imported(content: Content, memo: FactMemo) -> frozenset[str]:
    return import_words(content, memo).names if b"class " in content.data else frozenset()


def _classes(
    file: Path, content: Content, wanted: _Methods, known: _Facts, memo: FactMemo
) -> Iterator[tuple[tuple[str, str], _Methods]]:
    """The classes of a module that have such methods, inherited ones included."""
    elsewhere = OtherModules(known, str(file))
    here: dict[str, _Methods] = {}
    for name, methods, bases in _described(content, memo):
        inherited = (here.get(base) or elsewhere.find(base) or frozenset() for base in bases)
        all_methods = wanted.intersection(methods).union(*inherited)
        if all_methods:
            here[name] = all_methods
            yield (place_of(file), name), all_methods


def _described(content: Content, memo: FactMemo) -> list[_ClassHere]:
    """Classes and functions at the top of a module; none of one that does not parse."""

    def answer() -> list[_ClassHere]:
        tree = parse(content.text)
        if isinstance(tree, SyntaxProblem):
            return []
        bindings = bindings_of(tree.body, ())
        classes = [
            (node.name, _methods(node), [_qualified(base, bindings) for base in node.bases])
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        ]
        functions = (node.name for node in tree.body if isinstance(node, Function))
        return [*classes, *((name, [f"{name}()"], []) for name in functions)]

    return memo.recall("classes and functions", (content.digest,), answer, _read_classes)


def _methods(node: ast.ClassDef) -> list[str]:
    """The methods of a class, but for those that end in the one they override.

    A model whose `cuda` calls `super().cuda()` is one of PyTorch, and so is its `npu`.
    """
    methods = (method for method in node.body if isinstance(method, Function))
    return [method.name for method in methods if not _calls_overridden(method)]


def _calls_overridden(method: Function) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method.name
        and isinstance(node.value, ast.Call)
        and dotted_name(node.value.func) == Name("super")
        for node in nodes_below(method)
    )


def _qualified(base: ast.expr, bindings: Bindings) -> str:
    """A base class as the imports have it; of one of the module its name."""
    name = dotted_name(base)
    if name is None:
        return ""
    bound = next(iter(bindings.names.get(name.root, ())), None)
    root = bound.value.qualified if bound and isinstance(bound.value, Imported) else name.root
    return ".".join((root, *name.path))


def _read_classes(plain: Any) -> list[_ClassHere]:
    return [
        (text(name), list(texts(methods)), list(texts(bases))) for name, methods, bases in plain
    ]
