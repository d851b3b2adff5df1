"""Mixed precision of NVIDIA's apex: what it does in a script, and the same with native means.

The uses of `apex.amp` belong together, so there is one fix for all of them. It is offered where a
script has the shape of apex's own documentation; anything else is left to a person.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, MigrationStyle
from npulens.checks.context import Context
from npulens.checks.entries import report_symbol
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.parsing import module_tree
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_INITIALIZE = "apex.amp.initialize"
_PLAIN_OPTIONS = frozenset({"opt_level", "verbosity"})
_STATE = frozenset({"state_dict", "load_state_dict"})
_NAME_TAKEN = re.compile(r"\bscaler\b")
_INDENTATION = "    "


class _OtherShapeError(Exception):
    """The script does not have the shape that can be rewritten."""


@dataclass(frozen=True, slots=True)
class _Script:
    """The uses of `apex.amp` in a script.

    Attributes:
        alias: The name of `apex.amp`.
        model: The name of the model, `optimizer` that of its optimizer, `loss` that of its loss.
        block: The statements of a training step.
        backward: Index of `with amp.scale_loss(...)` among them.
        step: Index of `optimizer.step()` among them.
    """

    alias: str
    model: str
    optimizer: str
    loss: str
    block: list[ast.stmt]
    backward: int
    step: int
    tree: ast.Module


def initialized(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`model, optimizer = amp.initialize(model, optimizer, opt_level="O1")`."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return  # of a name that was imported the use is found like any other
    if call.func.attr != "initialize" or _INITIALIZE not in qualified_names(call.func, scope):
        return
    entry = context.catalogue.symbols.get(_INITIALIZE)
    if entry is None or "apex" in context.target.project.own_modules:
        return
    try:
        fixes = [_fix(node, call, scope, context)]
    except _OtherShapeError:
        fixes = []
    report_symbol(context.span(call.func), entry, fixes, context)


def _fix(node: ast.Assign, call: ast.Call, scope: Scope, context: Context) -> Fix:
    script = _read(node, call, context)
    amp, need = _native(scope, node, context)
    edits = [Edit(context.span(node), f"scaler = {amp}.GradScaler()")]
    edits.append(_backward_edit(script, context))
    edits += _step_edits(script, context)
    edits += _forward_edits(script, amp, context)
    edits += [Edit(context.span(name), "scaler") for name in _state_names(script)]
    edits.append(_import_edit(script, context))
    _require(_mentions(script) == _handled(script))
    title = use(f"{amp}.autocast, {amp}.GradScaler")
    return Fix(title, Applicability.UNSAFE, tuple(edits), isolation="apex-amp", imports=need)


def _native(scope: Scope, node: ast.Assign, context: Context) -> tuple[str, ImportNeed]:
    """What mixed precision is native, and what has to be imported for it.

    The device-agnostic style takes that of CUDA, which it then writes for any device with the
    rest of the module.
    """
    has_torch = context.torch_name(scope, node) is not None
    if context.target.style is MigrationStyle.DEVICE_AGNOSTIC:
        _require(has_torch)
        return "torch.cuda.amp", ImportNeed.NOTHING
    if has_torch:
        return "torch.npu.amp", ImportNeed.PLUGIN
    return "torch_npu.npu.amp", ImportNeed.PLUGIN_NAME


def _require(condition: bool) -> None:
    if not condition:
        raise _OtherShapeError


def _read(node: ast.Assign, call: ast.Call, context: Context) -> _Script:
    """The parts of the script, from a tree of their own that holds the whole of it."""
    _require(_NAME_TAKEN.search(context.code.text) is None and "#" not in context.source(node))
    try:
        tree = module_tree(context.code.text)
    except (SyntaxError, ValueError, RecursionError):
        raise _OtherShapeError from None
    alias = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(alias, ast.Name):
        raise _OtherShapeError
    model, optimizer = _initialize_arguments(node, call)
    body = _body_around(tree, node)
    for block in _blocks(body):
        for index, statement in enumerate(block):
            loss = _scaled_loss(statement, alias.id, optimizer)
            if loss is not None:
                step = _step_index(block, index, optimizer)
                return _Script(alias.id, model, optimizer, loss, block, index, step, tree)
    raise _OtherShapeError


def _initialize_arguments(node: ast.Assign, call: ast.Call) -> tuple[str, str]:
    """The names of model and optimizer, which must be those that are assigned."""
    target = node.targets[0]
    names = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
    targets = target.elts if isinstance(target, ast.Tuple) else []
    assigned = [element.id for element in targets if isinstance(element, ast.Name)]
    _require(len(node.targets) == 1 and len(call.args) == len(names) == 2 and names == assigned)
    for keyword in call.keywords:
        _require(keyword.arg in _PLAIN_OPTIONS)
        if keyword.arg == "opt_level":
            _require(isinstance(keyword.value, ast.Constant) and keyword.value.value == "O1")
    return names[0], names[1]


def _body_around(tree: ast.Module, node: ast.Assign) -> list[ast.stmt]:
    """The body of the innermost function around a statement, or of the module."""
    body = tree.body
    for inner in nodes_below(tree):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first, last = inner.lineno, inner.end_lineno or 0
            if first < node.lineno <= last:  # inner functions are walked later
                body = inner.body
    return body


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A body and the blocks of the loops and conditions in it, but no functions of its own."""
    pending = [body]
    while pending:
        block = pending.pop()
        yield block
        for statement in block:
            if isinstance(statement, (ast.For, ast.While, ast.If)):
                pending += [statement.body, statement.orelse]
            elif isinstance(statement, ast.With):
                pending.append(statement.body)


