"""Models without `DataParallel`, which train on one card.

For scripts where it is not clear how they would run in one process for each card, or that do so in
another branch already. On one card the wrapper does nothing but call the model; on the NPU it fails
even there, as `torch._C._scatter` is for CUDA (torch/nn/parallel/comm.py).
"""

import ast
import builtins
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.data_loaders import BACKWARD
from npulens.fixes.distributed import DATA_PARALLEL
from npulens.fixes.scripts import Script, calls_of
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import blocks, nodes_below
from npulens.text.spans import Span

_OPTIONS = frozenset({"module", "device_ids", "output_device", "dim"})
_KEEPING = frozenset({"dict", "list", "tuple", "set", "setattr"})
"""Functions of Python that keep what they are given."""
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_Blocks = Mapping[ast.stmt, list[ast.stmt]]


class WrappedModel(NamedTuple):
    """A model that may as well be used without its wrapper.

    Attributes:
        call: The call of `DataParallel`.
        model: What it is given.
        edits: What leaves the model alone.
    """

    call: ast.Call
    model: ast.expr
    edits: tuple[Edit, ...]


def wrapped_models(script: Script) -> list[WrappedModel]:
    """The models of a script that need no `DataParallel`.

    There are none in a module that does not train, or that may need the wrapper: it reads
    `.module`, returns a wrapped model, or hands one to code that is not in it.
    """
    if BACKWARD not in script.lines.text:
        return []
    nodes = list(nodes_below(script.tree))
    calls = list(calls_of(script.tree.body, script.module))
    wrapping = [call for call, scope in calls if _is_wrapper(call, scope)]
    around = {statement: block for block in blocks(nodes) for statement in block}
    names = set(_names(wrapping, around))
    if None in names or any(getattr(node, "attr", "") == "module" for node in nodes):
        return []
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    returned = (n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None)
    if any(_holds(value, names) for value in returned):
        return []
    if any(_is_given_away(names, call, scope, functions) for call, scope in calls):
        return []
    found = [_wrapped(script, call, around) for call in wrapping]
    return [] if None in found else [each for each in found if each is not None]


def _is_wrapper(call: ast.Call, scope: Scope) -> bool:
    return not DATA_PARALLEL.isdisjoint(qualified_names(call.func, scope))


def _names(wrapping: list[ast.Call], around: _Blocks) -> Iterator[str | None]:
    """What wrapped models are called; `None` for one that goes elsewhere at once."""
    stored = {
        node: statement.targets[0]
        for statement in around
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1
        for node in nodes_below(statement.value)
    }
    for call in wrapping:
        target = stored.get(call)
        yield ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else None


def _holds(node: ast.expr, names: set[str | None]) -> bool:
    """Whether an expression is one of some models, or a display with one."""
    pending: list[ast.expr | None] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, (ast.List, ast.Tuple, ast.Set)):
            pending += each.elts
        elif isinstance(each, ast.Dict):
            pending += each.values
        elif isinstance(each, ast.Starred):
            pending.append(each.value)
        elif isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) in names:
            return True
    return False


def _is_given_away(
    names: set[str | None], call: ast.Call, scope: Scope, functions: set[str]
) -> bool:
    """Whether a wrapped model goes to a function of which nothing is known."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    if not any(_holds(each, names) for each in given):
        return False
    if isinstance(call.func, ast.Name) and call.func.id in functions:
        return False
    called = qualified_names(call.func, scope)
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    is_builtin = hasattr(builtins, name) and name not in _KEEPING
    return not is_builtin if not called else not all(each.startswith("torch.") for each in called)


def _wrapped(script: Script, call: ast.Call, around: _Blocks) -> WrappedModel | None:
    """`nn.DataParallel(model, device_ids=[0])`, if what is around the model can go."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "module"]
    model = next(iter((*call.args, *named)), None)
    is_plain = all(keyword.arg in _OPTIONS for keyword in call.keywords)
    if model is None or not is_plain or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    whole, inner = script.span(call), script.span(model)
    dropped = (Span(whole.start, inner.start), Span(inner.end, whole.end))
    if any("#" in script.lines.text[slice(*span)] for span in dropped):
        return None
    opening, closing = ("", "") if isinstance(model, _SIMPLE) else ("(", ")")
    edits = _statement_gone(script, call, model, around)
    return WrappedModel(
        call, model, edits or (Edit(dropped[0], opening), Edit(dropped[1], closing))
    )


def _statement_gone(
    script: Script, call: ast.Call, model: ast.expr, around: _Blocks
) -> tuple[Edit, ...]:
    """`model = nn.DataParallel(model)`, of which nothing is left."""
    for statement, block in around.items():
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            continue
        if ast.unparse(statement.targets[0]) != ast.unparse(model):
            return ()
        span = script.span(statement)
        if len(block) == 1:
            return (Edit(span, "pass"),)
        starts = script.lines.starts
        last = statement.end_lineno or statement.lineno
        if last < len(starts):
            line = Span(starts[statement.lineno - 1], starts[last])
            if script.lines.text[slice(*line)].strip() == script.source(statement):
                return (Edit(line, ""),)
    return ()
