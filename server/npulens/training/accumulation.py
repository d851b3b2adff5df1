"""How many times gradients are added up for an update."""

import ast
from collections.abc import Iterator

from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Loop, Site
from npulens.training.turns import Turn
from npulens.training.updates import Update


def accumulation(turn: Turn, sites: CallSites) -> ast.expr | None:
    """How many times gradients are added up for an update, as it is written; `None` if unclear.

    `1` where each backward pass is followed by an update, `n` of `if (i + 1) % n == 0:` around the
    update or of `for _ in range(n):` around the backward pass.
    """
    counted = [_counted(turn, update) for update in turn.updates]
    if counted and None not in counted:
        return counted[0]
    inner = {loops for b in turn.backwards for loops in _loops_within(turn, b.site, sites)}
    updated = {loops for u in turn.updates for loops in _loops_within(turn, u.site, sites)}
    if inner <= updated:
        return ast.Constant(1)
    more = inner - updated
    repeated = [_times(loops[0]) for loops in more if len(loops) == 1]
    written = {"" if each is None else ast.unparse(each) for each in repeated}
    return repeated[0] if len(repeated) == len(more) and len(written) == 1 else None


def _counted(turn: Turn, update: Update) -> ast.expr | None:
    """`n` of the condition of an update that is not one of its backward pass as well."""
    around = {s for b in turn.backwards for s in b.site.statements}
    for statement in update.site.statements:
        if isinstance(statement, ast.If) and statement.lineno > turn.around.lineno:
            found = None if statement in around else _every(statement.test)
            if found is not None:
                return found
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


def _every(test: ast.expr) -> ast.expr | None:
    """`n` of a condition with `step % n`."""
    for node in nodes_below(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return node.right
    return None
