"""From `DataParallel` in one process to `DistributedDataParallel` in one process for each card.

The steps are those of PyTorch's notes on `DistributedDataParallel` and of Ascend's migration guide:
a process group, the card of `LOCAL_RANK`, the wrapped model, a `DistributedSampler`. They are only
made of scripts that show all of it in one place; of everything else a person has to decide.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.data_loaders import BACKWARD, feeds_training, sampler_edits, trains_with
from npulens.fixes.imports import import_edit, imports_module, torch_import
from npulens.syntax.bindings import Function, bindings_of, walrus_lines
from npulens.syntax.meanings import Qualified, qualified_names, resolve_name
from npulens.syntax.scopes import ClassScope, FunctionScope, ModuleNames, ModuleScope, Scope
from npulens.syntax.values import Name, dotted_name
from npulens.text.lines import LineMap
from npulens.text.spans import Span

DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
"""Both names of the class; where it is defined is a third, which `canonical` leads to the first."""
_MODULE = "torch.nn.parallel"
_FUNCTIONS = frozenset(
    {"torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel"}
)
_ALREADY_SEVERAL_PROCESSES = re.compile(
    r"init_process_group|DistributedDataParallel|DistributedSampler|\blocal_rank\b|LOCAL_RANK"
    r"|\bspawn\b|\bset_device\b|\bAccelerator\b"
)
_CARDS = re.compile(
    r"[\w.]+\.device_count\(\) *(?:> *1|>= *2)|[\w.]+\.is_available\(\)|use_cuda"
    r"|device(?:\.type)? *== *[\"'](?:cuda|npu)[\"']"
)
_NUMBERED = re.compile(r"(?:cuda|npu):(?P<index>.*)", re.DOTALL)
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SETUP = (
    'local_rank = int(os.environ["LOCAL_RANK"])',
    "torch.npu.set_device(local_rank)",
    'torch.distributed.init_process_group(backend="hccl")',
)


class Home(NamedTuple):
    """The block of statements that a script runs: a function, the main guard or the module.

    Attributes:
        body: Its statements.
        scope: Where its names are looked up.
        first: The statement before which the process group is made.
    """

    body: list[ast.stmt]
    scope: Scope
    first: ast.stmt


class Script(NamedTuple):
    """A module that is run, with what is looked up in it again and again."""

    tree: ast.Module
    lines: LineMap
    module: ModuleScope

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias) -> Span:
        start = self.lines.offset(node.lineno, node.col_offset)
        return Span(start, self.lines.offset(node.end_lineno or 0, node.end_col_offset or 0))

    def source(self, node: ast.expr | ast.stmt) -> str:
        return self.lines.text[slice(*self.span(node))]

    def line_before(self, node: ast.stmt, lines: tuple[str, ...]) -> Edit | None:
        """Put lines before a statement, `None` if it shares its line with others."""
        start = self.lines.starts[node.lineno - 1]
        indentation = self.lines.text[start : self.span(node).start]
        if indentation.strip():
            return None
        newline = "\r\n" if "\r\n" in self.lines.text else "\n"
        return Edit(Span(start, start), "".join(indentation + line + newline for line in lines))


def one_process_per_card(tree: ast.Module, text: str) -> tuple[Edit, ...]:
    """The edits that make a script run in one process for each card; none if it is not clear."""
    if _ALREADY_SEVERAL_PROCESSES.search(text) or BACKWARD not in text:
        return ()
    found_lines = walrus_lines(text)
    module = ModuleScope(ModuleNames([bindings_of(tree.body, found_lines)]), 0, found_lines)
    script = Script(tree, LineMap(text), module)
    calls = list(_calls(tree.body, module))
    wrapped = [pair for pair in calls if DATA_PARALLEL.intersection(qualified_names(*_func(pair)))]
    if len(wrapped) != 1 or any(_FUNCTIONS.intersection(qualified_names(*_func(c))) for c in calls):
        return ()
    home = _home(script, *wrapped[0])
    if home is None or not _is_always_reached(script, home, wrapped[0][0]):
        return ()
    loader = trains_with(home.body, calls)
    devices = _unnumbered_devices(script)
    if loader is None or devices is None or not feeds_training(script, tree, loader):
        return ()
    parts = (
        _setup(script, home),
        _construction(script, wrapped[0][0], home.scope),
        sampler_edits(script, home.body, loader),
    )
    if not all(parts):
        return ()
    return _joined([*(edit for part in parts for edit in part), *devices])


def _joined(edits: list[Edit]) -> tuple[Edit, ...]:
    """What is inserted at the same place, in the order of the steps, as one edit."""
    texts: dict[Span, str] = {}
    for edit in edits:
        texts[edit.span] = texts.get(edit.span, "") + edit.replacement
    return tuple(Edit(span, text) for span, text in texts.items())


def _func(pair: tuple[ast.Call, Scope]) -> tuple[ast.expr, Scope]:
    return pair[0].func, pair[1]


def _calls(body: list[ast.stmt], module: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """Every call of a module with the scope it stands in."""
    pending: list[tuple[ast.AST, Scope]] = [(node, module) for node in body]
    while pending:
        node, scope = pending.pop()
        inner = scope
        if isinstance(node, Function):
            owner = scope if isinstance(scope, ClassScope) else None
            inner = FunctionScope(node, scope.function_parent() or scope, owner)
        elif isinstance(node, ast.ClassDef):
            inner = ClassScope(node, scope.function_parent() or scope)
        elif isinstance(node, ast.Call):
            yield node, scope
        pending += ((child, inner) for child in ast.iter_child_nodes(node))


def _home(script: Script, call: ast.Call, scope: Scope) -> Home | None:
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
        guard = next((s for s in tree.body if _is_main_guard(s) and _holds(s, call)), None)
        body = guard.body if isinstance(guard, ast.If) else tree.body
    else:
        return None
    first = next((s for s in body if not _comes_before_setup(s, body is tree.body)), None)
    return None if first is None or not _starts_before(first, call) else Home(body, scope, first)


def _comes_before_setup(node: ast.stmt, at_top: bool) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Global | ast.Nonlocal) or _sets_environment(node):
        return True
    if at_top and isinstance(node, ast.Try):
        return all(isinstance(s, _DEFINITIONS) for s in node.body)
    return isinstance(node, _DEFINITIONS if at_top else ast.Import | ast.ImportFrom)


def _sets_environment(node: ast.stmt) -> bool:
    """Which devices are visible, say, is asked when the first one is used."""
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
        for node in ast.walk(statement)
    )


def _is_main_guard(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def _is_always_reached(script: Script, home: Home, call: ast.Call) -> bool:
    """Whether the model is wrapped whenever there are several cards."""
    body = home.body
    while True:
        statement = next((s for s in body if _holds(s, call)), None)
        if isinstance(statement, ast.With):
            body = statement.body
        elif isinstance(statement, ast.If):
            in_body = any(_holds(s, call) for s in statement.body)
            if not in_body or not _asks_for_cards(script, statement.test):
                return False
            body = statement.body
        else:
            return isinstance(statement, ast.Assign | ast.AnnAssign)


def _asks_for_cards(script: Script, test: ast.expr) -> bool:
    """Whether a test holds wherever there are several cards."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and all(_asks_for_cards(script, t) for t in test.values)
    return _CARDS.fullmatch(script.source(test)) is not None


