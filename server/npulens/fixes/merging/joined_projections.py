"""Two linear layers whose outputs are joined for one fused operator, and what stands in the way."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst
from libcst import matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider, QualifiedNameProvider

from npulens.fixes.scripts import UnclearError

OPERATORS = ("torch_npu.npu_swiglu", "torch_npu.npu_geglu")
_LAST = m.Arg(m.UnaryOperation(m.Minus(), m.Integer("1")), keyword=m.Name("dim"))
_JOINED = m.Call(args=[m.Arg(m.Tuple([m.DoNotCare(), m.DoNotCare()]), keyword=None), _LAST])
_OWN = m.Attribute(value=m.Name("self"), attr=m.Name())
_LAYER = m.SimpleStatementLine(
    [m.Assign([m.AssignTarget(_OWN)], m.Call()) | m.AnnAssign(_OWN, value=m.Call())]
)
_ASSIGNED = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name() | m.Tuple())])])
_PROJECTED = m.Call(func=_OWN, args=[m.Arg(m.Name() | m.Attribute(), keyword=None, star="")])


class Layer(NamedTuple):
    """A linear layer that a class makes: `self.name = nn.Linear(...)` in its `__init__`."""

    name: str
    statement: cst.SimpleStatementLine
    call: cst.Call
    at: int


class Pair(NamedTuple):
    """Two layers whose outputs are joined, in the order of the joined tensor.

    Attributes:
        owner: The class that has them.
        joined: The call of `torch.cat`.
        given: What both are applied to.
        assigned: Statements that do nothing but keep one of the outputs for this call.
        line: Where the call is, counted from 1.
    """

    owner: cst.ClassDef
    first: Layer
    second: Layer
    joined: cst.Call
    given: cst.BaseExpression
    assigned: Sequence[cst.SimpleStatementLine]
    line: int


class Tree:
    """A module with what its names mean."""

    def __init__(self, text: str) -> None:
        self.module = cst.parse_module(text)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        found = wrapper.resolve_many([PositionProvider, QualifiedNameProvider])
        self._names: Mapping[cst.CSTNode, Any] = found[QualifiedNameProvider]
        self._positions: Mapping[cst.CSTNode, Any] = found[PositionProvider]

    def line(self, node: cst.CSTNode) -> int:
        """Where a node begins, counted from 1."""
        return int(self._positions[node].start.line)

    def means(self, node: cst.CSTNode, *names: str) -> bool:
        """Whether a node is one of these by its qualified name, and nothing else."""
        found = self._names.get(node, ())
        found = found() if callable(found) else found
        return bool(found) and all(each.name in names for each in found)

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node)


def pairs(tree: Tree) -> Iterator[Pair | UnclearError]:
    """All pairs of a module, or why two projections that are joined cannot become one."""
    for owner in tree.module.body:
        if not isinstance(owner, cst.ClassDef):
            continue
        for method in _methods(owner):
            for joined in _joined(tree, method):
                found = _pair_or_problem(tree, owner, method, joined)
                if found is not None:
                    yield found


def _pair_or_problem(
    tree: Tree, owner: cst.ClassDef, method: cst.FunctionDef, joined: cst.Call
) -> Pair | UnclearError | None:
    try:
        return _pair(tree, owner, method, joined)
    except UnclearError as error:
        return error


def _methods(owner: cst.ClassDef) -> Iterator[cst.FunctionDef]:
    for statement in owner.body.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement


def _joined(tree: Tree, method: cst.FunctionDef) -> Iterator[cst.Call]:
    for call in m.findall(method, m.Call(args=[m.Arg(_JOINED), m.ZeroOrMore()])):
        assert isinstance(call, cst.Call)
        joined = call.args[0].value
        assert isinstance(joined, cst.Call)
        is_last = any(m.matches(each, _LAST) for each in call.args)
        if is_last and tree.means(call.func, *OPERATORS) and tree.means(joined.func, "torch.cat"):
            yield joined


def _pair(
    tree: Tree, owner: cst.ClassDef, method: cst.FunctionDef, joined: cst.Call
) -> Pair | None:
    """The pair of a call; `None` if what it joins are not two projections of one tensor."""
    line = tree.line(joined)
    parts = joined.args[0].value
    assert isinstance(parts, cst.Tuple)
    before = _before(method, joined)
    assigned: list[cst.SimpleStatementLine] = []
    calls: list[cst.Call] = []
    for element in parts.elements:
        value = element.value
        if isinstance(value, cst.Name) and value.value in before:
            statement, found = before[value.value]
            if len(m.findall(method, m.Name(value.value))) == 2:
                assigned.append(statement)
                value = found
        if not m.matches(value, _PROJECTED):
            return None
        assert isinstance(value, cst.Call)
        calls.append(value)
    one, two = calls
    given = one.args[0].value
    if not given.deep_equals(two.args[0].value):
        return None
    layers = {layer.name: layer for layer in _layers(tree, owner)}
    found_layers = [layers.get(_attribute(call)) for call in calls]
    first, second = found_layers
    if first is None or second is None or first.name == second.name:
        return None
    _require_alike(line, owner, first, second)
    _require_no_other_use(tree, owner, (first, second), calls)
    return Pair(owner, first, second, joined, given, assigned, line)


def _attribute(call: cst.Call) -> str:
    assert isinstance(call.func, cst.Attribute)
    return call.func.attr.value


def _before(
    method: cst.FunctionDef, joined: cst.Call
) -> dict[str, tuple[cst.SimpleStatementLine, cst.BaseExpression]]:
    """What is assigned in the statements right before the one that joins, and nothing between.

    So nothing can change the tensor that both projections are given.
    """
    for block in _blocks(method):
        kept: dict[str, tuple[cst.SimpleStatementLine, cst.BaseExpression]] = {}
        for statement in block:
            if m.findall(statement, m.MatchIfTrue(lambda node: node is joined)):
                if isinstance(statement, cst.SimpleStatementLine):
                    return kept
                break  # it stands in a block of this statement
            found = _projected(statement)
            if not found:
                kept.clear()
            for name, value in found.items():
                assert isinstance(statement, cst.SimpleStatementLine)
                kept[name] = statement, value
    return {}


def _projected(statement: cst.CSTNode) -> dict[str, cst.BaseExpression]:
    """What a statement assigns to names, if all of it are outputs of layers."""
    if not m.matches(statement, _ASSIGNED):
        return {}
    assert isinstance(statement, cst.SimpleStatementLine)
    assignment = statement.body[0]
    assert isinstance(assignment, cst.Assign)
    target, value = assignment.targets[0].target, assignment.value
    targets: list[cst.BaseExpression] = [target]
    values = [value]
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        targets = [element.value for element in target.elements]
        values = [element.value for element in value.elements]
    if len(targets) != len(values) or not all(m.matches(each, _PROJECTED) for each in values):
        return {}
    names = [each.value for each in targets if isinstance(each, cst.Name)]
    return dict(zip(names, values, strict=True)) if len(names) == len(values) else {}


def _blocks(method: cst.FunctionDef) -> Iterator[Sequence[cst.CSTNode]]:
    for block in m.findall(method, m.IndentedBlock()):
        assert isinstance(block, cst.IndentedBlock)
        yield block.body


def _layers(tree: Tree, owner: cst.ClassDef) -> Iterator[Layer]:
    """The linear layers of a class that are made in its `__init__`, each once."""
    for method in _methods(owner):
        if method.name.value != "__init__" or not isinstance(method.body, cst.IndentedBlock):
            continue
        for at, statement in enumerate(method.body.body):
            if not m.matches(statement, _LAYER):
                continue
            assert isinstance(statement, cst.SimpleStatementLine)
            assignment = statement.body[0]
            assert isinstance(assignment, (cst.Assign, cst.AnnAssign))
            target = (
                assignment.targets[0].target
                if isinstance(assignment, cst.Assign)
                else assignment.target
            )
            call = assignment.value
            assert isinstance(target, cst.Attribute) and isinstance(call, cst.Call)
            if tree.means(call.func, "torch.nn.Linear", "torch.nn.modules.linear.Linear"):
                yield Layer(target.attr.value, statement, call, at)


def _require_alike(line: int, owner: cst.ClassDef, first: Layer, second: Layer) -> None:
    """That both have the same sizes, which nothing changes between them."""
    names = {"first": first.name, "second": second.name}
    same = len(first.call.args) == len(second.call.args) and all(
        one.value.deep_equals(two.value)
        and (one.keyword and one.keyword.value) == (two.keyword and two.keyword.value)
        and not (one.star or two.star)
        for one, two in zip(first.call.args, second.call.args, strict=True)
    )
    if not same or out_features(first.call) is None:
        raise UnclearError(line, "merging.other-sizes", **names)
    init = next(method for method in _methods(owner) if method.name.value == "__init__")
    begin, end = sorted((first.at, second.at))
    used = {name.value for a in first.call.args for name in m.findall(a.value, m.Name())}  # type: ignore[attr-defined]
    for statement in init.body.body[begin + 1 : end]:
        for target in m.findall(statement, m.AssignTarget(m.Name()) | m.NamedExpr(m.Name())):
            bound = target.target  # type: ignore[attr-defined]
            if bound.value in used:
                raise UnclearError(line, "merging.other-sizes", **names)


def out_features(call: cst.Call) -> int | None:
    """Which argument of `nn.Linear` says how wide its output is."""
    for at, each in enumerate(call.args):
        if each.keyword is None and at == 1:
            return at
        if each.keyword is not None and each.keyword.value == "out_features":
            return at
    return None


def _require_no_other_use(
    tree: Tree, owner: cst.ClassDef, layers: Sequence[Layer], calls: Sequence[cst.Call]
) -> None:
    """That the file names neither layer besides making and calling it."""
    known = {id(call.func) for call in calls}
    for layer in layers:
        assignment = layer.statement.body[0]
        known.update(
            id(node) for node in m.findall(assignment, m.Attribute(attr=m.Name(layer.name)))
        )
        for node in m.findall(tree.module, m.Attribute(attr=m.Name(layer.name))):
            if id(node) not in known and not _is_of_others(tree, owner, node):
                raise UnclearError(tree.line(node), "merging.other-use", name=layer.name)
        for text in m.findall(tree.module, m.SimpleString() | m.FormattedStringText()):
            if _named_in_text(layer.name).search(text.value):  # type: ignore[attr-defined]
                raise UnclearError(tree.line(text), "merging.other-use", name=layer.name)


def _is_of_others(tree: Tree, owner: cst.ClassDef, node: cst.CSTNode) -> bool:
    """Whether `self.name` stands in a class that has nothing to do with another."""
    if not m.matches(node, _OWN):
        return False
    for other in m.findall(tree.module, m.ClassDef()):
        if other is not owner and m.findall(other, m.MatchIfTrue(lambda each: each is node)):
            assert isinstance(other, cst.ClassDef)
            return not _derives(other, owner) and not _derives(owner, other)
    return False


def _derives(one: cst.ClassDef, other: cst.ClassDef) -> bool:
    return any(m.findall(base, m.Name(other.name.value)) for base in one.bases)


def _named_in_text(name: str) -> re.Pattern[str]:
    """A text that names an attribute as a whole or as a part of a path: `"mlp.up"`."""
    word = re.escape(name)
    return re.compile(rf"(?<![\w ]){word}(?=[.\"'|)*]|$)")


def named_elsewhere(name: str, owner: str) -> re.Pattern[str]:
    """How another file may name an attribute of a class, or derive from that class."""
    attribute = rf"(?<!\bself)\.{re.escape(name)}\b"
    derived = rf"^class \w+\([^)\n]*\b{re.escape(owner)}\b"
    item = rf"^[ \t]*-[ \t]+{re.escape(name)}[ \t]*$"
    text = rf"[\"'.*|(]{re.escape(name)}[\"'.*|)]"
    return re.compile(f"{attribute}|{text}|{derived}|{item}", re.M)
