"""Shell scripts: variables, options, resources, commands and wheels of the CUDA world."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import VARIABLE_NAME, LaunchReport
from npulens.syntax.shell import Command, read_shell
from npulens.text.spans import Span

_NPU = re.compile(r"(?<![a-z])npu|NPU|[Aa]scend|ASCEND(?!_RT_VISIBLE_DEVICES)|davinci")
"""Not what a fix makes of `CUDA_VISIBLE_DEVICES`."""
_CONDITIONS = frozenset({"if", "elif", "while", "until", "case", "[", "[[", "test"})
_PROBES = frozenset({"command", "which", "type", "hash", "if", "elif", "while", "until", "!"})
_TEXT_COMMANDS = frozenset(
    {"echo", "printf", "cat", "git", "grep", "egrep", "sed", "awk", "rg", "logger", "print"}
    | {"die", "log", "info", "warn", "error", "usage", "read", "alias", "man", "apt-get", "apt"}
)
_PREFIXES = frozenset(
    {"sudo", "time", "exec", "nohup", "watch", "env", "timeout", "then", "else", "do", "{"}
    | {"if", "elif", "while", "until", "!", "nice"}
)
_SCHEDULERS = frozenset({"srun", "sbatch", "salloc"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "nvidia-docker", "docker-compose"})
_INSTALLERS = frozenset({"pip", "pip3", "uv", "conda", "mamba", "micromamba", "poetry"})
_NOT_INSTALLED = frozenset({"uninstall", "remove", "list", "show", "freeze", "search", "info"})
_SHELLS = frozenset({"bash", "sh", "sbatch", "srun", "ssh", "zsh", "qsub"})
_PYTHON = re.compile(r"python[\d.]*\Z|torchrun\Z")
_PROGRAM = re.compile(
    r"(?:.*/)?(?:python[\d.]*|torchrun|bash|sh|accelerate|deepspeed|[\w.-]+\.(?:py|sh))\Z"
)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\+?=(?P<value>[\s\S]*)\Z")
_OPTION = re.compile(r"(?P<dashes>--?)(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>[\s\S]*))?\Z")
_SETTING = re.compile(r"[+~]{0,2}(?P<name>[A-Za-z][\w./-]*)=(?P<value>[\s\S]*)\Z")
_REFERENCE = re.compile(r"\$(?:\{[#!]?)?([A-Z][A-Z0-9_]{3,})(?![A-Z0-9_])")
_SET_OR_NAMED = re.compile(r"(?<![\w$/.{#!-])([A-Z][A-Z0-9_]{3,})(?:=([^\s'\"]*)|(?![\w/.-]))")
_INNER = {"'": re.compile(r"[^\s']+"), '"': re.compile(r'[^\s"]+')}
_SBATCH = re.compile(r"#SBATCH[ \t]+(?P<option>--?[\w-]+)(?:(?:=|[ \t]+)(?P<value>[^\s#]+))?")
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w, -]*\])?[ \t]*(?P<value>[^\s].*|)\s*\Z"
)
_URL = re.compile(r"https?://")
_TRAINING = re.compile(r"(?:train|finetune|sft)\w*\.py\b")
_DEEPEST_SCRIPT = 3
_CUDA_ARM = re.compile(r"\(?(?:cpu|cu\d+|cuda[\d.*]*|rocm[\d.*]*|nvidia|hip)\Z", re.IGNORECASE)
"""A pattern of `case` that is for another hardware than the NPU."""
_TOLERATED = re.compile(r"[^\n]{0,200}?\|\|[ \t]*(?:true\b|:)")
_NOT_TAKEN = re.compile(r"--(?:no-|exclude)[\w-]*\Z")
"""Options of installers whose value is what is not installed."""


class Atom(NamedTuple):
    """A word without its quotes, or one of the words inside quotes."""

    span: Span
    text: str


def shell_findings(
    report: LaunchReport, start: int = 0, end: int | None = None, depth: int = 0
) -> None:
    """Report what a script holds; nothing of one that asks for the NPU, which is ported."""
    found = read_shell(report.text, start, end)
    if any(_asks_for_npu(command, report.text) for command in found.commands):
        return
    for comment in found.comments:
        option = _SBATCH.match(report.text, comment.start, comment.end)
        if option is not None and report.text[comment.start - 1 : comment.start] in ("", "\n"):
            _scheduled(option, report)
    _untuned(found.commands, report)
    for command in _not_for_cuda(found.commands, report.text):
        _command(command, report)
        for body in command.heredocs:
            _heredoc(command, body, report, depth)


def command_words(report: LaunchReport, atoms: Sequence[Atom]) -> None:
    """Report what a command holds whose words are known, as in a list of settings."""
    if atoms:
        _atoms(atoms, _program(atoms), report)


def requirement(report: LaunchReport, atom: Atom) -> bool:
    """Report a requirement on a CUDA wheel: `torch==2.1.0+cu118`, `nvidia-nccl-cu12`."""
    if len(atom.text) > 300:
        return False
    match = _REQUIREMENT.match(atom.text)
    if match is None:
        return False
    name = match["name"].lower().replace("_", "-").rstrip(".")
    value = match["value"].partition(";")[0].partition(" #")[0].rstrip()
    start = atom.span.start + match.start("value")
    value_span = Span(start, start + len(value))
    whole = Span(atom.span.start, value_span.end)
    return report.look_up(Place.PACKAGE, name, value, whole, value_span)


def index_url(report: LaunchReport, atom: Atom) -> bool:
    """Report an index of CUDA wheels: `https://wheels.example.org/whl/cu121`."""
    if not _URL.match(atom.text):
        return False
    return report.look_up(Place.INDEX, "url", atom.text, atom.span, atom.span)


def image(report: LaunchReport, atom: Atom) -> bool:
    """Report an image that brings CUDA."""
    return report.look_up(Place.IMAGE, "image", atom.text, atom.span, atom.span)


def normal_name(name: str) -> str:
    """The name of an option or key as the tables have it: `dist_backend` for `--dist-backend`."""
    return re.split(r"[./]", name)[-1].lower().replace("-", "_")


def _asks_for_npu(command: Command, text: str) -> bool:
    first = text[slice(*command.words[0])]
    if first in _CONDITIONS:
        return any(_NPU.search(text, *word) is not None for word in command.words[1:])
    return first in ("npu", "npu*", "ascend", "*npu*")  # an arm of `case`


def _not_for_cuda(commands: Sequence[Command], text: str) -> Iterator[Command]:
    """The commands that are not in an arm of `case` for the CPU or a version of CUDA."""
    is_skipped, end = False, 0
    for command in commands:
        first, last = command.words[0], command.words[-1]
        if is_skipped and ";;" in text[end : first.start]:
            is_skipped = False
        if _CUDA_ARM.match(text[slice(*first)]) and text.startswith(")", first.end):
            is_skipped = True
        end = max(end, last.end)
        if not is_skipped:
            yield command


def _untuned(commands: Sequence[Command], report: LaunchReport) -> None:
    """A training script that sets variables of the NPU, but none of those against a slow host."""
    text = report.text
    if not report.lacks_tuning:
        return
    launchers: list[Span] = []
    for command in commands:
        words = [text[slice(*word)] for word in command.words]
        if words[0] in ("source", ".") and not any("set_env.sh" in word for word in words):
            return  # what that file sets is not known
        if any(word.endswith("torchrun") for word in words[:3]) and any(
            _TRAINING.search(word) for word in words
        ):
            place = next(word for word in command.words if text[slice(*word)].endswith("torchrun"))
            launchers.append(place)
    rule = report.catalogue.rule_named("untuned-launch")
    if launchers and rule is not None:
        report.add(rule, launchers[0], [], "TASK_QUEUE_ENABLE` / `CPU_AFFINITY_CONF")


def _heredoc(command: Command, body: Span, report: LaunchReport, depth: int) -> None:
    first = _basename(_program(list(_all_atoms(command, report.text))))
    if _PYTHON.match(first):
        report.embedded.append((body, "heredoc.py"))
    elif first in _SHELLS and depth < _DEEPEST_SCRIPT:
        shell_findings(report, *body, depth + 1)


def _scheduled(option: re.Match[str], report: LaunchReport) -> None:
    value = option["value"]
    name = normal_name(option["option"].lstrip("-"))
    value_span = Span(*option.span("value")) if value else Span(*option.span("option"))
    whole = Span(option.start("option"), value_span.end)
    if not report.look_up(Place.SCHEDULER, name, value, whole, value_span):
        report.look_up(Place.OPTION, name, value, value_span, value_span)


def _command(command: Command, report: LaunchReport) -> None:
    text = report.text
    atoms = list(_all_atoms(command, text))
    program = _program(atoms)
    is_text = _basename(program) in _TEXT_COMMANDS
    # What a message shows of a variable is renamed with it, but nothing to be told.
    is_told = not is_text or command.is_substituted or command.is_piped
    for word in command.words:
        for match in _REFERENCE.finditer(text, *word):
            report.variable(Span(*match.span(1)), is_told=is_told, is_reference=True)
    assignments = [atom for atom in atoms if _ASSIGNMENT.match(atom.text)]
    if is_text:
        before = [atom for atom in assignments if program is not None and atom.span < program.span]
        _atoms(before, None, report)
    else:
        _atoms(atoms, program, report)


def _all_atoms(command: Command, text: str) -> Iterator[Atom]:
    for start, end in command.words:
        word = text[start:end]
        assigned = _ASSIGNMENT.match(word)
        quoted = assigned.start("value") if assigned is not None else 0
        inner = word[quoted:]
        if inner[:1] in ("'", '"') and any(space in inner for space in " \t\n"):
            if quoted:
                yield Atom(Span(start, start + quoted), word[:quoted])
            for match in _INNER[inner[0]].finditer(text, start + quoted, end):
                yield Atom(Span(*match.span()), match.group())
        elif len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
            yield Atom(Span(start + 1, end - 1), word[1:-1])
        else:
            yield Atom(Span(start, end), word)


def _program(atoms: Sequence[Atom]) -> Atom | None:
    """The word that says what is run."""
    is_wrapped = False
    for atom in atoms:
        if atom.text in _PREFIXES:
            is_wrapped = True
        elif is_wrapped and (atom.text.startswith("-") or atom.text[:1].isdigit()):
            continue
        elif not _ASSIGNMENT.match(atom.text):
            return atom
    return None


def _basename(program: Atom | None) -> str:
    return "" if program is None else program.text.rpartition("/")[2]


def _atoms(atoms: Sequence[Atom], program: Atom | None, report: LaunchReport) -> None:
    name = _basename(program)
    _run(atoms, program, report)
    ahead: Place | None = None
    if name in _SCHEDULERS:
        ahead = Place.SCHEDULER
    elif name in _CONTAINERS:
        ahead = Place.CONTAINER
    installs = name in _INSTALLERS or (
        name.startswith("python") and any(atom.text in ("pip", "pip3") for atom in atoms)
    )
    words = {atom.text for atom in atoms}
    installs = installs and words.isdisjoint(_NOT_INSTALLED)
    takes_image = name in _CONTAINERS and not words.isdisjoint(("run", "pull", "create"))
    for index, atom in enumerate(atoms):
        following = atoms[index + 1] if index + 1 < len(atoms) else None
        if ahead is not None and atom is not program and _PROGRAM.match(atom.text):
            ahead = None  # what follows belongs to the program it starts
        if atom.text.startswith("-"):
            _option(atom, following, ahead, report)
        else:
            _setting(atom, report)
        _variables(atom, name, report)
        if takes_image and atom is not program:
            image(report, atom)
        is_left_out = index > 0 and _NOT_TAKEN.match(atoms[index - 1].text) is not None
        if installs and atom is not program and not is_left_out:
            _installed(atom, report)


def _run(atoms: Sequence[Atom], program: Atom | None, report: LaunchReport) -> None:
    """A command of NVIDIA's; asking whether it is there is no use of it."""
    if program is None or (atoms and atoms[0].text in _PROBES):
        return
    arguments = [atom for atom in atoms if atom.span > program.span]
    is_alone = all(atom.text[:1] in (">", "|", "2") for atom in arguments)
    form = "alone" if is_alone else "with arguments"
    name = _basename(program)
    if name in report.probed or _TOLERATED.match(report.text, program.span.end) is not None:
        return
    start = program.span.end - len(name)
    span = Span(start, program.span.end)
    report.look_up(Place.COMMAND, name, form, span, span)


