"""YAML, JSON, TOML and INI: devices, backends, variables, images, resources and command lines."""

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import zip_longest

from npulens.catalog.name_expressions import LONGEST_VALUE
from npulens.catalog.tables import Place
from npulens.checks.other_files.dependencies import dependency
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.script_variables import ScriptVariable, variables_together
from npulens.checks.other_files.shell_commands import (
    command_words,
    image,
    normal_name,
    shell_findings,
)
from npulens.checks.other_files.shell_programs import Atom
from npulens.checks.other_files.tool_settings import tool_settings
from npulens.syntax.settings import (
    Setting,
    ini_settings,
    json_settings,
    toml_settings,
    yaml_settings,
)
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.verdicts.file_role import FileRole, file_role

_COMMAND_KEYS = frozenset(
    {"command", "cmd", "entrypoint", "args", "run", "script", "setup", "arguments", "launch"}
    | {"train_command", "runargs", "docker_args", "extra_args", "shell", "commands", "runcmd"}
)
_RUN_KEYS = frozenset({"run", "command", "cmd", "commands", "runcmd"})
"""Those whose value may be one word: `run: nvidia-smi`."""
_TEXT_KEYS = frozenset(
    {"description", "help", "title", "comment", "doc", "message", "summary", "label", "changelog"}
    | {"text", "content", "prompt", "instruction", "input", "output", "question", "answer"}
)
_LISTED_KEYS = frozenset(
    {"capabilities", "runtime", "devices", "device_ids", "accelerators", "runs-on"}
)
"""Those whose elements, or keys below them, are looked up as their value."""
_OF_SELECTOR = "values"
"""What lists the labels that nodes may have in Kubernetes."""
_DEVICE_KEY = re.compile(r"(?:\w+[_-])?device(?:s|_map)?")
_NUMBERED = re.compile(r"cuda:\d{1,2}")
"""What a key may have as its value whatever it is called."""
_IMAGE_KEY = re.compile(r"baseimage|(?:\w+[_-])?(?:image|container)(?:[_-]?ur[il])?")
_TARGET_KEYS = frozenset({"_target_", "class_path", "_component_", "target"})
_CONTAINER_KEYS = frozenset({"runargs", "docker_args"})
_IN_MATRIX = re.compile(r"(pytorch|torch|torchvision|torchaudio|python)(?:[_-]?version)?s?")
_RELEASE = re.compile(r"\d+(?:\.\d+)+(?:\+cu\d+)?")
_FOR_CUDA = re.compile(r"\d+(?:\.\d+)*\+cu\d+")
_RECORD = re.compile(
    r"(?:elapsed|wall_?time|duration)(?:_s(?:ec(?:onds)?)?|_ms)?|timestamp|hostname"
    r"|(?:created|started|finished|generated)_?at|git_?(?:sha|commit|hash)|(?:\w+_)?sha256"
    r"|gpu_name|peak_\w*mem\w*"
)
"""Keys of what runs write down; one of them alone may be a setting."""
_MEASURED = re.compile(r"(?:best|final|test|val|eval)_(?:acc(?:uracy)?|loss|f1|auc|metric|epoch)")
"""Those of results, if a figure is behind them: a loss may be chosen by its name, too."""
_FIGURE = re.compile(r"-?\d+\.\d{9,}(?:e-?\d+)?")
"""A figure that was computed: nobody writes so many digits."""
_RECORD_KEYS = 2
_RECORD_FIGURES = 5
_NEXT_GROUP = re.compile(r"\n[ \t]*-[ \t]|\}")
_ASSIGNED = re.compile(r"[A-Z][A-Z0-9_]{3,}(?==|\Z)")


def configuration_findings(report: LaunchReport, kind: Kind, path: str) -> None:
    """Report what a file of settings holds; what a run left behind needs nothing."""
    settings = list(SETTINGS[kind](report.text))
    is_record = kind is Kind.JSON and _is_record(settings)
    with report.settling("file-role") if is_record else nullcontext():
        _all_findings(report, settings, kind, path)


