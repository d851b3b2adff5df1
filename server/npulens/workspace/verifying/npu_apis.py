"""The APIs of PyTorch that a run on the NPU should watch."""

from npulens.catalog.model import TorchVersion
from npulens.catalog.native_tables import NativeEntry, includes
from npulens.catalog.tables import Catalogue

FAILS, FALLS_BACK, MAY_FALL_BACK = "fails", "falls-back", "may-fall-back"

_ON_CPU = {"runs-on-cpu": FALLS_BACK, "may-run-on-cpu": MAY_FALL_BACK}
_HARMLESS = frozenset(("unsupported-compile", "unsupported-switch"))
"""What fails only in a graph, or does not change results."""


def apis_to_watch(catalogue: Catalogue, version: TorchVersion) -> dict[str, str]:
    """For each API that the tables limit whatever its arguments, what becomes of it on the NPU."""
    release = catalogue.native.listed(version)
    found = {}
    for name, entry in catalogue.native.entries.items():
        what = _what_happens(entry, release)
        if what is not None:
            found[name] = what
    return found


def _what_happens(entry: NativeEntry, release: TorchVersion) -> str | None:
    for limit in entry.limits:
        kind = limit.kind.kind
        if not limit.always or kind in _HARMLESS or not includes(limit.versions, release):
            continue
        if limit.kind.rule.absent is not None:
            return FAILS
        if kind in _ON_CPU:
            return _ON_CPU[kind]
    return None
