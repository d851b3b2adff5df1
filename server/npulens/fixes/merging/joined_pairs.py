"""Two linear layers whose outputs are joined for one fused operator, in one plain form.

The form: `self.a(x)` and `self.b(x)` stand in the call of `torch.cat`, or in the statements right
before that do nothing but keep them for it. So nothing runs between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import libcst as cst
from libcst import matchers as m

from npulens.fixes.merging.joined_module import JoinedModule, dotted, found_in
from npulens.fixes.merging.linear_layers import Layer, are_alike, layers_of, target_and_value
from npulens.fixes.merging.merge_refusals import MergeRefusedError
from npulens.fixes.merging.other_uses import ClassGraph, require_no_other_use

OPERATORS = ("torch_npu.npu_swiglu", "torch_npu.npu_geglu")
_CATS = ("torch.cat", "torch.concat", "torch.concatenate")
_MINUS_ONE = m.UnaryOperation(m.Minus(), m.Integer("1"))
_OUTPUT = m.Call(
    func=m.Attribute(value=m.Name("self"), attr=m.Name()),
    args=[m.Arg(m.Name() | m.Attribute(), keyword=None, star="")],
)
_ASSIGNED = m.SimpleStatementLine(
    [m.Assign([m.AssignTarget(m.Name() | m.Tuple())]) | m.AnnAssign(m.Name())]
)
_AROUND = (
    *(cst.Call, cst.Arg, cst.Attribute, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation),
    *(cst.Return, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr),
)
"""What is computed after what stands in it, and always."""


class Join(NamedTuple):
    """A call of `torch.cat` for an operator.

    Attributes:
        call: The call of the operator.
        values: The two that are joined.
    """

    call: cst.Call
    joined: cst.Call
    values: Sequence[cst.BaseExpression]
    line: int


class PlainJoin(NamedTuple):
    """The same in the plain form.

    Attributes:
        outputs: The calls of the two layers.
        given: What both are applied to.
        statement: What joins, if statements before it go.
        gone: Statements that do nothing but keep outputs for it.
    """

    join: Join
    owner: cst.ClassDef
    outputs: Sequence[cst.Call]
    given: cst.BaseExpression
    statement: cst.SimpleStatementLine | None
    gone: Sequence[cst.SimpleStatementLine]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the layers."""
        return tuple(map(_layer_name, self.outputs))


class Pair(NamedTuple):
    """Two layers whose outputs are joined, perhaps in several branches, in the order of `names`."""

    owner: cst.ClassDef
    first: Layer
    second: Layer
    joins: Sequence[PlainJoin]

    @property
    def line(self) -> int:
        """Where they are joined first."""
        return self.joins[0].join.line


class PairFinder:
    """Finds the pairs of a module, and why others that are joined are none."""

    def __init__(self, index: JoinedModule) -> None:
        self._index = index
        self.graph = ClassGraph(index)
        self._layers: dict[cst.ClassDef, Mapping[str, Layer]] = {}

    def found(self, line: int | None) -> Iterator[Pair | MergeRefusedError]:
        """All pairs, or those that are joined at a line."""
        groups: dict[tuple[cst.ClassDef, tuple[str, ...]], list[PlainJoin]] = {}
        for join in _joins(self._index):
            try:
                plain = _plain(self._index, join)
            except MergeRefusedError as error:
                if line in (None, join.line):
                    yield error
                continue
            groups.setdefault((plain.owner, plain.names), []).append(plain)
        for joins in groups.values():
            if line is None or any(each.join.line == line for each in joins):
                try:
                    yield self._pair(joins)
                except MergeRefusedError as error:
                    yield error

    def _pair(self, joins: Sequence[PlainJoin]) -> Pair:
        owner, line = joins[0].owner, joins[0].join.line
        first, second = (self._layer(owner, name, line) for name in joins[0].names)
        self.graph.require_known(line, owner)
        for layer in (first, second):
            if layer.name.startswith("__"):
                raise MergeRefusedError(line, "merging.mangled", name=layer.name)
        if not are_alike(self._index, owner, first, second):
            one, two = first.name, second.name
            raise MergeRefusedError(line, "merging.other-sizes", first=one, second=two)
        later = max(first, second, key=lambda layer: layer.at)
        _require_no_comment(self._index, later.statement.body[0])
        calls = [output.func for each in joins for output in each.outputs]
        relatives = self.graph.relatives(owner)
        for layer in (first, second):
            require_no_other_use(self._index, relatives, layer.name, {layer.target, *calls})
        return Pair(owner, first, second, joins)

    def _layer(self, owner: cst.ClassDef, name: str, line: int) -> Layer:
        if owner not in self._layers:
            self._layers[owner] = {each.name: each for each in layers_of(self._index, owner)}
        layer = self._layers[owner].get(name)
        if layer is None:
            raise MergeRefusedError(line, "merging.not-plain")
        return layer


def _joins(index: JoinedModule) -> Iterator[Join]:
    """Where two names or outputs of layers are joined along the last dimension for an operator."""
    for call in index.calls:
        if not call.args or not index.means(call.func, *OPERATORS):
            continue
        joined = call.args[0].value
        if isinstance(joined, cst.Name):
            joined = index.assigned_calls.get((index.function_of(call), joined.value), joined)
        if not isinstance(joined, cst.Call) or not joined.args:
            continue
        parts = joined.args[0].value
        if isinstance(parts, (cst.Tuple, cst.List)) and index.means(joined.func, *_CATS):
            values = [each.value for each in parts.elements]
            if len(values) == 2 and all(map(_may_be_output, values)):
                yield Join(call, joined, values, index.line(call))


