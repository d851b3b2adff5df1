"""The door: what is found in a module as a whole."""

from collections.abc import Iterator

from npulens.catalog.model import Finding
from npulens.catalog.tables import Catalogue
from npulens.checks.module_wide.saved_modules import whole_modules
from npulens.checks.module_wide.tool_order import misplaced_tool_calls
from npulens.checks.module_wide.unseeded import unseeded_draws
from npulens.checks.segments.module_facts import ModuleSigns
from npulens.checks.whole_module import WholeModule


def module_wide_findings(
    module: WholeModule, signs: ModuleSigns, catalogue: Catalogue
) -> Iterator[Finding]:
    """What no statement of a module shows by itself.

    Args:
        module: The module.
        signs: What its text says of it.
        catalogue: The rules.
    """
    yield from misplaced_tool_calls(module, catalogue)
    yield from whole_modules(module, catalogue)
    if signs.trains:
        yield from unseeded_draws(module, catalogue)
