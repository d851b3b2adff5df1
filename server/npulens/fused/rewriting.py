"""Writes the NPU operator where a pattern was found: the smallest edit that is right."""

import ast
import re
from collections import Counter
from collections.abc import Sequence

from npulens.catalog.model import (
    Applicability,
    Edit,
    Fix,
    ImportNeed,
    LocalizedText,
    MigrationStyle,
)
from npulens.fused.matching import Match
from npulens.fused.patterns import Replacement
from npulens.fused.removal import needless_statements
from npulens.fused.sources import Sources, atom, is_costly
from npulens.graphs.frames import Evaluated
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import CONSTANT, LIBRARY, Node
from npulens.graphs.operators import CASTS
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_ELEMENTWISE = frozenset(
    {"add", "multiply", "power", "select", "dropout", "relu", "silu", "sigmoid", "tanh", "gelu"}
)
_TORCHSCRIPT = frozenset({"torch.jit.script", "torch.jit.script_method"})
"""Its compiler knows neither the operators' Python names nor `import`."""


class Rewriter:
    """Makes the fixes for patterns found in one function.

    Args:
        evaluator: What evaluated the function.
        record: What it told.
        text: The text that all positions count in.
        lines: Its lines.
    """

    def __init__(self, evaluator: Evaluator, record: Evaluated, text: str, lines: LineMap) -> None:
        self._evaluator = evaluator
        self._record = record
        self._text = text
        self._lines = lines

    def fixes(self, match: Match, place: ast.expr | ast.stmt, statement: ast.stmt) -> list[Fix]:
        """The fixes for a match whose result is computed at a place; often one, or none.

        The second keeps the code as it is for other devices.
        """
        replacement = match.pattern.replacement
        if replacement is None or match.pattern.applicability is Applicability.MANUAL:
            return []
        if not match.pattern.keeps_types and _comes_from_another_type(match):
            return []
        if not _TORCHSCRIPT.isdisjoint(self._record.function.decorators):
            return []
        block = _block_of(statement, self._record.function.node.body) or ()
        moved = frozenset(match.bound[name] for name in _names_in(match, replacement))
        kept = _arguments_here(self._record, match)
        removed = needless_statements(self._record, place, match.consumed, kept=kept)
        more = needless_statements(self._record, place, match.consumed, moved, block)
        rewritten = self._replaced(match, replacement, place, statement, (removed, more))
        fixes = [] if rewritten is None else [rewritten]
        beside = self._beside(match, replacement, place, statement, more)
        return fixes if beside is None else [*fixes, beside]

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        start = self._lines.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self._lines.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return Span(start, end)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self._text[slice(*self.span(node))]

    def _replaced(
        self,
        match: Match,
        replacement: Replacement,
        place: ast.expr | ast.stmt,
        statement: ast.stmt,
        choices: Sequence[frozenset[ast.stmt]],
    ) -> Fix | None:
        """The expression is replaced, and what only it needed goes: the first choice that can."""
        if "#" in self.source(place):
            return None
        for gone in (*choices, frozenset[ast.stmt]()):
            removals = self._removals(gone)
            text = self._written(match, replacement, place, statement, gone)
            if text is not None and removals is not None:
                break
        else:
            return None
        if isinstance(place, ast.AugAssign):
            text = f"{self.source(place.target)} = {text}"
        elif isinstance(place, ast.Assign):
            target = place.targets[0]
            assert isinstance(target, ast.Subscript)  # its last part was stored here
            text = f"{self.source(target.value)} = {text}"
        edits = (Edit(self._in_brackets(self.span(place)), text), *removals)
        return _fix(match, replacement, edits, MigrationStyle.NPU)

    def _in_brackets(self, span: Span) -> Span:
        """With the brackets that only group it: a call needs none."""
        start, end = span.start - 1, span.end + 1
        groups = (
            start > 0
            and self._text[start : span.start] == "("
            and self._text[span.end : end] == ")"
        )
        if groups and not re.match(r"[\w)\]]", self._text[start - 1]):
            return Span(start, end)
        return span

    def _beside(
        self,
        match: Match,
        replacement: Replacement,
        place: ast.expr | ast.stmt,
        statement: ast.stmt,
        removed: frozenset[ast.stmt],
    ) -> Fix | None:
        """The NPU has a way of its own in front of the code, which stays for other devices."""
        if not (isinstance(statement, ast.Return) and statement.value is place):
            return None
        block = _block_of(statement, self._record.function.node.body)
        if block is None:
            return None
        first = next((node for node in block if node in removed or node is statement), statement)
        skipped = block[block.index(first) : block.index(statement)]
        if any(node not in removed for node in skipped):
            return None
        before = self._evaluator.evaluate(self._record.function, watched=frozenset({first}))
        names = None if before is None else before.names.get(first)
        if names is None:
            return None
        sources = Sources(self._record, names, set(), self.source)
        text = _filled(match, replacement, sources)
        device = next(filter(None, map(sources.of, _tensors(match))), None)
        line = self._lines.offset(first.lineno, 0)
        indent = self._text[line : self.span(first).start]
        if text is None or device is None or indent.strip():
            return None
        step = "    " if "\t" not in indent else "\t"
        added = (
            f'{indent}if {atom(device)}.device.type == "npu":\n'
            f"{indent}{step}import torch_npu\n\n"
            f"{indent}{step}return {text}\n"
        )
        edits = (Edit(Span(line, line), added),)
        return _fix(match, replacement, edits, MigrationStyle.DEVICE_AGNOSTIC)

    def _written(
        self,
        match: Match,
        replacement: Replacement,
        place: ast.expr | ast.stmt,
        statement: ast.stmt,
        removed: frozenset[ast.stmt],
    ) -> str | None:
        """The new expression, if all that stays still computes what it did."""
        before = {id(node): value for node, value, _ in self._record.places}
        after = self._evaluator.evaluate(
            self._record.function,
            skipped=removed,
            watched=frozenset({statement}),
            given={place: before[id(place)]},
        )
        names = None if after is None else after.names.get(statement)
        if after is None or names is None:
            return None
        gone: set[ast.AST] = set()
        for node in (place, *removed):
            gone.update(ast.walk(node))
        for node, value, _ in after.places:
            if node not in gone and before.get(id(node)) is not value:
                return None
        return _filled(match, replacement, Sources(self._record, names, gone, self.source))

    def _removals(self, statements: frozenset[ast.stmt]) -> list[Edit] | None:
        """Edits that take out whole lines; comments behind them stay."""
        edits = []
        inside = {child for node in statements for child in ast.walk(node) if child is not node}
        for statement in statements - inside:
            block = _block_of(statement, self._record.function.node.body)
            if block is None or all(node in statements for node in block):
                return None
            span = self.span(statement)
            line = self._lines.offset(statement.lineno, 0)
            end = self._text.find("\n", span.end)
            end = len(self._text) if end < 0 else end + 1
            rest = self._text[span.end : end]
            if self._text[line : span.start].strip() or "#" in self.source(statement):
                return None
            if rest.strip().startswith("#"):
                comment = self._text[line : span.start] + rest.lstrip()
                edits.append(Edit(Span(line, end), comment))
            elif rest.strip():
                return None
            else:
                edits.append(Edit(Span(line, end), ""))
        return edits


