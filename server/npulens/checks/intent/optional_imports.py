"""Imports of libraries that the rest of the module or of the project does without."""

import ast
from collections.abc import Iterable, Iterator, Sequence

from npulens.catalog.model import Finding
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_properties import WITH_OTHER_WAYS, WITHOUT_BUILD
from npulens.checks.whole_module import WholeModule
from npulens.syntax.values import is_none
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.failing_imports import packages, tried_parts

_IMPORTS = (ast.Import, ast.ImportFrom)
_LOADER = "torch.utils.cpp_extension.load"


def without_handled_imports(
    findings: Sequence[Finding], module: WholeModule, project: ProjectFacts
) -> list[Finding]:
    """The findings without those about imports that something else makes harmless.

    Left out is what a function imports again that the module had tried before. A module that is
    only imported where its libraries are there has no findings on them, and where a project has
    C++ sources and none for CUDA, what it loads runs on the host.
    """
    if project.extensions.is_for_host:
        findings = [f for f in findings if f.arguments.get("symbol") != _LOADER]
    if str(module.place) in project.optional.modules:
        findings = [f for f in findings if f.rule.family != "library"]
    if any(finding.rule.library in WITHOUT_BUILD for finding in findings):
        findings = _without_checked(findings, module)
    if not any(finding.rule.library in WITH_OTHER_WAYS for finding in findings):
        return list(findings)
    tried = set(_tried_packages(module))
    return [finding for finding in findings if not _was_tried(finding, tried, module.text)]


def _without_checked(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without those in a `try` that only binds names which are `None` before it.

    Where the module checks that, it goes on without the library, whatever the handler
    says: `attend = None`, `try: import flash_attn; attend = flash_attn.f`,
    `if attend is not None: ...`.
    """
    if "is not None" not in module.text and "is None" not in module.text:
        return list(findings)
    tried = [
        node
        for node in module.nodes
        if isinstance(node, ast.Try)
        and any(isinstance(statement, _IMPORTS) for statement in node.body)
        and tried_parts(node)
    ]
    if not tried:
        return list(findings)
    top = [s for s in module.tree.body if isinstance(s, ast.Assign) and is_none(s.value)]
    names = _names_assigned(top) & _names_checked_for_none(module.nodes)
    span = module.lines.span
    spans = [
        Span(span(node.body[0]).start, span(node.body[-1]).end)
        for node in tried
        if _names_assigned(node.body) & names
    ]
    return [
        finding
        for finding in findings
        if finding.rule.library not in WITHOUT_BUILD
        or not any(span.start <= finding.span.start < span.end for span in spans)
    ]


def _names_assigned(body: Iterable[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    return {
        target.id
        for statement in body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _names_checked_for_none(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of which a condition checks whether they are `None`."""
    return {
        node.left.id
        for node in nodes
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and is_none(node.comparators[0])
    }


def _was_tried(finding: Finding, tried: set[str], text: str) -> bool:
    """Whether a function imports a library that the module does without elsewhere."""
    package = finding.arguments.get("symbol", "").partition(".")[0]
    if finding.rule.library not in WITH_OTHER_WAYS or package not in tried:
        return False
    line = text.rfind("\n", 0, finding.span.start) + 1
    words = text[line : finding.span.start].split()
    return text[line : line + 1].isspace() and words[:1] in (["import"], ["from"])


def _tried_packages(module: WholeModule) -> Iterator[str]:
    """The packages that the module imports at its top where a failure is caught."""
    for node in module.tree.body:
        if isinstance(node, ast.Try):
            for part in tried_parts(node):
                for each in nodes_below(part):
                    yield from packages(each)
