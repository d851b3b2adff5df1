"""Fixes: computing with masks, counting on the device, and batches of few lengths and sizes.

A fix is safe only where the result has the same bits, or the same up to the order of a sum, which
its title says. That needs a mask of the very shape of what it selects from.
"""

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText
from npulens.graphs.definitions import FunctionHere, inner_statements
from npulens.shapes.repairs.buckets import collator_fix, sequence_fix
from npulens.shapes.repairs.totals import may_be_tensor
from npulens.shapes.values.events import Event
from npulens.shapes.values.shape_rules import (
    BOOLEAN_MASK,
    DYNAMIC_OPERATOR,
    HOST_READ,
    LAST_BATCH,
    MASKED_ASSIGNMENT,
    OLD_SCALAR,
    PADDING,
)
from npulens.syntax.meanings import Qualified, qualified_names, resolve_name
from npulens.syntax.values import Name
from npulens.syntax.walking import nodes_below, parents_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_REDUCTIONS = frozenset(
    {"all", "amax", "amin", "any", "count_nonzero", "max", "mean", "min", "norm", "prod", "sum"}
)
_LARGEST_MASK = 110
"""In nodes of the tree, which are compared with each other."""
_PREDICATES = frozenset({"isnan", "isinf", "isfinite", "signbit"})
_REDUCED = re.compile(r"[\s)\\]{0,99}\.\s{0,99}(?:sum|mean)\b")
_LENGTH_OF = re.compile(r"\blen[\s(]{1,99}\Z")
_SIZE_OF = re.compile(r"[\s)\\]{0,99}\.\s{0,99}(?:shape|size)\b")
_NEAR = 110