def _arguments_here(record: Evaluated, match: Match) -> set[ast.stmt]:
    """Statements that bind names to what the operator is called with."""
    wanted = {node for node in match.bound.values() if node.operator != CONSTANT}
    return {
        statement
        for name, value in record.values.items()
        if value in wanted
        for statement in record.loads.get(name, ())
    }


def _comes_from_another_type(match: Match) -> bool:
    """Whether the result was cast back and an argument is computed from a cast.

    The operator returns the type of its argument, and that would not be the one of the result.
    Parameters do not count: they may have a wider type.
    """
    if not any(node.operator == "cast" for node in match.consumed):
        return False
    conditions = match.pattern.conditions
    pending = [
        node for name, node in match.bound.items() if "parameter" not in conditions.get(name, ())
    ]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node.operator == "cast":
            return True
        if node.operator in _ELEMENTWISE and node not in seen:
            seen.add(node)
            pending += node.operands
    return False


def _filled(match: Match, replacement: Replacement, sources: Sources) -> str | None:
    """The replacement's text with the user's expressions for its names."""
    arguments = {
        id(argument)
        for call in ast.walk(replacement.expression)
        if isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
    }
    arguments |= {id(n.test) for n in ast.walk(replacement.expression) if isinstance(n, ast.IfExp)}
    names = [
        node
        for node in ast.walk(replacement.expression)
        if isinstance(node, ast.Name) and node.id in match.bound
    ]
    uses = Counter(name.id for name in names)
    text = replacement.text
    for node in sorted(names, key=lambda name: (name.lineno, name.col_offset), reverse=True):
        source = _argument(match, node.id, sources)
        if source is None or node.lineno != 1:
            return None
        if uses[node.id] > 1 and is_costly(match.bound[node.id]) and not source.isidentifier():
            return None
        shown = source if id(node) in arguments else atom(source)
        text = text[: node.col_offset] + shown + text[node.end_col_offset :]
    if match.result_cast is None:
        return text
    written = _cast(match.result_cast, sources)
    return None if written is None else f"{text}{written}"


