"""A `DistributedSampler` for the loader that a script trains with."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below

_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
BACKWARD = ".backward("
_SAMPLER = "torch.utils.data.distributed.DistributedSampler"
_SAMPLER_NAMES = ("sampler", "train_sampler", "distributed_sampler")
_DATASET_NAMES = ("dataset", "train_dataset", "training_data")
_TAKEN_BY_SAMPLER = frozenset({"sampler", "batch_sampler", None})


class Loader(NamedTuple):
    """A loader that needs a sampler.

    Attributes:
        statement: What assigns it.
        shuffle: The node of `shuffle=True`, or of `True` as the third argument.
    """

    statement: ast.stmt
    call: ast.Call
    dataset: ast.expr
    shuffle: ast.expr | ast.keyword
    shuffles: bool


def training_loader(
    script: Script, body: Sequence[ast.stmt], calls: Sequence[tuple[ast.Call, Scope]]
) -> Loader:
    """The loader a block trains with: the one that shuffles, or the only one.

    Raises:
        UnclearError: That is not clear, it has a sampler already, or it is not made by an
            assignment of its own.
    """
    made = [
        call for call, scope in calls if _LOADERS.intersection(qualified_names(call.func, scope))
    ]
    loader = _trains_with(body, made)
    if loader is None:
        raise _no_loader(body, made)
    if not _feeds_training(script, loader):
        raise UnclearError(loader.call.lineno, "distributed.loader-not-trained-with")
    return loader


def _no_loader(body: Sequence[ast.stmt], made: Sequence[ast.Call]) -> UnclearError:
    """Why none of the loaders can be taken."""
    if not made:
        return UnclearError(1, "distributed.no-loader")
    possible = [call for call in made if _may_shuffle(call)] or list(made)
    line = possible[0].lineno
    if len(possible) > 1:
        lines = ", ".join(str(call.lineno) for call in possible)
        return UnclearError(line, "distributed.several-loaders", lines=lines)
    keywords = {keyword.arg for keyword in possible[0].keywords}
    if None in keywords and "shuffle" not in keywords:
        return UnclearError(line, "distributed.loader-options-hidden")
    if keywords & _TAKEN_BY_SAMPLER - {None}:
        return UnclearError(line, "distributed.has-sampler")
    if not any(getattr(s, "value", None) is possible[0] for s in body):
        return UnclearError(line, "distributed.loader-elsewhere")
    return UnclearError(line, "distributed.shuffle-not-said")


def _trains_with(body: Sequence[ast.stmt], made: Sequence[ast.Call]) -> Loader | None:
    loaders = [_loader(call, body) for call in made]
    shuffling = [loader for loader in loaders if loader is not None and loader.shuffles]
    if len(shuffling) == 1 and sum(_may_shuffle(call) for call in made) == 1:
        return shuffling[0]
    return loaders[0] if len(loaders) == 1 else None


def _may_shuffle(call: ast.Call) -> bool:
    """Whether a loader shuffles, or might for all that is seen."""
    value = _value_of(_shuffle(call))
    if value is None:
        return any(k.arg in _TAKEN_BY_SAMPLER for k in call.keywords)
    return not (isinstance(value, ast.Constant) and value.value is False)


def _shuffle(call: ast.Call) -> ast.expr | ast.keyword | None:
    named = next((k for k in call.keywords if k.arg == "shuffle"), None)
    return named or (call.args[2] if len(call.args) == 3 else None)


def _value_of(argument: ast.expr | ast.keyword | None) -> ast.expr | None:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _loader(call: ast.Call, body: Sequence[ast.stmt]) -> Loader | None:
    statement = next((s for s in body if getattr(s, "value", None) is call), None)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > 3:
        return None
    taken = {keyword.arg for keyword in call.keywords} & _TAKEN_BY_SAMPLER
    if taken and (taken != {None} or _shuffle(call) is None):
        return None  # beside `shuffle`, `**options` can hold neither it nor a sampler
    named = [k.value for k in call.keywords if k.arg == "dataset"]
    dataset = call.args[0] if call.args else next(iter(named), None)
    shuffle = _shuffle(call)
    value = _value_of(shuffle)
    if dataset is None or shuffle is None or not isinstance(value, ast.Constant):
        return None
    if not isinstance(value.value, bool):
        return None
    return Loader(statement, call, dataset, shuffle, value.value)


def _feeds_training(script: Script, loader: Loader) -> bool:
    """Whether a loop over the loader goes backward, or a function that does is given the loader."""
    names = {
        target.id
        for target in nodes_below(loader.statement)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    training = training_functions(script)
    for node in nodes_below(script.tree):
        used: list[ast.expr] = []
        if isinstance(node, ast.For) and BACKWARD in script.source(node):
            used = [node.iter]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in training:
            used = [*node.args, *(k.value for k in node.keywords)]
        if any(getattr(part, "id", "") in names for u in used for part in nodes_below(u)):
            return True
    return False


def training_functions(script: Script) -> set[str]:
    """The functions of a script that go backward."""
    return {
        node.name
        for node in script.tree.body
        if isinstance(node, ast.FunctionDef) and BACKWARD in script.source(node)
    }


def sampler_edits(script: Script, body: Sequence[ast.stmt], loader: Loader) -> tuple[Edit, ...]:
    """Give the loader a sampler, and pass it the epoch where a loop counts epochs.

    Raises:
        UnclearError: There is no place or no name for it.
    """
    text = script.lines.text
    sampler = _unused(_SAMPLER_NAMES, text)
    dataset = script.source(loader.dataset)
    edits: list[Edit | None] = []
    lines: list[str] = []
    if not isinstance(loader.dataset, (ast.Name, ast.Attribute)):
        name = _unused(_DATASET_NAMES, text)
        if name is None or not isinstance(loader.dataset, ast.Call):
            raise _no_place(loader)
        lines.append(f"{name} = {dataset}")
        edits.append(Edit(script.span(loader.dataset), name))
        dataset = name
    if sampler is None:
        raise _no_place(loader)
    order = "" if loader.shuffles else ", shuffle=False"
    lines.append(f"{sampler} = {_SAMPLER}({dataset}{order})")
    edits.append(script.line_before(loader.statement, tuple(lines)))
    edits.append(Edit(script.span(loader.shuffle), f"sampler={sampler}"))
    loops = list(_epoch_loops(body))
    if loader.shuffles and len(loops) == 1:
        loop, counter = loops[0]
        if loop.lineno > loader.statement.lineno:
            edits.append(script.line_before(loop.body[0], (f"{sampler}.set_epoch({counter})",)))
    if None in edits:
        raise _no_place(loader)
    return tuple(edit for edit in edits if edit is not None)


def _no_place(loader: Loader) -> UnclearError:
    return UnclearError(loader.call.lineno, "distributed.no-place-for-sampler")


def _unused(names: Sequence[str], text: str) -> str | None:
    return next((n for n in names if not re.search(rf"(?<![\w.]){n}\b(?!=)", text)), None)


def _epoch_loops(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.For, str]]:
    """`for epoch in range(...)` in a block, not in what it defines."""
    pending: list[ast.AST] = [*body]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.For):
            counter = getattr(node.target, "id", "")
            if "epoch" in counter.lower():
                yield node, counter
        pending += ast.iter_child_nodes(node)
