"""Which fixes make the migrated run differ from the original: those without which it does not."""

from collections.abc import Callable, Iterable

from npulens.workspace.verifying.run_comparison import compare
from npulens.workspace.verifying.verified_run import RunResult

_MOST_RUNS = 8


def deciding_rules(
    codes: Iterable[str],
    run_without: Callable[[str], RunResult],
    original: RunResult,
    tolerance: float,
) -> tuple[str, ...]:
    """The first rule without whose fixes the run computes what the original does.

    Args:
        codes: The rules whose fixes were applied, those to try first in front.
        run_without: Migrates and runs without the fixes of a rule.
        original: The run of the original.
        tolerance: How far figures may differ.

    Returns:
        Its code; nothing if no rule alone decides, or the run stops without it.
    """
    for code in list(codes)[:_MOST_RUNS]:
        found = compare(original, run_without(code), tolerance)
        if not found.problem and found.losses and found.divergence is None:
            return (code,)
    return ()
