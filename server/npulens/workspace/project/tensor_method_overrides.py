"""Classes of a project with methods that tensors have, too: `batch.cuda()` is its own.

Such a class, or one that derives from it, has no `npu` method, so its callers stay as they are.
Neither has a module with a function of such a name: `utils.cuda(batch)`. Functions are kept beside
the classes, each with its own name and brackets in the place of methods.
"""

from collections.abc import Iterator
from pathlib import Path

from npulens.catalog.tables import Catalogue
from npulens.syntax.other_modules import OtherModules
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.module_summary import summary_of
from npulens.workspace.index.re_exports import packages, place_of, re_exported, triples

_ROUNDS = 4
"""How many classes a method may be inherited through, from module to module."""
_Methods = frozenset[str]
_Facts = frozenset[tuple[str, str, _Methods]]


def tensor_method_overrides(modules: Modules, catalogue: Catalogue, memo: FactMemo) -> _Facts:
    """The classes and functions, by the paths of their modules without ending and their names."""
    heads = [f"def {name}(".encode() for name in catalogue.methods]
    wanted = frozenset(catalogue.methods) | {f"{name}()" for name in catalogue.methods}
    found: dict[tuple[str, str], _Methods] = {}
    looked_at = {f for f, content in modules.items() if _contains_any(heads, content, memo)}
    for _ in range(_ROUNDS):
        known = triples(found)
        new = dict(found)
        for file in looked_at:
            new.update(_classes(file, modules[file], wanted, known, memo))
        new.update(re_exported(packages(modules), new, memo))
        if new == found:
            break
        found = new
        classes = {name for (_, name), methods in found.items() if f"{name}()" not in methods}
        looked_at = {f for f, c in modules.items() if not classes.isdisjoint(_imported(c, memo))}
    return triples(found)


def _contains_any(heads: list[bytes], content: Content, memo: FactMemo) -> bool:
    """Whether a module defines some method that tensors have."""
    return memo.is_so(
        "methods of tensors", content.digest, lambda: any(head in content.data for head in heads)
    )


def _imported(content: Content, memo: FactMemo) -> frozenset[str]:
    return import_words(content, memo).names if b"class " in content.data else frozenset()


def _classes(
    file: Path, content: Content, wanted: _Methods, known: _Facts, memo: FactMemo
) -> Iterator[tuple[tuple[str, str], _Methods]]:
    """The classes and functions of a module with such methods or names, inherited ones included."""
    elsewhere = OtherModules(known, str(file))
    summary = summary_of(content, memo)
    here: dict[str, _Methods] = {}
    for name, methods, bases in summary.classes:
        inherited = (here.get(base) or elsewhere.find(base) or frozenset() for base in bases)
        all_methods = wanted.intersection(methods).union(*inherited)
        if all_methods:
            here[name] = all_methods
    here.update({n: frozenset({f"{n}()"}) for n in summary.functions if f"{n}()" in wanted})
    yield from (((place_of(file), name), methods) for name, methods in here.items())
