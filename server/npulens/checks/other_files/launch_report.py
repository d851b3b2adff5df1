"""What launch files are looked up in, and how what is found there is reported."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import (
    Applicability,
    Edit,
    Finding,
    Fix,
    LocalizedText,
    MigrationStyle,
    Related,
    Rule,
    Severity,
    Target,
)
from npulens.catalog.name_expressions import LONGEST_VALUE
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Catalogue, Choice, EnvironmentEntry, LaunchEntry, Place
from npulens.checks.other_files.any_device import by_hand, set_beside, variable_by_hand
from npulens.checks.other_files.inner_files import InnerFile
from npulens.checks.other_files.package_releases import admits_none
from npulens.checks.titles import add, use
from npulens.text.kinds import Kind
from npulens.text.late_patterns import late
from npulens.text.spans import Span

VARIABLE_NAME = late(r"[A-Z][A-Z0-9_]{3,}")
_SHOWN_WHOLE = frozenset({Place.PACKAGE, Place.SCHEDULER, Place.CONTAINER})
_NAMED_PLACES = frozenset({Place.KEY, Place.OPTION, Place.SETTING})
_SEPARATOR = late(r"[\s:='\"\\>|-]*")
_SWITCH = late(r"true|false|yes|no|on|off|-?\d+", re.IGNORECASE)
"""A value that says nothing without its key."""
_VISIBLE_CARDS = "ASCEND_RT_VISIBLE_DEVICES"
_OF_CUDA = late(r"(?:CUDA|NCCL|CUDNN|CUBLAS)_")
_CHECKED_BY_MEGATRON = "CUDA_DEVICE_MAX_CONNECTIONS"
"""The port of Megatron for the NPU requests this value, too."""
_PLAIN_VALUE = late(r"[\w.,:;+/@=-]*\Z")
_PROBED = late(r"\b(?:command -v|which|type|hash)[ \t]+(?:-\w+[ \t]+)?([\w-]+)")
_FOR_NPU = late(
    r"^[ \t]*(?:export[ \t]+)?(?:HCCL_|ASCEND_|TORCH_HCCL_|PYTORCH_NPU_|MULTI_STREAM_)\w+="
    r"|^[^#\n]*(?:/Ascend/[\w./-]*set_env\.sh|backend[= \t]+[\"']?hccl\b|\btorch_npu_run\b)",
    re.MULTILINE,
)
"""What shows that a script is for NPUs: a variable, their software, the collective backend."""
_FOR_NPU_WORDS = (
    *("HCCL_", "ASCEND_", "PYTORCH_NPU_", "MULTI_STREAM_", "/Ascend/", "hccl", "torch_npu_run"),
)
"""It has one of these."""
_SET_TO_NPU = late(r"=\W*(?:npu|ascend)\b", re.IGNORECASE)
_NAME_BEFORE = late(r"(\w+)\W*\Z")
_MEGATRON = late(
    r"megatron|mindspeed|tensor-model-parallel-size|pretrain_gpt|posttrain_gpt", re.IGNORECASE
)
_TUNING = late(r"TASK_QUEUE_ENABLE|CPU_AFFINITY_CONF")
_LONGEST_NAME = 100
_MOST_RENAMED = 50
_READS = (
    r"\$(?:\(?env:)?\{{?{name}\b"
    r"|(?:environ(?:\.get|\.pop)?|getenv)[ \t]*[\[(][ \t]*[\"']{name}[\"'](?!\][ \t]*=[^=])"
    r"|[\"']{name}[\"'][ \t]+(?:not[ \t]+)?in\b"
)


class _Use(IntEnum):
    """What is done with a variable at a place; the most counts."""

    SHOWN = 0
    READ = 1
    SET = 2


class Beside(NamedTuple):
    """What is set or given beside a name that is looked up.

    Attributes:
        pairs: Each as `name=value`.
        is_all: Nothing else is, as far as can be read.
    """

    pairs: Sequence[str] = ()
    is_all: bool = True


_NOTHING_BESIDE = Beside()


class Request(NamedTuple):
    """Something of which a release is asked for.

    Attributes:
        name: The package; `image` for an image, `file` for a file that is installed.
        value: The requirement on its release, or the image.
        span: Where it is.
        group: The part of the file that it is in. One that is only run under a condition is in a
            group whose first elements are those of what is around it.
    """

    name: str
    value: str
    span: Span
    group: tuple[object, ...]


class LaunchReport:
    """The findings of one shell script, Dockerfile or file of settings, as they come in."""

    def __init__(
        self,
        text: str,
        catalogue: Catalogue,
        target: Target,
        around: str | None = None,
        kind: Kind | None = None,
    ) -> None:
        """Begin without findings.

        Args:
            text: The text.
            catalogue: The rules.
            target: The migration style, and what is known of the project.
            around: Where entries look for what has to be near them; the text if not given.
            kind: The kind of the text, if fixes may add lines to it.
        """
        self.text = text
        self._around = text if around is None else around
        self.catalogue = catalogue
        self._style = target.style
        self._kind = kind
        self.findings: list[Finding] = []
        self.inner_files: list[InnerFile] = []
        self.opens_groups = target.project.opens_groups
        """The project gives PyTorch the backend that is chosen for it as it is."""
        self.is_of_tests = False
        """These are settings of tests."""
        self.requests: list[Request] = []
        """The packages and images that are asked for."""
        self.group: tuple[object, ...] = ("",)
        """The part of the file in which the next ones are."""
        self._places: dict[str, dict[Span, _Use]] = {}
        self._values: dict[str, list[str]] = {}
        self._hiding: dict[str, list[Span]] = {}
        self._reported: set[Span] = set()
        self._words: dict[str, bool] = {}

    def variable(
        self,
        span: Span,
        value: str | None = None,
        *,
        is_reported: bool = True,
        is_reference: bool = False,
    ) -> bool:
        """Note the name of a variable; whether it is one of CUDA's.

        Args:
            span: The name.
            value: What it is set to here, if that can be read.
            is_reported: If not, the name is no finding, but renamed with the others.
            is_reference: The variable is read or unset here.
        """
        name = self.text[slice(*span)]
        entry = self.catalogue.variable(name)
        if entry is None:
            if value is not None and not self.npu_variable(name, value, span):
                self._settle_variable(name, span)
            return False
        if value is not None and not may_be_wish(name, value):
            with self.settling("no-effect"):
                self.add(entry.rule, span, ())
            return True
        if value is not None and hides_all(name, value):
            self._hiding.setdefault(name, []).append(span)
            value, is_reported = None, False
        use = _Use.SHOWN if not is_reported else _Use.READ if is_reference else _Use.SET
        places = self._places.setdefault(name, {})
        places[span] = max(places.get(span, use), use)
        if value is not None:
            self._values.setdefault(name, []).append(value)
        return True

    def npu_variable(self, name: str, value: str, span: Span, is_read: bool | None = None) -> bool:
        """Report what is wrong with a variable that is set for the NPU; whether something is.

        Args:
            name: Its name.
            value: What it is set to.
            span: Where it is set.
            is_read: Whether the file reads it itself; looked for in the text if not given.
        """
        if self.look_up(Place.VARIABLE, name, value, span, span):
            return True
        meant = self.catalogue.npu.variables.meant(name)
        rule = self.catalogue.rule_named("npu-variable-unknown")
        if meant is None or rule is None:
            return False
        if self._is_read(name) if is_read is None else is_read:
            return False
        at = self.text.find(name, *span)
        fixes: list[Fix] = []
        # Of a module only a part may be here, which says nothing of the rest.
        is_there = is_read is None and self._contains(f"{meant}=")
        if at >= 0 and not is_there:
            edit = Edit(Span(at, at + len(name)), meant)
            fixes.append(Fix(use(meant), Applicability.UNSAFE, (edit,)))
        self.add(rule, span, fixes, meant, message("check.npu-variable-meant", name=meant))
        return True

    def _is_read(self, name: str) -> bool:
        """Whether the text itself reads a variable, which then is its own."""
        return self.mentions(re.compile(_READS.format(name=name)))

    def _settle_variable(self, name: str, span: Span) -> None:
        """Say why a variable that is named like one of CUDA is no finding."""
        rule = self.catalogue.rule_named("cuda-environment")
        if rule is not None and _OF_CUDA.match(name) is not None:
            with self.settling("no-effect" if name == _CHECKED_BY_MEGATRON else "own-word"):
                self.add(rule, span, ())

    def request(self, name: str, value: str, span: Span) -> None:
        """Note that a package or an image is asked for."""
        self.requests.append(Request(name, value, span, self.group))

    @contextmanager
    def inside(self, *part: object) -> Iterator[None]:
        """What is asked for meanwhile is in this part of where we are."""
        before = self.group
        self.group = (*before, *part)
        yield
        self.group = before

    @contextmanager
    def apart(self, part: object) -> Iterator[None]:
        """What is asked for meanwhile is compared with nothing else."""
        before = self.group
        self.group = (part,)
        yield
        self.group = before

    @cached_property
    def probed(self) -> frozenset[str]:
        """Commands of which the text checks whether they are there."""
        return frozenset(_PROBED.findall(self.text))

    @cached_property
    def set_to_npu(self) -> frozenset[str]:
        """Names that the text sets to the NPU, or compares with it, in small letters."""
        places = (found.start() for found in _SET_TO_NPU.finditer(self.text))
        named = (_NAME_BEFORE.search(self.text, max(at - _LONGEST_NAME, 0), at) for at in places)
        return frozenset(name[1].lower() for name in named if name is not None)

    @cached_property
    def is_about_processes(self) -> bool:
        """Whether the text holds a number of nodes, or of processes on each."""
        return any(map(self._contains, ("nproc", "nnodes", "NNODES", "NUM_NODES")))

    @cached_property
    def tools(self) -> frozenset[str]:
        """Programs whose words and options the tables know."""
        entries = self.catalogue.launch.get(Place.TOOL, ())
        return frozenset(entry.name.partition(" ")[0] for entry in entries)

    @cached_property
    def lacks_tuning(self) -> bool:
        """Whether the text is for NPUs, and sets no variable against a slow host."""
        if not any(word in self.text for word in _FOR_NPU_WORDS):
            return False
        if _TUNING.search(self.text) is not None or _FOR_NPU.search(self.text) is None:
            return False
        # Its suites come with settings that were measured together.
        return _MEGATRON.search(self.text) is None

    def look_up(
        self,
        place: Place,
        name: str,
        value: str | None,
        name_span: Span,
        value_span: Span,
        beside: Beside = _NOTHING_BESIDE,
    ) -> bool:
        """Report what the tables say of a name and value; whether they know them.

        Args:
            place: Where in the file it is.
            name: The name.
            value: The value, if it can be read.
            name_span: Where the name is.
            value_span: Where the value is; for a flag the empty span behind its name.
            beside: What else is set or given there.
        """
        if len(name) > LONGEST_VALUE or (value is not None and len(value) > LONGEST_VALUE):
            return False
        for entry in self._entries(place, name):
            if entry.value is None:
                if self._is_meant(entry, beside):
                    self._report(entry, name_span, name_span)
                    return True
                continue
            match = None if value is None else re.fullmatch(entry.value, value)
            if match is not None and self._is_mapped(entry):
                with self.settling("library-devices"):
                    self._report(entry, value_span, value_span)
                return True
            is_meant = match is not None and self._is_meant(entry, beside)
            if match is not None and is_meant and _is_wrong(entry, match.group()):
                group = match.span(1) if match.re.groups else match.span()
                replaced = Span(value_span.start + group[0], value_span.start + group[1])
                if place is Place.COMMAND:  # its form is no text of its own
                    replaced = name_span
                whole = name_span if place in _SHOWN_WHOLE else value_span
                if place in _NAMED_PLACES and value is not None and _SWITCH.fullmatch(value):
                    if not self._follows(value_span, name_span):  # set in a variable elsewhere
                        self.add(entry.rule, name_span, (), "", self._note(entry), entry.severity)
                        return True
                    whole = self._with_quotes(name_span, value_span)
                stays = self._is_for_all and match[match.re.groups and 1] == entry.any_device
                with self.settling("no-effect") if stays else nullcontext():
                    self._report(entry, whole, replaced)
                return True
        return False

    @contextmanager
    def settling(self, reason: str) -> Iterator[None]:
        """Whatever is reported meanwhile needs nothing, but for what is of the NPU itself."""
        before = len(self.findings)
        yield
        for index in range(before, len(self.findings)):
            found = self.findings[index]
            if found.rule.of_npu:
                continue
            settled = found.settlement or Settlement(reason)
            self.findings[index] = replace(found, settlement=settled)

    def flag(self, name: str, span: Span) -> None:
        """Report an option that is on by being there: `--load_in_8bit`."""
        self.look_up_computed(Place.SETTING, name, "True", span)

    def look_up_computed(self, place: Place, name: str, value: str, span: Span) -> bool:
        """Report, without a fix, a value that is not written where it is reported.

        Args:
            place: Where in the file it is.
            name: The name.
            value: The computed value.
            span: Where it is reported.
        """
        if len(value) > LONGEST_VALUE:
            return False
        for entry in self._entries(place, name):
            is_meant = entry.value is not None and re.fullmatch(entry.value, value) is not None
            if is_meant and self._is_meant(entry) and _is_wrong(entry, value):
                self.add(entry.rule, span, [], "", self._note(entry), entry.severity)
                return True
        return False

    def finish(self) -> list[Finding]:
        """All findings; those of variables come last, since they depend on each other."""
        for name, places in self._places.items():
            entry = self.catalogue.variable(name)
            if entry is None:
                continue
            values = self._values.get(name, [])
            reason = self._reason_for_variable(entry)
            with nullcontext() if reason is None else self.settling(reason):
                self._report_variable(entry, places, _applicability(entry, values))
                for span in self._hiding.get(name, ()):
                    self.add(
                        entry.rule,
                        span,
                        (),
                        entry.becomes or "",
                        message("check.hides-no-npu"),
                        Severity.INFO,
                    )
        return self.findings

    def add(
        self,
        rule: Rule,
        span: Span,
        fixes: Sequence[Fix],
        replacement: str = "",
        note: LocalizedText | None = None,
        severity: Severity | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Add a finding, unless there is one at this place.

        Args:
            rule: The rule that is broken.
            span: The place; its text is what the message quotes.
            fixes: The fixes.
            replacement: What the message says to use instead.
            note: What is added to the message.
            severity: Another severity than that of the rule.
            related: Other places that belong to it.
        """
        if span in self._reported:
            return
        self._reported.add(span)
        arguments = {"symbol": self.text[slice(*span)], "replacement": replacement}
        self.findings.append(Finding(rule, span, arguments, note, tuple(fixes), severity, related))

    def _follows(self, value: Span, name: Span) -> bool:
        """Whether a value is written behind its name, or inside of what is shown as the name."""
        between = self.text[name.end : value.start]
        is_near = "\n" not in between or _SEPARATOR.fullmatch(between) is not None
        return name.start <= value.start and is_near

    def _with_quotes(self, name: Span, value: Span) -> Span:
        """From a name to its value, with the quotes that open in front of one of them."""
        opening, closing = self._before(name), self.text[value.end : value.end + 1]
        is_closed = closing in ("'", '"') and closing in (opening, self._before(value))
        return Span(name.start - (opening in ("'", '"')), value.end + is_closed)

    def _before(self, span: Span) -> str:
        return self.text[span.start - 1 : span.start]

    def _entries(self, place: Place, name: str) -> Sequence[LaunchEntry]:
        names = self.catalogue.launch_names.get(place)
        return () if names is None else names.of(name)

    def _is_meant(self, entry: LaunchEntry, beside: Beside = _NOTHING_BESIDE) -> bool:
        if entry.evidence and not any(map(self._contains, entry.evidence)):
            return False
        if not self._is_given_to_pytorch(entry) and any(map(self._contains, entry.unless)):
            return False
        if entry.beside is not None and not _has(beside.pairs, entry.beside):
            return False
        return entry.without is None or (beside.is_all and not _has(beside.pairs, entry.without))

    def _is_given_to_pytorch(self, entry: LaunchEntry) -> bool:
        """Whether it chooses a backend that no library maps in this project."""
        return entry.chooses is Choice.BACKEND and self.opens_groups

    def _is_mapped(self, entry: LaunchEntry) -> bool:
        """Whether it chooses a backend by a name that a library maps."""
        is_of_library = entry.chooses is Choice.BACKEND and not self.opens_groups
        return is_of_library and any(map(self._contains, entry.unless))

    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether something is anywhere in the text; it is searched for once."""
        if pattern.pattern not in self._words:
            self._words[pattern.pattern] = pattern.search(self.text) is not None
        return self._words[pattern.pattern]

    def _contains(self, word: str) -> bool:
        if word not in self._words:
            self._words[word] = word in self._around
        return self._words[word]

    @property
    def _is_for_all(self) -> bool:
        return self._style is MigrationStyle.DEVICE_AGNOSTIC

    def _note(self, entry: LaunchEntry) -> LocalizedText | None:
        more = by_hand(entry) if self._is_for_all else None
        return entry.note if more is None else more.behind(entry.note)

    def _report(self, entry: LaunchEntry, span: Span, replaced: Span) -> None:
        before, after = self.text[span.start : replaced.start], self.text[replaced.end : span.end]
        written, applicability = entry.becomes, entry.fix
        if self._is_for_all and not entry.rule.any_device:
            written, applicability = entry.any_device, Applicability.UNSAFE
        fixes = []
        if written is not None and applicability is not Applicability.MANUAL:
            title = use(before + written + after)
            fixes.append(Fix(title, applicability, (Edit(replaced, written),), self._style))
        replacement = "" if entry.becomes is None else before + entry.becomes + after
        self.add(entry.rule, span, fixes, replacement, self._note(entry), entry.severity)

    def _report_variable(
        self, entry: EnvironmentEntry, places: dict[Span, _Use], applicability: Applicability
    ) -> None:
        fixes: list[Fix] = []
        note = entry.note
        if self._is_for_all:
            note = variable_by_hand(entry).behind(note)
        few = len(places) <= _MOST_RENAMED
        if entry.becomes is not None and few and applicability is not Applicability.MANUAL:
            fixes += self._variable_fixes(entry.becomes, places, applicability)
        reported = _reported_places(entry, places)
        others = sorted(places.keys() - set(reported))
        beside = tuple(Related(span, message("check.used-here")) for span in others)
        replacement = entry.becomes or ""
        for span in reported:
            self.add(entry.rule, span, fixes, replacement, note, entry.severity, beside)
            beside = ()

    def _reason_for_variable(self, entry: EnvironmentEntry) -> str | None:
        """Why nothing has to be done about a variable, or `None`."""
        if entry.becomes is not None and entry.becomes in self.text:
            return "npu-way-beside"
        # What tests set beside the choice of cards tunes them.
        return "file-role" if self.is_of_tests and entry.fix is Applicability.MANUAL else None

    def _variable_fixes(
        self, becomes: str, places: dict[Span, _Use], applicability: Applicability
    ) -> Iterator[Fix]:
        if self._is_for_all:
            changed = [span for span, use in places.items() if use is _Use.SET]
            edits = set_beside(self.text, self._kind, changed, becomes)
            if edits:
                title = add(edits[0].replacement.strip())
                yield Fix(title, applicability, tuple(edits), self._style)
            return
        # A script that sets one name and reads the other would be broken: all go together.
        renamed = tuple(Edit(span, becomes) for span in sorted(places))
        yield Fix(use(becomes), applicability, renamed)


def _has(pairs: Sequence[str], expression: str) -> bool:
    short = (pair for pair in pairs if len(pair) <= LONGEST_VALUE)
    return any(re.fullmatch(expression, pair) is not None for pair in short)


def _is_wrong(entry: LaunchEntry, value: str) -> bool:
    return not entry.releases or admits_none(value, entry.releases)


def _reported_places(entry: EnvironmentEntry, places: dict[Span, _Use]) -> list[Span]:
    """Where a variable is set; where it is read, if this is all that is done with it here.

    To request one that cannot be renamed does no harm, and to set one that the NPU has no use for
    is reported once.
    """
    if entry.read:
        return [span for span, use in places.items() if use is not _Use.SHOWN]
    reported = [span for span, use in places.items() if use is _Use.SET]
    if entry.becomes is None:
        return reported[:1]
    if reported or entry.fix is Applicability.MANUAL:
        return reported
    return [span for span, use in places.items() if use is _Use.READ]


def _applicability(entry: EnvironmentEntry, values: Sequence[str]) -> Applicability:
    """How safe renaming a variable is, given the values it is set to."""
    return value_applicability(entry, values) if values else entry.fix


def may_be_wish(name: str, value: str) -> bool:
    """Whether such a value may be meant for the NPU as well.

    NVLS is an algorithm of NVIDIA's switches: to forbid it, or request it, says nothing of HCCL.
    """
    return name != "NCCL_ALGO" or "NVLS" not in value


def hides_all(name: str, value: str) -> bool:
    """Whether a value leaves no card to see, as a program does that is to use the CPU."""
    return name == "CUDA_VISIBLE_DEVICES" and value.strip("\"'") in ("", "-1")


def value_applicability(entry: EnvironmentEntry, values: Sequence[str]) -> Applicability:
    """How safe setting the NPU's variable to these values is; see the notes of the table."""
    if entry.becomes == _VISIBLE_CARDS:
        if all(is_ascending(value) for value in values):
            return Applicability.SAFE
        known = [value for value in values if _PLAIN_VALUE.match(value)]
        if not all(is_ascending(value) for value in known):
            return Applicability.MANUAL
    if any("backend:" in value for value in values):
        return Applicability.MANUAL
    return entry.fix


def is_ascending(value: str) -> bool:
    """Whether it is a list of cards that the NPU takes: numbers in ascending order."""
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return False
    numbers = [int(part) for part in parts]
    return all(first < second for first, second in pairwise(numbers))
