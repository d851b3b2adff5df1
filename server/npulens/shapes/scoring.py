"""How much a place hurts: what it costs, how often it is reached, and from where."""

import ast
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from npulens.catalog.model import Severity

HOT = re.compile(r"forward|loss|criterion|training_step|train_step|compute_loss|train_one_epoch")
COLD = re.compile(
    r"eval|(?<![a-z])test|(?<![a-z])val(?!u)|metric|accuracy|post_?process|export|convert|debug"
    r"|__init__|init_|build|setup|load(?!er)|save|dump|log|profile|bench|main_info|check|from_pretrained"
    r"|prepare|preprocess|prun|quant|summary|stat_|report"
)
_COLD_FILE = re.compile(
    r"(?:^|[/\\])(?:\w*(?:metric|plot|visual|eval|bench|test|export|convert|logger)\w*|val)"
    r"(?:\.py$|[/\\])"
)
_HOST_FILE = re.compile(
    r"(?:^|[/\\])(?:data|datasets?|transforms|pipelines_data)[/\\]"
    r"|(?:^|[/\\])(?:image_processing|processing|feature_extraction|tokenization|augment|dataset)\w*\.py$"
)
_PER_LOOP, _IF_HOT = 12, 15
_NEUTRAL, _COLD = 0.7, 0.3
_WARNING, _INFO = 60, 40
TOLD = 20
"""Places of a lower score are in the ranked list alone."""


class Reach(NamedTuple):
    """From where a function is reached.

    Attributes:
        is_hot: From the forward pass or a training loop.
        is_cold: Only at start-up, for evaluation or for logging.
        in_loops: It is its loops that train, not what stands around them.
    """

    is_hot: bool
    is_cold: bool
    in_loops: bool = False


def score(cost: int, loops: int, reach: Reach, is_rare: bool) -> int:
    """From 0 to 100.

    Args:
        cost: How much the operator hurts in a step.
        loops: How many loops of its function are around it.
        reach: From where the function is reached.
        is_rare: It is reached every so many steps, or in evaluation only.
    """
    base = cost + _PER_LOOP * min(loops, 2)
    if is_rare or reach.is_cold:
        return round(base * _COLD)
    is_hot = reach.is_hot and (loops > 0 or not reach.in_loops)
    return min(100, base + _IF_HOT) if is_hot else round(base * _NEUTRAL)


def severity_of(points: int) -> Severity:
    """How loud a place of a score is told."""
    if points >= _WARNING:
        return Severity.WARNING
    return Severity.INFO if points >= _INFO else Severity.HINT


class Described(NamedTuple):
    """A function as the call graph knows it.

    Attributes:
        name: `function` or `Class.method`.
        calls: The last parts of the names that it calls.
        trains: It holds a backward pass.
        is_module: It is a method of a class with a `forward`.
    """

    name: str
    calls: frozenset[str]
    trains: bool
    is_module: bool


def reaches(functions: Iterable[Described]) -> Mapping[str, Reach]:
    """From where each function of a module is reached, as far as the module shows."""
    known = list(functions)
    hot = {f.name for f in known if f.trains or (_is_hot_name(f) and not _is_cold_name(f.name))}
    cold = {f.name for f in known if _is_cold_name(f.name)} - hot
    by_last: dict[str, list[Described]] = {}
    for function in known:
        by_last.setdefault(function.name.rpartition(".")[2], []).append(function)
    by_name = {function.name: function for function in known}
    hot = _spread(hot, by_last, by_name, cold)
    callers: dict[str, set[str]] = {}
    for function in known:
        for called in function.calls:
            callers.setdefault(called, set()).add(function.name)
    found = {}
    for function in known:
        name = function.name
        by = callers.get(name.rpartition(".")[2], set()) - {name}
        is_cold = name in cold or (bool(by) and by <= cold and name not in hot)
        in_loops = function.trains and not _is_hot_name(function)
        found[name] = Reach(name in hot, is_cold, in_loops)
    return found


def _spread(
    start: set[str],
    by_last: Mapping[str, list[Described]],
    by_name: Mapping[str, Described],
    cold: set[str],
) -> set[str]:
    reached, pending = set(start), list(start)
    while pending:
        for called in by_name[pending.pop()].calls:
            for function in by_last.get(called, ()):
                if function.name not in reached and function.name not in cold:
                    reached.add(function.name)
                    pending.append(function.name)
    return reached


def _is_hot_name(function: Described) -> bool:
    last = function.name.rpartition(".")[2]
    return HOT.search(last) is not None or (function.is_module and last == "__call__")


def _is_cold_name(name: str) -> bool:
    return COLD.search(name.lower()) is not None


def calls_in(node: ast.AST) -> frozenset[str]:
    """The last parts of the names that a function calls."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            callee = part.func
            if isinstance(callee, ast.Attribute):
                found.add(callee.attr)
            elif isinstance(callee, ast.Name):
                found.add(callee.id)
    return frozenset(found)


def is_cold_file(path: str) -> bool:
    """Whether a file is for evaluation, pictures or conversion."""
    return _COLD_FILE.search(path) is not None


def is_host_file(path: str) -> bool:
    """Whether a file prepares data on the host."""
    return _HOST_FILE.search(path) is not None


def is_rare_test(node: ast.expr) -> bool:
    """Whether a condition holds every so many steps, outside of training or for debugging."""
    text = ast.unparse(node)
    return "%" in text or _RARE.search(text) is not None


_RARE = re.compile(
    r"not self\.training|debug|verbose|is_first|log_|logging|epoch ==|step ==|is_main|rank"
    r"|not .*\btraining\b|is_tracing|is_exporting|export"
)
