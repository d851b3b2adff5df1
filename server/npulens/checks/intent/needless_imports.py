"""Imports of libraries for GPUs that nothing needs once the calls are rewritten."""

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from npulens.catalog.model import Applicability, Finding, Fix
from npulens.catalog.rule_properties import WITHOUT_BUILD
from npulens.checks.titles import remove
from npulens.checks.whole_module import WholeModule
from npulens.fixes.import_cleanup import without_names
from npulens.syntax.walking import blocks

_INSTEAD = {
    "flash_attn": "npu_fusion_attention",
    "xformers": "npu_fusion_attention",
    "apex": "torch_npu.optim.NpuFused",
}
"""For each library what the text contains once its calls are rewritten."""
_Import = ast.Import | ast.ImportFrom


def with_needless_imports(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings; those on imports that nothing uses get a fix that takes them out.

    Only where the text calls what replaces them: elsewhere an import without use may be there for
    others.
    """
    libraries = frozenset(name for name, other in _INSTEAD.items() if other in module.text)
    if not any(_is_of_library(finding, libraries) for finding in findings):
        return list(findings)
    if not module.is_complete:
        return list(findings)
    fixes = dict(_removals(module, libraries))
    return [
        replace(finding, fixes=(fixes[finding.span.start],))
        if _is_of_library(finding, libraries) and finding.span.start in fixes
        else finding
        for finding in findings
    ]


def _is_of_library(finding: Finding, libraries: Container[str]) -> bool:
    symbol = finding.arguments.get("symbol", "")
    may_be_import = finding.rule.library in WITHOUT_BUILD and not finding.fixes
    return may_be_import and symbol.partition(".")[0] in libraries


def _removals(module: WholeModule, libraries: Container[str]) -> Iterator[tuple[int, Fix]]:
    """For each place of a finding on such an import, the fix."""
    lines = module.lines
    used = set(_used_words(module.nodes))
    for block in blocks(module.nodes):
        for statement in block:
            if not isinstance(statement, _Import) or len(block) == 1:
                continue
            aliases = [
                alias
                for alias in statement.names
                if _is_needless(alias, statement, used, libraries)
            ]
            edit = without_names(statement, aliases, lines) if aliases else None
            if edit is None:
                continue
            names = ", ".join(alias.asname or alias.name for alias in aliases)
            fix = Fix(remove(names), Applicability.UNSAFE, (edit,))
            if isinstance(statement, ast.ImportFrom) and statement.module:
                start = lines.span(statement).start
                yield module.text.find(statement.module, start), fix
            for alias in aliases:
                yield lines.span(alias).start, fix


def _is_needless(
    alias: ast.alias, statement: _Import, used: set[str], libraries: Container[str]
) -> bool:
    module: str | None = alias.name
    if isinstance(statement, ast.ImportFrom):
        module = None if statement.level else statement.module
    if (module or "").partition(".")[0] not in libraries:
        return False
    return (alias.asname or alias.name.partition(".")[0]) not in used and alias.name != "*"


def _used_words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that are read, and strings, which `__all__` may name something with."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
