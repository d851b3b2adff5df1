"""The vocabulary of an analysis: rules, findings, fixes and edits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from npulens.catalog.localized import LANGUAGES as LANGUAGES
from npulens.catalog.localized import Language as Language
from npulens.catalog.localized import LocalizedText as LocalizedText
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_properties import Absent, LibraryState, Once, ReportTable, SettledBy, Tag
from npulens.catalog.settlements import Settlement
from npulens.text.spans import Span


class Severity(str, Enum):
    """How much a finding matters, strongest first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    HINT = "hint"


class Applicability(str, Enum):
    """Who may apply a fix.

    `safe` keeps results, `unsafe` must be read. `manual` is a person's: there is no edit, or one
    that is right only where something holds that the code does not show.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"

    @property
    def included(self) -> frozenset["Applicability"]:
        """Which fixes are applied where those of this one are."""
        members = list(Applicability)
        return frozenset(members[: members.index(self) + 1])


class MigrationStyle(str, Enum):
    """What migrated code looks like.

    `npu` names the NPU, `device-agnostic` asks PyTorch for the accelerator, `runtime-shim` keeps
    CUDA names and imports `torch_npu.contrib.transfer_to_npu`.
    """

    NPU = "npu"
    DEVICE_AGNOSTIC = "device-agnostic"
    RUNTIME_SHIM = "runtime-shim"


class Shim(str, Enum):
    """Whether `transfer_to_npu` is in force where a file runs, by what the rest of its tree does.

    `active`: whoever imports the file has imported the shim before. `adapted`: they have imported
    an adaptor of MindSpeed, which imports the shim and patches more. `late`: they import the shim
    after the file, so that what it took from torch by name is not patched. `missing`: the project
    is to run under it, and this script starts a program that names CUDA without it.
    """

    ABSENT = "absent"
    ACTIVE = "active"
    ADAPTED = "adapted"
    LATE = "late"
    MISSING = "missing"


class TorchVersion(NamedTuple):
    """A PyTorch release line, such as 2.8; torch_npu releases carry the same numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


_DEFAULT_VERSION = TorchVersion(2, 8)
_AUTOLOAD_SINCE = TorchVersion(2, 5)


class ReportedReason(NamedTuple):
    """A reason that settles nothing for this project: what it would settle is a finding.

    Attributes:
        name: The reason, as in `Settlement`.
        severity: How much such a finding matters.
        why: The wording of the reason.
    """

    name: str
    severity: Severity
    why: LocalizedText


@dataclass(frozen=True, slots=True)
class Target:
    """What the code shall run on, how it shall look, and what is known of its project.

    `shim` says whether the scripts that run a file import `transfer_to_npu`. With `autoload`
    PyTorch itself imports torch_npu, which its releases from 2.5 on can do. `reasons` are those
    that settle nothing.
    """

    torch_version: TorchVersion = _DEFAULT_VERSION
    style: MigrationStyle = MigrationStyle.NPU
    shim: Shim = Shim.ABSENT
    project: ProjectFacts = field(default_factory=ProjectFacts)
    autoload: bool = False
    reasons: tuple[ReportedReason, ...] = ()

    @property
    def loads_plugin(self) -> bool:
        """Whether torch_npu is there wherever torch is, without an import of its own."""
        return self.autoload and self.torch_version >= _AUTOLOAD_SINCE


