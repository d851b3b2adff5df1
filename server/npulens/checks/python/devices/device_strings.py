"""Strings that name a device or a process-group backend, where one is meant."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Meaning, ParameterEntry, SymbolEntry
from npulens.checks.context import Context
from npulens.checks.device_words import (
    WORDS,
    Word,
    is_word,
    last_identifier,
    literals,
    report_all,
    report_compared,
    report_composed,
    report_likely,
    report_place_in_file,
    report_removed,
    represents,
)
from npulens.checks.entries import report_symbol
from npulens.checks.python.devices.default_devices import arguments_for
from npulens.checks.python.devices.project_words import (
    MEGATRONS,
    is_of_megatron,
    settle_own,
)
from npulens.checks.python.devices.shim_imports import is_unpatched
from npulens.checks.titles import use
from npulens.syntax.bindings import parameters_of, with_defaults
from npulens.syntax.meanings import Local, Qualified, qualified_names, resolve
from npulens.syntax.scopes import ClassScope, Scope, function_of
from npulens.syntax.values import Name, dotted_name, last_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.device_answers import is_from_device_function
from npulens.verdicts.regions import ACCELERATORS

_ACCESSORS = frozenset(
    {
        "get",
        "pop",
        "setdefault",
        "add_argument",
        "add_option",
        "option",
        "getattr",
        "setattr",
        "parametrize",
    }
    | {"DEFINE_string", "DEFINE_enum", "argument", "Option", "Argument", "get_option", "getenv"}
)
_VALUE_KEYWORDS = frozenset({"default", "choices", "const", "default_value", "type", "value"})
_COMPARING = frozenset({"startswith", "endswith", "__eq__"})
_REMOVING = frozenset({"replace", "removeprefix"})
_OF_TEXTS = frozenset(
    (
        *("print", "write", "append", "add", "join", "pjoin", "format", "split", "find", "count"),
        *("encode", "strip", "lstrip", "rstrip", "hasattr", "delattr", "getLogger", "Literal"),
        *("debug", "info", "warning", "warn", "error", "exception", "critical", "log", "echo"),
        *("secho", "ValueError", "RuntimeError"),
    )
)
"""What takes texts for themselves."""
_NOT_FOR_DEVICES = _COMPARING | _REMOVING | _ACCESSORS | _OF_TEXTS
_BACKENDS = "default_device_backend_map"
"""Of `torch.distributed.Backend`; torch_npu enters `hccl` there."""
_KEYS_FOR_CUDA = frozenset({"cuda", "gpu"})
_AVAILABILITY = re.compile(
    r"(?:cuda|accelerator)\.(?:is_available|device_count)|cuda_available|use_cuda"
)

_COLLECTING = frozenset({"append", "add", "extend", "insert"})
_HOST_AND_CUDA = {"cpu", "cuda"}
_DEVICES = frozenset(ACCELERATORS | {"auto", "cpu"})
_QUERY_NAMES = re.compile(
    r"_*(?:is|has|have|supports?|requires?|register|check|skip|assert|only|except)(?=_|[A-Z]|\Z)"
)
"""How names of functions start that check or list devices, and run nothing there."""
_DICT = Name("dict")
_BOOSTING = frozenset({"lightgbm", "xgboost"})
"""Of these `device` is the GPU or the host: they know no NPU.

