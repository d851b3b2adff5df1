"""The card that a script for one device names by its number, where each process has its own."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_NUMBERED = re.compile(r"(?:cuda|npu):(?P<index>.*)", re.DOTALL)


class CardChange(NamedTuple):
    """What lets a numbered card be that of the process.

    Attributes:
        node: What is changed.
        text: What it becomes.
        argument: The argument that the node, a call, loses instead; `None` where it is replaced.
    """

    node: ast.expr
    text: str
    argument: ast.expr | None = None


def unnumbered_devices(script: Script) -> list[Edit]:
    """Let the one card that a script names by its number be that of the process.

    Raises:
        UnclearError: Several are named, or one in a way that is not rewritten.
    """
    edits = []
    for node, text, argument in card_changes(script):
        if argument is None or not isinstance(node, ast.Call):
            edits.append(Edit(script.span(node), text))
        else:
            edits.append(_without(script, node, argument))
    return edits


def card_changes(script: Script, nodes: Iterable[ast.AST] | None = None) -> list[CardChange]:
    """The same as changes of nodes.

    Args:
        script: The file.
        nodes: Which nodes of it are looked at; `None` for all.

    Raises:
        UnclearError: Several are named, or one in a way that is not rewritten.
    """
    composed = {
        part
        for node in nodes_below(script.tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    numbers = _Numbers(script)
    changes: list[CardChange] = []
    for node in nodes_below(script.tree) if nodes is None else nodes:
        if isinstance(node, ast.JoinedStr):
            changes += _composed_device(numbers, node)
        elif isinstance(node, ast.BinOp) and _is_kind(node.left):
            numbers.require_the_one(_number_of(node.right))
            changes.append(CardChange(node, f'"{script.cards.device}"'))
            composed.add(node.left)
        elif isinstance(node, ast.Call):
            changes += _numbered_call(numbers, node)
        elif isinstance(node, ast.Constant) and node not in composed:
            changes += _numbered_string(script, node)
    return changes


def _is_kind(node: ast.expr) -> bool:
    """The beginning of `"cuda:%d" % gpu` and `"cuda:" + str(gpu)`."""
    return isinstance(node, ast.Constant) and node.value in ("cuda:", "cuda:%d", "cuda:%s")


def _number_of(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str" and node.args:
        return node.args[0]
    return node


def _composed_device(numbers: "_Numbers", node: ast.JoinedStr) -> Iterator[CardChange]:
    """`f"cuda:{gpu}"`."""
    parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
    if not any(re.search(r"\b(?:cuda|npu):\Z|\A:\d", str(part)) for part in parts):
        return
    last = node.values[-1]
    is_plain = len(node.values) == 2 and parts in (["cuda:"], ["npu:"])
    if not is_plain or not isinstance(last, ast.FormattedValue):
        raise _numbered(node)
    numbers.require_the_one(last.value)
    yield CardChange(node, f'"{numbers.script.cards.device}"')


def _numbered_string(script: Script, node: ast.Constant) -> Iterator[CardChange]:
    """`"cuda:0"`."""
    match = _NUMBERED.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        return
    source = script.source(node)
    if match["index"] != "0" or source[1:-1] != node.value:
        raise _numbered(node)
    yield CardChange(node, f"{source[0]}{script.cards.device}{source[-1]}")


def _numbered_call(numbers: "_Numbers", node: ast.Call) -> Iterator[CardChange]:
    """`x.cuda(0)`, `x.to(0)`, `torch.device("cuda", 0)`, `torch.zeros(2, device=0)`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    named = next((k.value for k in node.keywords if k.arg == "device"), None)
    if name in ("cuda", "npu"):
        card = node.args[0] if node.args else named
        if len(node.args) > 1 or any(k.arg is None for k in node.keywords):
            raise _numbered(node)
        if card is not None:
            numbers.require_the_one(card)
            yield CardChange(node, "", card)
    elif name == "device" and len(node.args) > 1:
        numbers.require_the_one(node.args[1])
        yield CardChange(node, "", node.args[1])
    elif name == "device" and isinstance(node.func, ast.Attribute) and node.args:
        if getattr(node.func.value, "attr", "") in ("cuda", "npu"):
            raise _numbered(node)  # `with torch.cuda.device(0):`
        yield from _renamed_number(numbers, node.args[:1])
    elif name == "to":
        yield from _renamed_number(numbers, [*node.args, *([] if named is None else [named])])
    elif named is not None:
        yield from _renamed_number(numbers, [named])


