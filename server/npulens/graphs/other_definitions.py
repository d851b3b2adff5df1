"""Definitions of other modules of the project, for those who evaluate what uses them.

What modules hand over is a text for each (`workspace/project/computations.py`). It is parsed when
a name of it is met, once for a process. Functions and classes say by their `place` which module
they are of; own ones have none. The value of a name of another module is a node with the label
`place.name`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from npulens.catalog.project_model import Computation, LibraryName
from npulens.graphs.definitions import MAX_BASES, ClassHere, Definitions, FunctionHere
from npulens.syntax.bindings import Bindings, bindings_of
from npulens.syntax.meanings import qualified_names
from npulens.syntax.other_modules import OtherModules, member_of
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.scopes import ModuleNames, ModuleScope

_Known = frozenset[tuple[str, str, Computation]]
_Libraries = frozenset[tuple[str, str, LibraryName]]


class OtherDefinitions:
    """What a module can look into of others.

    Args:
        known: The definitions of the project.
        libraries: What its modules re-export of libraries.
        path: The module that looks.
    """

    def __init__(
        self, known: _Known = frozenset(), libraries: _Libraries = frozenset(), path: str = ""
    ) -> None:
        self._known = known
        self._libraries = libraries
        self._path = path
        self._modules = {"": OtherModules(known, path)}
        """The other modules by the place of the one that looks, `""` for the own one."""
        self._sources: dict[str, str] = {}
        self._definitions: dict[str, Definitions] = {}
        self._labels: dict[tuple[str, str], str | None] = {}
        self._lineages: dict[ast.AST, tuple[list[ClassHere], set[str]]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of any other module."""
        return not self._known

    def label(self, qualified: Iterable[str], place: str = "") -> str | None:
        """The label of a name, as the imports of a module of the project have it."""
        if not self._known:
            return None
        return next(filter(None, (self._label(name, place) for name in qualified)), None)

    def _label(self, qualified: str, place: str) -> str | None:
        key = (qualified, place)
        if key not in self._labels:
            self._labels[key] = self._found(qualified, place)
        return self._labels[key]

    def _found(self, qualified: str, place: str) -> str | None:
        found = self._modules[place].find(qualified)
        if found is None or found.path == self._path:
            return None
        of = found.path.removesuffix(".py")
        if of not in self._definitions:
            self._modules[of] = OtherModules(self._known, found.path)
            self._sources[of] = found.source
            self._definitions[of] = self._parsed(found, of)
        return f"{of}.{found.name}"

    def under(self, qualified: str) -> Iterator[tuple[str, Computation]]:
        """The definition of this full name, or those of the module of this name, by their names.

        The name of the definition itself is left out.
        """
        found = self._modules[""].find(qualified)
        if found is not None:
            yield "", found
        else:
            yield from self.members(qualified)

    def members(self, module: str) -> Iterator[tuple[str, Computation]]:
        """The definitions of a module with this full name, by their names."""
        others = self._modules[""]
        for name in others.names_in(module):
            found = others.find(member_of(module, name))
            if found is not None:
                yield name, found

    def source(self, place: str) -> str:
        """The text that is known of a module which was met already."""
        return self._sources[place]

    def function(self, label: str) -> FunctionHere | None:
        """The function of another module with this label."""
        place, _, name = label.rpartition(".")
        definitions = self._definitions.get(place)
        return None if definitions is None else definitions.functions.get(name)

    def class_named(self, label: str) -> ClassHere | None:
        """The class of another module with this label."""
        place, _, name = label.rpartition(".")
        definitions = self._definitions.get(place)
        return None if definitions is None else definitions.classes.get(name)

    def lineage(self, own: Definitions, owner: ClassHere) -> Iterator[ClassHere]:
        """A class and its bases in the project, nearest first."""
        if not self._known:
            yield from own.lineage(owner)
            return
        known = self._lineages.get(owner.node)
        if known is None:
            with own.looked_up() as queried:
                known = list(self._looked_up_lineage(own, owner)), queried
            self._lineages[owner.node] = known
        own.queried |= known[1]
        yield from known[0]

    def _looked_up_lineage(self, own: Definitions, owner: ClassHere) -> Iterator[ClassHere]:
        pending, seen = [owner], 0
        while pending and seen < MAX_BASES:
            current = pending.pop(0)
            seen += 1
            yield current
            for base in current.node.bases:
                found = self._base(own, current, base)
                if found is not None:
                    pending.append(found)

    def method(self, own: Definitions, owner: ClassHere, name: str) -> FunctionHere | None:
        """A method of a class or of one of its bases in the project."""
        lineage = self.lineage(own, owner)
        return next((each.methods[name] for each in lineage if name in each.methods), None)

    def _base(self, own: Definitions, owner: ClassHere, base: ast.expr) -> ClassHere | None:
        if isinstance(base, ast.Name):
            here = self._definitions[owner.place] if owner.place else own
            here.queried.add(base.id)
            if base.id in here.classes:
                return here.classes[base.id]
        outside = owner.scope.parent
        names = qualified_names(base, outside) if outside is not None else []
        label = self.label(names, owner.place)
        return None if label is None else self.class_named(label)

    def _parsed(self, found: Computation, place: str) -> Definitions:
        excerpt = parsed_excerpt(found.source)
        definitions = Definitions(place)
        names = ModuleNames([excerpt.bindings], OtherModules(self._libraries, found.path))
        definitions.add(excerpt.body, ModuleScope(names, 0))
        return definitions


class ParsedExcerpt:
    """What one module hands over to others, as statements; none if it does not parse."""

    def __init__(self, source: str) -> None:
        tree = tree_or_none(source)
        self.body = [] if tree is None else tree.body

    @cached_property
    def bindings(self) -> Bindings:
        """The names that it binds."""
        return bindings_of(self.body, [])


@lru_cache(maxsize=128)
def parsed_excerpt(source: str) -> ParsedExcerpt:
    """The statements of the text of a `Computation`, which nobody changes."""
    return ParsedExcerpt(source)


NOTHING_ELSEWHERE = OtherDefinitions()
