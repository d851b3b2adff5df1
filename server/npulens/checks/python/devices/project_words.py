"""What `"cuda"` and `"nccl"` mean where nothing that is known takes a device or a backend.

A word is settled only for what the code shows: it names an entry, an attribute or a folder, or it
is one of several words of which others are no devices. Otherwise the place is a question.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from npulens.catalog.messages import message
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Meaning
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS, last_identifier, report_all, report_likely
from npulens.checks.segments.device_uses import is_no_device
from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.scopes import ClassScope, Scope, function_of
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_WORDS = frozenset({"cuda", "nccl"})
_OF_ENTRIES = frozenset({"get", "pop", "setdefault", "move_to_end"})
_OF_ATTRIBUTES = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_OF_PATHS = frozenset({"join", "pjoin", "joinpath", "Path", "PurePath", "PosixPath"})
_SAVED_GRAPH = "findAllNodes("
"""What asks a graph of TorchScript, in which devices are written as they were when it was made."""
_SHOWN = frozenset({("parametrize", "ids")})
"""What pytest calls its cases."""
_OF_LIBRARIES = frozenset({"bootstrap_backend"})
"""Parameters of Transformer Engine, whose adaptor maps the word."""
MEGATRONS = "distributed_backend"
_LOOKED_UP = re.compile(r"(?<![\w.])([\w.]+)\[[\"'](cuda|nccl)[\"']\]")
_MOST_SIDES = 8
"""A comparison has two; one of many says nothing of each."""
_MEMBERSHIP = (ast.In, ast.NotIn)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_IN_COMMANDS = re.compile(r"[ .]")
"""A sentence, or a file and a module that a command starts."""
_DEVICE_TYPES = frozenset({"cpu", "cuda", "mps", "xpu", "hpu", "mlu"})


def entry(node: ast.Subscript, scope: Scope, context: Context) -> None:
    """`state["cuda"]`, and the types in `Literal["io", "cuda"]`."""
    if _is_word(node.slice):
        _settle(node.slice, "own-word", context)
    elif last_identifier(node.value) == "Literal":
        listed = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(map(is_no_device, map(_text, listed))):
            _settle_words(listed, "own-word", context)
        elif not isinstance(scope, ClassScope):
            _settle_words(listed, "type-only", context)  # of a parameter, which nothing checks


def table(node: ast.Dict, scope: Scope, context: Context) -> None:
    """`{"cuda": torch.version.cuda}`: keys are entries, but for those looked up by device."""
    keys = [key for key in node.keys if key is not None]
    if node in context.notes.device_tables:
        for key in filter(_is_word, keys):
            if not context.code.mentions_npu(*keys):
                report_all(key, WORDS[Meaning.DEVICE], None, scope, context, is_sure=False)
    _settle_words(keys, "own-word", context)


def looked_up(
    node: ast.Assign | ast.AnnAssign | ast.Subscript, scope: Scope, context: Context
) -> None:
    """`KERNELS = {"cpu": ..., "cuda": ...}` beside `KERNELS[device.type]`."""
    value: ast.expr | None
    if isinstance(node, ast.Subscript):
        value, name = node.value, ""
        is_by_device = isinstance(value, ast.Dict) and _is_device_name(node.slice)
    else:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value, name = node.value, last_identifier(target) or ""
        is_by_device = name in context.facts.device_tables
    if is_by_device and isinstance(value, ast.Dict):
        keys = {_text(key) for key in value.keys if key is not None}
        if "cuda" in keys and len(keys) > 1 and keys <= _DEVICE_TYPES:
            context.notes.device_tables.add(value)


def _is_device_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    return "device" in (last_identifier(node) or "").lower()


def call(node: ast.Call, scope: Scope, context: Context) -> None:
    """Names of entries, attributes and folders, and what is given to parameters."""
    name = last_identifier(node.func) or ""
    if name in _OF_ENTRIES and isinstance(node.func, ast.Attribute):
        _settle_words(node.args[:1], "own-word", context)
    elif name in _OF_ATTRIBUTES:
        _settle_words(node.args[1:2], "own-word", context)
    elif name in _OF_PATHS:
        _settle_words(node.args, "own-word", context)
    elif name == "getLogger":
        _settle_words(node.args, "text", context)
    elif name == "startswith":
        words = [*_words(node.args)]
        if words and _SAVED_GRAPH in context.function_text(scope):
            _settle_words(words, "no-effect", context)
    for argument in node.args:
        if isinstance(argument, (ast.List, ast.Set)):  # a tuple holds arguments of another call
            _alternatives(argument, context)
    for keyword in node.keywords:
        if (name, keyword.arg) in _SHOWN or keyword.arg == "metavar":
            context.settle_all((keyword.value, *nodes_below(keyword.value)), "text")
        if keyword.arg == "default":  # it is given to the option that is named here
            for argument in node.args:
                _value(_text(argument), keyword.value, context)
        elif keyword.arg != "args":
            _value(keyword.arg or "", keyword.value, context)


def path(node: ast.BinOp, scope: Scope, context: Context) -> None:
    """`here / "cuda"`."""
    if isinstance(node.op, ast.Div):
        _settle_words([node.left, node.right], "own-word", context)


def text(node: ast.JoinedStr, scope: Scope, context: Context) -> None:
    """A piece of a longer text: `f"{name}cuda"`."""
    if len(node.values) > 1:
        _settle_words(node.values, "own-word", context)


def comparison(node: ast.Compare, scope: Scope, context: Context) -> None:
    """`"cuda" in state`, `transport in ("ipc", "nccl")`, `impl == "cuda"`."""
    sides = [node.left, *node.comparators]
    relation, right = node.ops[0], node.comparators[0]
    if isinstance(relation, _MEMBERSHIP) and _is_word(node.left):
        if (context.source(right), _text(node.left)) in _looked_up_words(scope, context):
            _settle(node.left, "own-word", context)
    elif isinstance(relation, _MEMBERSHIP) and isinstance(right, _DISPLAYS):
        _alternatives(right, context)
    names = dict.fromkeys(_name_of(side) for side in sides if not _is_word(side))
    for name in [*names][:_MOST_SIDES]:
        _values(name, sides, context)


def _looked_up_words(scope: Scope, context: Context) -> frozenset[tuple[str, str]]:
    """What is looked up where in a function: `state["cuda"]`."""
    function = function_of(scope.function_parent())
    found = context.notes.looked_up.get(function)
    if found is None:
        text = context.code.text if function is None else context.source(function)
        found = context.notes.looked_up[function] = frozenset(_LOOKED_UP.findall(text))
    return found


def assignment(node: ast.Assign | ast.AnnAssign, scope: Scope, context: Context) -> None:
    """`impl = "cuda"`, `KINDS = ("ref", "cuda")`."""
    if node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        name = last_identifier(target) or ""
        if not isinstance(target, (ast.Tuple, ast.List)):  # `model, where = "small", "cuda"`
            _value(name, node.value, context)
        if name in context.facts.accelerator_names:
            _settle_words([node.value], "ported", context)


def defaults(node: ast.arguments, scope: Scope, context: Context) -> None:
    """`def bias_act(x, impl="cuda")`."""
    for parameter, default in with_defaults(node):
        _value(parameter.arg, default, context)


def entered(node: Function, scope: Scope, context: Context) -> None:
    """`return "cuda"` of a function that also returns words that are no devices."""
    values = [value for value in _returned(node) if isinstance(value, ast.Constant)]
    if node.name in context.facts.own_names or any(map(is_no_device, map(_text, values))):
        _settle_words(values, "own-word", context)


def _returned(function: Function) -> Iterator[ast.expr | None]:
    """What a function returns, and not those in it."""
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            yield node.value
        elif not isinstance(node, (Function, ast.ClassDef, ast.expr)):
            pending += ast.iter_child_nodes(node)


def question(node: ast.Constant, scope: Scope, context: Context) -> None:
    """What no other check has an answer for, which all have looked at what is around it."""
    span = context.span(node)
    if not _is_word(node) or Span(span.start + 1, span.end - 1) in context.reported.spans:
        return  # a word of a command is found without its quotes
    word = WORDS[Meaning.DEVICE if node.value == "cuda" else Meaning.BACKEND]
    reason = context.notes.own_words.get(node)
    if reason is None:
        note = message("check.unknown-word")
        report_likely(node, word, scope, context, note, is_device=False)
        return
    rule = context.catalogue.required(word.rule)
    if span not in context.reported.spans:
        context.report(rule, span, context.source(node), [], settled=Settlement(reason))


def _value(name: str, node: ast.expr, context: Context) -> None:
    """What is given to a name: settled if others given to it, or listed with it, are no devices."""
    _values(name, _parts(node), context)
    if isinstance(node, _DISPLAYS):
        _alternatives(node, context)


def _values(name: str, nodes: Sequence[ast.expr], context: Context) -> None:
    plain = name.lower().lstrip("-").replace("-", "_")
    if name == "__all__":
        _settle_words([part for node in nodes for part in _expressions(node)], "own-word", context)
    if plain in _OF_LIBRARIES or (plain == MEGATRONS and is_of_megatron(context)):
        _settle_words(nodes, "library-devices", context)  # it maps the word by itself
    if context.facts.backend_names.isdisjoint((name, plain)):
        named = [node for node in _words(nodes) if _text(node) in plain]
        _settle_words(named, "own-word", context)  # `NCCL = "nccl"`
    if name in context.facts.own_names or any(map(is_no_device, map(_text, nodes))):
        _settle_words(nodes, "own-word", context)


def is_of_megatron(context: Context) -> bool:
    """Whether a `distributed_backend` is that of Megatron, whose adaptor knows what is meant.

    A copy of Megatron in the project gives it to PyTorch as it is.
    """
    if context.target.project.opens_groups:
        return False
    is_named = "megatron" in context.facts.signs.decisive_words
    return is_named or MEGATRONS not in context.facts.backend_names


def settle_own(node: ast.AST, context: Context) -> None:
    """Settle the words in what a type or a class says is the project's own contract."""
    _settle_words([*_expressions(node)], "own-word", context)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (part for part in nodes_below(node) if isinstance(part, ast.expr))


