"""What holds no source of a project: history, caches, environments, what builds leave."""

import os

from npulens.text.kinds import Kind, kind_by_name

LOG_FOLDER = "npulens-migration"
"""The folder in a migrated tree that says how it came about."""
STATE_FILE = "npulens-guide.json"
"""Where a project keeps what was ticked in the migration guide; nothing fixes or migrates it."""
HISTORY = frozenset({".bzr", ".git", ".hg", ".svn"})
CACHES = frozenset(
    {"__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".npulens_cache", ".pytest_cache"}
    | {".ruff_cache"}
)
ENVIRONMENTS = frozenset({".direnv", ".nox", ".tox", ".venv", "venv"})
INSTALLED = "site-packages"
BUILT = frozenset({".eggs", "build", "dist", "node_modules"})
_NAMED_LIKE_PACKAGES = frozenset({"build", "dist", "venv"})
_WRITTEN = frozenset({Kind.PYTHON, Kind.DOCKERFILE})
"""Kinds of files that no build leaves at its top."""
ENVIRONMENT_MARKERS = ("pyvenv.cfg", "conda-meta")
"""An environment of Python or Conda contains one of these."""


def is_source(folder: str) -> bool:
    """Whether a folder that is called like those above holds source all the same, by its content.

    A package, or scripts, have Python files directly in the folder, and images a Dockerfile. What
    setuptools, wheels, CMake, Sphinx, npm and PyInstaller build has them further down if at all,
    and so have environments.
    A repository of its own is somebody's source, whatever it is called.
    """
    name = os.path.basename(folder)  # noqa: PTH119
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return True  # whoever enters it says why that fails
    if ".git" in names:
        return True
    is_plain = name in _NAMED_LIKE_PACKAGES and not any(m in names for m in ENVIRONMENT_MARKERS)
    return is_plain and any(kind_by_name(each) in _WRITTEN for each in names)
