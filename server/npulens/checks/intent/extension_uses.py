"""One finding for each extension of the project that a module uses, at its import.

Without the extension the import fails, so what is called of it is settled there. Where nothing is
imported, the call that builds the extension leads, or else its first call.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, LocalizedText, Related
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.settlements import Settlement
from npulens.checks.segments.own_extensions import BOUND, EXTENSION
from npulens.checks.shared_rules import CUDA_EXTENSION, EXTENSION_CALL, EXTENSION_IMPORT
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import target_names

_REASONS = {
    CUDA_EXTENSION: "reported-at-build",
    EXTENSION_IMPORT: "reported-at-import",
    EXTENSION_CALL: "reported-once",
}
"""Why the other places of an extension are settled, by the rule of the one that leads."""
_OTHER_WAY = Settlement("fallback")
_MOST_RELATED = 20

_Key = tuple[str, str]
"""What findings of one extension have in common: its name, or a name bound to it."""


def with_uses_together(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings with one for each extension used; those that belong to it are settled."""
    used = [
        f
        for f in findings
        if f.rule.name in (EXTENSION_IMPORT, EXTENSION_CALL) and f.settlement is None
    ]
    if not used:
        return list(findings)
    built = [f for f in findings if f.rule.name == CUDA_EXTENSION and f.settlement is None]
    built_names = _built_by(module, built) if built else {}
    groups = _groups([(f, list(_keys(f, built_names))) for f in (*built, *used)])
    changed: dict[int, Finding] = {}
    for group in groups:
        changed.update(_together(group))
    return [changed.get(id(finding), finding) for finding in findings]


def with_builds_beside(
    settled: Sequence[Finding], findings: Sequence[Finding], module: WholeModule
) -> list[Finding]:
    """What is settled, where the other arm of an import builds the extension itself.

    `if not is_installed: boxes = load(...)`, `else: import boxes`: the build is reported, and no
    way without the extension.
    """
    built = [f for f in findings if f.rule.name == CUDA_EXTENSION]
    imports = [f for f in settled if f.rule.name == EXTENSION_IMPORT]
    if not built or not imports:
        return list(settled)
    names = {name: start for start, found in _built_by(module, built).items() for name in found}
    leads = {finding.span.start: finding.span for finding in built}
    places = {
        id(each): Settlement(_REASONS[CUDA_EXTENSION], leads[names[symbol]])
        for each in imports
        if (symbol := each.arguments.get("symbol", "")) in names
        and each.settlement is not None
        and each.settlement.reason == _OTHER_WAY.reason
    }
    return [replace(f, settlement=places.get(id(f), f.settlement)) for f in settled]


def without_exempt_extensions(
    findings: Sequence[Finding], module: WholeModule, project: ProjectFacts
) -> list[Finding]:
    """The findings without those about extensions that the module does without."""
    path = str(module.place)
    exempt = {name for file, name in project.optional.imports if file == path}
    return [
        finding
        for finding in findings
        if finding.rule.name not in (EXTENSION_IMPORT, EXTENSION_CALL)
        or finding.arguments.get(EXTENSION, "").rpartition(".")[2] not in exempt
    ]


def _keys(finding: Finding, built_names: Mapping[int, Sequence[str]]) -> Iterable[_Key]:
    if finding.rule.name == CUDA_EXTENSION:
        yield from (("name", name) for name in built_names.get(finding.span.start, ()))
        yield "built", str(finding.span.start)
        return
    for kind in (EXTENSION, BOUND):
        word = finding.arguments.get(kind, "")
        if word:
            yield ("name" if kind == BOUND else kind), word
    yield "place", str(finding.span.start)


def _built_by(module: WholeModule, built: Sequence[Finding]) -> dict[int, list[str]]:
    """The names that hold the extensions that are built, by where the calls start."""
    places = {finding.span.start for finding in built}
    found: dict[int, list[str]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            start = module.lines.span(node.value.func).start
            if start in places:
                found[start] = [name for t in node.targets for name in target_names(t)]
    return found


def _groups(keyed: Sequence[tuple[Finding, list[_Key]]]) -> list[list[Finding]]:
    """Findings that share a key, also through others."""
    parents: dict[_Key, _Key] = {}

    def root(key: _Key) -> _Key:
        while parents.setdefault(key, key) != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    for _, keys in keyed:
        for key in keys[1:]:
            parents[root(key)] = root(keys[0])
    groups: dict[_Key, list[Finding]] = {}
    for finding, keys in keyed:
        groups.setdefault(root(keys[0]), []).append(finding)
    return list(groups.values())


def _together(group: Sequence[Finding]) -> dict[int, Finding]:
    """A group with one that leads, and the others settled there; by identity."""
    order = (CUDA_EXTENSION, EXTENSION_IMPORT, EXTENSION_CALL)
    lead, *others = sorted(group, key=lambda f: (order.index(f.rule.name), f.span))
    if lead.rule.name == EXTENSION_CALL and not lead.arguments.get(EXTENSION):
        # What builds it is settled: it is for the host, or there is another way.
        return {id(finding): replace(finding, settlement=_OTHER_WAY) for finding in group}
    others = [finding for finding in others if finding.rule.name != CUDA_EXTENSION]
    settled = Settlement(_REASONS[lead.rule.name], lead.span)
    beside = [Related(f.span, _what(f)) for f in others[:_MOST_RELATED]]
    found = {id(finding): replace(finding, settlement=settled) for finding in others}
    found[id(lead)] = replace(lead, related=(*lead.related, *beside))
    return found


def _what(finding: Finding) -> LocalizedText:
    is_call = finding.rule.name == EXTENSION_CALL
    return message("check.called-here" if is_call else "check.imported-here")
