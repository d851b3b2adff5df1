"""Libraries that the code can do without on the NPU: one hint for each, and those it cannot.

The hint is at the import. It says what is used in place of the library, and what the NPU offers.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npulens.catalog.messages import joined, message
from npulens.catalog.model import Applicability, Finding, Fix, LocalizedText, Related, Rule
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_properties import WITHOUT_BUILD, LibraryState
from npulens.catalog.tables import Catalogue
from npulens.checks.intent.guarded_imports import GuardedImport, Import, ImportFinder
from npulens.checks.intent.needed_libraries import Needs
from npulens.checks.intent.stand_ins import stand_in
from npulens.checks.shared_rules import ATTENTION_CALL
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function
from npulens.verdicts.failing_imports import packages
from npulens.verdicts.file_role import FileRole, file_role
from npulens.verdicts.ledger import Ledger

LIBRARY = "library"
"""The argument of a hint that names the library, which is reported once for a project."""
_RULE = "optional-library"
_MAY_BE_MISSING = WITHOUT_BUILD | {LibraryState.NEEDS_BUILD, LibraryState.UNPORTED_PART}
_FAMILIES = frozenset({"library", "fused"})
_MOST_FIXES = 3
_MOST_IMPORTS = 20
"""Of one library in one file; more are taken for optional."""


_WITHOUT = frozenset({"fallback", "reported-with-library"})
"""Reasons of what a library that is missing settles."""


def report_libraries(
    ledger: Ledger, module: WholeModule, project: ProjectFacts, catalogue: Catalogue | None
) -> None:
    """Open what is settled of libraries that are needed, and put hints on the others.

    The catalogue has the rule for such hints; it is `None` if there shall be none.
    """
    if any(_is_optional(finding) for finding in ledger.settled):
        rule = None if catalogue is None else catalogue.required(_RULE)
        _Libraries(ledger, module, project, rule).report()


def _is_optional(finding: Finding) -> bool:
    settled = finding.settlement
    return (
        finding.rule.library in _MAY_BE_MISSING
        and settled is not None
        and settled.reason in _WITHOUT
    )


class _Libraries:
    """The libraries of a module that some import may leave out."""

    def __init__(
        self, ledger: Ledger, module: WholeModule, project: ProjectFacts, rule: Rule | None
    ) -> None:
        self._ledger = ledger
        self._rule = rule
        self._finder = ImportFinder(module)
        self._is_test = FileRole.TEST in file_role(project.place_of(str(module.place)))
        self._is_optional_module = str(module.place) in project.optional.modules

    def report(self) -> None:
        """Change the ledger."""
        imports: dict[str, list[tuple[Finding, Import]]] = {}
        for finding in self._ledger.in_order():
            statement = self._finder.at(finding.span) if _is_optional(finding) else None
            if statement is not None:
                imports.setdefault(_library(finding), []).append((finding, statement))
        needs: Needs | None = None
        for library, found in imports.items():
            if any(self._is_about(finding, library) for finding in self._ledger.open):
                continue
            needs = needs or Needs(self._finder.nodes, self._finder.owners)
            if not self._open_needed(library, found, needs) and self._rule is not None:
                self._hint(library, found, self._rule)

    def _is_about(self, finding: Finding, library: str) -> bool:
        """Whether a finding says already what is to be done about a library."""
        return finding.rule.family in _FAMILIES and _library(finding) == library

    def _open_needed(
        self, library: str, found: Sequence[tuple[Finding, Import]], needs: Needs
    ) -> bool:
        """Open the findings on imports that the module cannot do without; whether there is one."""
        opened = False
        for finding, statement in found[:_MOST_IMPORTS]:
            guarded = self._finder.guarded(statement)
            can_be_had = finding.rule.library not in WITHOUT_BUILD
            if can_be_had or guarded is None or not isinstance(guarded.guard, ast.Try):
                continue
            place = needs.place(guarded)
            if place is None:
                continue
            beside = Related(self._finder.span(place), message("check.needed-here"))
            self._open(finding, replace(finding, settlement=None, related=(beside,)))
            self._open_behind(library, place)
            opened = True
        return opened

    def _open_behind(self, library: str, place: ast.AST) -> None:
        """Open the calls of a library that is needed, and what a function does that needs it."""
        around: ast.AST | None = place
        while around is not None and not isinstance(around, Function):
            around = self._finder.owners.get(around)
        start, end = (0, 0) if around is None else self._finder.span(around)
        for finding in list(self._ledger.settled):
            settled = finding.settlement
            if settled is None or settled.reason not in _WITHOUT:
                continue
            is_unasked = finding.rule.name == ATTENTION_CALL and settled.span is None
            is_inside = start <= finding.span.start < end
            if (is_unasked or is_inside) and self._is_about(finding, library):
                self._open(finding, replace(finding, settlement=None))

    def _open(self, settled: Finding, opened: Finding) -> None:
        self._ledger.settled = [f for f in self._ledger.settled if f is not settled]
        self._ledger.open.append(opened)

    def _hint(self, library: str, found: Sequence[tuple[Finding, Import]], rule: Rule) -> None:
        """Put a hint in the place of the first import that is there to be run."""
        if self._is_test:
            return
        for finding, statement in found:
            guarded = self._finder.guarded(statement)
            if guarded is None and not self._is_optional_module:
                continue
            others = guarded.others.values() if guarded is not None else ()
            if any(library in packages(other) for other in others):
                continue  # another release of it takes its place
            arguments = {**finding.arguments, LIBRARY: library}
            fixes = finding.fixes or tuple(self._fixes_of_calls(library))
            notes = [each for each in (self._instead(guarded), finding.note) if each]
            note = joined(notes, "punctuation.sentence") if notes else None
            self._open(finding, Finding(rule, finding.span, arguments, note, fixes))
            return

    def _instead(self, guarded: GuardedImport | None) -> LocalizedText | None:
        """What is used where the import fails, as far as the module shows it."""
        found = None if guarded is None else stand_in(guarded, self._finder)
        if found is None:
            return None
        return message("check.takes-its-place", code=found.text, line=found.line)

    def _fixes_of_calls(self, library: str) -> Iterator[Fix]:
        """The ways to write calls for the NPU, which a person picks with the condition around."""
        found = [f for f in self._ledger.settled if f.rule.name == ATTENTION_CALL and f.fixes]
        for finding in [f for f in found if _library(f) == library][:_MOST_FIXES]:
            yield replace(finding.fixes[0], applicability=Applicability.MANUAL)


def _library(finding: Finding) -> str:
    return finding.arguments.get("symbol", "").partition(".")[0]
