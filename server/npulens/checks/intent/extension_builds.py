"""One finding for each CUDA extension that a file builds, at the call that builds it.

Whatever else belongs to building it is settled there: the import of the builder, the sources, the
flags for the compiler, and the command that compiles.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, LocalizedText, Related
from npulens.catalog.settlements import Settlement
from npulens.checks.other_files.cpp_bindings import CUDA_SUFFIXES
from npulens.checks.shared_rules import CUDA_EXTENSION
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import parameters_of
from npulens.syntax.walking import names_in, nodes_below
from npulens.text.spans import Span

_REASON = "reported-at-build"
_MOST_PARTS = 200
"""Further parts of one file are left alone."""
_MOST_RELATED = 20
_LONGEST_NAME = 200
_FLAG_KEYWORD, _COMPILER, _COMMAND_NAME = "extra_cuda_cflags", "nvcc", "BuildExtension"
_FLAGS = (
    *("-gencode", "arch=compute_", "TORCH_CUDA_ARCH_LIST", "--expt-", "-maxrregcount"),
    *("--maxrregcount", "-use_fast_math", "--use_fast_math", "--ptxas-options", "-Xptxas"),
    *("-U__CUDA_NO_", "-D__CUDA_NO_"),
)
"""How flags begin that only the CUDA compiler takes, and the variable that says them."""
_TOOLKIT = "CUDA_HOME"


class _Part(NamedTuple):
    """Something that belongs to building an extension."""

    span: Span
    what: LocalizedText


class _Lead(NamedTuple):
    """The finding about an extension, and the builder and the place of the call it is at."""

    finding: Finding
    builder: str
    whole: Span


def with_builds_together(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings with one for each extension built; those that belong to it are settled."""
    found = [finding for finding in findings if finding.rule.name == CUDA_EXTENSION]
    if not found:
        return list(findings)
    return _Builds(module, found).among(findings)


