"""How many times gradients are added up for an update."""

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from npulens.syntax.meanings import qualified_names
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Loop, Site
from npulens.training.turns import Turn
from npulens.training.updates import Update

_ADDS_UP = frozenset({"accumulate_grad_batches", "gradient_accumulation_steps"})
"""The options of Lightning's trainer, of `TrainingArguments` and of `Accelerator`."""

_COUNTING = ("range", "trange", "enumerate")
"""What gives a loop the number of its turn."""


def accumulation(turn: Turn, sites: CallSites) -> ast.expr | None:
    """How many times gradients are added up for an update, as it is written; `None` if unclear.

    `1` where each backward pass is followed by an update, `n` of `if (i + 1) % n == 0:` around the
    update or of `for _ in range(n):` around the backward pass, and the option of `Accelerator`
    where `with accelerator.accumulate(model):` makes steps of several batches. An engine of
    DeepSpeed is asked itself: its `step()` updates as often as its configuration says.
    """
    found = _in_loops(turn, sites)
    engine = _engine(turn, sites)
    if engine is not None and isinstance(found, ast.Constant) and found.value == 1:
        return ast.Call(ast.Attribute(engine, "gradient_accumulation_steps", ast.Load()), [], [])
    if isinstance(found, ast.Constant) and found.value == 1 and _is_of_accelerate(sites):
        return _of_accelerate(sites)
    return found


