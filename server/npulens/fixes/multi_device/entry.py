"""Where a process of a script joins the group, and where it leaves it."""

import ast
from collections.abc import Iterable

from npulens.fixes.imports import imports_module
from npulens.fixes.multi_device.plan import Entry
from npulens.fixes.multi_device.reading import Reading, start_of, starts_before
from npulens.fixes.scripts import comes_before_setup
from npulens.syntax.bindings import Function
from npulens.syntax.walking import is_main_guard, nodes_below

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def entry_of(reading: Reading, participants: Iterable[ast.AST]) -> Entry:
    """The block that the script runs and that makes everything which takes part in training.

    Args:
        reading: The script.
        participants: The nodes that make, wrap and train.

    Raises:
        UnclearError: The script does not run it itself.
    """
    tree = reading.script.tree
    participants = list(participants)
    tops: dict[ast.stmt, None] = {}
    for node in participants:
        tops.update(dict.fromkeys(_starts(reading, node)))
    if not tops:
        made = min(participants, key=start_of, default=tree)
        raise reading.unclear(made, "distributed.not-run")
    guard = next((s for s in tree.body if is_main_guard(s)), None)
    in_guard = [s for s in tops if guard is not None and _holds(guard, s)]
    if isinstance(guard, ast.If) and len(in_guard) == len(tops):
        body, is_top = guard.body, False
    else:
        body, is_top = tree.body, True
    outer = {
        next(s for s in body if _holds(s, top)) for top in tops if any(_holds(s, top) for s in body)
    }
    if len(outer) == 1:
        called = _only_call(reading, next(iter(outer)))
        before = body[: body.index(next(iter(outer)))]
        if called is not None and all(_prepares(s) for s in before):
            first = next((s for s in called.body if not comes_before_setup(s, False)), None)
            if first is not None:
                return Entry(first, called.body[-1], called)
    imports = [at for at, s in enumerate(body) if imports_module([s], "torch")]
    following = body[imports[-1] + 1 :] if imports and is_top else body
    first = next((s for s in following if not comes_before_setup(s, is_top)), None)
    if first is not None and any(starts_before(top, first) for top in tops):
        first = None
    if first is None:
        raise reading.unclear(body[0], "distributed.not-run")
    return Entry(first, body[-1], None)


def _starts(reading: Reading, node: ast.AST) -> list[ast.stmt]:
    """The statements of the script that lead to a node.

    Raises:
        UnclearError: It is run where another module is imported.
    """
    place = reading.flow.places.get(node)
    if place is None:
        return []
    if place.function is None:
        is_run_first = reading.program.module_with[node] is not reading.program.start
        if is_run_first:
            raise reading.unclear(node, "distributed.made-by-import")
        return [place.statements[-1]] if place.owner is None else []
    found: dict[ast.stmt, None] = {}
    pending, known = [place.function], set()
    while pending:
        function = pending.pop()
        if function in known:
            continue
        known.add(function)
        for site in reading.flow.calls_of(function):
            if site.function is None:
                if reading.program.module_with[site.node] is reading.program.start:
                    found[site.statement] = None
            else:
                pending.append(site.function)
    return list(found)


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(each is inner for each in nodes_below(outer))


def _only_call(reading: Reading, statement: ast.stmt) -> Function | None:
    """The function that a statement calls and does nothing else."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
        return None
    run = [f for f in reading.flow.functions_run(value) if f in reading.script.tree.body]
    if len(run) != 1 or not isinstance(value.func, ast.Name) or run[0].decorator_list:
        return None
    return run[0] if len(reading.flow.calls_of(run[0])) == 1 else None


def _prepares(statement: ast.stmt) -> bool:
    """Whether a statement only defines, imports, or reads options."""
    if isinstance(statement, (*_DEFINITIONS, ast.Try)) or comes_before_setup(statement, True):
        return True
    words = {
        getattr(n, "attr", getattr(n, "id", ""))
        for n in nodes_below(statement)
        if isinstance(n, (ast.Attribute, ast.Name))
    }
    return isinstance(statement, (ast.Assign, ast.Expr, ast.AnnAssign)) and words.isdisjoint(
        {"cuda", "npu", "to", "DataLoader", "device", "load", "save"}
    )
