"""The tables that readers of the vendor's transplant tool know, filled from a migration.

Names and columns are those of `msfmktransplt`. Findings are what is left in the migrated tree, with
its lines; changes have the lines of the source.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from npulens.catalog.model import Language
from npulens.catalog.rule_properties import ReportTable
from npulens.report.human import printable
from npulens.workspace.fixing.change_log import Change, ChangeLog, Left

_PLACES = ("File", "Start Line", "End Line", "OP", "Tips")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""With one of these a cell starts that a spreadsheet computes."""

_TABLES: Mapping[str, ReportTable] = {
    "unsupported_api.csv": ReportTable.UNSUPPORTED,
    "unknown_api.csv": ReportTable.UNKNOWN,
    "api_precision_advice.csv": ReportTable.PRECISION,
    "api_performance_advice.csv": ReportTable.PERFORMANCE,
}
"""The tables of places."""


def transplant_tables(log: ChangeLog, language: Language) -> Mapping[str, str]:
    """The text of each table by its file name; one without rows has its heading."""
    tables = {
        name: _table(_PLACES, _places(_chosen(log.left, table), language))
        for name, table in _TABLES.items()
    }
    tables["cuda_op_list.csv"] = _table(
        ("File", "Api"),
        ((left.path, _symbol(left)) for left in _chosen(log.left, ReportTable.CUDA_OPERATORS)),
    )
    tables["affinity_api_call.csv"] = _table(
        (*_PLACES[:3], "Api Type", "Api Call Name", "Affinity Api Name"),
        (
            (*_place(left), left.finding.rule.name, _symbol(left), _replacement(left))
            for left in _chosen(log.left, ReportTable.AFFINITY)
        ),
    )
    tables["change_list.csv"] = _table(
        (*_PLACES[:3], "Operation Type", "Message"),
        (_change(change, language) for change in log.changes),
    )
    return tables


def _chosen(lefts: Iterable[Left], table: ReportTable) -> Iterator[Left]:
    chosen = (left for left in lefts if left.finding.rule.table is table)
    yield from sorted(chosen, key=lambda left: (left.path, left.line, left.column))


def _places(lefts: Iterable[Left], language: Language) -> Iterator[Sequence[str]]:
    for left in lefts:
        yield (*_place(left), _symbol(left), left.finding.message(language))


def _place(left: Left) -> tuple[str, str, str]:
    return left.path, str(left.line), str(left.end_line)


def _symbol(left: Left) -> str:
    return left.finding.arguments.get("symbol", left.finding.rule.name)


def _replacement(left: Left) -> str:
    return left.finding.arguments.get("replacement", "")


def _change(change: Change, language: Language) -> Sequence[str]:
    kind = "MODIFY" if change.before and change.after else "DELETE" if change.before else "INSERT"
    last = change.line + change.before.count("\n")
    message = change.fix.title.in_language(language)
    return change.path, str(change.line), str(last), kind, message


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, and no terminal for a command."""
    cell = printable(cell)
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
