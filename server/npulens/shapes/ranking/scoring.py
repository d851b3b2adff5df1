"""How much a place hurts: what it costs, how often it is reached, and from where."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from npulens.catalog.model import Severity
from npulens.checks.segments.shape_answers import Described
from npulens.syntax.bindings import Function
from npulens.syntax.statements import ParsedText
from npulens.text.late_patterns import late

HOT = late(r"forward|loss|criterion|training_step|train_step|compute_loss|train_one_epoch")
COLD = late(
    r"(?<!retri)eval|(?<![a-z])test|(?<![a-z])val(?![ui])|validat"
    r"|post_?process|export|debug|__init__|init_|load(?!er)|save|dump|log(?!it|sum|prob|_?softmax)"
    r"|profile|bench|(?:main|model)_info|setup|from_pretrained|calibrat|cuda_kernels|state_dict|set_timesteps"
    r"|resize_\w*(?:table|embed)|prun|quant(?!i[lz])|summary|stat_|report|recover|resume|to_cpu"
    r"|offload|class_weight|(?<![a-z])smp_|ndarray|(?:to_?|2)(?:numpy|np)(?![a-z])"
)
"""Start-up, evaluation and logging, whoever calls it; also functions that make arrays."""
_START = late(r"build|check(?!point)|convert|prepare|preprocess")
"""What is done at start-up unless the forward pass or a loss calls it."""
_METRIC = late(r"(?<!geo)(?<!sym)metric|accuracy")
"""What is done for evaluation unless a training step calls it."""
_VALIDATES = late(r"_?validate(?:_|\Z)")
_IS_DEPRECATED = late("is deprecated")
_LEAVING = late(r"(\w{1,80})\W{1,4}(?:method |function )?\Z")
_REMOVED = late(r"[^\n]{1,40}\bremoved\b")
_BEFORE = 100
"""How far before these words a name may begin."""
_DEPRECATE = late(r"(?<![^\W\d])deprecate\(\s{0,99}[\"'](\w{1,80})")
_LEAVES = late(r"\W{0,9}deprecated\b[^\n]{0,80}\bremoved\b", re.IGNORECASE)
_COMMENT = late(r"#[^\n]*")
_LAST_NAME = late(r"[A-Za-z_]\w*\Z")
_LONGEST_NAME = 100
"""With the text before it."""
_OBJECTS = late(r"\bpickle\.(?:loads|dumps)\(|\w_gloo_group\(|gloo_group\s*=")
_ANYONES = (".update",)
"""A method of which too many classes have one to say by its name who calls it."""
_PER_LOOP, _IF_HOT = 12, 15
_NEUTRAL, _COLD, _RARELY, _APART = 0.7, 0.21, 0.2, 0.2
"""By all but the first, the most costly operator in two loops stays below what is reported."""
_WARNING, _INFO = 60, 40
REPORTED = 20
"""Places of a lower score are in the ranked list alone."""


class Reach(NamedTuple):
    """From where a function is reached.

    Attributes:
        is_hot: From the forward pass or a training loop.
        is_cold: Only at start-up, for evaluation or for logging.
        in_loops: Its loops train, not the code around them.
        is_unused: It will be removed, and nothing of the module calls it.
        is_on_host: Only by scripts that name no device, so that it costs nothing.
    """

    is_hot: bool
    is_cold: bool
    in_loops: bool = False
    is_unused: bool = False
    is_on_host: bool = False


def score(cost: int, loops: int, reach: Reach, is_rare: bool, is_apart: bool = False) -> int:
    """From 0 to 100.

    Args:
        cost: How much the operator hurts in a step.
        loops: How many loops of its function are around it.
        reach: From where the function is reached.
        is_rare: It is reached every so many steps, or in evaluation only.
        is_apart: Its file is for evaluation, pictures or conversion, or nothing uses its class.
    """
    if reach.is_on_host:
        return 0
    base = cost + _PER_LOOP * min(loops, 2)
    if is_apart or reach.is_unused:
        return round(base * _APART)
    if is_rare or reach.is_cold:
        return round(base * (_RARELY if is_rare else _COLD))
    is_hot = reach.is_hot and (loops > 0 or not reach.in_loops)
    return min(100, base + _IF_HOT) if is_hot else round(base * _NEUTRAL)


def severity_of(points: int) -> Severity:
    """How severe a place of a score is."""
    if points >= _WARNING:
        return Severity.WARNING
    return Severity.INFO if points >= _INFO else Severity.HINT


def sends_objects(text: str) -> bool:
    """Whether a function sends objects as bytes, as is done with results of an evaluation."""
    return ("pickle" in text or "gloo" in text) and _OBJECTS.search(text) is not None


def leaving(parsed: ParsedText) -> Iterator[str]:
    """Classes, functions and methods of a segment that say that they will be removed."""
    marked = set(_marked_to_leave(parsed.text))
    for node in parsed.body:
        if isinstance(node, (ast.ClassDef, Function)) and _is_leaving(node, marked):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, Function) and _is_leaving(method, marked):
                    yield f"{node.name}.{method.name}"


def _marked_to_leave(text: str) -> Iterator[str]:
    """Names of which a text says that they are deprecated and will be removed."""
    for said in _IS_DEPRECATED.finditer(text):
        named = _LEAVING.search(text[max(0, said.start() - _BEFORE) : said.start()])
        if named is not None and _REMOVED.match(text, said.end()) is not None:
            yield named[1]
    yield from (called[1] for called in _DEPRECATE.finditer(text))


def _is_leaving(node: ast.ClassDef | Function, marked: set[str]) -> bool:
    text = ast.get_docstring(node, clean=False) or ""
    return node.name in marked or _LEAVES.match(text) is not None


def reaches(functions: Iterable[Described], leaving: Iterable[str] = ()) -> Mapping[str, Reach]:
    """From where each function of a module is reached, as far as the module shows.

    Classes and functions that are leaving, and that nothing else calls, count as cold.
    """
    known = _with_loops_that_train(list(functions))
    unused = set(leaving)
    for function in known:
        if not _is_of(function, unused):
            unused -= {name for name in unused if name.rpartition(".")[2] in function.calls}
    if unused:
        known = [function._replace(is_unused=_is_of(function, unused)) for function in known]
    hot = {
        f.name
        for f in known
        if not f.is_unused
        and (f.trains or (_is_hot_name(f) and not (_is_cold(f.name) or _is_late(f.name))))
    }
    cold = {f.name for f in known if f.is_unused or f.sends_objects or _is_cold(f.name)} - hot
    by_last: defaultdict[str, list[Described]] = defaultdict(list)
    for function in known:
        by_last[function.name.rpartition(".")[2]].append(function)
    by_name = {function.name: function for function in known}
    for made, constructor in _made_in_forward(known, by_name):
        by_last[made].append(constructor)
        cold.discard(constructor.name)
    cold -= set(_checks_of_forward(known, by_name))
    hot = _spread(hot, by_last, by_name, cold)
    cold |= {f.name for f in known if _is_late(f.name)} - hot
    callers: defaultdict[str, set[str]] = defaultdict(set)
    for function in known:
        for called in function.calls & by_last.keys():
            callers[called].add(function.name)
    found = {}
    for function in known:
        name = function.name
        last = name.rpartition(".")[2]
        # An override that calls what it overrides is called as that is.
        by = {
            caller
            for caller in callers[last] - {name}
            if caller in cold or caller.rpartition(".")[2] != last
        }
        is_called_cold = bool(by) and by <= cold and not name.endswith(_ANYONES)
        is_cold = name in cold or (is_called_cold and name not in hot)
        in_loops = function.loops_train and not _is_hot_name(function)
        found[name] = Reach(name in hot, is_cold, in_loops, function.is_unused)
    return found


def _made_in_forward(
    functions: list[Described], by_name: Mapping[str, Described]
) -> Iterator[tuple[str, Described]]:
    """Classes that a forward pass makes anew in each step, with their constructors.

    Such as a dispatcher of tokens to experts; layers are made once.
    """
    for function in functions:
        if function.name.rpartition(".")[2] == "forward":
            for called in function.calls:
                constructor = by_name.get(f"{called}.__init__")
                if constructor is not None and not constructor.is_module:
                    yield called, constructor


def _checks_of_forward(
    functions: list[Described], by_name: Mapping[str, Described]
) -> Iterator[str]:
    """Methods that a forward pass has check what it is given: `self._validate(mask)`."""
    for function in functions:
        owner, _, last = function.name.rpartition(".")
        if owner and last == "forward":
            for called in function.calls:
                if _VALIDATES.match(called) is not None and f"{owner}.{called}" in by_name:
                    yield f"{owner}.{called}"


def _with_loops_that_train(functions: list[Described]) -> list[Described]:
    """The functions, of which those train whose loops call a step of training."""
    steps = {f.name.rpartition(".")[2] for f in functions if f.trains and not f.loops_train}
    return [
        f._replace(trains=True, loops_train=True)
        if f.has_loop and not f.trains and not steps.isdisjoint(f.calls)
        else f
        for f in functions
    ]


def _spread(
    start: set[str],
    by_last: Mapping[str, list[Described]],
    by_name: Mapping[str, Described],
    cold: set[str],
) -> set[str]:
    reached, pending = set(start), list(start)
    while pending:
        caller = by_name[pending.pop()]
        around_loop = caller.loops_train and not _is_hot_name(caller)
        for called in caller.calls:
            for function in by_last.get(called, ()):
                if around_loop and _is_start(function.name):
                    continue
                if function.name not in reached and function.name not in cold:
                    reached.add(function.name)
                    pending.append(function.name)
    return reached


def _is_of(function: Described, names: set[str]) -> bool:
    return function.name in names or function.name.partition(".")[0] in names


def _is_hot_name(function: Described) -> bool:
    owner, _, last = function.name.rpartition(".")
    if function.is_step:
        return True
    is_called = last == "__call__" and (function.is_module or HOT.search(owner.lower()) is not None)
    return is_called or HOT.search(last) is not None


@lru_cache(maxsize=4096)
def _is_cold(name: str) -> bool:
    return any(COLD.search(word) is not None for word in _words(name))


def is_late_name(name: str) -> bool:
    """Whether the name of a function says that it is not done in each step of training."""
    return _is_cold(name) or _is_late(name)


@lru_cache(maxsize=4096)
def _is_start(name: str) -> bool:
    return any(_START.search(word) is not None for word in _words(name))


@lru_cache(maxsize=4096)
def _is_late(name: str) -> bool:
    """Whether a name says that something is done at start-up or for evaluation."""
    return _is_start(name) or any(_METRIC.search(word) is not None for word in _words(name))


def _words(name: str) -> list[str]:
    """What the names of a class and its method say.

    A logger's meters are fed in each step, however rarely it prints.
    """
    words = name.lower().split(".")
    return words[-1:] if words[-1] == "update" else words


def calls_in(text: str) -> frozenset[str]:
    """The last parts of the names that a function calls, by its text.

    The text before each bracket is cut off with plain operations of strings: an expression
    takes a quarter of the time that parsing does.
    """
    found = set()
    for before in _COMMENT.sub("", text).split("(")[:-1]:
        *others, called = before[-_LONGEST_NAME:].rsplit(None, 2) or [""]
        name = called.rpartition(".")[2]
        if not name.isidentifier():
            last = _LAST_NAME.search(name)
            name = "" if last is None else last[0]
        if name and others[-1:] != ["def"]:
            found.add(name)
    return frozenset(found)
