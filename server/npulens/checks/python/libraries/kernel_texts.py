"""Kernels of CUDA as text of a module: `'''extern "C" __global__ void up(...)'''`."""

import ast
import re

from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.checks.shared_rules import CUDA_OPERATOR
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

_KERNEL = re.compile(r"\b__global__\s[^()]{0,120}?(\w+)\s*\(")


def constant(node: ast.Constant, scope: Scope, context: Context) -> None:
    """Kernels in a string, unless what compiles them is reported in this module."""
    if not isinstance(node.value, str) or "__global__" not in node.value:
        return
    words = context.facts.signs.decisive_words
    compiler = "reported-at-build" if "inline build" in words else None
    compiler = "reported-at-import" if "cuda compiler" in words else compiler
    whole = context.span(node)
    for match in _KERNEL.finditer(context.code.text, *whole):
        settled = None if compiler is None else Settlement(compiler)
        rule = context.catalogue.required(CUDA_OPERATOR)
        context.report(rule, Span(match.start(), match.end(1)), match[1], [], settled=settled)