def _argument(match: Match, name: str, sources: Sources) -> str | None:
    """What a variable stands for, with the cast that its parts had."""
    source = sources.of(match.bound[name])
    cast = match.argument_casts.get(name)
    if source is None or cast is None:
        return source
    written = _cast(cast, sources)
    return None if written is None else f"{atom(source)}{written}"


def _cast(cast: Node, sources: Sources) -> str | None:
    """A cast as it is appended to an expression."""
    _, *targets = cast.operands
    if len(targets) != 1:
        return None
    if targets[0].operator == LIBRARY:
        name = str(targets[0].label).removeprefix("torch.")
        method = next((method for method, cast in CASTS.items() if cast == name), None)
        return None if method is None else f".{method}()"
    target = sources.of(targets[0])
    return None if target is None else f".to({target})"


def _names_in(match: Match, replacement: Replacement) -> set[str]:
    """The names of a pattern that its replacement uses."""
    nodes = ast.walk(replacement.expression)
    return {node.id for node in nodes if isinstance(node, ast.Name) and node.id in match.bound}


def _tensors(match: Match) -> list[Node]:
    """The bound values that are tensors: no numbers, no functions."""
    conditions = match.pattern.conditions
    others = {name for name, held in conditions.items() if {"number", "activation"} & {*held}}
    return [
        node
        for name, node in match.bound.items()
        if name not in others and node.operator != CONSTANT
    ]


def _fix(
    match: Match, replacement: Replacement, edits: Sequence[Edit], style: MigrationStyle
) -> Fix:
    operator = replacement.operator
    if style is MigrationStyle.NPU:
        title = LocalizedText(f"Use {operator}", f"改用 {operator}")
        needs = ImportNeed.PLUGIN_NAME
    else:
        title = LocalizedText(
            f"Use {operator} on the NPU, keep this for other devices",
            f"在 NPU 上使用 {operator}，其他设备保留原代码",
        )
        needs = ImportNeed.NOTHING
    module = "torch" if "torch." in replacement.text.replace("torch_npu.", "") else ""
    return Fix(
        title, match.pattern.applicability, tuple(edits), style, imports=needs, module=module
    )


def _block_of(statement: ast.stmt, body: Sequence[ast.stmt]) -> Sequence[ast.stmt] | None:
    """The block of statements that a statement is in."""
    pending: list[Sequence[ast.stmt]] = [body]
    while pending:
        block = pending.pop()
        if statement in block:
            return block
        for node in block:
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(node, field, None)
                if isinstance(inner, list) and not isinstance(node, ast.ClassDef):
                    pending.append(inner)
            pending += [handler.body for handler in getattr(node, "handlers", ())]
    return None