def _may_be_output(value: cst.BaseExpression) -> bool:
    own = m.Call(func=m.Attribute(value=m.Name("self")))
    return m.matches(value, m.Name() | own)


def _plain(index: JoinedModule, join: Join) -> PlainJoin:
    """The plain form of what is joined.

    Raises:
        MergeRefusedError: It has another.
    """
    method, owner = _place(index, join)
    if not _is_last(join.call) or not _is_last(join.joined, required=True):
        raise MergeRefusedError(join.line, "merging.not-plain")
    if join.call.args[0].value is not join.joined:
        raise MergeRefusedError(join.line, "merging.not-plain")
    names = [each.value for each in join.values if isinstance(each, cst.Name)]
    kept, gone = _kept_before(index, join, names)
    if any(index.names[method, name] != 2 for name in names):
        raise MergeRefusedError(join.line, "merging.not-plain")
    values = [kept[e.value] if isinstance(e, cst.Name) else e for e in join.values]
    outputs = [each for each in values if isinstance(each, cst.Call) and m.matches(each, _OUTPUT)]
    given = [each.args[0].value for each in outputs]
    paths = {dotted(each) for each in given}
    layers = {*map(_layer_name, outputs)}
    if (len(outputs), len(paths), len(layers)) != (2, 1, 2) or None in paths:
        raise MergeRefusedError(join.line, "merging.not-plain")
    for node in (join.call, *(statement.body[0] for statement in gone)):
        _require_no_comment(index, node)
    _require_imported(index, join)
    statement = _statement(index, join.call) if gone else None
    return PlainJoin(join, owner, outputs, given[0], statement, gone)


def _place(index: JoinedModule, join: Join) -> tuple[cst.FunctionDef, cst.ClassDef]:
    """The method and the class of a call, which stands in no function or class of the method."""
    inner = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
    above = (each for each in index.above(join.call) if isinstance(each, inner))
    method, owner = next(above, None), next(above, None)
    if not isinstance(method, cst.FunctionDef) or not isinstance(owner, cst.ClassDef):
        raise MergeRefusedError(join.line, "merging.not-plain")
    parameters = [*method.params.posonly_params, *method.params.params]
    if not parameters or parameters[0].name.value != "self":
        raise MergeRefusedError(join.line, "merging.not-plain")
    if owner not in index.module.body:
        raise MergeRefusedError(join.line, "merging.not-at-top", owner=owner.name.value)
    return method, owner


def _is_last(call: cst.Call, required: bool = False) -> bool:
    """Whether a call works along the last dimension, which may be its default."""
    for at, argument in enumerate(call.args):
        is_dimension = argument.keyword.value == "dim" if argument.keyword else at == 1
        if is_dimension:
            return m.matches(argument.value, _MINUS_ONE)
    return not required


def _kept_before(
    index: JoinedModule, join: Join, names: Sequence[str]
) -> tuple[Mapping[str, cst.BaseExpression], Sequence[cst.SimpleStatementLine]]:
    """What names are, and the statements right before that of the call, which keep just these."""
    kept: dict[str, cst.BaseExpression] = {}
    gone: list[cst.SimpleStatementLine] = []
    statement = _statement(index, join.call) if names and _is_computed_first(index, join) else None
    while len(kept) < len(names):
        statement = index.before(statement) if statement is not None else None
        found = _kept(statement)
        if statement is None or not found or not found.keys() <= set(names) - kept.keys():
            raise MergeRefusedError(join.line, "merging.not-plain")
        kept.update(found)
        gone.insert(0, statement)
    return kept, gone


def _is_computed_first(index: JoinedModule, join: Join) -> bool:
    """Whether a statement is the only one of its line and calls nothing before it joins."""
    around: set[cst.CSTNode] = {join.call}
    for each in index.above(join.call):
        if isinstance(each, cst.SimpleStatementLine):
            calls = set(found_in(each, cst.Call, cst.NamedExpr, cst.Await, cst.Yield)) - around
            begin = index.begin(join.call)
            return len(each.body) == 1 and all(index.begin(call) > begin for call in calls)
        if not isinstance(each, _AROUND):
            return False
        around.add(each)
    return False


def _kept(statement: cst.CSTNode | None) -> dict[str, cst.BaseExpression]:
    """What a statement assigns to names, if it does nothing else."""
    if not isinstance(statement, cst.SimpleStatementLine) or not m.matches(statement, _ASSIGNED):
        return {}
    target, value = target_and_value(statement.body[0])
    if value is None:
        return {}
    if not isinstance(target, cst.Tuple):
        return {target.value: value} if isinstance(target, cst.Name) else {}
    if not isinstance(value, cst.Tuple) or len(value.elements) != len(target.elements):
        return {}
    names = [each.value.value for each in target.elements if isinstance(each.value, cst.Name)]
    values = [each.value for each in value.elements]
    return dict(zip(names, values, strict=True)) if len(names) == len(values) else {}


def _statement(index: JoinedModule, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    above = (each for each in index.above(node) if isinstance(each, cst.SimpleStatementLine))
    return next(above, None)


def _layer_name(output: cst.Call) -> str:
    assert isinstance(output.func, cst.Attribute)
    return output.func.attr.value


def _require_no_comment(index: JoinedModule, node: cst.CSTNode) -> None:
    for comment in found_in(node, cst.Comment):
        raise MergeRefusedError(index.line(comment), "merging.comment")


def _require_imported(index: JoinedModule, join: Join) -> None:
    """That the hook, which stands at the top level, has what joins here."""
    root = (dotted(join.joined.func) or "").partition(".")[0]
    if root not in index.imported:
        raise MergeRefusedError(join.line, "merging.no-import", name=root)
