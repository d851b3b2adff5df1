"""The modules of a project that a script of it imports."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from npulens.workspace.fixing.change_log import relative_path
from npulens.workspace.fixing.rewriting_files import UnreadableError, read_source

if TYPE_CHECKING:
    from npulens.fixes.multi_device.script_rewriting import FindFile, ProjectFile


def project_file(root: Path, path: Path, name: str) -> "ProjectFile":
    """A file of a project.

    Args:
        root: The root of the project.
        path: The file.
        name: Its full name as a module.

    Raises:
        UnreadableError: It cannot be read.
    """
    from npulens.fixes.multi_device.script_rewriting import ProjectFile

    text = read_source(path).text
    return ProjectFile(relative_path(path, root), name, text, path.name == "__init__.py")


def started_file(root: Path, entry: Path) -> "ProjectFile":
    """The script that is started.

    Raises:
        UnreadableError: It cannot be read.
    """
    parts = entry.relative_to(root).with_suffix("").parts
    return project_file(root, entry, ".".join(parts))


def project_modules(root: Path, entry: Path) -> "FindFile":
    """Finds modules by their full names, as the script that is run would import them.

    Its folder is where Python looks first. Scripts put the folders above it on the path of Python.

    Args:
        root: The root of the project.
        entry: The script.
    """
    folders = [p for p in entry.parents if p.is_relative_to(root)]

    @cache
    def find(name: str) -> "ProjectFile | None":
        parts = name.split(".")
        for folder in folders:
            for path in (folder.joinpath(*parts, "__init__.py"), _module(folder, parts)):
                if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                    try:
                        return project_file(root, path, name)
                    except UnreadableError:
                        return None
        return None

    return find


def _module(folder: Path, parts: list[str]) -> Path:
    return folder.joinpath(*parts[:-1], f"{parts[-1]}.py")
