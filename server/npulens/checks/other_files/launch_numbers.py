"""Numbers of nodes, processes and devices that a script writes at several places."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from npulens.catalog.localized import LocalizedText
from npulens.catalog.messages import message
from npulens.catalog.model import Related, Severity
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.script_variables import UNKNOWN, ScriptVariable, is_literal
from npulens.checks.other_files.shell_programs import (
    TEXT_COMMANDS,
    Atom,
    atoms_of,
    base_name,
    programs,
)
from npulens.syntax.shell_tree import Command
from npulens.text.spans import Span

_OPTIONS = frozenset({"nproc_per_node", "nnodes", "node_rank", "master_addr"})
_OPTION = re.compile(r"--(?P<name>[a-z][a-z_-]*)(?:=(?P<value>.*))?\Z", re.DOTALL)
_REFERENCE = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?:\[[@*]\])?\})\Z")
_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
_DEVICES = re.compile(r"\d+(?:,\d+)*\Z")
_PER_NODE = re.compile(r"(?:N|G)PUS?_PER_NODE\Z")
_NODES = ("NNODES", "NUM_NODES")
_ITSELF = frozenset({"localhost", "127.0.0.1"})
_NUMBER = re.compile(r"\d{1,6}\Z")
_MOST_WORDS = 1000


class _Given(NamedTuple):
    """The value of an option: as it is written, and what it comes to if that is known."""

    written: Atom
    known: Atom | None


class _Launch(NamedTuple):
    """A command that is given some of the options."""

    command: Command
    options: dict[str, _Given]


def launch_numbers(
    report: LaunchReport, commands: Iterable[Command], variables: Sequence[ScriptVariable]
) -> None:
    """Report numbers of a script that contradict each other.

    Args:
        report: Where findings go.
        commands: The commands that are run on an NPU machine.
        variables: What the script sets.
    """
    if not report.is_about_processes:
        return
    script = _Script(report, variables)
    launches = list(script.launches(commands))
    script.more_processes_than_devices(launches)
    script.several_nodes_with_one_address(launches)
    script.other_number_per_node(launches)


class _Script:
    """What is known of the variables of a script."""

    def __init__(self, report: LaunchReport, variables: Sequence[ScriptVariable]) -> None:
        self._report = report
        self._set: dict[str, list[ScriptVariable]] = {}
        for each in variables:
            self._set.setdefault(each.name, []).append(each)
        visible = self._set.get(_VISIBLE, ())
        self._own_devices = {id(v.command): v for v in visible if v.command is not None}

    def launches(self, commands: Iterable[Command]) -> Iterator[_Launch]:
        """Commands with options about nodes and processes, also those from a variable."""
        for command in commands:
            atoms = atoms_of(command.words, self._report.text)
            program = next(iter(programs(atoms)), None)
            if program is None or base_name(program) in TEXT_COMMANDS:
                continue
            options = dict(self._options(list(islice(self._expanded(atoms), _MOST_WORDS))))
            if options:
                yield _Launch(command, options)

    def more_processes_than_devices(self, launches: Iterable[_Launch]) -> None:
        for launch in launches:
            processes = _number(launch.options.get("nproc_per_node"))
            visible = self._visible(launch.command)
            if processes is None or visible is None:
                continue
            devices = visible.value.text.count(",") + 1
            if int(processes.text) > devices:
                note = message(
                    "check.processes-over-devices", processes=processes.text, devices=devices
                )
                self._add(processes, note, visible, Severity.ERROR)

    def several_nodes_with_one_address(self, launches: Sequence[_Launch]) -> None:
        """A master that each node takes for itself; on node 0 alone that would be right."""
        ranks = [given for _, o in launches if (given := o.get("node_rank")) is not None]
        written = {given.written.text for given in ranks}
        if len(written) > 1 or "0" in written or any(map(self._varies, written)):
            return  # for node 0 alone, or a rehearsal of several nodes on one machine
        found = [(self._known("MASTER_ADDR"), self._known(name)) for name in _NODES]
        for _, options in launches:
            address, nodes = options.get("master_addr"), options.get("nnodes")
            found.append((None if address is None else address.known, _number(nodes)))
        rank = self._known("NODE_RANK")
        is_edited = rank is not None and rank.text == "0"  # by hand, on each node
        for place, number in found:
            if place is None or number is None or place.text not in _ITSELF:
                continue
            if _NUMBER.match(number.text) and int(number.text) > 1:
                note = message("check.nodes-with-one-address", nodes=number.text)
                self._add(place, note, number, Severity.INFO if is_edited else None)

    def other_number_per_node(self, launches: Sequence[_Launch]) -> None:
        names = [name for name in self._set if _PER_NODE.match(name)]
        given = [o["nproc_per_node"] for _, o in launches if "nproc_per_node" in o]
        for name in names:
            number = self._known(name)
            if number is None or not _NUMBER.match(number.text):
                continue
            if any(name in each.written.text for each in given):
                continue  # this one may well be for something else
            for each in given:
                processes = _number(each)
                if processes is not None and int(processes.text) != int(number.text):
                    note = message("check.number-per-node", name=name, number=number.text)
                    self._add(processes, note, number)

    def _add(
        self,
        place: Atom,
        note: LocalizedText,
        other: Atom | ScriptVariable,
        severity: Severity | None = None,
    ) -> None:
        rule = self._report.catalogue.rule_named("launch-numbers")
        if rule is not None:
            related = (Related(other.span, message("check.set-here")),)
            self._report.add(rule, place.span, [], "", note, severity, related)

    def _known(self, name: str) -> Atom | None:
        """What a variable is set to, if that is once, for all that follows and on no condition."""
        places = self._set.get(name, ())
        if len(places) != 1 or places[0].block or places[0].command is not None:
            return None
        value = places[0].value
        return value if value.text and is_literal(value.text) else None

    def _varies(self, reference: str) -> bool:
        """Whether a script itself gives a variable several values."""
        match = _REFERENCE.match(reference)
        name = "" if match is None else match["name"] or match["braced"]
        return any(place.value.text == UNKNOWN for place in self._set.get(name, ()))

    def _visible(self, command: Command) -> ScriptVariable | None:
        """Where the devices are chosen that a command sees."""
        found = self._own_devices.get(id(command))
        if found is None and self._known(_VISIBLE) is not None:
            found = self._set[_VISIBLE][0]
            found = found if found.span < command.words[0].span else None
        return found if found is not None and _DEVICES.match(found.value.text) else None

    def _expanded(self, atoms: Iterable[Atom]) -> Iterator[Atom]:
        """The words, with those of lists of options in the place of their variables."""
        for atom in atoms:
            match = _REFERENCE.match(atom.text)
            places = () if match is None else self._set.get(match["name"] or match["braced"], ())
            words = places[0].words if len(places) == 1 else ()
            yield from words if len(words) > 1 else [atom]

    def _options(self, atoms: Sequence[Atom]) -> Iterator[tuple[str, _Given]]:
        for index, atom in enumerate(atoms):
            match = _OPTION.match(atom.text)
            name = "" if match is None else match["name"].replace("-", "_")
            if match is None or name not in _OPTIONS:
                continue
            value = atoms[index + 1] if index + 1 < len(atoms) else None
            if match["value"] is not None:
                start = atom.span.start + match.start("value")
                value = Atom(Span(start, atom.span.end), match["value"])
            if value is not None:
                yield name, _Given(value, self._resolved(value))

    def _resolved(self, value: Atom) -> Atom | None:
        match = _REFERENCE.match(value.text)
        if match is not None:
            return self._known(match["name"] or match["braced"])
        return value if is_literal(value.text) else None


def _number(given: _Given | None) -> Atom | None:
    known = None if given is None else given.known
    return known if known is not None and _NUMBER.match(known.text) else None
