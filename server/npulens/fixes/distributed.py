"""From `DataParallel` in one process to `DistributedDataParallel` in one process for each card.

The steps are those of PyTorch's notes on `DistributedDataParallel` and of Ascend's migration guide:
a process group, the card of `LOCAL_RANK`, the wrapped model, a `DistributedSampler`. They are only
made of scripts that show all of it in one place; of everything else a person has to decide.
"""

import ast
from dataclasses import replace

from npulens.catalog.model import Edit
from npulens.fixes.data_loaders import BACKWARD, sampler_edits, training_loader
from npulens.fixes.numbered_cards import unnumbered_devices
from npulens.fixes.scripts import (
    ALREADY_SEVERAL_PROCESSES,
    Script,
    UnclearError,
    calls_of,
    contains_node,
    func_of,
    home_of,
    joined,
    read_script,
    setup_edits,
)
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.conditions import Known, answer

DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
"""Both names of the class; where it is defined is a third, which `canonical` leads to the first."""
_MODULE = "torch.nn.parallel"
_FUNCTIONS = frozenset(
    {"torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel"}
)


def one_process_per_card(tree: ast.Module, text: str, known: Known) -> tuple[Edit, ...]:
    """The edits that make a script run in one process for each card; none if it is not clear."""
    if ALREADY_SEVERAL_PROCESSES.search(text) or BACKWARD not in text:
        return ()
    try:
        return process_per_card(read_script(tree, text), known)
    except UnclearError:
        return ()


def process_per_card(script: Script, known: Known) -> tuple[Edit, ...]:
    """The same for a script that is known to train and to wrap a model in `DataParallel`.

    Raises:
        UnclearError: It is not clear how.
    """
    calls = list(calls_of(script.tree.body, script.module))
    wrapped = [
        pair for pair in calls if DATA_PARALLEL.intersection(qualified_names(*func_of(pair)))
    ]
    is_function = any(_FUNCTIONS.intersection(qualified_names(*func_of(c))) for c in calls)
    if len(wrapped) != 1 or is_function:
        raise UnclearError(wrapped[0][0].lineno if wrapped else 1, "distributed.one-wrapped-model")
    call, scope = wrapped[0]
    home = home_of(script, call, scope)
    if home is None or not is_always_reached(home.body, call, home.scope, known):
        raise UnclearError(call.lineno, "distributed.wrapped-elsewhere")
    loader = training_loader(script, home.body, calls)
    construction = _construction(script, call, home.scope)
    if not construction:
        raise UnclearError(call.lineno, "distributed.form-of-wrapping")
    parts = (
        setup_edits(script, home),
        construction,
        sampler_edits(script, home.body, loader),
        unnumbered_devices(script),
    )
    return joined(edit for part in parts for edit in part)


def is_always_reached(body: list[ast.stmt], call: ast.Call, scope: Scope, known: Known) -> bool:
    """Whether the model is wrapped whenever the script has several cards and uses them."""
    known = replace(known, uses_npu=True, cards=2)
    while True:
        statement = next((s for s in body if contains_node(s, call)), None)
        if isinstance(statement, ast.With):
            body = statement.body
        elif isinstance(statement, ast.If):
            in_body = any(contains_node(s, call) for s in statement.body)
            if not in_body or not answer(statement.test, scope, known).holds:
                return False
            body = statement.body
        else:
            return isinstance(statement, (ast.Assign, ast.AnnAssign))


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
    simple = isinstance(model, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    opening = [] if simple else [Edit(Span(span.start, span.start), "(")]
    closing = "" if simple else ")"
    moved = f"{closing}.to({script.cards.of_process}), device_ids=[local_rank]"
    return (*names, *opening, Edit(rest, moved)) if names else ()


def _renamed(script: Script, call: ast.Call, scope: Scope) -> tuple[Edit, ...]:
    """The other class wherever this one is named; none if it is named in several ways."""
    name = dotted_name(call.func)
    if name is None:
        return ()
    references: list[ast.expr] = [
        node
        for node in nodes_below(script.tree)
        if isinstance(node, (ast.Attribute, ast.Name)) and dotted_name(node) == name
    ]
    named = [n for n in nodes_below(script.tree) if getattr(n, "attr", "") == "DataParallel"]
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
