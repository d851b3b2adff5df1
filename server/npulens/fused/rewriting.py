"""Writes the NPU operator where a pattern was found: the smallest edit that is right."""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, MigrationStyle
from npulens.fused.contracts import RESULT_TYPE
from npulens.fused.filling import bound_names, filled
from npulens.fused.known_activations import is_silu_by_default
from npulens.fused.matching import Match
from npulens.fused.patterns import Replacement
from npulens.fused.removal import needless_statements
from npulens.fused.replacement_layout import in_short_lines
from npulens.fused.writable_values import Sources, atom
from npulens.graphs.definitions import attributes_without_value, inner_statements
from npulens.graphs.frames import Evaluated
from npulens.graphs.functions import Evaluator
from npulens.graphs.modules import INSTANCE
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    INPUT,
    TUPLE,
    Node,
    number,
    reachable,
    stripped,
)
from npulens.graphs.ranks import rank_of
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_ELEMENTWISE = frozenset(
    {"add", "multiply", "power", "select", "dropout", "relu", "silu", "sigmoid", "tanh", "gelu"}
)
_REARRANGING = frozenset({"reshape", "transpose", "permute", "contiguous", "cast", "flatten"})
_LAYING_OUT = frozenset({"reshape", "flatten"})
_VALUES = ("v", "turned", "whole")
_MOVED = frozenset({"transpose", "permute", "reshape", "contiguous", "unsqueeze", "squeeze"})
"""What the patterns of attention call its values."""
_MOST_PARTS = 60
_TORCHSCRIPT = frozenset({"torch.jit.script", "torch.jit.script_method"})
"""Its compiler knows neither the operators' Python names nor `import`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the result of a match is computed."""

    node: ast.expr | ast.stmt
    statement: ast.stmt
    match: Match
    others: tuple[Match, ...] = ()
    """Patterns of the same rule that it fits too, for want of a fix for the first."""


