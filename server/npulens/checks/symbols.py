"""References to names that a table knows: through any alias, in imports and in expressions."""

import ast
import re
from dataclasses import replace

from npulens.catalog.model import (
    Applicability,
    Edit,
    Fix,
    LocalizedText,
    MigrationStyle,
    TorchVersion,
)
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.fixes.imports import import_edit, imports_module, torch_imports
from npulens.syntax.scopes import (
    FunctionScope,
    Member,
    ModuleScope,
    Qualified,
    Scope,
    canonical,
    is_bound,
    qualified_names,
    resolve_name,
)
from npulens.syntax.values import Imported, Name, dotted_name, expression, literal_attribute
from npulens.text.spans import Span

ACCELERATOR_SINCE = TorchVersion(2, 6)
_NEEDS_PLUGIN = re.compile(r"npu|hccl|mstx")
_PLUGIN_ROOTS = ("torch_npu", "torch.npu")


def attribute(node: ast.AST, scope: Scope, context: Context) -> None:
    """`torch.cuda.synchronize`, `c.synchronize`, `self.backend.synchronize`."""
    assert isinstance(node, ast.Attribute)
    name = dotted_name(node)
    if name is None:
        _imported_module(node, scope, context)
    elif isinstance(node.ctx, ast.Load) or _is_module(name.root, node, scope):
        _reference(node, name, scope, context)


def _is_module(root: str, node: ast.expr, scope: Scope) -> bool:
    """Whether a name is a module, so that storing to an attribute changes the module itself."""
    values = resolve_name(Name(root), scope, (node.lineno, node.col_offset))
    return any(isinstance(value, Qualified) for value in values)


