"""Evaluates the statements of functions on shapes, branch by branch and loop by loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from npulens.catalog.messages import message
from npulens.graphs.definitions import FunctionHere, is_generator, nested_function
from npulens.shapes.evaluation.binding import Binding
from npulens.shapes.evaluation.callers import (
    any_tested,
    element_tested,
    given_parameters,
    given_to_data,
    none_tested,
)
from npulens.shapes.evaluation.host_results import returns_array
from npulens.shapes.evaluation.loops import (
    iterated,
    iterated_name,
    loaders_of_host,
    moves_batches,
    reads_elements,
    reads_some,
)
from npulens.shapes.evaluation.optional import given_of, is_optional
from npulens.shapes.evaluation.rare_arms import (
    is_failure,
    is_rank_test,
    is_rare_test,
    is_step,
    is_want_of_memory,
    updates_weights,
)
from npulens.shapes.evaluation.shape_frames import MAX_STEPS, ExhaustedError, Result, Session
from npulens.shapes.evaluation.tensor_evidence import elements_bound, parameters
from npulens.shapes.evaluation.tensor_growth import GROWTH_COST, JOINS, grows, only_collects, users
from npulens.shapes.values.events import copy_of
from npulens.shapes.values.shape_rules import GROWING_TENSOR, HOST_READ
from npulens.shapes.values.shape_values import (
    FOREIGN,
    HOST_BATCH,
    NOTHING,
    UNKNOWN,
    Closure,
    Foreign,
    Items,
    Number,
    Tensor,
    Value,
    any_of,
    are_deep,
    either,
    element_of,
    length_of,
    may_be_on_device,
    on_device,
    sources_of,
    unsure,
)
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below

_READ_COST = 40
_PASSES = 2
"""A loop is evaluated so many times; what a third turn would add is rare."""
_MOST_SHARED = 200
"""Of events and functions that what a call leads to is remembered with."""
_HOST_TYPES = frozenset({"int", "float", "bool", "str", "list", "tuple", "dict", "ndarray"})
Names = dict[str, Value]


class Statements(Binding):
    """Evaluates one function; `names` is `None` where no statement is reached."""

    def run(self) -> Value:
        """Evaluate the function; what it returns."""
        falls_through = True
        try:
            falls_through = self.block(self.function.node.body)
        except ExhaustedError:
            return UNKNOWN
        values = [*self.returned, NOTHING] if falls_through else self.returned
        return any_of(values) if self.returned else NOTHING

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Evaluate statements; whether the end is reached."""
        before, rare = len(self.control), self.rare
        try:
            return all(self._statement(node) for node in body)
        finally:
            del self.control[before:]
            self.rare = rare

    def _statement(self, node: ast.stmt) -> bool:
        handler = _HANDLERS.get(type(node))
        return True if handler is None else handler(self, node)

    # Simple statements

    def _expression(self, node: ast.Expr) -> bool:
        self.read(node.value)
        return True

    def _computed_for(self, node: ast.expr | None, *, is_returned: bool) -> Value:
        """What a statement assigns or returns; copies that are wanted as such weigh little."""
        is_wanted = returns_array(node, self.function, is_returned=is_returned)
        self.rare += is_wanted
        value = self.read(node)
        self.rare -= is_wanted
        return value

    def _assign(self, node: ast.Assign) -> bool:
        value = self._computed_for(node.value, is_returned=False)
        for target in node.targets:
            self.bind(target, value)
            self.name_dimensions(target, node.value)
            self._renew(target, node.value, value)
        joins = isinstance(node.value, ast.Call) and self.qualified(node.value.func) in JOINS
        if joins and grows(node, self.around, self.function, self.session.walks):
            is_collected = only_collects(node, self.around, self.session.walks)
            self.rare += is_collected
            found = self.report(
                GROWING_TENSOR, node, message("shape.preallocate"), GROWTH_COST, synchronizes=False
            )
            self.rare -= is_collected
            for user in users(node, self.around, self.session.walks):
                self.uses(found, user)
        return True

    def _renew(self, target: ast.expr, node: ast.expr, value: Value) -> None:
        """`x[i] = x[i].cpu()`: what the list held is gone, for each element that comes by."""
        match target:
            case ast.Subscript(ast.Name(name)) if isinstance(self.names.get(name), Items):
                written = ast.unparse(target)
                parts = (part for part in nodes_below(node) if isinstance(part, ast.Subscript))
                if any(ast.unparse(part) == written for part in parts):
                    self.names[name] = Items(value, None, sources_of(self.names[name]))

    def _annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.bind(node.target, self.read(node.value))
        return True

    def _augmented(self, node: ast.AugAssign) -> bool:
        before = self.read(node.target)
        self.bind(node.target, self.operated(node, before, self.read(node.value)))
        return True

    def _return(self, node: ast.Return) -> bool:
        self.returned.append(self._computed_for(node.value, is_returned=True))
        return False

    def _assert(self, node: ast.Assert) -> bool:
        self.decide(node.test, "shape.leave-out")
        return True

    def _leave(self, node: ast.Break | ast.Continue) -> bool:
        self.leaving.append(dict(self.names))
        return False

    def _delete(self, node: ast.Delete) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names.pop(target.id, None)
        return True

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        closure = self.names[node.name] = self.closure(node)
        if not node.decorator_list:
            self.defined.append(closure)
        return True

    # Compound statements

    def _if(self, node: ast.If) -> bool:
        sources = self.decide(node.test)
        known = self.settled(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        before, depth = dict(self.names), len(self.control)
        tested = none_tested(node.test)
        is_given = tested in given_parameters(self.function) if tested else False
        if is_given and self.names.get(tested) != NOTHING:
            return self.block(node.orelse)
        if sources:
            self.control.append(sources)
        # What is done before an error is raised is done once.
        is_rare = is_rare_test(node.test, self.default_number) and not updates_weights(node.body)
        # The process that writes makes all others wait in each step.
        is_rare = is_rare and not (self._in_step() and is_rank_test(node.test))
        is_rare = is_rare or isinstance(node.body[-1], ast.Raise)
        is_tensor, is_none = self._checked_for_tensor(node.test)
        self.names.update(dict.fromkeys(is_none, FOREIGN))
        self.names.update(self.proven(node.test))
        self.rare += is_rare
        issued = dict(self.issued)
        first = self.block(node.body)
        issued, self.issued = self.issued, issued  # one arm knows nothing of the other's names
        self.rare -= is_rare
        after, self.names = self.names, before
        self.names.update(dict.fromkeys(is_tensor, FOREIGN))
        self.names.update(self._proven_otherwise(node.test))
        filled = element_tested(node.test)
        if isinstance(self.names.get(filled), Items):
            self.names[filled] = Items(NOTHING)
        mask = any_tested(node.test)
        masked = self.names.get(mask)
        if masked is not None:
            self.names[mask] = FOREIGN  # it selects nothing there, each time
        second = self.block(node.orelse)
        if masked is not None and self.names.get(mask) is FOREIGN:
            self.names[mask] = masked
        self.issued = {**issued, **self.issued}
        if first and second:
            if tested and isinstance(after.get(tested), Number):
                self._fill(tested)
            self.names = _merged(after, self.names)
        elif first:
            self.names = after
        del self.control[depth:]
        if sources and first != second:
            self.control.append(sources)  # the rest is reached only where this one goes on
        return first or second

    def _proven_otherwise(self, test: ast.expr) -> Names:
        """What is a tensor where `not isinstance(x, torch.Tensor)` fails, very likely the device's.

        Where it holds, something of the host is turned into one.
        """
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            return {}
        found = self.proven(test.operand)
        return {name: unsure(v) for name, v in found.items() if self.names.get(name) is UNKNOWN}

    def _in_step(self) -> bool:
        return bool(self.around) and is_step(self.around[-1])

    def _fill(self, name: str) -> None:
        """Let a parameter be a number where it is given; it becomes one where it is left out."""
        if self.names.get(name) is UNKNOWN and is_optional(self.function.node, name):
            self.names[name] = Number(name)

    def _checked_for_tensor(self, test: ast.expr) -> tuple[list[str], list[str]]:
        """The name that is a tensor if a condition holds, and the one that is if it does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._checked_for_tensor(test.operand)[::-1]
        match test:
            case ast.Call(ast.Name("isinstance"), [ast.Name(name), kind]):
                is_tensor = isinstance(self.named(name), Tensor)
                is_checked = is_tensor and self.qualified(kind) == "torch.Tensor"
                is_of_host = is_tensor and not is_checked and _are_of_host(kind)
                return [name] if is_checked else [], [name] if is_of_host else []
            case ast.Call(function, [ast.Name(name), *_]) if isinstance(self.named(name), Tensor):
                return [name] if self.qualified(function) == "torch.is_tensor" else [], []
        return [], []

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        values = self.read(node.iter)
        sources = length_of(values)
        depth, known = len(self.control), len(self.session.recorder.log)
        if sources:
            self.control.append(sources)
        first: Names | None = None
        of_host = loaders_of_host(self.function.node)
        for _ in range(_PASSES):
            before = dict(self.names)
            self.bind(node.target, element_of(values))
            if iterated_name(node.iter) in of_host or moves_batches(node):
                self._lay_on_host(elements_bound(node))
            if first is not None and not self._carries(node, first):
                break  # another turn does the same
            first = dict(self.names)
            self._turn(node, before)
        del self.control[depth:]
        self._one_by_one(node, known)
        self.block(node.orelse)
        return True

    def _lay_on_host(self, target: ast.expr) -> None:
        """Let a batch that the loop moves itself be on the host, as far as it is not known."""
        match target:
            case ast.Name(name) if self.names.get(name) is UNKNOWN:
                self.names[name] = Tensor(on_host=True) if name in self.known else HOST_BATCH
            case ast.Tuple(parts) if all(isinstance(part, ast.Name) for part in parts):
                for name in (part.id for part in parts if isinstance(part, ast.Name)):
                    if self.names.get(name) is UNKNOWN:
                        self.names[name] = Tensor(on_host=True, is_sure=False)
            case ast.Tuple(parts):
                for part in parts:
                    if isinstance(part, ast.Tuple):
                        self._lay_on_host(part)

    def _one_by_one(self, node: ast.For | ast.AsyncFor, known: int) -> None:
        """A loop over a tensor whose elements are read in it, one after the other.

        What happened in the loop is what the recorder noted since it had `known` events.
        """
        events = self.session.recorder.log[known:]
        tensors = [
            part
            for part, bound in iterated(node.iter, node.target)
            if may_be_on_device(self.read(part))
            and reads_elements(node, bound, events, self.function)
        ]
        if tensors:
            is_sure = any(on_device(self.read(part)) for part in tensors)
            advice = message("shape.read-once")
            self.report(HOST_READ, tensors[0], advice, _READ_COST, is_sure=is_sure)

    def _while(self, node: ast.While) -> bool:
        depth = len(self.control)
        first: Names | None = None
        for _ in range(_PASSES):
            if first is not None and not self._carries(node, first):
                break
            first = dict(self.names)
            sources = self.decide(node.test)
            if sources:
                self.control.append(sources)
            self._turn(node, dict(self.names))
            del self.control[depth:]
        self.block(node.orelse)
        return True

    def _carries(self, node: ast.For | ast.AsyncFor | ast.While, first: Names) -> bool:
        """Whether a turn changed what the next one reads, from what the first one began with."""
        changed = {
            name
            for name, value in self.names.items()
            if (name in first or "." in name) and first.get(name, UNKNOWN) != value
        }
        return any("." in name for name in changed) or reads_some(node, changed)

    def _turn(self, node: ast.For | ast.AsyncFor | ast.While, before: Names) -> None:
        """Evaluate one turn of a loop, which may also not happen or end early."""
        outer, self.leaving = self.leaving, []
        self.around.append(node)
        if self.block(node.body):
            before = _merged(before, self.names)
        for names in self.leaving:
            before = _merged(before, names)
        self.around.pop()
        self.names, self.leaving = before, outer

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.read(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN if value == FOREIGN else value)
        is_rare = any(_is_without_gradient(item.context_expr) for item in node.items)
        self.rare += is_rare
        reached = self.block(node.body)
        self.rare -= is_rare
        return reached

    def _try(self, node: ast.Try) -> bool:
        before = dict(self.names)
        reached = self.block(node.body) and self.block(node.orelse)
        after = self.names
        for handler in node.handlers:
            self.names = dict(before)
            is_rare = is_failure(handler)
            self.rare += is_rare
            is_passed = self.block(handler.body)
            self.rare -= is_rare
            if is_passed:
                # The rest of the block is a way for want of memory, if what is tried returns.
                self.rare += not reached and is_want_of_memory(handler)
                after = _merged(after, self.names) if reached else self.names
                reached = True
        self.names = after
        return self.block(node.finalbody) and reached

    def _match(self, node: ast.Match) -> bool:
        self.read(node.subject)
        before = dict(self.names)
        after = before
        for case in node.cases:
            self.names = dict(before)
            if self.block(case.body):
                after = _merged(after, self.names)
        self.names = after
        return True

    # Functions of the file

    def invoke(
        self, function: FunctionHere, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a function or method returns for given arguments."""
        names = dict(parameters(function.node, function.node.name == "forward"))
        order = list(names)
        if function.receiver is not None:
            names[function.receiver] = UNKNOWN
            order = order[1:]
        filled = [*zip(order, arguments, strict=False), *keywords.items()]
        for name, value in filled:
            if name in names and (value is not UNKNOWN or names[name] is UNKNOWN):
                names[name] = value
        given = given_of(function.node, filled)
        self.session.visited.append(function.node)
        known = recalled(self.session, function, names, given)
        if known is not None:
            return known.value
        if not self.can_look_into(function.node):
            return UNKNOWN
        return evaluate_kept(self.session, function, names, given)

    def run_uncalled(self) -> None:
        """Evaluate nested functions that nothing here calls: others are given them."""
        if all(closure.node in self.session.entered for closure in self.defined):
            return
        of_data = set(given_to_data(self.function.node))
        for closure in self.defined:
            node = closure.node
            if node not in self.session.entered and getattr(node, "name", "") not in of_data:
                self.run_closure(closure, [], {})

    def run_closure(
        self, closure: Closure, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a nested function returns, seeing the names around it as they are now."""
        node = closure.node
        if isinstance(node, ast.Lambda):
            return self._of_lambda(node, closure, arguments)
        if not self.can_look_into(node):
            return UNKNOWN
        self.session.entered.add(node)
        names_inside = {**closure.names, **dict(parameters(node, False))}
        own = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        for name, value in [*zip(own, arguments, strict=False), *keywords.items()]:
            if value is not UNKNOWN or names_inside.get(name) is UNKNOWN:
                names_inside[name] = value
        inner = nested_function(node, self.session.definers[node])
        return evaluate(self.session, inner, names_inside, frozenset())

    def _of_lambda(self, node: ast.Lambda, closure: Closure, arguments: list[Value]) -> Value:
        """What a lambda returns; what happens in it counts for the function that defines it."""
        names = [argument.arg for argument in node.args.args]
        inside = {**closure.names, **dict(zip(names, arguments, strict=False))}
        frame = Statements(self.session, self.session.definers[node], inside, frozenset())
        frame.control, frame.around, frame.rare = self.control, self.around, self.rare
        frame.depth, frame.steps = self.depth, self.steps
        return frame.read(node.body)


def recalled(
    session: Session, function: FunctionHere, names: Mapping[str, Value], given: frozenset[str]
) -> Result | None:
    """What a function came to before for the same arguments; what happened in it is noted again."""
    key = (function.node, tuple(names.values()), given)
    known = session.results.get(key) or session.shared.get(key)
    if known is not None:
        for event in known.events:
            session.recorder.add_copy(event)
        session.visited += known.visited
        session.definitions.queried |= known.queried
        session.passed_arguments += known.passed_arguments
    return known


def evaluate_kept(
    session: Session, function: FunctionHere, names: Mapping[str, Value], given: frozenset[str]
) -> Value:
    """Evaluate a function and remember what it came to; what it returns."""
    recorder = session.recorder
    start = len(recorder.log), len(session.visited), len(session.passed_arguments)
    steps = session.steps
    with session.definitions.looked_up() as queried:
        value = evaluate(session, function, names, given)
    events = tuple(dict.fromkeys(recorder.log[start[0] :]))
    visited = tuple(dict.fromkeys(session.visited[start[1] :]))
    passed = tuple(session.passed_arguments[start[2] :])
    result = Result(value, events, visited, frozenset(queried), passed)
    key = (function.node, tuple(names.values()), given)
    session.results[key] = result
    # In a long chain of functions, each would have all that those before it have.
    is_small = len(events) <= _MOST_SHARED and len(visited) <= _MOST_SHARED
    is_whole = session.steps - steps < MAX_STEPS
    if len(session.active) <= 1 and is_small and is_whole:
        # What else comes to use them in this function is nothing to others.
        session.shared[key] = result._replace(events=tuple(map(copy_of, events)))
    return value


def evaluate(
    session: Session, function: FunctionHere, names: Mapping[str, Value], given: frozenset[str]
) -> Value:
    """Evaluate a function whose parameters hold what the names say; what it returns."""
    session.check_cancelled()
    session.active.append(function.node)
    frame = Statements(session, function, dict(names), given)
    try:
        result = frame.run()
        frame.run_uncalled()
    finally:
        session.active.pop()
    if not is_generator(function):
        return result
    is_plain = frame.yielded and not function.decorators and not are_deep(frame.yielded)
    return Items(any_of(frame.yielded)) if is_plain else UNKNOWN


def _merged(first: Names, second: Names) -> Names:
    """What names hold where two ways meet."""
    if first == second:
        return first
    merged = dict(first)
    for name, value in second.items():
        before = merged.get(name)
        merged[name] = value if before is None or before is value else either(before, value)
    for name in first.keys() ^ second.keys():
        if "." in name and isinstance(merged[name], Foreign):
            del merged[name]  # `args.device` had a value before, too
    return merged


def _are_of_host(node: ast.expr) -> bool:
    """Whether types are those of values that Python or NumPy has."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_are_of_host, node.elts))
    return last_name(node) in _HOST_TYPES


def _is_without_gradient(node: ast.expr) -> bool:
    """`torch.no_grad()` and its like, in which nothing is trained."""
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Attribute) and called.attr == "inference_mode"


_HANDLERS: dict[type[ast.stmt], Callable[..., bool]] = {
    ast.Expr: Statements._expression,
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented,
    ast.Return: Statements._return,
    ast.Assert: Statements._assert,
    ast.Raise: lambda frame, node: False,
    ast.Break: Statements._leave,
    ast.Continue: Statements._leave,
    ast.Delete: Statements._delete,
    ast.FunctionDef: Statements._definition,
    ast.AsyncFunctionDef: Statements._definition,
    ast.If: Statements._if,
    ast.For: Statements._for,
    ast.AsyncFor: Statements._for,
    ast.While: Statements._while,
    ast.With: Statements._with,
    ast.AsyncWith: Statements._with,
    ast.Try: Statements._try,
    ast.Match: Statements._match,
}
