"""Advice on speed for scripts that train, each where the code itself shows the cause.

Libraries get none: whether a loop of theirs is hot, and who reads its values, is not seen there.
"""

import ast
import re
from collections.abc import Iterator

from npulens.catalog.model import Applicability, Edit, Fix
from npulens.catalog.settlements import Settlement
from npulens.checks.arguments import is_spread
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Instance, qualified_names, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.values import last_name
from npulens.syntax.walking import names_in
from npulens.text.spans import Span

_ANOMALY = frozenset(
    {
        f"torch.autograd.{name}"
        for name in (
            "set_detect_anomaly",
            "detect_anomaly",
            "anomaly_mode.set_detect_anomaly",
            "anomaly_mode.detect_anomaly",
        )
    }
)
_LOADER = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
_IN_MEMORY = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})
_NOT_TRAINED_ON = re.compile(r"(?<![a-z])val(?!u)|eval|test", re.IGNORECASE)
_COMPILE_MODE = frozenset({"torch.npu.set_compile_mode", "torch_npu.npu.set_compile_mode"})
_CLEANUP = frozenset(
    {"gc.collect", "torch.cuda.empty_cache", "torch.npu.empty_cache", "torch_npu.npu.empty_cache"}
)
_READS = frozenset({"item", "tolist"})
_COPIES = frozenset({"to", "cuda", "npu"})
_ON_HOST = Settlement("on-host")
_WORKERS_POSITION = 5  # dataset, batch_size, shuffle, sampler, batch_sampler, num_workers
_Loop = ast.For | ast.While
_NOT_EVERY_STEP = (
    *(ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler),
    *(_Loop, ast.AsyncFor, Function, ast.ClassDef, ast.Lambda),
)


def call(node: ast.Call, scope: Scope, context: Context) -> None:
    """Anomaly detection left on, loaders that read in this process, compilation for shapes."""
    if not context.facts.signs.trains:
        return
    names = frozenset(qualified_names(node.func, scope))
    if not names.isdisjoint(_ANOMALY):
        _anomaly(node, context)
    elif not names.isdisjoint(_LOADER):
        _loader(node, scope, context)
    elif not names.isdisjoint(_COMPILE_MODE):
        _compile_mode(node, context)


def loop(node: _Loop, scope: Scope, context: Context) -> None:
    """What every step of a training loop waits for."""
    if not context.facts.signs.trains or not _is_step_loop(node):
        return
    for called in _every_step(node.body):
        names = frozenset(qualified_names(called.func, scope))
        if not names.isdisjoint(_CLEANUP):
            _report("cleanup-in-training-loop", called, context)
        elif _reads_value(called):
            _report("sync-in-training-loop", called, context, settled=_on_host(context))
        elif context.facts.signs.pins_memory and _copies_batch(called, node):
            fixes = _added_keyword(called, "non_blocking=True", context)
            _report("blocking-copy", called, context, fixes, settled=_on_host(context))


def _on_host(context: Context) -> Settlement | None:
    """What settles a wait in a script that names no device."""
    return _ON_HOST if context.facts.is_on_host else None


def _anomaly(node: ast.Call, context: Context) -> None:
    """Only where it is on for sure: `set_detect_anomaly(args.debug)` is an option."""
    values = [*node.args, *(k.value for k in node.keywords if k.arg == "mode")]
    switched = values[0] if values else None
    takes_mode = "set_" in context.source(node.func)
    is_on = isinstance(switched, ast.Constant) and switched.value is True
    if is_on or not takes_mode:
        _report("anomaly-detection", node, context)


