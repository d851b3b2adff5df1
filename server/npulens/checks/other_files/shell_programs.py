"""The words of a command: which of them name a program, and which are a script themselves."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.syntax.shell_tree import Command, Word
from npulens.text.spans import Span

ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=(?P<value>[\s\S]*)\Z")
TEXT_COMMANDS = frozenset(
    {"echo", "printf", "cat", "git", "grep", "egrep", "sed", "awk", "rg", "logger", "print"}
    | {"die", "log", "info", "warn", "error", "usage", "read", "alias", "man", "apt-get", "apt"}
)
"""Those whose words are a text and run nothing."""
_INNER = {"'": re.compile(r"[^\s']+"), '"': re.compile(r'[^\s"]+')}
_STARTED = re.compile(
    r"(?:.*/)?(?:python[\d.]*|torchrun|bash|sh|accelerate|deepspeed|[\w.-]+\.(?:py|sh))\Z"
)
_RUNS_SCRIPT = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh\Z|(?:.*/)?(?:su|runuser)\Z")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c\Z|--command\Z")


class Atom(NamedTuple):
    """A word without its quotes, or one of the words inside quotes."""

    span: Span
    text: str


class _Prefix(NamedTuple):
    """A program that starts another one.

    Attributes:
        valued: Its options that take the next word.
        positions: How many words come before the other program.
        flags: Where options may take a value without being listed, those that do not.
    """

    valued: str = ""
    positions: int = 0
    flags: str | None = None


_SLURM = _Prefix(
    flags="-l -u -v -vv -Q -s -O -k -K -H -E --label --unbuffered --exclusive --overlap --pty"
    " --no-kill --quiet --verbose --contiguous --overcommit --oversubscribe --requeue --wait"
    " --no-container-entrypoint --container-writable --no-container-mount-home"
)
_MPI = _Prefix(
    "-np -n -c -H -host --host -hostfile --hostfile -machinefile -x -map-by --map-by -bind-to"
    " --bind-to -N -ppn -f -rf -mca --mca -gmca -genv -env -wdir"
)
_RUNNERS = frozenset(
    {"conda", "mamba", "micromamba", "poetry", "uv", "pipenv", "pdm", "pixi", "rye", "hatch"}
)
"""What starts a program in an environment by its command `run`."""
_RUN = _Prefix("-n --name -p --prefix --cwd -C --with --extra --group --python -e --environment")
_MOST_PROGRAMS = 10
_TWO_VALUES = frozenset({"-mca", "--mca", "-gmca", "-genv", "-env"})
_PREFIXES = {
    "sudo": _Prefix("-u -g -h -p -C -D -R -T -U -r -t"),
    "doas": _Prefix("-u -C"),
    "env": _Prefix("-u -C --unset --chdir"),
    "time": _Prefix("-f -o"),
    "exec": _Prefix("-a"),
    "eval": _Prefix(),
    "command": _Prefix(),
    "builtin": _Prefix(),
    "nohup": _Prefix(),
    "setsid": _Prefix(),
    "watch": _Prefix("-n -q"),
    "nice": _Prefix("-n"),
    "ionice": _Prefix("-c -n -p"),
    "timeout": _Prefix("-s -k", 1),
    "stdbuf": _Prefix("-i -o -e"),
    "numactl": _Prefix("-N -m -C -i -p"),
    "taskset": _Prefix("", 1),
    "flock": _Prefix("-w -E", 1),
    "xargs": _Prefix("-I -n -P -d -L -a -s -E"),
    "ssh": _Prefix("-i -p -l -o -F -J -L -R -D -b -c -e -m -O -Q -S -W -w -E -B", 1),
    "ds_ssh": _Prefix("-f --hostfile"),
    "pdsh": _Prefix("-w -x -R -l -f -t -u"),
    "srun": _SLURM,
    "salloc": _SLURM,
    "sbatch": _SLURM,
    "bsub": _Prefix("-q -n -R -J -o -e -oo -eo -W -M -gpu -P -G -m -w -cwd -env -L -u"),
    "qsub": _Prefix("-q -l -N -o -e -P -pe -v -A -j -m -M -W -J -t -S -u -hold_jid"),
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "orterun": _MPI,
    # Words of the language, where a list of settings has them as a command.
    **dict.fromkeys(("then", "else", "do", "{", "if", "elif", "while", "until", "!"), _Prefix()),
}


def programs(atoms: Sequence[Atom]) -> list[Atom]:
    """The words that say what is run: `sudo`, then `srun`, then `python`."""
    found: list[Atom] = []
    index = 0
    while index < len(atoms) and len(found) < _MOST_PROGRAMS:
        if ASSIGNMENT.match(atoms[index].text):
            index += 1
            continue
        found.append(atoms[index])
        name = base_name(atoms[index])
        prefix = _PREFIXES.get(name)
        if name in _RUNNERS and [a.text for a in atoms[index + 1 : index + 2]] == ["run"]:
            prefix, index = _RUN, index + 1
        is_probe = name == "command" and [a.text for a in atoms[index + 1 : index + 2]] == ["-v"]
        if prefix is None or is_probe:
            break
        index = _behind(prefix, atoms, index + 1)
    return found


def base_name(program: Atom | None) -> str:
    """The name of a program without its folder."""
    return "" if program is None else program.text.rpartition("/")[2]


def is_started(atom: Atom) -> bool:
    """Whether a word is likely to be a program that another one starts."""
    return _STARTED.match(atom.text) is not None


def _behind(prefix: _Prefix, atoms: Sequence[Atom], index: int) -> int:
    """Where the options of a prefix end."""
    positions = prefix.positions
    while index < len(atoms):
        word = atoms[index].text
        if word == "--":
            return index + 1
        if word.startswith("-") and len(word) > 1:
            index += 1 + _values(prefix, word, atoms[index + 1 : index + 2])
        elif ASSIGNMENT.match(word):
            index += 1
        elif positions:
            positions -= 1
            index += 1
        else:
            break
    return index


def _values(prefix: _Prefix, option: str, following: Sequence[Atom]) -> int:
    """How many words behind an option belong to it."""
    if option in prefix.valued.split():
        return 2 if option in _TWO_VALUES else 1
    if prefix.flags is None or "=" in option or option in prefix.flags.split():
        return 0
    if not option.startswith("--") and len(option) > 2:
        return 0  # `-N2`
    is_value = following and not following[0].text.startswith("-") and not is_started(following[0])
    return 1 if is_value else 0


def atoms_of(words: Sequence[Word], text: str) -> list[Atom]:
    """The words without their quotes; those inside of quotes one by one."""
    return [atom for word in words for atom in _atoms_of_word(word, text)]


def _atoms_of_word(each: Word, text: str) -> Iterator[Atom]:
    start, end = each.span
    word = each.text(text)
    assigned = ASSIGNMENT.match(word) if "=" in word else None
    quoted = assigned.start("value") if assigned is not None else 0
    inner = word[quoted:]
    if inner[:1] in ("'", '"') and any(space in inner for space in " \t\n"):
        if quoted:
            yield Atom(Span(start, start + quoted), word[:quoted])
        for match in _INNER[inner[0]].finditer(word, quoted):
            yield Atom(Span(*match.span()).shifted(start), match.group())
    elif len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        yield Atom(Span(start + 1, end - 1), word[1:-1])
    else:
        yield Atom(Span(start, end), word)


def assigned_values(word: Word, text: str) -> tuple[str, list[Atom]] | None:
    """The name and the words of `NAME=value`, `NAME="a b"` and `NAME=(a b)`."""
    shown = word.text(text)
    match = ASSIGNMENT.match(shown) if "=" in shown else None
    if match is None:
        return None
    for hole, block in word.inner:
        elements = block.steps[0].node if block.steps else None
        is_array = isinstance(elements, Command) and elements.is_array
        if is_array and isinstance(elements, Command) and hole.end == word.span.end:
            return match["name"], atoms_of(elements.words, text)
    value = Word(Span(word.span.start + match.start("value"), word.span.end), word.inner)
    return match["name"], list(_atoms_of_word(value, text))


def scripts(command: Command, text: str) -> list[tuple[Word, Span]]:
    """The words that are scripts themselves, each with what is inside of its quotes.

    `bash -c '...'`, `su -c '...'`, also behind `docker run image` and the like; what `ssh` and
    `eval` are passed in quotes, as more than one word.
    """
    found = []
    previous, has_shell, has_ssh = "", False, False
    for word in command.words:
        raw = text[slice(*word.span)]
        inside = inside_quotes(word, text)
        is_option = _SCRIPT_OPTION.match(previous) is not None
        is_all = previous == "eval" or (has_ssh and not is_option)
        if inside is not None and previous and (is_all or (has_shell and is_option)):
            found.append((word, inside))
        has_shell = has_shell or _RUNS_SCRIPT.match(raw) is not None
        has_ssh = has_ssh or raw == "ssh"
        previous = raw
    return found


def inside_quotes(word: Word, text: str) -> Span | None:
    """What is inside of the quotes of a word that is in quotes as a whole."""
    raw = text[slice(*word.span)]
    if len(raw) < 2 or raw[0] not in "'\"" or raw[-1] != raw[0]:
        return None
    return Span(word.span.start + 1, word.span.end - 1)
