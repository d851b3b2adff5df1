"""Models that no wrapper fits: the gradients that optimizers are given are averaged.

A wrapper computes by the `forward` of one model. Where steps call other methods, train parts of
several models, or make models where nobody can follow them, the processes still train together if
each gradient is averaged as it is computed. That is slower, since gradients are sent one by one.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.fixes.multi_device.first_process import FirstProcess, first_process, inside_alone
from npulens.fixes.multi_device.inner_uses import inner_uses
from npulens.fixes.multi_device.models import Aliases, trained_variables, wrapping_of
from npulens.fixes.multi_device.plan import Averaging, Wrapping
from npulens.fixes.multi_device.reading import Reading
from npulens.fixes.scripts import UnclearError
from npulens.training.participants import base_of, owners_of_parameters, takes_from_set
from npulens.training.updates import Update


class TrainedModels(NamedTuple):
    """How the models of a program are trained together.

    Attributes:
        averaged: The calls that make optimizers whose gradients are averaged; then nothing is
            wrapped.
    """

    wrappings: tuple[Wrapping, ...]
    aliases: Aliases
    inner: tuple[ast.expr, ...]
    alone: FirstProcess
    averaged: tuple[Averaging, ...]


def trained_together(reading: Reading, wanted: str | None) -> TrainedModels:
    """Which models are wrapped, or which optimizers are given averages where that is not possible.

    Raises:
        UnclearError: Neither is; the reason is that of the wrapper.
    """
    try:
        return _wrapped(reading, wanted)
    except UnclearError:
        averaged = tuple(_made_optimizers(reading)) if wanted is None else ()
        if not averaged:
            raise
    aliases = Aliases(reading, [])
    averagings = tuple(Averaging(call, _order(reading, call)) for call in averaged)
    return TrainedModels((), aliases, (), first_process(reading, aliases, ()), averagings)


def _order(reading: Reading, call: ast.Call) -> tuple[str, ...]:
    """The models that say in which order parameters are, if what an optimizer is given does not.

    Raises:
        UnclearError: None is seen where the optimizer is made.
    """
    flow = reading.flow
    if not takes_from_set(call, flow):
        return ()
    function = reading.place(call).function
    bases = (base_of(owner, flow) for owner in owners_of_parameters(call, flow))
    here = (n for n in bases if isinstance(n, (ast.Name, ast.Attribute)) and n in flow.places)
    found = dict.fromkeys(ast.unparse(n) for n in here if reading.place(n).function is function)
    if not found:
        raise reading.unclear(call, "distributed.order-of-set")
    return tuple(found)


def _wrapped(reading: Reading, wanted: str | None) -> TrainedModels:
    wrappings = [wrapping_of(reading, each) for each in trained_variables(reading, wanted)]
    aliases = Aliases(reading, wrappings)
    inner = dict.fromkeys(inner_uses(reading, aliases))
    alone = first_process(reading, aliases, inner)
    inner.update(dict.fromkeys(inside_alone(reading, alone.only, aliases)))
    _require_run(reading, aliases, wrappings)
    return TrainedModels(tuple(wrappings), aliases, tuple(inner), alone, ())


def _require_run(reading: Reading, aliases: Aliases, wrappings: Iterable[Wrapping]) -> None:
    """See that steps of training call each wrapper, or hand it to what does.

    Raises:
        UnclearError: A model is trained by something that was given it unwrapped.
    """
    used: list[ast.expr] = []
    for node, _ in reading.calls():
        if reading.trains_at(node):
            given = (node.func, *node.args, *(k.value for k in node.keywords))
            used += [each for each in given if aliases.is_wrapped(each)]
    first = next(iter(wrappings), None)
    if first is not None and not used:
        raise reading.unclear(first.at.statement, "distributed.never-called", model=first.text)


def _made_optimizers(reading: Reading) -> Iterator[ast.Call]:
    """The calls that make the optimizers of all updates; none if one is not seen."""
    found: dict[ast.Call, None] = {}
    for update in reading.training.updates:
        made = _made(reading, update)
        if made is None:
            return
        found.update(dict.fromkeys(made))
    yield from found


def _made(reading: Reading, update: Update) -> list[ast.Call] | None:
    """What makes the optimizer of an update; `None` if that is not seen."""
    found: list[ast.Call] = []
    for value in reading.flow.origins(update.optimizer):
        node = value.node
        if isinstance(node, ast.Constant):
            continue  # None, before it is made
        if not isinstance(node, ast.Call) or node not in reading.flow.places:
            return None
        owner = reading.flow.class_made(node)
        names = reading.names(node.func)
        is_of_library = owner is None and not reading.flow.functions_run(node) and bool(names)
        if (
            any(".optim" in name for name in names)
            or (owner is not None and _is_optimizer(reading, owner))
            or (is_of_library and any(owners_of_parameters(node, reading.flow)))
        ):
            found.append(node)
        elif owner is None or reading.program.method(owner, "step") is None:
            return None  # else the class of the project has an optimizer, with an update of its own
    return found


def _is_optimizer(reading: Reading, owner: ast.ClassDef) -> bool:
    bases = [base for each in reading.program.bases(owner) for base in each.bases]
    return any("Optimizer" in ast.unparse(base) or ".optim" in ast.unparse(base) for base in bases)
