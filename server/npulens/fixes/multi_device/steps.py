"""The steps of a rewrite: each takes its part of a plan and says what becomes of the nodes."""

import ast

import libcst as cst

from npulens.fixes.multi_device.actions import Actions
from npulens.fixes.multi_device.node_changes import (
    appended,
    argument,
    called,
    chosen,
    inner_model,
    replaced,
    text_of,
    with_argument,
    with_function,
    without,
)
from npulens.fixes.multi_device.plan import DirectLoader, Insertion, Plan
from npulens.fixes.multi_device.transformer import IS_FIRST
from npulens.fixes.scripts import Cards

_RANK = 'local_rank = int(os.environ["LOCAL_RANK"])'
_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
_SAMPLER = "torch.utils.data.distributed.DistributedSampler"
_NOT_FIRST = "torch.distributed.get_rank() != 0"


def join_and_leave(plan: Plan, actions: Actions, cards: Cards) -> None:
    """A process takes its card and joins the group, prints only if it is the first, and leaves."""
    entry = plan.entry
    silence = f'if {_NOT_FIRST}:\n    sys.stdout = open(os.devnull, "w")\n'
    if plan.logs:
        silence += "    logging.disable(logging.WARNING)\n"
    actions.insert(Insertion(entry.first), _RANK, *cards.setup, silence)
    returns = isinstance(entry.last, ast.Return)
    actions.insert(Insertion(entry.last, not returns), "torch.distributed.destroy_process_group()")


def wrap_models(plan: Plan, actions: Actions, cards: Cards) -> None:
    """Models are wrapped in `DistributedDataParallel`, on the card of the process."""
    for each in plan.wrappings:
        is_here = plan.entry.function is None or each.function is plan.entry.function
        device = cards.of_process if is_here else cards.current
        index = "local_rank" if is_here else cards.number
        more = ", broadcast_buffers=False" if each.several_passes else ""
        actions.insert(
            each.at,
            f"{each.text}.to({device})",
            f"{each.text} = {_WRAPPER}({each.text}, device_ids=[{index}]{more})",
        )


def take_data_parallel_away(plan: Plan, actions: Actions) -> None:
    """`DataParallel(model)` becomes the model, which is wrapped where it is trained."""
    for call, model in plan.parallel:
        actions.change(call, replaced(actions.script.source(model)))
    for node in plan.without_module:
        actions.change(node, _owner)
    for each in plan.classes:
        actions.change(each, replaced(_WRAPPER))


def _owner(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.value if isinstance(node, cst.Attribute) else node


def divide_loaders(plan: Plan, actions: Actions) -> None:
    """Loaders of steps get a `DistributedSampler`, or are made anew with one."""
    for each in plan.direct:
        actions.change(each.call, _with_sampler(each, actions))
    for call in plan.rebuilt:
        actions.change(call, called("loader_of_process"))
    for statement, text in plan.reassigned:
        actions.insert(Insertion(statement, True), f"{text} = loader_of_process({text})")


def _with_sampler(loader: DirectLoader, actions: Actions):  # type: ignore[no-untyped-def]
    """`shuffle=True` becomes `sampler=...`."""
    dataset = actions.script.source(loader.dataset)
    order = ", shuffle=False"
    if loader.order is not None:
        said = actions.script.source(loader.order)
        order = "" if said == "True" else f", shuffle={said}"
    sampler = f"sampler={_SAMPLER}({dataset}{order})"

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        assert isinstance(node, cst.Call)
        new = argument(sampler)
        shuffle = _shuffle(node, loader)
        if shuffle is None:
            return node.with_changes(args=appended(node.args, new))
        new = new.with_changes(
            comma=shuffle.comma, whitespace_after_arg=shuffle.whitespace_after_arg
        )
        at = next(n for n, each in enumerate(node.args) if each is shuffle)
        following = node.args[at + 1 :]
        if shuffle.keyword is None and following and following[0].keyword is None:
            return node.with_changes(args=appended(without(node.args, shuffle), new))
        return node.with_changes(args=[*node.args[:at], new, *following])

    return change


def _shuffle(node: cst.Call, loader: DirectLoader) -> cst.Arg | None:
    if loader.shuffle is None:
        return None
    if isinstance(loader.shuffle, ast.keyword):
        return next(a for a in node.args if a.keyword is not None and a.keyword.value == "shuffle")
    return node.args[2]


def tell_epochs(plan: Plan, actions: Actions) -> None:
    """Each pass over the data has an order of its own."""
    for each in plan.epochs:
        sampler = f"{each.loader}.sampler"
        epoch = each.counter or f"{sampler}.epoch + 1"
        actions.insert(Insertion(each.loop), f"{sampler}.set_epoch({epoch})")


def mean_inner_models(plan: Plan, actions: Actions) -> None:
    """`model.module`, where the wrapper does not have what is asked for."""
    for node in plan.inner:
        actions.change(node, inner_model)


def let_first_speak(plan: Plan, actions: Actions) -> None:
    """Saving, records and bars are those of the first process."""
    for statement in plan.first_only:
        actions.guarded.add(actions.start(statement))
    for call in plan.quiet:
        actions.change(call, with_argument(f"disable={_NOT_FIRST}"))
    for path in plan.opened:
        actions.change(path, chosen("os.devnull", IS_FIRST))
    for call in plan.recorded:
        actions.change(call, with_argument(f'mode=None if {IS_FIRST} else "disabled"'))
    for call in plan.folders:
        is_plain = getattr(call.func, "attr", getattr(call.func, "id", "")) == "mkdir" and call.args
        if is_plain and isinstance(call.func, (ast.Attribute, ast.Name)):
            actions.change(call, with_function("os.makedirs"))
        actions.change(call, with_argument("exist_ok=True"))


def reduce_figures(plan: Plan, actions: Actions) -> None:
    """What each process adds up is added up over all; what decides is decided together."""
    for each in plan.figures:
        mean = ", mean=True" if each.mean else ""
        line = f"{each.name} = over_processes({each.name}{mean})"
        actions.insert(Insertion(each.loop, True), line)
    for node in plan.agreed_figures:
        actions.change(node, called("over_processes", "mean=True"))
    for node in plan.agreed_conditions:
        actions.change(node, called("in_any_process"))


def let_launcher_choose(plan: Plan, actions: Actions) -> None:
    """Statements that choose a card go."""
    for statement in plan.removed:
        actions.removed.add(actions.start(statement))


def take_any_number_away(numbered, actions: Actions) -> None:  # type: ignore[no-untyped-def]
    """A card that is named by its number is that of the process."""
    for change in numbered:
        if change.argument is None:
            actions.change(change.node, replaced(change.text))
        else:
            actions.change(change.node, _without(actions, change.argument))


def _without(actions: Actions, gone: ast.expr):  # type: ignore[no-untyped-def]
    source = actions.script.source(gone)

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        assert isinstance(node, cst.Call)
        found = next((a for a in node.args if text_of(a.value) == source), None)
        return node if found is None else node.with_changes(args=without(node.args, found))

    return change
