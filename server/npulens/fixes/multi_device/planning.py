"""From a script to the plan of its changes, or to the reason why there is none."""

import ast
import re
from collections.abc import Iterator
from itertools import chain

from npulens.fixes.multi_device.averaging import TrainedModels, trained_together
from npulens.fixes.multi_device.counted_cards import counted_cards
from npulens.fixes.multi_device.entry import entry_of
from npulens.fixes.multi_device.figures import Figures
from npulens.fixes.multi_device.first_process import loads_behind
from npulens.fixes.multi_device.loaders import epochs, is_unseen, training_loaders
from npulens.fixes.multi_device.models import (
    parallel_calls,
    parallel_classes,
    unwrapped_modules,
)
from npulens.fixes.multi_device.plan import Plan
from npulens.fixes.multi_device.reading import Reading, last_name
from npulens.fixes.multi_device.set_by_data import set_by_data
from npulens.fixes.scripts import UnclearError
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.values import Name

_SEVERAL = re.compile(
    r"init_process_group|DistributedDataParallel|DistributedSampler|\blocal_rank\b|LOCAL_RANK"
    r"|\bspawn\(|\bAccelerator\b"
)
_STARTING = re.compile(
    r"\binit_process_group\(|\bDistributedDataParallel\(|\bDistributedSampler\(|\bmp\.spawn\("
    r"|\bAccelerator\("
)
"""The same in modules, which may know of processes that nobody starts."""
_OTHER_WAYS = re.compile(
    r"^[^\n#]*\b(?P<library>deepspeed|horovod|colossalai)\b"
    r"|\bset_default_(?P<default>device|tensor_type)\((?![\"']cpu)(?=[^)\n]*(?:cuda|npu|device))",
    re.MULTILINE,
)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")


def plan_for(reading: Reading, model: str | None) -> Plan:
    """What is to be changed so that a script trains in one process for each card.

    Raises:
        UnclearError: It is not clear; the reason says what and where.
    """
    _require_one_process(reading)
    _require_steps(reading)
    parallel = parallel_calls(reading)
    loaders = training_loaders(reading)
    models = trained_together(reading, model)
    aliases, alone = models.aliases, models.alone
    figures = Figures(reading, loaders)
    entry = entry_of(
        reading,
        chain(
            (step.loop for step in reading.training.steps),
            (w.at.statement for w in models.wrappings),
            (each.call for each in models.averaged),
            loaders.made,
        ),
    )
    return Plan(
        entry=entry,
        wrappings=models.wrappings,
        averaged=models.averaged,
        parallel=tuple(parallel),
        without_module=tuple(_without_module(reading, models)) if parallel else (),
        classes=tuple(parallel_classes(reading, parallel)),
        direct=loaders.direct,
        rebuilt=loaders.rebuilt,
        reassigned=loaders.reassigned,
        epochs=tuple(epochs(reading, loaders.made)),
        inner=models.inner,
        first_only=alone.only,
        loads=tuple(loads_behind(reading)),
        quiet=alone.quiet,
        opened=alone.opened,
        recorded=alone.recorded,
        folders=alone.folders,
        figures=tuple(figures.summed()),
        agreed_figures=tuple(figures.of_schedulers()),
        agreed_conditions=tuple(figures.conditions()),
        removed=(*_choosing(reading), *_wrapping_itself(reading, parallel)),
        mixed=frozenset(n for n in models.inner if reading.flow.variable(n) in aliases.mixed),
        set_tensors=tuple(set_by_data(reading)),
        unseen=tuple(node for node in loaders.made if is_unseen(reading, node)),
        counted=counted_cards(reading, loaders),
        logs=any(
            resolve_name(Name("logging"), each.module, None) == [Qualified("logging")]
            for each in reading.scripts.values()
        ),
    )


def _require_one_process(reading: Reading) -> None:
    """See that the program starts no processes of its own, where it is known to run.

    Raises:
        UnclearError: It does.
    """
    _require_no_words(reading.script.lines.text)
    for function in reading.training.sites.reached:
        script = reading.script_of(function)
        if script is reading.script:
            continue
        try:
            _require_no_words(script.source(function), _STARTING)
        except UnclearError as error:
            error.line += function.lineno - 1
            error.path = script.path
            raise


def _require_no_words(text: str, starting: re.Pattern[str] = _SEVERAL) -> None:
    if several := starting.search(text):
        raise UnclearError(_line_of(several), "distributed.chooses-device", code=several[0])
    if other := _OTHER_WAYS.search(text):
        if other["library"]:
            line = other.string.count("\n", 0, other.start("library")) + 1
            raise UnclearError(line, "distributed.other-library", library=other["library"])
        call = f"set_default_{other['default']}"
        raise UnclearError(_line_of(other), "distributed.default-device", call=call)


def _line_of(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start()) + 1


def _require_steps(reading: Reading) -> None:
    training = reading.training
    if training.runs:
        run = training.runs[0]
        raise reading.unclear(run.site.node, "distributed.library-trains", library=run.name)
    if not training.backwards:
        raise UnclearError(1, "distributed.no-training")
    if not training.steps:
        raise reading.unclear(training.backwards[0].site.node, "distributed.no-step")


def _without_module(reading: Reading, models: TrainedModels) -> Iterator[ast.Attribute]:
    """`model.module` of what is no wrapper any more, or not yet."""
    if models.wrappings:
        yield from unwrapped_modules(reading, models.aliases)
        return
    for node in reading.flow.places:
        if isinstance(node, ast.Attribute) and node.attr == "module":
            is_asked = "hasattr(" in reading.source(reading.place(node).statements[-1])
            if isinstance(node.value, (ast.Name, ast.Attribute)) and not is_asked:
                yield node


def _choosing(reading: Reading) -> tuple[ast.stmt, ...]:
    """The statements that choose a card, or those that the script sees: now the launcher does."""
    found: dict[ast.stmt, None] = {}
    for node, place in reading.flow.places.items():
        if (
            isinstance(node, ast.Assign)
            and any(_names_visible(t) for t in node.targets)
            and getattr(node.value, "value", None) not in ("", "-1")  # no card at all
        ):
            found[node] = None
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            name = last_name(call.func)
            if (name == "setdefault" and call.args and _is_visible(call.args[0])) or (
                name == "set_device"
                and {"torch.cuda.set_device", "torch.npu.set_device"}
                & set(reading.names(call.func))
            ):
                found[node] = None
        elif (
            isinstance(node, ast.Call)
            and last_name(node.func) == "set_device"
            and not isinstance(place.statements[-1], ast.Expr)
        ):
            raise reading.unclear(node, "distributed.chooses-device", code="set_device")
    return tuple(found)


def _wrapping_itself(
    reading: Reading, parallel: list[tuple[ast.Call, ast.expr]]
) -> Iterator[ast.stmt]:
    """`model = nn.DataParallel(model)`, of which nothing is left."""
    for call, model in parallel:
        statement = reading.parents[call]
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and ast.unparse(statement.targets[0]) == ast.unparse(model)
        ):
            yield statement


def _names_visible(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and _is_visible(target.slice)


def _is_visible(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _VISIBLE
