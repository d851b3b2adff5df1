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
_PLAIN_OPTIONS = frozenset({"opt_level", "verbosity", "num_losses"})
_STATE = frozenset({"state_dict", "load_state_dict"})
_NAME_TAKEN = re.compile(r"\bscaler\b")
_INDENTATION = "    "


class _OtherShapeError(Exception):
    """The script does not have the shape that can be rewritten."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens with one optimizer in a training step.

    Attributes:
        optimizer: Its name.
        losses: The names of the losses, by the index of `with amp.scale_loss(...)` in the block.
        index: Where `optimizer.step()` is.
    """

    optimizer: str
    losses: dict[int, str]
    index: int


@dataclass(frozen=True, slots=True)
class _Script:
    """The uses of `apex.amp` in a script.

    Attributes:
        alias: The name of `apex.amp`.
        models: The names of the models.
        enabled: The condition for mixed precision; empty if it is always on.
        block: The statements of a training step.
        steps: What is done with each optimizer there.
    """

    alias: str
    models: tuple[str, ...]
    enabled: str
    block: list[ast.stmt]
    steps: tuple[_Step, ...]
    tree: ast.Module

    @property
    def losses(self) -> dict[int, str]:
        """The losses of all optimizers, in the order of the block."""
        return dict(sorted(item for step in self.steps for item in step.losses.items()))

    @property
    def last(self) -> int:
        """Where the last optimizer makes its step."""
        return max(step.index for step in self.steps)


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
    enabled = f"enabled={script.enabled}" if script.enabled else ""
    edits = [Edit(context.span(node), f"scaler = {amp}.GradScaler({enabled})")]
    for step in script.steps:
        edits += _backward_edits(script, step, context)
        edits += _step_edits(script, step, context)
    edits += [Edit(context.span(call), text) for call, text in _master_params(script)]
    start = 0
    for backward, loss in script.losses.items():
        before = script.block[start:backward]
        edits += _forward_edits(before, script.models, loss, f"{amp}.autocast({enabled})", context)
        start = backward + 1
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
    models, optimizers, enabled = _initialize_arguments(node, call, context)
    body = _body_around(tree, node)
    for block in _blocks(body):
        steps = tuple(_step(block, alias.id, each) for each in optimizers)
        if any(step.losses for step in steps):
            _require(all(step.losses for step in steps))
            return _Script(alias.id, models, enabled, block, steps, tree)
    raise _OtherShapeError


