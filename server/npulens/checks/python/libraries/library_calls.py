"""Calls around libraries: options, providers, `nvidia-smi`."""

import ast
import re

from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.entries import report_entry
from npulens.checks.optional_code import runs_on_request
from npulens.checks.titles import use
from npulens.syntax.meanings import Literal, qualified_names, resolve
from npulens.syntax.scopes import Scope, definitions_around, function_of
from npulens.text.spans import Span

_QUANT_TYPE = "bnb_4bit_quant_type"
_OF_HUB = frozenset({"transformers", "diffusers", "peft"})
RUNNERS = frozenset(
    {
        "os.popen",
        "os.system",
        "shutil.which",
        "subprocess.Popen",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "subprocess.run",
        "asyncio.create_subprocess_exec",
        "asyncio.create_subprocess_shell",
    }
)
_RUNNER_NAMES = frozenset(name.rpartition(".")[2] for name in RUNNERS)
_NVIDIA = re.compile(r"cuda|nvidia", re.IGNORECASE)
_WITH_OPTIONS = re.compile(r"\s*(?:[\w/.-]*/)?nvidia-smi\s+--?\w")
_COMMAND = re.compile(r"(?:^|[\s;&|/(])nvidia-smi(?![\w-])")


def eight_bits(node: ast.Call, scope: Scope, context: Context) -> None:
    """`from_pretrained(path, load_in_8bit=args.eight)`, which goes to bitsandbytes."""
    for keyword in node.keywords:
        if keyword.arg != "load_in_8bit":
            continue
        value, entry = keyword.value, context.catalogue.libraries.get("load_in_8bit")
        is_off = isinstance(value, ast.Constant) and value.value is not True
        if entry is None or is_off or _is_in_skipped_test(scope, context):
            continue
        severity = None if isinstance(value, ast.Constant) else Severity.INFO  # it may be off
        span = context.span(keyword)
        context.report(entry.rule, span, "load_in_8bit", [], note=entry.note, severity=severity)


def four_bits(node: ast.Call, scope: Scope, context: Context) -> None:
    """`BitsAndBytesConfig(load_in_4bit=True)`, which is FP4 unless another type is given."""
    given = {keyword.arg: keyword for keyword in node.keywords}
    asked, entry = given.get("load_in_4bit"), context.catalogue.libraries.get("load_in_4bit")
    if asked is None or entry is None or None in given or _QUANT_TYPE in given:
        return
    is_on = isinstance(asked.value, ast.Constant) and asked.value.value is True
    names = qualified_names(node.func, scope)
    if not is_on or not any(map(_is_of_transformers, names)) or "quantization_config" in given:
        return
    if _is_in_skipped_test(scope, context):
        return
    end = context.span(asked).end
    argument = f'{_QUANT_TYPE}="nf4"'
    fixes = []
    if names[0].endswith("Config"):  # models take the configuration only
        edit = Edit(Span(end, end), f", {argument}")
        fixes.append(Fix(use(argument), Applicability.UNSAFE, (edit,)))
    context.report(entry.rule, context.span(asked), "load_in_4bit", fixes, note=entry.note)


def _is_of_transformers(name: str) -> bool:
    """Whether a function takes settings of bitsandbytes as transformers and diffusers do."""
    package, _, function = name.rpartition(".")
    root = package.partition(".")[0]
    return root in _OF_HUB and function in ("BitsAndBytesConfig", "from_pretrained")


def _is_in_skipped_test(scope: Scope, context: Context) -> bool:
    """Whether a test is left out where a library is missing: `@require_bitsandbytes`."""
    function = function_of(scope)
    return function is not None and runs_on_request(function, context.source)


