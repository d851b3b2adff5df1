"""Options of Megatron-LM, MindSpeed and the suites built on both, command by command."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, Severity
from npulens.catalog.near_names import is_one_slip
from npulens.catalog.suite_tables import SuiteEntry, SuiteOwner, SuiteTable, plain_spelling
from npulens.checks.other_files.command_options import Given, Part, options_in
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.titles import add, use
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_NAMED = late(r"(?:.*/)?(?:pre|post)train_(?:gpt|vlm|sora|mamba|t5|bert|llava|vae)\w*\.py\Z")
_PROGRAM = late(r".*\.py\Z")
_OF_MM = late(r"(?:.*/)?pretrain_(?:vlm|sora|llava|vae|internvl|whisper|deepseekvl)\w*\.py\Z")
_ENOUGH_MARKS = 3
_RUN_WITH_MINDSPEED = late(
    r"[Aa]scend/[^\s'\"]*set_env\.sh|\bmindspeed|\bMindSpeed|\bMINDSPEED|modellink|ModelLink"
)
_OF_LLM = late(r"mindspeed_llm|MindSpeed-LLM")
_BEFORE_LLM = late(r"modellink|ModelLink")
"""The name of MindSpeed-LLM until 2024, when it had no newer names of options."""
_TRAINS = late(r"(?:.*/)?\w*train\w*\.py\Z")
_SHORTEST_JUDGED = 8
_SHORTEST_WITH_OTHER_LETTER = 16
_MOST_MISSPELT = 3
_OF_GROUPS = "--distributed-backend"
_BESIDE = late(r"[\s='\"\\]*\Z")
"""Between an option and a value that is written behind it."""


@dataclass(frozen=True)
class _SuiteCommand:
    """A command that runs one of the suites."""

    report: LaunchReport
    table: SuiteTable
    program: str
    given: Sequence[Given]
    is_whole: bool

    @cached_property
    def is_of_mm(self) -> bool:
        """Whether it is MindSpeed-MM, which has its own names for some options."""
        is_named = _OF_MM.match(self.program) is not None
        return is_named or any(each.name.startswith("--mm-") for each in self.given)

    @cached_property
    def is_of_llm(self) -> bool:
        """Whether it is MindSpeed-LLM, by the name that it has today."""
        is_named = self.report.mentions(_OF_LLM) and not self.report.mentions(_BEFORE_LLM)
        return is_named and not self.is_of_mm

    @cached_property
    def runs_mindspeed(self) -> bool:
        """Whether it is to run on the NPU, by its options or the text of the script."""
        if any(entry.owner is SuiteOwner.MINDSPEED for _, entry in self.entries()):
            return True
        return self.report.mentions(_RUN_WITH_MINDSPEED)

    def entries(self) -> Iterator[tuple[Given, SuiteEntry]]:
        """The options with what is known of them."""
        for each in self.given:
            for entry in self.table.entries.get(each.name, ()):
                yield each, entry

    def is_meant(self, entry: SuiteEntry) -> bool:
        """Whether an entry is about the suite that is run, and its release."""
        if entry.owner is SuiteOwner.LLM and not self.is_of_llm:
            return False
        return not entry.when or any(map(self.may_hold, entry.when))

    def holds(self, condition: str) -> Given | None:
        """The option by which a condition is sure to hold."""
        return self._first(condition, lambda each, value: _is(each, value) and each.is_sure)

    def may_hold(self, condition: str) -> bool:
        """Whether a condition may hold."""
        return self._first(condition, _may_be) is not None

    def _first(self, condition: str, fits: Callable[[Given, str], bool]) -> Given | None:
        for name, value in _alternatives(condition):
            for each in self.given:
                if self._is_called(each, name) and fits(each, value):
                    return each
        return None

    def _is_called(self, given: Given, name: str) -> bool:
        """Whether an option is of this name, or is meant to be."""
        if given.name == name or _meant(given.name, self.table) == name:
            return True
        return any(e.renamed == name for e in self.table.entries.get(given.name, ()))

    def add(
        self, at: Given, note: LocalizedText, entry: SuiteEntry | None, fix: Fix | None
    ) -> None:
        """Report an option."""
        rule = self.report.catalogue.rule_named("suite-option")
        rule = rule if entry is None else entry.rule
        if rule is None:
            return
        severity = None
        if entry is not None:
            severity = Severity.HINT if entry.profits else entry.severity
            note = note if entry.note is None else entry.note.behind(note)
        self.report.add(rule, at.atom.span, () if fix is None else [fix], "", note, severity)


def suite_findings(report: LaunchReport, parts: Sequence[Part]) -> None:
    """Report the options of a command, if it runs one of the suites.

    Args:
        report: Where findings go.
        parts: The words of the command with what its variables hold.
    """
    command = _suite_command(report, parts)
    if command is None:
        return
    _misspelt(command)
    for each, entry in command.entries():
        if command.is_meant(entry):
            _entry(each, entry, command)
    _unused(command)


def _entry(each: Given, entry: SuiteEntry, command: _SuiteCommand) -> None:
    _renamed(each, entry, command)
    _value(each, entry, command)
    if each.is_sure:
        _excluded(each, entry, command)
        _missing(each, entry, command)


def _suite_command(report: LaunchReport, parts: Sequence[Part]) -> _SuiteCommand | None:
    table = report.catalogue.suite
    place = next((i for i, part in enumerate(parts) if _PROGRAM.match(part.atom.text)), None)
    if place is None:
        return None
    given, is_whole = options_in(parts[place + 1 :], table.flags)
    program = parts[place].atom.text
    marks = {each.name for each in given if any(e.marks for e in table.entries.get(each.name, ()))}
    if len(marks) < (1 if _NAMED.match(program) else _ENOUGH_MARKS):
        return None
    opens = any(e.opens for each in given for e in table.entries.get(each.name, ()))
    return _SuiteCommand(report, table, program, given, is_whole and not opens)


def _misspelt(command: _SuiteCommand) -> None:
    found: list[tuple[Given, str]] = []
    for given in command.given:
        meant = _meant(given.name, command.table)
        if meant is None:
            continue
        if command.table.owners[meant] is SuiteOwner.MINDSPEED or command.runs_mindspeed:
            found.append((given, meant))
    underlined = {each.name for each in command.given if _is_underlined(each.name, command.table)}
    if len(underlined) > _MOST_MISSPELT:
        return  # a fork that spells its options in another way
    for given, meant in found:
        fix = _rewritten(given, meant, Applicability.UNSAFE)
        command.add(given, message("check.suite-misspelt", option=meant), None, fix)


def _is_underlined(name: str, table: SuiteTable) -> bool:
    """Whether it is an option of the suites but for its separators."""
    return "_" in name and plain_spelling(name) in table.by_spelling


@lru_cache(maxsize=2000)
def _meant(name: str, table: SuiteTable) -> str | None:
    """The option that is meant by a name that no suite has."""
    is_known = name in table.known or f"--{name.removeprefix('--no-')}" in table.known
    if is_known or "." in name or len(name) < _SHORTEST_JUDGED:
        return None
    near = table.by_spelling.get(plain_spelling(name)) or tuple(
        known for known in table.nearly(name) if _is_near(name, known)
    )
    return near[0] if len(near) == 1 else None


def _is_near(name: str, known: str) -> bool:
    """Whether it is meant; `--patch-size` is no slip for `--batch-size`."""
    other_letters = sum(map(str.__ne__, name, known)) if len(name) == len(known) else 0
    return is_one_slip(name, known) and (
        other_letters != 1 or len(name) >= _SHORTEST_WITH_OTHER_LETTER
    )


def _renamed(given: Given, entry: SuiteEntry, command: _SuiteCommand) -> None:
    if entry.renamed is not None:
        fix = _rewritten(given, entry.renamed, entry.fix)
        command.add(given, message("check.suite-renamed", option=entry.renamed), entry, fix)


def _value(given: Given, entry: SuiteEntry, command: _SuiteCommand) -> None:
    value = given.known_value
    if entry.option == _OF_GROUPS and command.report.opens_groups:
        return  # its own Megatron takes what it was made to take
    if not entry.choices or value is None or given.value is None or value in entry.choices:
        return
    between = command.report.text[given.atom.span.end : given.value.span.start]
    if given.value.span.start >= given.atom.span.end and _BESIDE.match(between):
        values = ", ".join(f"`{choice}`" for choice in entry.choices)
        note = message("check.suite-value", value=value, values=values)
        command.add(given, note, entry, None)


def _excluded(given: Given, entry: SuiteEntry, command: _SuiteCommand) -> None:
    for condition in entry.excludes:
        other = command.holds(condition)
        if other is not None:
            note = message("check.suite-excludes", option=condition)
            command.add(given, note, entry, None)
            return


def _missing(given: Given, entry: SuiteEntry, command: _SuiteCommand) -> None:
    if not command.is_whole:
        return
    for condition in entry.needs:
        if not command.may_hold(condition):
            note = message("check.suite-needs", option=_listed(condition.split(" or ")))
            command.add(given, note, entry, None)
            return


def _unused(command: _SuiteCommand) -> None:
    """Options that would choose operators of the NPU; all together at the first place."""
    trains = _TRAINS.match(command.program) is not None and not command.is_of_mm
    if not (trains and command.is_whole and command.runs_mindspeed):
        return
    found: dict[Given, list[SuiteEntry]] = {}
    for entry in command.table.hints:
        reason = next(filter(None, map(command.holds, entry.profits)), None)
        is_given = any(command.may_hold(each) for each in (entry.option, *entry.unless))
        if reason is not None and not is_given:
            found.setdefault(reason, []).append(entry)
    if not found:
        return
    names = [entry.option for entries in found.values() for entry in entries]
    edits = tuple(_put_before(at, entries) for at, entries in found.items())
    fix = Fix(add(" ".join(names)), Applicability.UNSAFE, edits)
    first = min(found, key=lambda given: given.atom.span)
    command.add(first, message("check.suite-profits", options=_listed(names)), found[first][0], fix)


def _put_before(given: Given, entries: Iterable[SuiteEntry]) -> Edit:
    start = given.atom.span.start
    return Edit(Span(start, start), "".join(f"{entry.option} " for entry in entries))


def _rewritten(given: Given, name: str, applicability: Applicability) -> Fix:
    return Fix(use(name), applicability, (Edit(given.atom.span, name),))


@lru_cache(maxsize=500)
def _alternatives(condition: str) -> tuple[tuple[str, str], ...]:
    """The options of a condition, each with its value; that is empty if any is right."""
    ways = (way.partition(" ") for way in condition.split(" or "))
    return tuple((name, value) for name, _, value in ways)


def _is(given: Given, value: str) -> bool:
    return not value or given.known_value == value


def _may_be(given: Given, value: str) -> bool:
    return not value or given.known_value in (None, value)


def _listed(options: Iterable[str]) -> str:
    return ", ".join(f"`{option}`" for option in options)