def _initialize_arguments(
    node: ast.Assign, call: ast.Call, context: Context
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The names of models and optimizers, which must be those that are assigned.

    With them comes the condition under which precision is mixed: the level may be an option.
    """
    target = node.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else []
    _require(len(node.targets) == 1 and len(call.args) == 2)
    models, optimizers = map(_names, call.args)
    _require([models, optimizers] == [_names(each) for each in targets])
    enabled = ""
    for keyword in call.keywords:
        _require(keyword.arg in _PLAIN_OPTIONS)
        if keyword.arg == "opt_level" and isinstance(keyword.value, ast.Constant):
            _require(keyword.value.value == "O1")
        elif keyword.arg == "opt_level":
            _require(isinstance(keyword.value, (ast.Name, ast.Attribute)))
            enabled = f'{context.source(keyword.value)} != "O0"'
    return models, optimizers, enabled


def _names(node: ast.expr) -> tuple[str, ...]:
    """The names of one thing, or of several in a list."""
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    names = tuple(part.id for part in parts if isinstance(part, ast.Name))
    _require(bool(names) and len(names) == len(parts))
    return names


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


def _step(block: list[ast.stmt], alias: str, optimizer: str) -> _Step:
    """What a block does with an optimizer; without losses if it trains nothing of it."""
    scaled = {at: _scaled_loss(statement, alias, optimizer) for at, statement in enumerate(block)}
    losses = {at: loss for at, loss in scaled.items() if loss is not None}
    if not losses:
        return _Step(optimizer, {}, 0)
    steps = [i for i, each in enumerate(block) if ast.unparse(each) == f"{optimizer}.step()"]
    _require(len(steps) == 1 and steps[0] > max(losses))
    return _Step(optimizer, losses, steps[0])


def _scaled_loss(statement: ast.stmt, alias: str, optimizer: str) -> str | None:
    """`loss` of `with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`."""
    if not isinstance(statement, ast.With):
        return None
    scaled = rf"{alias}\.scale_loss\((\w+), {optimizer}(?:, loss_id=\d+)?\)"
    form = rf"with {scaled} as (\w+):\n +\2\.backward\(\)"
    found = re.fullmatch(form, ast.unparse(statement))
    return None if found is None else found[1]


def _new_line(statement: ast.stmt, context: Context) -> str:
    """A line end with the indentation of a statement, which must start its line."""
    indentation = context.before_on_line(statement)
    _require(not indentation.strip())
    return "\n" + indentation


def _backward_edits(script: _Script, step: _Step, context: Context) -> Iterator[Edit]:
    for backward, loss in step.losses.items():
        statement = script.block[backward]
        span = context.span(statement)
        _require("#" not in context.code.text[slice(*span)])
        text = f"scaler.scale({loss}).backward()"
        if backward == max(step.losses) and step.index > backward + 1:
            # The code between reads gradients, which apex had unscaled by then.
            text += f"{_new_line(statement, context)}scaler.unscale_({step.optimizer})"
        yield Edit(span, text)


def _step_edits(script: _Script, step: _Step, context: Context) -> Iterator[Edit]:
    """`scaler.step(optimizer)`; the scale stays the same until all have made their step."""
    statement = script.block[step.index]
    text = f"scaler.step({step.optimizer})"
    if step.index == script.last:
        text += f"{_new_line(statement, context)}scaler.update()"
    yield Edit(context.span(statement), text)


def _master_params(script: _Script) -> list[tuple[ast.Call, str]]:
    """`amp.master_params(optimizer)` of one model, and what stands in for it."""
    if len(script.steps) > 1 or len(script.models) > 1:
        return []
    step = script.steps[0]
    between = script.block[max(step.losses) + 1 : step.index]
    return [
        (node, f"{script.models[0]}.parameters()")
        for statement in between
        for node in nodes_below(statement)
        if isinstance(node, ast.Call)
        and ast.unparse(node) == f"{script.alias}.master_params({step.optimizer})"
    ]


def _forward_edits(
    before: list[ast.stmt], models: tuple[str, ...], loss: str, autocast: str, context: Context
) -> Iterator[Edit]:
    """`with autocast():` around the statements from the first call of a model to the loss."""
    calls = [i for i, each in enumerate(before) if any(_calls(each, model) for model in models)]
    losses = [i for i, statement in enumerate(before) if _assigns(statement, loss)]
    _require(bool(calls) and bool(losses) and calls[0] <= losses[-1])
    first, last = before[calls[0]], before[losses[-1]]
    end_line = last.end_lineno or last.lineno
    start = context.span(first).start
    new_line = _new_line(first, context)
    yield Edit(Span(start, start), f"with {autocast}:{new_line}{_INDENTATION}")
    inside = _lines_inside_strings(before[calls[0] : losses[-1] + 1])
    for line in range(first.lineno + 1, end_line + 1):
        _require(line not in inside)
        place = context.code.lines.starts[line - 1]
        if context.code.text[place : place + 1] not in ("\n", "\r", ""):
            yield Edit(Span(place, place), _INDENTATION)


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
    return 1 + len(script.losses) + len(_master_params(script)) + len(_state_names(script))


def _import_edit(script: _Script, context: Context) -> Edit:
    """Take `from apex import amp` out, where it is a statement of its own."""
    imports = [
        node
        for node in nodes_below(script.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "apex"
    ]
    _require(len(imports) == 1)
    statement: ast.stmt = imports[0]
    names = [(alias.name, alias.asname) for alias in imports[0].names]
    _require(names in ([("amp", None)], [("amp", script.alias)]))
    statement = _refusing_without(script.tree, statement) or statement
    blocks = [block for block in _blocks_everywhere(script.tree) if statement in block]
    _require(len(blocks) == 1 and len(blocks[0]) > 1)
    return _line_removed(statement, context)


def _refusing_without(tree: ast.Module, statement: ast.stmt) -> ast.Try | None:
    """`try: from apex import amp`, `except ImportError: raise ...`, which does nothing else."""
    for node in tree.body:
        if isinstance(node, ast.Try) and node.body == [statement]:
            handled = [handler.body for handler in node.handlers]
            is_refusal = all(len(b) == 1 and isinstance(b[0], ast.Raise) for b in handled)
            return node if is_refusal and not node.orelse and not node.finalbody else None
    return None


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
