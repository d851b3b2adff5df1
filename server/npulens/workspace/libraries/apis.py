"""Which APIs of a library do not run on the NPU, because of what they lead to.

A function cannot run if something in it cannot that runs whenever it does: what is under a
condition with another way, or in a `try` that goes on without it, does not count. A class cannot
be used if making an instance of it, or calling one, cannot run. A module cannot be imported if
something cannot run that its import does, and takes with it all that it defines.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from npulens.workspace.libraries.needs import (
    Class,
    Function,
    Module,
    Need,
    Obstacle,
    Reference,
    Steps,
    Ways,
)

_MADE_OR_CALLED = ("__new__", "__init__", "__post_init__", "__call__", "forward")
_MOST_STEPS = 40
"""From name to name on the way to one definition."""


class Node(NamedTuple):
    """A definition, or a module.

    Attributes:
        kind: `module`, `function`, `class`, or `head`: what defining a class needs.
        receiver: Of a method, the class of the instance it is called on, as `module:class`.
    """

    kind: str
    module: str
    name: str = ""
    receiver: str = ""

    @property
    def path(self) -> str:
        """What users of the library call it."""
        name = self.name
        if self.receiver:
            module, _, owner = self.receiver.partition(":")
            return f"{module}.{owner}.{name.rpartition('.')[2]}"
        return f"{self.module}.{name}" if name else self.module


class Reason(NamedTuple):
    """Why something does not run: what it leads to next, or what the NPU lacks."""

    next: Node | None
    obstacle: Obstacle | None = None


class Library:
    """The modules of a library, and what of them does not run."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules: Mapping[str, Module] = {module.name: module for module in modules}
        self._parents: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
        self._dependents: dict[Node, set[Node]] = {}
        self._current = Node("module", "")
        self.reasons: dict[Node, Reason] = {}
        self._spread()

    def chain(self, node: Node) -> tuple[list[str], Obstacle]:
        """What leads from a definition that does not run to what the NPU lacks."""
        names = [node.path]
        reason = self.reasons[node]
        while reason.next is not None:
            if reason.next.path != names[-1]:
                names.append(reason.next.path)
            reason = self.reasons[reason.next]
        assert reason.obstacle is not None
        return names, reason.obstacle

    def find(self, module: str, name: str) -> tuple[Node | None, ...]:
        """What a name of a module may represent; `None` is something else than a definition."""
        return tuple(self._named(module, name, 0))

    def methods(self, module: str, name: str) -> Iterator[Node]:
        """All methods that instances of a class have, those of bases too."""
        seen: set[str] = set()
        for owner, each in self._line((module, name)):
            for method in self.modules[owner].classes[each].methods:
                if method not in seen:
                    seen.add(method)
                    yield Node("function", owner, f"{each}.{method}", f"{module}:{name}")

    # Spreading, in rounds: what is found first has the shortest chain.

    def _spread(self) -> None:
        pending = sorted(self._nodes())
        while pending:
            found = {node: why for node in pending if (why := self._why(node)) is not None}
            self.reasons.update(found)
            affected = {each for node in found for each in self._dependents.get(node, ())}
            pending = sorted(affected - self.reasons.keys())

    def _nodes(self) -> Iterator[Node]:
        for module in self.modules.values():
            yield Node("module", module.name)
            yield from (Node("function", module.name, name) for name in module.functions)
            for name in module.classes:
                yield Node("head", module.name, name)
                yield Node("class", module.name, name)
                yield from self.methods(module.name, name)

    def _why(self, node: Node) -> Reason | None:
        """Why a definition does not run, as far as is known by now."""
        self._current = node
        module = self.modules[node.module]
        if node.kind == "module":
            package = node.module.rpartition(".")[0]
            around = Node("module", package) if package in self.modules else None
            return self._first([around]) or self._reason(module.need, node)
        if node.kind == "head":
            bases = [Node("head", *base) for base in self._bases((node.module, node.name))]
            return self._reason(module.classes[node.name].need, node) or self._first(bases)
        if node.kind == "class":
            used = [m for name in _MADE_OR_CALLED if (m := self._method(node, name)) is not None]
            return self._first([Node("head", node.module, node.name), *used])
        owner, _, method = node.name.rpartition(".")
        function: Function = (
            module.classes[owner].methods[method] if node.receiver else module.functions[node.name]
        )
        return self._first([Node("module", node.module)]) or self._reason(function.need, node)

    def _first(self, nodes: Iterable[Node | None]) -> Reason | None:
        """The reason that lies in the first of some definitions that does not run."""
        for node in nodes:
            if node is not None:
                self._dependents.setdefault(node, set()).add(self._current)
                if node in self.reasons:
                    return Reason(node)
        return None

    def _reason(self, need: Need, node: Node) -> Reason | None:
        if isinstance(need, Obstacle):
            return Reason(None, need)
        if isinstance(need, Steps):
            return next((why for part in need.parts if (why := self._reason(part, node))), None)
        if isinstance(need, Ways):
            all_ways = [self._reason(part, node) for part in need.parts]
            return all_ways[0] if None not in all_ways else None
        meant = self._meant(need, node)
        found = [self._first([each]) for each in meant]
        return found[0] if found and None not in found else None

    # From names to definitions

    def _meant(self, reference: Reference, node: Node) -> list[Node | None]:
        kind, path = reference
        if kind == "name":
            return list(self._named(node.module, path, 0))
        if kind == "absolute":
            return list(self._absolute(path, 0))
        if kind == "module":
            return [Node("module", path)] if path in self.modules else []
        module, _, owner = node.receiver.partition(":")
        if not owner:  # a function inside a method, whose instance is not known
            return []
        receiver = Node("class", module, owner)
        if kind == "super":
            return [self._method(receiver, path, behind=(node.module, node.name.split(".")[0]))]
        first, _, rest = path.partition(".")
        if rest:
            return self._of_attribute(receiver, first, rest)
        found = self._method(receiver, first)
        if kind == "property" and found is not None:
            owner, _, method = found.name.rpartition(".")
            if not self.modules[found.module].classes[owner].methods[method].is_property:
                return []
        return [found] if found is not None else []

    def _of_attribute(self, receiver: Node, attribute: str, method: str) -> list[Node | None]:
        """The method that `self.attribute.method` means."""
        for module, name in self._line((receiver.module, receiver.name)):
            maker = self.modules[module].classes[name].attributes.get(attribute)
            if maker is not None:
                return list(self._named(module, f"{maker}.{method}", 0))
        return []

    def _named(self, module: str, path: str, steps: int) -> Iterator[Node | None]:
        """What a name with dots means in a module."""
        here = self.modules[module]
        if ".<locals>." in path:
            yield Node("function", module, path)
            return
        root, _, rest = path.partition(".")
        behind = f".{rest}" if rest else ""
        if steps > _MOST_STEPS:
            return
        for kind, target in here.names.get(root, ()):
            if kind == "own":
                yield self._own(module, root, rest)
            elif kind == "absolute":
                yield from self._absolute(target + behind, steps + 1)
            elif kind == "alias" and target != root:
                yield from self._named(module, target + behind, steps + 1)
            else:
                yield None
        if root not in here.names:
            for star in here.stars:
                if star in self.modules and star != module:
                    found = list(self._named(star, path, steps + 1))
                    if found:
                        yield from found
                        return

    def _absolute(self, path: str, steps: int) -> Iterator[Node | None]:
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                if length < len(parts):
                    yield from self._named(module, ".".join(parts[length:]), steps)
                return
        yield None

    def _own(self, module: str, name: str, rest: str) -> Node | None:
        """A definition of a module, or the method of a class of it."""
        here = self.modules[module]
        if name in here.classes:
            node = Node("class", module, name)
            if not rest:
                return node
            if "." in rest:
                return None
            # `apply` of an autograd function runs its `forward`.
            names = ("apply", "forward") if rest == "apply" else (rest,)
            return next((m for n in names if (m := self._method(node, n)) is not None), None)
        return Node("function", module, name) if name in here.functions and not rest else None

    def _method(
        self, receiver: Node, name: str, behind: tuple[str, str] | None = None
    ) -> Node | None:
        """A method of an instance; one behind a class in the line of its bases, if one is given."""
        line = list(self._line((receiver.module, receiver.name)))
        if behind in line:
            line = line[line.index(behind) + 1 :]
        for module, owner in line:
            if name in self.modules[module].classes[owner].methods:
                return Node(
                    "function", module, f"{owner}.{name}", f"{receiver.module}:{receiver.name}"
                )
        return None

    def _line(self, owner: tuple[str, str]) -> Iterator[tuple[str, str]]:
        """A class and its bases within the library, in the order in which methods are looked up."""
        seen: set[tuple[str, str]] = set()
        pending = [owner]
        while pending:
            each = pending.pop()
            if each not in seen:
                seen.add(each)
                yield each
                pending += reversed(self._bases(each))

    def _bases(self, owner: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        if owner not in self._parents:
            module, name = owner
            each: Class = self.modules[module].classes[name]
            found = []
            for base in each.bases:
                meant = list(self._named(module, base, 0))
                if len(meant) == 1 and meant[0] is not None and meant[0].kind == "class":
                    found.append((meant[0].module, meant[0].name))
            self._parents[owner] = tuple(found)
        return self._parents[owner]
