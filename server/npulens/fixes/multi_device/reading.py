"""A training script with all that the parts of a plan ask of it."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property

from npulens.fixes.scripts import Script
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Qualified, qualified_names, resolve
from npulens.syntax.walking import nodes_below, parents_below
from npulens.training.flow import Flow
from npulens.training.node_places import Loop, Place
from npulens.training.training_script import TrainingScript, read_training

_NO_GRADIENT = re.compile(r"\b(?:no_grad|inference_mode)\b")

OtherModule = Callable[[str], ast.Module | None]
"""From the full name of a module of the project to its tree; `None` of all others."""


class Reading:
    """What is known of a script: its calls, its steps, where its values come from."""

    def __init__(self, script: Script, other_module: OtherModule) -> None:
        self.script = script
        self.other_module = other_module
        self.training: TrainingScript = read_training(script.tree, script.module)
        self.flow = Flow(script.tree, script.module, self.training.sites)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return parents_below(self.script.tree)

    @cached_property
    def step_loops(self) -> frozenset[Loop]:
        return frozenset(step.loop for step in self.training.steps)

    @cached_property
    def run_in_steps(self) -> frozenset[Function]:
        """The functions of the file that a step of training runs."""
        pending: list[ast.AST] = [part for loop in self.step_loops for part in loop.body]
        found: set[Function] = set()
        while pending:
            for node in nodes_below(pending.pop()):
                for function in self.flow.functions_run(node) if isinstance(node, ast.Call) else ():
                    if function not in found:
                        found.add(function)
                        pending += function.body
        return frozenset(found)

    def place(self, node: ast.AST) -> Place:
        return self.flow.places[node]

    def trains_at(self, node: ast.AST) -> bool:
        """Whether a node is run in a step of training, where gradients are computed."""
        place = self.flow.places.get(node)
        if place is None or self.is_without_gradient(place):
            return False
        return place.function in self.run_in_steps or not self.step_loops.isdisjoint(place.loops)

    def is_without_gradient(self, place: Place) -> bool:
        """Whether it is in `with torch.no_grad():`, or in a function for which that holds."""
        blocks = [s for s in place.statements if isinstance(s, (ast.With, ast.AsyncWith))]
        marks = [item.context_expr for block in blocks for item in block.items]
        marks += place.function.decorator_list if place.function is not None else []
        return any(_NO_GRADIENT.search(self.script.source(mark)) for mark in marks)

    def names(self, node: ast.expr) -> list[str]:
        """The full names of what an expression may be in a library."""
        place = self.flow.places.get(node)
        return [] if place is None else qualified_names(node, place.scope)

    def imported(self, call: ast.Call) -> str | None:
        """The full name of what a call calls, if another module has it."""
        place = self.flow.places.get(call)
        found = [] if place is None else resolve(call.func, place.scope)
        return next((v.name for v in found if isinstance(v, Qualified)), None)

    def definition(self, name: str) -> Function | ast.ClassDef | None:
        """A function or class of another module of the project."""
        module, _, last = name.rpartition(".")
        tree = self.other_module(module) if module else None
        for node in tree.body if tree is not None else ():
            if isinstance(node, (Function, ast.ClassDef)) and node.name == last:
                return node
            if isinstance(node, ast.ImportFrom) and any(
                (a.asname or a.name) == last for a in node.names
            ):
                inner = f"{module}.{node.module}" if node.level else f"{node.module}"
                original = next(a.name for a in node.names if (a.asname or a.name) == last)
                return self.definition(f"{inner}.{original}") if inner != module else None
        return None

    def calls(self) -> Iterator[tuple[ast.Call, Place]]:
        """All calls with their places, in the order of the source."""
        for node, place in self.flow.places.items():
            if isinstance(node, ast.Call):
                yield node, place

    def is_elif(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.If) and self.script.source(node).startswith("elif")


def last_name(node: ast.expr) -> str:
    """The last name of an expression: `step` of `self.optimizer.step`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def starts_before(node: ast.AST, other: ast.AST) -> bool:
    return start_of(node) < start_of(other)


def start_of(node: ast.AST) -> tuple[int, int]:
    """Line and column of a node."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
