"""Conditions that lead to CUDA code of the project: where it is built, or imported.

Without CUDA the project goes on without it. A condition that holds on the NPU would build or import
it there, so such an edit has to be read.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.model import Applicability, Finding, Fix, LocalizedText
from npulens.checks.whole_module import WholeModule
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_ASKED = "torch.cuda.is_available"
_SOURCES = re.compile(r"\.cu(?:\.o)?\Z|\AWITH_CUDA\Z|\Anvcc\Z")
_BUILDERS = frozenset({"CUDAExtension", "CUDA_HOME"})
_MODULES = re.compile(r"(?:\A|[._])(?:cuda|gpu)(?:\Z|[._])")
"""Parts of the names of modules. Weak evidence, which is enough to have a fix read."""
_MAY_BE = re.compile(
    r"\.cu\b|WITH_CUDA|nvcc|CUDAExtension|CUDA_HOME|import (?!torch)[^\n]*(?:cuda|gpu)"
    r"|from (?!torch)[^\n]*(?:cuda|gpu)"
)
"""Texts without it are not looked through."""
_NOTE = LocalizedText(
    "CUDA code of this project is built or imported where it holds: port that first.",
    "此条件成立时会编译或导入本项目的 CUDA 代码，请先移植后者。",
)


def with_careful_conditions(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings with no safe fix for conditions of such code, and a note why."""
    if not any(map(_has_safe_condition, findings)) or _MAY_BE.search(module.text) is None:
        return list(findings)
    careful = _asked_before(module)
    return [
        _careful(each) if _has_safe_condition(each) and each.span in careful else each
        for each in findings
    ]


def _careful(finding: Finding) -> Finding:
    return replace(finding, fixes=tuple(map(Fix.to_be_read, finding.fixes))).with_note(_NOTE)


def _has_safe_condition(finding: Finding) -> bool:
    is_asked = finding.arguments.get("symbol") == _ASKED and finding.settlement is None
    return is_asked and any(fix.applicability is Applicability.SAFE for fix in finding.fixes)


def _asked_before(module: WholeModule) -> set[Span]:
    """Where names stand in conditions before such code."""
    lines = LineMap(module.text)
    conditions = (node for node in nodes_below(module.tree) if isinstance(node, ast.If))
    return {
        lines.span(part)
        for node in conditions
        if any(_is_cuda_code(each) for statement in node.body for each in nodes_below(statement))
        for part in nodes_below(node.test)
        if isinstance(part, (ast.Name, ast.Attribute))
    }


def _is_cuda_code(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or "", *(alias.name for alias in node.names)]
        return not (node.module or "").startswith("torch") and any(map(_MODULES.search, names))
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if not alias.name.startswith("torch")]
        return any(map(_MODULES.search, names))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _SOURCES.search(node.value) is not None
    return isinstance(node, ast.Name) and node.id in _BUILDERS
