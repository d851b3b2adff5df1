"""Parallel training: wrappers named beside each other, one card for each process, collectives."""

import ast
from collections.abc import Iterable, Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.catalog.tables import Meaning
from npulens.checks.arguments import keyword_of
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS, report_likely
from npulens.checks.shared_rules import DATA_PARALLEL_RULE
from npulens.checks.titles import use
from npulens.fixes.distributed import DATA_PARALLEL
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Qualified, qualified_names, resolve_name
from npulens.syntax.scopes import FunctionScope, Scope, function_of
from npulens.syntax.values import Name, last_name
from npulens.syntax.walking import choices, nodes_below

_DISTRIBUTED = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
_BACKEND = frozenset(
    {"torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL"}
)
_REDUCTIONS = frozenset(
    f"torch.distributed.{module}{name}"
    for module in ("", "distributed_c10d.")
    for name in ("all_reduce", "reduce_scatter", "reduce_scatter_tensor")
)
"""Collectives for which ProcessGroupHCCL checks that HCCL can reduce the type."""
_DOUBLE = frozenset({"torch.float64", "torch.double"})


def wrappers_together(node: ast.AST, scope: Scope, context: Context) -> None:
    """`(DataParallel, DistributedDataParallel)`: right as it is, since both are checked."""
    together = list(alternatives(node))
    named = [part for part in together if is_attribute_of_wrapper(part)]
    if named and any(is_distributed_wrapper(part, scope) for part in together):
        context.settle_all(named, "no-effect")


def is_attribute_of_wrapper(node: ast.expr) -> bool:
    """Whether an expression may be `nn.DataParallel`; imported names are judged by their import."""
    return isinstance(node, ast.Attribute) and node.attr == "DataParallel"