def _is_record(settings: Sequence[Setting]) -> bool:
    """Whether a file says what a run did: how long it took, how well, with which files."""
    keys = {
        key
        for setting in settings
        for key in [setting.key.lower()]
        if _RECORD.fullmatch(key) or (_MEASURED.fullmatch(key) and setting.value[:1].isdigit())
    }
    figures = sum(_FIGURE.fullmatch(setting.value) is not None for setting in settings)
    return len(keys) >= _RECORD_KEYS or figures >= _RECORD_FIGURES


def _all_findings(report: LaunchReport, settings: Sequence[Setting], kind: Kind, path: str) -> None:
    report.is_of_tests = FileRole.IN_TESTS in file_role(path)
    for words in _lists(settings):
        command_words(report, words)
    variables_together(report, list(_set_together(settings, report.text)))
    if kind is Kind.JSON:
        tool_settings(report, settings)
    for setting in settings:
        _variable(setting, report)
        if "matrix" in setting.parents:
            _of_matrix(setting, report)
        if setting.key.lower() not in _TEXT_KEYS:
            _setting(setting, report, kind, path)


SETTINGS = {
    Kind.YAML: yaml_settings,
    Kind.JSON: json_settings,
    Kind.TOML: toml_settings,
    Kind.INI: ini_settings,
}
"""What reads the keys and values of each kind of settings."""


def _variable(setting: Setting, report: LaunchReport) -> None:
    """`NCCL_DEBUG: INFO`, `- NCCL_DEBUG=INFO`, `name: NCCL_DEBUG`."""
    if _ASSIGNED.fullmatch(setting.key):
        report.variable(setting.key_span, setting.value)
    if setting.is_block or setting.key not in ("", "name"):
        return
    match = _ASSIGNED.match(setting.value)
    if match is not None:
        value = setting.value[match.end() + 1 :] if match.end() < len(setting.value) else None
        span = Span(setting.span.start, setting.span.start + match.end())
        if setting.key or value is not None or "env" in "".join(setting.parents[-1:]).lower():
            report.variable(span, value)


def _set_together(settings: Sequence[Setting], text: str) -> Iterator[ScriptVariable]:
    """The variables that each group of settings gives values: `env:` of one container, of one job.

    They are those that follow each other below the same keys, up to the next element of a list.
    """
    block, end = 0, 0
    around: tuple[str, ...] | None = None
    for setting, following in zip_longest(settings, settings[1:]):
        if around is not None and setting.parents[: len(around)] != around:
            around = None
        found = _given(setting, following)
        if found is None:
            continue
        is_next = (
            setting.key in ("", "name") or _NEXT_GROUP.search(text, end, found[1].start) is None
        )
        if setting.parents != around or not is_next:
            block += 1
        around, end = setting.parents, found[2].span.end
        yield ScriptVariable(*found, block=block)


def _given(setting: Setting, following: Setting | None) -> tuple[str, Span, Atom] | None:
    """A variable with its value: `A: b`, `- A=b`, `name: A` and `value: b`."""
    if setting.is_block:
        return None
    if _ASSIGNED.fullmatch(setting.key):
        return setting.key, setting.key_span, Atom(setting.span, setting.value)
    match = _ASSIGNED.match(setting.value) if setting.key in ("", "name") else None
    if match is None:
        return None
    span = Span(setting.span.start, setting.span.start + match.end())
    if match.end() < len(setting.value):
        start = span.end + 1
        return (
            match.group(),
            span,
            Atom(Span(start, setting.span.end), setting.value[match.end() + 1 :]),
        )
    if setting.key and following is not None and following.key == "value":
        return match.group(), span, Atom(following.span, following.value)
    return None