def _option(atom: Atom, following: Atom | None, ahead: Place | None, report: LaunchReport) -> None:
    match = _OPTION.match(atom.text)
    if match is None:
        return
    if match["value"] is not None:
        value = match["value"].strip("'\"")
        start = atom.text.find(value, match.start("value")) + atom.span.start
        value_span = Span(start, start + len(value))
    elif following is not None and not following.text.startswith("-"):
        value, value_span = following.text, following.span
    else:
        return
    name = normal_name(match["name"])
    closing = report.text[value_span.end : value_span.end + 1]
    is_quoted = closing in ("'", '"') and report.text[value_span.start - 1] == closing
    whole = Span(atom.span.start, value_span.end + is_quoted)
    if ahead is not None and report.look_up(ahead, name, value, whole, value_span):
        return
    if match["dashes"] == "--" or len(match["name"]) > 1:
        report.look_up(Place.OPTION, name, value, value_span, value_span)


def _setting(atom: Atom, report: LaunchReport) -> None:
    """`trainer.accelerator=gpu`, as Hydra and others take their settings."""
    match = _SETTING.match(atom.text)
    if match is None or match["name"].isupper():
        return
    value = match["value"].strip("'\"")
    start = atom.text.find(value, match.start("value")) + atom.span.start
    name = normal_name(match["name"])
    report.look_up(Place.KEY, name, value, atom.span, Span(start, start + len(value)))


