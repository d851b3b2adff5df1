"""The APIs of PyTorch that a run on the NPU should watch."""

from npulens.catalog.model import TorchVersion
from npulens.catalog.native_tables import NativeEntry, includes
from npulens.catalog.tables import Catalogue

FAILS, MAY_FAIL = "fails", "may-fail"
FALLS_BACK, MAY_FALL_BACK = "falls-back", "may-fall-back"

_ON_CPU = {"runs-on-cpu": FALLS_BACK, "may-run-on-cpu": MAY_FALL_BACK}
_HARMLESS = frozenset(("unsupported-compile", "unsupported-switch"))
"""What fails only in a graph, or does not change results."""


def apis_to_watch(catalogue: Catalogue, version: TorchVersion) -> dict[str, str]:
    """For each API that the tables limit whatever its arguments, what becomes of it on the NPU."""
    release = catalogue.native.listed(version)
    found = {}
    for name, entry in catalogue.native.entries.items():
        what = _what_happens(entry, release)
        call = catalogue.native.entries.get(f"{name}.forward")
        if what == FAILS and call is not None and _what_happens(call, release) is None:
            what = MAY_FAIL  # the tables contradict themselves
        if what is not None:
            found[name] = what
    return found


def types_to_watch(catalogue: Catalogue, version: TorchVersion) -> dict[str, list[str]]:
    """For each API the types of tensors that the tables do not list for it."""
    release = catalogue.native.listed(version)
    found: dict[str, list[str]] = {}
    for name, entry in catalogue.native.entries.items():
        for limit in entry.limits:
            if limit.dtypes and limit.argument is None and includes(limit.versions, release):
                found.setdefault(name, []).extend(limit.dtypes)
    return found


def _what_happens(entry: NativeEntry, release: TorchVersion) -> str | None:
    for limit in entry.limits:
        kind = limit.kind.kind
        if not limit.always or kind in _HARMLESS or not includes(limit.versions, release):
            continue
        if limit.kind.rule.absent is not None:
            return FAILS if limit.kind.severity is None else MAY_FAIL
        if kind in _ON_CPU:
            return _ON_CPU[kind]
    return None
