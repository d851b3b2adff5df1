"""Conditions that lead to CUDA code of the project: where it is built, imported or called.

Without CUDA the project goes on without it. A condition that holds on the NPU would build or import
it there, so such an edit has to be read; where it would call an extension there is none.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.model import Finding, Fix, LocalizedText
from npulens.checks.whole_module import WholeModule
from npulens.syntax.values import last_name, root_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.stretches import Stretches
from npulens.verdicts.kernels import EXTENSION, tensors_asked

_SOURCES = re.compile(r"\.cu(?:\.o)?\Z|\AWITH_CUDA\Z|\Anvcc\Z")
_BUILDERS = frozenset({"CUDAExtension", "CUDA_HOME"})
_MODULES = re.compile(r"(?:\A|[._])(?:cuda|gpu)(?:\Z|[._])")
_KERNELS = re.compile(r"cuda_\w+\Z|(?:_cuda|_kernel)\Z|\Atriton_")
"""Names of modules and functions. Weak evidence, which is enough to have a fix read."""
_MAY_BE = re.compile(
    r"\.cu\b|WITH_CUDA|nvcc|CUDAExtension|CUDA_HOME|(?:import|from) (?!torch)[^\n]*(?:cuda|gpu)"
    r"|(?:_cuda|_kernel|cuda_\w+|\btriton_\w+)\(|(?:_C|_?ext|_cuda)\."
)
"""Texts without it are not looked through."""
_NOTE = LocalizedText(
    "CUDA code of this project is built, imported or called where it holds: port that first.",
    "此条件成立时会编译、导入或调用本项目的 CUDA 代码，请先移植后者。",
)


def with_careful_conditions(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings with no safe fix for conditions of such code, and a note why."""
    fixed = [f for f in findings if f.rule.family == "device" and f.fixes and f.settlement is None]
    if not fixed or _MAY_BE.search(module.text) is None:
        return list(findings)
    led_to, called = _tests(module)
    careful = {
        id(finding): replace(
            finding.with_note(_NOTE),
            fixes=() if called.holds(finding.span) else tuple(map(Fix.to_be_read, finding.fixes)),
        )
        for finding in fixed
        if led_to.holds(finding.span)
    }
    return [careful.get(id(finding), finding) for finding in findings]


def _tests(module: WholeModule) -> tuple[Stretches, Stretches]:
    """The conditions before such code, and those of them behind which an extension is called."""
    lines = LineMap(module.text)
    led_to, called = Stretches(), Stretches()
    for node in nodes_below(module.tree):
        if isinstance(node, ast.If):
            inside = [part for statement in node.body for part in nodes_below(statement)]
            is_of_tensor = any(tensors_asked(node.test))
            callees = [part.func for part in inside if is_of_tensor and isinstance(part, ast.Call)]
            if any(EXTENSION.search(root_name(callee)) for callee in callees):
                called.add(lines.span(node.test))
            elif not any(map(_KERNELS.search, map(last_name, callees))) and not any(
                map(_built, inside)
            ):
                continue
            led_to.add(lines.span(node.test))
    return led_to, called


def _built(node: ast.AST) -> str:
    """What of CUDA code a node builds or imports; empty if nothing."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = getattr(node, "module", None)
        names = [module or "", *(alias.name for alias in node.names)]
        is_of_torch = names[0 if module else 1].startswith("torch")
        return "" if is_of_torch else next(filter(_MODULES.search, names), "")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if _SOURCES.search(node.value) is not None else ""
    return node.id if isinstance(node, ast.Name) and node.id in _BUILDERS else ""
