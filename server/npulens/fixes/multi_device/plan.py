"""What is to be changed in a program: nodes of its trees and the roles they have."""

import ast
from typing import NamedTuple

from npulens.fixes.multi_device.set_by_data import SetByData
from npulens.training.flow import Variable


class Insertion(NamedTuple):
    """Where statements are put.

    Attributes:
        statement: The one that they go before, or behind.
        behind: They go behind it.
    """

    statement: ast.stmt
    behind: bool = False


class Entry(NamedTuple):
    """The block in which a process joins the group, and leaves it.

    Attributes:
        first: The statement before which it joins.
        last: The statement behind which it leaves, or before which if that returns.
        function: The function whose block it is; `None` for that of the module.
    """

    first: ast.stmt
    last: ast.stmt
    function: ast.AST | None


class Wrapping(NamedTuple):
    """A model that is wrapped.

    Attributes:
        variable: What holds it.
        text: How it is written.
        at: Where that is done.
        function: The function in which that is; `None` for the module.
        several_passes: It is called several times before gradients are computed.
    """

    variable: Variable
    text: str
    at: Insertion
    function: ast.AST | None
    several_passes: bool


class Averaging(NamedTuple):
    """A call that makes an optimizer which is given averages.

    Attributes:
        models: How the models are written that say in which order parameters are, where what the
            optimizer is given says none.
    """

    call: ast.Call
    models: tuple[str, ...]


class DirectLoader(NamedTuple):
    """A call of `DataLoader` that is given a sampler.

    Attributes:
        shuffle: The argument that says whether it shuffles; `None` where none does.
        order: The value of that argument.
    """

    call: ast.Call
    dataset: ast.expr
    shuffle: ast.expr | ast.keyword | None
    order: ast.expr | None


class Epoch(NamedTuple):
    """A loop of steps before which the sampler is told the epoch.

    Attributes:
        loader: How the loader is written there.
        counter: The variable that counts epochs; `None` if none is seen there.
        is_seen: The program shows what makes the loader, so its sampler is known.
    """

    loop: ast.stmt
    loader: str
    counter: str | None
    is_seen: bool


class Figure(NamedTuple):
    """What a loop adds up, which is added up over the processes behind it.

    Attributes:
        mean: What follows divides it by the number of turns, and not of samples.
    """

    loop: ast.stmt
    name: str
    mean: bool


class Plan(NamedTuple):
    """All changes of a program.

    Attributes:
        averaged: Calls that make an optimizer that is given averages, where nothing is wrapped.
        parallel: Calls of `DataParallel`, each with the model that it is given.
        without_module: `model.module` where `model` is not wrapped yet.
        classes: Where the class `DataParallel` is named and not called.
        rebuilt: Expressions whose value is a loader, to be made anew for each process.
        reassigned: Where variables are assigned a loader made anew: behind what, and how written.
        inner: Expressions for which the model inside of the wrapper is meant.
        mixed: Those of them that may be a model without a wrapper, too.
        first_only: Statements that the first process alone runs.
        loads: Statements that read what the first process has saved by then.
        quiet: Calls of progress bars.
        opened: The path that a call of `open` writes to.
        recorded: Calls that start a record at a service, which others have disabled.
        folders: Calls that make a folder which may be there.
        figures: What loops add up.
        agreed_figures: Arguments that have to be the same in all processes.
        agreed_conditions: Conditions on which all processes have to agree.
        removed: Statements that choose a card, or that wrap a model in `DataParallel`.
        set_tensors: Statements that set a tensor of a module from its data.
        unseen: Calls of what no file has that may make a loader of the steps.
        counted: Calls that count cards for the size of a batch.
        logs: The script writes a log by the module `logging`.
    """

    entry: Entry
    wrappings: tuple[Wrapping, ...]
    averaged: tuple[Averaging, ...]
    parallel: tuple[tuple[ast.Call, ast.expr], ...]
    without_module: tuple[ast.Attribute, ...]
    classes: tuple[ast.expr, ...]
    direct: tuple[DirectLoader, ...]
    rebuilt: tuple[ast.expr, ...]
    reassigned: tuple[tuple[ast.stmt, str], ...]
    epochs: tuple[Epoch, ...]
    inner: tuple[ast.expr, ...]
    mixed: frozenset[ast.expr]
    first_only: tuple[ast.stmt, ...]
    loads: tuple[ast.stmt, ...]
    quiet: tuple[ast.Call, ...]
    opened: tuple[ast.expr, ...]
    recorded: tuple[ast.Call, ...]
    folders: tuple[ast.Call, ...]
    figures: tuple[Figure, ...]
    agreed_figures: tuple[ast.expr, ...]
    agreed_conditions: tuple[ast.expr, ...]
    removed: tuple[ast.stmt, ...]
    set_tensors: tuple[SetByData, ...]
    unseen: tuple[ast.expr, ...]
    counted: tuple[ast.Call, ...]
    logs: bool
