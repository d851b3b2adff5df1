"""The steps of a rewrite: each takes its part of a plan and says what becomes of the nodes."""

import ast

import libcst as cst

from npulens.fixes.multi_device.actions import HAS_OTHERS, Actions
from npulens.fixes.multi_device.node_changes import (
    appended,
    argument,
    called,
    chosen,
    inner_model,
    on_others,
    perhaps_inner_model,
    replaced,
    text_of,
    with_argument,
    with_function,
    without,
)
from npulens.fixes.multi_device.plan import DirectLoader, Insertion, Plan
from npulens.fixes.scripts import Cards

_RANK = 'local_rank = int(os.environ["LOCAL_RANK"])'
_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
_SAMPLER = "torch.utils.data.distributed.DistributedSampler"


def join_and_leave(plan: Plan, actions: Actions, cards: Cards) -> None:
    """A process takes its card and joins the group, prints only if it is the first, and leaves."""
    entry = plan.entry
    actions.started.modules |= {"os", "sys", "torch"} | ({"logging"} if plan.logs else set())
    silence = f'if {actions.started.is_not_first}:\n    sys.stdout = open(os.devnull, "w")\n'
    if plan.logs:
        silence += "    logging.disable(logging.WARNING)\n"
    actions.insert(Insertion(entry.first), _RANK, *cards.setup, silence)
    returns = isinstance(entry.last, ast.Return)
    actions.insert(Insertion(entry.last, not returns), "torch.distributed.destroy_process_group()")


def wrap_models(plan: Plan, actions: Actions, cards: Cards) -> None:
    """Models are wrapped in `DistributedDataParallel`, on the card of the process."""
    for each in plan.wrappings:
        is_started = actions.of(each.at.statement).is_started
        is_here = is_started and plan.entry.function in (None, each.function)
        device = cards.of_process if is_here else cards.current
        index = "local_rank" if is_here else cards.number
        more = ", broadcast_buffers=False" if each.several_passes else ""
        moved = f"{each.text}.to({device})"
        wrapped = f"{each.text} = {_WRAPPER}({each.text}, device_ids=[{index}]{more})"
        if is_started:
            actions.insert(each.at, moved, wrapped)
        else:
            lines = f"if {HAS_OTHERS}:\n    {moved}\n    {wrapped}\n"
            actions.insert(each.at, lines)


def average_gradients(plan: Plan, actions: Actions) -> None:
    """Gradients are those of all processes, where models are not wrapped."""
    for call, models in plan.averaged:
        actions.change(call, called("averaged_over_processes", *models), "torch")
        actions.of(call).helpers.add("averaged_over_processes")


def take_data_parallel_away(plan: Plan, actions: Actions) -> None:
    """`DataParallel(model)` becomes the model, which is wrapped where it is trained."""
    for call, model in plan.parallel:
        actions.change(call, replaced(actions.source(model)))
    for node in plan.without_module:
        actions.change(node, _owner)
    for each in plan.classes:
        actions.change(each, replaced(_WRAPPER), "torch")


