"""Strings that name a device or a process-group backend, where one is meant."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, MigrationStyle, Rule
from npulens.catalog.tables import Meaning, ParameterEntry
from npulens.checks.context import Context
from npulens.checks.methods import ACCELERATOR
from npulens.checks.symbols import ACCELERATOR_SINCE, local_import
from npulens.checks.titles import use
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import Instance, Literal, Local, Qualified, Scope, resolve, resolve_name
from npulens.syntax.values import Name
from npulens.text.spans import Span

_OPENING = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|'''|\"|')")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the CUDA world and how it is recognised.

    Attributes:
        old: The word, `new`: what it becomes.
        identifier: Names that hold such a value.
        literal: Whole strings that are the word, or start with it and a part filled in later.
        open_end: Strings that the word starts and something else completes.
        composed: Beginnings of strings put together from several parts.
        anywhere: Strings that are unmistakable wherever they stand.
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


_WORDS = {
    Meaning.DEVICE: _Word(
        old="cuda",
        new="npu",
        identifier=re.compile(r"device|\Adev\Z|\Amap_location\Z", re.IGNORECASE),
        literal=re.compile(r"cuda(?::(?:\d+|%[sdi]|\{\w*\}))?\Z"),
        open_end=re.compile(r"cuda:?\Z"),
        composed=re.compile(r"cuda(?::|\Z)"),
        rule="cuda-device-string",
        comparison_rule="cuda-device-comparison",
        anywhere=re.compile(r"cuda:(?:\d+|%[sdi]|\{\w*\})\Z"),
    ),
    Meaning.BACKEND: _Word(
        old="nccl",
        new="hccl",
        identifier=re.compile(r"backend", re.IGNORECASE),
        literal=re.compile(r"nccl\Z|(?:\w+:\w+,)*cuda:nccl(?:,\w+:\w+)*\Z"),
        open_end=re.compile(r"(?!)"),
        composed=re.compile(r"nccl\Z"),
        rule="nccl-backend",
        comparison_rule="nccl-backend",
    ),
}
_ACCESSORS = frozenset(
    {"get", "pop", "setdefault", "add_argument", "add_option", "option", "getattr", "setattr", "parametrize"}
    | {"DEFINE_string", "DEFINE_enum", "argument", "Option", "Argument", "get_option", "getenv"}
)
_VALUE_KEYWORDS = frozenset({"default", "choices", "const", "default_value", "type", "value"})
_STRING_METHODS = frozenset({"startswith", "lower", "strip", "split", "casefold", "removeprefix"})
_AVAILABILITY = re.compile(r"cuda\.is_available|cuda_available|use_cuda|cuda\.device_count")


def call(node: ast.AST, scope: Scope, context: Context) -> None:
    """Arguments by position and by keyword, and `device.type.startswith("cuda")`."""
    assert isinstance(node, ast.Call)
    _known_parameters(node, scope, context)
    for keyword in node.keywords:
        for word in _WORDS.values():
            if keyword.arg is not None and word.identifier.search(keyword.arg):
                _report_all(_literals(keyword.value, word), word, None, scope, context)
                _composed(keyword.value, word, word.rule, scope, context)
    _own_function(node, scope, context)
    _named_option(node, scope, context)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("startswith", "endswith", "__eq__"):
        for word in _WORDS.values():
            if _holds(node.func.value, word, scope):
                _report_compared(node.args, word, scope, context)


def comparison(node: ast.AST, scope: Scope, context: Context) -> None:
    """`device.type == "cuda"`, `backend in ["nccl", "gloo"]`, `"cuda" in str(device)`."""
    assert isinstance(node, ast.Compare)
    sides = [node.left, *node.comparators]
    for word in _WORDS.values():
        if any(_holds(side, word, scope) for side in sides):
            _report_compared(sides, word, scope, context)


def assignment(node: ast.AST, scope: Scope, context: Context) -> None:
    """`device = "cuda"`, `self.device: str = "cuda"`, `config["device"] = "cuda"`."""
    assert isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
    if node.value is None:
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for word in _WORDS.values():
        for target in targets:
            for part, value in _paired(target, node.value):
                name = _last_identifier(part)
                if name and (
                    word.identifier.search(name)
                    or (word.old == "cuda" and name in context.facts.device_names)
                ):
                    _report_all(_literals(value, word), word, None, scope, context)


def conditional(node: ast.AST, scope: Scope, context: Context) -> None:
    """`"cuda" if torch.cuda.is_available() else "cpu"`, whatever takes it."""
    assert isinstance(node, ast.IfExp)
    if _AVAILABILITY.search(context.source(node.test)):
        word = _WORDS[Meaning.DEVICE]
        _report_all(_literals(node, word), word, None, scope, context)


def defaults(node: ast.AST, scope: Scope, context: Context) -> None:
    """`def train(device="cuda")`."""
    assert isinstance(node, ast.arguments)
    positional = [*node.posonlyargs, *node.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
    )
    pairs += zip(node.kwonlyargs, node.kw_defaults, strict=True)
    for parameter, default in pairs:
        if default is None:
            continue
        for word in _WORDS.values():
            if word.identifier.search(parameter.arg) or (
                word.old == "cuda" and parameter.arg in context.facts.device_names
            ):
                _report_all(_literals(default, word), word, None, scope, context)


def returned(node: ast.AST, scope: Scope, context: Context) -> None:
    """`return "cuda"` in a function that is named after what it returns."""
    assert isinstance(node, ast.Return)
    function = getattr(scope, "node", None)
    if node.value is None or not isinstance(function, Function):
        return
    for word in _WORDS.values():
        if word.identifier.search(function.name):
            _report_all(_literals(node.value, word), word, None, scope, context)


def dictionary(node: ast.AST, scope: Scope, context: Context) -> None:
    """`{"device": "cuda"}`."""
    assert isinstance(node, ast.Dict)
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            for word in _WORDS.values():
                if word.identifier.search(key.value):
                    _report_all(_literals(value, word), word, None, scope, context)


def case(node: ast.AST, scope: Scope, context: Context) -> None:
    """`match device.type: case "cuda":`."""
    assert isinstance(node, ast.Match)
    for word in _WORDS.values():
        if _holds(node.subject, word, scope):
            values = [
                part.value
                for arm in node.cases
                for part in ast.walk(arm.pattern)
                if isinstance(part, ast.MatchValue)
            ]
            _report_compared(values, word, scope, context)


def constant(node: ast.AST, scope: Scope, context: Context) -> None:
    """`"cuda:0"` is a device wherever it stands; so is the name of a CUDA tensor type a type."""
    assert isinstance(node, ast.Constant)
    value = node.value
    if not isinstance(value, str):
        return
    word = _WORDS[Meaning.DEVICE]
    if word.anywhere is not None and word.anywhere.match(value):
        _report_all([node], word, None, scope, context)
    elif value.startswith("torch.cuda.") and value in context.catalogue.symbols:
        entry = context.catalogue.symbols[value]
        if not (context.facts.shimmed and entry.shimmed):
            context.report(
                entry.rule, context.span(node), value, [], replacement=entry.becomes or "", note=entry.note
            )


def formatted(node: ast.AST, scope: Scope, context: Context) -> None:
    """`f"cuda:{rank}"`."""
    assert isinstance(node, ast.JoinedStr)
    word = _WORDS[Meaning.DEVICE]
    if len(node.values) == 2:
        _report_all(_literals(node, word), word, None, scope, context)


def _known_parameters(node: ast.Call, scope: Scope, context: Context) -> None:
    parameters: list[ParameterEntry] = []
    if isinstance(node.func, ast.Attribute):
        parameters += context.catalogue.parameters.get(f".{node.func.attr}", ())
    for value in resolve(node.func, scope):
        if isinstance(value, Qualified):
            parameters += context.catalogue.parameters.get(value.name, ())
    for parameter in parameters:
        if context.facts.shimmed and parameter.shimmed:
            continue
        word = _WORDS[parameter.meaning]
        for argument in _arguments(node, parameter):
            _report_all(_literals(argument, word), word, parameter, scope, context)
            _composed(argument, word, parameter.rule.name, scope, context)


def _composed(node: ast.expr, word: _Word, rule_name: str, scope: Scope, context: Context) -> None:
    """`f"{PREFIX}:{rank}"` where PREFIX is "cuda": the word is elsewhere, so there is no edit."""
    if not isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call) or context.facts.shimmed:
        return
    if any(_literals(node, word)) or context.guards.mentions_npu(node):
        return
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    if any(word.identifier.search(name) for name in names):
        return  # what it is made of is a finding of its own
    rule = context.catalogue.rule_named(rule_name)
    for value in resolve(node, scope):
        if isinstance(value, Literal) and rule is not None and word.composed.match(value.text):
            replacement = value.text.replace(word.old, word.new, 1)
            context.report(rule, context.span(node), value.text, [], replacement=replacement)
            return


def _arguments(node: ast.Call, parameter: ParameterEntry) -> Iterator[ast.expr]:
    for keyword in node.keywords:
        if keyword.arg == parameter.parameter:
            yield keyword.value
    position = parameter.position
    if position is not None and position < len(node.args):
        if not any(isinstance(argument, ast.Starred) for argument in node.args[: position + 1]):
            yield node.args[position]


def _own_function(node: ast.Call, scope: Scope, context: Context) -> None:
    """Positional arguments of a function of this file whose parameter is named after a device."""
    if not any(_may_be_word(argument) for argument in node.args):
        return
    for value in resolve(node.func, scope):
        if isinstance(value, Local) and not value.definition.is_class:
            for parameter, argument in zip(value.definition.parameters, node.args, strict=False):
                for word in _WORDS.values():
                    if word.identifier.search(parameter):
                        _report_all(_literals(argument, word), word, None, scope, context)


def _may_be_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.IfExp)


def _named_option(node: ast.Call, scope: Scope, context: Context) -> None:
    """`add_argument("--device", default="cuda")`, `config.get("device", "cuda")`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in _ACCESSORS:
        return
    keys = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    for word in _WORDS.values():
        if not any(word.identifier.search(key) and not word.literal.match(key) for key in keys):
            continue
        values: list[ast.expr] = list(node.args[1:])
        values += [k.value for k in node.keywords if k.arg in _VALUE_KEYWORDS]
        for value in values:
            _report_all(_literals(value, word, lists=True), word, None, scope, context)


