"""Shell scripts: variables, options, resources, commands and wheels of the CUDA world."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from npulens.catalog.tables import Place
from npulens.checks.other_files.command_options import Part, ScriptVariables
from npulens.checks.other_files.dependencies import cloned, requirement
from npulens.checks.other_files.inner_files import PYTHON, InnerFile, python_code, written_name
from npulens.checks.other_files.launch_numbers import launch_numbers
from npulens.checks.other_files.launch_report import VARIABLE_NAME, LaunchReport
from npulens.checks.other_files.script_variables import script_variables, variables_together
from npulens.checks.other_files.shell_arms import (
    CommandContext,
    Placed,
    commands_for_npu,
    probed,
)
from npulens.checks.other_files.shell_programs import (
    ASSIGNMENT,
    TEXT_COMMANDS,
    Atom,
    assigned_values,
    atoms_of,
    base_name,
    is_started,
    programs,
    scripts,
)
from npulens.checks.other_files.suite_options import suite_findings
from npulens.checks.other_files.tool_commands import tool_findings
from npulens.syntax.shell import read_shell
from npulens.syntax.shell_tree import Command, Word
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.spans import Span

_ALIAS = re.compile(r"[\w-]+=(?P<quote>[\"'])(?P<command>.*)(?P=quote)", re.DOTALL)
_SYSTEM_INSTALLERS = frozenset({"apt-get", "apt", "aptitude", "yum", "dnf", "microdnf", "zypper"})
_ARCHIVE = re.compile(r"(?:[\w.~/$-]*/)?([a-z][a-z0-9+-]*)(?:_[\w.+~-]*)?\.deb")
_SCHEDULERS = frozenset({"srun", "sbatch", "salloc", "ray", "bsub", "qsub"})
_DOCKER = frozenset({"docker", "podman", "nerdctl", "nvidia-docker", "docker-compose"})
_SINGULARITY = frozenset({"singularity", "apptainer"})
_CONTAINERS = _DOCKER | _SINGULARITY
_TAKES_IMAGE = frozenset({"run", "pull", "create"})
_TAKES_CONTAINER = frozenset({"exec", "run", "shell", "pull", "build", "instance"})
_INSTALLERS = frozenset({"pip", "pip3", "uv", "conda", "mamba", "micromamba", "poetry"})
_NOT_INSTALLED = frozenset(
    {"uninstall", "remove", "list", "show", "freeze", "search", "info", "run", "shell"}
)
_TOOL = "nvidia-smi"
_TOOLKIT = re.compile(r"/(?:usr/local|opt)/(?:cuda|nvidia)(?:[-/.]|\Z)")
_CARD = re.compile(r"/dev/nvidia[\w*?{}\[\]$-]*")
_SOURCES = re.compile(r"/etc/apt/sources\.list\.d/(?:cuda|nvidia)[\w.*-]*")
"""Where images of NVIDIA take packages from."""
_CANN_INSTALLER = "Ascend-cann-"
_READ_BY_SHELLS = re.compile(r"(?:.*/)?(?:[\w.-]*(?:rc|profile)|environment|[\w.-]+\.sh)\Z")
"""Files whose lines are commands: `echo "export A=b" >> ~/.bashrc`."""
_TESTS = frozenset({"[", "[[", "test"})
_FORCED = re.compile(r"-\w*f\w*\Z|--force\Z")
_EQUAL = frozenset({"=", "==", "!="})
_SHELLS = frozenset({"bash", "sh", "sbatch", "srun", "ssh", "zsh", "qsub"})
_LOADERS = {
    "module": frozenset({"load", "add", "switch", "swap", "try-load"}),
    "ml": frozenset({"load", "add", "switch", "swap"}),
    "spack": frozenset({"load"}),
}
_NO_LOADER_WORDS = frozenset({"unload", "purge", "avail", "list", "rm", "spider", "show", "use"})
_OPTION = re.compile(r"(?P<dashes>--?)(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>[\s\S]*))?\Z")
_SETTING = re.compile(r"[+~]{0,2}(?P<name>[A-Za-z][\w./-]*)=(?P<value>[\s\S]*)\Z")
_LISTED = re.compile(r"(?:^|,)(?P<name>[A-Za-z][\w.-]*)=(?P<value>[^,=]*)(?=,|\Z)")
"""`--model_args pretrained=me/model,device=cuda`."""
_REFERENCE = re.compile(r"\$(?:\{[#!]?)?([A-Z][A-Z0-9_]{3,})(?![A-Z0-9_])")
_VARIABLE = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?P<array>\[[@*]\])?\})\Z")
_DEFAULT = re.compile(r"\$\{(?P<name>\w+):?[-=](?P<quote>[\"']?)(?P<value>[^\"']*)(?P=quote)\}\Z")
_PART = re.compile(r"\$\{?(?P<name>[A-Za-z_]\w*)\}?")
_SET_OR_NAMED = re.compile(r"(?<![\w$/.{#!-])([A-Z][A-Z0-9_]{3,})(?:=([^\s'\"]*)|(?![\w/.-]))")
_DIRECTIVE = re.compile(r"#(?:SBATCH|BSUB|PBS|\$)(?=[ \t]+-)")
_DIRECTED = re.compile(
    r"[ \t]+(?:(?P<option>--?[A-Za-z][\w-]*)"
    r"(?:(?:=|[ \t]+(?!-))[\"']?(?P<value>[^\s#\"']+)[^\s#]*)?|[^\s#]+)"
)
"""An option of such a line, or a word that belongs to none."""
_DIRECTIVES = frozenset({"SBATCH", "BSUB", "PBS"})
_SLURM_LETTER = re.compile(r"-G(?P<count>\S+)?\Z")
_FLAGS = frozenset({"nv"})
"""Options of containers that take no value."""
_IMAGE_OPTIONS = frozenset({"container_image", "image"})
_IMAGE_NAME = re.compile(r"(?:^|_)(?:image|img|container|cont|docker)(?:_|\Z)", re.IGNORECASE)
_IMAGE_SCHEME = re.compile(r"(?:docker|oras|enroot|dockerd)://")
_URL = re.compile(r"https?://")
_TRAINING = re.compile(r"(?:train|finetune|sft)\w*\.py\b")
_LAUNCHERS = frozenset({"torchrun", "torch_npu_run", "deepspeed"})
_LAUNCHER_MODULES = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "torch_npu.distributed.run"}
)
_FARTHEST_LAUNCHER = 6
"""How many words may stand in a command up to its launcher: variables, `python -u -m`."""
_ONE_PROCESS = re.compile(r"--(?:nproc[_-]per[_-]node|num_processes|num_gpus)[= ][\"']?1\b")
_DEEPEST_SCRIPT = 3
_NOT_TAKEN = re.compile(
    r"--(?:no-(?:binary|extra|group|[\w-]+-package)|only-(?:binary|group)|exclude[\w-]*)\Z"
)
"""Options of pip and uv that name what is left out or how it is built, not what is installed.

