"""Looking symbols up in the tables, and reporting what the tables say of them."""

import ast
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Fix, LocalizedText
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.shared_rules import UNSUPPORTED_API
from npulens.syntax.values import names_around
from npulens.text.spans import Span


def longest_entry(qualified: str, context: Context) -> SymbolEntry | None:
    root = qualified.partition(".")[0]
    if root != "torch" and root in context.target.project.own_modules:
        return None  # the project's own, whatever library has that name
    symbols = context.catalogue.symbols
    return next((symbols[name] for name in names_around(qualified) if name in symbols), None)


def is_unknown(qualified: str, entry: SymbolEntry) -> bool:
    """Whether only the module `torch.cuda` is known, and not the name in it."""
    return entry.symbol == "torch.cuda" and qualified != entry.symbol


def exists(entry: SymbolEntry, context: Context) -> bool:
    return entry.since is None or entry.since <= context.target.torch_version


def report_entry(
    node: ast.expr | ast.alias | ast.keyword,
    entry: SymbolEntry,
    fixes: list[Fix],
    context: Context,
    settled: Settlement | None = None,
) -> None:
    if entry.becomes is not None and not exists(entry, context):
        rule = context.catalogue.required(UNSUPPORTED_API)
        entry = replace(entry, rule=rule, note=needs_newer(entry))
    report_symbol(context.span(node), entry, fixes, context, settled)


def report_symbol(
    span: Span,
    entry: SymbolEntry,
    fixes: list[Fix],
    context: Context,
    settled: Settlement | None = None,
) -> None:
    """Report what an entry says, at a place and as it is."""
    context.report(
        entry.rule,
        span,
        entry.symbol,
        fixes,
        replacement=entry.becomes or "",
        note=entry.note,
        severity=entry.severity,
        settled=settled,
    )


def needs_newer(entry: SymbolEntry) -> LocalizedText:
    """The note for a symbol whose counterpart the target does not have yet."""
    return message("check.needs-newer", name=entry.becomes, version=entry.since)
