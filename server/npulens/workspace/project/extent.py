"""Which files a project consists of, however some of them were named."""

from collections.abc import Iterable
from pathlib import Path

from npulens.workspace.files.discovery import Discovery, discover_for
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.settings.configuration import Configuration, absolute


def whole_projects(found: Discovery, configuration: Configuration) -> tuple[list[Path], list[Path]]:
    """The files of all projects that files belong to, and their folders, by paths from the root.

    What is known of a project then does not depend on which of its files were named. Where nothing
    marks a project, it is what was named.
    """
    files = [absolute(file) for file in found.files]
    named = [absolute(folder) for folder in found.folders]
    roots = _roots(file.parent for file in files)
    wider = [root for root in roots if root not in named]
    if not wider:
        return files, named
    around = discover_for(configuration, [str(root) for root in wider]).files
    return list(dict.fromkeys((*around, *files))), list(dict.fromkeys((*roots, *named)))


def _roots(folders: Iterable[Path]) -> list[Path]:
    """The marked projects that folders belong to, each once."""
    found = (project_root(folder / "file") for folder in dict.fromkeys(folders))
    return list(dict.fromkeys(root for root in found if root is not None))
