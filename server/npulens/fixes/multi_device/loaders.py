"""Which loaders are divided among the processes, and where their sampler is told the epoch."""

import ast
import builtins
import sys
from collections.abc import Iterator
from typing import NamedTuple

from npulens.fixes.multi_device.models import as_assigned
from npulens.fixes.multi_device.plan import DirectLoader, Epoch
from npulens.fixes.multi_device.reading import Reading, last_name, starts_before
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Qualified, resolve
from npulens.syntax.walking import nodes_below
from npulens.training.flow import ITERATING, Value
from npulens.training.participants import Source, is_loader, sources
from npulens.training.step_loops import StepLoop

_TAKEN = frozenset({"sampler", "batch_sampler"})
_ITERATING = frozenset({"__iter__", "__len__", "_get_iterator"})
"""Methods that no caller names."""
_WITHOUT_LOADERS = frozenset(
    {
        "builtins",
        "torch",
        "torchvision",
        "torchaudio",
        "numpy",
        "cupy",
        "jax",
        "tensorflow",
        "pandas",
        "scipy",
        "sklearn",
        "gym",
        "gymnasium",
        "tqdm",
        "rich",
        "alive_progress",
        "accelerate",
        "transformers",
    }
)
"""Libraries that give no loader of PyTorch, but for the class itself."""
_KEPT = frozenset(
    {"__init__", "dataset", "batch_size", "drop_last", "sampler", "batch_sampler", "num_workers"}
    | {"collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator", "persistent_workers"}
)
"""What a loader made anew has as well."""


class Loaders(NamedTuple):
    """The loaders of the steps.

    Attributes:
        direct: Those that are given a sampler where they are made.
        rebuilt: Expressions whose value is made anew.
        reassigned: Variables that are: behind what, and how they are written.
        made: All calls that make one of them.
        divided: Those of which all that they make is divided.
    """

    direct: tuple[DirectLoader, ...]
    rebuilt: tuple[ast.expr, ...]
    reassigned: tuple[tuple[ast.stmt, str], ...]
    made: tuple[ast.expr, ...]
    divided: tuple[ast.expr, ...]


def training_loaders(reading: Reading) -> Loaders:
    """The loaders that loops of steps take their data from.

    Raises:
        UnclearError: A loop takes it from something else, or a loader has an order of its own.
    """
    direct: dict[ast.Call, DirectLoader] = {}
    rebuilt: dict[ast.expr, None] = {}
    reassigned: dict[tuple[ast.stmt, str], None] = {}
    made: dict[ast.expr, None] = {}
    divided: dict[ast.expr, None] = {}
    for step in reading.training.steps:
        every = [(each, value) for each in sources(step, reading.flow) for value in each.made]
        found = [(each, value) for each, value in every if is_loader(value.node, reading.flow)]
        found = found or [
            (each, value)
            for each, value in every
            if each.used is getattr(step.loop, "iter", None) and is_unseen(reading, value.node)
        ]
        if not found:
            raise _no_loader(reading, step)
        for source, value in found:
            made[value.node] = None
            call = value.node
            assert isinstance(call, ast.Call)
            is_seen = is_loader(call, reading.flow)
            _require_plain(reading, call)
            simple = _direct(reading, call) if is_seen else None
            is_shared = _is_shared(reading, value) if is_seen else bool(value.path)
            if not is_shared:
                if simple is not None:
                    direct[call] = simple
                else:
                    rebuilt[call] = None
                divided[call] = None
                continue
            for at in _definitions(reading, source):
                if isinstance(at, ast.expr):
                    rebuilt[at] = None
                else:
                    reassigned[at] = None
    return Loaders(
        tuple(direct.values()), tuple(rebuilt), tuple(reassigned), tuple(made), tuple(divided)
    )


def may_be_loader(reading: Reading, node: ast.expr) -> bool:
    """Whether an expression makes a loader, or calls what no file here has and may make one.

    A program that is not given a `DataLoader` there stops before it trains.
    """
    return is_loader(node, reading.flow) or is_unseen(reading, node)


def is_unseen(reading: Reading, node: ast.expr) -> bool:
    """Whether a function is called that is imported from a file which is not there."""
    place = reading.flow.places.get(node)
    if place is None or not isinstance(node, ast.Call) or reading.flow.functions_run(node):
        return False
    if reading.flow.classes_made(node):
        return False
    if last_name(node.func) in dir(builtins):  # a module may give all its names
        return False
    found = [v for v in resolve(node.func, place.scope) if isinstance(v, Qualified)]
    roots = {each.name.partition(".")[0] for each in found}
    return bool(roots) and not roots & _WITHOUT_LOADERS and not roots & sys.stdlib_module_names


