"""What only the whole module shows about `DataParallel`: is its import used, can it be replaced.

A segment of a module sees neither, so this is done where the findings of all segments are together,
and only for modules that have such a finding.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Finding, Fix, Severity
from npulens.checks.python.parallelism.parallel import (
    alternatives,
    is_distributed_wrapper,
    refused_class,
    tested_class,
)
from npulens.checks.shared_rules import DATA_PARALLEL_RULE
from npulens.checks.titles import use
from npulens.checks.whole_module import WholeModule
from npulens.fixes.distributed import DATA_PARALLEL, one_process_per_card
from npulens.fixes.one_card import wrapped_models
from npulens.fixes.scripts import read_script
from npulens.syntax.bindings import bindings_of
from npulens.syntax.meanings import canonical
from npulens.syntax.scopes import ModuleNames, ModuleScope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.conditions import Known

_OFFERED = re.compile(r"DataParallel\w*(?:Strategy|Plugin)\Z")
"""Classes with which a library offers this way of training beside others."""


def with_whole_module(
    findings: Sequence[Finding], module: WholeModule, known: Known
) -> list[Finding]:
    """The findings, those about `DataParallel` with what the rest of the module says of them."""
    if not any(finding.rule.name == DATA_PARALLEL_RULE for finding in findings):
        return list(findings)
    tests = dict(_imports_for_tests(module))
    fixes = _fixes(module, known) if module.is_complete else {}
    kept: list[Finding] = []
    for finding in findings:
        if finding.rule.name == DATA_PARALLEL_RULE:
            severity = tests.get(finding.span.start, finding.severity)
            if finding.span.start in tests and severity is None:
                continue
            fix = None if severity is Severity.HINT else fixes.get(finding.span, fixes.get(None))
            added = () if fix is None else (fix,)
            finding = replace(finding, severity=severity, fixes=(*finding.fixes, *added))
        kept.append(finding)
    return kept


def _fixes(module: WholeModule, known: Known) -> dict[Span | None, Fix]:
    """The fix of each place, and under `None` that of all others."""
    edits = one_process_per_card(module.tree, module.text, known)
    if edits:
        title = use("torch.nn.parallel.DistributedDataParallel")
        return {None: Fix(title, Applicability.UNSAFE, edits, isolation="one process per card")}
    found: dict[Span | None, Fix] = {}
    if "DistributedDataParallel" not in module.text:  # nothing else would use several cards
        return found
    title = message("fix.one-card")
    models = wrapped_models(read_script(module.tree, module.text))
    for wrapped in models:
        found[module.lines.span(wrapped.call.func)] = Fix(
            title, Applicability.UNSAFE, wrapped.edits
        )
    if models and not any(isinstance(each.call.func, ast.Attribute) for each in models):
        edits = tuple(edit for each in models for edit in each.edits)
        found[None] = Fix(title, Applicability.UNSAFE, edits, isolation="one card")
    return found


def _imports_for_tests(module: WholeModule) -> Iterator[tuple[int, Severity | None]]:
    """Where `DataParallel` is imported only to check whether a model is wrapped.

    With it comes how much that matters: not at all where `DistributedDataParallel` is requested
    beside it, a wrapped model is refused or a library offers both, else a hint.
    """
    imported = [
        (alias, alias.asname or alias.name)
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
        if canonical(f"{node.module}.{alias.name}") in DATA_PARALLEL
    ]
    if not imported:
        return
    scope = ModuleScope(ModuleNames([bindings_of(module.tree.body, ())]), 0)
    together: set[ast.AST] = set()
    checked: set[ast.AST] = set()
    for node in module.nodes:
        tested = tested_class(node)
        if tested is not None:
            checked.update((tested, *alternatives(tested)))
        refused = refused_class(node)
        if refused is not None:
            together.update((refused, *alternatives(refused)))
        beside = list(alternatives(node))
        if any(is_distributed_wrapper(part, scope) for part in beside):
            together.update(beside)
        if isinstance(node, ast.ClassDef) and _OFFERED.search(node.name):
            together.update(part for statement in node.body for part in nodes_below(statement))
    for alias, name in imported:
        uses = [
            node
            for node in module.nodes
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
        start = module.lines.span(alias).start
        if uses and together.issuperset(uses):
            yield start, None
        elif uses and (together | checked).issuperset(uses):
            yield start, Severity.HINT
