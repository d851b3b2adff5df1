"""Places that only CUDA reaches, where its backends, autocast and layouts are right as they are.

What decides about such a place, a comparison of a device type or an import, is a finding of its
own. Once that is ported, the place no longer counts as CUDA's, and what is in it is reported.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding
from npulens.checks.context import FAMILIES_OF_BRANCHES, FAMILIES_OF_KERNELS, Context
from npulens.checks.intent.file_purpose import is_of_benchmarks, is_of_tests, wraps_cuda
from npulens.syntax.meanings import Instance, Literal, qualified_names, resolve
from npulens.syntax.scopes import ModuleNames, Scope
from npulens.syntax.values import Imported
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_FUNCTION_CLASS = "torch.autograd.Function"
_OWN_PRECISION = "transformer_engine"
"""The library for NVIDIA's 8-bit formats; autocast beside it is for what it leaves to PyTorch."""
_STATES = re.compile(r"state_dict|Checkpoint")
_RUNS = re.compile(r"cuda|nccl|(?<![a-z])npu|device|backward|init_process_group")
_TF32_QUESTION = re.compile(r"tf32_(?:is_)?(?:available|supported)")
_KERNEL_LIBRARY = re.compile(
    r"(?:\A|\.)(?:transformer_engine|flash_attn\w*|xformers|cutlass|tilelang|\w+_kernels)(?:\.|\Z)"
)
_CUDNN_KERNELS = re.compile(r"(?:\A|\.)\w*cudnn_kernels(?:\.|\Z)")
_MAKES_GROUPS = re.compile(r"\b(?:init_process_group|new_group|new_subgroups\w*)\Z")
_ABOUT_NCCL = re.compile(r"\bncclSymk|NCCL_CTA_POLICY")
_DEVICE_TYPES = frozenset({"type", "device_type"})


def branch(node: ast.AST, scope: Scope, context: Context) -> None:
    """`if x.device.type == "cuda": ...`, `a if torch.version.cuda else b`, or `and` behind it."""
    assert isinstance(node, (ast.If, ast.IfExp, ast.BoolOp))
    if not context.holds("cuda") and not context.holds("n_gpu"):
        return
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) and _is_cuda_version(node.values[0], scope):
            context.cuda_branches.add(_stretch(node.values[1:], context))
        return
    if _holds_on_cuda_only(node.test, scope, context):
        body = node.body if isinstance(node.body, list) else [node.body]
        context.cuda_branches.add(_stretch(body, context))


def definition(node: ast.AST, scope: Scope, context: Context) -> None:
    """A function that imports Transformer Engine, an operator made of CUDA kernels."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    if isinstance(node, ast.ClassDef):
        if context.holds("_cuda.") and _wraps_kernels(node, scope):
            context.kernel_code.add(_stretch(node.body, context))
    elif any(_imports_own_precision(statement) for statement in node.body):
        context.kernel_code.add(_stretch(node.body, context))
    elif context.holds("patch") and _is_mocked(node):
        context.cuda_branches.add(_stretch(node.body, context))
    elif context.holds("torch.version.cuda") and _chooses_by_release(context.source(node)):
        context.kernel_code.add(_stretch(node.body, context))
    elif context.holds("DataParallel") and _tests_states(context.source(node), node.name):
        context.cuda_branches.add(_stretch(node.body, context))


def _is_mocked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a test replaces what makes process groups, so that none is made."""
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and _MAKES_GROUPS.search(part.value) is not None
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for part in decorator.args
    )


def _chooses_by_release(text: str) -> bool:
    """Whether a function asks for autocast's type and for CUDA's release, as its kernels do."""
    return "get_autocast_gpu_dtype" in text and "torch.version.cuda" in text


def _tests_states(text: str, name: str) -> bool:
    """Whether a test wraps a model to look at names and states: it has no device and runs none."""
    return (
        name.startswith("test")
        and "DataParallel(" in text
        and _STATES.search(text) is not None
        and _RUNS.search(text) is None
    )


def _stretch(nodes: Sequence[ast.AST], context: Context) -> Span:
    return Span(context.span(nodes[0]).start, context.span(nodes[-1]).end)


