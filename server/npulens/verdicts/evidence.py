"""Statements that do for the NPU what another one does for CUDA, by what they do and not by words.

`if is_npu_available(): torch.npu.synchronize()` has the same for CUDA beside it. Naming the NPU is
not enough: what moves, wraps, sets or returns something for CUDA has to be done for the NPU too.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from npulens.catalog.settlements import Settlement
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.verdicts.npu_words import SegmentText

_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_WRAPPERS = re.compile(r"(?:Parallel|DDP|FSDP|GradScaler|autocast|init_process_group)\Z")
_MOVES = frozenset({"npu", "to", "to_empty"})
_SETTERS = frozenset({"npu.set_device", "npu.manual_seed", "npu.manual_seed_all"})
_MOST_EFFECTS = 20
"""Of more different arms for the NPU in one block, only the first are compared."""
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def leaves(body: list[ast.stmt]) -> bool:
    """Whether a program does not go on behind a block."""
    return isinstance(body[-1], _LEAVES)


def renamed(text: str) -> str:
    """A name or a text of CUDA's as that of the NPU."""
    text = text.replace("nccl", "hccl").replace("NCCL", "HCCL")
    return re.sub(r"cuda|gpu", "npu", text, flags=re.IGNORECASE)


class Effects(NamedTuple):
    """What statements do to devices, with CUDA's names as those of the NPU.

    Attributes:
        called: Functions of devices, wrappers of models, and moves.
    """

    called: frozenset[str]
    assigned: frozenset[str]
    returns: bool

    @property
    def sets_devices(self) -> bool:
        """Whether something is moved, wrapped or set without which nothing runs on a device."""
        return any(
            name == "move" or name in _SETTERS or _WRAPPERS.search(name) for name in self.called
        )

    def covers(self, other: "Effects") -> bool:
        """Whether these statements do all that others do."""
        if not other.called <= self.called or (other.returns and not self.returns):
            return False
        return not other.assigned or not other.assigned.isdisjoint(self.assigned)


def effects(body: Iterable[ast.AST], code: SegmentText) -> Effects:
    """What some statements do."""
    called: set[str] = set()
    assigned: set[str] = set()
    returns = False
    for part in (part for statement in body for part in nodes_below(statement)):
        if isinstance(part, ast.Call):
            name = _effect_of_call(part.func)
            if name:
                called.add(name)
        elif isinstance(part, (ast.Assign, ast.AnnAssign)):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            assigned.update(renamed(code.source(target)) for target in targets)
        returns = returns or (isinstance(part, ast.Return) and part.value is not None)
    return Effects(frozenset(called), frozenset(assigned), returns)


def _distinct(tests: list[ast.If], code: SegmentText) -> list[tuple[ast.If, Effects]]:
    """Tests with what their bodies do, one for each of a few different effects."""
    found = {effects(node.body, code): node for node in reversed(tests)}
    return [(node, done) for done, node in list(found.items())[-_MOST_EFFECTS:]]


def _effect_of_call(callee: ast.expr) -> str:
    """A name for what a call does to a device; empty for all other calls."""
    name = last_name(callee)
    if _WRAPPERS.search(name):
        return str(name)
    owner = callee.value if isinstance(callee, ast.Attribute) else None
    if isinstance(owner, ast.Attribute) and owner.attr in ("cuda", "npu"):
        return f"npu.{renamed(name)}"
    is_move = owner is not None and renamed(name) in _MOVES
    return "move" if is_move else ""


def done_beside(
    body: list[ast.stmt], npu_tests: list[ast.If], code: SegmentText
) -> Iterator[tuple[ast.stmt, Settlement]]:
    """Statements of a block that another one of it does for the NPU.

    `npu_tests` are those of its `if`s that the NPU takes.
    """
    block = _Block(body, npu_tests, code)
    for statement in body:
        other = block.twin(statement)
        if other is not None:
            yield statement, Settlement("npu-way-beside", code.span(other))


