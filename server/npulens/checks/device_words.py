"""Words of the CUDA world inside strings: recognising them, reporting them, replacing them."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from npulens.catalog.messages import message
from npulens.catalog.model import (
    Applicability,
    Edit,
    Fix,
    ImportNeed,
    LocalizedText,
    Rule,
    Severity,
)
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Meaning, ParameterEntry
from npulens.checks.context import Context
from npulens.checks.replacements import with_plugin
from npulens.checks.shared_rules import DEVICE_COMPARISON
from npulens.checks.titles import use
from npulens.syntax.meanings import Instance, Literal, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import names_in, nodes_below
from npulens.text.spans import Span
from npulens.verdicts.device_answers import is_from_device_function
from npulens.verdicts.regions import ACCELERATORS

_OPENING = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|'''|\"|')")
_STRING_METHODS = frozenset({"startswith", "lower", "strip", "split", "casefold", "removeprefix"})


_OWN_TRANSPORTS = frozenset({"nvshmem", "nixl"})
"""Ways for data that are listed beside NCCL where it is no backend of `torch.distributed`."""

_DECLARATIONS = frozenset({"field", "Field", "Choice", "Option", "Argument"})
"""Of dataclasses, pydantic, click and typer."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the CUDA world and how it is recognised.

    Attributes:
        old: The word, `new`: what it becomes.
        identifier: Names that hold such a value.
        literal: Whole strings that are the word, or start with it and a part filled in later.
        open_end: Strings that the word starts and something else completes.
        composed: Beginnings of strings put together from several parts.
        anywhere: Strings that are unmistakable everywhere.
        rule: Name of the rule; `comparison_rule`: of the one for comparisons.
    """

    old: str
    new: str
    identifier: re.Pattern[str]
    literal: re.Pattern[str]
    open_end: re.Pattern[str]
    composed: re.Pattern[str]
    rule: str
    comparison_rule: str
    anywhere: re.Pattern[str] | None = None


_BACKEND = "nccl-backend"
_ACCELERATOR = "gpu-accelerator"
WORDS = {
    Meaning.DEVICE: Word(
        old="cuda",
        new="npu",
        identifier=re.compile(
            r"device(?!_types)|\Aaccelerator_type\Z|\A-{0,2}dev\Z|\A-{0,2}(?:map_)?location\Z",
            re.IGNORECASE,
        ),
        literal=re.compile(r"\Acuda(?::(?:\d+|%[sdi]|\{\w*\}))?\Z"),
        open_end=re.compile(r"\Acuda:?\Z"),
        composed=re.compile(r"cuda(?::|\Z)"),
        rule="cuda-device-string",
        comparison_rule=DEVICE_COMPARISON,
        anywhere=re.compile(r"cuda:(?:\d+|%[sdi]|\{\w*\})\Z"),
    ),
    Meaning.BACKEND: Word(
        old="nccl",
        new="hccl",
        # Megatron's own option takes `nccl` alone, and its NPU adaptor knows what is meant;
        # userbuffers of Transformer Engine are bootstrapped by backends of its own list.
        identifier=re.compile(
            r"\A(?!(?:--)?distributed[-_]backend\Z|.*bootstrap).*backend", re.IGNORECASE
        ),
        literal=re.compile(r"\A(?:nccl|NCCL)\Z|\A(?:\w+:\w+,)*cuda:nccl(?:,\w+:\w+)*\Z"),
        open_end=re.compile(r"(?!)"),
        composed=re.compile(r"nccl\Z"),
        rule=_BACKEND,
        comparison_rule=_BACKEND,
    ),
    # What Lightning calls devices; elsewhere these strings may mean anything.
    Meaning.ACCELERATOR: Word(
        old="gpu",
        new="npu",
        identifier=re.compile(r"(?!)"),
        literal=re.compile(r"\A(?:gpu|cuda)\Z"),
        open_end=re.compile(r"(?!)"),
        composed=re.compile(r"(?:gpu|cuda)\Z"),
        rule=_ACCELERATOR,
        comparison_rule=_ACCELERATOR,
    ),
}


def represents(node: ast.expr, word: Word, scope: Scope) -> bool:
    """Whether an expression holds a device (or a backend), by its name or by what made it."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return represents(node.value, word, scope)
    name = last_identifier(node)
    if name and word.identifier.search(name):
        return True
    if isinstance(node, ast.Call):
        callee = node.func
        if isinstance(callee, ast.Attribute) and callee.attr in _STRING_METHODS:
            return represents(callee.value, word, scope)
        called = last_identifier(callee)
        if called == "get" and node.args and _matches(word.identifier, node.args[0]):
            return True  # `settings.get("device")`
        if called in ("str", "getattr") and node.args:
            return any(
                represents(argument, word, scope) or _matches(word.identifier, argument)
                for argument in node.args[:2]
            )
        return bool(called and word.identifier.search(called))
    if isinstance(node, ast.Subscript):
        return represents(node.value, word, scope)
    if isinstance(node, (ast.Name, ast.Attribute)) and word.old == "cuda":
        return Instance("torch.device") in resolve(node, scope)
    return False


