"""Putting an instrument into a script."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from npulens.catalog.model import Edit
from npulens.fixes.apply import apply_edits
from npulens.fixes.instruments.callbacks import added, callback_lines, prepared_callback
from npulens.fixes.instruments.function_places import in_function
from npulens.fixes.instruments.insertion import Insertion, edits_of
from npulens.fixes.instruments.instrument_model import Instrument, fill
from npulens.fixes.instruments.marks import marked_lines, script_tree
from npulens.fixes.instruments.mixed_precision import MixedPrecision
from npulens.fixes.instruments.prepared_lines import is_of_trainer, prepared_lines
from npulens.fixes.instruments.script_places import (
    around_loops,
    at_top,
    behind_imports,
    in_steps,
)
from npulens.fixes.scripts import Script, UnclearError, read_script
from npulens.training.program import FindModule, FindPrograms
from npulens.training.training_script import TrainingScript, read_training
from npulens.training.turns import turns


def instrumented(
    text: str,
    instrument: Instrument,
    find: FindModule | None = None,
    above: FindPrograms | None = None,
) -> str:
    """A script with an instrument.

    Args:
        text: The script.
        instrument: What is put in.
        find: Finds the modules that the script imports, for what half precision depends on;
            without it they are not looked at.
        above: Finds the programs that import the script, for the same and for how often gradients
            are added up.

    Raises:
        UnclearError: As `instrument_edits`.
    """
    return apply_edits(text, instrument_edits(text, instrument, find, above))


def instrument_edits(
    text: str,
    instrument: Instrument,
    find: FindModule | None = None,
    above: FindPrograms | None = None,
) -> tuple[Edit, ...]:
    """The edits that put an instrument into a script.

    Raises:
        UnclearError: It has the instrument, or one that disturbs it, does not parse, or
            it is not clear where the lines belong.
    """
    if find is not None or above is not None:
        return _worked_out(text, instrument, find, above)
    found = _kept(text, instrument)
    if isinstance(found, UnclearError):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=8)  # an editor asks for them whenever the cursor moves
def _kept(text: str, instrument: Instrument) -> tuple[Edit, ...] | UnclearError:
    try:
        return _worked_out(text, instrument, None, None)
    except UnclearError as refused:
        return refused.with_traceback(None)  # it would keep all that was worked out


def _worked_out(
    text: str, instrument: Instrument, find: FindModule | None, above: FindPrograms | None
) -> tuple[Edit, ...]:
    _require_no_other(text, instrument)
    script, training = _read(text)
    names = _free_names(instrument, text)
    filled = _filled(instrument, names)
    changes: list[Edit] = []
    more: list[Insertion] = []
    if filled.dtype:
        if not training.updates and not training.runs:
            raise _no_steps(training)
        precision = MixedPrecision(
            script, training, filled.dtype, names.get("npu_scaler", ""), find, above
        )
        filled = replace(filled, imports=precision.imports() + filled.imports)
        changes += precision.edits()
        more += precision.insertions()
    insertions = [*_insertions(filled, script, training, find, above), *more]
    edits = (*edits_of(script.lines, insertions, instrument.name), *changes)
    script_tree(apply_edits(text, edits))
    return edits


@lru_cache(maxsize=2)  # for several instruments one after the other
def _read(text: str) -> tuple[Script, TrainingScript]:
    tree = script_tree(text)
    if not tree.body:
        raise UnclearError(1, "instrument.no-training")
    script = read_script(tree, text)
    return script, read_training(tree, script.module)


def _require_no_other(text: str, instrument: Instrument) -> None:
    for line, name in marked_lines(text).items():
        if name == instrument.name:
            raise UnclearError(line, "instrument.is-there", name=name)
        if name in instrument.not_with:
            names = {"name": instrument.name, "other": name}
            raise UnclearError(line, "instrument.not-together", **names)


def _insertions(
    instrument: Instrument,
    script: Script,
    training: TrainingScript,
    find: FindModule | None,
    above: FindPrograms | None,
) -> Iterator[Insertion]:
    """All lines of an instrument, at their places."""
    tree, lines = script.tree, script.lines
    imports = instrument.imports
    steps, runs = training.steps, training.runs
    if instrument.needs_steps or instrument.dtype:
        if not steps and not runs and instrument.is_of_turns_alone:
            found = [*in_function(training, lines, instrument.step_begin, instrument.turn_end)]
            if not found:
                raise _no_steps(training)
            yield from found
        elif not steps and not runs and not (instrument.dtype and turns(training)):
            raise _no_steps(training)
        if runs and not steps and not instrument.dtype:
            imports += callback_lines(runs[0], instrument)
            yield from added(runs, lines)
        yield from around_loops(training, lines, instrument.before, instrument.after)
        ends = instrument.step_end, instrument.turn_end
        yield from in_steps(training, lines, instrument.step_begin, *ends)
    if instrument.prepared and is_of_trainer(instrument, training):
        imports += prepared_callback(instrument)
        yield from added(runs, lines)
    elif instrument.prepared:
        yield from prepared_lines(instrument, training, lines, above, find)
    if instrument.top:
        yield at_top(tree, lines, instrument.top)
    if imports:
        yield behind_imports(tree, lines, imports)


def _no_steps(training: TrainingScript) -> UnclearError:
    """Why no loop makes steps, at the line that comes nearest to one."""
    if training.updates:
        site = training.updates[0].site
        function = site.function
        if function is not None:
            return UnclearError(
                site.node.lineno, "instrument.loop-elsewhere", function=function.name
            )
        return UnclearError(site.node.lineno, "instrument.no-loop")
    if training.backwards:
        line = training.backwards[0].site.node.lineno
        return UnclearError(line, "instrument.no-update")
    return UnclearError(1, "instrument.no-training")


def _free_names(instrument: Instrument, text: str) -> Mapping[str, str]:
    """The names that an instrument binds, with a number where the script has such a name."""
    found = {}
    for name in instrument.names:
        free = name
        number = 2
        while re.search(rf"\b{free}\b", text):
            free = f"{name}_{number}"
            number += 1
        found[name] = free
    return found


def _filled(instrument: Instrument, values: Mapping[str, str]) -> Instrument:
    def each(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(fill(line, values) for line in lines)

    return replace(
        instrument,
        top=each(instrument.top),
        imports=each(instrument.imports),
        before=each(instrument.before),
        step_begin=each(instrument.step_begin),
        step_end=each(instrument.step_end),
        turn_end=each(instrument.turn_end),
        after=each(instrument.after),
        prepared=each(instrument.prepared),
    )