def _alternatives(node: ast.List | ast.Tuple | ast.Set, context: Context) -> None:
    """`("ref", "cuda")`; no words of a command, nor what is searched in sentences."""
    texts = [_text(element) for element in node.elts]
    for option, value in pairwise(node.elts):
        if _text(option).startswith("--"):
            _values(_text(option), [value], context)
    is_of_words = not any(text.startswith("-") or _IN_COMMANDS.search(text) for text in texts)
    if is_of_words and any(map(is_no_device, texts)):
        _settle_words(node.elts, "own-word", context)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What a value may be."""
    if isinstance(node, ast.IfExp):
        return [*_parts(node.body), *_parts(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [part for value in node.values for part in _parts(value)]
    return [node]


def _name_of(node: ast.expr) -> str:
    """What something is called; of `kind.lower()` and `stage.kind()` it is `kind`."""
    if isinstance(node, ast.Call):
        method = last_identifier(node.func) or ""
        is_of_text = method in ("lower", "strip") and isinstance(node.func, ast.Attribute)
        return _name_of(node.func.value) if is_of_text else method  # type: ignore[attr-defined]
    return last_identifier(node) or ""


def _text(node: ast.AST) -> str:
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def _is_word(node: ast.AST) -> bool:
    return _text(node) in _WORDS


def _words(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    return filter(_is_word, nodes)


def _settle_words(nodes: Sequence[ast.expr], reason: str, context: Context) -> None:
    for node in _words(nodes):
        _settle(node, reason, context)


def _settle(node: ast.expr, reason: str, context: Context) -> None:
    context.notes.own_words.setdefault(node, reason)
