"""Arms that run now and then: for debugging, every so many steps, where something has failed."""

import ast
import re
from functools import lru_cache

from npulens.syntax.walking import nodes_below


@lru_cache(maxsize=1024)
def is_rare_test(node: ast.expr) -> bool:
    """Whether a condition holds rarely: every so many steps, outside of training, or for NaN."""
    if not any(map(_may_be_rare, nodes_below(node))):
        return False
    text = ast.unparse(node)
    return "%" in text or any(rare.search(text) is not None for rare in (_RARE, _NOT_FINITE))


def _may_be_rare(part: ast.AST) -> bool:
    """Whether a part of a condition holds a word of these: writing it out takes far longer."""
    match part:
        case ast.Name(str(word)) | ast.Attribute(attr=str(word)) | ast.Constant(str(word)):
            return _RARE_WORD.search(word) is not None
    return isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "op", None), ast.Mod)


def is_failure(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for what fails now and then, not for what is missing for good."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    return _MISSING.search(caught) is None


def is_want_of_memory(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for running out of memory."""
    return _MEMORY.search(ast.unparse(handler)) is not None


_MISSING = re.compile(r"Import|ModuleNotFound|Attribute|Name|NotImplemented")
_MEMORY = re.compile(r"OutOfMemory|out of memory|MemoryError", re.IGNORECASE)
_NOT_FINITE = re.compile(r"^(?!not ).*\bis(?:nan|inf)\(|^not .*\bisfinite\(")
_RARE = re.compile(
    r"not self\.training|debug|verbose|is_first|log_|logging|epoch ==|step ==|is_main|rank"
    r"|isEnabledFor"
    r"|not .*\btraining\b|sagemaker|is_tracing|is_exporting|export|output_type ==|== 'mps'"
    r"|pruned_heads"
)
_RARE_WORD = re.compile(
    r"training|debug|verbose|is_first|log|epoch|step|is_main|rank|isEnabledFor|sagemaker|is_tracing"
    r"|export|output_type|mps|%|is(?:nan|inf|finite)|pruned_heads"
)
"""Words in names and strings of the conditions above."""
