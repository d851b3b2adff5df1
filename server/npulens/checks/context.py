"""What a check is given, and how it reports."""

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from npulens.catalog.messages import message
from npulens.catalog.model import (
    Finding,
    Fix,
    LocalizedText,
    MigrationStyle,
    Rule,
    Severity,
    Target,
)
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Catalogue
from npulens.checks.author_evidence import NO_EVIDENCE, Evidence
from npulens.checks.function_names import FunctionNames
from npulens.checks.optional_code import OptionalCode
from npulens.checks.own_extensions import OwnExtensions
from npulens.checks.relevance_filter import RelevanceFilter
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.scopes import FunctionScope, ModuleScope, Scope
from npulens.syntax.values import Imported, Name
from npulens.text.lines import LineMap
from npulens.text.spans import Span
from npulens.verdicts.conditions import Known, answer
from npulens.verdicts.kernels import CALLED
from npulens.verdicts.library_questions import may_ask
from npulens.verdicts.npu_words import SegmentText
from npulens.verdicts.regions import Regions

_BY_SHIM = Settlement("by-shim")


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What a segment must know of the rest of its module.

    Attributes:
        shimmed: The module imports `transfer_to_npu`, or its scripts or the whole project do.
        unpatched_names: Names that the module took from torch before the shim was imported.
        shim_can_move: It imports the shim in a statement of its own.
        device_names: Names that are handed to something that takes a device.
        compared_names: Other names, compared with another device: very likely they hold one.
        backend_names: Names that are handed to something that makes a process group.
        backend_types: Names of `Literal[...]` types with backends, which callers rely on.
        tensor_method_overrides: Method names that classes of this module define.
        imports_torch: The module imports torch at module level.
        imports_torch_npu: It imports torch_npu, or something from it, at module level.
        aliases: Names that stand for something a table may know.
        said: Words anywhere in the module that decide elsewhere, see `module_words.said_in`.
        checked_for_none: Names that it compares with `None`, if it asks for compute capabilities.
        evidence: What its text tells of its author's intentions.
        trains: The module is a script that is run and holds a training loop.
        pins_memory: A loader of the module asks for pinned memory.
        asks_for_npu: The module has a function that says whether an NPU is available.
        device_functions: Functions of the module that say which device is used, and know the NPU.
        devices_elsewhere: Those of other modules of the project.
        extensions: Extension modules that the project builds of CUDA code.
        missing_names: Names that are `None` or false on an NPU, where their library is not there.
        optional_names: These, and those of libraries that an NPU has in builds of their own.
        names_gpus: It holds "cuda", "nccl" or "lightning" somewhere.
        classes_elsewhere: Classes of other modules of the project, with those of their methods
            that tensors have, too.
    """

    shimmed: bool
    unpatched_names: frozenset[str]
    shim_can_move: bool
    device_names: frozenset[str]
    compared_names: frozenset[str]
    backend_names: frozenset[str]
    backend_types: frozenset[str]
    tensor_method_overrides: frozenset[str]
    asks_for_npu: bool
    names_gpus: bool
    imports_torch: bool
    imports_torch_npu: bool
    aliases: frozenset[str]
    classes_elsewhere: OtherModules[frozenset[str]]
    device_functions: frozenset[str]
    devices_elsewhere: OtherModules[bool]
    extensions: OwnExtensions
    missing_names: frozenset[str] = frozenset()
    optional_names: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    checked_for_none: frozenset[str] = frozenset()
    evidence: Evidence = NO_EVIDENCE
    trains: bool = False
    pins_memory: bool = False


def known_of(catalogue: Catalogue, target: Target, facts: ModuleFacts) -> Known:
    """What is known for the conditions of a module."""
    return Known(
        catalogue.conditions,
        target.torch_version,
        target.project.absent(catalogue.missing_libraries),
        facts.missing_names,
        facts.device_functions,
        facts.devices_elsewhere,
    )


@dataclass(slots=True)
class Context:
    """One segment of a module under analysis; spans are in the text of the segment."""

    npu_words: Sequence[tuple[int, int]]
    identifiers: frozenset[str]
    catalogue: Catalogue
    target: Target
    facts: ModuleFacts
    module: ModuleScope
    lines: LineMap
    relevance: RelevanceFilter
    text: str = field(init=False)
    code: SegmentText = field(init=False)
    known: Known = field(init=False)
    regions: Regions = field(init=False)
    settled: Settlement | None = None
    """What settles the node that the checks are looking at, if anything does."""
    findings: list[Finding] = field(default_factory=list)
    reported: set[Span] = field(default_factory=set)
    settlements: dict[Span, Settlement] = field(default_factory=dict)
    """What settles whatever is found at a place."""
    alias_names: dict[ast.expr, str] = field(default_factory=dict)
    """The dotted name that a value is assigned to: `dev` for the value of `dev = torch.cuda`."""
    mentions: dict[ast.AST, str] = field(default_factory=dict)
    """What runs nothing where it stands, such as names of types, each with the reason."""
    annotations: set[ast.expr] = field(default_factory=set)
    """Annotations, unions that stand for one, and parts of a profiler of the host alone."""
    spared_functions: dict[ast.AST, bool] = field(default_factory=dict)
    """Whether a function is for the host or another accelerator, as far as that was asked."""
    function_names: dict[ast.AST, FunctionNames] = field(default_factory=dict)
    """What functions do with their names, as far as that was asked."""
    assignments: dict[ast.AST, dict[tuple[int, int], ast.Assign]] = field(default_factory=dict)
    """The assignments of a function by where they end, as far as they were asked for."""
    class_words: dict[ast.ClassDef, Counter[str]] = field(default_factory=dict)
    """How often each word stands in a class, as far as that was asked."""
    inner_sums: set[ast.AST] = field(default_factory=set)
    """Sums that are the beginning of longer ones."""
    held: dict[str, bool] = field(default_factory=dict)
    called: dict[ast.AST, frozenset[str]] = field(default_factory=dict)
    """The plain names that a function calls, as far as that was asked."""
    optional: OptionalCode = field(default_factory=OptionalCode)
    """Where libraries are used only if they work."""
    _bare: Known | None = None

    def __post_init__(self) -> None:
        self.text = self.lines.text
        self.code = SegmentText(self.lines, self.npu_words)
        self.known = known_of(self.catalogue, self.target, self.facts)
        self.regions = Regions(self.code, self.known)

    def by_shim(self, is_patched: bool = True) -> Settlement | None:
        """What settles a name that `transfer_to_npu` makes work, where it is in force."""
        return _BY_SHIM if self.facts.shimmed and is_patched else None

    def may_be_brought(self, node: ast.Name, scope: Scope) -> bool:
        """Whether a name is read that an import may have brought from what a table knows."""
        if not isinstance(node.ctx, ast.Load):
            return False
        if node.id in self.facts.aliases:
            return True
        around: Scope | None = scope if self.relevance.imports_inside else None
        while isinstance(around, FunctionScope):
            if any(isinstance(each.value, Imported) for each in around.names.get(node.id, ())):
                return True
            around = around.parent
        return False

    def without_libraries(self, test: ast.expr, scope: Scope) -> bool | None:
        """What a condition comes to where no library is there, if it asks for one."""
        if self._bare is None:
            missing = self.target.project.absent(self.catalogue.optional_libraries)
            names = self.facts.optional_names
            self._bare = replace(self.known, missing_libraries=missing, missing_names=names)
        if not may_ask(test, self._bare.missing_libraries, self._bare.missing_names):
            return None
        found = answer(test, scope, self._bare)
        return found.holds if found.reason == "fallback" else None

    def holds(self, word: str) -> bool:
        """Whether a word stands in the segment; looked up once."""
        if word not in self.held:
            self.held[word] = word in self.text
        return self.held[word]

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        return self.code.span(node)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.code.source(node)

    def torch_name(self, scope: Scope, node: ast.expr | ast.stmt) -> str | None:
        """How the module `torch` is called where a node stands, if it is called `torch` there."""
        values = resolve_name(Name("torch"), scope, (node.lineno, node.col_offset))
        return "torch" if Qualified("torch") in values else None

    def report(
        self,
        rule: Rule,
        span: Span,
        symbol: str,
        fixes: list[Fix],
        *,
        replacement: str = "",
        note: LocalizedText | None = None,
        severity: Severity | None = None,
        settled: Settlement | None = None,
    ) -> None:
        """A finding; of several fixes those in the preferred style come first.

        What is settled where it stands, or for the reason given, is kept with that reason.
        """
        style = self.target.style
        preferred = MigrationStyle.NPU if style is MigrationStyle.RUNTIME_SHIM else style
        fixes = sorted(fixes, key=lambda fix: fix.style is not preferred)
        arguments = {"symbol": symbol, "replacement": replacement}
        self.add(Finding(rule, span, arguments, note, tuple(fixes), severity), settled)

    def add(self, finding: Finding, settled: Settlement | None = None) -> None:
        """Keep a finding, with what settles it where it stands or for the reason given."""
        settled = self.settled or settled or self.settlements.get(finding.span)
        led_to = self.regions.leads_to(finding.span) if finding.fixes else ""
        if led_to and finding.rule.family == "device":
            fixes = () if led_to == CALLED else tuple(map(Fix.to_be_read, finding.fixes))
            finding = replace(finding.with_note(message("check.before-kernels")), fixes=fixes)
        self.reported.add(finding.span)
        self.findings.append(finding if settled is None else replace(finding, settlement=settled))

    def settle(self, span: Span, reason: str, by: ast.AST | None = None) -> None:
        """Whatever is found at a place later needs nothing, for what decides there."""
        self.settlements.setdefault(span, Settlement(reason, None if by is None else self.span(by)))

    def settle_all(self, nodes: Iterable[ast.AST], reason: str) -> None:
        """The same for the places of some nodes."""
        for node in nodes:
            self.settle(self.span(node), reason)

    def fallback(self, node: ast.AST) -> Settlement | None:
        """What settles the use of a library where it is only used if it works."""
        part = self.optional.part_of(self.span(node).start)
        return None if part is None else Settlement("fallback", part)
