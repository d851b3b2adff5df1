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
    whole, rule = context.span(node), context.catalogue.required(CUDA_OPERATOR)
    start = whole.start
    for match in _KERNEL.finditer(context.code.text, *whole):
        if compiler is None:
            context.report(rule, Span(match.start(), match.end(1)), match[1], [])
        else:  # all of the text is settled, up to its last kernel
            span = Span(start, match.end(1))
            context.report(rule, span, match[1], [], settled=Settlement(compiler))
            start = span.end
