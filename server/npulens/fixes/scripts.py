"""A script that is run, and what it needs to be one process among several."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import LocalizedError, message
from npulens.catalog.model import Edit
from npulens.fixes.imports import imports_module, plugin_edit, torch_import
from npulens.syntax.bindings import bindings_of, walrus_lines
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.scoped_nodes import scoped_nodes
from npulens.syntax.scopes import FunctionScope, ModuleNames, ModuleScope, Scope
from npulens.syntax.values import Name
from npulens.syntax.walking import is_main_guard, nodes_below
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_RANK = 'local_rank = int(os.environ["LOCAL_RANK"])'


ALREADY_SEVERAL_PROCESSES = re.compile(
    r"init_process_group|DistributedDataParallel|DistributedSampler|\blocal_rank\b|LOCAL_RANK"
    r"|\bspawn\b|\bset_device\b|\bAccelerator\b"
)


class UnclearError(LocalizedError):
    """It is not clear how a script can be changed as it was asked for.

    Attributes:
        text: Why not, and what would help.
        line: Where, counted from 1.
        path: In which file of several; `None` is the script that was named.
    """

    path: str | None = None

    def __init__(self, line: int, name: MessageId, /, **values: object) -> None:
        super().__init__(message(name, **values))
        self.line = line


class Home(NamedTuple):
    """The block of statements that a script runs: a function, the main guard or the module.

    Attributes:
        scope: Where its names are looked up.
        first: The statement before which the process group is made.
    """

    body: list[ast.stmt]
    scope: Scope
    first: ast.stmt


class Cards(NamedTuple):
    """How a process takes its card.

    Attributes:
        device: What a device of that kind is called, without its number.
        of_process: The expression for the device of a process, where its rank is at hand.
        current: The same anywhere in the script.
        number: The number of that device.
        setup: The statements that take the card and make the process group.
        imports_plugin: It needs torch_npu.
    """

    device: str
    of_process: str
    current: str
    number: str
    setup: tuple[str, ...]
    imports_plugin: bool


NPU_CARDS = Cards(
    "npu",
    'f"npu:{local_rank}"',
    'f"npu:{torch.npu.current_device()}"',
    "torch.npu.current_device()",
    ("torch.npu.set_device(local_rank)", 'torch.distributed.init_process_group(backend="hccl")'),
    imports_plugin=True,
)
ANY_CARDS = Cards(
    "cuda",  # the author's own, which is written for any device with the rest of the module
    "local_rank",
    "torch.accelerator.current_device_index()",
    "torch.accelerator.current_device_index()",
    ("torch.accelerator.set_device_index(local_rank)", "torch.distributed.init_process_group()"),
    imports_plugin=False,
)
"""Those of the device-agnostic style; without a backend each device has that of its kind."""


class Script(NamedTuple):
    """A module that is run, with what is looked up in it again and again.

    Attributes:
        lines: Its text.
        module: Its names.
        cards: How its processes take their cards, if each is to have one.
        path: The file, from the root of its project, if it is one of several.
    """

    tree: ast.Module
    lines: LineMap
    module: ModuleScope
    cards: Cards
    path: str | None = None

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias) -> Span:
        return self.lines.span(node)

    def source(self, node: ast.expr | ast.stmt) -> str:
        return self.lines.text[slice(*self.span(node))]

    def line_before(self, node: ast.stmt, lines: tuple[str, ...]) -> Edit | None:
        """Put lines before a statement, `None` if it shares its line with others."""
        start = self.lines.starts[node.lineno - 1]
        indentation = self.lines.text[start : self.span(node).start]
        if indentation.strip():
            return None
        newline = line_ending(self.lines.text)
        return Edit(Span(start, start), "".join(indentation + line + newline for line in lines))


def read_script(
    tree: ast.Module, text: str, cards: Cards = NPU_CARDS, path: str | None = None
) -> Script:
    """A module with what is looked up in it."""
    found_lines = walrus_lines(text)
    names = ModuleNames([bindings_of(tree.body, found_lines)])
    return Script(tree, LineMap(text), ModuleScope(names, 0, found_lines), cards, path)


def joined(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """What is inserted at the same place, in the order of the steps, as one edit."""
    texts: dict[Span, str] = {}
    for edit in edits:
        texts[edit.span] = texts.get(edit.span, "") + edit.replacement
    return tuple(Edit(span, text) for span, text in texts.items())


def func_of(pair: tuple[ast.Call, Scope]) -> tuple[ast.expr, Scope]:
    return pair[0].func, pair[1]


def calls_of(body: list[ast.stmt], module: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """Every call of a module with the scope it is in."""
    for node, scope in scoped_nodes(body, module):
        if isinstance(node, ast.Call):
            yield node, scope


def home_of(script: Script, call: ast.Call, scope: Scope) -> Home | None:
    """Where a call is run, if the module is a script and runs it itself."""
    tree = script.tree
    if isinstance(scope, FunctionScope):
        function = scope.node
        if not isinstance(function, ast.FunctionDef) or function not in tree.body:
            return None
        if function.decorator_list or not _runs(tree, function.name):
            return None
        body = function.body
    elif scope is script.module:
        guard = next((s for s in tree.body if is_main_guard(s) and contains_node(s, call)), None)
        body = guard.body if isinstance(guard, ast.If) else tree.body
    else:
        return None
    imported = needed_imports_end(tree) if body is tree.body else 0
    free = (s for s in body if s.lineno > imported)
    first = next((s for s in free if not comes_before_setup(s, body is tree.body)), None)
    return None if first is None or not _starts_before(first, call) else Home(body, scope, first)


def needed_imports_end(tree: ast.Module) -> int:
    """The line behind which the module has `os` and `torch`, as far as it imports them."""
    ends: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                ends.setdefault(alias.name.partition(".")[0], node.end_lineno or node.lineno)
    return max(ends.get("os", 0), ends.get("torch", 0))


def comes_before_setup(node: ast.stmt, at_top: bool) -> bool:
    """Whether a statement may run before there is a process group."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, (ast.Global, ast.Nonlocal)) or sets_environment(node):
        return True
    if at_top and isinstance(node, ast.Try):
        return all(isinstance(s, _DEFINITIONS) for s in node.body)
    return isinstance(node, _DEFINITIONS if at_top else ast.Import | ast.ImportFrom)


