"""Which statements hold a word that a rule could be about; the others are not visited."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from npulens.graphs.definitions import inner_statements, stored_by
from npulens.syntax.bindings import Function, target_names
from npulens.text.lines import LineMap

_INNER_IMPORT = re.compile(r"^[ \t]+(?:from|import)\b", re.MULTILINE)
_ANYWHERE = frozenset({"cuda", "nccl", "npu"})
"""Those of device names may be parts of others: `cuda0`, `to_npu`."""
_NAMED_BY = frozenset(".\"'")


class Interest:
    """Where words of the tables stand in a piece.

    Args:
        lines: The lines of the piece.
        triggers: The trigger words that stand in it.
        aliases: Names of the module that stand for something a table may know.
        parts: Trigger words that count behind a dot, in quotes, or where the module binds them.
        stars: Whether the module imports names by `*`, which binds nobody knows what.
    """

    def __init__(
        self,
        lines: LineMap,
        triggers: frozenset[str],
        aliases: frozenset[str],
        parts: frozenset[str],
        stars: bool,
    ) -> None:
        self._text = text = lines.text
        self._starts = lines.starts
        if stars or _INNER_IMPORT.search(text) is not None:
            parts = frozenset()
        words = triggers | {alias for alias in aliases if alias in text}
        places = [at for word in words - parts for at in _places(text, word)]
        for word in words & parts:
            is_bound = word in aliases
            places += (at for at in _places(text, word) if is_bound or _is_named(text, at))
        self._places = sorted(places)
        self._imports = bool(words)

    def among(self, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        """Those of some statements that are worth a visit."""
        for node in body:
            if self._holds(node) or (
                self._imports and isinstance(node, ast.Import | ast.ImportFrom)
            ):
                yield node

    def members(self, node: ast.ClassDef, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        """Those of some statements of a class that are worth a visit.

        Methods are not that neither hold a word nor an attribute that was given one.
        """
        attributes = [f".{name}" for name in self._attributes(node)]
        for statement in body:
            if not isinstance(statement, Function) or self._holds(statement):
                yield statement
            else:
                start, end = self._reach(statement)
                if any(self._text.find(name, start, end) >= 0 for name in attributes):
                    yield statement

    def _attributes(self, node: ast.ClassDef) -> set[str]:
        """Attributes whose value holds a word, or is an argument whose annotation does."""
        found: set[str] = set()
        for method in node.body:
            if isinstance(method, ast.Assign | ast.AnnAssign) and self._holds(method):
                targets = method.targets if isinstance(method, ast.Assign) else [method.target]
                found.update(name for target in targets for name in target_names(target))
            if not isinstance(method, Function) or not self._holds(method):
                continue
            first = next(iter([*method.args.posonlyargs, *method.args.args]), None)
            header = self._starts[method.lineno - 1], self._starts[method.body[0].lineno - 1]
            in_header = self._is_between(*header)
            for statement in inner_statements(method.body):
                if not isinstance(statement, ast.Assign | ast.AnnAssign):
                    continue
                is_argument = in_header and isinstance(statement.value, ast.Name)
                if first is not None and (is_argument or self._holds(statement)):
                    found.update(stored_by(statement, first.arg))
        return found

    def _holds(self, node: ast.stmt) -> bool:
        return self._is_between(*self._reach(node))

    def _is_between(self, start: int, end: int) -> bool:
        index = bisect_left(self._places, start)
        return index < len(self._places) and self._places[index] < end

    def _reach(self, node: ast.stmt) -> tuple[int, int]:
        """From where to where the lines of a statement go."""
        decorators = getattr(node, "decorator_list", None)
        first = decorators[0].lineno if decorators else node.lineno
        last = node.end_lineno or node.lineno
        end = self._starts[last] if last < len(self._starts) else len(self._text)
        return self._starts[first - 1], end


def _places(text: str, word: str) -> Iterator[int]:
    """Where a word stands alone; behind one with a dot before it, anything may be."""
    anywhere = word in _ANYWHERE
    inner = word.startswith(".")
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if anywhere or (
            not _is_letter(text[end : end + 1])
            and (inner or at == 0 or not _is_letter(text[at - 1]))
        ):
            yield at
        at = text.find(word, end)


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_named(text: str, at: int) -> bool:
    """Whether a word is an attribute or a string, by what stands before it."""
    before = text[at - 1 : at]
    if before.isspace():  # `torch.nn. \` and so on
        before = text[max(at - 100, 0) : at].rstrip(" \t\r\n\\")[-1:]
        return before == "."
    return before in _NAMED_BY
