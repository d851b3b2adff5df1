"""Why parameters come out different than on one card with the batch of all cards.

Averages of gradients are the gradients of the whole batch where its loss is the mean of what each
sample adds to it, and each card has as many samples. What computes otherwise is not changed, since
it trains as well; a person should know of it who compares.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.fixes.multi_device.plan import Plan
from npulens.fixes.multi_device.reading import Reading, is_own, last_name
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.walking import nodes_below

_BATCH_NORM = re.compile(r"(?:Lazy)?BatchNorm[123]d")
_WITH_BATCH_NORM = re.compile(
    r"(?:wide_)?res(?:net|next)|densenet|mobilenet|mnasnet|efficientnet|regnet|shufflenet|googlenet"
    r"|inception|vgg\d+_bn|deeplab|fcn_"
)
_UNEQUAL = frozenset({"ignore_index", "weight"})
"""Options by which a mean is one over what counts in a batch."""
_WITH_UNEQUAL = frozenset({"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"})
_OPTION = re.compile(r"reduc|size_average")
_COUNTING = frozenset({"sum", "count_nonzero", "nonzero"})
_KEEPING = frozenset(
    {"float", "double", "to", "cuda", "npu", "clone", "squeeze", "view", "reshape"}
)
_TURNED = frozenset({"t", "T"})
_MOST_STEPS = 300


class Difference(NamedTuple):
    """A reason, and where it stands."""

    path: str
    line: int
    text: LocalizedText


def differences(reading: Reading, plan: Plan) -> Iterator[Difference]:
    """The reasons that a program shows, each once, and what it does not show."""
    found: dict[MessageId, ast.AST] = {}
    if plan.unseen:
        found["distributed.unseen-loader"] = plan.unseen[0]
    normalizing = next(_batch_norms(reading), None)
    if normalizing is not None:
        found["distributed.own-batch-norm"] = normalizing
    if plan.set_tensors:
        found["distributed.set-by-data"] = plan.set_tensors[0].statement
    for name, node in _Loss(reading).reasons():
        found.setdefault(name, node)
    for name, node in found.items():
        line = getattr(node, "lineno", 1)
        yield Difference(reading.script_of(node).path or "", line, message(name))


def _batch_norms(reading: Reading) -> Iterator[ast.AST]:
    """What makes batch norm: the class of PyTorch, or a model of torchvision that has it."""
    for module in reading.program.modules:
        for node in nodes_below(module.tree):
            if not isinstance(node, (ast.Name, ast.Attribute)):
                continue
            name = last_name(node)
            if _BATCH_NORM.fullmatch(name):
                prefix = "torch.nn."
            elif _WITH_BATCH_NORM.match(name):
                prefix = "torchvision.models."
            else:
                continue
            names = qualified_names(node, module.scope)
            if any(each.startswith(prefix) for each in names) and not _is_asked(reading, node):
                yield node


def _is_asked(reading: Reading, node: ast.AST) -> bool:
    """`isinstance(module, nn.BatchNorm2d)`."""
    parent = reading.parents.get(node)
    while isinstance(parent, ast.Tuple):
        parent = reading.parents.get(parent)
    return isinstance(parent, ast.Call) and last_name(parent.func) == "isinstance"


class _Term(NamedTuple):
    """A term of a loss, in the function that it stands in.

    Attributes:
        is_divided: By something, so that a sum may be a mean.
    """

    node: ast.expr
    function: Function | None
    is_divided: bool = False


class _Loss:
    """The terms that losses are added up of, back to the functions that compute them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._assigned: dict[ast.AST, dict[str, list[ast.expr]]] = {}

    def reasons(self) -> Iterator[tuple[MessageId, ast.AST]]:
        pending: list[_Term] = [
            _Term(each.loss, each.site.function) for each in self._reading.training.backwards
        ]
        known: set[ast.expr] = set()
        functions: dict[Function, None] = {}
        while pending and len(known) < _MOST_STEPS:
            term = pending.pop()
            node = term.node
            if node in known:
                continue
            known.add(node)
            yield from self._reasons_at(term)
            is_divided = term.is_divided or _is_division(node)
            pending += (
                _Term(each, term.function, is_divided) for each in self._terms(node, term.function)
            )
            for inner in self._computing(node) if isinstance(node, ast.Call) else ():
                if inner not in functions:
                    functions[inner] = None
                    pending += (_Term(each, inner, is_divided) for each in _returned(inner))
        for each in functions:
            yield from (("distributed.compares-batch", node) for node in _comparing(each))

    def _terms(self, node: ast.expr, function: Function | None) -> Iterator[ast.expr]:
        """What an expression is added up of, or is itself under another name."""
        if isinstance(node, ast.BinOp):
            yield node.left
            if not isinstance(node.op, ast.Div):
                yield node.right
        elif isinstance(node, ast.UnaryOp):
            yield node.operand
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, (ast.Tuple, ast.List)):
            yield from node.elts
        elif isinstance(node, ast.Dict):
            yield from node.values
        elif isinstance(node, ast.Subscript):
            yield node.value
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in (*_KEEPING, "mean"):
                yield node.func.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._values(function, ast.unparse(node))

    def _values(self, function: Function | None, name: str) -> list[ast.expr]:
        """What a name is assigned in a function, or at the top of the script."""
        top = self._reading.script.tree if function is None else function
        if top not in self._assigned:
            found: dict[str, list[ast.expr]] = {}
            for node in nodes_below(top):
                if isinstance(node, (ast.Assign, ast.AugAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for part in (part for target in targets for part in nodes_below(target)):
                        if isinstance(part, (ast.Name, ast.Attribute)):
                            found.setdefault(ast.unparse(part), []).append(node.value)
            self._assigned[top] = found
        return self._assigned[top].get(name, [])

    def _counts(self, divisor: ast.expr, function: Function | None) -> bool:
        """Whether what is divided by depends on the data: a sum of it, or what is found in it."""
        pending, known = [divisor], set[str]()
        while pending:
            for node in nodes_below(pending.pop()):
                if isinstance(node, ast.Call) and last_name(node.func) in _COUNTING:
                    return True
                if isinstance(node, ast.Name) and node.id not in known:
                    known.add(node.id)
                    pending += self._values(function, node.id)
        return False

    def _computing(self, call: ast.Call) -> Iterator[Function]:
        """The functions of the program that compute what a call returns, `forward` among them."""
        reading = self._reading
        scope = reading.program.module_with[call].scope
        if call in reading.flow.places:
            yield from reading.flow.functions_run(call)
            for made in self._makers(call.func):
                for each in reading.flow.classes_made(made):
                    yield from filter(None, [reading.program.method(each, "forward")])
        else:
            meant = reading.program.meant(call.func, scope)
            yield from (each for each in meant if isinstance(each, Function))

    def _makers(self, called: ast.expr) -> Iterator[ast.Call]:
        for value in self._reading.flow.origins(called):
            if isinstance(value.node, ast.Call) and not value.path:
                yield value.node

    def _reasons_at(self, term: "_Term") -> Iterator[tuple[MessageId, ast.AST]]:
        node = term.node
        divisor = node.right if isinstance(node, ast.BinOp) and _is_division(node) else None
        if divisor is not None and self._counts(divisor, term.function):
            yield "distributed.parts-of-unequal-size", node
        if not isinstance(node, ast.Call):
            return
        if _is_whole_sum(node) and not term.is_divided:
            yield "distributed.sums-are-averaged", node
        if _is_mean_of_some(node):
            yield "distributed.parts-of-unequal-size", node
        makers = self._makers(node.func) if node.func in self._reading.flow.places else ()
        for each in (node, *makers):
            given = {keyword.arg: keyword.value for keyword in each.keywords}
            said = [getattr(given.get(n), "value", None) for n in ("reduction", "size_average")]
            if (said[0] == "sum" or said[1] is False) and not term.is_divided:
                yield "distributed.sums-are-averaged", each
            elif _UNEQUAL & given.keys() and last_name(each.func) in _WITH_UNEQUAL:
                yield "distributed.parts-of-unequal-size", each


def _is_division(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _returned(function: Function) -> Iterator[ast.expr]:
    """What a function returns, but for what an option asks it to."""
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, ast.If) or not _OPTION.search(ast.unparse(node.test)):
            pending += ast.iter_child_nodes(node)


def _is_whole_sum(node: ast.Call) -> bool:
    """`x.sum()` and `torch.sum(x)`, of all dimensions."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "sum" or node.keywords:
        return False
    is_torch = getattr(node.func.value, "id", "") == "torch"
    return len(node.args) == (1 if is_torch else 0)


def _is_mean_of_some(node: ast.Call) -> bool:
    """`x[mask].mean()`, `x[y > 0].mean()`."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "mean":
        return False
    if not isinstance(function.value, ast.Subscript):
        return False
    chosen = function.value.slice
    return isinstance(chosen, ast.Compare) or "mask" in last_name(chosen)


def _comparing(function: Function) -> Iterator[ast.AST]:
    """Products of a matrix with itself turned, or with another if its rows are numbered."""
    nodes = [*nodes_below(function)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    numbers = any(last_name(call.func) in ("arange", "eye") for call in calls)
    for node in nodes:
        pair = _product(node)
        if pair is not None and _is_turned(pair[1]):
            turned = pair[1].func if isinstance(pair[1], ast.Call) else pair[1]
            assert isinstance(turned, ast.Attribute)
            if numbers or ast.unparse(turned.value) == ast.unparse(pair[0]):
                yield node


def _product(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("mm", "matmul"):
        return None
    given = [*node.args]
    if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") != "torch":
        given.insert(0, node.func.value)
    return (given[0], given[1]) if len(given) == 2 else None


def _is_turned(node: ast.expr) -> bool:
    """Whether a matrix is turned that is no parameter, such as `self.proxies.t()`."""
    if isinstance(node, ast.Attribute):
        return node.attr in _TURNED and not is_own(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if is_own(node.func.value):
        return False
    numbers = [getattr(each, "value", None) for each in node.args]
    return node.func.attr in _TURNED or (
        node.func.attr in ("transpose", "permute") and sorted(map(str, numbers)) == ["0", "1"]
    )
