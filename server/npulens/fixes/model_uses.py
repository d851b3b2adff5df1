"""What a script does with a model that is wrapped in `DistributedDataParallel`.

The wrapper has what training needs; everything else is read from the model in it, as
`model.module`. A method of the model's own would go around the wrapper, and the cards would train
apart, so this is refused unless no gradient is computed there.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Edit
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_NO_GRADIENT = re.compile(r"\b(?:no_grad|inference_mode)\(")
_OF_WRAPPER = frozenset(
    {"eval", "forward", "module", "named_parameters", "no_sync", "parameters", "requires_grad_"}
    | {"train", "training", "zero_grad"}
)
_OF_MODULE = frozenset(
    {"apply", "buffers", "children", "extra_repr", "get_parameter", "get_submodule"}
    | {"load_state_dict", "modules", "named_buffers", "named_children", "named_modules"}
    | {"register_buffer", "register_forward_hook", "state_dict"}
)
"""Methods of every module that do not compute."""


def inner_model_edits(script: Script, body: Sequence[ast.stmt], model: str) -> Iterator[Edit]:
    """Use the model in the wrapper where statements behind the wrapping need more.

    Functions of the script that are given the model are looked at as well.

    Raises:
        UnclearError: Something goes around the wrapper, or a function is given other
            models too.
    """
    functions = {n.name: n for n in script.tree.body if isinstance(n, ast.FunctionDef)}
    pending: list[tuple[Sequence[ast.stmt], str]] = [(body, model)]
    pending += ((f.body, model) for f in functions.values() if _uses_global(f, model))
    known: set[tuple[str, str]] = set()
    edits: set[Edit] = set()
    while pending:
        statements, variable = pending.pop()
        for node in (part for statement in statements for part in nodes_below(statement)):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == variable:
                edits.update(_edits(script, node, statements))
            elif isinstance(node, ast.Call) and _saves(node):
                edits.update(_saved_whole(script, node, variable))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                function = functions.get(node.func.id)
                for parameter in _given(node, function, variable) if function is not None else ():
                    if function is not None and (function.name, parameter) not in known:
                        known.add((function.name, parameter))
                        _require_same(script, function, parameter, variable)
                        pending.append((function.body, parameter))
    yield from sorted(edits)


def _saves(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "save"


def _saved_whole(script: Script, call: ast.Call, variable: str) -> Iterator[Edit]:
    """`torch.save(model, path)` and `torch.save({"model": model}, path)`: the model inside."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    nodes = [part for argument in arguments for part in nodes_below(argument)]
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == variable and id(node) not in owners:
            end = script.span(node).end
            yield Edit(Span(end, end), ".module")


def _edits(script: Script, node: ast.Attribute, body: Sequence[ast.stmt]) -> Iterator[Edit]:
    if node.attr in _OF_WRAPPER:
        return
    called = any(
        isinstance(part, ast.Call) and part.func is node
        for statement in body
        for part in nodes_below(statement)
    )
    if called and node.attr not in _OF_MODULE and not _is_without_gradient(script, node, body):
        text = script.source(node)
        raise UnclearError(node.lineno, "distributed.around-the-wrapper", code=text)
    end = script.span(node.value).end
    yield Edit(Span(end, end), ".module")


def _is_without_gradient(script: Script, node: ast.AST, body: Sequence[ast.stmt]) -> bool:
    """Whether a node is in `with torch.no_grad():`, where nothing is trained."""
    return any(
        isinstance(block, ast.With)
        and any(_NO_GRADIENT.search(script.source(item.context_expr)) for item in block.items)
        and any(part is node for part in nodes_below(block))
        for statement in body
        for block in nodes_below(statement)
    )


def _given(call: ast.Call, function: ast.FunctionDef, variable: str) -> Iterator[str]:
    """The parameters that a call gives a variable to."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    for parameter, argument in zip(parameters, call.args, strict=False):
        if getattr(argument, "id", "") == variable:
            yield parameter.arg
    for keyword in call.keywords:
        if keyword.arg is not None and getattr(keyword.value, "id", "") == variable:
            yield keyword.arg


def _require_same(script: Script, function: ast.FunctionDef, parameter: str, variable: str) -> None:
    """See that a function which needs more of a model is always given this one."""
    needs_module = any(
        isinstance(node, ast.Attribute)
        and getattr(node.value, "id", "") == parameter
        and node.attr not in _OF_WRAPPER
        for node in nodes_below(function)
    )
    if not needs_module:
        return
    for node in nodes_below(script.tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != function.name:
            continue
        if parameter not in _given(node, function, variable):
            raise UnclearError(node.lineno, "distributed.another-model", function=function.name)


def _uses_global(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function uses a variable of the module."""
    arguments = function.args
    own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names = [node for node in nodes_below(function) if isinstance(node, ast.Name)]
    own.update(node.id for node in names if isinstance(node.ctx, ast.Store))
    return name not in own and any(node.id == name for node in names)
