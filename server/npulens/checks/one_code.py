"""The fix of the device-agnostic style: one for all of a module, or none.

A condition, the device that it chooses and what follows belong together, so every finding that the
fix mends offers the same one.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import (
    Applicability,
    Finding,
    Fix,
    ImportNeed,
    MigrationStyle,
    TorchVersion,
)
from npulens.checks.shared_rules import DATA_PARALLEL_RULE
from npulens.checks.whole_module import WholeModule
from npulens.fixes.one_code.module_rewriting import Rewriting, rewritten
from npulens.fixes.one_code.neutral_functions import CUDA
from npulens.fixes.one_code.vocabulary import ACTIVITY

_FAMILIES = frozenset({"device", "precision", "parallel"})
_DEVICE_RULES = frozenset({"device", "parallel"})
_NOTED = _DEVICE_RULES | {"layout"}
_TENSOR_IS_ON_CUDA = "is_cuda"
_VENDOR = re.compile(r"npu|hccl|ascend", re.IGNORECASE)
_DOUBLE = re.compile(r"\b(?:float64|double|from_numpy|as_tensor)\b|\.DoubleTensor\b")
"""Where tensors are or may be of float64, as NumPy's arrays are by default.

Some accelerators refuse it, while the original ran on the CPU beside them.
"""


def with_one_code(
    findings: Sequence[Finding], module: WholeModule, release: TorchVersion
) -> list[Finding]:
    """The findings, those about devices with the fix that writes the module for all of them.

    Args:
        findings: What is open in the module.
        module: The module.
        release: The release of PyTorch to run on.
    """
    ours = [finding for finding in findings if is_about_devices(finding)]
    written = _written(ours, module, release)
    if written is None:
        return list(map(without_vendors, findings))
    fixes = (_fix(written, ours, module),) if written.edits else ()
    return [_with_fix(each, fixes, written) for each in findings]


def _with_fix(finding: Finding, fixes: tuple[Fix, ...], written: Rewriting) -> Finding:
    if is_about_devices(finding) and finding.span in written.places:
        return replace(finding, fixes=fixes)
    if is_about_devices(finding) and finding.span in written.arms:
        return replace(finding, fixes=()).with_note(message("check.arm-for-cuda"))
    return without_vendors(finding)


def _written(
    ours: Sequence[Finding], module: WholeModule, release: TorchVersion
) -> Rewriting | None:
    if not ours or not module.is_complete:
        return None
    places = {each.span: _counterpart(each) for each in ours if not _checks_for_kernels(each)}
    return rewritten(module.tree, module.text, places, release)


def _counterpart(finding: Finding) -> str:
    """The name below `torch.npu` that takes the place of that of CUDA, empty if none does."""
    edits = finding.fixes[0].edits if finding.fixes else ()
    texts = (edit.replacement for edit in edits if edit.span == finding.span)
    return next((text for text in texts if text.startswith("torch.npu.")), "")


def is_about_devices(finding: Finding) -> bool:
    """Whether a finding is about what such a fix writes."""
    is_of_cuda = finding.arguments.get("symbol", "").startswith((CUDA, ACTIVITY))
    is_asked = finding.note == message("check.unknown-word")  # it may be no device at all
    is_of_family = finding.rule.family in _FAMILIES or is_of_cuda
    return is_of_family and not finding.rule.any_device and not is_asked


def _fix(written: Rewriting, ours: Sequence[Finding], module: WholeModule) -> Fix:
    """The fix; it is safe if no place is left that depends on what it writes."""
    is_left = any(
        finding.rule.family in _DEVICE_RULES and finding.span not in written.places
        for finding in ours
    )
    covered = [finding for finding in ours if finding.span in written.places]
    is_safe = written.is_sure and not is_left and all(map(_is_safe_for_npu, covered))
    is_safe &= _DOUBLE.search(module.text) is None
    applicability = Applicability.SAFE if is_safe else Applicability.UNSAFE
    style = MigrationStyle.DEVICE_AGNOSTIC
    return Fix(message("fix.one-code"), applicability, written.edits, style)


def _checks_for_kernels(finding: Finding) -> bool:
    """Whether the device of a tensor is checked because kernels of CUDA are called."""
    symbol = finding.arguments.get("symbol", "")
    return symbol.rpartition(".")[2] == _TENSOR_IS_ON_CUDA and not finding.fixes


def _is_safe_for_npu(finding: Finding) -> bool:
    """Whether its fix for the NPU is safe: that in front of CUDA's kernels has to be read."""
    return any(fix.applicability is Applicability.SAFE for fix in finding.fixes)


def without_vendors(finding: Finding) -> Finding:
    """A finding without fixes for one vendor; one about devices says so if none is left."""
    fixes = tuple(fix for fix in finding.fixes if not _is_for_vendor(fix, finding))
    if fixes or finding.rule.family not in _NOTED:
        return replace(finding, fixes=fixes)
    is_wrapper = finding.rule.name == DATA_PARALLEL_RULE
    note = message("check.one-card" if is_wrapper else "check.no-neutral-way")
    return replace(finding, fixes=()).with_note(note)


def _is_for_vendor(fix: Fix, finding: Finding) -> bool:
    """Whether a fix is for one vendor; one with an arm for the NPU is of this style."""
    if fix.style is MigrationStyle.DEVICE_AGNOSTIC:
        return False
    if finding.rule.per_device or finding.rule.name == DATA_PARALLEL_RULE:
        return True
    needs_plugin = fix.imports not in (ImportNeed.NOTHING, ImportNeed.TORCH_NAME)
    return needs_plugin or any(_VENDOR.search(edit.replacement) for edit in fix.edits)
