"""A program that trains with all that the parts of a plan ask of it."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from npulens.catalog.message_ids import MessageId
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.walking import nodes_below, parents_below
from npulens.training.node_places import Loop, Place
from npulens.training.program import Program
from npulens.training.training_script import read_program

_NO_GRADIENT = re.compile(r"\b(?:no_grad|inference_mode)\b")


class Reading:
    """What is known of a script and its modules: calls, steps, where values come from.

    Attributes:
        script: The script that is started.
        scripts: All files of the program, by their trees.
    """

    def __init__(self, program: Program, scripts: Mapping[ast.Module, Script]) -> None:
        self.program = program
        self.scripts = scripts
        self.script = scripts[program.start.tree]
        self.training, self.flow = read_program(program)

    def script_of(self, node: ast.AST) -> Script:
        """The file that a node stands in."""
        return self.scripts[self.program.module_with[node].tree]

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.script_of(node).source(node)

    def unclear(self, node: ast.AST, name: MessageId, /, **values: object) -> UnclearError:
        """Why a plan cannot be made, at a node."""
        error = UnclearError(getattr(node, "lineno", 1), name, **values)
        error.path = self.script_of(node).path
        return error

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        found: dict[ast.AST, ast.AST] = {}
        for tree in self.scripts:
            found.update(parents_below(tree))
        return found

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

    @cached_property
    def has_iterable_data(self) -> bool:
        """Whether a class of the program yields samples by itself."""
        nodes = (node for tree in self.scripts for node in nodes_below(tree))
        bases = (base for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases)
        return any(last_name(base) == "IterableDataset" for base in bases)

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
        return any(_NO_GRADIENT.search(self.source(mark)) for mark in marks)

    def names(self, node: ast.expr) -> list[str]:
        """The full names of what an expression may be in a library."""
        place = self.flow.places.get(node)
        return [] if place is None else qualified_names(node, place.scope)

    def calls(self) -> Iterator[tuple[ast.Call, Place]]:
        """All calls with their places, in the order of the source."""
        for node, place in self.flow.places.items():
            if isinstance(node, ast.Call):
                yield node, place

    def is_elif(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.If) and self.source(node).startswith("elif")


def last_name(node: ast.expr) -> str:
    """The last name of an expression: `step` of `self.optimizer.step`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_own(node: ast.expr) -> bool:
    """Whether an expression is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


def starts_before(node: ast.AST, other: ast.AST) -> bool:
    return start_of(node) < start_of(other)


def start_of(node: ast.AST) -> tuple[int, int]:
    """Line and column of a node."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