@dataclass(frozen=True, slots=True)
class Example:
    """A piece of code that breaks a rule and, where a fix exists, what the fix makes of it."""

    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing npulens looks for.

    `message` is a template over the arguments of a finding; `explanation` says why it matters and
    what to do, in Markdown. `examples` is code that breaks the rule, `valid` code that does not.
    both are what a file of the name `file` would hold. A rule that is not `enabled` is reported
    only where a configuration names it.

    Attributes:
        minutes: How long a place without a fix keeps a person who meets it for the first time.
        fix_minutes: How long it takes to read an unsafe fix of it.
        once: Within what further findings say nothing new, `None` if each counts.
        settled_by: What else than a condition settles its findings.
        library: What it says of a library, `None` if it is about something else.
        requested: The name of the rule for a request to install such a library, `None` if it is
            this one.
        absent: When code stops that needs what is found, since the NPU has nothing in its place:
            `None` if it does not. A safe fix mends that, too.
        by_hand: Somebody has to write code, whatever the severity.
        unread: A file, or a part of it, could not be looked at.
        any_device: Its fixes are right whatever device there is.
        of_npu: What it finds is written for the NPU, so that other code for it settles nothing.
        per_device: What it finds, or what its fixes write, is for one kind of device alone.
        verified_names: It needs the list of all APIs that the tables of torch_npu name.
        table: In which table of a report its findings are, `None` if in none.
        tags: How editors draw its findings.
    """

    code: str
    name: str
    family: str
    severity: Severity
    message: LocalizedText
    explanation: LocalizedText
    examples: tuple[Example, ...] = ()
    valid: tuple[str, ...] = ()
    enabled: bool = True
    file: str = "example.py"
    minutes: int = 30
    fix_minutes: int = 5
    once: Once | None = None
    settled_by: tuple[SettledBy, ...] = ()
    library: LibraryState | None = None
    requested: str | None = None
    absent: Absent | None = None
    by_hand: bool = False
    unread: bool = False
    any_device: bool = False
    per_device: bool = False
    of_npu: bool = False
    verified_names: bool = False
    table: ReportTable | None = None
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternSource:
    """A pattern file.

    Attributes:
        name: What it is called in messages.
        words: Words, at least one of which is in all code that it can match.
        beside: Names of what else is in all code that it can match.
    """

    name: str
    text: str
    words: frozenset[str]
    beside: tuple[str, ...] = ()


class Edit(NamedTuple):
    """Replace the text of `span` by `replacement`; an empty span inserts.

    Attributes:
        replacement: What is there afterwards.
        expected: The text that is replaced, once that is known: nothing else may be.
    """

    span: Span
    replacement: str
    expected: str = ""

    def shifted(self, distance: int) -> "Edit":
        return self._replace(span=self.span.shifted(distance))


class ImportNeed(Enum):
    """What must have been imported for the result of a fix to run.

    `PLUGIN_BESIDE_TORCH`: torch_npu, but a file that does not import torch leaves that to others.
    `PLUGIN`: torch_npu, in whatever form. `PLUGIN_NAME`: the name `torch_npu`. `TORCH_NAME`: the
    name `torch`. `SHIM_MOVED`: the shim, by the fix itself, so that its later import goes.
    """

    NOTHING = ""
    PLUGIN_BESIDE_TORCH = "torch_npu beside torch"
    PLUGIN = "torch_npu in any form"
    PLUGIN_NAME = "torch_npu"
    TORCH_NAME = "torch"
    SHIM_MOVED = "transfer_to_npu"


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to repair a finding.

    Attributes:
        title: What the fix does, in the words of a menu entry.
        applicability: Whether it may be applied without reading; `manual` if a person picks it,
            one place at a time.
        edits: Non-overlapping edits.
        style: The migration style it serves.
        isolation: Of all fixes of one document with the same non-empty value only one is applied
            in a pass, because the first may make the others needless.
        imports: What the result needs to be imported at module level; the edit for it is added
            when the fix is bound to a document.
        module: Another module that the result needs, imported under its own name.
    """

    title: LocalizedText
    applicability: Applicability
    edits: tuple[Edit, ...]
    style: MigrationStyle = MigrationStyle.NPU
    isolation: str = ""
    imports: ImportNeed = ImportNeed.NOTHING
    module: str = ""

    def shifted(self, distance: int) -> "Fix":
        return replace(self, edits=tuple(edit.shifted(distance) for edit in self.edits))

    def to_be_read(self) -> "Fix":
        """The same, but not safe: what it does has to be read."""
        is_safe = self.applicability is Applicability.SAFE
        return replace(self, applicability=Applicability.UNSAFE) if is_safe else self


class Related(NamedTuple):
    """Another place that belongs to a finding, and what it is to it."""

    span: Span
    text: LocalizedText


class DynamicShape(NamedTuple):
    """How much a shape that depends on data hurts, or a wait for the device.

    Attributes:
        score: From 0 to 100.
        function: Where it is, `function` or `Class.method`.
        reached: From where that is reached: `training`, `evaluation`, `unknown`, or `host` where no
            device is named.
        is_shape: A shape depends on data.
        synchronizes: The host waits for the device.
        advice: What is better.
    """

    score: int
    function: str
    reached: str
    is_shape: bool
    synchronizes: bool
    advice: LocalizedText


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule broken at a place.

    Attributes:
        span: The exact text at fault.
        arguments: Values for the rule's message template.
        note: What else is true of this very symbol, or `None`.
        fixes: Ways to repair it, the preferred one first.
        severity: Overrides the rule's, or `None`.
        related: Other places that belong to it.
        dynamic_shape: What else is known of a dynamic shape, `None` of other findings.
        settlement: Why nothing is to be done about it, or `None` if something is. What is settled
            is only shown to those who ask why a place is silent.
        overruled: The reason that would settle it if the configuration did not have it reported,
            or empty.
    """

    rule: Rule
    span: Span
    arguments: Mapping[str, str] = field(default_factory=dict)
    note: LocalizedText | None = None
    fixes: tuple[Fix, ...] = ()
    severity: Severity | None = None
    related: tuple[Related, ...] = ()
    dynamic_shape: DynamicShape | None = None
    settlement: Settlement | None = None
    overruled: str = ""

    def shifted(self, distance: int) -> "Finding":
        """The same finding in a text that has `distance` more code points before it."""
        if not distance:
            return self
        return replace(
            self,
            span=self.span.shifted(distance),
            fixes=tuple(fix.shifted(distance) for fix in self.fixes),
            related=tuple(Related(part.span.shifted(distance), part.text) for part in self.related),
            settlement=None if self.settlement is None else self.settlement.shifted(distance),
        )

    def with_note(self, note: LocalizedText) -> "Finding":
        """The same, with one more sentence behind its note."""
        return replace(self, note=note.behind(self.note))

    def at_most(self, severity: Severity) -> "Finding":
        """The same, mattering no more than this."""
        order = list(Severity)
        is_less = order.index(self.effective_severity) >= order.index(severity)
        return self if is_less else replace(self, severity=severity)

    def message(self, language: Language) -> str:
        """The finding in words."""
        text = self.rule.message.in_language(language).format_map(self.arguments)
        if self.note is None:
            return text
        note = self.note.in_language(language)
        return f"{text} {note}" if language == "en" else f"{text}{note}"

    @property
    def effective_severity(self) -> Severity:
        return self.severity or self.rule.severity