class Repairs:
    """The fixes for the events of one function, in the text that it is in."""

    def __init__(self, function: FunctionHere, lines: LineMap) -> None:
        self._function = function
        self._lines = lines

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return parents_below(self._function.node)

    @property
    def _statements(self) -> Iterator[ast.stmt]:
        """The statements of the function; a fraction of its nodes."""
        return inner_statements(self._function.node.body)

    def fixes(self, event: Event) -> tuple[Fix, ...]:
        """The fixes for one event, the best first."""
        node = event.node
        found: Iterator[Fix] = iter(())
        if event.rule == BOOLEAN_MASK and isinstance(node, ast.Subscript):
            if _REDUCED.match(self._lines.text, self._lines.span(node).end) is None:
                return ()
            found = self._reduced(node, node.value, node.slice, event)
        elif event.rule == DYNAMIC_OPERATOR and isinstance(node, ast.Call):
            found = self._of_operator(node, event)
        elif event.rule == MASKED_ASSIGNMENT and isinstance(node, ast.Subscript):
            found = self._assigned(node, node.slice, event)
        elif event.rule == OLD_SCALAR and isinstance(node, ast.Subscript):
            found = self._as_item(node, event)
        elif event.rule == HOST_READ and isinstance(node, ast.Call):
            found = self._accumulated(node)
        elif event.rule == LAST_BATCH and isinstance(node, ast.Call):
            found = self._dropped(node)
        elif event.rule == PADDING and isinstance(node, ast.Call):
            found = self._padded_on(node)
        return tuple(found)

    def _as_item(self, node: ast.Subscript, event: Event) -> Iterator[Fix]:
        """`loss.item()` for `loss.data[0]`."""
        assert isinstance(node.value, ast.Attribute)
        safe = Applicability.SAFE if event.is_sure else Applicability.UNSAFE
        yield self._fix(node, f"{self._source(node.value.value)}.item()", safe, "")

    def _of_operator(self, node: ast.Call, event: Event) -> Iterator[Fix]:
        names = qualified_names(node.func, self._function.scope)
        name = names[0] if names else ""
        if name == "torch.masked_select" and len(node.args) == 2:
            yield from self._reduced(node, node.args[0], node.args[1], event)
        elif isinstance(node.func, ast.Attribute) and not name:
            if node.func.attr == "masked_select" and len(node.args) == 1:
                yield from self._reduced(node, node.func.value, node.args[0], event)
            elif node.func.attr == "nonzero" and not node.args:
                yield from self._counted(node, node.func.value)
        elif name in ("torch.nonzero", "torch.argwhere") and len(node.args) == 1:
            yield from self._counted(node, node.args[0])
        elif name == "torch.where":
            selection = self._parents.get(node)
            if isinstance(selection, ast.Subscript) and selection.slice is node:
                if isinstance(selection.ctx, ast.Store):
                    yield from self._assigned(selection, node.args[0], event)
                else:
                    yield from self._reduced(selection, selection.value, node.args[0], event)

    def _reduced(
        self, selection: ast.expr, owner: ast.expr, mask: ast.expr, event: Event
    ) -> Iterator[Fix]:
        """`x[mask].sum()` and `x[mask].mean()`."""
        attribute = self._parents.get(selection)
        if not isinstance(attribute, ast.Attribute) or attribute.value is not selection:
            return
        call = self._parents.get(attribute)
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return
        if isinstance(mask, (ast.Tuple, ast.Slice)) or not self._has_torch(selection):
            return
        if not event.is_whole and self._has_fewer_dimensions(mask, owner):
            return
        x, chosen = self._source(owner), self._source(mask)
        masked = f"torch.where({chosen}, {x}, 0).sum()"
        if attribute.attr == "mean":
            divisor = chosen if isinstance(mask, ast.Name) else f"({chosen})"
            masked = f"{masked} / {divisor}.sum()"
            if isinstance(self._parents.get(call), (ast.BinOp, ast.UnaryOp, ast.Attribute)):
                masked = f"({masked})"
        elif attribute.attr != "sum":
            return
        same = event.is_whole or self._is_mask_of(mask, owner)
        safe = Applicability.SAFE if same else Applicability.UNSAFE
        more = message("shape.order-of-sum" if same else "shape.if-it-fits")
        yield self._fix(call, masked, safe, more)

    def _counted(self, node: ast.Call, condition: ast.expr) -> Iterator[Fix]:
        """`len(torch.nonzero(c))`, `.shape[0]` and `.size(0)` of it."""
        start, end = self._lines.span(node)
        text = self._lines.text
        is_counted = _LENGTH_OF.search(text, max(0, start - _NEAR), start) is not None
        if not is_counted and _SIZE_OF.match(text, end) is None:
            return
        if node.keywords or not self._has_torch(node):
            return
        count = f"int(torch.count_nonzero({self._source(condition)}))"
        parent = self._parents.get(node)
        outer = None if parent is None else self._parents.get(parent)
        match parent, outer:
            case (ast.Call(ast.Name("len")) as whole, _):
                yield self._fix(whole, count, Applicability.SAFE)
            case (ast.Attribute(attr="shape"), ast.Subscript(slice=ast.Constant(0)) as whole):
                yield self._fix(whole, count, Applicability.SAFE)
            case (ast.Attribute(attr="size"), ast.Call(args=[ast.Constant(0)]) as whole):
                yield self._fix(whole, count, Applicability.SAFE)

    def _assigned(self, target: ast.Subscript, mask: ast.expr, event: Event) -> Iterator[Fix]:
        """`x[mask] = value` for a number, and `x[mask] = y[mask]`."""
        assignments = (s for s in self._statements if isinstance(s, ast.Assign))
        statement = next((s for s in assignments if s.targets == [target]), None)
        if statement is None or isinstance(mask, (ast.Tuple, ast.Slice)):
            return
        value = statement.value
        number = value.operand if isinstance(value, ast.UnaryOp) else value
        is_number = isinstance(number, ast.Constant) and isinstance(number.value, (int, float))
        if not is_number and not (
            isinstance(value, ast.Subscript)
            and ast.dump(value.slice) == ast.dump(mask)
            and self._has_torch(target)
        ):
            return
        if not event.is_whole and self._has_fewer_dimensions(mask, target.value):
            return
        x, chosen = self._source(target.value), self._source(mask)
        same = event.is_whole or self._is_mask_of(mask, target.value)
        more = "" if same else message("shape.if-it-fits")
        if isinstance(value, ast.Subscript):
            other = self._source(value.value)
            text = f"{x}.copy_(torch.where({chosen}, {other}, {x}))"
            yield self._fix(statement, text, Applicability.UNSAFE, more)
            return
        fits = _is_int(number) or self._is_of_floats(mask, target.value)
        safe = Applicability.SAFE if same and fits else Applicability.UNSAFE
        text = f"{x}.masked_fill_({chosen}, {self._source(value)})"
        yield self._fix(statement, text, safe, more)

    def _accumulated(self, node: ast.Call) -> Iterator[Fix]:
        """`total += loss.item()` in a loop; the total is a tensor then, and may be one."""
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "item"):
            return
        for statement in self._statements:
            match statement:
                case ast.AugAssign(ast.Name(total), ast.Add(), value) if value is node:
                    if may_be_tensor(total, self._function, self._parents):
                        text = f"{self._source(node.func.value)}.detach()"
                        more = message("shape.total-is-tensor")
                        yield self._fix(node, text, Applicability.UNSAFE, more)

    def _dropped(self, node: ast.Call) -> Iterator[Fix]:
        """`drop_last=True` behind the other arguments; it trains on less, so a person picks it."""
        parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        end = max(self._lines.span(part).end for part in parts)
        title = message("shape.add-drop-last")
        yield Fix(title, Applicability.MANUAL, (Edit(Span(end, end), ", drop_last=True"),))

    def _padded_on(self, node: ast.Call) -> Iterator[Fix]:
        """Batches of a few lengths instead of any."""
        if "torch.nn.utils.rnn.pad_sequence" in qualified_names(node.func, self._function.scope):
            fix = sequence_fix(node, self._lines, self._parents)
        else:
            fix = collator_fix(node, self._lines)
        if fix is not None:
            yield fix

    def _has_fewer_dimensions(self, mask: ast.expr, owner: ast.expr) -> bool:
        """Whether a mask is seen to be smaller, so that computing with it would spread it wrongly.

        `x[:, 0] > 0` for `x`, or what a reduction leaves of it: `(x > 0).any(-1)`.
        """
        assigned = self._assignment(mask)
        made = mask if assigned is None else assigned.value
        if sum(1 for _ in nodes_below(made)) > _LARGEST_MASK:
            return True  # nothing is seen, and nothing is to be offered
        pending: list[ast.AST] = [made]
        whole = ast.dump(owner)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.expr) and ast.dump(node) == whole:
                continue
            if isinstance(node, ast.Subscript) and ast.dump(node.value) == whole:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_reduction = node.func.attr in _REDUCTIONS
                over_some = node.args or any(keyword.arg == "dim" for keyword in node.keywords)
                parts = (part for part in nodes_below(node) if isinstance(part, ast.expr))
                if is_reduction and over_some and any(ast.dump(part) == whole for part in parts):
                    return True
            pending += ast.iter_child_nodes(node)
        return False

    def _assignment(self, name: ast.expr) -> ast.Assign | None:
        """The statement that assigns a name, if that is done once."""
        if not isinstance(name, ast.Name):
            return None
        stored = [node for node in self._stored if node.id == name.id]
        statement = self._parents.get(stored[0]) if len(stored) == 1 else None
        is_plain = isinstance(statement, ast.Assign) and statement.targets == stored
        return statement if isinstance(statement, ast.Assign) and is_plain else None

    @property
    def _stored(self) -> Iterator[ast.Name]:
        names = (node for node in self._parents if isinstance(node, ast.Name))
        return (name for name in names if isinstance(name.ctx, ast.Store))

    def _is_mask_of(self, mask: ast.expr, owner: ast.expr) -> bool:
        """Whether a mask is computed from the very tensor, element by element."""
        made = self._made(mask, owner)
        if isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Invert):
            made = made.operand
        if isinstance(made, ast.Compare) and len(made.ops) == 1:
            return _same(made.left, owner) and isinstance(made.comparators[0], ast.Constant)
        return self._is_of_floats(made, owner)

    def _is_of_floats(self, mask: ast.expr, owner: ast.expr) -> bool:
        """`torch.isnan(x)`, which only numbers with a fraction can be."""
        made = self._made(mask, owner)
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
            return False
        if made.func.attr not in _PREDICATES:
            return False
        return _same(made.args[0] if made.args else made.func.value, owner)

    def _made(self, mask: ast.expr, owner: ast.expr) -> ast.expr:
        """What a name was assigned, if that is clear and what it came from is the same since."""
        statement = self._assignment(mask)
        if statement is None or not isinstance(owner, ast.Name):
            return mask
        changed = any(n.id == owner.id and n.lineno >= statement.lineno for n in self._stored)
        return mask if changed else statement.value

    def _has_torch(self, node: ast.expr) -> bool:
        place = (node.lineno, node.col_offset)
        return Qualified("torch") in resolve_name(Name("torch"), self._function.scope, place)

    def _fix(
        self,
        node: ast.expr | ast.stmt,
        text: str,
        applicability: Applicability,
        more: LocalizedText | str = "",
    ) -> Fix:
        title = message("shape.use", code=" ".join(text.split()), more=more)
        return Fix(title, applicability, (Edit(self._lines.span(node), text),))

    def _source(self, node: ast.expr) -> str:
        return self._lines.text[slice(*self._lines.span(node))]


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _same(first: ast.expr, second: ast.expr) -> bool:
    is_name = isinstance(first, (ast.Name, ast.Attribute))
    return is_name and ast.unparse(first) == ast.unparse(second)