Sources: dmlc/xgboost, doc/parameter.rst; microsoft/LightGBM, docs/Parameters.rst.
"""


def call(node: ast.Call, scope: Scope, context: Context) -> None:
    """Arguments, and methods of devices: `device.startswith("cuda")`, `.replace("cuda:", "")`."""
    _known_parameters(_inner_call(node, scope), scope, context)
    for keyword in node.keywords:
        for word in _words_of(keyword.arg or ""):
            if _names_word(keyword.arg or "", word, context):
                early = is_unpatched(node.func, scope, context)
                is_sure = dotted_name(node.func) != _DICT or not _may_be_of_boosting(word, context)
                report_all(
                    keyword.value, word, None, scope, context, even_shimmed=early, is_sure=is_sure
                )
                report_composed(keyword.value, word, word.rule, scope, context)
    _own_function(node, scope, context)
    _function_for_devices(node, scope, context)
    _choice_for_people(node, scope, context)
    _named_option(node, scope, context)
    _by_position(node, scope, context)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARING | _REMOVING:
        owner = node.func.value
        for word in WORDS.values():
            if not represents(owner, word, scope):
                continue
            ported = is_from_device_function(owner, scope, context.regions.known)
            if node.func.attr in _COMPARING:
                settled = Settlement("ported", context.span(owner)) if ported else None
                report_compared(node.args, [owner], word, scope, context, settled=settled)
            elif not ported:
                report_removed(node.args, word, scope, context)


def _inner_call(node: ast.Call, scope: Scope) -> ast.Call:
    """`torch.autocast("cuda")` for `partial(torch.autocast, "cuda")`."""
    if last_identifier(node.func) != "partial" or not node.args:
        return node
    if "functools.partial" not in qualified_names(node.func, scope):
        return node
    inner = ast.Call(node.args[0], node.args[1:], node.keywords)
    return ast.copy_location(inner, node)


def comparison(node: ast.Compare, scope: Scope, context: Context) -> None:
    """`device.type == "cuda"`, `backend in ["nccl", "gloo"]`, `"cuda" in str(device)`."""
    sides = [node.left, *node.comparators]
    if any(_is_such_parameter(side, scope, context) for side in sides):
        settle_own(node, context)
        return
    for word in WORDS.values():
        about = [
            s for s in sides if represents(s, word, scope) or _is_named_in_use(s, word, context)
        ]
        if about:
            ported = node not in context.regions.to_port and any(
                is_from_device_function(side, scope, context.regions.known) for side in about
            )
            settled = Settlement("ported", context.span(node)) if ported else None
            is_sure = any(
                represents(side, word, scope)
                or not _is_compared(last_identifier(side) or "", word, context)
                for side in about
            )
            report_compared(sides, about, word, scope, context, settled=settled, is_sure=is_sure)


def _is_named_in_use(node: ast.expr, word: Word, context: Context) -> bool:
    """Whether a name is passed to what takes a device (or backend), or compared with another."""
    name, facts = last_identifier(node), context.facts
    if word.old == "cuda":
        return name in facts.device_names or name in facts.compared_names
    return word.old == "nccl" and name in facts.backend_names


def assignment(
    node: ast.Assign | ast.AnnAssign | ast.NamedExpr, scope: Scope, context: Context
) -> None:
    """`device = "cuda"`, `self.device: str = "cuda"`, `config["device"] = "cuda"`."""
    if node.value is None:
        return
    if isinstance(node, ast.AnnAssign) and _names_its_values(node.annotation, context):
        settle_own(node, context)
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for word in WORDS.values():
        if word.old == "nccl" and _is_of_arguments(scope):
            settle_own(node.value, context)
            continue
        for target in targets:
            for part, value in _paired(target, node.value):
                name = last_identifier(part)
                if not name or _is_named_after_nccl(name, word, context) or _is_device_list(value):
                    continue
                is_sure = _is_named_so(name, word, context)
                if is_sure or _is_compared(name, word, context):
                    if word.old == "nccl" and _looks_backends_up(scope, context):
                        context.settle(context.span(value), "ported")
                        continue
                    report_all(value, word, None, scope, context, is_sure=is_sure)


def _is_of_arguments(scope: Scope) -> bool:
    """Whether a default is that of arguments to pass on: `class InitKwargs: backend = "nccl"`.

    It repeats what a function takes anyway; who makes an instance chooses.
    """
    return isinstance(scope, ClassScope) and scope.node.name.endswith("Kwargs")


def _looks_backends_up(scope: Scope, context: Context) -> bool:
    """Whether a function takes the backend of a device that PyTorch knows: `nccl` is for others."""
    function = function_of(scope)
    if not context.lookups.contains(_BACKENDS) or function is None:
        return False
    return context.lookups.contains_within(_BACKENDS, function)


def _names_its_values(annotation: ast.expr | None, context: Context) -> bool:
    """`Literal["nccl", "gloo"]`: what a public option takes, which callers rely on."""
    if annotation is None or isinstance(annotation, ast.Constant):
        return False
    for part in nodes_below(annotation):
        if isinstance(part, ast.Name) and part.id in context.facts.backend_types:
            return True
        if isinstance(part, ast.Subscript) and last_identifier(part.value) == "Literal":
            values = (n.value for n in nodes_below(part.slice) if isinstance(n, ast.Constant))
            if "nccl" in values:
                return True
    return False


def _is_such_parameter(node: ast.expr, scope: Scope, context: Context) -> bool:
    """Whether a name is a parameter with such a type."""
    function = function_of(scope)
    if not isinstance(node, ast.Name) or function is None:
        return False
    return any(
        parameter.arg == node.id and _names_its_values(parameter.annotation, context)
        for parameter, _ in parameters_of(function.args)
    )


def _is_named_after_nccl(name: str, word: Word, context: Context) -> bool:
    """`NCCL = "nccl"`, which is right by its name if it makes no process group here."""
    is_named = word.old == "nccl" and "nccl" in name.lower()
    return is_named and name not in context.facts.backend_names


def loop(node: ast.For, scope: Scope, context: Context) -> None:
    """`for device in ("cuda", "cpu")`."""
    name = last_identifier(node.target)
    for word in WORDS.values():
        if name and _is_named_so(name, word, context) and not _is_device_list(node.iter):
            report_all(node.iter, word, None, scope, context)


def _is_named_so(name: str, word: Word, context: Context) -> bool:
    """Whether a name says what its value is, or is passed to something that takes a device."""
    if _names_word(name, word, context):
        return True
    names = context.facts.device_names if word.old == "cuda" else context.facts.backend_names
    return name in names


def _is_compared(name: str, word: Word, context: Context) -> bool:
    """Whether a name is compared with another device, which says what it holds, very likely."""
    return word.old == "cuda" and name in context.facts.compared_names


@lru_cache(maxsize=8_192)
def _words_of(name: str) -> tuple[Word, ...]:
    """The words that a name may say its value is; most names occur in a project many times."""
    return tuple(word for word in WORDS.values() if word.identifier.search(name)) or (
        (WORDS[Meaning.BACKEND],) if name.lower() == MEGATRONS else ()
    )


def _names_word(name: str, word: Word, context: Context) -> bool:
    """Whether a name says what its value is; Megatron's `distributed_backend` is `nccl` alone."""
    if not any(each is word for each in _words_of(name)):
        return False
    is_open = context.target.project.opens_groups
    is_of_library = not is_open and "megatron" in context.facts.signs.decisive_words
    return name.lower() != MEGATRONS or not is_of_library


