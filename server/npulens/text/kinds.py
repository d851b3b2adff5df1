"""What kind of file a text is: its name tells, and where that is silent, its first line."""

import re
from enum import Enum


class Kind(str, Enum):
    """The kinds that npulens reads; a new one gets its names below and its reader in `checks/`."""

    PYTHON = "python"
    SHELL = "shell"
    DOCKERFILE = "dockerfile"
    YAML = "yaml"
    JSON = "json"
    TOML = "toml"
    INI = "ini"
    REQUIREMENTS = "requirements"
    ENVIRONMENT = "dotenv"
    """Variables as `.env` files have them."""
    NATIVE = "cpp"
    """C++ and CUDA."""
    CMAKE = "cmake"
    MAKE = "makefile"
    NOTEBOOK = "notebook"
    """The Python cells of a notebook, as `text/notebooks.py` puts them together."""


_SUFFIXES = {
    ".py": Kind.PYTHON,
    ".pyi": Kind.PYTHON,
    ".pyw": Kind.PYTHON,
    ".ipynb": Kind.NOTEBOOK,
    ".sh": Kind.SHELL,
    ".bash": Kind.SHELL,
    ".slurm": Kind.SHELL,
    ".sbatch": Kind.SHELL,
    ".sb": Kind.SHELL,
    ".pbs": Kind.SHELL,
    ".lsf": Kind.SHELL,
    ".dockerfile": Kind.DOCKERFILE,
    ".yaml": Kind.YAML,
    ".yml": Kind.YAML,
    ".json": Kind.JSON,
    ".jsonc": Kind.JSON,
    ".toml": Kind.TOML,
    ".ini": Kind.INI,
    ".cfg": Kind.INI,
    ".mk": Kind.MAKE,
    ".cu": Kind.NATIVE,
    ".cuh": Kind.NATIVE,
    ".cpp": Kind.NATIVE,
    ".cc": Kind.NATIVE,
    ".cxx": Kind.NATIVE,
}
_DOCKERFILE = re.compile(r"(?:dockerfile|containerfile)(?:[.\-_]\w[\w.\-]*)?\Z", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"(?:[\w.-]*[._-])?(?:requirements?|constraints?)(?:[._\d+-][\w.+-]*)?\.(?:txt|in)\Z",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(r"(?:[\w.-]+)?\.env(?:\.[\w-]+)?\Z", re.IGNORECASE)
_SHEBANG = re.compile(r"#!\s*\S*?\b(?:env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|k|z)?sh\b")
_EDITOR_LANGUAGES = {
    "python": Kind.PYTHON,
    "shellscript": Kind.SHELL,
    "sh": Kind.SHELL,
    "bash": Kind.SHELL,
    "dockerfile": Kind.DOCKERFILE,
    "yaml": Kind.YAML,
    "dockercompose": Kind.YAML,
    "github-actions-workflow": Kind.YAML,
    "json": Kind.JSON,
    "jsonc": Kind.JSON,
    "toml": Kind.TOML,
    "ini": Kind.INI,
    "properties": Kind.INI,
    "pip-requirements": Kind.REQUIREMENTS,
    "dotenv": Kind.ENVIRONMENT,
    "cpp": Kind.NATIVE,
    "cuda-cpp": Kind.NATIVE,
    "cmake": Kind.CMAKE,
    "makefile": Kind.MAKE,
}


def kind_by_name(path: str) -> Kind | None:
    """The kind that a path or URI tells, `None` if it tells none."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    dot = name.rfind(".")
    known = _SUFFIXES.get(name[dot:].lower()) if dot >= 0 else None
    if known is not None:
        return known
    if name == "Pipfile":
        return Kind.TOML
    if name == "CMakeLists.txt":
        return Kind.CMAKE
    if name in ("Makefile", "makefile", "GNUmakefile"):
        return Kind.MAKE
    if _DOCKERFILE.match(name):
        return Kind.DOCKERFILE
    if _REQUIREMENTS.match(name) or (
        name.endswith(".txt") and folder.rpartition("/")[2] == "requirements"
    ):
        return Kind.REQUIREMENTS
    return Kind.ENVIRONMENT if _ENVIRONMENT.match(name) else None


def kind_by_first_line(line: str) -> Kind | None:
    """The kind that a first line tells: `#!/bin/bash`."""
    return Kind.SHELL if _SHEBANG.match(line) else None


def kind_by_language(language: str) -> Kind | None:
    """The kind of what an editor calls so."""
    return _EDITOR_LANGUAGES.get(language)


def kind_of(path: str, text: str) -> Kind:
    """The kind of a text; what tells nothing is taken for Python, as a file named always was."""
    known = kind_by_name(path)
    if known is None and text.startswith("#!"):
        known = kind_by_first_line(text[:200].partition("\n")[0])
    return known or Kind.PYTHON
