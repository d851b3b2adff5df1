"""Packages that a project requests: lines of requirements, lists and tables of settings."""

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import PurePosixPath

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.syntax.settings import Setting
from npulens.text.kinds import Kind
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_URL = late(r"https?://")
_SOURCE = late(
    r"(?:git\+[a-z]+://(?:[^\s#]*/)?|(?:\.{0,2}/)?(?:[\w.-]+/)+)"
    r"(?P<name>[\w.-]+?)(?:\.git)?/?(?:[@#][^\s]*)?\Z"
)
"""A repository or a folder to install from; its name is that of what is in it."""
_DISTRIBUTION = late(r"(?:^|/)(?P<name>\w+)-\d[^/]*\.(?:whl|tar\.gz|zip)(?:#.*)?\Z")
"""A file to install: `https://.../KNN_CUDA-0.2-py3-none-any.whl`, `dist/apex-0.1-py3.whl`."""
_NAME = late(r"[\w.-]+")
_REPOSITORY = late(r"(?:https?|git|ssh)://\S+/(?P<name>[\w.-]+?)(?:\.git)?/?\Z")
_EXTRAS = late(r"\.{1,2}(?:/[\w./-]*)?(?P<extras>\[[\w, .-]*\])")
"""`.[train]`: the package of a folder."""
_CHANNEL = late(r"[\w.-]+(?:/[\w.-]+)*::")
_PACKAGE = late(
    r"(?P<name>[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9])?)(?P<extras>\[[\w, -]*\])?[ \t]*(?P<value>.*)"
)
_END = late(r"[ \t]*(?:;|[ \t]#|[ \t]--|\\?\Z)")
_MARKER = late(r";[ \t]*\(?[ \t]*(?:python|platform|sys|os|extra|implementation)")
_HASH = " --hash"
_LONGEST = 1_000
_OPTION = late(
    r"(?<!\S)(?:-[efi]|--(?:editable|find-links|index-url|extra-index-url))"
    r"(?:[ \t]+|[ \t]*=[ \t]*)(?P<value>\S+)"
)
_LISTS = {
    Kind.TOML: late(
        r"project\.(?:optional-)?dependencies(?:\.|\Z)|dependency-groups\.|build-system\.requires\Z"
        r"|tool\.(?!poetry\.|pixi\.)(?:.+\.)?[\w-]*dependencies(?:\.|\Z)"
    ),
    Kind.INI: late(
        r"options\.(?:extras_require\.|(?:install_requires|setup_requires|tests_require)\Z)"
        r"|testenv[^.]*\.deps\Z"
    ),
}
_LISTS_ELSEWHERE = late(
    r"(?:.+\.)?(?:dependencies|requires|requirements|pip|install_requires|conda|packages"
    r"|(?:pip|python)_packages)\Z"
)
_INDEX = late(r"(?:.*_)?(?:index_urls?|find_links)")
_ADDRESS = "url"
"""A key of indexes and of packages in TOML and INI; elsewhere it may be any address."""
_WITH_ADDRESSES = frozenset({Kind.TOML, Kind.INI})
_TABLES = late(r"tool\.(?:poetry|pixi)\.(?:.+\.)?[\w-]*dependencies\Z")
_TABLES_BY_FILE = {
    "pixi.toml": late(r"(?:.+\.)?[\w-]*dependencies\Z"),
    "Pipfile": late(r"(?:dev-)?packages\Z"),
}
_PART_OF_TABLE = frozenset({"version", "git", "path", "url"})
_DEFAULT_GROUPS = late(r"(?m)^[ \t]*default-groups[ \t]*=[ \t]*(\[[^\]]{0,500}\]|\"all\")")
_FOR_HARDWARE = late(
    r"(?:.*[._-])?(?:cuda\d*|cu\d+|gpu|nvidia|rocm\d*|amd|xpu|hpu|tpu|cpu|mps)(?:[._-].*)?",
    re.IGNORECASE,
)
"""An extra or a group that says for which hardware it is: the NPU gets one of its own."""


def requirement_lines(report: LaunchReport) -> None:
    """Report what a list of requirements requests."""
    hashed = re.compile(r"\\\r?\n[ \t]*--hash")
    for line in re.finditer(r"[^\n]+", report.text):
        text = line.group()
        start = line.start() + len(text) - len(text.lstrip())
        if text.lstrip().startswith("-"):
            requirement_options(report, line.start(), text)
        elif not text.lstrip().startswith("#"):
            is_hashed = hashed.search(report.text, line.end() - 2, line.end() + 80) is not None
            requirement(report, start, text.strip(), is_hashed=is_hashed)
            requirement_options(report, line.start(), text.partition(" #")[0])


def requirement_options(report: LaunchReport, start: int, text: str) -> None:
    """Report the indexes and sources that options name: `--find-links https://...`."""
    for option in _OPTION.finditer(text):
        requirement(report, start + option.start("value"), option["value"])


def requirement(report: LaunchReport, start: int, text: str, *, is_hashed: bool = False) -> bool:
    """Report a requirement on software for CUDA: `torch==2.1.0+cu118`, `nvidia-nccl-cu12`.

    Args:
        report: Where to report.
        start: Where the requirement is.
        text: The requirement, with marker and comment; also an address or a folder.
        is_hashed: Whether what is installed must have a hash that is given elsewhere.
    """
    text = text[:_LONGEST]
    if _MARKER.search(text) is not None:
        with report.apart(start):  # one for some machines says nothing of those beside it
            return _requirement(report, start, text, is_hashed)
    return _requirement(report, start, text, is_hashed)