def accumulation_options(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """How often a library adds up gradients, by the options of what makes its objects."""
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg in _ADDS_UP:
            yield node.value


def _engine(turn: Turn, sites: CallSites) -> ast.expr | None:
    """The engine of DeepSpeed that goes backward and updates, if one does.

    Source: DeepSpeed, `DeepSpeedEngine.gradient_accumulation_steps` (`runtime/engine.py`).
    """
    if not any("deepspeed.initialize" in _names(site, call) for site, call in sites.calls()):
        return None
    going_back = {ast.unparse(b.owner) for b in turn.backwards if b.owner is not None}
    stepped = [update.optimizer for update in turn.updates]
    return stepped[0] if {ast.unparse(each) for each in stepped} == going_back else None


def _names(site: Site, call: ast.Call) -> list[str]:
    return [*qualified_names(call.func, site.scope)]


def _is_of_accelerate(sites: CallSites) -> bool:
    return any(
        isinstance(site.statement, (ast.With, ast.AsyncWith))
        and last_name(call.func) == "accumulate"
        and any(call is item.context_expr for item in site.statement.items)
        for site, call in sites.calls()
    )


def _of_accelerate(sites: CallSites) -> ast.expr | None:
    """The option of `Accelerator`; `None` if it is made elsewhere, or has it in another way."""
    made = [call for _, call in sites.calls() if last_name(call.func) == "Accelerator"]
    found = [value for call in made for value in accumulation_options(call.keywords)]
    if len({ast.unparse(value) for value in found}) == 1 and len(found) == len(made):
        return found[0]
    names = {keyword.arg for call in made for keyword in call.keywords}
    is_left_out = bool(made) and names.isdisjoint((None, "gradient_accumulation_plugin", *_ADDS_UP))
    return ast.Constant(1) if is_left_out else None


def _in_loops(turn: Turn, sites: CallSites) -> ast.expr | None:
    """The number as the loops and the conditions of a script have it."""
    counted = [_counted(turn, update) for update in turn.updates]
    if counted and None not in counted:
        return counted[0]
    if any(number is not None for number in counted) and _has_arms(turn):
        return None  # one arm counts itself, the other leaves it to an engine
    inner = {loops for b in turn.backwards for loops in _loops_within(turn, b.site, sites)}
    updated = {loops for u in turn.updates for loops in _loops_within(turn, u.site, sites)}
    if inner <= updated:
        return ast.Constant(1)
    more = inner - updated
    repeated = [_times(loops[0]) or _divisor(loops[0], turn) for loops in more if len(loops) == 1]
    written = {"" if each is None else ast.unparse(each) for each in repeated}
    return repeated[0] if len(repeated) == len(more) and len(written) == 1 else None


def _has_arms(turn: Turn) -> bool:
    """Whether updates stand in different arms of a condition."""
    arms: dict[ast.If, set[bool]] = {}
    for update in turn.updates:
        for around, inner in pairwise(update.site.statements):
            if isinstance(around, ast.If) and around.lineno > turn.around.lineno:
                arms.setdefault(around, set()).add(inner in around.body)
    return any(len(each) > 1 for each in arms.values())


def _counted(turn: Turn, update: Update) -> ast.expr | None:
    """`n` of the condition of an update that is not one of its backward pass as well."""
    around = {s for b in turn.backwards for s in b.site.statements}
    for statement in update.site.statements:
        if isinstance(statement, ast.If) and statement.lineno > turn.around.lineno:
            if statement in around:
                continue
            found = _every(statement.test) or _at_count(statement, turn)
            if found is not None:
                return found
    return None


def _at_count(condition: ast.If, turn: Turn) -> ast.expr | None:
    """`n` of `if i + 1 == n:`, where `i` counts the turns: the last of as many backward passes.

    A counter that no loop has is set back where the update is.
    """
    test = condition.test
    if not isinstance(test, ast.Compare) or len(test.ops) > 1:
        return None
    counter, above = _without_one(test.left, ast.Add)
    limit, below = _without_one(test.comparators[0], ast.Sub)
    starts = _first_of_loop(counter, turn) if isinstance(test.ops[0], ast.Eq) else None
    if starts is None and isinstance(test.ops[0], (ast.Eq, ast.GtE)):
        starts = _first_of_sum(counter, condition, turn)
    return limit if starts is not None and starts + above + below == 1 else None


def _without_one(node: ast.expr, sign: type[ast.operator]) -> tuple[ast.expr, int]:
    """`i` and 1 of `i + 1`; anything else and 0."""
    is_one = isinstance(node, ast.BinOp) and getattr(node.right, "value", None) == 1
    if isinstance(node, ast.BinOp) and is_one and isinstance(node.op, sign):
        return node.left, 1
    return node, 0


def _first_of_loop(counter: ast.expr, turn: Turn) -> int | None:
    """What the counter of a loop is in the first turn; `None` of what is none."""
    loop = turn.around
    if not isinstance(loop, (ast.For, ast.AsyncFor)) or not isinstance(loop.iter, ast.Call):
        return None
    called, given = last_name(loop.iter.func), loop.iter.args
    targets = getattr(loop.target, "elts", [loop.target])
    if called not in _COUNTING or ast.unparse(targets[0]) != ast.unparse(counter):
        return None
    starts = [keyword.value for keyword in loop.iter.keywords if keyword.arg == "start"]
    if not starts and len(given) > 1:
        starts = given[1:2] if called == "enumerate" else given[:1]
    first = getattr(starts[0], "value", None) if starts else 0
    return first if isinstance(first, int) else None


def _first_of_sum(counter: ast.expr, condition: ast.If, turn: Turn) -> int | None:
    """1 for a name to which each turn adds 1, and that is set back where the update is."""
    name = ast.unparse(counter)
    is_reset = any(
        isinstance(each, ast.Assign)
        and getattr(each.value, "value", None) == 0
        and name in map(ast.unparse, each.targets)
        for each in condition.body
    )
    added = (n for each in turn.around.body for n in nodes_below(each) if is_reset)
    for node in added:
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
            is_one = getattr(node.value, "value", None) == 1
            return 1 if is_one and isinstance(node.op, ast.Add) else None
    return None


def _loops_within(turn: Turn, site: Site, sites: CallSites) -> Iterator[tuple[Loop, ...]]:
    """The loops from that of the steps to a call, on each way that leads there."""
    for path in sites.paths_to(site):
        if turn.around in path.loops:
            yield path.loops[path.loops.index(turn.around) + 1 :]
        elif turn.holds(path):
            yield path.loops


def _times(loop: Loop) -> ast.expr | None:
    """`n` of `for _ in range(n):`."""
    iterated = getattr(loop, "iter", None)
    if not isinstance(iterated, ast.Call) or getattr(iterated.func, "id", "") != "range":
        return None
    return iterated.args[0] if len(iterated.args) == 1 else None


def _divisor(loop: Loop, turn: Turn) -> ast.expr | None:
    """`n` of `loss = loss / n` in a loop, for the mean of as many batches."""
    losses = {ast.unparse(backward.loss) for backward in turn.backwards}
    found: dict[str, ast.expr] = {}
    for node in (part for statement in loop.body for part in nodes_below(statement)):
        divided: ast.expr | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            divided, by = node.target, node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            divided, by = node.left, node.right
        if divided is not None and ast.unparse(divided) in losses:
            found[ast.unparse(by)] = by
    return next(iter(found.values())) if len(found) == 1 else None


def _every(test: ast.expr) -> ast.expr | None:
    """`n` of a condition with `step % n`."""
    for node in nodes_below(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return node.right
    return None
