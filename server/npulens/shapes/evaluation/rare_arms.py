"""Arms that run now and then: for debugging, every so many steps, where something has failed."""

import ast
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from npulens.syntax.by_node import once_by_node
from npulens.syntax.walking import nodes_below
from npulens.text.late_patterns import late

_OF_UPDATES = frozenset({"zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_"})


def is_rare_test(node: ast.expr, number: Callable[[ast.expr], int | None]) -> bool:
    """Whether a condition holds rarely: every so many steps, outside of training, or for NaN.

    Args:
        node: The condition.
        number: What an expression is by default, if that is a number that the file shows.
    """
    divisors = (number(divisor) for divisor in _divisors(node))
    return _says_rare(node) or any(n is None or n >= _OFTEN for n in divisors)


def is_rank_test(node: ast.expr) -> bool:
    """Whether a condition asks for the one process that writes, and for nothing else."""
    match node:
        case ast.Compare() | ast.Attribute() | ast.Name() | ast.Call():
            return _IS_RANK.fullmatch(ast.unparse(node)) is not None
    return False


@once_by_node
def is_step(loop: ast.AST) -> bool:
    """Whether each turn of a loop makes a step of training, not one of a loop in it."""
    pending = list(ast.iter_child_nodes(loop))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Attribute) and node.attr == "backward":
            return True
        if not isinstance(node, _WITH_BODIES):
            pending += ast.iter_child_nodes(node)
    return False


def updates_weights(body: Iterable[ast.stmt]) -> bool:
    """Whether an arm uses up gradients: steps that sum up several are steps of training."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in _OF_UPDATES
        for statement in body
        for part in nodes_below(statement)
    )


@lru_cache(maxsize=1024)
def _says_rare(node: ast.expr) -> bool:
    if not any(map(_may_be_rare, nodes_below(node))):
        return False
    text = ast.unparse(node)
    return any(rare.search(text) is not None for rare in (_RARE, _NOT_FINITE))


@lru_cache(maxsize=1024)
def _divisors(node: ast.expr) -> tuple[ast.expr, ...]:
    """`n` of each `step % n == 0` and `not step % n` in a condition."""
    found = []
    for part in nodes_below(node):
        match part:
            case ast.Compare(ast.BinOp(ast.expr(), ast.Mod(), divisor), [ast.Eq()]) | ast.UnaryOp(
                ast.Not(), ast.BinOp(ast.expr(), ast.Mod(), divisor)
            ):
                found.append(divisor)
    return tuple(found)


def _may_be_rare(part: ast.AST) -> bool:
    """Whether a part of a condition holds a word of these: writing it out takes far longer."""
    match part:
        case ast.Name(str(word)) | ast.Attribute(attr=str(word)) | ast.Constant(str(word)):
            return _RARE_WORD.search(word) is not None
    return isinstance(part, ast.JoinedStr)


def is_failure(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for what fails now and then, not for what is missing for good."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    return _MISSING.search(caught) is None


def is_want_of_memory(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for running out of memory."""
    return _MEMORY.search(ast.unparse(handler)) is not None


_MISSING = late(r"Import|ModuleNotFound|Attribute|Name|NotImplemented")
_MEMORY = late(r"OutOfMemory|out of memory|MemoryError", re.IGNORECASE)
_NOT_FINITE = late(r"^(?!not ).*\bis(?:nan|inf)\(|^not .*\bisfinite\(")
_RANK = r"\b(?:(?:get|local|global|world|node|process|dist|dp|tp|pp)_)*rank\b"
_IS_RANK = late(
    rf"(?:\w+\.)*{_RANK}(?:\(\))? (?:== 0|in \[-1, 0\]|in \(-1, 0\)|<= 0|< 1)"
    r"|(?:\w+\.)*is_(?:main|local_main)(?:_process)?(?:\(\))?"
)
_WITH_BODIES = ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_OFTEN = 5
"""What is done every so many steps, or more often, is done in training."""
_RARE = late(
    r"not self\.training|debug|verbose|\bis_first(?:_(?:batch|call|epoch|iter\w*|run|step))?\b"
    r"|(?<!num_)(?<!\bn_)(?:epoch|step) ==|is_main|isEnabledFor"
    r"|\b(?:do_|should_)?log(?:ging|ger|_(?:every|interval|freq|steps?|iter|period|now|images?))?\b(?!\()"
    rf"|{_RANK}(?:\(\))? (?:==|!=|<=?|>=?|in|not in) |\bnot (?:\w+\.)*{_RANK}"
    r"|not .*\btraining\b|sagemaker|is_tracing|is_exporting|export|output_type ==|== 'mps'"
    r"|pruned_heads"
)
_RARE_WORD = late(
    r"training|debug|verbose|is_first|log|epoch|step|is_main|rank|isEnabledFor|sagemaker|is_tracing"
    r"|export|output_type|mps|is(?:nan|inf|finite)|pruned_heads"
)
"""Words in names and strings of the conditions above."""