Others that begin with `--no-`, such as `--no-cache-dir`, take no value.
"""
_FOR_RELEASE = re.compile(r"([A-Za-z][\w.-]*-cu(?:da)?)\$")
"""A package with the release of CUDA in its name: `spconv-cu${CUDA}`."""
_FOLDER = re.compile(r"[^:\s]+")
_MOST_VALUES = 20


@dataclass(slots=True)
class _Script:
    """A script that is looked at, or one inside of another."""

    report: LaunchReport
    depth: int = 0
    values: dict[str, list[list[Atom]]] = field(default_factory=dict)
    """What variables are set to."""
    variables: ScriptVariables = field(default_factory=ScriptVariables)
    """What they hold where a command runs."""


def shell_findings(
    report: LaunchReport, start: int = 0, end: int | None = None, depth: int = 0
) -> None:
    """Report what a script holds, but for arms beside one for the NPU."""
    _script(_Script(report, depth), start, len(report.text) if end is None else end)


def _script(script: _Script, start: int, end: int) -> None:
    report = script.report
    found = read_shell(report.text, start, end)
    for comment in found.comments:
        line = _DIRECTIVE.match(report.text, comment.start, comment.end)
        if line is not None and report.text[comment.start - 1 : comment.start] in ("", "\n"):
            for option in _directed(report.text, Span(line.end(), comment.end)):
                _scheduled(option, report)
    _untuned(list(found.commands()), report)
    placed = list(commands_for_npu(found.block, report.text, _answers(report)))
    for command, _ in placed:
        _note_values(command, script)
    for each in placed:
        script.variables.note(each[0], report.text, each[1].is_conditional)
        with report.inside(*each[0].words[:1]) if each[1].is_conditional else nullcontext():
            _command(each, script)
    variables = script_variables(found.block, report.text)
    variables_together(report, variables)
    launch_numbers(report, [command for command, _ in placed], variables)


def _answers(report: LaunchReport) -> frozenset[str]:
    """The variables that fixes write."""
    entries = report.catalogue.environment.values()
    return frozenset(entry.becomes for entry in entries if entry.becomes is not None)


def _note_values(command: Command, script: _Script) -> None:
    for word in command.words:
        assigned = assigned_values(word, script.report.text)
        if assigned is not None:
            script.values.setdefault(assigned[0], []).append(assigned[1])


def command_words(report: LaunchReport, atoms: Sequence[Atom]) -> None:
    """Report what a command holds whose words are known, as in a list of settings."""
    if atoms:
        chain = programs(atoms)
        tool_findings(report, chain, atoms)
        _run(chain, atoms, CommandContext(), report)
        _atoms(atoms, chain, _Script(report))
        suite_findings(report, [Part(atom, True) for atom in atoms])


def index_url(report: LaunchReport, atom: Atom) -> bool:
    """Report an index of CUDA wheels: `https://wheels.example.org/whl/cu121`."""
    if not _URL.match(atom.text):
        return False
    return report.look_up(Place.INDEX, "url", atom.text, atom.span, atom.span)


def _index(atom: Atom, script: _Script) -> bool:
    """Report an index, also one whose address has variables in it."""
    if index_url(script.report, atom):
        return True
    if "$" not in atom.text or not _URL.match(atom.text):
        return False
    known = _PART.sub(lambda match: _only_value(match["name"], script), atom.text)
    return script.report.look_up_computed(Place.INDEX, "url", known, atom.span)


def _only_value(name: str, script: _Script) -> str:
    """What a variable is set to, if there is one such value."""
    values = script.values.get(name, [])
    is_known = len(values) == 1 and len(values[0]) == 1
    return _unquoted(values[0][0]).text if is_known else f"${name}"


def image(report: LaunchReport, atom: Atom) -> bool:
    """Report an image that brings CUDA."""
    scheme = _IMAGE_SCHEME.match(atom.text)
    if scheme is not None:
        atom = Atom(Span(atom.span.start + scheme.end(), atom.span.end), atom.text[scheme.end() :])
    return report.look_up(Place.IMAGE, "image", atom.text, atom.span, atom.span)


def normal_name(name: str) -> str:
    """The name of an option or key as the tables have it: `dist_backend` for `--dist-backend`."""
    return name.replace("/", ".").rpartition(".")[2].lower().replace("-", "_")


def _untuned(commands: Sequence[Command], report: LaunchReport) -> None:
    """A script that trains with several processes on NPUs, and tunes nothing for the host."""
    text = report.text
    if not report.lacks_tuning:
        return
    launchers: list[Span] = []
    for command in commands:
        words = [text[slice(*word.span)] for word in command.words]
        if words[:1] in (["source"], ["."]) and not any("set_env.sh" in word for word in words):
            return  # what that file sets is not known
        launched = _launcher(words)
        if launched is not None and any(map(_TRAINING.search, words)):
            launchers.append(command.words[launched].span)
    rule = report.catalogue.rule_named("untuned-launch")
    if launchers and rule is not None:
        report.add(rule, launchers[0], [], "TASK_QUEUE_ENABLE` / `CPU_AFFINITY_CONF")


def _launcher(words: Sequence[str]) -> int | None:
    """Which word of a command starts several processes: `torchrun`, `-m torch.distributed.run`."""
    if _ONE_PROCESS.search(" ".join(words)) is not None:
        return None
    for index, word in enumerate(words[:_FARTHEST_LAUNCHER]):
        name = word.rpartition("/")[2]
        is_module = index > 0 and words[index - 1] == "-m" and name in _LAUNCHER_MODULES
        if is_module or name in _LAUNCHERS or words[index : index + 2] == ["accelerate", "launch"]:
            return index
    return None


def _heredoc(command: Command, body: Span, script: _Script) -> None:
    report = script.report
    first = base_name(next(iter(programs(atoms_of(command.words, report.text))), None))
    name = "heredoc.py" if PYTHON.match(first) else None
    name = name or written_name(first, command, report.text, body)
    if first in _SHELLS or (name is not None and kind_by_name(name) is Kind.SHELL):
        _nested(script, body)
    elif name is not None:
        report.inner_files.append(InnerFile(body, name))


def _nested(script: _Script, body: Span) -> None:
    """A script inside of a script, which may use its variables."""
    if script.depth < _DEEPEST_SCRIPT:
        inner = _Script(script.report, script.depth + 1, script.values, script.variables)
        _script(inner, *body)


def _directed(text: str, rest: Span) -> Iterator[re.Match[str]]:
    """The options of a line for a scheduler, `-N 1 --gpus-per-node=A40:1`, up to a comment."""
    found = _DIRECTED.match(text, *rest)
    while found is not None:
        if found["option"] is not None:
            yield found
        found = _DIRECTED.match(text, found.end(), rest.end)


def _scheduled(option: re.Match[str], report: LaunchReport) -> None:
    """`#SBATCH --gres=gpu:8`, `#BSUB -gpu "num=4"`, `#PBS -l select=1:ngpus=4`."""
    value = option["value"]
    value_span = Span(*option.span("value")) if value else Span(*option.span("option"))
    is_quoted = bool(value) and report.text[value_span.start - 1] in "\"'"
    whole = Span(option.start("option"), value_span.end + is_quoted)
    letter = _SLURM_LETTER.match(option["option"])
    if letter is not None:
        report.look_up(Place.SCHEDULER, "gpus", value, whole, value_span)
        return
    name = normal_name(option["option"].lstrip("-"))
    if not report.look_up(Place.SCHEDULER, name, value, whole, value_span):
        report.look_up(Place.OPTION, name, value, value_span, value_span)


def _command(placed: Placed, script: _Script) -> None:
    command, context = placed
    report, text = script.report, script.report.text
    inner = scripts(command, text)
    apart = {word.span for word, _ in inner}
    own = [word for word in command.words if word.span not in apart]
    atoms = _with_program(atoms_of(own, text), script)
    chain = programs(atoms)
    is_text = bool(chain) and base_name(chain[0]) in TEXT_COMMANDS
    # What a message shows of a variable is renamed with it, but not reported.
    is_reported = not is_text or context.is_output_used or base_name(chain[0]) == "read"
    for word in (*own, *command.redirects):
        shown = word.text(text)
        for match in _REFERENCE.finditer(shown):
            span = Span(*match.span(1)).shifted(word.span.start)
            report.variable(span, is_reported=is_reported, is_reference=True)
    _probe(command, context, report)
    if chain:
        _fetched(base_name(chain[-1]), atoms, report)
    if is_text:
        before = [atom for atom in atoms if atom.span < chain[0].span]
        _atoms(before, [], script)
        if base_name(chain[0]) == "alias":
            _aliases(own, script)
        if any(_READ_BY_SHELLS.match(word.text(text).strip("'\"")) for word in command.redirects):
            for word in own:
                if word.text(text)[:1] in ("'", '"'):
                    _nested(script, Span(word.span.start + 1, word.span.end - 1))
    else:
        if chain and chain[0].text == "export":
            _exported(own[1:], script)
        if not any(probed(command, text)):
            _run(chain, atoms, context, report)
        tool_findings(report, chain, atoms)
        _atoms(atoms, chain, script)
        suite_findings(report, script.variables.expanded(atoms))
        for _, span in inner:
            _nested(script, span)
        report.inner_files += python_code(command, text)
    for heredoc in command.heredocs:
        _heredoc(command, heredoc.span, script)


def _aliases(words: Iterable[Word], script: _Script) -> None:
    """`alias submit="srun --gres=gpu:1"`."""
    for word in words:
        value = _ALIAS.fullmatch(word.text(script.report.text))
        if value is not None:
            _nested(script, Span(*value.span("command")).shifted(word.span.start))


def _exported(words: Iterable[Word], script: _Script) -> None:
    """`export SRUN="srun --gpus=1"`, which another script may run."""
    for word in words:
        assigned = assigned_values(word, script.report.text)
        if assigned is None or base_name(next(iter(assigned[1]), None)) not in _SCHEDULERS:
            continue
        start = word.span.start + word.text(script.report.text).index("=") + 2
        _nested(script, Span(start, word.span.end - 1))


def _with_program(atoms: list[Atom], script: _Script) -> list[Atom]:
    """The words of a command, with what a variable holds that is run: `$PIP_INSTALL torch`."""
    index = next((i for i, a in enumerate(atoms) if not ASSIGNMENT.match(a.text)), len(atoms))
    variable = _VARIABLE.match(atoms[index].text) if index < len(atoms) else None
    if variable is None:
        return atoms
    values = script.values.get(variable["name"] or variable["braced"], [])
    if len(values) != 1:
        return atoms
    return [*atoms[:index], *values[0][:_MOST_VALUES], *atoms[index + 1 :]]


def _fetched(program: str, atoms: Sequence[Atom], report: LaunchReport) -> None:
    """`apt-get install libnccl2`, `dpkg -i cuda.deb`, `git clone https://.../NVIDIA/apex`."""
    words = {atom.text for atom in atoms}
    of_archives = program == "dpkg" and not words.isdisjoint(("-i", "--install"))
    if of_archives or (program in _SYSTEM_INSTALLERS and "install" in words):
        for atom in atoms:
            archive = _ARCHIVE.fullmatch(atom.text)
            start, name = (0, atom.text) if archive is None else (archive.start(1), archive[1])
            requirement(report, atom.span.start + start, name)
    elif program == "git" and "clone" in words:
        for atom in atoms:
            cloned(report, atom.span.start, atom.text)


def _atoms(atoms: Sequence[Atom], chain: Sequence[Atom], script: _Script) -> None:
    report = script.report
    names = {base_name(program) for program in chain}
    ahead: Place | None = None
    words = {atom.text for atom in atoms}
    last = base_name(chain[-1]) if chain else ""
    installs = last in _INSTALLERS or (
        last.startswith("python") and not words.isdisjoint(("pip", "pip3"))
    )
    behind = {atom.text for atom in atoms if chain and atom.span > chain[-1].span}
    installs = installs and behind.isdisjoint(_NOT_INSTALLED)
    verbs = _TAKES_IMAGE if names & _DOCKER else _TAKES_CONTAINER
    takes_image = bool(names & _CONTAINERS) and not words.isdisjoint(verbs)
    _loaded(atoms, chain, report)
    _devices(atoms, last, report)
    if last in _TESTS:
        _compared(atoms, report)
    for index, atom in enumerate(atoms):
        following = atoms[index + 1] if index + 1 < len(atoms) else None
        if atom in chain:
            ahead = _place_of_options(base_name(atom)) or ahead
        if ahead is not None and atom not in chain[:1] and is_started(atom):
            ahead = None  # what follows belongs to the program it starts
        for each, value in _expanded(atom, following, ahead, script):
            _option_or_setting(each, value, ahead, script)
        _variables(atom, last, report)
        if _CANN_INSTALLER in atom.text:
            report.request("file", atom.text, atom.span)
        if atom not in chain and _TOOLKIT.match(atom.text):
            report.look_up(Place.PATH, "source", atom.text, atom.span, atom.span)
        if takes_image and atom not in chain:
            _image(atom, script)
        if last.startswith("python") and index > 0 and atoms[index - 1].text == "-m":
            program = atom.text.partition(".")[0]  # `python -m vllm.entrypoints.api_server`
            report.look_up(Place.COMMAND, program, "module", atom.span, atom.span)
        is_left_out = index > 0 and _NOT_TAKEN.match(atoms[index - 1].text) is not None
        if installs and atom not in chain and not is_left_out:
            _installed(atom, script)
        elif not installs:
            _index(_value_in(atom), script)  # helpers of a script install, too


def _devices(atoms: Sequence[Atom], program: str, report: LaunchReport) -> None:
    """`fuser /dev/nvidia0`, `--device=/dev/nvidia0`; `rm` of what only images of NVIDIA have."""
    removes = program == "rm" and not any(_FORCED.match(atom.text) for atom in atoms)
    for atom in atoms:
        for name, pattern in (("file", _CARD), *([("removed", _SOURCES)] if removes else [])):
            found = pattern.search(atom.text)
            if found is not None:
                span = Span(*found.span()).shifted(atom.span.start)
                report.look_up(Place.PATH, name, found.group(), span, span)


def _compared(atoms: Sequence[Atom], report: LaunchReport) -> None:
    """`[ $device == "cuda" ]`: a test that does not recognise the NPU, and no other one does."""
    for left, relation, right in zip(atoms, atoms[1:], atoms[2:], strict=False):
        variable = _PART.fullmatch(left.text)
        if relation.text in _EQUAL and variable is not None:
            if variable["name"].lower() in report.set_to_npu:
                return
            name = normal_name(variable["name"])
            report.look_up(Place.OPTION, name, right.text, right.span, right.span)


def _place_of_options(program: str) -> Place | None:
    """Whose options follow a program."""
    if program in _SCHEDULERS:
        return Place.SCHEDULER
    return Place.CONTAINER if program in _CONTAINERS else None


def _expanded(
    atom: Atom, following: Atom | None, ahead: Place | None, script: _Script
) -> Iterator[tuple[Atom, Atom | None]]:
    """A word with the next one; what a variable holds, if options are due here."""
    yield atom, following
    variable = _VARIABLE.match(atom.text) if ahead is not None else None
    if variable is not None:
        for value in script.values.get(variable["name"] or variable["braced"], ())[:_MOST_VALUES]:
            value = value[:_MOST_VALUES]
            yield from zip(value, [*value[1:], None], strict=False)


def _option_or_setting(
    atom: Atom, following: Atom | None, ahead: Place | None, script: _Script
) -> None:
    if atom.text.startswith("-"):
        _option(atom, following, ahead, script)
    else:
        _setting(atom, script)


def _values(atom: Atom, script: _Script, depth: int = 2) -> list[Atom]:
    """What a word may represent: itself, the default in it, what its variable is set to."""
    variable = _VARIABLE.match(atom.text)
    default = _DEFAULT.match(atom.text)
    found = [atom]
    name = ""
    if variable is not None:
        name = variable["name"] or variable["braced"]
    elif default is not None:
        name = default["name"]
        span = Span(*default.span("value")).shifted(atom.span.start)
        found.append(Atom(span, default["value"]))
    values = script.values.get(name, ())[:_MOST_VALUES]
    if any(each.text.strip("'\"").startswith("npu") for value in values for each in value[:1]):
        return found  # another value of it is for the NPU
    if depth:
        for value in values:
            if len(value) == 1:
                found += _values(_unquoted(value[0]), script, depth - 1)
    return found


def _unquoted(atom: Atom) -> Atom:
    inner = atom.text.strip("'\"")
    start = atom.span.start + atom.text.find(inner)
    return Atom(Span(start, start + len(inner)), inner)


def _image(atom: Atom, script: _Script) -> None:
    for value in _values(atom, script):
        if image(script.report, value):
            return


def _run(
    chain: Sequence[Atom], atoms: Sequence[Atom], context: CommandContext, report: LaunchReport
) -> None:
    """Commands of NVIDIA's.

    One that a script looks for before it runs it, or whose failure it bears, may stay, but not
    where the script decides by it or counts what it prints.
    """
    for program in (*chain, *_started(chain, atoms)):
        name = base_name(program)
        is_alone = not any(atom.span > program.span for atom in atoms)
        is_guarded = name in context.guarded or (context.is_conditional and name in report.probed)
        counts = context.is_test or context.is_counted
        if counts or not (is_guarded or context.is_tolerated):
            span = Span(program.span.end - len(name), program.span.end)
            form = "alone" if is_alone else "with arguments"
            report.look_up(Place.COMMAND, name, form, span, span)


def _started(chain: Sequence[Atom], atoms: Sequence[Atom]) -> Iterator[Atom]:
    """What a container or a shell runs: `docker exec a nvidia-smi`, `bash ./a.run`."""
    rest = [atom for atom in atoms if chain and atom.span > chain[-1].span]
    if any(base_name(program) in _CONTAINERS for program in chain):
        yield from (atom for atom in rest if atom.text == _TOOL)
    elif chain and base_name(chain[-1]) in _SHELLS:
        yield from [atom for atom in rest if not atom.text.startswith("-")][:1]


def _probe(command: Command, context: CommandContext, report: LaunchReport) -> None:
    """`command -v nvidia-smi`, where more than a call of it depends on the answer."""
    if not context.is_decisive:
        return
    for word in probed(command, report.text):
        name = report.text[slice(*word.span)]
        report.look_up(Place.COMMAND, f"command -v {name}", "probe", word.span, word.span)


def _loaded(atoms: Sequence[Atom], chain: Sequence[Atom], report: LaunchReport) -> None:
    """`module load cuda/11.8 nccl`, `spack load cuda`, `source /usr/local/cuda/env.sh`."""
    if not chain:
        return
    name = base_name(chain[-1])
    arguments = [atom for atom in atoms if atom.span > chain[-1].span]
    if name in ("source", "."):
        for atom in arguments[:1]:
            report.look_up(Place.PATH, "source", atom.text, atom.span, atom.span)
        return
    verbs = _LOADERS.get(name)
    if verbs is None or any(atom.text in _NO_LOADER_WORDS for atom in arguments):
        return
    if name != "ml" and not any(atom.text in verbs for atom in arguments):
        return
    for atom in arguments:
        if atom.text not in verbs and not atom.text.startswith("-"):
            report.look_up(Place.MODULE, atom.text, None, atom.span, atom.span)


def _option(atom: Atom, following: Atom | None, ahead: Place | None, script: _Script) -> None:
    report = script.report
    match = _OPTION.match(atom.text)
    if match is None:
        return
    letter = _SLURM_LETTER.match(atom.text) if ahead is Place.SCHEDULER else None
    name = "gpus" if letter is not None else normal_name(match["name"])
    if ahead is Place.CONTAINER and name in _FLAGS:
        report.look_up(ahead, name, None, atom.span, atom.span)
        return
    given = _given(atom, match, following, letter)
    is_long = match["dashes"] == "--" or len(match["name"]) > 1
    if given is None:
        if is_long:
            report.flag(name, atom.span)
        return
    closing = report.text[given.span.end : given.span.end + 1]
    is_quoted = closing in ("'", '"') and report.text[given.span.start - 1] == closing
    whole = Span(atom.span.start, given.span.end + is_quoted)
    if ahead is not None and report.look_up(ahead, name, given.text, whole, given.span):
        return
    if name in _IMAGE_OPTIONS:
        _image(given, script)
    if match["name"] == "distributed_backend":  # with a hyphen it is Megatron's
        report.look_up(Place.KEY, name, given.text, given.span, given.span)
    elif is_long:
        values = _values(given, script)
        for value in values[1:] or values:  # a variable counts for what it is set to
            report.look_up(Place.OPTION, name, value.text, whole, value.span)


def _given(
    atom: Atom, match: re.Match[str], following: Atom | None, letter: re.Match[str] | None
) -> Atom | None:
    """The value of an option."""
    if letter is not None and letter["count"]:
        return Atom(Span(atom.span.start + 2, atom.span.end), letter["count"])
    if match["value"] is not None:
        value = match["value"].strip("'\"")
        start = atom.text.find(value, match.start("value")) + atom.span.start
        return Atom(Span(start, start + len(value)), value)
    if following is not None and not following.text.startswith("-"):
        return following
    return None


def _setting(atom: Atom, script: _Script) -> None:
    """`trainer.accelerator=gpu`, as Hydra takes settings, or several in a word; paths, images."""
    report = script.report
    match = _SETTING.match(atom.text)
    if match is None:
        return
    given = _unquoted(
        Atom(Span(atom.span.start + match.start("value"), atom.span.end), match["value"])
    )
    if _IMAGE_NAME.search(match["name"]) is not None:
        _image(given, script)
    if match["name"].isupper():
        search_path(match["name"], given, report)
        if match["name"].endswith("INDEX_URL"):
            index_url(report, given)
        return
    if "," in given.text:
        for part in _LISTED.finditer(atom.text):
            each = _unquoted(
                Atom(Span(*part.span("value")).shifted(atom.span.start), part["value"])
            )
            name = normal_name(part["name"])
            report.look_up(Place.KEY, name, each.text, each.span, each.span)
        return
    name = normal_name(match["name"])
    for value in _values(given, script):
        report.look_up(Place.KEY, name, value.text, atom.span, value.span)


def search_path(name: str, given: Atom, report: LaunchReport) -> None:
    """The first folder of CUDA in `LD_LIBRARY_PATH=/usr/local/cuda/lib64:$LD_LIBRARY_PATH`."""
    for match in _FOLDER.finditer(given.text):
        span = Span(*match.span()).shifted(given.span.start)
        if report.look_up(Place.PATH, name, match.group(), span, span):
            return


def _variables(atom: Atom, program: str, report: LaunchReport) -> None:
    """`NCCL_DEBUG=INFO`, `-x NCCL_DEBUG`, `--export=ALL,NCCL_DEBUG=INFO`."""
    for match in _SET_OR_NAMED.finditer(atom.text):
        if match[1] in _DIRECTIVES or not VARIABLE_NAME.fullmatch(match[1]):
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


def _value_of_option(atom: Atom) -> Atom:
    """Of `--index-url=https://...` the address, other words as they are."""
    option = _OPTION.match(atom.text)
    if option is None or option["value"] is None:
        return atom
    return Atom(Span(*option.span("value")).shifted(atom.span.start), option["value"])


def _value_in(atom: Atom) -> Atom:
    """The same; of `WHEEL="https://..."` the address, too."""
    assigned = ASSIGNMENT.match(atom.text)
    if assigned is None:
        return _value_of_option(atom)
    value = Span(*assigned.span("value")).shifted(atom.span.start)
    return _unquoted(Atom(value, assigned["value"]))


def _installed(atom: Atom, script: _Script) -> None:
    atom = _value_of_option(atom)
    of_release = _FOR_RELEASE.match(atom.text)
    if of_release is not None:  # any release will do to know the package
        name = f"{of_release[1]}12"
        script.report.look_up(Place.PACKAGE, name, "", atom.span, atom.span)
    elif not atom.text.startswith("-") and not _index(atom, script):
        requirement(script.report, atom.span.start, atom.text)