def _of_matrix(setting: Setting, report: LaunchReport) -> None:
    """`torch: [1.3.1, 1.5.0+cu101]` of a matrix of CI: releases that its jobs install."""
    key = setting.key or setting.parents[-1]
    match = _IN_MATRIX.fullmatch(key)
    package = key if match is None else match[1].replace("pytorch", "torch")
    known = _FOR_CUDA if match is None else _RELEASE
    if known.fullmatch(setting.value) is not None:
        report.look_up_computed(Place.PACKAGE, package, f"={setting.value}", setting.span)


def _setting(setting: Setting, report: LaunchReport, kind: Kind, path: str) -> None:
    key, value, span = setting.key, setting.value, setting.span
    owner = (key or (setting.parents[-1] if setting.parents else "")).lower()
    is_command = owner in _COMMAND_KEYS and (" " in value or owner in _RUN_KEYS)
    if setting.is_block or is_command:
        if owner in _COMMAND_KEYS:
            shell_findings(report, *span)
        return
    atom = Atom(span, value)
    around = (setting.parents or ("",))[-1].lower()
    if _IMAGE_KEY.fullmatch(around if owner == "repository" else owner) is not None:
        image(report, atom)
        return
    if not dependency(report, setting, kind, path):
        _looked_up(setting, around, report)


def _looked_up(setting: Setting, around: str, report: LaunchReport) -> None:
    """What the tables know of a key and its value."""
    key, value, span = setting.key, setting.value, setting.span
    name = key if "/" in key else normal_name(key)
    if key.startswith("--"):  # options that a launcher puts on a command line
        report.look_up(Place.OPTION, name.lstrip("_"), value, span, span)
    elif key in _TARGET_KEYS:
        _target(setting, report)
    elif _is_known(name if key else around, setting, report):
        return
    elif around in _LISTED_KEYS or _DEVICE_KEY.fullmatch(around) is not None:
        element, place = (key, setting.key_span) if key else (value, span)
        is_known = report.look_up(Place.KEY, around, element, place, place)
        if key and not is_known:  # `devices: {vae: cuda}`, and no list of what there is
            report.look_up(Place.KEY, "device", value, place, span)
    elif _NUMBERED.fullmatch(value) is not None:
        report.look_up(Place.KEY, "device", value, setting.key_span, span)


def _is_known(name: str, setting: Setting, report: LaunchReport) -> bool:
    """Whether the tables know a key with its value, or a label that a node may have."""
    if not setting.key and name != _OF_SELECTOR:
        return False
    place = setting.key_span if setting.key else setting.span
    return report.look_up(Place.KEY, name, setting.value, place, setting.span)


def _target(setting: Setting, report: LaunchReport) -> None:
    """`_target_: apex.optimizers.FusedAdam`, as Hydra and others make objects."""
    name, tables = setting.value, report.catalogue
    if "." not in name or len(name) > LONGEST_VALUE or name in tables.plain:
        return
    entry = tables.symbols.get(name)
    while entry is None and name:
        entry = tables.libraries.get(name)
        name = name.rpartition(".")[0]
    if entry is not None:
        becomes = entry.becomes or ""
        report.add(entry.rule, setting.span, (), becomes, entry.note, entry.severity)


def _lists(settings: Sequence[Setting]) -> Iterator[list[Atom]]:
    """The words of commands given as lists: `command: ["python", "--device", "cuda"]`."""
    words: list[Atom] = []
    owners: tuple[str, ...] = ()
    for setting in settings:
        is_word = not setting.key and setting.parents and not setting.is_block
        if is_word and setting.parents[-1].lower() in _COMMAND_KEYS:
            if words and setting.parents != owners:
                yield words
                words = []
            if not words and setting.parents[-1].lower() in _CONTAINER_KEYS:
                words.append(Atom(Span(setting.span.start, setting.span.start), "docker"))
            owners = setting.parents
            words.append(Atom(setting.span, setting.value))
    if words:
        yield words
