"""Where a library is used only if it works: what fails there on the NPU has another way already."""

import ast
import re
from bisect import bisect_right, insort
from collections.abc import Callable

from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_IMPORT_ERRORS = re.compile(r"\b(?:ImportError|ModuleNotFoundError|Exception|BaseException)\b")
_SUPPRESSES = re.compile(r"\bsuppress\([^)]*(?:ImportError|ModuleNotFoundError|Exception)")
_DEVICE_PROBE = re.compile(
    r"(?:cuda|gpu|dist|distributed|accelerator|npu)\w*\.is_available\(\)"
    r"|is_(?:torch_)?(?:cuda|gpu|npu)\w*_available|has_(?:cuda|gpu)\w*|has_(?:inf|nan)\w*",
    re.IGNORECASE,
)
_LIBRARY_PROBE = re.compile(
    r"\b_?(?:[A-Z0-9_]*AVAILABLE|[A-Z0-9_]*INSTALLED|is_\w+_available|\w+_(?:is_)?available"
    r"|\w+_installed|\w+_exists|(?:HAS|HAVE|has|have)_\w+|[A-Z0-9_]+_(?:FOUND|IMPORTED))\b"
    r"|find_spec|package_available|is_\w+_min_version|TYPE_CHECKING|sys\.modules"
    r"|\b(?:_?[A-Z]\w*|\w*(?:apex|amp|flash|xformers|xops|bnb|bitsandbytes|triton|te|cupy|nvml"
    r"|tensorrt|mamba|conv1d|[Ff]used|kernel|_ext|_ops)\w*) is not None"
    r"|is_cuda\(\)|is_rocm\(\)|is_hip\(\)|version\.(?:cuda|hip)"
)
_KERNEL_PROBE = re.compile(
    r"cuda\w*_available|cuda\.is_available|ninja_available|_can_run\(|is_\w+_supported\("
)
_ABSENT = re.compile(r"\Anot\b|\bis None\b")
_DECORATOR = re.compile(r"require|skip_?if|skip_?unless|\bskip\b", re.IGNORECASE)
_EXITS = re.compile(r"\b(?:exit|_exit|abort|quit)\(")

_BINDING = (
    *(ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Return, ast.Continue),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)

Source = Callable[[ast.AST], str]


class OptionalCode:
    """Disjoint parts of a text; outer parts have to be added before what is inside of them.

    Attributes:
        is_wanted: Libraries are used here at all; `None` until that is looked up.
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self.is_wanted: bool | None = None

    def add(self, span: Span) -> None:
        if span.start < span.end and not self.holds(span.start):
            insort(self._spans, span)

    def holds(self, offset: int) -> bool:
        """Whether a place is in one of the parts."""
        return self.part_of(offset) is not None

    def part_of(self, offset: int) -> Span | None:
        """The part that holds a place."""
        index = bisect_right(self._spans, Span(offset, 1 << 62)) - 1
        found = self._spans[index] if index >= 0 else None
        return found if found is not None and offset < found.end else None


def tried_parts(node: ast.Try, source: Source) -> list[ast.stmt]:
    """What a `try` runs only if the imports in it succeed, where failing is no end."""
    for handler in node.handlers:
        catches = handler.type is None or _IMPORT_ERRORS.search(source(handler.type))
        if catches and not _ends(handler.body[-1], source):
            return [*node.body, *node.orelse]
    return []


def parts_with_other_way(node: ast.Try, source: Source) -> list[ast.stmt]:
    """The same, where there is another way than what is imported.

    There is one if a handler binds something or returns, or a flag says that the imports succeeded.
    A handler that only says that something is missing leaves no other way.
    """
    statements = [s for handler in node.handlers for s in handler.body]
    flags = map(_sets_flag, (*node.body, *node.orelse))
    has_other_way = any(flags) or any(map(_gives_other_way, statements))
    return tried_parts(node, source) if has_other_way else []


def _sets_flag(statement: ast.stmt) -> bool:
    """`HAS_APEX = True` beside an import."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Constant) and value.value is True


def _gives_other_way(statement: ast.stmt) -> bool:
    """Whether a statement of a handler binds something, or returns, in whatever block."""
    return any(isinstance(part, _BINDING) for part in nodes_below(statement))


def _ends(statement: ast.stmt, source: Source) -> bool:
    """Whether a program that comes here does not go on."""
    if isinstance(statement, ast.Raise):
        return True
    return isinstance(statement, ast.Expr) and _EXITS.search(source(statement)) is not None


def suppresses(node: ast.With, source: Source) -> bool:
    """Whether a `with` lets failing imports pass."""
    return any(_SUPPRESSES.search(source(item.context_expr)) for item in node.items)


def asks_for_kernels(test: str) -> bool:
    """Whether the text of a condition asks for a library, or whether CUDA kernels run here."""
    return asks_for_library(test) or _KERNEL_PROBE.search(test) is not None


def asks_for_library(test: str) -> bool:
    """Whether a test says that a library is there, or that code is only read and never run."""
    return _LIBRARY_PROBE.search(_DEVICE_PROBE.sub("", test)) is not None


def is_absence(test: str) -> bool:
    """Whether a test that asks for a library holds where it is not there."""
    return _ABSENT.search(test) is not None


def asked_parts(node: ast.AST, source: Source) -> list[ast.AST]:
    """What an `if`, a conditional expression or an `and` runs only where a library is there."""
    if isinstance(node, ast.If):
        test = source(node.test)
        if not asks_for_library(test):
            return []
        return [*node.orelse] if is_absence(test) else [*node.body]
    if isinstance(node, ast.IfExp):
        test = source(node.test)
        if not asks_for_library(test):
            return []
        return [node.orelse if is_absence(test) else node.body]
    if isinstance(node, ast.BoolOp) and asks_for_library(source(node.values[0])):
        return [*node.values[1:]]
    return []


def behind_exit(body: list[ast.stmt], source: Source) -> ast.stmt | None:
    """The first statement of a block behind `if not is_library_available(): return`."""
    for index, statement in enumerate(body[:-1]):
        if _leaves_without_library(statement, source):
            return body[index + 1]
    return None


def _leaves_without_library(statement: ast.stmt, source: Source) -> bool:
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    if not isinstance(statement.body[-1], (ast.Return, ast.Raise)):
        return False
    test = source(statement.test)
    return is_absence(test) and asks_for_library(test)


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a statement."""
    found = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block]


def is_refused(node: ast.ClassDef, source: Source) -> bool:
    """Whether no instance of a class can be made without a library."""
    return any(
        isinstance(method, ast.FunctionDef)
        and method.name == "__init__"
        and any(_leaves_without_library(statement, source) for statement in method.body)
        for method in node.body
    )


def runs_on_request(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: Source
) -> bool:
    """Whether a decorator leaves a test out where a library is missing."""
    return any(_DECORATOR.search(source(decorator)) for decorator in node.decorator_list)
