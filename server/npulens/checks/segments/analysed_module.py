"""A module under analysis: its segments, and what has to be known to look into any of them."""

from collections.abc import Sequence

from npulens.catalog.model import Target
from npulens.catalog.tables import Catalogue
from npulens.checks.segments.module_facts import known_of, module_facts
from npulens.checks.segments.segment import Segment
from npulens.graphs.definitions import ModuleDefinitions
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.scopes import ModuleNames


class AnalysedModule:
    """What all parts of an analysis are given.

    Args:
        segments: The module.
        path: Where it is.
        catalogue: The rules and tables.
        target: What is analysed for, and what the project says.
        triggers: The words that a finding needs.

    Attributes:
        facts: What the segments have to know of each other.
        known: What is known for conditions.
        names: The names of the module.
        definitions: Its functions and classes.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        path: str,
        catalogue: Catalogue,
        target: Target,
        triggers: frozenset[str],
    ) -> None:
        self.segments, self.path = segments, path
        self.catalogue, self.target = catalogue, target
        self.facts = module_facts(segments, target, triggers, path, catalogue)
        self.known = known_of(catalogue, target, self.facts)
        re_exported = OtherModules(target.project.reexported_libraries, path)
        self.names = ModuleNames([segment.bindings for segment in segments], re_exported)
        self.definitions = ModuleDefinitions([each.parsed.body for each in segments], self.names)