def _holds(node: ast.expr, word: _Word, scope: Scope) -> bool:
    """Whether an expression holds a device (or a backend), by its name or by what made it."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return _holds(node.value, word, scope)
    name = _last_identifier(node)
    if name and word.identifier.search(name):
        return True
    if isinstance(node, ast.Call):
        callee = node.func
        if isinstance(callee, ast.Attribute) and callee.attr in _STRING_METHODS:
            return _holds(callee.value, word, scope)
        called = _last_identifier(callee)
        if called in ("str", "getattr") and node.args:
            return any(_holds(argument, word, scope) for argument in node.args[:1])
        return bool(called and word.identifier.search(called))
    if isinstance(node, ast.Subscript):
        return _holds(node.value, word, scope)
    if isinstance(node, ast.Name | ast.Attribute) and word.old == "cuda":
        return Instance("torch.device") in resolve(node, scope)
    return False


def _last_identifier(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else None
    return None


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if (
        isinstance(target, ast.Tuple | ast.List)
        and isinstance(value, ast.Tuple | ast.List)
        and len(target.elts) == len(value.elts)
    ):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _literals(node: ast.expr, word: _Word, lists: bool = True) -> Iterator[ast.expr]:
    """The strings that an expression may become and that are, or start with, the word."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and word.literal.match(node.value):
            yield node
    elif isinstance(node, ast.JoinedStr):
        if node.values and isinstance(node.values[0], ast.Constant):
            first = node.values[0].value
            if len(node.values) == 1 and word.literal.match(first):
                yield node
            elif len(node.values) > 1 and word.open_end.match(first):
                yield node
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod):
            yield from _literals(node.left, word, lists)
        elif isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            if word.open_end.match(node.left.value):
                yield node.left
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body, word, lists)
        yield from _literals(node.orelse, word, lists)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _literals(value, word, lists)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield from _literals(node.func.value, word, lists)
        elif isinstance(node.func, ast.Name) and node.func.id == "field":
            for keyword in node.keywords:
                if keyword.arg == "default":
                    yield from _literals(keyword.value, word, lists)
    elif lists and isinstance(node, ast.List | ast.Tuple | ast.Set):
        for element in node.elts:
            yield from _literals(element, word, lists)


