"""A `DistributedSampler` for the loader that a script trains with."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from npulens.catalog.model import Edit
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
BACKWARD = ".backward("
_SAMPLER = "torch.utils.data.distributed.DistributedSampler"
_SAMPLER_NAMES = ("sampler", "train_sampler", "distributed_sampler")
_DATASET_NAMES = ("dataset", "train_dataset", "training_data")
_TAKEN_BY_SAMPLER = frozenset({"sampler", "batch_sampler", None})


class Source(Protocol):
    """What is asked of a script: its text, and where nodes stand in it."""

    @property
    def lines(self) -> LineMap: ...

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> Span: ...

    def source(self, node: ast.expr | ast.stmt) -> str: ...

    def line_before(self, node: ast.stmt, lines: tuple[str, ...]) -> Edit | None: ...


class Loader(NamedTuple):
    """A loader that needs a sampler.

    Attributes:
        statement: What assigns it.
        call: Its construction.
        dataset: The first argument.
        shuffle: The node of `shuffle=True`, or of `True` as the third argument.
        shuffles: What `shuffle` is.
    """

    statement: ast.stmt
    call: ast.Call
    dataset: ast.expr
    shuffle: ast.expr | ast.keyword
    shuffles: bool


def trains_with(body: Sequence[ast.stmt], calls: Sequence[tuple[ast.Call, Scope]]) -> Loader | None:
    """The loader a block trains with: the one that shuffles, or the only one.

    `None` if that is not clear, if it has a sampler already, or if it is not made by an assignment
    of its own.
    """
    made = [
        call for call, scope in calls if _LOADERS.intersection(qualified_names(call.func, scope))
    ]
    loaders = [_loader(call, body) for call in made]
    shuffling = [loader for loader in loaders if loader is not None and loader.shuffles]
    if len(shuffling) == 1 and sum(_may_shuffle(call) for call in made) == 1:
        return shuffling[0]
    return loaders[0] if len(loaders) == 1 else None


def _may_shuffle(call: ast.Call) -> bool:
    """Whether a loader shuffles, or might for all that is seen."""
    shuffle = _shuffle(call)
    value = shuffle.value if isinstance(shuffle, ast.keyword) else shuffle
    if value is None:
        return any(k.arg in _TAKEN_BY_SAMPLER for k in call.keywords)
    return not (isinstance(value, ast.Constant) and value.value is False)


def _shuffle(call: ast.Call) -> ast.expr | ast.keyword | None:
    named = next((k for k in call.keywords if k.arg == "shuffle"), None)
    return named or (call.args[2] if len(call.args) == 3 else None)


def _loader(call: ast.Call, body: Sequence[ast.stmt]) -> Loader | None:
    statement = next((s for s in body if getattr(s, "value", None) is call), None)
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > 3:
        return None
    if any(k.arg in _TAKEN_BY_SAMPLER for k in call.keywords):
        return None
    named = [k.value for k in call.keywords if k.arg == "dataset"]
    dataset = call.args[0] if call.args else next(iter(named), None)
    shuffle = _shuffle(call)
    value = shuffle.value if isinstance(shuffle, ast.keyword) else shuffle
    if dataset is None or shuffle is None or not isinstance(value, ast.Constant):
        return None
    if not isinstance(value.value, bool):
        return None
    return Loader(statement, call, dataset, shuffle, value.value)


def feeds_training(script: Source, tree: ast.Module, loader: Loader) -> bool:
    """Whether a loop over the loader goes backward, or a function that does is given the loader."""
    names = {
        target.id
        for target in ast.walk(loader.statement)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    training = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and BACKWARD in script.source(node)
    }
    for node in ast.walk(tree):
        used: list[ast.expr] = []
        if isinstance(node, ast.For) and BACKWARD in script.source(node):
            used = [node.iter]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in training:
            used = [*node.args, *(k.value for k in node.keywords)]
        if any(getattr(part, "id", "") in names for u in used for part in ast.walk(u)):
            return True
    return False


def sampler_edits(script: Source, body: Sequence[ast.stmt], loader: Loader) -> tuple[Edit, ...]:
    """Give the loader a sampler, and tell the sampler the epoch where a loop counts epochs."""
    text = script.lines.text
    sampler = _unused(_SAMPLER_NAMES, text)
    dataset = script.source(loader.dataset)
    edits: list[Edit | None] = []
    lines: list[str] = []
    if not isinstance(loader.dataset, ast.Name | ast.Attribute):
        name = _unused(_DATASET_NAMES, text)
        if name is None or not isinstance(loader.dataset, ast.Call):
            return ()
        lines.append(f"{name} = {dataset}")
        edits.append(Edit(script.span(loader.dataset), name))
        dataset = name
    if sampler is None:
        return ()
    order = "" if loader.shuffles else ", shuffle=False"
    lines.append(f"{sampler} = {_SAMPLER}({dataset}{order})")
    edits.append(script.line_before(loader.statement, tuple(lines)))
    edits.append(Edit(script.span(loader.shuffle), f"sampler={sampler}"))
    loops = list(_epoch_loops(body))
    if loader.shuffles and len(loops) == 1:
        loop, counter = loops[0]
        if loop.lineno > loader.statement.lineno:
            edits.append(script.line_before(loop.body[0], (f"{sampler}.set_epoch({counter})",)))
    return () if None in edits else tuple(edit for edit in edits if edit is not None)


def _unused(names: Sequence[str], text: str) -> str | None:
    return next((n for n in names if not re.search(rf"(?<![\w.]){n}\b(?!=)", text)), None)


def _epoch_loops(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.For, str]]:
    """`for epoch in range(...)` in a block, not in what it defines."""
    pending: list[ast.AST] = [*body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.For):
            counter = getattr(node.target, "id", "")
            if "epoch" in counter.lower():
                yield node, counter
        pending += ast.iter_child_nodes(node)