def _holds_on_cuda_only(test: ast.expr, scope: Scope, context: Context) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_holds_on_cuda_only(value, scope, context) for value in test.values)
    if isinstance(test, ast.Call):
        return _asks_for_tf32(test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if not isinstance(other, ast.Constant):
            return False
        if isinstance(test.ops[0], ast.Eq) and other.value == "cuda":
            return _is_type_of_any_device(test.left, scope, context)
        if isinstance(test.ops[0], ast.IsNot) and other.value is None:
            return _is_cuda_version(test.left, scope)
        return isinstance(test.ops[0], ast.Gt) and _counts_devices(test.left, context)
    return _is_cuda_version(test, scope)


def _is_type_of_any_device(node: ast.expr, scope: Scope, context: Context) -> bool:
    """`x.device.type`, `device_type`: of a device that this code did not choose itself."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if name not in _DEVICE_TYPES:
        return False
    if "current accelerator" in context.facts.said:
        return True
    device = node.value if isinstance(node, ast.Attribute) and name == "type" else node
    values = resolve(device, scope) if isinstance(device, (ast.Name, ast.Attribute)) else []
    return not any(
        isinstance(value, Literal) or value == Instance("torch.device") for value in values
    )


def _asks_for_tf32(call: ast.Call) -> bool:
    """`is_tf32_available()`: whether a GPU has the type, which NPUs do not."""
    callee = call.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    return _TF32_QUESTION.search(name) is not None


def _is_cuda_version(node: ast.expr, scope: Scope) -> bool:
    is_version = isinstance(node, ast.Attribute) and node.attr == "cuda"
    return is_version and "torch.version.cuda" in qualified_names(node, scope)


def _counts_devices(node: ast.expr, context: Context) -> bool:
    """`self.args.n_gpu`, in a file that knows NPUs: there its owner says one."""
    is_of_another = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    return is_of_another and node.attr == "n_gpu" and context.code.author_names_npu  # type: ignore[attr-defined]


def _imports_own_precision(statement: ast.stmt) -> bool:
    """Whether a statement imports a library for CUDA that decides about precision itself."""
    names: list[str] = []
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom) and not statement.level:
        names = [statement.module or ""]
    return any(name.partition(".")[0] == _OWN_PRECISION for name in names)


def _wraps_kernels(node: ast.ClassDef, scope: Scope) -> bool:
    """An operator with its own gradient that calls an extension: `norm_cuda.forward(...)`."""
    if not any(_FUNCTION_CLASS in qualified_names(base, scope) for base in node.bases):
        return False
    return any(
        isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id.endswith("_cuda")
        for part in nodes_below(node)
    )


def outside_of_extensions(findings: list[Finding], names: ModuleNames) -> list[Finding]:
    """The findings; of a module around an extension for CUDA only those about other things."""
    if not any(finding.rule.family in FAMILIES_OF_KERNELS for finding in findings):
        return findings
    if not any(_is_extension(name) for name in _always_imported(names)):
        return findings
    return [finding for finding in findings if finding.rule.family not in FAMILIES_OF_KERNELS]


def outside_of_kernel_tests(
    findings: list[Finding], names: ModuleNames, path: str
) -> list[Finding]:
    """The findings; of tests and benchmarks of CUDA kernels without their switches.

    What such a file sets is for the kernels it compares, and those never run on the NPU. Where
    they are cuDNN's, its process groups are too.
    """
    if not any(finding.rule.family in FAMILIES_OF_BRANCHES for finding in findings):
        return findings
    if not (is_of_tests(path) or is_of_benchmarks(path)):
        return findings
    imported = [name for name in _imported(names) if _KERNEL_LIBRARY.search(name)]
    if not imported:
        return findings
    of_cudnn = any(_CUDNN_KERNELS.search(name) for name in imported)
    families = FAMILIES_OF_BRANCHES if of_cudnn else {"layout"}
    return [finding for finding in findings if finding.rule.family not in families]


def outside_of_nccl_probes(findings: list[Finding], text: str, path: str) -> list[Finding]:
    """The findings; of a file that tries what NCCL itself does, none about process groups."""
    if not any(finding.rule.family == "parallel" for finding in findings):
        return findings
    if not wraps_cuda(path) and _ABOUT_NCCL.search(text) is None:
        return findings
    return [finding for finding in findings if finding.rule.family != "parallel"]


def _imported(names: ModuleNames) -> Iterator[str]:
    """What a module imports, by its full name, also where it may fail."""
    for found in names.names.values():
        for _, group in found:
            yield from (b.value.qualified for b in group if isinstance(b.value, Imported))


def _always_imported(names: ModuleNames) -> Iterator[str]:
    """What a module imports in any case, by its full name: not in a `try`, or in each arm."""
    for found in names.names.values():
        bindings = [binding for _, group in found for binding in group]
        imported = [b.value for b in bindings if isinstance(b.value, Imported)]
        in_any_case = any(b.block[0] == (0, 0) for b in bindings) or len(imported) > 1
        if in_any_case and len(imported) == len(bindings):
            yield from (value.qualified for value in imported)


def _is_extension(qualified: str) -> bool:
    """`scan_cuda`, `project.cuda_ext.gather`, `project._C`."""
    parts = qualified.split(".")
    if parts[0] == "torch":
        return False
    return (len(parts) == 1 and qualified.endswith("_cuda")) or "cuda_ext" in parts or "_C" in parts