def _report_compared(
    nodes: Iterable[ast.expr], word: _Word, scope: Scope, context: Context
) -> None:
    rule = context.catalogue.rule_named(word.comparison_rule)
    for node in nodes:
        for literal in _literals(node, word):
            if rule is not None:
                _report(literal, word, rule, Applicability.UNSAFE, None, scope, context)


def _report_all(
    literals: Iterable[ast.expr],
    word: _Word,
    parameter: ParameterEntry | None,
    scope: Scope,
    context: Context,
) -> None:
    if parameter is None and context.facts.shimmed:
        return
    rule = parameter.rule if parameter is not None else context.catalogue.rule_named(word.rule)
    for literal in literals:
        if rule is not None and not context.guards.mentions_npu(literal):
            note = parameter.note if parameter is not None else None
            _report(literal, word, rule, Applicability.SAFE, note, scope, context)


def _report(
    node: ast.expr,
    word: _Word,
    rule: Rule,
    applicability: Applicability,
    note: LocalizedText | None,
    scope: Scope,
    context: Context,
) -> None:
    span = context.span(node)
    if span in context.reported:
        return
    source = context.text[slice(*span)]
    opening = _OPENING.match(source)
    fixes: list[Fix] = []
    replacement = source
    if opening is not None:
        edits, replacement = _replaced_words(source, span, word)
        if edits:
            imports = "torch_npu"
            local = local_import("torch", scope, context)
            if local is not None:
                imports, edits = "", edits + local
            fixes.append(Fix(use(replacement), applicability, tuple(edits), imports=imports))
            if word.old == "cuda":
                fixes += _agnostic_fix(node, source, span, opening, scope, context)
    context.report(rule, span, source, fixes, replacement=replacement, note=note)


def _replaced_words(source: str, span: Span, word: _Word) -> tuple[list[Edit], str]:
    """The edits inside one literal, and the literal they make."""
    words = {word.old: word.new}
    if word.old == "nccl":
        words["cuda"] = "npu"
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


def _agnostic_fix(
    node: ast.expr, source: str, span: Span, opening: re.Match[str], scope: Scope, context: Context
) -> list[Fix]:
    """Ask PyTorch for the device type; `torch` must be known where the string stands."""
    if context.target.torch_version < ACCELERATOR_SINCE:
        return []
    if resolve_name(Name("torch"), scope, (node.lineno, node.col_offset)) != [Qualified("torch")]:
        return []
    expression = f"{ACCELERATOR}.type"
    if isinstance(node, ast.JoinedStr) and source.startswith("cuda:{", opening.end()):
        start = span.start + opening.end()
        text, edit = f"{{{expression}}}", Span(start, start + len("cuda"))
    elif isinstance(node, ast.Constant) and node.value == "cuda":
        text, edit = expression, span
    else:
        return []
    return [Fix(use(text), Applicability.UNSAFE, (Edit(edit, text),), MigrationStyle.DEVICE_AGNOSTIC)]