def _renamed_number(numbers: "_Numbers", devices: Sequence[ast.expr]) -> Iterator[CardChange]:
    """The kind of device where it is a number."""
    for device in devices:
        if numbers.is_number(device):
            numbers.require_the_one(device)
            yield CardChange(device, f'"{numbers.script.cards.device}"')


def _without(script: Script, call: ast.Call, argument: ast.expr) -> Edit:
    """Take an argument away, with the comma beside it."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    own = next(script.span(each) for each in given if argument in (each, _value_of(each)))
    spans = [script.span(each) for each in given]
    behind = [span.start for span in spans if span.start > own.start]
    before = [span.end for span in spans if span.end < own.start]
    if behind:
        gone = Span(own.start, min(behind))
    else:
        gone = Span(max(before, default=own.start), script.span(call).end - 1)
    if "#" in script.lines.text[slice(*gone)]:
        raise _numbered(argument)
    return Edit(gone, "")


def _value_of(argument: ast.expr | ast.keyword) -> ast.expr | None:
    return argument.value if isinstance(argument, ast.keyword) else None


class _Numbers:
    """By which expression a script names its card, which has to be the same all over."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._one: str | None = None
        nodes = list(nodes_below(script.tree))
        stores = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute))]
        self._stored = Counter(script.source(n) for n in stores if isinstance(n.ctx, ast.Store))
        loops = [n.target for n in nodes if isinstance(n, (ast.For, ast.comprehension))]
        self._counted = {
            n.id for each in loops for n in nodes_below(each) if isinstance(n, ast.Name)
        }
        options = [option for node in nodes for option in _options(node)]
        self._options = {name for name, _ in options}
        self._integers = {name for name, is_integer in options if is_integer} | {
            getattr(node.targets[0], "id", "")
            for node in nodes
            if isinstance(node, ast.Assign) and _is_integer(node.value)
        }

    def is_number(self, device: ast.expr) -> bool:
        """Whether a device is given by a number, as far as the script shows it."""
        name = device.attr if isinstance(device, ast.Attribute) else getattr(device, "id", "")
        return _is_integer(device) or bool(name and name in self._integers)

    def require_the_one(self, device: ast.expr) -> None:
        """See that a card is 0 or has a name, and is the only one that the script names.

        Raises:
            UnclearError: It is not.
        """
        source = self.script.source(device)
        if not _is_zero(device) and not self._is_named_once(device, source):
            raise _numbered(device)
        if self._one not in (None, source):
            raise UnclearError(
                device.lineno, "distributed.two-cards", first=self._one, second=source
            )
        self._one = source

    def _is_named_once(self, device: ast.expr, source: str) -> bool:
        """Whether it is a variable that is assigned once, outside of loops, or an option."""
        if isinstance(device, ast.Attribute) and device.attr in self._options:
            return self._stored[source] <= 1
        is_variable = isinstance(device, (ast.Name, ast.Attribute))
        return is_variable and self._stored[source] == 1 and source not in self._counted


def _is_zero(node: ast.expr) -> bool:
    return _is_integer(node) and getattr(node, "value", None) == 0


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _options(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """`parser.add_argument("--gpu", type=int)`: the attribute, and whether it is a number."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
        return
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    is_integer = getattr(given.get("type"), "id", "") == "int"
    for each in (*node.args, given.get("dest")):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value.lstrip("-").replace("-", "_"), is_integer


def _numbered(node: ast.expr) -> UnclearError:
    return UnclearError(node.lineno, "distributed.numbered-card")