def _scaled_loss(statement: ast.stmt, alias: str, optimizer: str) -> str | None:
    """`loss` of `with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`."""
    form = rf"with {alias}\.scale_loss\((\w+), {optimizer}\) as (\w+):\n +\2\.backward\(\)"
    found = re.fullmatch(form, ast.unparse(statement)) if isinstance(statement, ast.With) else None
    return None if found is None else found[1]


def _step_index(block: list[ast.stmt], backward: int, optimizer: str) -> int:
    for index in range(backward + 1, len(block)):
        statement = block[index]
        if isinstance(statement, ast.Expr) and ast.unparse(statement) == f"{optimizer}.step()":
            return index
    raise _OtherShapeError


def _new_line(statement: ast.stmt, context: Context) -> str:
    """A line end with the indentation of a statement, which must start its line."""
    indentation = context.before_on_line(statement)
    _require(not indentation.strip())
    return "\n" + indentation


def _backward_edit(script: _Script, context: Context) -> Edit:
    statement = script.block[script.backward]
    span = context.span(statement)
    _require("#" not in context.code.text[slice(*span)])
    text = f"scaler.scale({script.loss}).backward()"
    if script.step > script.backward + 1:
        # The code between reads gradients, which apex had unscaled by then.
        text += f"{_new_line(statement, context)}scaler.unscale_({script.optimizer})"
    return Edit(span, text)


def _step_edits(script: _Script, context: Context) -> list[Edit]:
    """`scaler.step(optimizer)`, and the parameters of the model for `amp.master_params`."""
    statement = script.block[script.step]
    text = f"scaler.step({script.optimizer}){_new_line(statement, context)}scaler.update()"
    edits = [Edit(context.span(statement), text)]
    parameters = f"{script.model}.parameters()"
    return edits + [Edit(context.span(call), parameters) for call in _master_params(script)]


def _master_params(script: _Script) -> list[ast.Call]:
    between = script.block[script.backward + 1 : script.step]
    return [
        node
        for statement in between
        for node in nodes_below(statement)
        if isinstance(node, ast.Call)
        and ast.unparse(node) == f"{script.alias}.master_params({script.optimizer})"
    ]


def _forward_edits(script: _Script, amp: str, context: Context) -> list[Edit]:
    """`with autocast():` around the statements from the first call of the model to the loss."""
    before = script.block[: script.backward]
    calls = [i for i, statement in enumerate(before) if _calls(statement, script.model)]
    losses = [i for i, statement in enumerate(before) if _assigns(statement, script.loss)]
    _require(bool(calls) and bool(losses) and calls[0] <= losses[-1])
    first, last = before[calls[0]], before[losses[-1]]
    end_line = last.end_lineno or last.lineno
    start = context.span(first).start
    new_line = _new_line(first, context)
    edits = [Edit(Span(start, start), f"with {amp}.autocast():{new_line}{_INDENTATION}")]
    inside = _lines_inside_strings(before[calls[0] : losses[-1] + 1])
    for line in range(first.lineno + 1, end_line + 1):
        _require(line not in inside)
        place = context.code.lines.starts[line - 1]
        if context.code.text[place : place + 1] not in ("\n", "\r", ""):
            edits.append(Edit(Span(place, place), _INDENTATION))
    return edits


def _calls(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for node in nodes_below(statement)
    )


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Whether a statement binds a name anywhere, as in both arms of an `if`."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in nodes_below(statement)
    )


def _lines_inside_strings(statements: list[ast.stmt]) -> set[int]:
    """Lines whose beginning belongs to a string, which indentation would change."""
    return {
        line
        for statement in statements
        for node in nodes_below(statement)
        if isinstance(node, (ast.Constant, ast.JoinedStr))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


def _state_names(script: _Script) -> list[ast.Name]:
    """The names of `amp.state_dict()` and `amp.load_state_dict(...)`."""
    return [
        node.value
        for node in nodes_below(script.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in _STATE
        and isinstance(node.value, ast.Name)
        and node.value.id == script.alias
    ]


def _mentions(script: _Script) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == script.alias for node in nodes_below(script.tree)
    )


def _handled(script: _Script) -> int:
    """`initialize` and `scale_loss`, and what else is rewritten."""
    return 2 + len(_master_params(script)) + len(_state_names(script))


def _import_edit(script: _Script, context: Context) -> Edit:
    """Take `from apex import amp` out, where it is a statement of its own."""
    imports = [
        node
        for node in nodes_below(script.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "apex"
    ]
    _require(len(imports) == 1)
    statement = imports[0]
    names = [(alias.name, alias.asname) for alias in statement.names]
    _require(names in ([("amp", None)], [("amp", script.alias)]))
    blocks = [block for block in _blocks_everywhere(script.tree) if statement in block]
    _require(len(blocks) == 1 and len(blocks[0]) > 1)
    return _line_removed(statement, context)


def _blocks_everywhere(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The bodies in which a statement can be taken out: not those of `try` and of classes."""
    yield from _blocks(tree.body)
    for node in nodes_below(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _blocks(node.body)


def _line_removed(statement: ast.stmt, context: Context) -> Edit:
    starts = context.code.lines.starts
    start = starts[statement.lineno - 1]
    last = statement.end_lineno or statement.lineno
    end = starts[last] if last < len(starts) else len(context.code.text)
    _require(context.code.text[start:end].strip() == context.source(statement))
    return Edit(Span(start, end), "")
