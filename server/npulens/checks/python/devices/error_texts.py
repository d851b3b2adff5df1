"""Texts of errors that code looks for: `if "CUDA out of memory" in str(error)`."""

import ast

from npulens.catalog.model import Applicability, Edit, Fix
from npulens.checks.context import Context
from npulens.checks.function_names import shown_name
from npulens.checks.shared_rules import DEVICE_COMPARISON
from npulens.checks.titles import use
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

OUT_OF_MEMORY = "CUDA out of memory"
"""On the NPU it is `NPU out of memory. Tried to allocate ...`.

Source: Ascend/pytorch: torch_npu/csrc/core/npu/NPUCachingAllocator.cpp."""
_ON_ALL = "out of memory"
_WORDS = frozenset({"cuda", "CUDA"})
"""By which code finds errors of CUDA; those of the NPU name it otherwise."""
_LISTS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


def looked_for(node: ast.Compare, scope: Scope, context: Context) -> None:
    """A comparison that finds the error of CUDA alone; the text is searched, not compared."""
    text, relation, searched = node.left, node.ops[0], node.comparators[0]
    if not isinstance(text, ast.Constant) or not isinstance(relation, (ast.In, ast.NotIn)):
        return
    if text.value in _WORDS and _is_error_text(searched, scope, context):
        rule = context.catalogue.required(DEVICE_COMPARISON)
        context.report(rule, context.span(text), str(text.value), [], replacement="npu")
    is_text = isinstance(text.value, str) and text.value.startswith(OUT_OF_MEMORY)
    if not is_text or isinstance(searched, _LISTS):
        return
    whole = context.span(text)
    start = context.code.text.find(OUT_OF_MEMORY, whole.start, whole.end)
    if start < 0:
        return
    span = Span(start, start + len(OUT_OF_MEMORY))
    becomes = context.source(text).replace(OUT_OF_MEMORY, _ON_ALL)
    fix = Fix(use(_ON_ALL), Applicability.SAFE, (Edit(whole, becomes),))
    rule = context.catalogue.required(DEVICE_COMPARISON)
    context.report(rule, span, OUT_OF_MEMORY, [fix], replacement=_ON_ALL)


def _is_error_text(node: ast.expr, scope: Scope, context: Context) -> bool:
    """Whether an expression is the text of an error: `str(error)`, `text = str(error).lower()`."""
    names = context.lookups.names_of(scope)
    return shown_name(node) in names.errors or getattr(node, "id", "") in names.error_texts