def display(node: ast.List | ast.Tuple | ast.Set, scope: Scope, context: Context) -> None:
    """`("cpu", "cuda")`, whatever takes it: these two words together are devices.

    Not in `Literal["cpu", "cuda"]`, which says what somebody may give. What is compared with them
    is renamed too: all or nothing of it is safe.
    """
    words = {getattr(element, "value", None) for element in node.elts}
    if words == _HOST_AND_CUDA and context.source(node)[:1] in ("(", "[", "{"):
        report_all(node, WORDS[Meaning.DEVICE], None, scope, context)


def collected(node: ast.AST, scope: Scope, context: Context) -> None:
    """`devices.append("cuda")`, `devices += ["cuda"]`."""
    word = WORDS[Meaning.DEVICE]
    for target, value in _collecting(node):
        if _is_named_so(last_identifier(target) or "", word, context):
            report_all(value, word, None, scope, context, is_sure=False)


def collected_if_available(node: ast.If, scope: Scope, context: Context) -> None:
    """`if torch.cuda.is_available(): kinds.append("cuda")`, whatever it is collected in.

    A fix of the condition alone would have the machine of an NPU use CUDA.
    """
    steps = (s.value if isinstance(s, ast.Expr) else s for s in node.body)
    values = [value for step in steps for _, value in _collecting(step)]
    if not values or _AVAILABILITY.search(context.source(node.test)) is None:
        return
    if context.regions.answer(node.test, scope).holds is not False:
        for value in values:
            report_all(value, WORDS[Meaning.DEVICE], None, scope, context)


