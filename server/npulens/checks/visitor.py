"""The one pass: every node once, with its scope, to the checks that want its type."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from npulens.checks.context import Context
from npulens.checks.intent.cuda_only import (
    has_other_way,
    is_about_cuda,
    lives_elsewhere,
    moves_by_name,
    tests_nccl,
)
from npulens.checks.intent.device_functions import holds_on_cuda
from npulens.syntax.bindings import Function, target_names
from npulens.syntax.scopes import ClassScope, ComprehensionScope, FunctionScope, Scope
from npulens.syntax.values import dotted_name

Check = Callable[[ast.AST, Scope, Context], None]
Checks = Mapping[type[ast.AST], Sequence[Check]]

_SKIPPED_FIELDS = frozenset(
    {
        "ctx",
        "op",
        "ops",
        "type_comment",
        "id",
        "attr",
        "name",
        "names",
        "arg",
        "kind",
        "level",
        "module",
    }
    | {"type_params", "conversion", "simple", "is_async", "rest", "kwd_attrs"}
)
_CUDA_PROBE = re.compile(r"(?:cuda|gpu|rocm|hip)\w*available|is_cuda|require\w*(?:gpu|cuda)")
_LIBRARY_PROBE = re.compile(r"_?is_(?!\w*(?:cuda|gpu|device|bf16|fp16|fp8|amp))\w+_available\Z")
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_LOG_METHODS = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print"}
    | {"warning_once", "warn_once", "info_once", "rank_zero_info", "rank_zero_warn"}
)


def _child_fields() -> dict[type[ast.AST], tuple[str, ...]]:
    types = [t for t in vars(ast).values() if isinstance(t, type) and issubclass(t, ast.AST)]
    return {t: tuple(f for f in t._fields if f not in _SKIPPED_FIELDS) for t in types}


_FIELDS = _child_fields()
_VISITED = frozenset(_FIELDS)
_VISITED_BUT_NAMES = _VISITED - {ast.Name}
_STATEMENTS = frozenset(kind for kind in _FIELDS if issubclass(kind, ast.stmt))


def visit(body: list[ast.stmt], scope: Scope, checks: Checks, context: Context) -> None:
    """Hand each node that may matter on the NPU to its checks.

    Walks with a stack of its own, so that deep nesting costs memory and not a recursion error.
    """
    wanted = _VISITED if context.module.stars() else _VISITED_BUT_NAMES
    pending: list[tuple[ast.AST, Scope]] = [(node, scope) for node in body]
    while pending:
        node, scope = pending.pop()
        kind = type(node)
        is_inner = kind in _STATEMENTS and scope.__class__ is FunctionScope
        if is_inner and not context.interest.holds(node):  # type: ignore[arg-type]
            continue
        if kind in _LISTS and context.guards.names_npu(node):
            continue
        for check in checks.get(kind, ()):
            check(node, scope, context)
        expand = _EXPANSIONS.get(kind)
        if expand is not None:
            pending += expand(node, scope, context)
            continue
        for name in _FIELDS[kind]:
            value = getattr(node, name)
            if value.__class__ is list:
                pending += [(child, scope) for child in value if child.__class__ in wanted]
            elif value.__class__ in wanted:
                pending.append((value, scope))


_LISTS = frozenset({ast.BinOp, ast.Compare, ast.List, ast.Tuple, ast.Set})
"""Where several devices stand beside each other: left alone if the NPU is one of them."""


Children = Iterable[tuple[ast.AST, Scope]]


def _with_scope(nodes: Iterable[ast.AST | None], scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    return ((node, scope) for node in nodes if node is not None)


def _function(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, Function)
    if context.facts.asks_for_npu and _CUDA_PROBE.search(node.name):
        return  # this file has the same question for the NPU
    if _LIBRARY_PROBE.match(node.name):
        return  # whether some library works: one for CUDA rightly does not on the NPU
    if is_about_cuda(node.name) or lives_elsewhere(node.name) or tests_nccl(node.name):
        return
    if has_other_way(node.name, context.module.module.names):
        return
    context.guards.enter_function(node)
    owner = scope if isinstance(scope, ClassScope) else None
    inner = FunctionScope(node, scope.function_parent() or scope, owner)
    if not _is_in_function(scope):
        context.interest.enter_function(node)
    yield from _with_scope((*node.decorator_list, node.args, node.returns), scope)
    yield from _with_scope(context.guards.statements(node.body), inner)


def _is_in_function(scope: Scope) -> bool:
    current: Scope | None = scope
    while current is not None and not isinstance(current, FunctionScope):
        current = current.parent
    return current is not None


def _lambda(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Lambda)
    yield node.args, scope
    yield node.body, FunctionScope(node, scope.function_parent() or scope)


def _class(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.ClassDef)
    if lives_elsewhere(node.name) or tests_nccl(node.name):
        return
    inner = ClassScope(node, scope.function_parent() or scope)
    yield from _with_scope((*node.decorator_list, *node.bases, *node.keywords), scope)
    for statement in context.interest.members(node, context.guards.statements(node.body)):
        if not (isinstance(statement, Function) and moves_by_name(statement.name, node.body)):
            yield statement, inner


def _comprehension(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, _Comprehension)
    targets = [name for part in node.generators for name in target_names(part.target)]
    inner = ComprehensionScope(targets, scope)
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    yield from _with_scope(results, inner)
    for index, part in enumerate(node.generators):
        yield part.iter, scope if index == 0 else inner
        yield from _with_scope(part.ifs, inner)


def _if(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.If)
    on_cuda = holds_on_cuda(node.test, scope, context)
    if on_cuda is not None:
        return _with_scope(context.guards.statements(node.orelse if on_cuda else node.body), scope)
    return _with_scope(context.guards.arms(node), scope)


def _match(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Match)
    return _with_scope((node.subject, *context.guards.cases(node)), scope)


def _try(node: ast.AST, scope: Scope, context: Context) -> Children:
    return _with_scope(context.guards.handlers(node), scope)  # type: ignore[arg-type]


def _block(node: ast.AST, scope: Scope, context: Context) -> Children:
    """A statement with a body: `for`, `while`, `with`."""
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        if name in ("body", "orelse"):
            yield from _with_scope(context.guards.statements(value), scope)
        else:
            yield from _with_scope(value if isinstance(value, list) else [value], scope)


def _boolean(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.BoolOp)
    if holds_on_cuda(node, scope, context) is not None:
        return ()
    return _with_scope(context.guards.operands(node), scope)


def _conditional(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.IfExp)
    on_cuda = holds_on_cuda(node.test, scope, context)
    if on_cuda is not None:
        return ((node.orelse if on_cuda else node.body, scope),)
    return _with_scope(context.guards.choices(node), scope)


def _dict(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Dict)
    return () if context.guards.is_device_table(node) else _all_children(node, scope)


def _attribute(node: ast.AST, scope: Scope, context: Context) -> Children:
    """Plain attributes of a name were looked at as a whole."""
    assert isinstance(node, ast.Attribute)
    if dotted_name(node) is not None:
        return ()
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return ((inner, scope),)


def _call(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Call)
    if (
        isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
    ):
        # `getattr(torch, device_type, torch.cuda)` asks for the device.
        return _with_scope((node.args[0], *node.args[1:2]), scope)
    callee = node.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    table = callee.value if isinstance(callee, ast.Attribute) and name == "get" else None
    if isinstance(table, ast.Dict) and context.guards.mentions_npu(table):
        # `{"npu": "hccl"}.get(kind, "nccl")`: the rest is for other devices.
        return _with_scope((callee, *node.args[:1]), scope)
    arguments: list[ast.AST] = [*node.args, *node.keywords]
    if name in _LOG_METHODS:
        arguments = _code_in_texts(arguments)
    arguments = [
        a
        for a in arguments
        if not (isinstance(a, ast.keyword) and a.arg in ("help", "msg", "reason"))
    ]
    return _with_scope((callee, *arguments), scope)


def _code_in_texts(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """Expressions handed to people: plain strings are left out, the code in f-strings is not."""
    code: list[ast.AST] = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            code += [part for part in node.values if isinstance(part, ast.FormattedValue)]
        elif not isinstance(node, ast.Constant):
            code.append(node)
    return code


def _statement_expression(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Expr)
    return _with_scope(_code_in_texts([node.value]), scope)


def _raise(node: ast.AST, scope: Scope, context: Context) -> Children:
    """The text of an error is for people."""
    assert isinstance(node, ast.Raise)
    error: list[ast.AST] = [] if node.exc is None else [node.exc]
    if isinstance(node.exc, ast.Call):
        error = [node.exc.func, *_code_in_texts([*node.exc.args, *node.exc.keywords])]
    return _with_scope((*error, node.cause), scope)


def _assert(node: ast.AST, scope: Scope, context: Context) -> Children:
    assert isinstance(node, ast.Assert)
    context.guards.note_refusal(node.test)
    text = [] if node.msg is None else _code_in_texts([node.msg])
    return _with_scope((node.test, *text), scope)


def _all_children(node: ast.AST, scope: Scope) -> Children:
    return _with_scope(ast.iter_child_nodes(node), scope)


_EXPANSIONS: dict[type[ast.AST], Callable[[ast.AST, Scope, Context], Children]] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.If: _if,
    ast.Match: _match,
    ast.Try: _try,
    ast.For: _block,
    ast.AsyncFor: _block,
    ast.While: _block,
    ast.With: _block,
    ast.AsyncWith: _block,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Expr: _statement_expression,
    ast.Raise: _raise,
    ast.Assert: _assert,
}
