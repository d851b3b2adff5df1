"""Tensors that are joined with more of their kind again and again, as caches of generation are."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from npulens.graphs.definitions import FunctionHere
from npulens.shapes.evaluation.trip_counts import runs_once
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import names_in, nodes_below

GROWTH_COST = 50
_WALKS = frozenset({"enumerate", "zip", "reversed", "list", "tuple"})
_WALKED = frozenset({"values", "items", "children", "modules"})
JOINS = frozenset(
    f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "stack")
)


class Walked:
    """What is assigned and given to calls in a loop or function, which is walked through once."""

    def __init__(self, place: ast.AST) -> None:
        self.calls: defaultdict[str, list[ast.Call]] = defaultdict(list)
        """The calls that are given a name, each as often as it is."""
        self._values: defaultdict[str, list[tuple[ast.expr, ast.expr]]] = defaultdict(list)
        self._names: defaultdict[str, list[ast.Name]] = defaultdict(list)
        self._first: list[ast.If] = []
        for part in nodes_below(place):
            if isinstance(part, ast.Assign):
                for target in part.targets:
                    self._values[ast.unparse(target)].append((target, part.value))
            elif isinstance(part, ast.Name):
                self._names[part.id].append(part)
            elif isinstance(part, ast.If) and _asks_for_one_turn(part.test, place):
                self._first.append(part)
            elif isinstance(part, ast.Call):
                for given in (*part.args, *(keyword.value for keyword in part.keywords)):
                    if isinstance(given, ast.Name):
                        self.calls[given.id].append(part)

    def assigned(self, target: ast.expr) -> Iterator[ast.expr | None]:
        """What else is assigned to a target; `None` if that is not plain."""
        plain = {target}
        for other, value in self._values.get(ast.unparse(target), ()):
            if other is not target:
                yield value
            plain.add(other)
        for name in self._names.get(getattr(target, "id", ""), ()):
            if isinstance(name.ctx, ast.Store) and name not in plain:
                yield None

    def is_for_one_turn(self, node: ast.stmt) -> bool:
        """Whether a statement of a loop is reached in one of its turns: `if step == 0`."""
        return any(
            each.body[0].lineno <= node.lineno <= (each.body[-1].end_lineno or 0)
            for each in self._first
        )

    def is_assigned(self, target: ast.expr) -> bool:
        """Whether anything else is assigned to a target."""
        return any(True for _ in self.assigned(target))

    def is_read(self, name: str, apart_from: set[ast.AST]) -> bool:
        """Whether a name is read anywhere but in some nodes."""
        return any(
            isinstance(part.ctx, ast.Load) and part not in apart_from
            for part in self._names.get(name, ())
        )


class Walks:
    """Loops and functions that were walked through, each once however many tensors grow in it."""

    def __init__(self) -> None:
        self._walked: dict[ast.AST, Walked] = {}

    def of(self, place: ast.AST) -> Walked:
        """What is in a loop or function."""
        found = self._walked.get(place)
        if found is None:
            found = self._walked[place] = Walked(place)
        return found


def grows(
    node: ast.Assign, loops: Sequence[ast.stmt], function: FunctionHere, walks: Walks
) -> bool:
    """Whether `x = torch.cat([x, y])` makes something longer each time that it is reached.

    A local name does if a loop around does not make it anew; what belongs to `self` stays from
    call to call. What is cut to a length elsewhere does not.

    Args:
        node: The assignment of a call that joins tensors.
        loops: The loops around it, the innermost last.
        function: The function that it is in.
        walks: What is known of loops and functions.
    """
    target = node.targets[0]
    if not (isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and _has_part(node)):
        return False
    root = dotted_name(target.value if isinstance(target, ast.Subscript) else target)
    if root is None:
        return False
    if root.root == function.receiver and root.path:
        assigned = walks.of(function.node).assigned(target)
        return not any(isinstance(value, ast.Subscript) for value in assigned)  # a part of it
    turned = [
        loop
        for loop in loops
        if not _is_counted_by(target, loop)
        and not runs_once(loop, function)
        and not _is_over_layers(loop, function)
    ]
    if not turned or walks.of(turned[-1]).is_assigned(target):
        return False
    turned = [loop for loop in turned if not walks.of(loop).is_for_one_turn(node)]
    if not turned:
        return False
    owner = ast.Name(root.root, ast.Store())
    return isinstance(target, ast.Name) or not walks.of(turned[-1]).is_assigned(owner)


def _asks_for_one_turn(test: ast.expr, loop: ast.AST) -> bool:
    """`step == 0`, alone or with more, where `step` counts the turns of a loop."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks_for_one_turn(value, loop) for value in test.values)
    if not isinstance(test, ast.Compare) or not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    is_equal = isinstance(test.ops[0], ast.Eq) and isinstance(test.comparators[0], ast.Constant)
    return is_equal and getattr(test.left, "id", "") in names_in(loop.target)


def _is_over_layers(loop: ast.stmt, function: FunctionHere) -> bool:
    """`for layer in self`, `for block in self.blocks[1:]`: as many turns as there are layers."""
    over = _listed(loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    name = None if over is None else dotted_name(over)
    return name is not None and name.root == function.receiver


def _listed(node: ast.expr) -> ast.expr:
    """What is walked through by `enumerate(x)`, `x.values()`, `x[1:]`."""
    if isinstance(node, ast.Subscript):
        return _listed(node.value)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _WALKS and node.args:
            return _listed(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WALKED:
            return _listed(node.func.value)
    return node


def users(node: ast.Assign, loops: Sequence[ast.stmt], walks: Walks) -> Iterator[ast.Call]:
    """The calls in the innermost loop that take what grows."""
    name = getattr(node.targets[0], "id", None)
    if loops and name is not None:
        calls = dict.fromkeys(walks.of(loops[-1]).calls.get(name, ()))
        yield from (call for call in calls if call is not node.value)


def _has_part(node: ast.Assign) -> bool:
    """Whether what is assigned to is among what is joined."""
    parts = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else None
    if not isinstance(parts, (ast.Tuple, ast.List)) or len(node.targets) != 1:
        return False
    target = ast.unparse(node.targets[0])
    return len(parts.elts) > 1 and any(ast.unparse(part) == target for part in parts.elts)


def only_collects(node: ast.Assign, loops: Sequence[ast.stmt], walks: Walks) -> bool:
    """Whether a counted loop puts something together and does not compute with it.

    The branches of a block are: what is made of them has the same shape in each step.
    """
    name, value = getattr(node.targets[0], "id", None), node.value
    if name is None or not loops or isinstance(loops[-1], ast.While):
        return False
    joined = set(ast.iter_child_nodes(value.args[0])) if isinstance(value, ast.Call) else set()
    return not walks.of(loops[-1]).is_read(name, joined)


def _is_counted_by(target: ast.expr, loop: ast.stmt) -> bool:
    """Whether each turn of a loop means another element of a list, or another object."""
    if isinstance(target, ast.Name) or not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    counted = set(names_in(loop.target))
    return not counted.isdisjoint(names_in(target))
