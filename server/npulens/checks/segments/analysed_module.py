"""A module under analysis: its segments, and what has to be known to look into any of them."""

from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.model import Target
from npulens.catalog.tables import Catalogue
from npulens.checks.segments.module_facts import module_facts
from npulens.checks.segments.segment import Segment
from npulens.graphs.definitions import ModuleDefinitions
from npulens.graphs.interfaces import Interfaces
from npulens.graphs.other_definitions import OtherDefinitions
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.scopes import ModuleNames
from npulens.verdicts.conditions import Known


class AnalysedModule:
    """What all parts of an analysis are given.

    Attributes:
        facts: What the segments have to know of each other.
        known_without_libraries: The same where no library is there that an NPU may lack.
        definitions: Its functions and classes.
        interfaces: What functions may know of these without looking into methods.
        elsewhere: What it can look into of other modules.
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
        self.facts = facts = module_facts(segments, target, triggers, path, catalogue)
        self.known = Known(
            catalogue.conditions,
            target.torch_version,
            target.project.absent(catalogue.missing_libraries),
            facts.missing_names,
            facts.own.device_functions,
            facts.own.devices_elsewhere,
        )
        absent = target.project.absent(catalogue.optional_libraries)
        self.known_without_libraries = replace(
            self.known, missing_libraries=absent, missing_names=facts.optional_names
        )
        re_exported = OtherModules(target.project.members.libraries, path)
        self.names = ModuleNames([segment.bindings for segment in segments], re_exported)
        self.definitions = ModuleDefinitions([each.parsed.body for each in segments], self.names)
        self.interfaces = Interfaces(self.definitions)
        members = target.project.members
        self.elsewhere = OtherDefinitions(members.computations, members.libraries, path)
