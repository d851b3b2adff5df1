"""What a test that names the NPU comes to there, and which words for it are an author's.

A fix turns `torch.cuda.is_available()` into `torch.npu.is_available()`. Such words are no evidence
that somebody has thought of what stands beside them; `is_npu_available()` and `args.use_npu` are.
"""

import ast
import re
from collections.abc import Callable, Sequence

_BY_FIXES = re.compile(
    r"\btorch_npu\b(?:\.\w+)*|\btorch\.(?:npu|accelerator|Stream|Event)\b(?:\.\w+)*"
    r"|\.(?:is_)?npu\b(?!\w)|[\"'](?:npu|hccl|accelerator)\b|\b(?:npu|hccl):"
    r"|\b(?:ASCEND|HCCL|TORCH_HCCL|PYTORCH_NPU|PYTORCH_NO_NPU)_\w+|\bNpuFused\w+|\bHCCL\b"
)
"""What fixes put into code: modules, attributes, device strings, variables, names of classes."""


def author_words(text: str, words: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of some places in a text that name the NPU where no fix would write that.

    Args:
        text: The text.
        words: Where it names the NPU, in order.
    """
    if not words:
        return []
    written = [match.span() for match in _BY_FIXES.finditer(text)]
    found, index = [], 0
    for start, end in words:
        while index < len(written) and written[index][1] <= start:
            index += 1
        if index == len(written) or written[index][0] >= end:
            found.append((start, end))
    return found


def holds_on_npu(test: ast.expr, names_npu: Callable[[ast.expr], bool]) -> bool | None:
    """Whether a test holds where there is an NPU, `None` if something else decides.

    Args:
        test: The test.
        names_npu: Whether a part of it names the NPU.
    """
    if isinstance(test, ast.BoolOp):
        found = [holds_on_npu(value, names_npu) for value in test.values]
        decides = isinstance(test.op, ast.Or)
        if decides in found:
            return decides
        return None if None in found else not decides
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = holds_on_npu(test.operand, names_npu)
        return None if inner is None else not inner
    if not names_npu(test):
        return None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_none = getattr(test.comparators[0], "value", "") is None
        return isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot)) is is_none
    return True