def _require_plain(reading: Reading, call: ast.Call) -> None:
    """See that a loader made anew does what the program asks of it.

    Raises:
        UnclearError: It is of a class derived from `DataLoader`, and what that adds is used.
    """
    made = reading.flow.classes_made(call)
    if not made:
        return
    bases = [base for each in made for base in reading.program.bases(each)]
    methods = [n for each in bases for n in each.body if isinstance(n, Function)]
    for method in methods:
        if method.name in _ITERATING:
            raise reading.unclear(method, "distributed.own-iteration", code=method.name)
    inside = {node for each in bases for node in nodes_below(each)}
    kept = (n.attr for n in inside if isinstance(n, ast.Attribute) and _is_stored(n))
    shared = (n.id for each in bases for s in each.body for n in _names_set(s))
    own = {*(method.name for method in methods), *kept, *shared} - _KEPT
    for node in reading.flow.places:
        if isinstance(node, ast.Attribute) and node.attr in own and node not in inside:
            raise reading.unclear(node, "distributed.own-iteration", code=node.attr)


def _is_stored(node: ast.Attribute | ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _names_set(statement: ast.stmt) -> list[ast.Name]:
    """The names that an assignment sets."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return []
    return [n for n in nodes_below(statement) if isinstance(n, ast.Name) and _is_stored(n)]


def _direct(reading: Reading, call: ast.Call) -> DirectLoader | None:
    """How a sampler is put into a call of `DataLoader`; `None` if that takes more than a look.

    What other files make is made anew: other scripts may run them, in one process. So is what may
    come from an `IterableDataset`, which takes no sampler.
    """
    if reading.script_of(call) is not reading.script or reading.flow.class_made(call) is not None:
        return None
    if reading.has_iterable_data:
        return None
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if any(k.arg is None for k in call.keywords):
        return None
    named = {k.arg: k for k in call.keywords}
    dataset = call.args[0] if call.args else getattr(named.get("dataset"), "value", None)
    if dataset is None or not _is_simple(dataset):
        return None
    if named.keys() & _TAKEN or len(call.args) > 3:
        return None
    shuffle: ast.expr | ast.keyword | None = named.get("shuffle")
    if len(call.args) == 3:
        shuffle = call.args[2]
    order = shuffle.value if isinstance(shuffle, ast.keyword) else shuffle
    if order is not None and not isinstance(order, ast.Constant) and not _is_plain(order):
        return None
    return DirectLoader(call, dataset, shuffle, order)


def _is_simple(node: ast.expr) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Name)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _is_plain(node: ast.expr) -> bool:
    return not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in nodes_below(node))


def _is_shared(reading: Reading, value: Value) -> bool:
    """Whether a loader is made in a function that makes others too, which stay whole."""
    place = reading.place(value.node)
    if place.function is None or len(reading.flow.calls_of(place.function)) < 2:
        return False
    for node, its in reading.flow.places.items():
        if isinstance(node, (ast.For, ast.AsyncFor)) and node not in reading.step_loops:
            if its.function is place.function:
                continue
            if any(v.node is value.node for v in reading.flow.origins(node.iter)):
                return True
    return False


def _definitions(reading: Reading, source: Source) -> Iterator[ast.expr | tuple[ast.stmt, str]]:
    """Where a loader that is not made by a plain call comes to the file.

    Either the expression that makes it, or the statement that takes it apart, with its target.
    """
    flow = reading.flow
    pending, known = [source.used], set()
    while pending:
        node = pending.pop()
        if node in known:
            continue
        known.add(node)
        variable = flow.variable(node)
        if variable is None:
            inner = [value.node for value in flow.behind(Value(node)) if not value.path]
            if isinstance(node, ast.Subscript):
                raise reading.unclear(node, "distributed.loader-elsewhere")
            if isinstance(node, ast.Call) and flow.functions_run(node):
                yield from _from_function(reading, node)
            elif inner or not may_be_loader(reading, node):
                pending += inner
            else:
                yield node
            continue
        for each in flow.definitions.get(variable, ()):
            if not each.value.path:
                pending.append(each.value.node)
            elif isinstance(each.statement, ast.Assign):
                origins = flow.origins(each.value.node, each.value.path)
                if any(may_be_loader(reading, value.node) for value in origins):
                    yield each.statement, as_assigned(reading, variable, [each.statement])
            else:
                raise reading.unclear(each.statement, "distributed.loader-elsewhere")
        if flow.is_parameter(variable):
            pending += flow.given(variable)


def _from_function(reading: Reading, call: ast.Call) -> Iterator[ast.expr]:
    """What a function of the file returns is made anew where it is called, if it is a loader.

    A generator gets the loader from what it loops over.
    """
    origins = reading.flow.origins(call)
    if any(may_be_loader(reading, value.node) for value in origins):
        yield call
        return
    raise reading.unclear(call, "distributed.loader-elsewhere")


def _no_loader(reading: Reading, step: StepLoop) -> UnclearError:
    loop = step.loop
    code = "while" if isinstance(loop, ast.While) else reading.source(loop.iter)
    return reading.unclear(loop, "distributed.no-loader-here", code=code.splitlines()[0])


def epochs(reading: Reading, made: tuple[ast.expr, ...]) -> Iterator[Epoch]:
    """The statements before which samplers are told the epoch: loops of steps, and `iter`."""
    for step in reading.training.steps:
        for node in (part for statement in step.loop.body for part in nodes_below(statement)):
            if isinstance(node, ast.Call) and last_name(node.func) == "iter" and node.args:
                statement = reading.place(node).statements[-1]
                for written in _written_here(reading, node.args[0], step.loop, made):
                    yield Epoch(statement, written, None, _is_seen(reading, node.args[0]))
        if not step.outer_loops or isinstance(step.loop, ast.While):
            continue
        for written in dict.fromkeys(_written_here(reading, step.loop.iter, step.loop, made)):
            at = _rebound(reading, step.loop, written) or step.loop
            yield Epoch(at, written, _counter(reading, step), _is_seen(reading, step.loop.iter))


def _is_seen(reading: Reading, node: ast.expr) -> bool:
    """Whether all that makes the loaders of an expression is in the program."""
    return not any(is_unseen(reading, value.node) for value in reading.flow.origins(node))


def _rebound(reading: Reading, loop: ast.stmt, written: str) -> ast.stmt | None:
    """`loader = tqdm(loader)` before a loop: behind it, the name has no sampler any more."""
    for node, place in reading.flow.places.items():
        if (
            isinstance(node, ast.Assign)
            and place.function is reading.place(loop).function
            and place.loops == reading.place(loop).loops
            and starts_before(node, loop)
            and [ast.unparse(target) for target in node.targets] == [written]
            and _iterates(node.value)
        ):
            return node
    return None


def _written_here(
    reading: Reading, node: ast.expr, loop: ast.stmt, made: tuple[ast.expr, ...]
) -> Iterator[str]:
    """How loaders that a loop iterates over are written in its function."""
    function = reading.place(loop).function
    pending, known = [node], set()
    while pending:
        each = pending.pop()
        if each in known or each not in reading.flow.places:
            continue
        known.add(each)
        if reading.place(each).function is not function:
            continue
        origins = [v.node for v in reading.flow.origins(each)]
        if not any(node in made and not _has_own_order(node) for node in origins):
            continue
        if _is_simple(each):
            behind = list(reading.flow.behind(Value(each)))
            is_bar = all(_iterates(v.node) for v in behind) and bool(behind)
            if not is_bar:
                yield reading.source(each)
                continue
        pending += [value.node for value in reading.flow.behind(Value(each))]


def _has_own_order(node: ast.expr) -> bool:
    """Whether a loader has a sampler of the author's, which draws anew by itself."""
    return isinstance(node, ast.Call) and any(k.arg in _TAKEN for k in node.keywords)


def _iterates(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ITERATING


def _counter(reading: Reading, step: StepLoop) -> str | None:
    """The variable of the loop that counts epochs, if the loop of the steps stands in it."""
    around = [loop for loop in reading.place(step.loop).loops if not isinstance(loop, ast.While)]
    counting = [
        loop
        for loop in around
        if isinstance(loop.target, ast.Name)
        and ("range" in ast.unparse(loop.iter) or "epoch" in loop.target.id.lower())
    ]
    if len(counting) == 1 and isinstance(counting[0].target, ast.Name):
        return counting[0].target.id
    return None
