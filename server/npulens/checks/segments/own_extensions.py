"""Extension modules that the project builds of CUDA code, as the imports of a module have them."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.catalog.project_model import ExtensionName, ProjectFacts
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.values import names_around

EXTENSION, BOUND = "extension", "bound"
"""Arguments of a finding: which extension it is about, and the name bound to that."""
_Named = frozenset[tuple[str, str, ExtensionName]]


@dataclass(frozen=True)
class OwnExtensions:
    """The extensions of a project, seen from one module.

    Attributes:
        names: Where they are found, by package or module and name.
    """

    names: OtherModules[ExtensionName]

    def find(self, qualified: str) -> ExtensionName | None:
        """The extension that a name is; several of one name are distinguished by what is nearest.

        The name is that of an import: `pack._C` or `.backend.kernels`.
        """
        found = self.names.find(qualified)
        if found is not None or qualified.startswith("."):
            return found
        same = _by_module(self.names.known).get(qualified, ())
        return max(same, key=self._nearness, default=None)

    def around(self, qualified: str) -> ExtensionName | None:
        """The extension that a name is taken from."""
        owners = [name for name in names_around(qualified) if name.strip(".")][1:]
        return next(filter(None, map(self.find, owners)), None)

    def _nearness(self, extension: ExtensionName) -> tuple[int, str]:
        own, other = self.names.path.split("/"), extension.build.split("/")
        same = (
            index for index, pair in enumerate(zip(own, other, strict=False)) if len({*pair}) > 1
        )
        return next(same, 0), extension.build


@lru_cache(maxsize=16)
def _by_module(known: _Named) -> Mapping[str, tuple[ExtensionName, ...]]:
    """The extensions that can be imported, by their full names."""
    found: dict[str, set[ExtensionName]] = {}
    for _, _, extension in known:
        if not extension.is_loaded:
            found.setdefault(extension.module, set()).add(extension)
    return {module: tuple(sorted(each)) for module, each in found.items()}


def who_builds(extension: ExtensionName, project: ProjectFacts) -> LocalizedText:
    """Which file builds an extension, and where in it, for people."""
    place = project.place_of(extension.build)
    if project.root and place == extension.build:
        place = posixpath.relpath(place, project.root)
    where = f"{place}:{extension.line}"
    return message("check.built-by", where=where)
