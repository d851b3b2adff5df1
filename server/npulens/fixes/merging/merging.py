"""The door: a module with one projection instead of two whose outputs it joins."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from npulens.catalog.message_ids import MessageId
from npulens.fixes.merging.joined_projections import (
    Pair,
    Tree,
    named_elsewhere,
    out_features,
    pairs,
)
from npulens.fixes.scripts import UnclearError

_OBSTACLES: Sequence[tuple[re.Pattern[str], MessageId]] = (
    (re.compile(r"\b(?:xavier|glorot|orthogonal_|fan_(?:out|avg)\b)"), "merging.initialized"),
    (
        re.compile(r"\b(?:spectral_norm|weight_norm|quantize_dynamic|utils\.prune)\b"),
        "merging.weights-used",
    ),
    (re.compile(r"\b(?:Lamb|LAMB|LARS|Adafactor|Muon|Shampoo|SOAP)\b"), "merging.whole-tensors"),
    (
        re.compile(r"\b(?:PreTrainedModel|init_empty_weights|\w+_and_dispatch|LoraConfig)\b"),
        "merging.loaded-otherwise",
    ),
)

Find = Callable[[re.Pattern[str]], tuple[str, int] | None]
"""Where another file of the project has a pattern: its path and a line; `None` if nowhere."""


class Merged(NamedTuple):
    """A module with its pairs merged.

    Attributes:
        text: As it is without any pair that can be merged.
        done: How many were.
        refusals: Why others were not.
    """

    text: str
    done: int
    refusals: Sequence[UnclearError]


def with_merged_projections(text: str, find: Find) -> Merged:
    """Make one layer of each pair, with a hook that joins the weights of older checkpoints.

    The order of the joined weights is that of the joined outputs, so results are the same. Without
    a bias the layer starts with the same random numbers as the two if nothing is made between
    them: `nn.Linear` draws the rows one after the other, within limits that depend on its input.

    Raises:
        UnclearError: The text does not parse.
    """
    try:
        tree = Tree(text)
    except cst.ParserSyntaxError as error:
        raise UnclearError(error.raw_line, "merging.does-not-parse") from error
    found: list[Pair] = []
    refusals: list[UnclearError] = []
    for each in pairs(tree):
        problem = each if isinstance(each, UnclearError) else _problem(each, text, find)
        if problem is not None:
            refusals.append(problem)
        else:
            assert isinstance(each, Pair)
            found.append(each)
    if not found:
        return Merged(text, 0, refusals)
    return Merged(tree.module.visit(_Pass(tree, found)).code, len(found), refusals)


def _problem(pair: Pair, text: str, find: Find) -> UnclearError | None:
    """What elsewhere forbids a merge."""
    for layer in (pair.first, pair.second):
        place = find(named_elsewhere(layer.name, pair.owner.name.value))
        if place is not None:
            names = {"name": layer.name, "path": place[0], "at": place[1]}
            return UnclearError(pair.line, "merging.named-elsewhere", **names)
    if re.search(rf"\b(?:{_name_of(pair)}|{_hook_of(pair)})\b", text):
        return UnclearError(pair.line, "merging.is-taken", name=_name_of(pair))
    for pattern, reason in _OBSTACLES:
        here = pattern.search(text)
        place = ("", text.count("\n", 0, here.start()) + 1) if here is not None else find(pattern)
        if place is not None:
            path = f"{place[0]}:{place[1]}" if place[0] else str(place[1])
            return UnclearError(pair.line, reason, place=path)
    return None


class _Pass(cst.CSTTransformer):
    """Writes one layer where the first of two is made, and its hook behind `__init__`."""

    def __init__(self, tree: Tree, found: Sequence[Pair]) -> None:
        super().__init__()
        self._tree = tree
        self._merged = {id(pair.joined): pair for pair in found}
        self._made: dict[int, Pair] = {}
        self._gone: set[int] = set()
        self._owners: dict[int, list[Pair]] = {}
        for pair in found:
            first, second = sorted((pair.first, pair.second), key=lambda layer: layer.at)
            self._made[id(first.statement)] = pair
            self._gone |= {id(second.statement), *map(id, pair.assigned)}
            self._owners.setdefault(id(pair.owner), []).append(pair)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        pair = self._merged.get(id(original_node))
        if pair is not None:
            return cst.Call(_own(_name_of(pair)), [cst.Arg(pair.given)])
        if original_node.args and id(original_node.args[0].value) in self._merged:
            return _in_one_line(updated_node)
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        if id(original_node) in self._gone:
            return cst.RemoveFromParent()
        pair = self._made.get(id(original_node))
        if pair is None:
            return updated_node
        name = _name_of(pair)
        value = _twice_as_wide(pair.first.call)
        assignment = cst.Assign([cst.AssignTarget(_own(name))], value)
        hook = f"self.register_load_state_dict_pre_hook({_hook_of(pair)})"
        registered = cst.parse_statement(hook, self._tree.module.config_for_parsing)
        assert isinstance(registered, cst.SimpleStatementLine)
        made = updated_node.with_changes(body=[assignment])
        return cst.FlattenSentinel([made, registered])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body: list[cst.BaseStatement] = []
        for original, statement in zip(original_node.body, updated_node.body, strict=True):
            for pair in self._owners.get(id(original), ()):
                body.append(self._hook(pair, _TWO if body else ()))
                comments = [line for line in statement.leading_lines if line.comment]
                statement = statement.with_changes(leading_lines=[*_TWO, *comments])
            body.append(statement)
        return updated_node.with_changes(body=body)

    def _hook(self, pair: Pair, leading: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
        lines = "\n".join(_hook_lines(pair, self._tree.code(pair.joined.func)))
        found = cst.parse_statement(lines, self._tree.module.config_for_parsing)
        return found.with_changes(leading_lines=leading)


_TWO = (cst.EmptyLine(indent=False), cst.EmptyLine(indent=False))


def _own(name: str) -> cst.Attribute:
    return cst.Attribute(cst.Name("self"), cst.Name(name))


def _name_of(pair: Pair) -> str:
    """`gate_proj` and `up_proj` become `gate_up_proj`."""
    first, second = pair.first.name, pair.second.name
    one, two = first.rpartition("_"), second.rpartition("_")
    if one[2] == two[2] and one[0] and two[0]:
        return f"{one[0]}_{two[0]}_{one[2]}"
    return f"{first}_{second}"


def _in_one_line(call: cst.Call) -> cst.Call:
    """A call that needs no lines of its own any more."""
    arguments = [
        argument.with_changes(
            comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")
        )
        for argument in call.args
    ]
    return call.with_changes(args=arguments, whitespace_before_args=cst.SimpleWhitespace(""))


def _hook_of(pair: Pair) -> str:
    return f"_join_{pair.owner.name.value.lower().strip('_')}_{_name_of(pair).strip('_')}"


def _hook_lines(pair: Pair, cat: str) -> Iterator[str]:
    parts = f'("{pair.first.name}", "{pair.second.name}")'
    yield f"def {_hook_of(pair)}(module, state_dict, prefix, *_):"
    yield f'    """Read checkpoints that have {parts[1:-1].replace(", ", " and ")} apart."""'
    yield '    for kind in ("weight", "bias"):'
    yield f'        old = [f"{{prefix}}{{part}}.{{kind}}" for part in {parts}]'
    yield "        if all(key in state_dict for key in old):"
    yield f"            joined = {cat}([state_dict.pop(key) for key in old])"
    yield f'            state_dict[f"{{prefix}}{_name_of(pair)}.{{kind}}"] = joined'


def _twice_as_wide(call: cst.Call) -> cst.Call:
    at = out_features(call)
    assert at is not None
    arguments = [*call.args]
    arguments[at] = arguments[at].with_changes(value=_doubled(arguments[at].value))
    return call.with_changes(args=arguments)


def _doubled(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Integer):
        return cst.Integer(str(2 * value.evaluated_value))
    is_simple = isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    if not is_simple and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(cst.Integer("2"), cst.Multiply(), value)
