"""Results in bfloat16 that would become arrays of NumPy, which has no such type."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator

from npulens.fixes.instruments.half_values import HalfValues
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.flow import RETURN_ITSELF, Flow
from npulens.training.loss_regions import LossRegion

_TAKE_ARRAYS = frozenset({"numpy", "sklearn", "skimage", "scipy", "cv2", "pandas", "matplotlib"})
"""Libraries that make arrays of what they are given."""
_NO_ARRAYS = frozenset({"ndim", "shape", "size", "isscalar"})
_WRITE_IMAGES = frozenset({"add_image", "add_images", "add_histogram", "add_figure", "add_audio"})
"""Methods of `SummaryWriter` that make arrays."""
_MOST_CALLS = 3
"""How deep calls are followed."""


class ArraySearch:
    """Follows what a script computes under autocast to where it becomes an array.

    Args:
        sites: The calls of the script, and of what it imports as far as that is looked at.
        flow: Where its values come from.
        regions: What is put under autocast.
    """

    def __init__(self, sites: CallSites, flow: Flow, regions: Iterable[LossRegion]) -> None:
        self._sites, self._flow = sites, flow
        self._line = 1
        self._regions = tuple(regions)
        self._cast = {
            id(node)
            for region in self._regions
            for statement in region.statements
            for node in nodes_below(statement)
            if isinstance(node, ast.stmt)
        }
        self._known: dict[tuple[int, frozenset[str], bool], list[bool]] = {}

    def require_none(self) -> None:
        """See that nothing in bfloat16 becomes an array.

        Raises:
            UnclearError: Something may.
        """
        for region in self._regions:
            first = region.statements[0]
            place = self._flow.places.get(first)
            if place is None:
                continue
            values = self._values(place.function, (), 0, is_cast=False)
            self._read(place.function, values, first.lineno, 0)
            own = {name for name in values.names if name.startswith("self.")}
            methods = () if place.owner is None or not own else place.owner.body
            for method in methods:
                if isinstance(method, Function) and method is not place.function:
                    self._from(method, own, _MOST_CALLS - 1)

    def _values(
        self, function: Function | None, names: Collection[str], depth: int, *, is_cast: bool
    ) -> HalfValues:
        def casts(statement: ast.stmt) -> bool:
            return is_cast or id(statement) in self._cast

        return HalfValues(self._meanings, self._result_at(depth), casts, names)

    def _from(
        self, function: Function, names: Collection[str], depth: int, *, is_cast: bool = False
    ) -> list[bool]:
        """What a function returns, part by part, if some names are of half precision."""
        values = self._values(function, names, depth, is_cast=is_cast)
        return self._read(function, values, 0, depth)

    def _read(
        self, function: Function | None, values: HalfValues, line: int, depth: int
    ) -> list[bool]:
        """Go through a function from a line on, and then its callers with what it returns."""
        program = self._sites.program
        body = program.body_of(program.start) if function is None else function.body
        returned: list[bool] = []
        self._read_block(body, values, line, returned)
        if any(returned) and function is not None and line and depth < _MOST_CALLS:
            self._in_callers(function, returned, depth)
        return returned

    def _read_block(
        self, body: Iterable[ast.stmt], values: HalfValues, line: int, returned: list[bool]
    ) -> None:
        """Go through a block from a line on, and collect what it returns."""
        for statement in body:
            if (statement.end_lineno or statement.lineno) < line:
                continue
            values.come_to(statement)
            self._require_no_array(statement, values)
            values.read(statement)
            if isinstance(statement, ast.Return) and statement.value is not None:
                parts = values.parts(statement.value)
                returned[:] = parts if not returned else _either(returned, parts)
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            start, ends = set(values.names), set[str]()
            for block in _blocks(statement):
                values.names = set(start)
                self._read_block(block, values, line, returned)
                ends |= values.names
            is_left_out = isinstance(statement, (ast.If, ast.Try)) and not (
                isinstance(statement, ast.If) and statement.orelse
            )
            if ends or [*_blocks(statement)]:
                values.names = ends | start if is_left_out else ends

    def _in_callers(self, function: Function, returned: list[bool], depth: int) -> None:
        """Go on with what a function with a region returns."""
        for site in self._sites.callers(function):
            statement = site.statement
            if not isinstance(statement, ast.Assign) or statement.value is not site.node:
                continue
            assigned = HalfValues(self._meanings, lambda *_: returned, lambda _: False)
            assigned.read(statement)
            if assigned.names:
                values = self._values(site.function, assigned.names, depth + 1, is_cast=False)
                self._read(site.function, values, statement.lineno + 1, depth + 1)

    def _meanings(self, function: ast.expr) -> list[str]:
        """The full names of what a library defines, also of what makes an object: a criterion."""
        found = [_of_itself(name) for name in self._flow.library_names(function)]
        if found or not isinstance(function, (ast.Name, ast.Attribute)):
            return found
        made = (value.node for value in self._flow.origins(function) if not value.path)
        return [
            _of_itself(name)
            for node in made
            if isinstance(node, ast.Call)
            for name in self._flow.library_names(node)
        ]

    def _result_at(self, depth: int) -> Callable[[ast.Call, HalfValues], list[bool] | None]:
        """What calls of functions of the file return, which are followed."""

        def result(call: ast.Call, values: HalfValues) -> list[bool] | None:
            site = self._sites.site_of.get(call)
            functions = () if site is None else self._sites.run_by(site)
            if site is None or not functions:
                return None
            found: list[bool] = []
            for function in functions:
                names = frozenset(_given(site, function, values))
                is_cast = values.is_cast
                key = (id(function), names, is_cast)
                if depth >= _MOST_CALLS or not (names or is_cast):
                    continue
                if key not in self._known:
                    self._known[key] = []  # while it is read
                    self._known[key] = self._from(function, names, depth + 1, is_cast=is_cast)
                found = self._known[key] or found
            return found or None

        return result

    def _require_no_array(self, statement: ast.stmt, values: HalfValues) -> None:
        program = self._sites.program
        is_here = program.module_with[statement] is program.start
        for node in _own_nodes(statement):
            if is_here:
                self._line = getattr(node, "lineno", self._line)
            if isinstance(node, ast.Attribute) and node.attr == "numpy":
                is_array = values.is_half(node.value)
            elif isinstance(node, ast.Call):
                values.parts(node)  # follows the call
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                is_array = self._takes_array(node) and any(map(values.is_half, given))
            else:
                continue
            if is_array:
                raise UnclearError(self._line, "instrument.no-array-of-bfloat16")

    def _takes_array(self, call: ast.Call) -> bool:
        if last_name(call.func) in _WRITE_IMAGES:
            return True
        return any(
            name.partition(".")[0] in _TAKE_ARRAYS and name.rpartition(".")[2] not in _NO_ARRAYS
            for name in self._flow.library_names(call.func)
        )


def _of_itself(name: str) -> str:
    """`torch.nn.MSELoss` of `torch.nn.MSELoss.cuda`, which returns its object."""
    owner, _, last = name.rpartition(".")
    return _of_itself(owner) if last in RETURN_ITSELF and owner[:1] else name


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, each of which may run without the others."""
    if isinstance(statement, (ast.Try, ast.For, ast.AsyncFor, ast.While)):
        rest = [*statement.orelse, *getattr(statement, "finalbody", ())]
        yield [*statement.body, *rest]
        for handler in getattr(statement, "handlers", ()):
            yield handler.body
        return
    for name in ("body", "orelse"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for case in getattr(statement, "cases", ()):
        yield case.body


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without its blocks."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    pending = [c for c in ast.iter_child_nodes(statement) if not isinstance(c, ast.stmt)]
    for child in pending:
        if not isinstance(child, ast.ExceptHandler):
            yield from nodes_below(child)


def _given(site: Site, function: Function, values: HalfValues) -> Iterator[str]:
    """The parameters of a function for which a call gives something of half precision."""
    assert isinstance(site.node, ast.Call)
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    for parameter, argument in zip(parameters, site.node.args, strict=False):
        if values.is_half(argument):
            yield parameter
    for keyword in site.node.keywords:
        if keyword.arg is not None and values.is_half(keyword.value):
            yield keyword.arg


def _either(one: list[bool], other: list[bool]) -> list[bool]:
    if len(one) != len(other):
        return [any(one) or any(other)]
    return [a or b for a, b in zip(one, other, strict=True)]