def last_identifier(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else None
    return None


Found = tuple[ast.expr, Settlement | None]
"""A string, and what settles it."""


def literals(node: ast.expr, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    """The strings that an expression may become and that are, or start with, the word."""
    reader = _LITERALS.get(type(node))
    if reader is not None:
        yield from reader(node, word, scope, context)


def is_word(node: ast.expr, word: Word, scope: Scope, context: Context) -> bool:
    """Whether an expression may become such a string where the NPU comes."""
    return any(settled is None for _, settled in literals(node, word, scope, context))


def _constant(node: ast.expr, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    if _matches(word.literal, node):
        yield node, None


def _joined(node: ast.JoinedStr, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    pattern = word.literal if len(node.values) == 1 else word.open_end
    if node.values and _matches(pattern, node.values[0]):
        yield node, None


_DISPLAYS = (ast.List, ast.Tuple)


def _binary(node: ast.BinOp, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    if isinstance(node.op, ast.Mod):
        yield from literals(node.left, word, scope, context)
    elif isinstance(node.left, _DISPLAYS) or isinstance(node.right, _DISPLAYS):
        for side in (node.left, node.right):  # `["cpu"] + ["cuda"]`
            yield from literals(side, word, scope, context)
    elif isinstance(node.left, ast.BinOp):
        yield from _binary(node.left, word, scope, context)
    elif _matches(word.open_end, node.left):
        yield node.left, None


def _alternatives(
    node: ast.IfExp | ast.BoolOp, word: Word, scope: Scope, context: Context
) -> Iterator[Found]:
    """The values of `a if test else b` and `a or b`, with what settles the arms."""
    if isinstance(node, ast.BoolOp):
        values = context.regions.operands(node, scope)
    else:
        values = context.regions.choices(node, scope)[1:]
    for value, settled in values:
        assert isinstance(value, ast.expr)
        for literal, inner in literals(value, word, scope, context):
            yield literal, settled or inner


def _call(node: ast.Call, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    """`"cuda:{}".format(rank)`, and what declares a default or the choices of an option."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield from literals(node.func.value, word, scope, context)
    elif last_identifier(node.func) in _DECLARATIONS:
        defaults = [k.value for k in node.keywords if k.arg in ("default", "default_factory")]
        for value in [*node.args[:1], *defaults]:
            yield from literals(value, word, scope, context)


def _lambda(node: ast.Lambda, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    yield from literals(node.body, word, scope, context)


def _elements(
    node: ast.List | ast.Tuple | ast.Set, word: Word, scope: Scope, context: Context
) -> Iterator[Found]:
    """A list of devices: settled if the one of the NPU is among them, or all are alike."""
    values = {element.value for element in node.elts if isinstance(element, ast.Constant)}
    settled = None
    if any(isinstance(n, ast.Constant) and n.value in _OWN_TRANSPORTS for n in nodes_below(node)):
        # Choices of a service of one's own, of which none is a backend of PyTorch.
        settled = Settlement("own-library", context.span(node))
    elif word.new in values:
        settled = Settlement("npu-way-beside", context.span(node))
    elif values in ({"cuda", "rocm"}, {"cuda", "hip"}):
        settled = Settlement("cuda-alone", context.span(node))
    for element in node.elts:
        for literal, inner in literals(element, word, scope, context):
            yield literal, settled or inner


def _by_name(node: ast.Dict, word: Word, scope: Scope, context: Context) -> Iterator[Found]:
    """The devices of `device_map = {"": "cuda"}`; a table by device says what each one is for."""
    if any(isinstance(key, ast.Constant) and key.value in ACCELERATORS for key in node.keys):
        return
    values = [value for value in node.values if isinstance(value, ast.Constant)]
    has_npu = any(value.value == word.new for value in values)
    settled = Settlement("npu-way-beside", context.span(node)) if has_npu else None
    for value in values:
        yield from ((found, settled) for found, _ in literals(value, word, scope, context))


_Reader = Callable[[Any, Word, Scope, Context], Iterator[Found]]
_LITERALS: dict[type[ast.expr], _Reader] = {
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.BinOp: _binary,
    ast.IfExp: _alternatives,
    ast.BoolOp: _alternatives,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.List: _elements,
    ast.Tuple: _elements,
    ast.Set: _elements,
    ast.Dict: _by_name,
}


def _matches(pattern: re.Pattern[str], node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.search(node.value) is not None
    )


def _falls_back(node: ast.expr, scope: Scope, context: Context) -> bool:
    """`get_device() or "cuda"`: the first operand knows the NPU."""
    return (
        isinstance(node, ast.BoolOp)
        and isinstance(node.op, ast.Or)
        and is_from_device_function(node.values[0], scope, context.regions.known)
    )


def report_composed(
    node: ast.expr, word: Word, rule_name: str, scope: Scope, context: Context
) -> None:
    """`f"{PREFIX}:{rank}"` where PREFIX is "cuda": the word is elsewhere, so there is no edit."""
    parts: tuple[type[ast.expr], ...] = (ast.JoinedStr, ast.BinOp, ast.Call)
    if word is WORDS[Meaning.ACCELERATOR]:
        parts = (ast.Name, ast.Attribute)  # an assignment does not show what it is
        if last_identifier(node) == "accelerator":
            return  # but here, so what it is given is a finding of its own
    elif context.facts.shim.is_active:
        return
    if not isinstance(node, parts):
        return
    if any(literals(node, word, scope, context)) or word.new in context.source(node):
        return
    if any(word.identifier.search(name) for name in names_in(node)):
        return  # what it is made of is a finding of its own
    rule = context.catalogue.required(rule_name)
    for value in resolve(node, scope):
        if isinstance(value, Literal) and word.composed.match(value.text):
            replacement = value.text.replace(word.old, word.new, 1)
            context.report(rule, context.span(node), value.text, [], replacement=replacement)
            context.reported.spans.update(
                context.span(part) for part in nodes_below(node) if isinstance(part, ast.Constant)
            )
            return


def report_compared(
    nodes: Iterable[ast.expr],
    compared: Sequence[ast.expr],
    word: Word,
    scope: Scope,
    context: Context,
    *,
    settled: Settlement | None = None,
    is_sure: bool = True,
) -> None:
    """The word in a comparison, or in a pattern of `match`.

    `nodes` may be the word, and `is_sure` says whether what is `compared` with it is a device for
    certain.
    """
    # With the device renamed throughout, the comparison decides as it did.
    fix = Applicability.SAFE if is_sure else Applicability.UNSAFE
    if context.facts.shim.is_active and word is WORDS[Meaning.DEVICE]:
        # The shim renames devices, not texts.
        if any(_is_text(node, word, scope) for node in compared):
            settled = settled or context.by_shim()
        if not any(map(_is_device_type, compared)):
            fix = Applicability.UNSAFE
    finding = _Finding(word, context.catalogue.required(word.comparison_rule), fix)
    for node in nodes:
        is_beginning = _matches(word.open_end, node)
        found = [(node, None)] if is_beginning else literals(node, word, scope, context)
        for literal, inner in found:
            _report(literal, finding, scope, context, settled or inner)


def _is_text(node: ast.expr, word: Word, scope: Scope) -> bool:
    """Whether something is a text with the word, as far as the code shows it."""
    return any(
        isinstance(value, Literal) and word.composed.match(value.text) is not None
        for value in resolve(node, scope)
    )


def _is_device_type(node: ast.expr) -> bool:
    """`x.device.type`, `str(device)`: what a device says of itself."""
    return any(
        getattr(part, "attr", "") == "type" or getattr(part, "id", "") == "str"
        for part in nodes_below(node)
    )


def report_removed(nodes: Sequence[ast.expr], word: Word, scope: Scope, context: Context) -> None:
    """The word where it is taken out of a text: `device.replace("cuda:", "")`."""
    if context.facts.shim.is_active:
        return
    has_npu = context.code.mentions_npu(*nodes)
    settled = Settlement("npu-way-beside", context.span(nodes[-1])) if has_npu else None
    finding = _Finding(word, context.catalogue.required(word.rule), Applicability.SAFE)
    if nodes and _matches(word.open_end, nodes[0]):
        _report(nodes[0], finding, scope, context, settled)


def report_all(
    node: ast.expr,
    word: Word,
    parameter: ParameterEntry | None,
    scope: Scope,
    context: Context,
    *,
    even_shimmed: bool = False,
    is_sure: bool = True,
) -> None:
    """Report each string of an expression that is the word, unless it considers the NPU too.

    `parameter` is what the tables say of the parameter that it is passed to. If no device is meant
    for certain (`is_sure`), the fix is unsafe. With `even_shimmed` an active shim does not matter.
    """
    is_patched = parameter.shimmed if parameter is not None else not even_shimmed
    shim = context.by_shim(is_patched and not even_shimmed)
    rule = parameter.rule if parameter is not None else context.catalogue.required(word.rule)
    ported = Settlement("ported", context.span(node)) if _falls_back(node, scope, context) else None
    note = parameter.note if parameter is not None else None
    fix = parameter.fix if parameter is not None else Applicability.SAFE
    fix = fix if is_sure else Applicability.UNSAFE
    for literal, settled in literals(node, word, scope, context):
        _report(literal, _Finding(word, rule, fix, note), scope, context, ported or settled or shim)


def report_place_in_file(node: ast.expr, word: Word, scope: Scope, context: Context) -> None:
    """The device that tensors of a file were saved from: `map_location={"cuda:0": "cuda:1"}`."""
    if context.facts.shim.is_active:
        return
    rule = context.catalogue.required(word.rule)
    info, unsafe = Severity.INFO, Applicability.UNSAFE
    finding = _Finding(word, rule, unsafe, message("check.device-of-a-file"), severity=info)
    for literal, settled in literals(node, word, scope, context):
        _report(literal, finding, scope, context, settled)


def report_likely(
    node: ast.expr,
    word: Word,
    scope: Scope,
    context: Context,
    note: LocalizedText | None = None,
    *,
    is_device: bool = True,
) -> None:
    """Report the word as information, where it means a device very likely or for some only.

    If no note is given, it says that the receiver is not known. What is not even known to be a
    device is not patched by `transfer_to_npu` either, and no command replaces it.
    """
    if not _matches(word.literal, node):
        return
    rule = context.catalogue.required(word.rule)
    note = note or message("check.unknown-receiver")
    applicability = Applicability.UNSAFE if is_device else Applicability.MANUAL
    finding = _Finding(word, rule, applicability, note, severity=Severity.INFO)
    _report(node, finding, scope, context, context.by_shim(is_device))


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is reported of a literal.

    Attributes:
        severity: The severity if it is not that of the rule.
    """

    word: Word
    rule: Rule
    applicability: Applicability
    note: LocalizedText | None = None
    severity: Severity | None = None


def _report(
    node: ast.expr,
    finding: _Finding,
    scope: Scope,
    context: Context,
    settled: Settlement | None,
) -> None:
    span = context.span(node)
    if span in context.reported.spans:
        return
    source = context.code.text[slice(*span)]
    opening = _OPENING.match(source)
    fixes: list[Fix] = []
    replacement = source
    if opening is not None:
        edits, replacement = _replaced_words(source, span, finding.word)
        if finding.applicability is Applicability.MANUAL:
            edits = []
        if edits:
            all_edits, need = with_plugin(
                tuple(edits), ImportNeed.PLUGIN_BESIDE_TORCH, scope, context
            )
            fixes.append(Fix(use(replacement), finding.applicability, all_edits, imports=need))
    context.report(
        finding.rule,
        span,
        source,
        fixes,
        replacement=replacement,
        note=finding.note,
        severity=finding.severity,
        settled=settled,
    )


def _replaced_words(source: str, span: Span, word: Word) -> tuple[list[Edit], str]:
    """The edits inside one literal, and the literal they make."""
    words = {word.old: word.new}
    if word.old == "nccl":
        words |= {"cuda": "npu", "NCCL": "HCCL"}  # PyTorch takes names of backends in capitals, too
    pattern = re.compile(r"(?<![A-Za-z])(?:" + "|".join(words) + r")(?![A-Za-z])")
    end = source.find("{") if word.old == "cuda" and "{" in source else len(source)
    matches = [match for match in pattern.finditer(source, 0, end) if match.start() > 0]
    edits = [
        Edit(Span(span.start + m.start(), span.start + m.end()), words[m.group()]) for m in matches
    ]
    text = source
    for match in reversed(matches):
        text = text[: match.start()] + words[match.group()] + text[match.end() :]
    return edits, text