def _unnumbered_devices(script: Script) -> list[Edit] | None:
    """Let devices with the number 0 be those of the process; `None` if others are named."""
    edits: list[Edit] = []
    composed: set[ast.AST] = set()
    for node in ast.walk(script.tree):
        if isinstance(node, ast.JoinedStr):
            composed.update(node.values)
            parts = [p.value for p in node.values if isinstance(p, ast.Constant)]
            if any(re.search(r"\b(?:cuda|npu):\Z|\A:\d", str(part)) for part in parts):
                return None
        elif isinstance(node, ast.Call) and _names_a_card(node):
            return None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = _NUMBERED.fullmatch(node.value)
            if match is None or node in composed:
                continue
            source = script.source(node)
            if match["index"] != "0" or source[1:-1] != node.value:
                return None
            edits.append(Edit(script.span(node), f"{source[0]}npu{source[-1]}"))
    return edits


def _names_a_card(node: ast.Call) -> bool:
    """`x.cuda(1)`, `x.to(0)`, `torch.device("cuda", 1)`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in ("cuda", "npu"):
        return bool(node.args) or any(k.arg in ("device", None) for k in node.keywords)
    if name == "to":
        return any(isinstance(a, ast.Constant) and isinstance(a.value, int) for a in node.args)
    return name == "device" and len(node.args) > 1


def _setup(script: Script, home: Home) -> tuple[Edit, ...]:
    """Imports, the process group and the card of the process."""
    tree, text = script.tree, script.lines.text
    place = (home.first.lineno, home.first.col_offset)
    missing = []
    for module in ("os", "torch"):
        values = resolve_name(Name(module), home.scope, place)
        is_bound = any(n == module for n in script.module.module.names)
        if values != [Qualified(module)]:
            if is_bound:
                return ()
            missing.append(f"import {module}")
    setup = script.line_before(home.first, _SETUP)
    beside = torch_import(tree.body, script.lines)
    imports = [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    first = next((s for s in imports if getattr(s, "module", "") != "__future__"), None)
    if setup is None or beside is None or first is None:
        return ()
    edits = [setup]
    if missing:
        lines = script.line_before(first, tuple(missing))
        if lines is None:
            return ()
        edits.append(lines)
    if not imports_module(tree.body, "torch_npu"):
        edits.append(import_edit(beside, "torch_npu", text))
    return tuple(edits)


def _construction(script: Script, call: ast.Call, scope: Scope) -> tuple[Edit, ...]:
    """`nn.DataParallel(model, device_ids=[0, 1])`: another class, one card, the model on it."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    wrapped = arguments[0] if arguments else None
    model = wrapped.value if isinstance(wrapped, ast.keyword) else wrapped
    if model is None or isinstance(model, ast.Starred):
        return ()
    if isinstance(wrapped, ast.keyword) and wrapped.arg != "module":
        return ()
    known = {"module", "device_ids", "output_device"}
    if any(k.arg not in known for k in call.keywords) or len(call.args) > 3:
        return ()
    if any(isinstance(a, ast.Starred) for a in call.args):
        return ()
    span, end = script.span(model), script.span(call).end - 1
    rest = Span(span.end, end)
    behind = script.lines.text[slice(*rest)].strip()
    if "#" in behind or behind[:1] not in ("", ","):
        return ()
    names = _renamed(script, call, scope)
    simple = isinstance(model, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    opening = [] if simple else [Edit(Span(span.start, span.start), "(")]
    moved = f'{"" if simple else ")"}.to(f"npu:{{local_rank}}"), device_ids=[local_rank]'
    return (*names, *opening, Edit(rest, moved)) if names else ()


def _renamed(script: Script, call: ast.Call, scope: Scope) -> tuple[Edit, ...]:
    """The other class wherever this one is named; none if it is named in several ways."""
    name = dotted_name(call.func)
    if name is None:
        return ()
    references: list[ast.expr] = [
        node
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Attribute | ast.Name) and dotted_name(node) == name
    ]
    named = [n for n in ast.walk(script.tree) if getattr(n, "attr", "") == "DataParallel"]
    if isinstance(call.func, ast.Attribute):
        owner = qualified_names(call.func.value, scope)
        inner = {"torch.nn": "parallel.", "torch.nn.parallel": ""}
        if len(owner) != 1 or owner[0] not in inner or len(named) != len(references):
            return ()
        text = f"{script.source(call.func.value)}.{inner[owner[0]]}DistributedDataParallel"
        return tuple(Edit(script.span(node), text) for node in references)
    return _imported(script, name.root, references)


def _imported(script: Script, bound: str, references: list[ast.expr]) -> tuple[Edit, ...]:
    """`from torch.nn import DataParallel`."""
    for node in script.tree.body:
        if not isinstance(node, ast.ImportFrom) or node.module not in ("torch.nn", _MODULE):
            continue
        for alias in node.names:
            if alias.name != "DataParallel" or (alias.asname or alias.name) != bound:
                continue
            renamed = "" if alias.asname is None else f" as {alias.asname}"
            new = f"DistributedDataParallel{renamed}"
            if node.module == _MODULE:
                edits = [Edit(script.span(alias), new)]
            elif len(node.names) == 1 and "#" not in script.source(node):
                edits = [Edit(script.span(node), f"from {_MODULE} import {new}")]
            else:
                return ()
            if alias.asname is None:
                edits += [Edit(script.span(r), "DistributedDataParallel") for r in references]
            return tuple(edits)
    return ()
