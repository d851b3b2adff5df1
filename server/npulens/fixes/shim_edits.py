"""The import of `transfer_to_npu`, which makes CUDA code run on the NPU as it is.

It patches torch when it is imported: a name that `from torch... import` bound before that keeps
the original.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, MigrationStyle
from npulens.fixes.imports import NOT_UNUSED, running_imports, statement_edit, torch_import
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

SHIM_NAME = "transfer_to_npu"
STATEMENT = "from torch_npu.contrib import transfer_to_npu"
FOR_EFFECT = STATEMENT + NOT_UNUSED

SHIM_MODULE = "torch_npu.contrib.transfer_to_npu"
ADAPTORS = ("mindspeed.megatron_adaptor", "mindspeed_llm", "modellink")
"""Modules that import the shim themselves, before they patch Megatron; so does all in the packages.

Source: Ascend/MindSpeed, mindspeed/megatron_adaptor.py; Ascend/MindSpeed-LLM and its forerunner
ModelLink, `__init__.py` of the package and its tasks/megatron_adaptor.py.
"""
_WORDS = (SHIM_NAME, "TORCH_TRANSFER_TO_NPU", "megatron_adaptor", "mindspeed_llm", "modellink")
_SWITCH = re.compile(r"environ\[[\"']TORCH_TRANSFER_TO_NPU[\"']\]\s*=\s*[\"']1[\"']")
_TORCH_IMPORTS = re.compile(r"^import[ \t]+torch\b", re.MULTILINE)
_SHIM_IMPORTS = re.compile(r"^(?:from|import)[ \t]+torch_npu\.contrib\b", re.MULTILINE)
_Importing: TypeAlias = ast.Import | ast.ImportFrom | ast.Call
_MOST_TRIED = 20
"""Imports; each is looked at with the text before it."""
_TORCH_LINE = re.compile(r"import[ \t]+(?:torch|torch_npu)\b")
_SHIM_LINE = re.compile(r"(?:from[ \t]+torch_npu\.contrib[ \t(]|import[ \t]+torch_npu\.contrib\.)")


class ShimUse(NamedTuple):
    """What a block of a module says about the shim.

    Attributes:
        shimmed: The block turns the shim on.
        adapted: An adaptor of MindSpeed does that.
        statement: The lines of its import, if it is a statement of the module and alone on them.
        before: Names that `from torch... import` binds before it, or anywhere if it is not there.
        after: Names so bound after it.
    """

    shimmed: bool
    adapted: bool
    statement: Span | None
    before: frozenset[str]
    after: frozenset[str]


NO_SHIM = ShimUse(False, False, None, frozenset(), frozenset())

_NEVER_REACHED = 1 << 30


def may_load_shim(text: str) -> bool:
    """Whether a text has a word without which nothing turns the shim on."""
    return any(word in text for word in _WORDS)


def is_shim(name: str) -> bool:
    """Whether a module is the shim."""
    return name == SHIM_MODULE or name.startswith(SHIM_MODULE + ".")


def is_adaptor(name: str) -> bool:
    """Whether a module imports the shim, being an adaptor of MindSpeed."""
    return any(name == each or name.startswith(each + ".") for each in ADAPTORS)


def shim_use(body: Sequence[ast.stmt], text: str, lines: LineMap) -> ShimUse:
    """Read off a block whether it turns the shim on, and what it binds before that."""
    place = _first_shim_line(body) if may_load_shim(text) else None
    if place is None and "TORCH_TRANSFER_TO_NPU" in text:
        switch = _SWITCH.search(text)
        place = text.count("\n", 0, switch.start()) + 1 if switch is not None else None
    before: set[str] = set()
    after: set[str] = set()
    for node in running_imports(body):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_of_torch(node):
            late = place is not None and node.lineno > place
            (after if late else before).update(a.asname or a.name for a in node.names)
    statement = None if place is None else _statement(body, place, lines)
    adapted = place is not None and any(map(_adapts, running_imports(body)))
    return ShimUse(place is not None, adapted, statement, frozenset(before), frozenset(after))


def shim_rewrite(text: str, start: int, end: int) -> Fix | None:
    """What can be done about the shim where it or torch is imported: import it, or take it out."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    takes_out = _SHIM_LINE.match(line) is not None
    if end > line_start + len(line) or not (takes_out or _TORCH_LINE.match(line)):
        return None
    head = text[: line_start + len(line)]
    tree = tree_or_none(head)  # only the text before: a line in a string does not parse
    if tree is None:
        return None
    lines = LineMap(head)
    use = shim_use(tree.body, head, lines)
    if not takes_out:
        place = torch_import(tree.body, lines)
        if use.shimmed or place is None or _mentions_shim(text):
            return None
        title = message("fix.run-through-shim")
        return _rewrite(title, statement_edit(place, FOR_EFFECT, text))
    if use.statement is None:
        return None
    after = use.statement.end + text.startswith("\n", use.statement.end)
    title = message("fix.remove-shim")
    return _rewrite(title, Edit(Span(use.statement.start, after), ""))


def run_time_migration(text: str, *, add: bool) -> Fix | None:
    """What imports the shim, or takes its import out; `None` where there is nothing to do."""
    found = islice((_TORCH_IMPORTS if add else _SHIM_IMPORTS).finditer(text), _MOST_TRIED)
    fixes = (shim_rewrite(text, match.start(), match.start()) for match in found)
    return next(filter(None, fixes), None)


def _rewrite(title: LocalizedText, edit: Edit) -> Fix:
    return Fix(title, Applicability.UNSAFE, (edit,), MigrationStyle.RUNTIME_SHIM)


def _mentions_shim(text: str) -> bool:
    return re.search(r"^\s*(?:from|import)\b.*\btransfer_to_npu\b", text, re.MULTILINE) is not None


def _first_shim_line(body: Sequence[ast.stmt]) -> int | None:
    """The line on which a module turns the shim on; in a function, that is after all others."""
    for node in running_imports(body):
        if _is_shim(node) or _adapts(node):
            return node.lineno
    for statement in body:
        for part in nodes_below(statement):
            if isinstance(part, (ast.Import, ast.ImportFrom, ast.Call)) and _is_shim(part):
                return part.lineno if isinstance(statement, ast.Expr) else _NEVER_REACHED
    return None


def _is_shim(node: _Importing) -> bool:
    return any(map(is_shim, _imported(node)))


def _adapts(node: _Importing) -> bool:
    return any(map(is_adaptor, _imported(node)))


def _imported(node: _Importing) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names if not node.level)
    elif node.args and isinstance(node.args[0], ast.Constant):
        callee = node.func
        name = last_name(callee)
        if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            yield node.args[0].value


def _is_of_torch(node: ast.ImportFrom) -> bool:
    return (node.module or "").partition(".")[0] == "torch"


def _statement(body: Sequence[ast.stmt], line: int, lines: LineMap) -> Span | None:
    """The whole lines of a statement of the module that imports nothing but the shim."""
    for node in body:
        if node.lineno != line or not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if len(node.names) != 1 or not _is_shim(node):
            return None
        start = lines.starts[line - 1]
        last = node.end_lineno or line
        end = lines.starts[last] if last < len(lines.starts) else len(lines.text)
        rest = lines.text[lines.offset(last, node.end_col_offset or 0) : end]
        alone = not lines.text[start : lines.offset(line, node.col_offset)].strip()
        return Span(start, end) if alone and (not rest.strip() or rest.strip()[0] == "#") else None
    return None
