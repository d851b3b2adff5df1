"""Functions whose result has less on the NPU, where all members that are read are seen.

`torch.cuda.get_device_properties(0).total_memory` is there, `.major` is not; only the whole module
shows what is read of `properties = torch.cuda.get_device_properties(0)`.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from npulens.catalog.model import Finding
from npulens.catalog.tables import Catalogue, SymbolEntry
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below, parents_below

_RULE = "cuda-api-limited"


def with_result_members(
    findings: Sequence[Finding], module: WholeModule, catalogue: Catalogue
) -> list[Finding]:
    """The findings, those on such functions by the members that are read.

    Where all of it is there, they move like any other; where a missing member is read at once,
    the finding on that says it all.
    """
    limited = {f.arguments["symbol"] for f in findings if f.rule.name == _RULE}
    if limited:
        limited &= {n.rpartition(".")[0] for n, e in catalogue.symbols.items() if _is_there(e)}
    if not limited:
        return list(findings)
    parents = parents_below(module.tree)
    calls = {module.lines.span(node.func): node for node in parents if isinstance(node, ast.Call)}
    kept = []
    for finding in findings:
        call = calls.get(finding.span)
        if call is not None and finding.arguments.get("symbol") in limited:
            judged = _judged(finding, call, parents, catalogue)
            if judged is None:
                continue
            finding = judged
        kept.append(finding)
    return kept


def _judged(
    finding: Finding, call: ast.Call, parents: Mapping[ast.AST, ast.AST], catalogue: Catalogue
) -> Finding | None:
    """The finding as it is to be reported, `None` if there is nothing to report."""

    def entry_of(member: str) -> SymbolEntry | None:
        return catalogue.symbols.get(f"{finding.arguments['symbol']}.{member}")

    parent = parents[call]
    if isinstance(parent, ast.Attribute):
        entry = entry_of(parent.attr)
        if entry is not None and entry.becomes is None:
            return None
        entries = [entry]
    else:
        entries = [entry_of(member) for member in _members_read(call, parents)]
    there = [each for each in entries if each is not None and _is_there(each)]
    if not entries or len(there) < len(entries):
        return finding
    fixes = tuple(replace(fix, applicability=there[0].fix) for fix in finding.fixes)
    return replace(finding, rule=there[0].rule, note=None, fixes=fixes)


def _is_there(entry: SymbolEntry) -> bool:
    return entry.becomes is not None and entry.rule.name != _RULE


def _members_read(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> list[str]:
    """The members that are read of the only name of a result; empty if more is done with it."""
    assignment = parents[call]
    if not isinstance(assignment, ast.Assign) or len(assignment.targets) != 1:
        return []
    (target,) = assignment.targets
    if not isinstance(target, ast.Name):
        return []
    scope: ast.AST = assignment
    while not isinstance(scope, (Function, ast.ClassDef, ast.Module)):
        scope = parents[scope]
    if isinstance(scope, ast.ClassDef):
        return []
    members = []
    for node in nodes_below(scope):
        if isinstance(node, ast.Name) and node.id == target.id and node is not target:
            parent = parents[node]
            if not isinstance(parent, ast.Attribute):
                return []
            members.append(parent.attr)
    return members
