"""Imports of libraries that the rest of the module or of the project does without."""

import ast
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding, ProjectFacts
from npulens.catalog.rule_properties import WITH_OTHER_WAYS
from npulens.checks.whole_module import WholeModule
from npulens.syntax.walking import nodes_below
from npulens.verdicts.failing_imports import packages, tried_parts

_LOADER = "torch.utils.cpp_extension.load"


def without_handled_imports(
    findings: Sequence[Finding], module: WholeModule, project: ProjectFacts
) -> list[Finding]:
    """The findings without those about imports that something else makes harmless.

    Left out is what a function imports again that the module had tried before. A module that is
    only imported where its libraries are there has nothing to tell of them, and where a project has
    C++ sources and none for CUDA, what it loads runs on the host.
    """
    if project.compiles_for_host:
        findings = [f for f in findings if f.arguments.get("symbol") != _LOADER]
    if str(module.place) in project.optional_modules:
        findings = [f for f in findings if f.rule.family != "library"]
    if not any(finding.rule.library in WITH_OTHER_WAYS for finding in findings):
        return list(findings)
    tried = set(_tried_packages(module))
    return [finding for finding in findings if not _was_tried(finding, tried, module.text)]


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
