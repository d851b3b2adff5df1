"""Places in scripts, Dockerfiles, settings and lists of requirements, by words in their lines."""

import re
from collections.abc import Callable, Iterator

from measure.place import REQUIREMENT, VARIABLE, Place

Line = tuple[int, str]
Found = tuple[int, str, str]

_COMMENT = re.compile(r"(?:\A|(?<=\s))#.*")
_PROGRAM = re.compile(r"(?<![\w./$-])(?:/[\w/.-]*/)?(nvidia-smi|nvcc|nvidia-docker)(?![\w-])")
_IMAGE = re.compile(
    r"\bnvidia/cuda:[\w.${}-]+|\bpytorch/pytorch:[\w.${}-]*cuda[\w.-]*|\bnvcr\.io/[\w/.:-]+"
)
_SCHEDULER = re.compile(r"\b(?:docker|podman|nvidia-docker|srun|sbatch|salloc)\b|#SBATCH")
_CARDS = re.compile(
    r"--(?:gpus|gres[= ]\s*gpu|gpus-per-(?:node|task)|runtime[= ]nvidia)(?![\w-])\S*"
)
_WHEELS = re.compile(r"download\.pytorch\.org/whl/(?:\w+/)?cu\w*|\+cu1\d\d\b")
_INSTALL = re.compile(r"\b(?:pip3?|conda|mamba|uv)\b.*?\b(?:install|add|create)\b(.*)")
_SETTING = re.compile(
    r"""\s*(?:-\s+)?["']?[\w.-]*(?P<name>device|backend|accelerator)s?["']?\s*[:=]\s*
    ["']?(?P<value>cuda(?::\d+)?|nccl|gpu)["']?\s*,?\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(r"""["']([^"']+)["']""")
_NO_PACKAGE = re.compile(r"(?:\A|\{)\s*(?:extra|name|index)\s*=|\A[\w-]+\s*=\s*\[")
"""A line of TOML that gives a name to something, or holds tables."""
_PACKAGES = re.compile(r"""\A\s*(?:-\s+)?["']?(.+?)["']?\s*,?\Z""")


def text_places(path: str, text: str) -> list[Place]:
    """The places of a file that is not Python; empty if it is of no kind that is listed."""
    read = _reader(path, text)
    if read is None:
        return []
    lines = list(enumerate(text.split("\n"), 1))
    return sorted({Place(path, *found) for found in read(lines)})


def _reader(path: str, text: str) -> Callable[[list[Line]], Iterator[Found]] | None:
    """What reads a file, by its name or its first line."""
    name = path.rpartition("/")[2].lower()
    if name.endswith((".sh", ".bash", ".slurm", ".sbatch", ".zsh")) or _is_script(text):
        return _of_script
    if "dockerfile" in name and not name.endswith((".md", ".py", ".dockerignore")):
        return _of_script
    if name.endswith((".yaml", ".yml")):
        return None if "ISSUE_TEMPLATE" in path else _of_settings
    if re.fullmatch(r".*requirements?[\w.-]*\.(?:txt|in)", name) or (
        name.endswith(".txt") and "requirements/" in path
    ):
        return _of_requirements
    return _of_tables if name in ("pyproject.toml", "setup.cfg") else None


def _is_script(text: str) -> bool:
    return re.match(r"#!.*\b(?:ba|z|k)?sh\b", text) is not None


def _of_script(lines: list[Line]) -> Iterator[Found]:
    """Shell and Dockerfiles; lines that end with a backslash go on."""
    command = ""
    for number, line in lines:
        is_order = line.startswith("#SBATCH")
        code = line if is_order else _COMMENT.sub("", line)
        if not code.strip():
            continue
        command += code
        yield from _anywhere(number, code)
        if _SCHEDULER.search(command):
            yield from ((number, "cards", m.group()) for m in _CARDS.finditer(code))
        install = _INSTALL.search(command)
        if install is not None:
            yield from _installed(number, code)
        command = command[:-1] if code.rstrip().endswith("\\") else ""


def _installed(number: int, code: str) -> Iterator[Found]:
    """Packages for CUDA in a line of an installing command."""
    for word in code.split():
        plain = word.strip("\"'\\;&")
        if REQUIREMENT.match(plain) and not plain.startswith(("-", "+")):
            yield number, "requirement", plain


def _of_settings(lines: list[Line]) -> Iterator[Found]:
    """YAML: devices, variables, and what may stand in commands and lists of packages."""
    key = ""
    for number, line in lines:
        code = _COMMENT.sub("", line).rstrip()
        key = code.strip() if code.endswith(":") else key
        yield from _anywhere(number, code)
        setting = _SETTING.match(code)
        if setting is not None:
            yield number, "setting", code.strip()
        packages = _PACKAGES.match(code)
        is_channel = key == "channels:" or not code.lstrip().startswith("- ")
        if packages and not is_channel and REQUIREMENT.match(packages[1]):
            yield number, "requirement", packages[1]


def _of_requirements(lines: list[Line]) -> Iterator[Found]:
    for number, line in lines:
        code = _COMMENT.sub("", line).strip()
        if REQUIREMENT.match(code):
            yield number, "requirement", code
        elif _WHEELS.search(code):
            yield number, "wheels", code


def _of_tables(lines: list[Line]) -> Iterator[Found]:
    """Dependencies in TOML and INI: strings, and keys with a version."""
    for number, line in lines:
        code = _COMMENT.sub("", line).strip()
        if _NO_PACKAGE.search(code):
            continue
        for word in _QUOTED.findall(code) or [code]:
            if REQUIREMENT.match(word):
                yield number, "requirement", word
            elif _WHEELS.search(word):
                yield number, "wheels", word


def _anywhere(number: int, code: str) -> Iterator[Found]:
    """What belongs to NVIDIA's world wherever it stands in a line."""
    for kind, pattern in (
        ("variable", VARIABLE),
        ("program", _PROGRAM),
        ("image", _IMAGE),
        ("wheels", _WHEELS),
    ):
        yield from ((number, kind, match.group().strip()) for match in pattern.finditer(code))