class _Block:
    """The statements of a block by what they do for CUDA and for the NPU."""

    def __init__(self, body: list[ast.stmt], npu_tests: list[ast.If], code: SegmentText) -> None:
        self._body = body
        self._code = code
        self._done = _distinct([n for n in npu_tests if code.author_mentions_npu(n.test)], code)
        self._tests = {code.source(s.test): s for s in reversed(body) if isinstance(s, ast.If)}
        assigned = [s for s in body if isinstance(s, ast.Assign)]
        self._targets = {code.source(s.targets[0]): s for s in assigned}
        self._decided = {
            code.source(part.targets[0]): node
            for node in npu_tests
            for part in node.body
            if isinstance(part, ast.Assign)
        }

    def twin(self, statement: ast.stmt) -> ast.stmt | None:
        """What does the same for the NPU as a statement of the block does for CUDA."""
        code = self._code
        if isinstance(statement, ast.If):
            return self._twin_of_test(statement)
        if isinstance(statement, ast.Assign):
            target = code.source(statement.targets[0])
            twin = renamed(target) if _CUDA.search(target) else target
            if twin != target and twin in self._targets:
                return self._targets[twin]
            # `has_cuda = torch.cuda.is_available()`, then `torch.cuda if has_cuda else torch.npu`
            if _CUDA.search(code.source(statement.value)) and self._considers(target, statement):
                return statement
            again = self._decided.get(target)
            if again is None or code.mentions_npu(statement.value):
                return None
            is_after = again.lineno > statement.lineno
            return again if is_after and not self._builds_on(target, again) else None
        if isinstance(statement, ast.Expr):
            wanted = effects([statement], code)
            if wanted.called and _CUDA.search(code.source(statement)):
                return self._doing(wanted)
        return None

    def _doing(self, wanted: Effects) -> ast.If | None:
        """The test for the NPU whose body does all of this."""
        return next((node for node, found in self._done if found.covers(wanted)), None)

    def _twin_of_test(self, statement: ast.If) -> ast.stmt | None:
        code = self._code
        test = code.source(statement.test)
        if not _CUDA.search(test) or code.mentions_npu(statement.test):
            return None
        wanted = effects(statement.body, code)
        node, other = self._doing(wanted), self._tests.get(renamed(test))
        if node is not None or other is None or other is statement:
            return node
        return other if effects(other.body, code).covers(wanted) else None

    def _builds_on(self, target: str, again: ast.If) -> bool:
        """Whether what is assigned where there is an NPU goes on with it: `model = wrap(model)`."""
        for part in again.body:
            if isinstance(part, ast.Assign) and self._code.source(part.targets[0]) == target:
                words = re.findall(r"[\w.]+", self._code.source(part.value))
                return any(word == target or word.startswith(f"{target}.") for word in words)
        return False

    def _considers(self, name: str, statement: ast.stmt) -> bool:
        """Whether a name is used behind a statement, and always with the NPU's way beside it."""
        used, used_alone = self._last_uses
        line = statement.end_lineno or statement.lineno
        return used.get(name, 0) > line >= used_alone.get(name, 0)

    @cached_property
    def _last_uses(self) -> tuple[dict[str, int], dict[str, int]]:
        """By name the line of its last use, and of its last one with no way of the NPU beside."""
        used: dict[str, int] = {}
        used_alone: dict[str, int] = {}
        beside_npu = {use for part in self._choices() for use in _names([part])}
        for use in _names(self._body):
            for lines in (used,) if use in beside_npu else (used, used_alone):
                lines[use.id] = max(use.lineno, lines.get(use.id, 0))
        return used, used_alone

    def _choices(self) -> Iterator[ast.expr]:
        """Conditions, and whole `or`s, with the NPU's way beside them."""
        for part in (part for statement in self._body for part in nodes_below(statement)):
            if isinstance(part, ast.IfExp) and self._code.mentions_npu(part.orelse):
                yield part.test
            elif isinstance(part, ast.BoolOp) and self._code.mentions_npu(part):
                yield from [part] if isinstance(part.op, ast.Or) else ()


def device_renames(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
    """`if kind == "gpu": kind = "cuda"`, where `kind` is compared with a list with `"npu"`."""
    names = set(_listed_names(function))
    for node in nodes_below(function) if names else ():
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            if isinstance(left, ast.Name) and left.id in names:
                yield from (s for s in node.body if isinstance(s, ast.Assign))


def done_elsewhere(
    function: ast.FunctionDef | ast.AsyncFunctionDef, npu_tests: list[ast.If], code: SegmentText
) -> Iterator[tuple[ast.stmt, Settlement]]:
    """Calls in inner blocks that a function makes for the NPU in another block."""
    done = _distinct(npu_tests, code)
    for statement in nodes_below(function) if done else ():
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            wanted = effects([statement], code)
            if wanted.called and _CUDA.search(code.source(statement)):
                doing = (n for n, found in done if found.covers(wanted) and statement not in n.body)
                node = next(doing, None)
                if node is not None:
                    yield statement, Settlement("npu-way-beside", code.span(node))


def _names(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    for part in (part for node in nodes for part in nodes_below(node)):
        if isinstance(part, ast.Name):
            yield part


def _listed_names(function: ast.AST) -> Iterator[str]:
    """Names that a function holds against a list with the NPU: `kind not in ("gpu", "npu")`."""
    for node in nodes_below(function):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Name)
            and isinstance(node.comparators[0], (ast.List, ast.Tuple, ast.Set))
            and any(getattr(e, "value", "") == "npu" for e in node.comparators[0].elts)
        ):
            yield node.left.id