def is_distributed_wrapper(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is `DistributedDataParallel`, of PyTorch or of who wraps it again."""
    if last_name(node).endswith("DistributedDataParallel"):
        return True
    return bool(_DISTRIBUTED.intersection(qualified_names(node, scope)))


def alternatives(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions named beside each other: in a tuple, a union, `isinstance(...) or ...`."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        yield from node.elts
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from (node.left, node.right)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            tested = tested_class(value)
            if tested is not None:
                yield tested
                yield from alternatives(tested)


def tested_class(node: ast.AST) -> ast.expr | None:
    """What `isinstance(x, ...)`, `type(x) is ...` or `x.__class__ == ...` compares with."""
    if isinstance(node, ast.Call):
        is_test = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
        return node.args[1] if is_test and len(node.args) == 2 else None
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        left = node.left
        called = isinstance(left, ast.Call) and isinstance(left.func, ast.Name)
        if called and left.func.id == "type":  # type: ignore[attr-defined]
            return node.comparators[0]
        if isinstance(left, ast.Attribute) and left.attr == "__class__":
            return node.comparators[0]
    return None


def refused_class(node: ast.AST) -> ast.expr | None:
    """What `assert not isinstance(x, ...)` or `if isinstance(x, ...): raise ...` keeps out."""
    test: ast.expr | None = None
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp):
        test = node.test.operand if isinstance(node.test.op, ast.Not) else None
    elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
        test = node.test
    return tested_class(test) if isinstance(test, ast.Call) else None


def wrapper_refused(node: ast.AST, scope: Scope, context: Context) -> None:
    """`assert not isinstance(model, nn.DataParallel)`: right as it is, none will come."""
    refused = refused_class(node)
    if refused is not None:
        parts = (refused, *alternatives(refused))
        context.settle_all([p for p in parts if is_attribute_of_wrapper(p)], "no-effect")


def wrapper_test(node: ast.AST, scope: Scope, context: Context) -> None:
    """`isinstance(model, nn.DataParallel)`: no harm, but false after the migration."""
    tested = tested_class(node)
    if tested is None:
        return
    wrappers_together(tested, scope, context)
    rule = context.catalogue.required(DATA_PARALLEL_RULE)
    for part in (tested, *alternatives(tested)):
        if not is_attribute_of_wrapper(part) or context.span(part) in context.reported.spans:
            continue
        names = DATA_PARALLEL.intersection(qualified_names(part, scope))
        if names:
            entry = context.catalogue.symbols[min(names)]
            context.report(
                rule,
                context.span(part),
                entry.symbol,
                [],
                replacement=entry.becomes or "",
                severity=Severity.HINT,
            )


def compared_backend(node: ast.Compare, scope: Scope, context: Context) -> None:
    """`dist.get_backend() == dist.Backend.NCCL`, which `transfer_to_npu` does not change."""
    if not context.facts.shim.is_active or context.code.mentions_npu(node):
        return
    for side in (node.left, *node.comparators):
        for part in (side, *alternatives(side)):
            names = _BACKEND.intersection(qualified_names(part, scope))
            if isinstance(part, ast.Attribute) and part.attr == "NCCL" and names:
                entry = context.catalogue.symbols[min(names)]
                span = context.span(part)
                text = context.code.text[span.start : span.end - len("NCCL")] + "HCCL"
                fix = Fix(use(text), Applicability.SAFE, (Edit(span, text),))
                context.report(entry.rule, span, entry.symbol, [fix], replacement=text)


def chosen_barrier(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`ids = get_backend() == "nccl"`, if it only decides which cards a barrier gets.

    A barrier of another backend takes no `device_ids`, and needs none.
    """
    if not context.lookups.contains("barrier(") or not isinstance(node.targets[0], ast.Name):
        return
    sides = [
        side
        for part in nodes_below(node.value)
        if isinstance(part, ast.Compare)
        for side in (part.left, *part.comparators)
        if _is_nccl(side)
    ]
    function = function_of(scope)
    if not sides or function is None:
        return
    choices = [node for node in nodes_below(function) if isinstance(node, ast.IfExp)]
    decided = {c.test for c in choices if _is_barrier(c.body) and _is_barrier(c.orelse)}
    uses = [
        part
        for part in nodes_below(function)
        if isinstance(part, ast.Name)
        and part.id == node.targets[0].id
        and isinstance(part.ctx, ast.Load)
    ]
    if uses and decided.issuperset(uses):
        context.settle_all(sides, "no-effect")


def conditional_barrier(node: ast.If, scope: Scope, context: Context) -> None:
    """`if get_backend() == "nccl": barrier(device_ids=...)` with a plain `barrier()` otherwise."""
    if not context.lookups.contains("barrier(") or not isinstance(node.test, ast.Compare):
        return
    others = (part for other in node.orelse for part in nodes_below(other))
    if len(node.body) == 1 and _calls_barrier(node.body[0]) and any(map(_calls_barrier, others)):
        context.settle_all((node.test.left, *node.test.comparators), "no-effect")


def _calls_barrier(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _is_barrier(node.value)


def _is_barrier(node: ast.expr) -> bool:
    """`dist.barrier()`."""
    callee = node.func if isinstance(node, ast.Call) else None
    return isinstance(callee, ast.Attribute) and callee.attr == "barrier"


def chosen_number(node: ast.IfExp, scope: Scope, context: Context) -> None:
    """`600 if backend == "nccl" else 1800`: NCCL's own number, and the usual one for HCCL."""
    if not isinstance(node.test, ast.Compare) or not all(
        isinstance(part, ast.Constant) and isinstance(part.value, (int, float))
        for part in (node.body, node.orelse)
    ):
        return
    for side in (node.test.left, *node.test.comparators):
        if _is_nccl(side):
            context.settle_all((side,), "no-effect")


_MMCV_SETTINGS = frozenset({"dist_params", "dist_cfg"})
"""Settings of mmcv from 1.7.0 on and of mmengine, which take HCCL wherever there is an NPU.

Source: open-mmlab/mmcv 1.x: mmcv/runner/dist_utils.py; open-mmlab/mmengine: mmengine/dist/utils.py.
"""


def setting_of_mmcv(node: ast.AST, scope: Scope, context: Context) -> None:
    """`dist_params = dict(backend="nccl")` in settings, also where the name goes to a function."""
    if scope is not context.module:
        return
    values: list[ast.expr] = []
    if isinstance(node, ast.Call):
        values = [k.value for k in node.keywords if k.arg in _MMCV_SETTINGS]
    elif isinstance(node, ast.Assign):
        named = (getattr(target, "id", "") in _MMCV_SETTINGS for target in node.targets)
        values = [node.value] if any(named) else []
    for value in values:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            parts = [k.value for k in value.keywords] if value.func.id == "dict" else []
        else:
            parts = value.values if isinstance(value, ast.Dict) else []
        for part in parts:
            report_likely(
                part, WORDS[Meaning.BACKEND], scope, context, message("check.mmcv-backend")
            )


def _is_nccl(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "nccl"


def device_ids(node: ast.Call, scope: Scope, context: Context) -> None:
    """`DistributedDataParallel(model, device_ids=[0, 1])`: one process has one card."""
    keyword = keyword_of(node, "device_ids")
    given = None if keyword is None else keyword.value
    if not isinstance(given, (ast.List, ast.Tuple)) or not given.elts:
        return
    numbers = [e.value for e in given.elts if isinstance(e, ast.Constant)]
    if len(numbers) != len(given.elts) or not all(type(n) is int for n in numbers):
        return
    if not _DISTRIBUTED.intersection(qualified_names(node.func, scope)):
        return
    if context.span(given) in context.reported.spans:
        return
    fixes: list[Fix] = []
    if scope_binds("local_rank", scope, (node.lineno, node.col_offset)):
        edit = Edit(context.span(given), "[local_rank]")
        fixes.append(Fix(use("[local_rank]"), Applicability.UNSAFE, (edit,)))
    name = "several-device-ids" if len(numbers) > 1 else "fixed-device-id"
    rule, source = context.catalogue.required(name), context.source(given)
    context.report(rule, context.span(given), source, fixes, replacement="[local_rank]")


def scope_binds(name: str, scope: Scope, place: tuple[int, int]) -> bool:
    """Whether a name is bound before a place in the function or module around it."""
    return scope.bound(name, place) is not None and not any(
        isinstance(value, Qualified) for value in resolve_name(Name(name), scope, place)
    )


def reduction(node: ast.Call, scope: Scope, context: Context) -> None:
    """`dist.all_reduce(t)` of a tensor that is made with `dtype=torch.float64` just before."""
    if not node.args or not _REDUCTIONS.intersection(qualified_names(node.func, scope)):
        return
    for made in _made(node.args[0], scope):
        for keyword in _keywords(made) if _is_on_accelerator(made) else ():
            if keyword.arg == "dtype":
                for chosen in choices(keyword.value):
                    _reduced_double(chosen, scope, context)


def _reduced_double(node: ast.expr, scope: Scope, context: Context) -> None:
    """The type of a tensor that is reduced, if it is one that HCCL refuses."""
    span = context.span(node)
    if span in context.reported.spans or not _DOUBLE.intersection(qualified_names(node, scope)):
        return
    written = context.code.text[slice(*span)]
    text = written.rpartition(".")[0] + ".float32" if "." in written else ""
    fixes = [Fix(use(text), Applicability.UNSAFE, (Edit(span, text),))] if text else []
    rule = context.catalogue.required("collective-dtype")
    context.report(rule, span, written, fixes, replacement="torch.float32")


def _made(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """What makes a tensor: the argument, or what was assigned to its name last and for certain."""
    if isinstance(node, ast.Call):
        return [node]
    if not isinstance(node, ast.Name) or not isinstance(scope, FunctionScope):
        return []
    place = (node.lineno, node.col_offset)
    before = [binding for binding in scope.names.get(node.id, ()) if binding.place < place]
    if not isinstance(scope.node, Function) or not before:
        return []
    last = max(binding.place for binding in before)
    for block in _blocks(scope.node.body):
        for statement in block:
            if (statement.end_lineno, statement.end_col_offset) != last:
                continue
            is_certain = len(before) == 1 or (block[-1].end_lineno or 0) >= node.lineno
            if isinstance(statement, ast.Assign) and is_certain:
                return list(choices(statement.value))
    return []


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A block and those inside of its statements, those of nested definitions left out."""
    pending = [body]
    while pending:
        block = pending.pop()
        if block:
            yield block
        for statement in block:
            if not isinstance(statement, (Function, ast.ClassDef)):
                pending += (getattr(statement, f, []) for f in ("body", "orelse", "finalbody"))


def _keywords(node: ast.expr) -> Iterable[ast.keyword]:
    """The keywords of `torch.tensor(...)`, also in `torch.tensor(...).cuda()`."""
    while isinstance(node, ast.Call):
        yield from node.keywords
        if not isinstance(node.func, ast.Attribute):
            return
        node = node.func.value


def _is_on_accelerator(node: ast.expr) -> bool:
    """Whether a tensor is put on a device, which is not the CPU as far as it is written."""
    on_device = False
    inner: ast.expr = node
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if inner.func.attr in ("cuda", "npu"):
            return True
        places = [k.value for k in inner.keywords if k.arg == "device"]
        if inner.func.attr == "to":
            places += inner.args[:1]
        if any(isinstance(p, ast.Constant) and p.value == "cpu" for p in places):
            return False
        on_device = on_device or bool(places)
        inner = inner.func.value
    return on_device
