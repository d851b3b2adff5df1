"""The one pass: every node once, with its scope and what settles it, to the checks that want it."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import (
    Comprehension,
    FunctionScope,
    Scope,
    comprehension_scope,
    inner_scope,
)
from npulens.syntax.values import dotted_name, last_name

Check = Callable[[Any, Scope, Context], None]
"""What looks at a node of the kinds that it is registered for."""
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


def visit(
    parts: Iterable[tuple[ast.AST, Settlement | None]],
    scope: Scope,
    checks: Checks,
    context: Context,
) -> None:
    """Hand each node that may matter on the NPU to its checks.

    What is settled is visited like everything else: findings there come with the reason. Walks with
    a stack of its own, so that deep nesting costs memory and not a recursion error.
    """
    brings = context.module.stars() or context.facts.aliases or context.relevance.imports_inside
    wanted = _VISITED if brings else _VISITED_BUT_NAMES
    pending: list[Child] = [(node, scope, settled) for node, settled in parts]
    while pending:
        node, scope, settled = pending.pop()
        kind = type(node)
        is_inner = kind in _STATEMENTS and scope.__class__ is FunctionScope
        if is_inner and not context.relevance.is_relevant(node):  # type: ignore[arg-type]
            continue
        if settled is None and kind in _LISTS:
            settled = context.regions.collection(node)
        context.settled = settled
        for check in checks.get(kind, ()):
            check(node, scope, context)
        expand = _EXPANSIONS.get(kind)
        if expand is not None:
            pending += expand(node, scope, context)
            continue
        for name in _FIELDS[kind]:
            value = getattr(node, name)
            if value.__class__ is list:
                pending += [(child, scope, settled) for child in value if child.__class__ in wanted]
            elif value.__class__ in wanted:
                pending.append((value, scope, settled))


_LISTS = frozenset({ast.BinOp, ast.Compare, ast.List, ast.Tuple, ast.Set})
"""Where several devices are beside each other: settled if the NPU is one of them."""


Child = tuple[ast.AST, Scope, Settlement | None]
Children = Iterable[Child]
_TEXT = Settlement("text")


def _with_scope(
    nodes: Iterable[ast.AST | None], scope: Scope, settled: Settlement | None
) -> Iterator[Child]:
    return ((node, scope, settled) for node in nodes if node is not None)


def _block(body: list[ast.stmt], scope: Scope, context: Context) -> Iterator[Child]:
    """The statements of a block, each with what settles it."""
    if context.settled is not None:
        return _with_scope(body, scope, context.settled)
    return _placed(context.regions.statements(body, scope), scope)


def _placed(parts: Iterable[tuple[ast.AST, Settlement | None]], scope: Scope) -> Iterator[Child]:
    return ((node, scope, settled) for node, settled in parts)


def _function(node: Function, scope: Scope, context: Context) -> Children:
    settled = context.settled
    if settled is None and context.facts.signs.checks_for_npu and _CUDA_PROBE.search(node.name):
        # This file has the same question for the NPU.
        settled = context.settled = Settlement("npu-way-beside")
    inner = inner_scope(node, scope)
    if settled is None:
        context.regions.enter_function(node, inner)
    if not any(isinstance(each, FunctionScope) for each in scope.around()):
        context.relevance.enter_function(node)
    yield from _with_scope((*node.decorator_list, node.args, node.returns), scope, settled)
    context.settled = settled
    yield from _block(node.body, inner, context)


def _lambda(node: ast.Lambda, scope: Scope, context: Context) -> Children:
    yield node.args, scope, context.settled
    yield node.body, inner_scope(node, scope), context.settled


def _class(node: ast.ClassDef, scope: Scope, context: Context) -> Children:
    inner = inner_scope(node, scope)
    outside = context.settled
    yield from _with_scope((*node.decorator_list, *node.bases, *node.keywords), scope, outside)
    settled = {child: reason for child, _, reason in _block(node.body, inner, context)}
    methods = {s.name: s for s in node.body if isinstance(s, Function)}
    for statement in context.relevance.members(node, node.body):
        beside = settled[statement]
        if beside is None and statement is methods.get("cuda") and "npu" in methods:
            beside = context.regions.settlement("npu-way-beside", methods["npu"])
        yield statement, inner, beside


def _comprehension(node: Comprehension, scope: Scope, context: Context) -> Children:
    inner = comprehension_scope(node, scope)
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    settled = context.settled
    yield from _with_scope(results, inner, settled)
    for index, part in enumerate(node.generators):
        yield part.iter, scope if index == 0 else inner, settled
        yield from _with_scope(part.ifs, inner, settled)


def _reached_or_not(
    node: ast.If | ast.Try | ast.BoolOp | ast.IfExp, scope: Scope, context: Context
) -> Children:
    """What has parts of which an NPU may reach some alone."""
    if context.settled is not None:
        return _all_children(node, scope, context)
    return _placed(context.regions.parts(node, scope), scope)


def _match(node: ast.Match, scope: Scope, context: Context) -> Children:
    yield node.subject, scope, context.settled
    for case, settled in context.regions.cases(node):
        yield case, scope, context.settled or settled


def _with_body(node: ast.AST, scope: Scope, context: Context) -> Children:
    """What has a body: `for`, `while`, `with`, a handler, a case."""
    settled = context.settled
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        if name in ("body", "orelse"):
            context.settled = settled
            yield from _block(value, scope, context)
        else:
            yield from _with_scope(value if isinstance(value, list) else [value], scope, settled)


def _dict(node: ast.Dict, scope: Scope, context: Context) -> Children:
    context.settled = context.settled or context.regions.device_table(node)
    return _all_children(node, scope, context)


def _attribute(node: ast.Attribute, scope: Scope, context: Context) -> Children:
    """Plain attributes of a name were looked at as a whole."""
    if dotted_name(node) is not None:
        return ()
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return ((inner, scope, context.settled),)


def _call(node: ast.Call, scope: Scope, context: Context) -> Children:
    settled = context.settled
    callee = node.func
    if isinstance(callee, ast.Name) and callee.id in ("getattr", "hasattr") and len(node.args) > 1:
        # `getattr(torch, device_type, torch.cuda)` depends on the device.
        yield from _with_scope(node.args[:2], scope, settled)
        default = Settlement("npu-way-beside", context.span(node.args[1]))
        yield from _with_scope(node.args[2:], scope, settled or default)
        return
    name = last_name(callee)
    table = callee.value if isinstance(callee, ast.Attribute) and name == "get" else None
    yield callee, scope, settled
    if isinstance(table, ast.Dict) and context.code.mentions_npu(table):
        # `{"npu": "hccl"}.get(kind, "nccl")`: the rest is for other devices.
        others = Settlement("npu-way-beside", context.span(table))
        yield from _with_scope(node.args[:1], scope, settled)
        yield from _with_scope((*node.args[1:], *node.keywords), scope, settled or others)
        return
    arguments: list[ast.AST] = [*node.args, *node.keywords]
    if name in _LOG_METHODS:
        yield from _in_texts(arguments, scope, settled)
        return
    for argument in arguments:
        is_text = isinstance(argument, ast.keyword) and argument.arg in ("help", "msg", "reason")
        yield argument, scope, settled or (_TEXT if is_text else None)


def _in_texts(
    nodes: Iterable[ast.AST], scope: Scope, settled: Settlement | None
) -> Iterator[Child]:
    """Expressions passed to people: plain strings are text, the code in f-strings is not."""
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield part, scope, settled or _shown(part.value)
        else:
            yield node, scope, settled or _shown(node)


def _shown(node: ast.AST) -> Settlement | None:
    """What settles what people are shown: a text, or the release of CUDA, which is then `None`."""
    owner = node.value if isinstance(node, ast.Attribute) and node.attr == "cuda" else None
    is_release = owner is not None and last_name(owner) == "version"
    return _TEXT if is_release or isinstance(node, ast.Constant) else None


def _statement_expression(node: ast.Expr, scope: Scope, context: Context) -> Children:
    return _in_texts([node.value], scope, context.settled)


def _raise(node: ast.Raise, scope: Scope, context: Context) -> Children:
    """The text of an error is for people."""
    settled = context.settled
    if isinstance(node.exc, ast.Call):
        yield node.exc.func, scope, settled
        yield from _in_texts([*node.exc.args, *node.exc.keywords], scope, settled)
    else:
        yield from _with_scope((node.exc,), scope, settled)
    yield from _with_scope((node.cause,), scope, settled)


def _assert(node: ast.Assert, scope: Scope, context: Context) -> Children:
    yield node.test, scope, context.settled
    if node.msg is not None:
        yield from _in_texts([node.msg], scope, context.settled)


def _all_children(node: ast.AST, scope: Scope, context: Context) -> Children:
    return _with_scope(ast.iter_child_nodes(node), scope, context.settled)


_EXPANSIONS: dict[type[ast.AST], Callable[[Any, Scope, Context], Children]] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.If: _reached_or_not,
    ast.Match: _match,
    ast.match_case: _with_body,
    ast.Try: _reached_or_not,
    ast.ExceptHandler: _with_body,
    ast.For: _with_body,
    ast.AsyncFor: _with_body,
    ast.While: _with_body,
    ast.With: _with_body,
    ast.AsyncWith: _with_body,
    ast.BoolOp: _reached_or_not,
    ast.IfExp: _reached_or_not,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Expr: _statement_expression,
    ast.Raise: _raise,
    ast.Assert: _assert,
}