def _owner(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.value if isinstance(node, cst.Attribute) else node


def divide_loaders(plan: Plan, actions: Actions) -> None:
    """Loaders of steps get a `DistributedSampler`, or are made anew with one."""
    for each in plan.direct:
        actions.change(each.call, _with_sampler(each, actions), "torch")
    for call in plan.rebuilt:
        actions.change(call, called("loader_of_process"), "torch")
        actions.of(call).helpers.add("loader_of_process")
    for statement, text in plan.reassigned:
        actions.insert(Insertion(statement, True), f"{text} = loader_of_process({text})")
        actions.of(statement).helpers.add("loader_of_process")


def _with_sampler(loader: DirectLoader, actions: Actions):  # type: ignore[no-untyped-def]
    """`shuffle=True` becomes `sampler=...`."""
    dataset = actions.source(loader.dataset)
    order = ", shuffle=False"
    if loader.order is not None:
        said = actions.source(loader.order)
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
        line = f"{sampler}.set_epoch({epoch})"
        if not each.is_seen or not actions.of(each.loop).is_started:
            line = f'if hasattr({sampler}, "set_epoch"):\n    {line}\n'
        actions.insert(Insertion(each.loop), line)


def mean_inner_models(plan: Plan, actions: Actions) -> None:
    """`model.module`, where the wrapper does not have what is asked for."""
    for node in plan.inner:
        is_known = actions.of(node).is_started and node not in plan.mixed
        actions.change(node, inner_model if is_known else perhaps_inner_model)


def let_first_speak(plan: Plan, actions: Actions) -> None:
    """Saving, records and bars are those of the first process."""
    for statement in plan.first_only:
        file = actions.of(statement)
        file.guarded.add(file.start(statement))
        file.modules.add("torch")
    for statement in plan.loads:
        is_started = actions.of(statement).is_started
        line = "torch.distributed.barrier()"
        actions.insert(
            Insertion(statement), line if is_started else f"if {HAS_OTHERS}:\n    {line}\n"
        )
    for call in plan.quiet:
        file = actions.of(call)
        hidden = f"disable={file.is_not_first}"
        actions.change(call, on_others("disable", "True", file.is_first, hidden), "torch")
    for path in plan.opened:
        is_first = actions.of(path).is_first
        actions.change(path, chosen("os.devnull", is_first), "os", "torch")
    for call in plan.recorded:
        is_first = actions.of(call).is_first
        mode = f'mode=None if {is_first} else "disabled"'
        actions.change(call, on_others("mode", '"disabled"', is_first, mode), "torch")
    for call in plan.folders:
        is_plain = getattr(call.func, "attr", getattr(call.func, "id", "")) == "mkdir" and call.args
        if is_plain and isinstance(call.func, (ast.Attribute, ast.Name)):
            actions.change(call, with_function("os.makedirs"), "os")
        actions.change(call, with_argument("exist_ok=True"))


def reduce_figures(plan: Plan, actions: Actions) -> None:
    """What each process adds up is added up over all; what decides is decided together."""
    for each in plan.figures:
        mean = ", mean=True" if each.mean else ""
        line = f"{each.name} = over_processes({each.name}{mean})"
        actions.insert(Insertion(each.loop, True), line)
        actions.of(each.loop).helpers.add("over_processes")
    for node in plan.agreed_figures:
        actions.change(node, called("over_processes", "mean=True"), "torch")
        actions.of(node).helpers.add("over_processes")
    for node in plan.agreed_conditions:
        actions.change(node, called("in_any_process"), "torch")
        actions.of(node).helpers.add("in_any_process")


def keep_set_tensors_alike(plan: Plan, actions: Actions) -> None:
    """What a module sets from its data is in all processes what it is in the first."""
    for each in plan.set_tensors:
        line = f"same_in_processes({each.tensor})"
        actions.insert(Insertion(each.statement, True), line)
        actions.of(each.statement).helpers.add("same_in_processes")


def count_one_card(plan: Plan, actions: Actions) -> None:
    """The batch of a process is that of its card."""
    for call in plan.counted:
        actions.change(call, replaced("1"))


def let_launcher_choose(plan: Plan, actions: Actions) -> None:
    """Statements that choose a card go."""
    for statement in plan.removed:
        file = actions.of(statement)
        file.removed.add(file.start(statement))


def take_any_number_away(numbered, actions: Actions) -> None:  # type: ignore[no-untyped-def]
    """A card that is named by its number is that of the process."""
    for change in numbered:
        if change.argument is None:
            actions.change(change.node, replaced(change.text))
        else:
            actions.change(change.node, _without(actions, change.argument))


def _without(actions: Actions, gone: ast.expr):  # type: ignore[no-untyped-def]
    source = actions.source(gone)

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        assert isinstance(node, cst.Call)
        found = next((a for a in node.args if text_of(a.value) == source), None)
        return node if found is None else node.with_changes(args=without(node.args, found))

    return change
