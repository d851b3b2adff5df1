"""The one pass over the tree of LibCST that does what the steps ask for."""

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst
from libcst import matchers
from libcst.metadata import MetadataWrapper, PositionProvider

from npulens.fixes.multi_device.actions import FileActions, Position

_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)
_ASKING = matchers.Name("device_count") | matchers.Name("is_available")


def transformed(text: str, actions: FileActions) -> str:
    """The text of a file with all that is asked for done to it."""
    module = cst.parse_module(text)
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    return wrapper.visit(_Pass(actions, module)).code


class _Pass(cst.CSTTransformer):
    """Changes expressions where they stand, and blocks statement by statement."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, actions: FileActions, module: cst.Module) -> None:
        super().__init__()
        self._actions = actions
        self._module = module
        self._defined: list[cst.BaseStatement] = []
        self._emptied: list[cst.BaseStatement] = []

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        if isinstance(original_node, (cst.Module, cst.IndentedBlock)):
            body = self._block(original_node.body, updated_node.body)  # type: ignore[attr-defined]
            body = [*self._spaced(body)]
            if not body and isinstance(original_node, cst.IndentedBlock):
                body = [cst.parse_statement("pass")]
                self._emptied += body
            return updated_node.with_changes(body=body)
        if isinstance(original_node, cst.SimpleStatementSuite):
            return self._suite(original_node, updated_node)
        if isinstance(original_node, cst.BaseExpression):
            place = self.get_metadata(PositionProvider, original_node)
            key = ((place.start.line, place.start.column), (place.end.line, place.end.column))
            for change in self._actions.changes.get(key, ()):
                assert isinstance(updated_node, cst.BaseExpression)
                updated_node = change(updated_node)
        return updated_node

    def _block(
        self, originals: Sequence[cst.BaseStatement], updated: Sequence[cst.BaseStatement]
    ) -> list[cst.BaseStatement]:
        body: list[cst.BaseStatement] = []
        comments: list[cst.EmptyLine] = []
        for original, statement in zip(originals, updated, strict=True):
            if self._does_nothing(statement):
                continue
            for start, each in self._apart(original, statement):
                lines = [*comments, *getattr(each, "leading_lines", ())]
                comments = []
                if start in self._actions.removed and any(line.comment for line in lines):
                    comments = lines
                elif lines:
                    each = each.with_changes(leading_lines=lines)
                self._add(body, start, each)
        return body

    def _does_nothing(self, statement: cst.BaseStatement) -> bool:
        """Whether a condition guards nothing any more, and asks only for devices."""
        if not isinstance(statement, cst.If) or statement.orelse is not None:
            return False
        body = statement.body.body
        if len(body) != 1 or all(body[0] is not each for each in self._emptied):
            return False
        calls = matchers.findall(statement.test, matchers.Call())
        asks = matchers.Call(func=matchers.Attribute(attr=_ASKING))
        return all(matchers.matches(call, asks) for call in calls)

    def _spaced(self, body: list[cst.BaseStatement]) -> Iterator[cst.BaseStatement]:
        """Two empty lines behind a definition that was put in."""
        before: cst.BaseStatement | None = None
        for statement in body:
            if before is not None and before in self._defined:
                lines = [*getattr(statement, "leading_lines", ())]
                empty = next((at for at, line in enumerate(lines) if line.comment), len(lines))
                more = [cst.EmptyLine(indent=False)] * (2 - empty)
                statement = statement.with_changes(leading_lines=[*more, *lines])
                if before in self._defined and isinstance(statement, _DEFINITIONS):
                    self._defined.append(statement)
            before = statement
            yield statement

    def _add(
        self, body: list[cst.BaseStatement], start: Position, statement: cst.BaseStatement
    ) -> None:
        actions = self._actions
        before = self._statements(actions.before.get(start, ()))
        if start in actions.guarded:
            last = body[-1] if body and not before else None
            if isinstance(last, _Guard):
                body[-1] = last.with_more(statement)
            else:
                guard = _Guard.around(statement, actions.is_first)
                body += _led(before, guard)
        elif start in actions.removed:
            body += _led(before, statement)[: len(before)]
        else:
            body += _led(before, statement)
        body += self._statements(actions.behind.get(start, ()))

    def _statements(self, lines: Iterable[str]) -> list[cst.BaseStatement]:
        found: list[cst.BaseStatement] = []
        for each in lines:
            part = cst.parse_module(each, config=self._module.config_for_parsing)
            first, *rest = [s for s in part.body if isinstance(s, cst.BaseStatement)]
            blank = [*part.header, *getattr(first, "leading_lines", ())]
            found += [first.with_changes(leading_lines=blank), *rest]
        self._defined += [each for each in found if isinstance(each, _DEFINITIONS)]
        return found

    def _start(self, node: cst.CSTNode) -> Position:
        start = self.get_metadata(PositionProvider, node).start
        return start.line, start.column

    def _apart(
        self, original: cst.BaseStatement, updated: cst.BaseStatement
    ) -> list[tuple[Position, cst.BaseStatement]]:
        """A statement with its start; several of one line apart, if one of them is changed."""
        if not isinstance(original, cst.SimpleStatementLine):
            return [(self._start(original), updated)]
        assert isinstance(updated, cst.SimpleStatementLine)
        starts = [self._start(each) for each in original.body]
        if len(starts) == 1 or not any(map(self._is_touched, starts)):
            return [(starts[0], updated)]
        parts: list[tuple[Position, cst.BaseStatement]] = []
        for at, (start, small) in enumerate(zip(starts, updated.body, strict=True)):
            line = cst.SimpleStatementLine(
                [small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
            )
            if at == 0:
                line = line.with_changes(leading_lines=updated.leading_lines)
            if at == len(starts) - 1:
                line = line.with_changes(trailing_whitespace=updated.trailing_whitespace)
            parts.append((start, line))
        return parts

    def _is_touched(self, start: Position) -> bool:
        actions = self._actions
        return any(
            start in each
            for each in (actions.before, actions.behind, actions.guarded, actions.removed)
        )

    def _suite(self, original: cst.SimpleStatementSuite, updated: cst.CSTNode) -> cst.BaseSuite:
        """`if a: b`: statements of a line become a block, if one of them is changed."""
        assert isinstance(updated, cst.SimpleStatementSuite)
        starts = [self._start(each) for each in original.body]
        if not any(map(self._is_touched, starts)):
            return updated
        body: list[cst.BaseStatement] = []
        for start, small in zip(starts, updated.body, strict=True):
            line = cst.SimpleStatementLine(
                [small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
            )
            self._add(body, start, line)
        return cst.IndentedBlock(body or [cst.parse_statement("pass")])


class _Guard(cst.If):
    """What the first process alone runs."""

    @classmethod
    def around(cls, statement: cst.BaseStatement, condition: str) -> "_Guard":
        lines = getattr(statement, "leading_lines", ())
        plain = statement.with_changes(leading_lines=())
        return cls(cst.parse_expression(condition), cst.IndentedBlock([plain]), leading_lines=lines)

    def with_more(self, statement: cst.BaseStatement) -> "_Guard":
        return self.with_changes(body=cst.IndentedBlock([*self.body.body, statement]))


def _led(before: list[cst.BaseStatement], statement: cst.BaseStatement) -> list[cst.BaseStatement]:
    """Statements before another take the empty lines before it, and leave it its comments."""
    if not before:
        return [statement]
    lines = list(getattr(statement, "leading_lines", ()))
    count = next((at for at, line in enumerate(lines) if line.comment is not None), len(lines))
    first = before[0].with_changes(leading_lines=lines[:count])
    return [first, *before[1:], statement.with_changes(leading_lines=lines[count:])]
