"""Instruments for programs whose loop is in a library: a callback that the library calls."""

import ast
from collections.abc import Iterator, Sequence

from npulens.fixes.instruments.insertion import Insertion, before
from npulens.fixes.instruments.instrument_model import Instrument, fill
from npulens.fixes.scripts import UnclearError
from npulens.text.lines import LineMap
from npulens.training.frameworks import FrameworkRun

_NAME = "NpuInstrument"
_HOOKS = {
    "lightning": ("on_train_start", "on_train_batch_start", "on_train_batch_end", "on_train_end"),
    "transformers": ("on_train_begin", "on_step_begin", "on_step_end", "on_train_end"),
}
_IMPORTS = {
    "lightning": "from {package} import Callback as NpuCallback",
    "transformers": "from transformers import TrainerCallback as NpuCallback",
}
_ADDED = {
    "lightning": "{trainer}.callbacks.append({name}())",
    "transformers": "{trainer}.add_callback({name}())",
}


def callback_lines(run: FrameworkRun, instrument: Instrument) -> tuple[str, ...]:
    """The import of the library's callback, and the class that does what the instrument does."""
    end = instrument.step_end + instrument.turn_end
    blocks = (instrument.before, instrument.step_begin, end, instrument.after)
    lines = [_IMPORTS[run.name].format(package=run.package), f"class {_NAME}(NpuCallback):"]
    for hook, block in zip(_HOOKS[run.name], blocks, strict=True):
        if block:
            lines.append(f"    def {hook}(self, *_, **__):")
            lines += (f"        {line}" for line in block)
    return tuple(lines)


def prepared_callback(instrument: Instrument) -> tuple[str, ...]:
    """The same for lines that need the model and its optimizer, in the Trainer of transformers.

    It has made its schedule when it calls this, and steps its optimizer once for each update.
    Source: transformers, `Trainer._inner_training_loop` (`trainer.py`).
    """
    values = {
        "model": "model",
        "optimizer": "optimizer",
        "accumulation": "args.gradient_accumulation_steps",
    }
    return (
        _IMPORTS["transformers"],
        f"class {_NAME}(NpuCallback):",
        "    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):",
        *(f"        {fill(line, values)}" for line in instrument.prepared),
    )


def added(runs: Sequence[FrameworkRun], lines: LineMap) -> Iterator[Insertion]:
    """Give the callback to each trainer before it starts.

    Raises:
        UnclearError: A trainer is made and started in one expression.
    """
    for run in runs:
        if not isinstance(run.trainer, (ast.Name, ast.Attribute)):
            raise UnclearError(run.site.node.lineno, "instrument.trainer-has-no-name")
        text = _ADDED[run.name].format(trainer=ast.unparse(run.trainer), name=_NAME)
        yield before(lines, run.site.statement, (text,), order=2)
