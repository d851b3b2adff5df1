"""What an instrument is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from npulens.catalog.message_ids import MessageId


@dataclass(frozen=True)
class Instrument:
    """Lines for each place of a script. Names in braces are filled in.

    Attributes:
        name: What it is called on the command line, and in the mark of its lines.
        title: What an editor calls it.
        next_step: What to do when it is in place.
        top: Statements before everything else, such as variables that libraries read when they
            are imported.
        imports: Statements behind the imports.
        before: Lines before the outermost loop of the training.
        step_begin: Lines at the begin of each turn of a loop that trains.
        step_end: Lines behind what updates the weights.
        turn_end: Lines at the end of each turn, also of one that ends early.
        after: Lines behind the outermost loop.
        prepared: Lines before the outermost loop of the training, or behind what makes the
            optimizer; `{model}` and `{optimizer}` are what they are called there, `{accumulation}`
            is how many times gradients are added up for an update.
        takes_models: Whether a list of several models may stand for `{model}`.
        names: Names that it binds at the top of the module. Each gets a number if it is taken.
        not_with: Instruments that disturb it, and it them.
        dtype: The type to which autocast casts what computes the loss, if it is about that.
        settings: The file that it reads, beside the script, and its text.
    """

    name: str
    title: MessageId
    next_step: MessageId
    top: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    step_begin: tuple[str, ...] = ()
    step_end: tuple[str, ...] = ()
    turn_end: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    takes_models: bool = False
    names: tuple[str, ...] = ()
    not_with: frozenset[str] = frozenset()
    dtype: str = ""
    settings: tuple[str, str] | None = None

    @property
    def needs_steps(self) -> bool:
        """Whether lines belong to the loops of the training."""
        return bool(self.before or self.step_begin or self.step_end or self.turn_end or self.after)

    @property
    def is_of_turns_alone(self) -> bool:
        """Whether its lines belong to what a step does, wherever the loop around it is."""
        return bool(self.step_begin) and not (self.before or self.step_end or self.after)


def fill(line: str, values: Mapping[str, str]) -> str:
    """A line with the names in braces that are known filled in."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), line)
