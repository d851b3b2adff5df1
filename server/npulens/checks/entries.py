"""Looking symbols up in the tables, and reporting what the tables say of them."""

import ast

from npulens.catalog.messages import message
from npulens.catalog.model import Fix, LocalizedText
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.shared_rules import UNSUPPORTED_API


def longest_entry(qualified: str, context: Context) -> SymbolEntry | None:
    symbols = context.catalogue.symbols
    prefix = qualified
    while prefix:
        entry = symbols.get(prefix)
        if entry is not None:
            return entry
        prefix = prefix.rpartition(".")[0]
    return None


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
    rule, note = entry.rule, entry.note
    if entry.becomes is not None and not exists(entry, context):
        rule = context.catalogue.required(UNSUPPORTED_API)
        note = needs_newer(entry)
    context.report(
        rule,
        context.span(node),
        entry.symbol,
        fixes,
        replacement=entry.becomes or "",
        note=note,
        severity=entry.severity,
        settled=settled,
    )


def needs_newer(entry: SymbolEntry) -> LocalizedText:
    """The note for a symbol whose counterpart the target does not have yet."""
    return message("check.needs-newer", name=entry.becomes, version=entry.since)