class _Builds:
    """What a module builds, as its findings about extensions that are built (`found`) say."""

    def __init__(self, module: WholeModule, found: Sequence[Finding]) -> None:
        self._nodes, self._source = module.nodes, module.source
        self._span = module.lines.span
        calls = {
            self._span(node.func): node
            for node in module.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
        }
        self._text = module.text
        self._functions = [
            (self._span(node), node) for node in module.nodes if isinstance(node, ast.FunctionDef)
        ]
        self._calls: dict[str, list[ast.Call]] = {}
        for call in calls.values():
            if isinstance(call.func, ast.Name):
                self._calls.setdefault(call.func.id, []).append(call)
        self._inner: list[tuple[Finding, Span]] = []
        self._led: set[Span] = set()
        self._used: dict[str, list[ast.Call]] = {}
        self._leads: list[_Lead] = []
        for finding in found:
            at = calls.get(finding.span)
            if at is not None:
                self._leads += self._leads_of(finding, at)
        self._others = [finding for finding in found if finding.span not in calls]

    def _leads_of(self, finding: Finding, call: ast.Call) -> Iterator[_Lead]:
        """The call, or the calls of the helper that leaves the name to its callers."""
        builder = finding.arguments.get("symbol", "")
        uses = self._uses_of_helper(call)
        is_new = bool(uses) and self._span(uses[0].func) not in self._led
        for use in uses if is_new else ():
            self._led.add(self._span(use.func))
            arguments = {**finding.arguments, "symbol": self._source(use.func)}
            at_use = replace(finding, span=self._span(use.func), arguments=arguments, fixes=())
            yield _Lead(at_use, builder, self._span(use))
        if uses:
            self._inner.append((finding, self._span(uses[0].func)))
        else:
            yield _Lead(finding, builder, self._span(call))

    def _uses_of_helper(self, call: ast.Call) -> list[ast.Call]:
        """The calls that give CUDA sources to the function around a call, which names nothing."""
        place = self._span(call)
        around = [node for span, node in self._functions if span.covers(place)]
        if not around:
            return []
        helper = around[-1]
        given = {k.arg: k.value for k in call.keywords}
        named = given.get("name", call.args[0] if call.args else None)
        parameters = {parameter.arg for parameter, _ in parameters_of(helper.args)}
        if named is None or parameters.isdisjoint(names_in(named)):
            return []
        if helper.name not in self._used:
            self._used[helper.name] = [
                use
                for use in self._calls.get(helper.name, ())
                if any(isinstance(p, ast.Constant) and _is_source(p) for p in nodes_below(use))
            ]
        return self._used[helper.name]

    def among(self, findings: Sequence[Finding]) -> list[Finding]:
        """All findings of the module, with the leads in the place of what belongs to them."""
        if not self._leads:  # nobody calls the builder here, so its import leads
            self._leads = [_Lead(f, "", f.span) for f in self._others[:1]]
        kept: list[Finding] = []
        settled: list[Finding] = []
        related: dict[int, list[Related]] = {id(lead.finding): [] for lead in self._leads}
        leads = {lead.finding.span for lead in self._leads}
        inner = {finding.span: at for finding, at in self._inner}
        parts = list(self._parts())
        places = {part.span for part in parts}
        others = {id(finding) for finding in self._others}
        for finding in findings:
            by_builder = self._lead_of_builder(finding) if id(finding) in others else None
            if finding.rule.name == CUDA_EXTENSION and finding.span in inner:
                settled.append(_settled(finding, inner[finding.span]))
            elif by_builder is not None and finding.span not in leads:
                settled.append(_settled(finding, by_builder.finding.span))
                related[id(by_builder.finding)].append(
                    Related(finding.span, message("check.extension-builder"))
                )
            elif finding.span in places and finding.rule.name != CUDA_EXTENSION:
                settled.append(_settled(finding, self._lead_at(finding.span).finding.span))
            elif finding.span not in leads or finding.rule.name != CUDA_EXTENSION:
                kept.append(finding)
        known = {finding.span for finding in (*kept, *settled)} | leads
        for part in parts:
            lead = self._lead_at(part.span)
            related[id(lead.finding)].append(Related(part.span, part.what))
            if part.span not in known:
                arguments = {"symbol": self._text[slice(*part.span)], "replacement": ""}
                settled.append(
                    _settled(Finding(lead.finding.rule, part.span, arguments), lead.finding.span)
                )
        for lead in self._leads:
            beside = tuple(sorted(related[id(lead.finding)])[:_MOST_RELATED])
            kept.append(replace(lead.finding, related=(*lead.finding.related, *beside)))
        return [*kept, *settled]

    def _lead_of_builder(self, finding: Finding) -> _Lead | None:
        symbol = finding.arguments.get("symbol", "")
        return next((lead for lead in self._leads if lead.builder == symbol), None)

    def _lead_at(self, span: Span) -> _Lead:
        """The lead whose call holds a place, else the first."""
        containing = [lead for lead in self._leads if lead.whole.covers(span)]
        return min(
            containing, key=lambda lead: lead.whole.end - lead.whole.start, default=self._leads[0]
        )

    def _parts(self) -> Iterator[_Part]:
        """What else belongs to building extensions, up to some number."""
        found = (part for node in self._nodes for part in self._parts_at(node))
        for _, part in zip(range(_MOST_PARTS), found, strict=False):
            yield part

    def _parts_at(self, node: ast.AST) -> Iterator[_Part]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _is_source(node):
                yield _Part(self._span(node), message("check.extension-source"))
            elif node.value.startswith(_FLAGS) and len(node.value) < _LONGEST_NAME:
                yield _Part(self._span(node), message("check.extension-flags"))
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant) and key.value == _COMPILER:
                    yield _Part(self._span(key), message("check.extension-flags"))
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and node.slice.value == _COMPILER:
                yield _Part(self._span(node.slice), message("check.extension-flags"))
        elif isinstance(node, ast.keyword) and node.arg in (_FLAG_KEYWORD, _COMPILER):
            start = self._span(node).start
            yield _Part(Span(start, start + len(node.arg)), message("check.extension-flags"))
        elif isinstance(node, (ast.ImportFrom, ast.Name, ast.Attribute)):
            yield from self._named(node)

    def _named(self, node: ast.ImportFrom | ast.Name | ast.Attribute) -> Iterator[_Part]:
        """`from torch.utils.cpp_extension import BuildExtension, CUDA_HOME`, and their uses."""
        if isinstance(node, ast.ImportFrom):
            names = [(alias.name, self._span(alias)) for alias in node.names]
        else:
            name = node.id if isinstance(node, ast.Name) else node.attr
            names = [(name, self._span(node))]
        for name, span in names:
            if name == _COMMAND_NAME:
                yield _Part(span, message("check.extension-command"))
            elif name == _TOOLKIT:
                yield _Part(span, message("check.extension-toolkit"))


def _settled(finding: Finding, lead: Span) -> Finding:
    return replace(finding, settlement=Settlement(_REASON, lead))


def _is_source(node: ast.Constant) -> bool:
    value = node.value
    if not isinstance(value, str) or len(value) > _LONGEST_NAME:
        return False
    return value.endswith(CUDA_SUFFIXES) and not value.startswith(".") and "\n" not in value
