"""What a fix needs elsewhere in the document: imports, and line ends like those of its text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from npulens.catalog.model import Edit, Finding, Fix, ImportNeed, Target
from npulens.checks.segments.segment import Segment, with_starts
from npulens.fixes.edit_guard import with_fixes
from npulens.fixes.imports import (
    FOR_EFFECT,
    best_import,
    imports_as_itself,
    leading_imports_end,
    plugin_edit,
)
from npulens.text.lines import line_ending
from npulens.text.spans import Span

_PLUGIN = frozenset({ImportNeed.PLUGIN, ImportNeed.PLUGIN_BESIDE_TORCH})
_LINE_FEED = re.compile(r"(?<!\r)\n")


class Insertions:
    """The edits that import a module for a whole document; each is made once, when first needed."""

    def __init__(self, segments: Sequence[Segment], text: str, target: Target) -> None:
        self._segments = segments
        self._text = text
        self._target = target
        self._edits: dict[ImportNeed, Edit | None] = {ImportNeed.NOTHING: None}
        self._modules: dict[str, Edit | None] = {"": None}

    def edit(self, need: ImportNeed) -> Edit | None:
        """The import that a fix needs, `None` if it is there or has no place."""
        if need not in self._edits:
            self._edits[need] = self._make(need)
        return self._edits[need]

    def of_module(self, module: str) -> Edit | None:
        """The import of a module under its own name, `None` if it is there or none is needed."""
        if module not in self._modules:
            is_there = any(imports_as_itself(p.parsed.body, module) for p in self._segments)
            self._modules[module] = None if is_there else self._at_top(f"import {module}")
        return self._modules[module]

    def _make(self, need: ImportNeed) -> Edit | None:
        if need is ImportNeed.TORCH_NAME:
            return self._at_top("import torch")
        if need is ImportNeed.SHIM_MOVED:
            return self._without_shim()
        by_name = need is ImportNeed.PLUGIN_NAME
        if not by_name and self._target.loads_plugin:
            return None
        imports = [(start, segment.imports) for start, segment in with_starts(self._segments)]
        if any(each.binds_plugin if by_name else each.has_plugin for _, each in imports):
            return None
        place = best_import(
            [each.torch.shifted(start) for start, each in imports if each.torch is not None]
        )
        if place is not None:
            return plugin_edit(place, self._text, is_named=by_name)
        if need is ImportNeed.PLUGIN_BESIDE_TORCH:
            return None
        return self._at_top("import torch_npu" if by_name else FOR_EFFECT)

    def _without_shim(self) -> Edit | None:
        """Take out the import of the shim, which a fix puts elsewhere."""
        for start, segment in with_starts(self._segments):
            statement = segment.imports.shim.statement
            if statement is not None:
                return Edit(statement.shifted(start), "")
        return None

    def _at_top(self, statement: str) -> Edit:
        """Behind the docstring and the imports that a module starts with."""
        place = 0
        for start, segment in with_starts(self._segments):
            end, is_all = leading_imports_end(segment.parsed.body, segment.parsed.lines)
            place = start + end if end else place
            if not is_all:
                break
        return Edit(Span(place, place), f"{statement}\n")


def bound(finding: Finding, insertions: Insertions) -> Finding:
    """The finding with the edits its fixes need elsewhere in the document."""
    if all(fix.imports is ImportNeed.NOTHING and not fix.module for fix in finding.fixes):
        return finding
    return replace(finding, fixes=tuple(_with_import(fix, insertions) for fix in finding.fixes))


def _with_import(fix: Fix, insertions: Insertions) -> Fix:
    need = fix.imports
    if need in _PLUGIN and any("torch_npu." in edit.replacement for edit in fix.edits):
        need = ImportNeed.PLUGIN_NAME
    made = [insertions.of_module(fix.module), insertions.edit(need)]
    new = [edit for edit in made if edit is not None]
    if len(new) == 2 and new[0].span == new[1].span:
        # Two insertions at one place would count as overlapping.
        new = [Edit(new[0].span, new[0].replacement + new[1].replacement)]
    edits = (*fix.edits, *new)
    return replace(fix, edits=edits, imports=ImportNeed.NOTHING, module="")


def with_line_endings(findings: Iterable[Finding], text: str) -> list[Finding]:
    """Findings whose edits end lines as all lines of the text do; what they take over does."""
    ending = line_ending(text)
    if ending == "\n":
        return list(findings)

    def change(fix: Fix) -> Fix:
        edits = (e._replace(replacement=_LINE_FEED.sub(ending, e.replacement)) for e in fix.edits)
        return replace(fix, edits=tuple(edits))

    return with_fixes(findings, change)
