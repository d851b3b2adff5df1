"""Writes `torch_npu.npu_fusion_attention` for a call of a GPU attention library."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from npulens.checks.python.libraries.attention_signatures import BOTTOM_RIGHT, TOP_LEFT, Signature
from npulens.checks.python.libraries.attention_values import (
    assigned_values,
    is_number,
    is_plain,
    is_repeatable,
    of_same_shape,
    rank,
)
from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.scopes import Scope, is_bound
from npulens.syntax.values import is_none

OPERATOR = "torch_npu.npu_fusion_attention"

_TRIANGLE = "torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device={}.device), 1)"
"""What sparse modes 2 and 3 want for any length; `True` is masked out."""

_MASKS = {"LowerTriangularMask": TOP_LEFT, "LowerTriangularFromBottomRightMask": BOTTOM_RIGHT}
_HEAD_AXIS = {"BSND": 2, "TND": 1}
_WIDTH = 100


class NotWritableError(Exception):
    """A call that cannot be written for the NPU; holds the name of the argument that is why."""


@dataclass(slots=True)
class Written:
    """A new expression, and what it rests on.

    Attributes:
        arguments: The arguments of the operator, without those of a mask.
        mask: The mask, empty if there is none.
        mode: Its `sparse_mode`.
        condition: On what condition there is a mask, empty if there always is.
        before: Statements that must run first.
        facts: Names of facts in the table that its reader should know.
    """

    arguments: list[str]
    mask: str = ""
    mode: int = 0
    condition: str = ""
    before: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


@dataclass
class Writer:
    """Writes the call of the operator for one call of a library.

    Its arguments come by parameter, `line` is where it is called, and `can_precede` says whether
    statements can be put before its own.
    """

    signature: Signature
    given: Mapping[str, ast.expr]
    scope: Scope
    source: Callable[[ast.AST], str]
    line: int
    can_precede: bool
    _written: Written = field(default_factory=lambda: Written([]))

    def write(self) -> Written:
        """The new call.

        Raises:
            NotWritableError: Some argument has no counterpart, or is not known here.
        """
        layout = "TND" if self.signature.has_lengths else "BSND"
        tensors, like, heads = self._tensors(layout)
        if self.signature.library == "xformers":
            layout, heads = self._layout_of_xformers(layout, heads)
        size = self._size(like, -1)
        self._written.arguments += [*tensors, heads, f'"{layout}"', f"scale={self._scale(size)}"]
        self._add_dropout()
        if layout == "TND":
            self._add_lengths()
        self._add_mask(like)
        deterministic = self.given.get("deterministic")
        if deterministic is not None and ast.unparse(deterministic) not in ("False", "None"):
            self._written.facts.append("deterministic")
        return self._written

    def _tensors(self, layout: str) -> tuple[list[str], ast.expr, str]:
        """Query, key and value; a tensor that has the device of the query; the number of heads."""
        given = self.given
        axis = _HEAD_AXIS[layout]
        index = ", ".join([":"] * axis)  # what is packed lies before the heads
        if "qkv" in given:
            parts = _stacked(given["qkv"], axis)
            if parts is not None:
                return self._separate(parts, axis)
            packed = self._named(given["qkv"], "qkv")
            texts = [f"{self.source(packed)}[{index}, {i}]" for i in range(3)]
            return texts, packed, self._size(packed, axis + 1)
        if "kv" in given:
            query = self._shaped(given["q"], "query")
            parts = _stacked(given["kv"], axis)
            if parts is not None:
                texts = [self.source(part) for part in parts]
            else:
                packed = self._named(given["kv"], "kv")
                texts = [f"{self.source(packed)}[{index}, {i}]" for i in range(2)]
            texts = [self.source(query), *texts]
            return texts, query, self._size(query, axis)
        names = ("q", "k", "v") if "q" in given else ("query", "key", "value")
        return self._separate([given[name] for name in names], axis)

    def _separate(self, parts: Sequence[ast.expr], axis: int) -> tuple[list[str], ast.expr, str]:
        query = self._shaped(parts[0], "query")
        texts = [self.source(query), *(self.source(part) for part in parts[1:])]
        return texts, query, self._size(query, axis)

    def _shaped(self, node: ast.expr, name: str) -> ast.expr:
        """A tensor whose shape can be read; if need be, with a statement that names it."""
        if is_plain(of_same_shape(node)) or self._turned(node) is not None:
            return node
        return self._hoisted(node, name)

    def _named(self, node: ast.expr, name: str) -> ast.expr:
        """A tensor that can be written several times."""
        return node if is_plain(node) else self._hoisted(node, name)

    def _hoisted(self, node: ast.expr, name: str) -> ast.expr:
        self._written.before.append(f"{self._free(name)} = {self.source(node)}")
        if not self.can_precede or "\n" in self.source(node):
            raise NotWritableError("expression")
        # Names made here are in no text: `source` reads them off the node.
        return ast.Name(self._free(name), ast.Load())

    def _free(self, name: str) -> str:
        return name if not is_bound(name, self.scope) else f"attention_{name}"

    def _size(self, node: ast.expr, axis: int) -> str:
        """The size of a tensor along an axis."""
        node = of_same_shape(node)
        turned = self._turned(node)
        if turned is not None:
            inner, axes = turned
            node, axis = of_same_shape(inner), axes.get(axis, axis)
        return f"{self.source(node)}.shape[{axis}]"

    def _turned(self, node: ast.expr) -> tuple[ast.expr, Mapping[int, int]] | None:
        """What `_transposed` says, where tensors have four axes."""
        return None if self.signature.has_lengths else _transposed(node)

    def _layout_of_xformers(self, layout: str, heads: str) -> tuple[str, str]:
        """Three dimensions are one head, which is what BSH means then."""
        dimensions = rank(self.given["query"], self.scope, self.line)
        if dimensions == 3:
            return "BSH", "1"
        if dimensions == 5:
            raise NotWritableError("groups")
        if dimensions is None:
            self._written.facts.append("dimensions")
        return layout, heads

    def _scale(self, size: str) -> str:
        given = self.given.get("softmax_scale", self.given.get("scale"))
        default = f"{size} ** -0.5"
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return default
        text = self.source(given)
        if is_number(given, self.scope):
            return text
        return f"{_operand(given, text)} or {default}"

    def _add_dropout(self) -> None:
        given = self.given.get("dropout_p", self.given.get("p"))
        if given is None or (isinstance(given, ast.Constant) and not given.value):
            return
        text = self.source(given)
        self._written.arguments.append(f"keep_prob=1.0 - {_operand(given, text)}")

    def _add_lengths(self) -> None:
        """The ends of the sequences, on the host."""
        given = self.given
        both = [given.get("cu_seqlens_q", given.get("cu_seqlens"))]
        both.append(given.get("cu_seqlens_k", both[0]))
        texts = [
            f"{_operand(node, self.source(node), beside=False)}[1:].tolist()"
            for node in both
            if node is not None
        ]
        if texts[0] == texts[1] and self.can_precede and "\n" not in texts[0]:
            name = self._free("sequence_ends")
            self._written.before.append(f"{name} = {texts[0]}")
            texts = [name, name]
        names = ("actual_seq_qlen", "actual_seq_kvlen")
        self._written.arguments += [f"{n}={t}" for n, t in zip(names, texts, strict=True)]
        self._written.facts.append("cu_seqlens")

    def _add_mask(self, like: ast.expr) -> None:
        found = self._mask()
        if found is None:
            return
        mode, condition = found
        turned = self._turned(like)
        like = of_same_shape(like if turned is None else turned[0])
        written = self._written
        written.mask, written.mode = _TRIANGLE.format(self.source(like)), mode
        written.facts.append("top_left" if mode == TOP_LEFT else "bottom_right")
        if condition is not None and not is_repeatable(condition):
            raise NotWritableError("causal")
        if condition is not None:
            text = self.source(condition)
            written.condition = f"({text})" if isinstance(condition, ast.IfExp) else text

    def _mask(self) -> tuple[int, ast.expr | None] | None:
        """The `sparse_mode`, and on what condition there is a mask at all."""
        causal = self.given.get("causal")
        if isinstance(causal, ast.Constant):
            return (self.signature.alignment, None) if causal.value else None
        if causal is not None:
            return self.signature.alignment, causal
        bias = self.given.get("attn_bias")
        if bias is None:
            return None
        if isinstance(bias, ast.IfExp) and is_none(bias.orelse):
            mode = self._mode(bias.body)
            return None if mode is None else (mode, bias.test)
        mode = self._mode(bias)
        return None if mode is None else (mode, None)

    def _mode(self, bias: ast.expr) -> int | None:
        """What a mask of xformers is, `None` for no mask."""
        if not isinstance(bias, ast.Call):
            values = assigned_values(bias, self.scope)
            bias = values[0] if len(values) == 1 else bias
        if is_none(bias):
            return None
        for value in resolve(bias, self.scope) if isinstance(bias, ast.Call) else ():
            if isinstance(value, Instance) and value.name.startswith("xformers."):
                mode = _MASKS.get(value.name.rpartition(".")[2])
                if mode is not None:
                    return mode
        raise NotWritableError("attn_bias")


def laid_out(written: Written, column: int, indentation: str) -> str:
    """The new call as text, each argument on a line of its own if one line is too short.

    The call starts at a column of a line with such an indentation.
    """
    arguments = [*written.arguments, *_mask_arguments(written)]
    line = f"{OPERATOR}({', '.join(arguments)})[0]"
    if column + len(line) <= _WIDTH and "\n" not in line:
        return line
    margin = indentation + "    "
    lines = "".join(f"{margin}{argument},\n" for argument in written.arguments)
    for argument in _mask_arguments(written):
        name = argument.partition("=")[0]
        is_short = len(margin) + len(argument) < _WIDTH
        if is_short or not written.condition or name != "atten_mask":
            lines += f"{margin}{argument},\n"
        else:
            parts = (written.mask, f"if {written.condition}", "else None")
            inner = "".join(f"{margin}    {part}\n" for part in parts)
            lines += f"{margin}{name}=(\n{inner}{margin}),\n"
    return f"{OPERATOR}(\n{lines}{indentation})[0]"


def _mask_arguments(written: Written) -> list[str]:
    """The mask and its mode, without which it would not count."""
    if not written.mask:
        return []
    if not written.condition:
        return [f"atten_mask={written.mask}", f"sparse_mode={written.mode}"]
    return [
        f"atten_mask={written.mask} if {written.condition} else None",
        f"sparse_mode={written.mode} if {written.condition} else 0",
    ]


def _stacked(node: ast.expr, axis: int) -> Sequence[ast.expr] | None:
    """The tensors in `torch.stack([q, k, v], dim=2)`."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.stack" and node.args):
        return None
    dimension = [*node.args[1:], *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
    tensors = node.args[0]
    if len(dimension) != 1 or ast.unparse(dimension[0]) not in (str(axis), "-3"):
        return None
    if not isinstance(tensors, (ast.Tuple, ast.List)):
        return None
    return None if any(isinstance(t, ast.Starred) for t in tensors.elts) else tensors.elts


def _transposed(node: ast.expr) -> tuple[ast.expr, Mapping[int, int]] | None:
    """A plain tensor of four axes, two of which are swapped, and where each axis was before."""
    node = of_same_shape(node)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    axes = [a.value for a in node.args if isinstance(a, ast.Constant)]
    inner = node.func.value
    is_swap = node.func.attr == "transpose" and sorted(map(str, axes)) == ["1", "2"]
    if not is_swap or not is_plain(of_same_shape(inner)):
        return None
    return inner, {1: 2, 2: 1}


def _operand(node: ast.expr, text: str, beside: bool = True) -> str:
    """The text of an expression, in brackets where another expression needs them."""
    tight = ast.Name | ast.Attribute | ast.Call | ast.Subscript
    if isinstance(node, tight) or (beside and isinstance(node, ast.Constant)):
        return text
    return f"({text})"
