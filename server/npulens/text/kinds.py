"""What kind of file a text is: shown by its name, else by its first line.

All that is known of a kind is in its record, `KINDS`; its reader in
`checks/other_files/launch_files.py`. The list of languages of the VS Code extension is made of it.
"""

import re
from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """The kinds that npulens reads."""

    PYTHON = "python"
    SHELL = "shell"
    DOCKERFILE = "dockerfile"
    YAML = "yaml"
    JSON = "json"
    TOML = "toml"
    INI = "ini"
    REQUIREMENTS = "requirements"
    ENVIRONMENT = "dotenv"
    NATIVE = "cpp"
    CMAKE = "cmake"
    MAKE = "makefile"
    NOTEBOOK = "notebook"

    @property
    def comments(self) -> "Comments":
        """Where it may have comments."""
        return KINDS[self].comments


class Comments(Enum):
    """Where a comment that silences a finding may be.

    Attributes:
        ANYWHERE: Behind anything in a line.
        OWN_LINE: In a line of its own; behind a value it would be a part of that.
        NOWHERE: There are none, or none that npulens reads.
    """

    ANYWHERE = "anywhere"
    OWN_LINE = "own line"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class KindRecord:
    """What is known of a kind of file.

    Attributes:
        suffixes: How names of such files end, in small letters.
        names: A regular expression for names, where the suffix does not show it; with a folder in
            front where that counts. Letters are in any case.
        fence: What a block of code in Markdown calls it.
    """

    suffixes: tuple[str, ...] = ()
    names: str = ""
    languages: tuple[str, ...] = ()
    comments: Comments = Comments.ANYWHERE
    fence: str = "text"


KINDS = {
    Kind.PYTHON: KindRecord((".py", ".pyi", ".pyw"), languages=("python",), fence="python"),
    Kind.SHELL: KindRecord(
        (".sh", ".bash", ".slurm", ".sbatch", ".sb", ".pbs", ".lsf"),
        languages=("shellscript", "sh", "bash"),
        fence="bash",
    ),
    Kind.DOCKERFILE: KindRecord(
        (".dockerfile",),
        r"(?:dockerfile|containerfile)(?:[.\-_]\w[\w.\-]*)?",
        ("dockerfile",),
        Comments.OWN_LINE,
        "dockerfile",
    ),
    Kind.YAML: KindRecord(
        (".yaml", ".yml"),
        languages=("yaml", "dockercompose", "github-actions-workflow"),
        fence="yaml",
    ),
    Kind.JSON: KindRecord(
        (".json", ".jsonc"),
        languages=("json", "jsonc"),
        comments=Comments.NOWHERE,
        fence="json",
    ),
    Kind.TOML: KindRecord((".toml",), "(?-i:Pipfile)", ("toml",), fence="toml"),
    # configparser takes a comment behind a value for a part of it.
    Kind.INI: KindRecord(
        (".ini", ".cfg", ".condor", ".htcondor"),
        r"[\w.-]+\.(?:sub(?:mit(?:_file)?)?|jdl)",  # what HTCondor is given has the same form
        languages=("ini", "properties"),
        comments=Comments.NOWHERE,
        fence="ini",
    ),
    Kind.REQUIREMENTS: KindRecord(
        names=r"(?:[\w.-]*[._-])?(?:requirements?|constraints?)(?:[._\d+-][\w.+-]*)?\.(?:txt|in)"
        r"|(?-i:requirements/[^/]*\.txt)",
        languages=("pip-requirements",),
    ),
    # `docker run --env-file` takes a comment behind a value for a part of it.
    Kind.ENVIRONMENT: KindRecord(
        names=r"(?:[\w.-]+)?\.env(?:\.[\w-]+)?",
        languages=("dotenv",),
        comments=Comments.OWN_LINE,
        fence="bash",
    ),
    Kind.NATIVE: KindRecord(
        (".cu", ".cuh", ".cpp", ".cc", ".cxx"),
        languages=("cpp", "cuda-cpp"),
        comments=Comments.NOWHERE,
        fence="cpp",
    ),
    Kind.CMAKE: KindRecord(
        names=r"(?-i:CMakeLists\.txt)",
        languages=("cmake",),
        comments=Comments.OWN_LINE,
        fence="cmake",
    ),
    Kind.MAKE: KindRecord(
        (".mk",),
        r"(?-i:Makefile|makefile|GNUmakefile)",
        ("makefile",),
        Comments.OWN_LINE,
        "makefile",
    ),
    # The Python cells, as `text/notebooks.py` puts them together.
    Kind.NOTEBOOK: KindRecord((".ipynb",), fence="notebook"),
}

_SUFFIXES = {suffix: kind for kind, record in KINDS.items() for suffix in record.suffixes}
_LANGUAGES = {language: kind for kind, record in KINDS.items() for language in record.languages}
_NAMES = re.compile(
    "|".join(f"(?P<{kind.name}>{record.names})" for kind, record in KINDS.items() if record.names),
    re.IGNORECASE,
)
_SHEBANG = re.compile(r"#!\s*\S*?\b(?:env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|k|z)?sh\b")


def kind_by_name(path: str) -> Kind | None:
    """The kind that a path or URI shows, `None` if it shows none."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    dot = name.rfind(".")
    known = _SUFFIXES.get(name[dot:].lower()) if dot >= 0 else None
    if known is not None:
        return known
    found = _NAMES.fullmatch(name)
    if found is None and folder:
        found = _NAMES.fullmatch(f"{folder.rpartition('/')[2]}/{name}")
    return None if found is None or found.lastgroup is None else Kind[found.lastgroup]


def kind_by_first_line(line: str) -> Kind | None:
    """The kind that a first line shows: `#!/bin/bash`."""
    return Kind.SHELL if _SHEBANG.match(line) else None


def kind_by_language(language: str) -> Kind | None:
    """The kind of what an editor calls so."""
    return _LANGUAGES.get(language)


def kind_of(path: str, text: str) -> Kind:
    """The kind of a text; a text that shows none counts as Python, as a file named always was."""
    known = kind_by_name(path)
    if known is None and text.startswith("#!"):
        known = kind_by_first_line(text[:200].partition("\n")[0])
    return known or Kind.PYTHON