def _loader(node: ast.Call, scope: Scope, context: Context) -> None:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    positional = node.args
    if is_spread(node):
        return  # `**options` may say anything
    workers = given.get("num_workers")
    if workers is None and len(positional) > _WORKERS_POSITION:
        workers = positional[_WORKERS_POSITION]
    if _NOT_TRAINED_ON.search(context.source(node)) is not None:
        return  # not the loader that the training waits for
    dataset = positional[0] if positional else given.get("dataset")
    if context.facts.signs.evidence.makes_data:
        return  # a toy, whose data costs nothing
    if dataset is not None and _is_in_memory(dataset, scope):
        return  # a worker would only copy it
    if workers is None or (isinstance(workers, ast.Constant) and workers.value == 0):
        _report("loader-without-workers", node, context, shown=node.func)
    elif (
        isinstance(workers, ast.Constant)
        and isinstance(workers.value, int)
        and "persistent_workers" not in given
        and "epochs" in context.facts.signs.decisive_words
    ):
        fix = _added_keyword(node, "persistent_workers=True", context)
        _report("loader-restarts-workers", node, context, fix, shown=node.func)


def _is_in_memory(dataset: ast.expr, scope: Scope) -> bool:
    if isinstance(dataset, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    return any(
        isinstance(value, Instance) and value.name in _IN_MEMORY
        for value in resolve(dataset, scope)
    )


def _compile_mode(node: ast.Call, context: Context) -> None:
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg == "jit_compile" and isinstance(value, ast.Constant) and value.value is True:
            edit = Edit(context.span(value), "False")
            fix = Fix(use("jit_compile=False"), Applicability.UNSAFE, (edit,))
            _report("jit-compile-mode", keyword, context, [fix])


def _is_step_loop(node: _Loop) -> bool:
    """Whether the backward pass is in this loop and in no loop inside it."""
    return any(
        isinstance(called.func, ast.Attribute) and called.func.attr == "backward"
        for called in _every_step(node.body)
    )


def _every_step(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """The calls that each turn of a loop makes, apart from conditions and loops inside it."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, _NOT_EVERY_STEP):
            continue
        if isinstance(node, ast.Call):
            yield node
        certain = node.values[:1] if isinstance(node, ast.BoolOp) else ast.iter_child_nodes(node)
        pending += reversed(list(certain))


def _reads_value(node: ast.Call) -> bool:
    """`loss.item()`; not `os.environ.item()` or `numbers.tolist()` of something unknown."""
    callee = node.func
    if not isinstance(callee, ast.Attribute) or callee.attr not in _READS or node.args:
        return False
    owner = callee.value
    while isinstance(owner, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(owner, ast.Attribute) and owner.attr in ("detach", "mean", "sum", "cpu"):
            return True
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
    return isinstance(owner, ast.Name) and "loss" in owner.id.lower()


def _copies_batch(node: ast.Call, step: _Loop) -> bool:
    """A copy to a device of what the loader yields, which waits."""
    callee = node.func
    if not isinstance(callee, ast.Attribute) or callee.attr not in _COPIES:
        return False
    if not isinstance(step, ast.For) or any(k.arg in ("non_blocking", None) for k in node.keywords):
        return False
    if callee.attr == "to" and (len(node.args) != 1 or not _is_device(node.args[0])):
        return False
    if callee.attr != "to" and len(node.args) > 1:
        return False
    owner = callee.value
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    yielded = set(names_in(step.target))
    return isinstance(owner, ast.Name) and owner.id in yielded


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value != "cpu"
    name = last_name(node).lower()
    return "device" in name and "cpu" not in name


def _added_keyword(node: ast.Call, keyword: str, context: Context) -> list[Fix]:
    """A keyword argument behind the others, where that is plain to write."""
    source = context.source(node)
    arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    end = context.span(node).end
    if not arguments:
        edit = Edit(Span(end - 1, end - 1), keyword)
    elif "#" in source:
        return []
    else:
        last = max(context.span(argument).end for argument in arguments)
        edit = Edit(Span(last, last), f", {keyword}")
    return [Fix(use(keyword), Applicability.UNSAFE, (edit,))]


def _report(
    name: str,
    node: ast.expr | ast.keyword,
    context: Context,
    fixes: list[Fix] | None = None,
    shown: ast.expr | None = None,
    settled: Settlement | None = None,
) -> None:
    rule = context.catalogue.required(name)
    at = node if shown is None else shown
    context.report(rule, context.span(at), context.source(at), fixes or [], settled=settled)
