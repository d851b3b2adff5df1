"""What a check is given, and how it reports."""

import ast
from collections.abc import Iterable
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
from npulens.checks.optional_code import OptionalCode
from npulens.checks.relevance_filter import RelevanceFilter
from npulens.checks.segment_lookups import SegmentLookups
from npulens.checks.segments.module_facts import ModuleFacts
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.scopes import FunctionScope, ModuleScope, Scope, function_of
from npulens.syntax.values import Imported, Name
from npulens.text.spans import Span
from npulens.verdicts.kernels import CALLED
from npulens.verdicts.npu_words import SegmentText
from npulens.verdicts.regions import Regions

_BY_SHIM = Settlement("by-shim")
_BY_ADAPTOR = Settlement("by-adaptor")


@dataclass(slots=True)
class Reported:
    """What checks have found in a segment.

    Attributes:
        findings: The findings, settled ones too.
        spans: The places that need no other finding.
        settlements: What settles whatever is found at a place.
    """

    findings: list[Finding] = field(default_factory=list)
    spans: set[Span] = field(default_factory=set)
    settlements: dict[Span, Settlement] = field(default_factory=dict)


@dataclass(slots=True)
class NodeNotes:
    """What checks note of nodes for those that see them, or what is in them, later.

    Attributes:
        alias_names: The dotted name that a value is assigned to: `dev` in `dev = torch.cuda`.
        mentions: What runs nothing at its place, such as names of types, each with the reason.
        annotations: Annotations, unions that represent one, and parts of a profiler of the host.
        inner_sums: Sums that are the beginning of longer ones.
        own_words: Words that are no devices by what is around them, each with the reason.
        device_tables: Tables in which a device is looked up.
        looked_up: Words of the project that a function, or the module, looks up, with where.
        scaling: Calls that clip scaled gradients, with their fixes, and casts without a scaler,
            which have none (`None`).
    """

    alias_names: dict[ast.expr, str] = field(default_factory=dict)
    mentions: dict[ast.AST, str] = field(default_factory=dict)
    annotations: set[ast.expr] = field(default_factory=set)
    inner_sums: set[ast.AST] = field(default_factory=set)
    own_words: dict[ast.AST, str] = field(default_factory=dict)
    device_tables: set[ast.AST] = field(default_factory=set)
    looked_up: dict[ast.AST | None, frozenset[tuple[str, str]]] = field(default_factory=dict)
    scaling: dict[ast.AST, tuple[Fix, ...] | None] = field(default_factory=dict)


@dataclass(slots=True)
class Context:
    """One segment of a module under analysis; spans are in the text of the segment.

    Attributes:
        facts: What is known of the rest of the module.
        relevance: Where words of the tables occur in it.
        lookups: Answers about the segment that several checks need.
        regions: Which parts of it an NPU reaches.
        optional: Where libraries are used only if they work.
        settled: What settles the node that the checks are looking at, if anything does.
        notes: What checks have noted for others.
    """

    catalogue: Catalogue
    target: Target
    facts: ModuleFacts
    module: ModuleScope
    code: SegmentText
    relevance: RelevanceFilter
    lookups: SegmentLookups
    regions: Regions
    optional: OptionalCode
    settled: Settlement | None = None
    reported: Reported = field(default_factory=Reported)
    notes: NodeNotes = field(default_factory=NodeNotes)

    def by_shim(self, is_patched: bool = True) -> Settlement | None:
        """What settles a name that `transfer_to_npu` makes work, where it is in force."""
        return _BY_SHIM if self.facts.shim.is_active and is_patched else None

    def by_adaptor(self) -> Settlement | None:
        """What settles a name that MindSpeed patches, where an adaptor of it is in force."""
        return _BY_ADAPTOR if self.facts.shim.is_adapted else None

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

    def span(self, node: ast.AST) -> Span:
        """Where a node is."""
        return self.code.lines.span(node)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.code.source(node)

    def before_on_line(self, node: ast.expr | ast.stmt) -> str:
        """The text in front of a node on the line that it starts on."""
        return self.code.text[self.code.lines.starts[node.lineno - 1] : self.span(node).start]

    def function_text(self, scope: Scope) -> str:
        """The text of the function that a scope is of or in; empty at the top of a module."""
        function = function_of(scope.function_parent())
        return "" if function is None else self.source(function)

    def torch_name(self, scope: Scope, node: ast.expr | ast.stmt) -> str | None:
        """How the module `torch` is called where a node is, if it is called `torch` there."""
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
        """Report a finding.

        `symbol` is the name or text that the message quotes, `replacement` what it says to use
        instead, and `note` what is added to it. Fixes in the preferred style are put first. What is
        settled is kept with the reason.
        """
        style = self.target.style
        preferred = MigrationStyle.NPU if style is MigrationStyle.RUNTIME_SHIM else style
        fixes = sorted(fixes, key=lambda fix: fix.style is not preferred)
        arguments = {"symbol": symbol, "replacement": replacement}
        self.add(Finding(rule, span, arguments, note, tuple(fixes), severity), settled)

    def add(self, finding: Finding, settled: Settlement | None = None) -> None:
        """Keep a finding, with what settles it at its place or for the reason given."""
        settled = self.settled or settled or self.reported.settlements.get(finding.span)
        led_to = self.regions.leads_to(finding.span) if finding.fixes else ""
        if led_to and finding.rule.family == "device":
            fixes = () if led_to == CALLED else tuple(map(Fix.to_be_read, finding.fixes))
            finding = replace(finding.with_note(message("check.before-kernels")), fixes=fixes)
        self.reported.spans.add(finding.span)
        found = finding if settled is None else replace(finding, settlement=settled)
        self.reported.findings.append(found)

    def settle(self, span: Span, reason: str, by: ast.AST | None = None) -> None:
        """Whatever is found at a place later needs nothing, for what decides there."""
        settlement = Settlement(reason, None if by is None else self.span(by))
        self.reported.settlements.setdefault(span, settlement)

    def settle_all(self, nodes: Iterable[ast.AST], reason: str) -> None:
        """The same for the places of some nodes."""
        for node in nodes:
            self.settle(self.span(node), reason)

    def fallback(self, node: ast.AST) -> Settlement | None:
        """What settles the use of a library where it is only used if it works."""
        part = self.optional.part_of(self.span(node).start)
        return None if part is None else Settlement("fallback", part)