def _requirement(report: LaunchReport, start: int, text: str, is_hashed: bool) -> bool:
    end = _END.search(text)
    rest = text if end is None else text[: end.start()]
    is_hashed = is_hashed or _HASH in text
    if _URL.match(rest):
        span = Span(start, start + len(rest))
        if report.look_up(Place.INDEX, "url", rest, span, span):
            return True
        file = _DISTRIBUTION.search(rest)
        return file is not None and _package(report, file["name"], f"@ {rest}", start, span)
    whole = Span(start, start + len(rest))
    file = _DISTRIBUTION.search(rest)
    if file is not None and _package(report, file["name"], f"@ {rest}", start, whole):
        return True
    source = _SOURCE.match(rest)
    if source is not None:
        return _package(report, source["name"], f"@ {rest}", start, whole)
    if (folder := _EXTRAS.fullmatch(rest)) is not None:
        return any(_extra(report, extra, start, rest) for extra in _NAME.findall(folder["extras"]))
    channel = _CHANNEL.match(rest)
    package = _PACKAGE.fullmatch(rest, channel.end() if channel is not None else 0)
    if package is None:
        return False
    value = package["value"] + (_HASH if is_hashed else "")
    name, extras = package["name"], package["extras"] or ""
    value_start = start + package.start("value")
    if extras and _package(report, name + extras, value, value_start, whole):
        return True
    if _package(report, name, value, value_start, whole):
        return True
    return any(_extra(report, extra, start, text) for extra in _NAME.findall(extras))


def _extra(report: LaunchReport, extra: str, start: int, text: str) -> bool:
    """Report an extra that is named after a package for CUDA: `optimum[onnxruntime-gpu]`."""
    at = start + text.index(extra, text.index("["))
    span = Span(at, at + len(extra))
    name = extra.lower().replace("_", "-")
    return report.look_up(Place.EXTRA, name, None, span, span) or report.look_up(
        Place.PACKAGE, name, "", span, span
    )


def cloned(report: LaunchReport, start: int, address: str) -> bool:
    """Report a repository that is cloned to be built: `https://github.com/NVIDIA/apex`."""
    source = _REPOSITORY.match(address)
    if source is None or len(address) > _LONGEST:
        return False
    return _package(
        report, source["name"], f"@ {address}", start, Span(start, start + len(address))
    )


def dependency(report: LaunchReport, setting: Setting, kind: Kind, path: str) -> bool:
    """Report a setting that requests a package or names an index; whether it is one that does."""
    owner = ".".join(setting.parents)
    key = setting.key.replace("-", "_").lower()
    place = f"{owner}.{key}" if key else owner
    report.group = (place.removesuffix(".pip"),)
    if _lists_packages(place, not key, kind):
        start = setting.span.start
        with _of_hardware(place, report):
            if not setting.value.startswith("-"):
                requirement(report, start, setting.value)
            requirement_options(report, start, setting.value)
        return True
    name = key or _last(setting)
    if _INDEX.fullmatch(name) or (name == _ADDRESS and kind in _WITH_ADDRESSES):
        span = setting.span
        if report.look_up(Place.INDEX, "url", setting.value, span, span):
            return True
    if kind is not Kind.TOML:
        return False
    with _of_hardware(owner, report):
        return _of_table(report, setting, PurePosixPath(path).name)


def _of_hardware(place: str, report: LaunchReport) -> AbstractContextManager[None]:
    """Settle requirements of an extra, a group or a table for one kind of hardware."""
    is_apart = is_for_hardware(place) and not _is_installed_anyway(place, report.text)
    return report.settling("other-device") if is_apart else nullcontext()


def _is_installed_anyway(place: str, text: str) -> bool:
    """Whether uv installs a group of requirements unless somebody says otherwise.

    Source: uv documentation, "default-groups" of `[tool.uv]`.
    """
    named = _DEFAULT_GROUPS.search(text)
    if named is None or not place.startswith(("dependency-groups.", "dependency_groups.")):
        return False
    group = place.partition(".")[2].replace("_", "-")
    return any(
        quoted in named[1].replace("_", "-") for quoted in (f'"{group}"', f"'{group}'", '"all"')
    )


def _lists_packages(place: str, is_element: bool, kind: Kind) -> bool:
    if kind is Kind.INI:
        return _LISTS[kind].match(place) is not None
    return is_element and _LISTS.get(kind, _LISTS_ELSEWHERE).match(place) is not None


def is_for_hardware(place: str) -> bool:
    """Whether the name of an extra, a group or a table says for which hardware it is."""
    return any(_FOR_HARDWARE.fullmatch(part) for part in place.split("."))


def _last(setting: Setting) -> str:
    return setting.parents[-1].replace("-", "_").lower() if setting.parents else ""


def _of_table(report: LaunchReport, setting: Setting, file: str) -> bool:
    """`torch = "2.1.0+cu118"` or `torch = {version = "2.1.0+cu118"}` in a table of packages."""
    pattern = _TABLES_BY_FILE.get(file, _TABLES)
    around = ".".join(setting.parents)
    table, _, package = around.rpartition(".")
    span = setting.span
    if setting.key and pattern.match(around):
        name, closing = setting.key, report.text[span.end : span.end + 1] in ("'", '"')
        whole = Span(setting.key_span.start, span.end + closing)
    elif setting.key in _PART_OF_TABLE and pattern.match(table):
        name, whole = package, span
    else:
        return False
    value, start = setting.value, span.start
    if value[:1].isdigit():  # the same as a pin
        value, start = f"=={value}", start - 2
    return _package(report, name, value, start, whole)


def _package(report: LaunchReport, name: str, value: str, start: int, whole: Span) -> bool:
    span = Span(start, start + len(value))
    name = name.lower().replace("_", "-")
    report.request(name, value, whole)
    return report.look_up(Place.PACKAGE, name, value, whole, span)