def _variables(atom: Atom, program: str, report: LaunchReport) -> None:
    """`NCCL_DEBUG=INFO`, `-x NCCL_DEBUG`, `--export=ALL,NCCL_DEBUG=INFO`."""
    for match in _SET_OR_NAMED.finditer(atom.text):
        if match[1] == "SBATCH" or not VARIABLE_NAME.fullmatch(match[1]):
            continue
        start = atom.span.start + match.start(1)
        value = match[2]
        if value is None and match.end() < len(atom.text) and atom.text[match.end()] in "'\"=":
            value = atom.text[match.end() :].strip("='\"")
        elif value == "" and atom.text[match.end() : match.end() + 1] in ("'", '"'):
            value = atom.text[match.end() :].strip("'\"")
        elif value is not None and "," in atom.text[: match.start()]:
            value = value.partition(",")[0]
        name = Span(start, start + len(match[1]))
        is_reference = program == "unset" or (program == "export" and value is None)
        report.variable(name, value, is_reference=is_reference)


def _installed(atom: Atom, report: LaunchReport) -> None:
    option = _OPTION.match(atom.text)
    if option is not None and option["value"] is not None:
        start = atom.span.start + option.start("value")
        atom = Atom(Span(start, start + len(option["value"])), option["value"])
    if not atom.text.startswith("-") and not index_url(report, atom):
        requirement(report, atom)