def sets_environment(node: ast.stmt) -> bool:
    """The visible devices, say, are read when the first one is used."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
        return False
    return ast.unparse(node.targets[0].value) == "os.environ"


def _starts_before(node: ast.stmt, other: ast.expr) -> bool:
    return (node.lineno, node.col_offset) <= (other.lineno, other.col_offset)


def _runs(tree: ast.Module, name: str) -> bool:
    """Whether the module itself calls a function of it."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for statement in tree.body
        if not isinstance(statement, _DEFINITIONS)
        for node in nodes_below(statement)
    )


def contains_node(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in nodes_below(outer))


def setup_edits(script: Script, home: Home) -> tuple[Edit, ...]:
    """Imports, the process group and the card of the process.

    Raises:
        UnclearError: There is no place for them.
    """
    tree, text = script.tree, script.lines.text
    place = (home.first.lineno, home.first.col_offset)
    missing = []
    for module in ("os", "torch"):
        values = resolve_name(Name(module), home.scope, place)
        if values != [Qualified(module)]:
            if module in script.module.module.names:
                raise UnclearError(home.first.lineno, "distributed.other-module", module=module)
            missing.append(f"import {module}")
    setup = script.line_before(home.first, (_RANK, *script.cards.setup))
    beside = torch_import(tree.body, script.lines)
    imports = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    first = next((s for s in imports if getattr(s, "module", "") != "__future__"), None)
    if setup is None or beside is None or first is None:
        raise _no_place(home.first)
    edits = [setup]
    if missing:
        lines = script.line_before(first, tuple(missing))
        if lines is None:
            raise _no_place(first)
        edits.append(lines)
    if script.cards.imports_plugin and not imports_module(tree.body, "torch_npu"):
        edits.append(plugin_edit(beside, text, is_named=False))
    return tuple(edits)


def _no_place(node: ast.stmt) -> UnclearError:
    return UnclearError(node.lineno, "distributed.nothing-before")