def _imported_module(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`importlib.import_module("torch").cuda.synchronize()`."""
    path: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        path.insert(0, inner.attr)
        inner = inner.value
    value = expression(inner) if isinstance(inner, ast.Call) else None
    if isinstance(value, Imported):
        qualified = canonical(".".join((value.qualified, *path)))
        entry = _longest_entry(qualified, context)
        if entry is not None and not (context.facts.shimmed and entry.shimmed):
            _report(_owner(node, _levels(qualified, entry)), entry, [], context)


def assigned(node: ast.AST, scope: Scope, context: Context) -> None:
    """`dev = torch.cuda`: fixing the value mends every use of the name."""
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = dotted_name(target)
    if name is not None and node.value is not None:
        context.alias_names[node.value] = ".".join((name.root, *name.path))


def bare_name(node: ast.AST, scope: Scope, context: Context) -> None:
    """A name that only `from torch.cuda import *` can have brought."""
    assert isinstance(node, ast.Name)
    if not is_bound(node.id, scope):
        _reference(node, Name(node.id), scope, context)


def literal_getattr(node: ast.AST, scope: Scope, context: Context) -> None:
    """`getattr(torch, "cuda")`."""
    assert isinstance(node, ast.Call)
    name = literal_attribute(node)
    if name is not None:
        _reference(node, name, scope, context)


def default_tensor_type(node: ast.AST, scope: Scope, context: Context) -> None:
    """`torch.set_default_tensor_type(torch.cuda.FloatTensor)`, which takes no NPU type at all."""
    assert isinstance(node, ast.Call)
    if "torch.set_default_tensor_type" not in qualified_names(node.func, scope):
        return
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        names = qualified_names(argument, scope)
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            names = [argument.value]
        for name in names:
            entry = context.catalogue.symbols.get(name)
            if entry is not None and name.startswith("torch.cuda."):
                call = 'torch.set_default_device("npu")'
                context.report(entry.rule, context.span(argument), name, [], replacement=call)


def imported(node: ast.AST, scope: Scope, context: Context) -> None:
    """`import torch.cuda as c`, `from torch import cuda`, `from torch.cuda import synchronize`."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
        return
    module = node.module if isinstance(node, ast.ImportFrom) else None
    for alias in node.names:
        if alias.name == "*":
            entry = context.catalogue.symbols.get(module or "")
            if entry is not None:
                _report_import(node, alias, entry, module or "", context)
            continue
        written = alias.name if module is None else f"{module}.{alias.name}"
        entry = _longest_entry(canonical(written), context)
        if entry is not None:
            _report_import(node, alias, entry, canonical(written), context)


def _reference(node: ast.expr, name: Name, scope: Scope, context: Context) -> None:
    values = resolve_name(name, scope, (node.lineno, node.col_offset))
    certain = len(values) == 1
    for value in values:
        if isinstance(value, Qualified):
            if _missing_on_npu(node, name, value.name, scope, context):
                return
            entry = _longest_entry(value.name, context)
            if entry is not None:
                if certain or not _is_alias(name, value.name):
                    _report_reference(node, name, value.name, entry, scope, context)
                return  # of an alias that may be something else the definition is reported
        elif isinstance(value, Member):
            entry = context.catalogue.symbols.get(_cuda_member(value.name, context))
            if entry is not None and entry.becomes is None:
                _report_reference(node, name, value.name, entry, scope, context)
                return


def _longest_entry(qualified: str, context: Context) -> SymbolEntry | None:
    symbols = context.catalogue.symbols
    prefix = qualified
    while prefix:
        entry = symbols.get(prefix)
        if entry is not None:
            return entry
        prefix = prefix.rpartition(".")[0]
    return None


def _is_unknown(qualified: str, entry: SymbolEntry) -> bool:
    """Whether only the module `torch.cuda` is known, and not the name in it."""
    return entry.symbol == "torch.cuda" and qualified != entry.symbol


def _report_reference(
    node: ast.expr, name: Name, qualified: str, entry: SymbolEntry, scope: Scope, context: Context
) -> None:
    if context.facts.shimmed and entry.shimmed:
        return
    if _is_unknown(qualified, entry):
        symbol = ".".join(qualified.split(".")[:3])
        target = _owner(node, len(qualified.split(".")) - 3)
        rule = context.catalogue.rule_named("cuda-api-unknown")
        if rule is not None and not context.facts.shimmed:
            context.report(rule, context.span(target), symbol, [])
        return
    target = _owner(node, _levels(qualified, entry))
    if context.span(target) in context.reported:
        return
    written = dotted_name(target) or name
    fixes: list[Fix] = []
    if _exists(entry, context):
        fixes += _npu_fix(target, written, entry, scope, context)
    fixes += _agnostic_fix(target, written, entry, scope, context)
    _report(target, entry, fixes, context)


def _levels(qualified: str, entry: SymbolEntry) -> int:
    """How many attributes a reference goes beyond the symbol of an entry."""
    return qualified.count(".") - entry.symbol.count(".")


def _report(
    node: ast.expr | ast.alias, entry: SymbolEntry, fixes: list[Fix], context: Context
) -> None:
    rule, note = entry.rule, entry.note
    if entry.becomes is not None and not _exists(entry, context):
        rule = context.catalogue.rule_named("cuda-api-unsupported") or rule
        note = LocalizedText(
            f"`{entry.becomes}` needs torch_npu {entry.since} or newer.",
            f"`{entry.becomes}` 需要 torch_npu {entry.since} 或更高版本。",
        )
    context.report(
        rule,
        context.span(node),
        entry.symbol,
        fixes,
        replacement=entry.becomes or "",
        note=note,
        severity=entry.severity,
    )


def _exists(entry: SymbolEntry, context: Context) -> bool:
    return entry.since is None or entry.since <= context.target.torch_version


def _owner(node: ast.expr, levels: int) -> ast.expr:
    """The expression so many attributes further in."""
    for _ in range(max(levels, 0)):
        if isinstance(node, ast.Attribute):
            node = node.value
    return node


def _missing_on_npu(
    node: ast.expr, name: Name, qualified: str, scope: Scope, context: Context
) -> bool:
    """`torch.npu.CUDAGraph`: somebody replaced the word cuda, but the name differs there."""
    if not qualified.startswith("torch.npu."):
        return False
    entry = _longest_entry(_cuda_name(qualified, context), context)
    if entry is None or entry.symbol == "torch.cuda":
        return False
    levels = _cuda_name(qualified, context).count(".") - entry.symbol.count(".")
    found = qualified.rsplit(".", levels)[0] if levels else qualified
    if entry.becomes is not None and canonical(entry.becomes).removesuffix("()") == found:
        return False
    missing = "npu-api-missing" if entry.becomes is not None else "cuda-api-unsupported"
    rule = context.catalogue.rule_named(missing)
    target = _owner(node, levels)
    if rule is not None and context.span(target) not in context.reported:
        written = dotted_name(target) or name
        fixes = _npu_fix(target, written, entry, scope, context) if _exists(entry, context) else []
        context.report(
            rule,
            context.span(target),
            found,
            fixes,
            replacement=entry.becomes or "",
            note=entry.note,
        )
    return True


def _cuda_member(name: str, context: Context) -> str:
    """The name under which the tables know a member of an object, ported or not."""
    return _cuda_name(name, context) if name.startswith("torch.npu.") else name


def _cuda_name(qualified: str, context: Context) -> str:
    """The CUDA name of something under `torch.npu`: that of its class, or letter by letter."""
    owner, _, member = qualified.rpartition(".")
    cuda_owner = context.catalogue.counterparts.get(owner)
    if cuda_owner is not None:
        return f"{cuda_owner}.{member}"
    return "torch.cuda" + qualified.removeprefix("torch.npu")


def _npu_fix(
    node: ast.expr, written: Name, entry: SymbolEntry, scope: Scope, context: Context
) -> list[Fix]:
    if entry.becomes is None or entry.fix is Applicability.MANUAL:
        return []
    if entry.becomes.endswith("()") and isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return []
    text = _spelled(entry.becomes, written, node, scope, context)
    if text is None:
        return []
    needs_plugin = _NEEDS_PLUGIN.search(entry.becomes) is not None
    edits = [Edit(context.span(node), text)]
    imports = "torch_npu" if needs_plugin else ""
    if imports:
        local = local_import(written.root, scope, context)
        if local is not None:
            imports = ""
            edits += local
    alias = _alias(written, entry.symbol) or context.alias_names.get(node, "")
    isolation = f"alias:{alias}" if alias else ""
    fix = Fix(use(text), entry.fix, tuple(edits), isolation=isolation, imports=imports)
    return [replace(fix, names_import=True) if imports else fix]


def _is_alias(written: Name, symbol: str) -> bool:
    """Whether a part of the symbol is hidden in a name, such as `c` for `torch.cuda`."""
    return _alias(written, symbol) != ""


def _alias(written: Name, symbol: str) -> str:
    """What stands for the first part of a symbol, empty if that is just the module torch."""
    names, parts = [written.root, *written.path], symbol.split(".")
    while len(names) > 1 and len(parts) > 1 and names[-1] == parts[-1]:
        names.pop()
        parts.pop()
    return ".".join(names) if len(parts) > 1 else ""


def _spelled(
    becomes: str, written: Name, node: ast.expr, scope: Scope, context: Context
) -> str | None:
    """How a full name can be written where a node stands, with the names already used there."""
    place = (node.lineno, node.col_offset)
    for length in range(len(written.path), -1, -1):
        names = (written.root, *written.path[:length])
        values = resolve_name(Name(names[0], names[1:]), scope, place)
        if len(values) == 1 and isinstance(values[0], Qualified):
            owner = values[0].name
            if canonical(becomes).startswith(owner + "."):
                return ".".join(names) + canonical(becomes)[len(owner) :]
    if becomes.startswith("torch_npu."):
        return becomes
    if context.torch_name(scope, node) is not None:
        return becomes
    if becomes.startswith("torch.npu"):
        return "torch_npu" + becomes.removeprefix("torch")
    return None


def _torch_root(written: Name, node: ast.expr, scope: Scope, context: Context) -> str | None:
    """A name for torch itself: the one just used, or `torch`."""
    place = (node.lineno, node.col_offset)
    if written.path and resolve_name(Name(written.root), scope, place) == [Qualified("torch")]:
        return written.root
    return context.torch_name(scope, node)


def _agnostic_fix(
    node: ast.expr, written: Name, entry: SymbolEntry, scope: Scope, context: Context
) -> list[Fix]:
    if entry.agnostic is None or context.target.torch_version < ACCELERATOR_SINCE:
        return []
    root = _torch_root(written, node, scope, context)
    if root is None:
        return []
    text = root + entry.agnostic.removeprefix("torch")
    edit = Edit(context.span(node), text)
    return [Fix(use(text), Applicability.SAFE, (edit,), MigrationStyle.DEVICE_AGNOSTIC)]


def local_import(root: str, scope: Scope, context: Context) -> list[Edit] | None:
    """The edits that import torch_npu beside a function's own import of torch.

    `None` if torch comes from the module, an empty list if the function imports torch_npu already.
    """
    current: Scope | None = scope
    while current is not None and not isinstance(current, ModuleScope):
        if isinstance(current, FunctionScope) and root in current.names:
            body = current.node.body
            if not isinstance(body, list):
                return None
            if imports_module(body, "torch_npu"):
                return []
            edit = import_edit(torch_imports(body, context.lines), "torch_npu", context.text)
            return None if edit is None else [edit]
        current = current.parent
    return None


def _report_import(
    node: ast.Import | ast.ImportFrom,
    alias: ast.alias,
    entry: SymbolEntry,
    written: str,
    context: Context,
) -> None:
    if context.facts.shimmed and entry.shimmed:
        return
    if _is_unknown(written, entry) and alias.name != "*":
        rule = context.catalogue.rule_named("cuda-api-unknown")
        if rule is not None and not context.facts.shimmed:
            context.report(rule, context.span(alias), written, [])
        return
    fixes: list[Fix] = []
    if written == entry.symbol and _exists(entry, context) and entry.becomes is not None:
        fixes = _import_fix(node, alias, entry, context)
    _report(alias, entry, fixes, context)


def _import_fix(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, entry: SymbolEntry, context: Context
) -> list[Fix]:
    becomes = entry.becomes or ""
    if entry.fix is Applicability.MANUAL or becomes.endswith("()"):
        return []
    if becomes.startswith("torch.npu"):
        becomes = "torch_npu" + becomes.removeprefix("torch")
    isolation = f"alias:{alias.asname or alias.name}"
    if isinstance(node, ast.Import):
        if alias.asname is None:
            edit = Edit(context.span(alias), "torch")
            return [Fix(use(becomes), entry.fix, (edit,), isolation=isolation, imports="torch_npu")]
        edit = Edit(context.span(alias), f"{becomes} as {alias.asname}")
        return [Fix(use(becomes), entry.fix, (edit,), isolation=isolation)]
    if alias.name == "*":
        new = f"from {becomes} import *"
        return [Fix(use(becomes), Applicability.UNSAFE, (Edit(context.span(node), new),))]
    module, _, member = becomes.rpartition(".")
    bound = alias.asname or alias.name
    new = f"from {module} import {member}" + ("" if bound == member else f" as {bound}")
    edits = _replaced_alias(node, alias, new, context)
    return [Fix(use(becomes), entry.fix, edits, isolation=isolation)] if edits else []


def _replaced_alias(
    node: ast.ImportFrom, alias: ast.alias, new: str, context: Context
) -> tuple[Edit, ...]:
    """Take one name out of a `from` import and give it a statement of its own behind it."""
    span, source = context.span(node), context.source(node)
    if len(node.names) == 1:
        return () if "#" in source else (Edit(span, new),)
    line_start = context.lines.starts[node.lineno - 1]
    indentation = context.text[line_start : span.start]
    index = node.names.index(alias)
    if indentation.strip():
        return ()
    if index + 1 < len(node.names):
        removed = Span(context.span(alias).start, context.span(node.names[index + 1]).start)
    else:
        removed = Span(context.span(node.names[index - 1]).end, context.span(alias).end)
    if "#" in context.text[slice(*removed)]:
        return ()
    newline = "\r\n" if "\r\n" in context.text else "\n"
    return (Edit(removed, ""), Edit(Span(span.end, span.end), f"{newline}{indentation}{new}"))