def _collecting(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What something is added to, and what is added."""
    if isinstance(node, ast.AugAssign):
        yield node.target, node.value
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _COLLECTING
        and node.args
    ):
        yield node.func.value, node.args[-1]


def _is_device_list(node: ast.expr) -> bool:
    """`SUPPORTED_DEVICES = ("cuda", "xpu", "mps")`: what code knows of, not where it runs."""
    return len(_listed(node) & ACCELERATORS) > 1


def _listed(node: ast.expr) -> set[object]:
    """The constants of a list; nothing of what is none."""
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
    return {element.value for element in elements if isinstance(element, ast.Constant)}


def conditional(node: ast.IfExp, scope: Scope, context: Context) -> None:
    """`"cuda" if torch.cuda.is_available() else "cpu"`, whatever takes it."""
    if _AVAILABILITY.search(context.source(node.test)):
        word = WORDS[Meaning.DEVICE]
        report_all(node, word, None, scope, context)


def defaults(node: ast.arguments, scope: Scope, context: Context) -> None:
    """`def train(device="cuda")`."""
    for parameter, default in with_defaults(node):
        if _names_its_values(parameter.annotation, context):
            settle_own(default, context)
            continue
        for word in WORDS.values():
            is_sure = _is_named_so(parameter.arg, word, context)
            if is_sure or _is_compared(parameter.arg, word, context):
                report_all(default, word, None, scope, context, is_sure=is_sure)


def returned(node: ast.Return, scope: Scope, context: Context) -> None:
    """`return "cuda"` in a function that is named after what it returns."""
    function = function_of(scope)
    if node.value is None or function is None:
        return
    if isinstance(node.value, ast.Tuple):
        return  # a record, in which the string may be no more than a label
    for word in WORDS.values():
        if word.identifier.search(function.name):
            report_all(node.value, word, None, scope, context)


def dictionary(node: ast.Dict, scope: Scope, context: Context) -> None:
    """`{"device": "cuda"}`."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            for word in _words_of(key.value):
                if _names_word(key.value, word, context):
                    is_sure = not _may_be_of_boosting(word, context)
                    report_all(value, word, None, scope, context, is_sure=is_sure)
    _places_in_a_file(node, scope, context)
    _backends_by_device(node, scope, context)


def _may_be_of_boosting(word: Word, context: Context) -> bool:
    """Whether a dictionary with a device may be for a library that has one of its own."""
    return word.old == "cuda" and not context.lookups.import_roots.isdisjoint(_BOOSTING)


def _backends_by_device(node: ast.Dict, scope: Scope, context: Context) -> None:
    """`{"cuda": "nccl", "cpu": "gloo"}`, which knows no other device."""
    pairs = {
        key.value: (key, value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    if len(pairs) < len(node.keys) or not pairs.keys() <= _KEYS_FOR_CUDA | {"cpu"}:
        return
    for name in _KEYS_FOR_CUDA & pairs.keys():
        key, value = pairs[name]
        if is_word(value, WORDS[Meaning.BACKEND], scope, context):
            report_all(value, WORDS[Meaning.BACKEND], None, scope, context)
            report_all(key, WORDS[Meaning.DEVICE], None, scope, context)


def _places_in_a_file(node: ast.Dict, scope: Scope, context: Context) -> None:
    """`{"cuda:0": "cuda:1"}`: where tensors were when they were saved, and where they go.

    The first is right for files from a GPU alone.
    """
    word = WORDS[Meaning.DEVICE]
    knows_npu = context.code.mentions_npu(*(key for key in node.keys if key is not None))
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None or not _is_numbered_device(key, word, scope, context):
            continue
        if context.span(key) in context.reported.spans:
            continue
        if knows_npu or (isinstance(value, ast.Constant) and value.value == "cpu"):
            found = literals(key, word, scope, context)
            context.settle_all((part for part, _ in found), "no-effect")
        elif is_word(value, word, scope, context) or context.code.mentions_npu(value):
            report_place_in_file(key, word, scope, context)


def _is_numbered_device(key: ast.expr, word: Word, scope: Scope, context: Context) -> bool:
    """A plain `"cuda"` may name anything, such as a setting."""
    if isinstance(key, ast.Constant):
        return word.anywhere is not None and word.anywhere.match(str(key.value)) is not None
    return is_word(key, word, scope, context)


def case(node: ast.Match, scope: Scope, context: Context) -> None:
    """`match device.type: case "cuda":`."""
    for word in WORDS.values():
        if represents(node.subject, word, scope):
            ported = is_from_device_function(node.subject, scope, context.regions.known)
            for arm, settled in context.regions.cases(node):
                if context.code.mentions_npu(arm.pattern):
                    continue
                pattern = nodes_below(arm.pattern)
                values = [p.value for p in pattern if isinstance(p, ast.MatchValue)]
                if ported:
                    settled = Settlement("ported", context.span(node.subject))
                report_compared(values, [node.subject], word, scope, context, settled=settled)


def constant(node: ast.Constant, scope: Scope, context: Context) -> None:
    """`"cuda:0"` is a device everywhere; so is the name of a CUDA tensor type a type."""
    value = node.value
    if not isinstance(value, str):
        return
    word = WORDS[Meaning.DEVICE]
    if word.anywhere is not None and word.anywhere.match(value):
        report_all(node, word, None, scope, context)
    elif value.startswith("torch.cuda.") and value in context.catalogue.symbols:
        # The shim changes names, not the texts that `tensor.type()` takes and returns.
        _type_string(node, context.catalogue.symbols[value], context)


def named_types(node: ast.Compare, scope: Scope, context: Context) -> None:
    """`t.type() == "torch.cuda.FloatTensor"`, which holds where MindSpeed is in force.

    Source: Ascend/MindSpeed, mindspeed/features_manager/megatron_basic/requirements_basic.py,
    whose patch of `torch.Tensor.type` writes `cuda` for `npu`.
    """
    if context.facts.shim.is_adapted:
        for part in nodes_below(node):
            is_text = isinstance(part, ast.Constant) and isinstance(part.value, str)
            if is_text and str(part.value).startswith("torch.cuda."):  # type: ignore[attr-defined]
                context.settle(context.span(part), "by-adaptor")


def named_patch(node: ast.Call, scope: Scope, context: Context) -> None:
    """`patches.register("torch.cuda.synchronize", mine)`: a name that is replaced by something.

    Mocks of tests replace what the code under test calls, which has another name on the NPU.
    """
    if len(node.args) < 2 or "patch" not in (last_name(node.func) or "").lower():
        return
    name = node.args[0]
    is_name = isinstance(name, ast.Constant) and str(name.value).startswith("torch.cuda.")
    is_mock = any(each.startswith("unittest.") for each in qualified_names(node.func, scope))
    if is_name and not is_mock:
        context.settle(context.span(name), "own-library", node.args[1])


def _type_string(node: ast.Constant, entry: SymbolEntry, context: Context) -> None:
    span = context.span(node)
    if span in context.reported.spans:
        return
    at = context.code.text.find(entry.symbol, *span)
    fixes: list[Fix] = []
    if entry.becomes is not None and at >= 0:
        edit = Edit(Span(at, at + len(entry.symbol)), entry.becomes)
        title, need = use(f'"{entry.becomes}"'), ImportNeed.PLUGIN_BESIDE_TORCH
        fixes.append(Fix(title, Applicability.UNSAFE, (edit,), imports=need))
    report_symbol(span, replace(entry, severity=None), fixes, context)


def formatted(node: ast.JoinedStr, scope: Scope, context: Context) -> None:
    """`f"cuda:{rank}"`."""
    word = WORDS[Meaning.DEVICE]
    if len(node.values) == 2:
        report_all(node, word, None, scope, context)


def concatenated(node: ast.BinOp, scope: Scope, context: Context) -> None:
    """`"cuda:" + str(rank)`, which is a device everywhere if nothing comes behind it."""
    if not isinstance(node.op, ast.Add):
        return
    first = node.left
    if isinstance(first, ast.BinOp):
        context.notes.inner_sums.add(first)
    elif isinstance(first, ast.Constant) and first.value == "cuda:":
        if node in context.notes.inner_sums:
            context.reported.spans.add(context.span(first))  # a text that names a device
        else:
            report_all(node, WORDS[Meaning.DEVICE], None, scope, context)


def _known_parameters(node: ast.Call, scope: Scope, context: Context) -> None:
    parameters: list[ParameterEntry] = []
    if isinstance(node.func, ast.Attribute):
        parameters += context.catalogue.parameters.get(f".{node.func.attr}", ())
    for value in resolve(node.func, scope):
        if isinstance(value, Qualified):
            name = value.name.replace("torch.npu.", "torch.cuda.", 1)
            parameters += context.catalogue.parameters.get(name, ())
    for parameter in parameters:
        early = is_unpatched(node.func, scope, context)
        is_patched = context.by_shim(parameter.shimmed and not early) is not None
        word = WORDS[parameter.meaning]
        for argument in arguments_for(node, parameter):
            report_all(argument, word, parameter, scope, context, even_shimmed=early)
            if not is_patched:
                report_composed(argument, word, parameter.rule.name, scope, context)


def _own_function(node: ast.Call, scope: Scope, context: Context) -> None:
    """Positional arguments of a function of this file whose parameter is named after a device."""
    if not any(isinstance(a, (ast.Constant, ast.JoinedStr, ast.IfExp)) for a in node.args):
        return
    for value in resolve(node.func, scope):
        if isinstance(value, Local):
            for parameter, argument in zip(value.definition.parameters, node.args, strict=False):
                for word in WORDS.values():
                    if word.identifier.search(parameter):
                        report_all(argument, word, None, scope, context)


def _function_for_devices(node: ast.Call, scope: Scope, context: Context) -> None:
    """`to_device(batch, "cuda")`, `build_device_mesh("cuda", (8,))` of another module."""
    name, word = last_identifier(node.func), WORDS[Meaning.DEVICE]
    if name is None or not word.identifier.search(name) or _QUERY_NAMES.match(name):
        return
    for argument in node.args:
        if isinstance(argument, ast.Constant):
            report_all(argument, word, None, scope, context)


def _by_position(node: ast.Call, scope: Scope, context: Context) -> None:
    """`generate(model, "cuda")`, whose parameters are not known: it hardly means anything else."""
    for argument in node.args:
        value = argument.value if isinstance(argument, ast.Constant) else None
        is_one = isinstance(value, str) and value.startswith("cuda")
        if is_one and last_identifier(node.func) not in _NOT_FOR_DEVICES:
            report_likely(argument, WORDS[Meaning.DEVICE], scope, context)


def _choice_for_people(node: ast.Call, scope: Scope, context: Context) -> None:
    """`Dropdown(["cuda", "cpu"], value="cuda")` of a form: a list of devices and one of them."""
    chosen = [k.value for k in node.keywords if k.arg in ("value", "default")]
    if not any(isinstance(value, ast.Constant) and value.value in _DEVICES for value in chosen):
        return
    lists = [a for a in (*node.args, *(k.value for k in node.keywords)) if _lists_devices(a)]
    for value in (*lists, *chosen) if lists else ():
        report_all(value, WORDS[Meaning.DEVICE], None, scope, context)


def _named_option(node: ast.Call, scope: Scope, context: Context) -> None:
    """`add_argument("--device", default="cuda")`, `config.get("device", "cuda")`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in _ACCESSORS:
        return
    if _is_option_of_megatron(node, context):
        context.settle_all(nodes_below(node), "library-devices")
    named = [*node.args, *(k.value for k in node.keywords if k.arg == "dest")]
    keys = [a.value for a in named if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    for word in WORDS.values():
        is_sure = any(word.identifier.search(key) and not word.literal.match(key) for key in keys)
        is_sure = is_sure or (word.old == "cuda" and _chooses_devices(node))
        names = (key.lstrip("-").replace("-", "_") for key in keys)
        if not is_sure and not any(_is_compared(name, word, context) for name in names):
            continue
        values: list[ast.expr] = list(node.args[1:])
        values += [k.value for k in node.keywords if k.arg in _VALUE_KEYWORDS]
        for value in values:
            report_all(value, word, None, scope, context, is_sure=is_sure)


def _is_option_of_megatron(node: ast.Call, context: Context) -> bool:
    """`--distributed-backend`: its adaptor knows what is meant, if nothing here makes a group."""
    keys = [getattr(argument, "value", None) for argument in node.args]
    return "--distributed-backend" in keys and is_of_megatron(context)


def _chooses_devices(node: ast.Call) -> bool:
    """`add_argument("--run-on", choices=["cpu", "cuda"])`: nothing but types of devices."""
    return any(k.arg == "choices" and _lists_devices(k.value) for k in node.keywords)


def _lists_devices(node: ast.expr) -> bool:
    """`["cpu", "cuda"]`: types of devices and no others."""
    return _HOST_AND_CUDA <= _listed(node) <= _DEVICES


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if (
        isinstance(target, (ast.Tuple, ast.List))
        and isinstance(value, (ast.Tuple, ast.List))
        and len(target.elts) == len(value.elts)
    ):
        for part, part_value in zip(target.elts, value.elts, strict=True):
            yield from _paired(part, part_value)
    else:
        yield target, value
