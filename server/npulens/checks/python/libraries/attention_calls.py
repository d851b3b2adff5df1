"""Calls of GPU attention libraries, which one operator of torch_npu replaces."""

import ast

from npulens.catalog.messages import joined
from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, LocalizedText
from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.checks.python.libraries.attention_rewriting import (
    OPERATOR,
    NotWritableError,
    Writer,
    Written,
    laid_out,
)
from npulens.checks.python.libraries.attention_signatures import (
    SIGNATURES,
    UNSETTLED,
    filled,
    without_mapping,
)
from npulens.checks.python.libraries.library_uses import library_entry, uses_libraries
from npulens.checks.replacements import with_plugin
from npulens.checks.shared_rules import ATTENTION_CALL
from npulens.checks.titles import use
from npulens.syntax.meanings import Qualified, resolve
from npulens.syntax.scopes import ModuleScope, Scope, is_bound, lookup, module_of
from npulens.syntax.strings import comments
from npulens.syntax.values import Imported, Name, Nothing, dotted_name
from npulens.text.spans import Span

_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in (*SIGNATURES, *UNSETTLED))


def in_statement(
    node: ast.Assign | ast.AnnAssign | ast.Return | ast.Expr, scope: Scope, context: Context
) -> None:
    """`out = flash_attn_func(q, k, v).flatten(2)`: what is done first in a statement.

    Statements may be put before such a one, which other places need not know of.
    """
    if not uses_libraries(context):
        return
    inner = node.value
    while inner is not None:
        if isinstance(inner, ast.Call) and _report(inner, node, scope, context):
            return
        inner = _done_first(inner)


def _done_first(node: ast.expr) -> ast.expr | None:
    """The part of an expression that is evaluated before the others."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    if dotted_name(node.func) is None:
        return node.func
    return node.args[0] if node.args else None


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """A call anywhere else."""
    if uses_libraries(context):
        _report(node, None, scope, context)


def _report(node: ast.Call, statement: ast.stmt | None, scope: Scope, context: Context) -> bool:
    """Report a call if it is one of an attention function."""
    found = _attention_function(node, scope, context)
    if found is None:
        return False
    name, is_optional = found
    span = context.span(node.func)
    if span in context.reported.spans:
        return True
    library = name.partition(".")[0]
    fixes: list[Fix] = []
    if name in UNSETTLED:
        facts = ["flash_attn.flash_attn_3"]
    else:
        try:
            written = _written(node, name, _can_be_preceded(statement, context), scope, context)
        except NotWritableError as reason:
            facts = [f"{library}.{reason}"]
        else:
            facts = [f"{library}.{fact}" for fact in written.facts]
            fixes = _fixes(node, statement, written, scope, context)
    context.report(
        context.catalogue.required(ATTENTION_CALL),
        span,
        name,
        fixes,
        replacement=OPERATOR,
        note=_note(facts, context),
        settled=context.fallback(node) or (Settlement("fallback") if is_optional else None),
    )
    return True


def _may_be_one(written: Name, context: Context) -> bool:
    """Whether a name may be that of an attention function, by the words of the segment alone."""
    last = written.path[-1] if written.path else written.root
    if not _LAST_NAMES.isdisjoint(context.lookups.identifiers):
        return True
    return last in context.facts.aliases or f".{last}" in context.facts.aliases


def _attention_function(node: ast.Call, scope: Scope, context: Context) -> tuple[str, bool] | None:
    """The full name of what is called, and whether it is `None` where it cannot be imported.

    Then the whole module shows whether something else takes its place. Of what is imported on
    another condition nothing is said.
    """
    written = dotted_name(node.func)
    if written is None or not _may_be_one(written, context):
        return None
    values = resolve(node.func, scope)
    if len(values) != 1 or not isinstance(values[0], Qualified):
        return None
    name = values[0].name
    if name not in SIGNATURES and name not in UNSETTLED:
        return None
    if library_entry(name, context) is None:
        return None
    place = (node.lineno, node.col_offset)
    bound = lookup(written.root, scope, place) or ()
    is_optional = any(isinstance(binding.value, Nothing) for binding, _ in bound)
    for binding, owner in bound:
        first, last = binding.block
        elsewhere = isinstance(owner, ModuleScope) and owner is not module_of(scope)
        if first != (0, 0) and (elsewhere or not first <= place <= last):
            if not is_optional:
                return None
        elif not isinstance(binding.value, Imported) and written.root not in ("self", "cls"):
            return None
    return name, is_optional


def _written(
    node: ast.Call, name: str, can_precede: bool, scope: Scope, context: Context
) -> Written:
    signature = SIGNATURES[name]
    given = filled(node, signature)
    if given is None:
        raise NotWritableError("arguments")
    in_the_way = without_mapping(given)
    if in_the_way is not None:
        raise NotWritableError(in_the_way)

    def source(part: ast.AST) -> str:
        return context.source(part) if hasattr(part, "lineno") else ast.unparse(part)

    return Writer(signature, given, scope, source, node.lineno, can_precede).write()


def _can_be_preceded(statement: ast.stmt | None, context: Context) -> bool:
    return statement is not None and not context.before_on_line(statement).strip()


def _fixes(
    node: ast.Call, statement: ast.stmt | None, written: Written, scope: Scope, context: Context
) -> list[Fix]:
    span = context.span(node)
    call = context.source(node)
    remarks = [call[slice(*found)] for found in comments(call)]
    if remarks and not _can_be_preceded(statement, context):
        return []
    before = [*remarks, *written.before]
    line = context.before_on_line(node)
    indentation = line[: len(line) - len(line.lstrip())]
    edits: tuple[Edit, ...] = (Edit(span, laid_out(written, len(line), indentation)),)
    if before and statement is not None:
        start = context.code.lines.starts[statement.lineno - 1]
        margin = context.before_on_line(statement)
        edits = (Edit(Span(start, start), "".join(f"{margin}{b}\n" for b in before)), *edits)
    edits, need = with_plugin(edits, ImportNeed.PLUGIN_NAME, scope, context)
    module = ""
    if written.mask and context.torch_name(scope, node) is None:
        if is_bound("torch", scope):
            return []
        module = "torch"
    return [Fix(use(OPERATOR), Applicability.UNSAFE, edits, imports=need, module=module)]


def _note(facts: list[str], context: Context) -> LocalizedText | None:
    """What the table says of arguments, one after the other."""
    entries = [context.catalogue.libraries.get(fact) for fact in facts]
    notes = [entry.note for entry in entries if entry is not None and entry.note is not None]
    return joined(notes, "punctuation.sentence") if notes else None
