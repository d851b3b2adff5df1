"""Writes one layer instead of two, with a hook that reads checkpoints that have two."""

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from npulens.fixes.merging.joined_module import JoinedModule
from npulens.fixes.merging.joined_pairs import Pair
from npulens.fixes.merging.linear_layers import out_features

_TWO = (cst.EmptyLine(indent=False), cst.EmptyLine(indent=False))


def name_of(pair: Pair) -> str:
    """What the joined layer is called: `gate_proj` and `up_proj` become `gate_up_proj`."""
    first, second = pair.first.name, pair.second.name.lstrip("_")
    one, two = first.rpartition("_"), second.rpartition("_")
    if one[2] == two[2] and one[0] and two[0]:
        return f"{one[0]}_{two[0]}_{one[2]}"
    return f"{first}_{second}"


def hook_of(pair: Pair) -> str:
    """What the function is called that stands before the class."""
    return f"_join_{pair.owner.name.value.strip('_')}_{name_of(pair).strip('_')}"


def with_one_projection(index: JoinedModule, pairs: Sequence[Pair]) -> str:
    """The text of a module with one layer for each pair."""
    return index.module.visit(_Writer(index, pairs)).code


class _Writer(cst.CSTTransformer):
    def __init__(self, index: JoinedModule, pairs: Sequence[Pair]) -> None:
        super().__init__()
        self._index = index
        self._calls: dict[cst.CSTNode, cst.Call] = {}
        self._made: dict[cst.CSTNode, Pair] = {}
        self._gone: set[cst.CSTNode] = set()
        self._leading: dict[cst.CSTNode, Sequence[cst.EmptyLine]] = {}
        self._owners: dict[cst.CSTNode, list[Pair]] = {}
        for pair in pairs:
            self._plan_layers(pair)
            self._plan_calls(pair)
            self._owners.setdefault(pair.owner, []).append(pair)

    def _plan_layers(self, pair: Pair) -> None:
        earlier, later = sorted((pair.first, pair.second), key=lambda layer: layer.at)
        self._made[earlier.statement] = pair
        self._gone.add(later.statement)
        kept = [*earlier.statement.leading_lines, *_comments([later.statement])]
        self._leading[earlier.statement] = kept

    def _plan_calls(self, pair: Pair) -> None:
        for each in pair.joins:
            merged = cst.Call(_own(name_of(pair)), [cst.Arg(each.given)])
            self._calls[each.join.joined] = merged
            self._gone.update(each.gone)
            if each.statement is not None:
                kept = [*each.gone[0].leading_lines, *_comments(each.gone, is_first=True)]
                own = [line for line in each.statement.leading_lines if line.comment]
                self._leading[each.statement] = [*kept, *own]

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if original_node in self._calls:
            return self._calls[original_node]
        if original_node.args and original_node.args[0].value in self._calls:
            return _in_one_line(updated_node)
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        if original_node in self._gone:
            return cst.RemoveFromParent()
        if original_node in self._leading:
            leading = self._leading[original_node]
            updated_node = updated_node.with_changes(leading_lines=leading)
        pair = self._made.get(original_node)
        if pair is None:
            return updated_node
        made = updated_node.with_changes(body=[self._assignment(pair, updated_node.body[0])])
        hook = f"self.register_load_state_dict_pre_hook({hook_of(pair)})"
        return cst.FlattenSentinel([made, self._parsed(hook)])

    def _assignment(self, pair: Pair, made: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(made, (cst.Assign, cst.AnnAssign)) and isinstance(made.value, cst.Call)
        value = _twice_as_wide(made.value)
        if isinstance(made, cst.AnnAssign):
            return made.with_changes(target=_own(name_of(pair)), value=value)
        return made.with_changes(targets=[cst.AssignTarget(_own(name_of(pair)))], value=value)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body: list[cst.BaseStatement] = []
        for original, statement in zip(original_node.body, updated_node.body, strict=True):
            pairs = self._owners.get(original, ())
            body += (self._hook(pair) for pair in pairs)
            if pairs:
                lines = _from_first_comment(statement.leading_lines)
                statement = statement.with_changes(leading_lines=[*_TWO, *lines])
            body.append(statement)
        return updated_node.with_changes(body=body)

    def _hook(self, pair: Pair) -> cst.BaseStatement:
        lines = _hook_lines(pair, self._index.code(pair.joins[0].join.joined.func))
        return self._parsed(*lines).with_changes(leading_lines=_TWO)

    def _parsed(self, *lines: str) -> cst.BaseStatement:
        module = self._index.module
        text = module.default_newline.join(lines).replace("    ", module.default_indent)
        return cst.parse_statement(text, module.config_for_parsing)


def _comments(
    statements: Iterable[cst.SimpleStatementLine], is_first: bool = False
) -> Iterator[cst.EmptyLine]:
    """The comments of statements as lines; those before the first are left out if it `is_first`."""
    for statement in statements:
        if not is_first:
            yield from (line for line in statement.leading_lines if line.comment)
        is_first = False
        if statement.trailing_whitespace.comment:
            yield cst.EmptyLine(comment=statement.trailing_whitespace.comment)


def _from_first_comment(lines: Sequence[cst.EmptyLine]) -> Sequence[cst.EmptyLine]:
    at = next((at for at, line in enumerate(lines) if line.comment), len(lines))
    return lines[at:]


def _own(name: str) -> cst.Attribute:
    return cst.Attribute(cst.Name("self"), cst.Name(name))


def _in_one_line(call: cst.Call) -> cst.Call:
    """A call that needs no lines of its own any more."""
    arguments = [
        argument.with_changes(
            comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")
        )
        for argument in call.args
    ]
    return call.with_changes(args=arguments, whitespace_before_args=cst.SimpleWhitespace(""))


def _hook_lines(pair: Pair, cat: str) -> Iterator[str]:
    first, second = f'"{pair.first.name}"', f'"{pair.second.name}"'
    yield f"def {hook_of(pair)}(module, state_dict, prefix, *_):"
    yield f'    """Read checkpoints that have {first} and {second} apart."""'
    yield '    for kind in ("weight", "bias"):'
    yield f'        old = [f"{{prefix}}{{part}}.{{kind}}" for part in ({first}, {second})]'
    yield "        if all(key in state_dict for key in old):"
    yield f"            joined = {cat}([state_dict.pop(key) for key in old])"
    yield f'            state_dict[f"{{prefix}}{name_of(pair)}.{{kind}}"] = joined'


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