class Rewriter:
    """Makes the fixes for patterns found in one function, in the text that it is in."""

    def __init__(self, evaluator: Evaluator, record: Evaluated, lines: LineMap) -> None:
        self._evaluator = evaluator
        self._record = record
        self._text = lines.text
        self._lines = lines

    def fixes(self, place: Place) -> list[Fix]:
        """The fixes for a match, or else for one of the others; often one, or none.

        Where it can be distinguished, a second keeps the code as it is for other devices. Further
        ones follow for what else may hold.
        """
        places = (
            replace(place, match=match._replace(is_cast_back=self._is_cast_back(place, match)))
            for match in (place.match, *place.others)
        )
        return next(filter(None, map(self._fixes_at, places)), [])

    def _is_cast_back(self, place: Place, match: Match) -> bool:
        """Whether the result of a match is cast, there or where it is used."""
        results = {value for node, value, _ in self._record.places if node is place.node}
        return match.result_cast is not None or any(
            value.operator == "cast" and stripped(value.operands[0], {"contiguous"}) in results
            for _, value, _ in self._record.places
        )

    def _fixes_at(self, place: Place) -> list[Fix]:
        match = place.match
        pattern = match.pattern
        if pattern.replacement is None or pattern.applicability is Applicability.MANUAL:
            return []
        if not pattern.keeps_types and _comes_from_another_type(match):
            return []
        if _shows_no_dimensions(match) or self._may_be_none(place, match):
            return []
        if self._has_wider_values(match) or self._has_grid(match) or _has_narrower_values(match):
            return []
        if not _TORCHSCRIPT.isdisjoint(self._record.function.decorators):
            return []
        return [
            fix
            for replacement in (pattern.replacement, *pattern.alternatives)
            for fix in self._fixes_with(replacement, place)
        ]

    def _may_be_none(self, place: Place, match: Match) -> bool:
        """Whether a tensor is `None` in some instances, and no condition is around its use."""
        if place.statement not in self._record.function.node.body:
            return False
        owner = self._record.function.owner
        evaluator = self._evaluator
        lineage = evaluator.elsewhere.lineage(evaluator.definitions, owner) if owner else ()
        constructors = (each.methods.get("__init__") for each in lineage)
        without = (attributes_without_value(c.node) for c in constructors if c is not None)
        wanted = (match.bound[name] for name in match.pattern.one_type if name in match.bound)
        attributes = {str(node.label) for node in wanted if node.operator == ATTRIBUTE}
        return not attributes.isdisjoint(frozenset().union(*without))

    def _has_wider_values(self, match: Match) -> bool:
        """Whether keys and values of an attention are projected to sizes that differ.

        The operator takes values that are no wider than keys.
        """
        bound = match.bound
        values = next((bound[name] for name in _VALUES if name in bound), None)
        if values is None or "k" not in bound:
            return False
        of_keys, of_values = map(self._projected_size, (bound["k"], values))
        return None not in (of_keys, of_values) and of_keys is not of_values

    def _has_grid(self, match: Match) -> bool:
        """Whether tables have positions in two dimensions, where the operator takes one."""
        tables = [match.bound[name] for name in match.pattern.one_rank[1:] if name in match.bound]
        return any(_is_grid(self._evaluator.initial(table) or table) for table in tables)

    def _projected_size(self, tensor: Node) -> Node | None:
        """What a constructor gives as the number of channels or features of a projection."""
        projected = stripped(tensor, _REARRANGING)
        if projected.operator != "apply" or projected.operands[0].operator != ATTRIBUTE:
            return None
        made = self._evaluator.initial(projected.operands[0])
        if made is None or made.operator != INSTANCE or not isinstance(made.label, tuple):
            return None
        name, keywords, _ = made.label
        if str(name).rpartition(".")[2] not in ("Linear", "Conv1d", "Conv2d"):
            return None
        count = len(made.operands) - len(keywords)
        given = dict(zip(keywords, made.operands[count:], strict=True))
        named = given.get("out_channels") or given.get("out_features")
        return made.operands[1] if named is None and count > 1 else named

    def _fixes_with(self, replacement: Replacement, place: Place) -> Iterator[Fix]:
        match, record = place.match, self._record
        block = _block_of(place.statement, record.function.node.body) or ()
        moved = frozenset(match.bound[name] for name in bound_names(match, replacement))
        body = record.function.node.body
        kept = {s for s in _arguments_here(record, match) if _reaches(s, place.statement, body)}
        removed = needless_statements(record, place.node, match.consumed, kept=kept)
        more = needless_statements(record, place.node, match.consumed, moved, block)
        parts = _parts_of(moved)
        found = (
            self._replaced(replacement, place, self._choices(place, (removed, more), parts)),
            self._beside(replacement, place, more),
        )
        return filter(None, found)

    def _choices(
        self, place: Place, found: Iterable[frozenset[ast.stmt]], parts: frozenset[Node]
    ) -> Iterator[frozenset[ast.stmt]]:
        """What may go, the most first; in the end what makes parts of the arguments stays."""
        yield from found
        match = place.match
        if match.pattern.exclusive:
            # It wants its parts for itself, so these have to go.
            wanted = {part for part in match.consumed if part.operator in match.pattern.exclusive}
            if not parts.isdisjoint(wanted):
                return
            kept = _binders(self._record, parts - match.consumed)
            yield needless_statements(self._record, place.node, match.consumed, kept=kept)
        else:
            yield frozenset()

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self._text[slice(*self._lines.span(node))]

    def _replaced(
        self, replacement: Replacement, place: Place, choices: Iterable[frozenset[ast.stmt]]
    ) -> Fix | None:
        """The expression is replaced, and what only it needed goes: the first choice that can."""
        node = place.node
        if "#" in self.source(node):
            return None
        for gone in choices:
            removals = self._removals(gone)
            text = self._written(replacement, place, gone)
            if text is not None and removals is not None:
                break
        else:
            return None
        if isinstance(node, ast.AugAssign):
            assigned = f"{self.source(node.target)} = "
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            assert isinstance(target, ast.Subscript)  # its last part was stored here
            assigned = f"{self.source(target.value)} = "
        else:
            assigned = ""
        span = self._with_brackets(self._lines.span(node))
        start = span.start
        line = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        rest = self._text[span.end :].partition("\n")[0].rstrip("\r")
        indent = line[: len(line) - len(line.lstrip())]
        text = assigned + in_short_lines(text, indent, len(line) + len(assigned) + len(rest))
        edits = (Edit(span, text), *removals)
        return self._fix(place.match, replacement, edits, MigrationStyle.NPU)

    def _fix(
        self, match: Match, replacement: Replacement, edits: Sequence[Edit], style: MigrationStyle
    ) -> Fix:
        operator = replacement.operator
        if style is MigrationStyle.NPU:
            title = message("fix.use-operator", operator=operator)
            needs = ImportNeed.PLUGIN_NAME if _names_plugin(replacement) else ImportNeed.NOTHING
        else:
            title = message("fix.use-on-npu", operator=operator)
            needs = ImportNeed.NOTHING
        if replacement.provided is not None:
            title = message("fix.use-provided", title=title, provided=replacement.provided)
        is_of_torch = "torch." in replacement.text.replace("torch_npu.", "") or any(
            RESULT_TYPE in edit.replacement for edit in edits
        )
        module = "torch" if is_of_torch else ""
        if not _names_plugin(replacement):
            module = operator.partition(".")[0]
        applicability = self._applicability(match, replacement)
        return Fix(title, applicability, tuple(edits), style, imports=needs, module=module)

    def _applicability(self, match: Match, replacement: Replacement) -> Applicability:
        """Only a person picks what holds under a condition, unless the code says that it does."""
        if replacement.provided is not None:
            conditions = match.pattern.conditions.items()
            functions = [match.bound[name] for name, kinds in conditions if "activation" in kinds]
            is_default = any(is_silu_by_default(each, self._evaluator) for each in functions)
            is_default |= any("last by default" in kinds for _, kinds in conditions)
            if not is_default or replacement is not match.pattern.replacement:
                return Applicability.MANUAL
        return match.pattern.applicability

    def _with_brackets(self, span: Span) -> Span:
        """A span with the brackets that only group it: a call needs none."""
        before, after = self._text[: span.start], self._text[span.end : span.end + 1]
        if not before.endswith("(") or after != ")":
            return span
        owner = before[-2:-1]
        belongs = owner.isalnum() or owner in ("_", ")", "]")
        return span if belongs else Span(span.start - 1, span.end + 1)

    def _beside(
        self, replacement: Replacement, place: Place, removed: frozenset[ast.stmt]
    ) -> Fix | None:
        """The NPU has a way of its own in front of the code, which stays for other devices."""
        match, statement = place.match, place.statement
        if not (isinstance(statement, ast.Return) and statement.value is place.node):
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
        text = filled(match, replacement, sources)
        device = next(filter(None, map(sources.of, _tensors(match))), None)
        line = self._lines.offset(first.lineno, 0)
        indent = self._text[line : self._lines.span(first).start]
        if text is None or device is None or indent.strip():
            return None
        step = "    " if "\t" not in indent else "\t"
        plugin = f"{indent}{step}import torch_npu\n\n" if _names_plugin(replacement) else ""
        added = (
            f'{indent}if {atom(device)}.device.type == "npu":\n'
            f"{plugin}{indent}{step}return {text}\n"
        )
        edits = (Edit(Span(line, line), added),)
        return self._fix(match, replacement, edits, MigrationStyle.DEVICE_AGNOSTIC)

    def _written(
        self, replacement: Replacement, place: Place, removed: frozenset[ast.stmt]
    ) -> str | None:
        """The new expression, if all that stays still computes what it did."""
        before = {id(node): value for node, value, _ in self._record.places}
        after = self._evaluator.evaluate(
            self._record.function,
            skipped=removed,
            watched=frozenset({place.statement}),
            given={place.node: before[id(place.node)]},
        )
        names = None if after is None else after.names.get(place.statement)
        if after is None or names is None:
            return None
        gone: set[ast.AST] = set()
        for node in (place.node, *removed):
            gone.update(nodes_below(node))
        for node, value, _ in after.places:
            if node not in gone and before.get(id(node)) is not value:
                return None
        return filled(place.match, replacement, Sources(self._record, names, gone, self.source))

    def _removals(self, statements: frozenset[ast.stmt]) -> list[Edit] | None:
        """Edits that take out whole lines; comments behind them stay."""
        edits = []
        for statement in statements:
            block = _block_of(statement, self._record.function.node.body)
            if block is None or all(node in statements for node in block):
                return None
            span = self._lines.span(statement)
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
        return self._without_double_gaps(edits)

    def _without_double_gaps(self, edits: Sequence[Edit]) -> list[Edit]:
        """Where lines go between two empty ones, one of these goes too."""
        kept = sorted(edits, key=lambda edit: edit.span)
        start = -1
        for index, edit in enumerate(kept):
            if index == 0 or kept[index - 1].span.end != edit.span.start:
                start = edit.span.start
            followed = index + 1 < len(kept) and kept[index + 1].span.start == edit.span.end
            gap = self._text.find("\n", edit.span.end) + 1
            is_empty = gap > 0 and not self._text[edit.span.end : gap].strip()
            before = self._text[self._text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
            opens = is_empty and not before.strip()
            if opens and not followed and not edit.replacement:
                kept[index] = Edit(Span(edit.span.start, gap), "")
        return kept


def _names_plugin(replacement: Replacement) -> bool:
    return replacement.operator.startswith("torch_npu.")


def _arguments_here(record: Evaluated, match: Match) -> set[ast.stmt]:
    """Statements that bind names to what the operator is called with."""
    bound = [*match.bound.values(), *(match.outer.values() if match.pattern.exclusive else ())]
    return _binders(record, {node for node in bound if node.operator != CONSTANT})


def _binders(record: Evaluated, wanted: Collection[Node]) -> set[ast.stmt]:
    """Statements that bind names to some values."""
    return {
        statement
        for name, value in record.values.items()
        if value in wanted
        for statement in record.loads.get(name, ())
    }


def _parts_of(values: Iterable[Node]) -> frozenset[Node]:
    """What some values are computed from, near enough to be named."""
    parts = {part for value in values for part in islice(reachable(value), _MOST_PARTS)}
    return frozenset(part for part in parts if part.operator != CONSTANT)


def _reaches(assignment: ast.stmt, statement: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    """Whether a statement comes in the block of an assignment, or in one inside it."""
    block = _block_of(assignment, body) or ()
    return any(each is statement for each in inner_statements(block))


def _has_narrower_values(match: Match) -> bool:
    """Whether queries were cast to float32 before an attention, and values stay as they are."""
    bound = match.bound
    values = next((bound[name] for name in _VALUES if name in bound), None)
    if values is None or "q" not in bound:
        return False
    query, value = (stripped(node, _MOVED) for node in (bound["q"], values))
    is_raised = query.operator == "cast" and str(query.operands[-1].label) == "torch.float32"
    return is_raised and value.operator != "cast"


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


def _is_grid(table: Node) -> bool:
    """Whether a table joins `rows[:, None, :]` and `columns[None, :, :]`.

    One whose positions are laid out in a row again is none.
    """
    pending, seen = [table], {table}
    while pending and len(seen) < _MOST_PARTS:
        node = pending.pop()
        if node.operator in _LAYING_OUT:
            continue
        if node.operator == TUPLE and _places_added(node) >= {0, 1}:
            return True
        new = [operand for operand in node.operands if operand not in seen]
        seen.update(new)
        pending += new
    return False


def _places_added(parts: Node) -> set[int | float | None]:
    """Where tensors that are joined got a dimension of length one."""
    return {number(each.operands[1]) for each in parts.operands if each.operator == "unsqueeze"}


def _shows_no_dimensions(match: Match) -> bool:
    """Whether four dimensions are wanted of what the code computes without showing how many.

    A parameter of the function is taken to have them: its callers show it, and not this code. Of
    query, key, value and mask one is enough, since their ranks go together.
    """
    conditions = match.pattern.conditions
    wanted = [n for name, n in match.bound.items() if "four_dimensions" in conditions.get(name, ())]
    if all(node.operator == INPUT for node in wanted):
        return False
    return not any(rank_of(node) == 4 for node in match.bound.values())


def _tensors(match: Match) -> list[Node]:
    """The bound values that are tensors: no numbers, no functions, and none that may be `None`."""
    conditions = match.pattern.conditions
    others = {name for name, kinds in conditions.items() if {"number", "activation"} & {*kinds}}
    parts = {*match.consumed, *match.bound.values()}
    asked = {part.operands[0] for part in parts if part.operator == "is_none"}
    return [
        node
        for name, node in match.bound.items()
        if name not in others and node.operator != CONSTANT and node not in asked
    ]


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
