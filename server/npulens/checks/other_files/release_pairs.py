"""Releases in one file that do not go together: of PyTorch, torch_npu, Python and CANN.

Only exact pins are judged, and only where there is one release of each: in one list of
requirements, one table of settings, one stage of a Dockerfile, one script.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npulens.catalog.messages import message
from npulens.catalog.model import (
    Applicability,
    Edit,
    Fix,
    LocalizedText,
    Related,
    Severity,
)
from npulens.catalog.npu_releases import NpuRelease, base_of, cann_order
from npulens.checks.other_files.launch_report import LaunchReport, Request
from npulens.checks.titles import use
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_NUMBERS = r"\d+(?:\.\d+)+(?:[.-]?(?:post|rc)\d+)?"
_EXACT = late(rf"\(?={{1,3}}[ \t]*(?P<release>{_NUMBERS})(?:\+[\w.]+|=[\w.*]+)?\)?")
_WHEEL = late(
    rf"@ (?:[^\s#]*/)?\w+-(?P<release>{_NUMBERS})(?:(?:\+|%2B)[\w.]+)?-(?:cp|py)\d[^/]*\.whl"
)
_CANN_IMAGE = late(r"(?:[^\s/]+/)*cann:(?P<release>\d+\.\d+\.(?:rc)?\d+)(?P<more>-.*)?", re.I)
_UNFINISHED = late(r"alpha|beta", re.I)
_PYTHON_OF_CANN = late(r"-py(?P<release>3\.\d+)(?=-|\Z)")
_PYTHON_IMAGE = late(r"(?:[^\s/]+/)*python:(?P<release>3\.\d+)(?:\.\d+)?(?:-.*)?")
_TOOLKIT = late(r"Ascend-cann-(?:toolkit|nnae)_(?P<release>\d+\.\d+\.(?:RC)?\d+)_linux", re.I)
_TORCH, _TORCH_NPU, _PYTHON, _CANN = "torch", "torch-npu", "python", "cann"
_PACKAGES = {_TORCH: _TORCH, "pytorch": _TORCH, _TORCH_NPU: _TORCH_NPU, _PYTHON: _PYTHON}
_UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class _Pin:
    """A release that is asked for.

    Attributes:
        software: What is asked for.
        release: Its number, or nothing if it cannot be read.
        request: Where it is asked for.
        is_start: Whether the number is the start of what fits, as with conda.
    """

    software: str
    release: str
    request: Request
    is_start: bool = False


def release_pairs(report: LaunchReport) -> None:
    """Report pins of torch_npu that do not go with another one; the later one of two packages."""
    groups: dict[object, list[_Pin]] = {}
    for request in report.requests:
        for pin in _pins(request):
            groups.setdefault(request.group[0], []).append(pin)
    for pins in groups.values():
        known = _single(pins)
        npu = known.get(_TORCH_NPU)
        if npu is not None:
            _Pairs(report, npu, known).judge()


def _pins(request: Request) -> Iterator[_Pin]:
    if request.name == "image":
        yield from _of_image(request)
    elif request.name == "file":
        toolkit = _TOOLKIT.search(request.value)
        if toolkit is not None:
            yield _Pin(_CANN, toolkit["release"].upper(), request)
    elif (software := _PACKAGES.get(request.name)) is not None:
        match = _EXACT.fullmatch(request.value) or _WHEEL.fullmatch(request.value)
        if match is not None:
            is_start = request.value.lstrip("(").startswith("=") and "==" not in request.value
            yield _Pin(software, match["release"], request, is_start)
        elif "$" in request.value:
            yield _Pin(software, _UNKNOWN, request)


def _of_image(request: Request) -> Iterator[_Pin]:
    match = _PYTHON_IMAGE.fullmatch(request.value)
    if match is not None:
        yield _Pin(_PYTHON, match["release"], request)
    match = _CANN_IMAGE.fullmatch(request.value)
    if match is not None:
        more = match["more"] or ""
        python = _PYTHON_OF_CANN.search(more)
        if python is not None:
            yield _Pin(_PYTHON, python["release"], request)
        if _UNFINISHED.search(more) is None:
            yield _Pin(_CANN, match["release"].upper(), request)


def _single(pins: Sequence[_Pin]) -> dict[str, _Pin]:
    """The pin of each software of which one release is asked for."""
    found: dict[str, list[_Pin]] = {}
    for pin in pins:
        found.setdefault(pin.software, []).append(pin)
    return {
        software: same[-1]
        for software, same in found.items()
        if len({_normal(pin) for pin in same}) == 1 and same[-1].release != _UNKNOWN
    }


def _normal(pin: _Pin) -> str:
    parts = pin.release.split(".")
    if pin.software == _PYTHON:
        return ".".join(parts[:2])
    is_short = len(parts) == 2 and pin.release and not pin.is_start
    return f"{pin.release}.0" if is_short else pin.release


def _is_seen(first: _Pin, second: _Pin) -> bool:
    """Whether what runs one of them runs the other one, too, or may do so."""
    pairs = zip(first.request.group, second.request.group, strict=False)
    return all(one == other for one, other in pairs)


class _Pairs:
    """The pin of torch_npu, and those beside it."""

    def __init__(self, report: LaunchReport, npu: _Pin, known: dict[str, _Pin]) -> None:
        self._report = report
        self._npu = npu
        self._beside = {name: pin for name, pin in known.items() if _is_seen(npu, pin)}
        self._table = report.catalogue.npu.releases
        self._release = self._table.named(_normal(npu))

    def judge(self) -> None:
        torch, python, cann = map(self._beside.get, (_TORCH, _PYTHON, _CANN))
        if torch is not None and not _fits(torch, base_of(_normal(self._npu))):
            self._other_torch(torch)
        elif self._release is not None:
            wrong_python = self._other_python(python, self._release)
            wrong_cann = self._other_cann(cann, self._release)
            if python is not None and wrong_python is not None:
                note = wrong_python if wrong_cann is None else wrong_cann.behind(wrong_python)
                self._add(self._npu, python, note, None)
            elif cann is not None and wrong_cann is not None:
                made = self._made_for(cann)
                only = made[0].name if len(made) == 1 else None
                self._add(self._npu, cann, wrong_cann, only, Severity.WARNING)

    def _other_torch(self, torch: _Pin) -> None:
        wanted, found = base_of(_normal(self._npu)), _normal(torch)
        note = message("check.pair-torch", release=self._npu.release, torch=wanted, found=found)
        fitting = [each for each in self._table.for_torch(found) if self._goes_with_others(each)]
        if fitting:
            note = message("check.pair-fits", release=fitting[-1].name).behind(note)
        elif not torch.is_start:
            note = message("check.pair-none").behind(note)
        if torch.request.span > self._npu.request.span:
            self._add(torch, self._npu, note, wanted)
        else:
            only = fitting[0].name if len(fitting) == 1 else None
            self._add(self._npu, torch, note, only)

    def _goes_with_others(self, release: NpuRelease) -> bool:
        """Whether Python and CANN of the file are right for a release."""
        python, cann = self._beside.get(_PYTHON), self._beside.get(_CANN)
        if python is not None and release.python and _minor(python) not in release.python:
            return False
        return cann is None or release.cann == cann.release

    def _other_python(self, python: _Pin | None, release: NpuRelease) -> LocalizedText | None:
        """What is said if a release has no wheel for this Python."""
        minor = None if python is None else _minor(python)
        if minor is None or not release.python or minor in release.python:
            return None
        shown = f"`3.{release.python[0]}` – `3.{release.python[-1]}`"
        note = message("check.pair-python", release=release.name, python=shown, found=f"3.{minor}")
        later = self._table.for_torch(release.torch)
        newer = [each for each in later if minor in each.python]
        if not newer:
            return note
        return message("check.pair-newer-python", release=newer[0].name).behind(note)

    def _other_cann(self, cann: _Pin | None, release: NpuRelease) -> LocalizedText | None:
        """What is said if a release does not run with this CANN."""
        if cann is None or release.cann is None or release.oldest_cann is None:
            return None
        if cann_order(cann.release) >= cann_order(release.oldest_cann):
            return None
        note = message(
            "check.pair-cann",
            release=release.name,
            cann=release.cann,
            oldest=release.oldest_cann,
            found=cann.release,
        )
        made = self._made_for(cann)
        return message("check.pair-fits", release=made[-1].name).behind(note) if made else note

    def _made_for(self, cann: _Pin) -> Sequence[NpuRelease]:
        """The releases for the same PyTorch that are made for this CANN."""
        same = self._table.for_torch(base_of(_normal(self._npu)))
        return [each for each in same if each.cann == cann.release]

    def _add(
        self,
        pin: _Pin,
        other: _Pin,
        note: LocalizedText,
        release: str | None,
        severity: Severity | None = None,
    ) -> None:
        rule = self._report.catalogue.rule_named("release-pair")
        if rule is None:
            return
        span = pin.request.span
        at = self._report.text.rfind(pin.release, *span)
        is_pin = pin.request.value.startswith("=") and at >= 0
        fixes: list[Fix] = []
        if release is not None and is_pin:
            edit = Edit(Span(at, at + len(pin.release)), release)
            fixes.append(Fix(use(release), Applicability.UNSAFE, (edit,)))
        related = (Related(other.request.span, message("check.pair-with")),)
        self._report.add(rule, span, fixes, "", note, severity, related)


def _fits(torch: _Pin, wanted: str) -> bool:
    found = _normal(torch)
    if torch.is_start:
        return wanted == found or wanted.startswith(f"{found}.")
    return base_of(found) == wanted


def _minor(python: _Pin) -> int | None:
    major, _, minor = _normal(python).partition(".")
    return int(minor) if major == "3" and minor.isdigit() else None