def nvidia_smi(node: ast.Call, scope: Scope, context: Context) -> None:
    """`os.system("nvidia-smi")`, `subprocess.run(["nvidia-smi", "-L"])`."""
    if not node.args:
        return
    command = node.args[0]
    first, is_list = command, False
    if isinstance(command, (ast.List, ast.Tuple)) and command.elts:
        first, is_list = command.elts[0], True
    if isinstance(first, ast.Constant):
        if not isinstance(first.value, str) or "nvidia-smi" not in first.value:
            return
    elif last_identifier(node.func) not in _RUNNER_NAMES:
        return
    if RUNNERS.isdisjoint(qualified_names(node.func, scope)) or _is_for_nvidia(scope):
        return
    texts = [value.text for value in resolve(first, scope) if isinstance(value, Literal)]
    if not any(map(_COMMAND.search, texts)):
        return
    if not isinstance(first, ast.Constant) and any(map(_WITH_OPTIONS.match, texts)):
        return  # it is reported where it is written
    finder = "shutil.which" in qualified_names(node.func, scope)
    fixes = _npu_smi(command, first, is_list, finder, context)
    _report(context.span(first), fixes, context)


def command_text(node: ast.Constant, scope: Scope, context: Context) -> None:
    """`command = "nvidia-smi --query-gpu=name"`, which is run later on."""
    value, span = node.value, context.span(node)
    is_command = isinstance(value, str) and _WITH_OPTIONS.match(value) is not None
    if not is_command or span in context.reported.spans:
        return
    if not _is_for_nvidia(scope):
        _report(span, [], context)


def command_list(node: ast.List, scope: Scope, context: Context) -> None:
    """`self.run(["nvidia-smi", "-L"])`: a command for a helper of the project."""
    first = node.elts[0] if node.elts else None
    if not isinstance(first, ast.Constant) or first.value != "nvidia-smi":
        return
    option = node.elts[1] if len(node.elts) > 1 else None
    is_command = option is None or (
        isinstance(option, ast.Constant) and str(option.value).startswith("-")
    )
    span = context.span(first)
    if is_command and span not in context.reported.spans and not _is_for_nvidia(scope):
        _report(span, _npu_smi(node, first, is_list=True, is_path=False, context=context), context)


def _report(span: Span, fixes: list[Fix], context: Context) -> None:
    rule = context.catalogue.required("nvidia-smi")
    context.report(rule, span, "nvidia-smi", fixes, replacement="npu-smi info")


def _is_for_nvidia(scope: Scope) -> bool:
    """Whether the code is about NVIDIA by its name: `class CUDAAccelerator`."""
    return any(_NVIDIA.search(getattr(n, "name", "")) for n in definitions_around(scope))


def _npu_smi(
    command: ast.expr, first: ast.expr, is_list: bool, is_path: bool, context: Context
) -> list[Fix]:
    """The plain overview has a counterpart; options and their output differ."""
    if not isinstance(first, ast.Constant) or first.value != "nvidia-smi":
        return []
    if is_list and isinstance(command, (ast.List, ast.Tuple)) and len(command.elts) > 1:
        return []
    span = context.span(first)
    quote = context.code.text[span.start]
    if quote not in "\"'" or context.code.text[span.start : span.start + 3] == quote * 3:
        return []
    words = ["npu-smi"] if is_path else ["npu-smi", "info"]
    text = f"{quote}, {quote}".join(words) if is_list else " ".join(words)
    edit = Edit(span, f"{quote}{text}{quote}")
    return [Fix(use(" ".join(words)), Applicability.UNSAFE, (edit,))]


def provider_list(node: ast.List, scope: Scope, context: Context) -> None:
    """A list of providers with that of the NPU among them is settled."""
    for element in node.elts:
        if isinstance(element, ast.Constant) and element.value == "CANNExecutionProvider":
            context.optional.add(context.span(node))


def provider(node: ast.Constant, scope: Scope, context: Context) -> None:
    """`"CUDAExecutionProvider"`, which ONNX Runtime passes over on the NPU."""
    value = node.value
    if not isinstance(value, str) or not value.endswith("ExecutionProvider"):
        return
    entry = context.catalogue.libraries.get(value)
    span = context.span(node)
    if entry is None or span in context.reported.spans:
        return
    at = context.code.text.find(value, *span)
    fixes = []
    if entry.becomes is not None and at >= 0:
        edit = Edit(Span(at, at + len(value)), entry.becomes)
        fixes.append(Fix(use(entry.becomes), entry.fix, (edit,)))
    report_entry(node, entry, fixes, context, context.fallback(node))
