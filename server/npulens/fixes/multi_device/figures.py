"""Figures of which each process has its own share, and what has to be the same in all of them."""

import ast
from collections.abc import Container, Iterator

from npulens.fixes.multi_device.loaders import Loaders, may_be_loader
from npulens.fixes.multi_device.plan import Figure
from npulens.fixes.multi_device.reading import Reading, last_name
from npulens.syntax.walking import nodes_below
from npulens.training.flow import Variable, names_of
from npulens.training.node_places import Loop

_OF_SHAPE = frozenset(
    {"isinstance", "hasattr", "len", "size", "shape", "range", "ndim", "numel", "dim", "time"}
)


class Figures:
    """The figures of the loops over loaders that are divided."""

    def __init__(self, reading: Reading, loaders: Loaders) -> None:
        self._reading = reading
        self._made, self._divided = loaders.made, loaders.divided
        self._own: dict[Loop, set[Variable]] = {}
        for node in reading.flow.places:
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and self._is_divided(node):
                self._own[node] = self._own_values(node)

    def summed(self) -> Iterator[Figure]:
        """What loops add up and the code behind them reads."""
        for loop in self._own:
            names = dict.fromkeys(self._added(loop))
            behind = [n for n in self._function_nodes(loop) if _is_behind(n, loop)]
            is_whole_too = not self._is_always_divided(loop)
            for name in names:
                if not any(isinstance(n, ast.Name) and n.id == name and _reads(n) for n in behind):
                    continue
                is_mean = self._is_mean(name, behind)
                if is_mean or not is_whole_too or _is_in_ratio(name, names, behind):
                    yield Figure(loop, name, is_mean)

    def _is_always_divided(self, loop: Loop) -> bool:
        """Whether a loop is never over data that each process sees as a whole."""
        if isinstance(loop, ast.While):
            return True
        origins = self._reading.flow.origins(loop.iter)
        made = [v.node for v in origins if may_be_loader(self._reading, v.node)]
        return all(node in self._made for node in made)

    def conditions(self) -> Iterator[ast.expr]:
        """What decides in a step by the share of the process, and must decide alike in all."""
        for loop, own in self._own.items():
            for node in (part for statement in loop.body for part in nodes_below(statement)):
                if not isinstance(node, ast.If) or not self._mentions(node.test, own):
                    continue
                branches = [part for s in (*node.body, *node.orelse) for part in nodes_below(s)]
                if any(self._concerns_all(part) for part in branches):
                    yield node.test
        yield from self._conditions_around()

    def _conditions_around(self) -> Iterator[ast.expr]:
        """Conditions between the loops of steps, such as for an early end."""
        reading = self._reading
        own = self._shares()
        ways = [way for step in reading.training.steps for way in step.ways]
        functions = {site.function for way in ways for site in way.sites}
        for node, place in reading.flow.places.items():
            if not isinstance(node, ast.If) or place.function not in functions:
                continue
            if reading.step_loops.isdisjoint(place.loops) and self._mentions(node.test, own):
                yield node.test

    def _shares(self) -> set[Variable]:
        """The variables that differ between processes, also behind the loops and in callers."""
        own: set[Variable] = set()
        for loop, values in self._own.items():
            summed = {figure.name for figure in self.summed() if figure.loop is loop}
            own |= {v for v in values if v.name not in summed}
        flow = self._reading.flow
        for _ in range(4):
            before = len(own)
            for variable, definitions in flow.definitions.items():
                if variable not in own and any(
                    self._is_share(d.value.node, own) for d in definitions
                ):
                    own.add(variable)
            if len(own) == before:
                break
        return own

    def _is_share(self, node: ast.expr, own: set[Variable]) -> bool:
        if isinstance(node, ast.Call) and (run := self._reading.flow.functions_run(node)):
            results = [each for function in run for each in self._reading.flow.results(function)]
            return any(self._mentions(each, own) for each in results)
        if isinstance(node, ast.Call) and last_name(node.func) in _OF_SHAPE:
            return False
        return self._mentions(node, own)

    def of_schedulers(self) -> Iterator[ast.expr]:
        """What schedulers are given that is a figure of the process."""
        own = self._shares()
        for call, _ in self._reading.calls():
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr != "step":
                continue
            if "sched" not in last_name(function.value).lower() or not call.args:
                continue
            if self._mentions(call.args[0], own):
                yield call.args[0]

    def _is_divided(self, loop: Loop) -> bool:
        reading = self._reading
        if loop in reading.step_loops:
            return True
        if isinstance(loop, ast.While) or not self._divided:
            return False
        place = reading.place(loop)
        if not reading.step_loops.isdisjoint(place.loops):
            return False
        return any(v.node in self._divided for v in reading.flow.origins(loop.iter))

    def _own_values(self, loop: Loop) -> set[Variable]:
        """The variables that depend on the batch of a loop."""
        reading = self._reading
        own: set[Variable] = set()
        if not isinstance(loop, ast.While):
            names = [n for n in nodes_below(loop.target) if isinstance(n, ast.Name)]
            called = last_name(getattr(loop.iter, "func", loop.iter))
            names = names[1:] if called == "enumerate" else [] if called == "range" else names
            own.update(v for n in names if (v := reading.flow.variable(n)) is not None)
        for _ in range(4):
            before = len(own)
            for node in (part for statement in loop.body for part in nodes_below(statement)):
                for target in self._filled(node, own):
                    variable = reading.flow.variable(target)
                    if variable is not None and variable.name != "self":
                        own.add(variable)
            if len(own) == before:
                break
        return own

    def _filled(self, node: ast.AST, own: set[Variable]) -> Iterator[ast.expr]:
        """What a statement of a loop assigns or appends a figure of the process to."""
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            called = last_name(getattr(node.value, "func", node.value))
            if called == "next" or self._mentions(node.value, own):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    parts = nodes_below(target)
                    yield from (n for n in parts if isinstance(n, (ast.Name, ast.Attribute)))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend")
            and node.args
            and self._mentions(node.args[0], own)
        ):
            yield node.func.value

    def _mentions(self, node: ast.expr, own: set[Variable]) -> bool:
        """Whether an expression reads one of some variables, and not only its shape."""
        pending: list[ast.AST] = [node]
        while pending:
            each = pending.pop()
            if isinstance(each, ast.Call) and last_name(each.func) in _OF_SHAPE:
                continue
            if isinstance(each, ast.Attribute) and each.attr in _OF_SHAPE:
                continue
            if isinstance(each, ast.Compare) and any(
                isinstance(op, (ast.Is, ast.IsNot)) for op in each.ops
            ):
                continue
            if (
                isinstance(each, (ast.Name, ast.Attribute))
                and each in self._reading.flow.places
                and self._reading.flow.variable(each) in own
            ):
                return True
            pending += ast.iter_child_nodes(each)
        return False

    def _concerns_all(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
            return True
        if not isinstance(node, ast.Call):
            return False
        return last_name(node.func) in ("backward", "step", "zero_grad", "eval", "train")

    def _added(self, loop: Loop) -> Iterator[str]:
        """`total += ...` in a loop, of variables of the same function that began before it."""
        function = self._reading.place(loop).function
        own = {v.name for v in self._own[loop]}
        for node in (part for statement in loop.body for part in nodes_below(statement)):
            if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
                continue
            target = node.target
            if not isinstance(target, ast.Name) or isinstance(node.value, (ast.List, ast.Tuple)):
                continue
            if self._reading.place(node).function is not function:
                continue
            if target.id in own or self._counts_samples(node.value):
                begun = self._reading.flow.definitions.get(
                    self._reading.flow.variable(target) or Variable(loop, ""), ()
                )
                numbers = [d for d in begun if _is_zero(d.value.node)]
                inside = [d for d in begun if any(d.statement is n for n in nodes_below(loop))]
                if numbers and not inside:
                    yield target.id

    def _counts_samples(self, node: ast.expr) -> bool:
        """`len(x)`, `y.size(0)`, or the number of turns."""
        if isinstance(node, ast.Constant):
            return False
        words = {last_name(n.func) for n in nodes_below(node) if isinstance(n, ast.Call)}
        words |= {n.attr for n in nodes_below(node) if isinstance(n, ast.Attribute)}
        return bool(words & {"len", "size", "shape", "numel"})

    def _function_nodes(self, loop: Loop) -> list[ast.AST]:
        reading = self._reading
        function = reading.place(loop).function
        if function is not None:
            return [n for n in nodes_below(function) if n in reading.flow.places]
        tree = reading.script_of(loop).tree
        return [n for n in nodes_below(tree) if n in reading.flow.places]

    def _is_mean(self, name: str, behind: list[ast.AST]) -> bool:
        """Whether it is divided by the number of batches, which each process counts for itself."""
        for node in behind:
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
                top = node.left if isinstance(node, ast.BinOp) else node.target
                below = node.right if isinstance(node, ast.BinOp) else node.value
                if name in {n.id for n in nodes_below(top) if isinstance(n, ast.Name)}:
                    return self._is_number_of_turns(below)
        return False

    def _is_number_of_turns(self, node: ast.expr) -> bool:
        pending: list[ast.AST] = [node]
        while pending:
            each = pending.pop()
            if isinstance(each, ast.Subscript):
                each = each.value
            if isinstance(each, ast.Attribute) and each.attr == "dataset":
                return False
            if isinstance(each, ast.Call) and last_name(each.func) == "len" and each.args:
                origins = self._reading.flow.origins(each.args[0])
                return any(v.node in self._made for v in origins)
            if (
                isinstance(each, ast.Name)
                and each in self._reading.flow.places
                and self._is_counter(each)
            ):
                return True
            pending += ast.iter_child_nodes(each)
        return False

    def _is_counter(self, node: ast.Name) -> bool:
        """Whether a variable counts turns: of `enumerate`, `len(loader)`, or counted by hand."""
        variable = self._reading.flow.variable(node)
        if variable is None:
            return False
        for each in self._reading.flow.definitions.get(variable, ()):
            if each.statement in self._own:
                return True
            made = each.value.node
            if (
                not isinstance(made, ast.Constant)
                and each.statement.lineno < node.lineno
                and self._is_number_of_turns(made)
            ):
                return True
        return self._counts_turns(variable)

    def _counts_turns(self, variable: Variable) -> bool:
        """`batches += 1` in one of the loops: what a process counts, and is not added up."""
        return any(
            isinstance(node, ast.AugAssign)
            and variable.name not in set(self._added(loop))
            and self._reading.flow.variable(node.target) == variable
            for loop in self._own
            for statement in loop.body
            for node in nodes_below(statement)
        )


def _is_in_ratio(name: str, names: Container[str], behind: list[ast.AST]) -> bool:
    """Whether one figure is divided by another: the quotient of two sums is right in any case."""
    for node in behind:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            top, below = (names_of([side]) for side in (node.left, node.right))
            if (
                name in top | below
                and any(n in names for n in top - below)
                and any(n in names for n in below - top)
            ):
                return True
    return False


def _is_zero(node: ast.expr) -> bool:
    """`0`, or a tensor of zeros."""
    while isinstance(node, ast.Call) and last_name(node.func) in ("to", "cuda", "float", "double"):
        if not isinstance(node.func, ast.Attribute):
            return bool(node.args) and _is_zero(node.args[0])
        node = node.func.value
    if isinstance(node, ast.Call) and last_name(node.func) in ("zeros", "tensor"):
        return last_name(node.func) == "zeros" or (bool(node.args) and _is_zero(node.args[0]))
    return isinstance(node, ast.Constant) and node.value in (0, 0.0) and node.value is not False


def _is_behind(node: ast.AST, loop: Loop) -> bool:
    inside = loop.end_lineno or loop.lineno
    return getattr(node, "lineno", 0) > inside


def _reads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)
