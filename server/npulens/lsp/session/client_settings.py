"""What the user has set in the editor: the keys of the configuration, and some of the server."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from npulens.catalog.messages import about, message
from npulens.catalog.model import Language
from npulens.workspace.settings.configuration import (
    ConfigurationError,
    Settings,
    quoted_choices,
    read_settings,
)

SECTION = "npulens"
PLACE = f"settings of the editor ({SECTION})"
_LEVELS = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_SWITCHES = {
    "codeLens": "code_lens",
    "shapeLens": "shape_lens",
    "cache": "cache",
}


class ShownShapes(Enum):
    """Whose symbolic shapes are shown within lines."""

    ALL = "all"
    DYNAMIC = "dynamic"
    OFF = "off"


@dataclass(frozen=True)
class ClientSettings:
    """The settings for one folder of the workspace.

    Attributes:
        project: What counts where the configuration of the project says nothing.
        language: The language that the user requested, or `None`.
        log_level: From which level on records are sent to the client.
        code_lens: Whether the state of a file is shown above its first line.
        shape_lens: Whether what functions take and give is shown above them.
        inlay_hints: Whose shapes are shown within lines: of all names, of those in functions with
            dynamic shapes and host syncs, or of none.
        cache: Whether what is found in the files of the workspace is kept in `.npulens_cache`.
    """

    project: Settings = field(default_factory=lambda: MappingProxyType({}))
    language: Language | None = None
    log_level: int = logging.WARNING
    code_lens: bool = True
    shape_lens: bool = True
    inlay_hints: ShownShapes = ShownShapes.ALL
    cache: bool = True


def read_client_settings(given: object, folder: Path | None) -> ClientSettings:
    """The settings of a folder as the client sends them; nothing is as good as an empty object.

    Raises:
        ConfigurationError: A key is not known, or its value not what it should be.
    """
    if given is None:
        return ClientSettings()
    if not isinstance(given, Mapping):
        raise ConfigurationError(about(PLACE, message("settings.object")))
    table: dict[str, Any] = {str(key): value for key, value in given.items()}
    level = table.pop("logLevel", None)
    if level is not None and (not isinstance(level, str) or level not in _LEVELS):
        levels = quoted_choices(_LEVELS)
        problem = message("settings.choice", key="logLevel", choices=levels)
        raise ConfigurationError(about(PLACE, problem))
    hints = table.pop("inlayHints", None)
    choices = [each.value for each in ShownShapes]
    if hints is not None and hints not in choices:
        problem = message("settings.choice", key="inlayHints", choices=quoted_choices(choices))
        raise ConfigurationError(about(PLACE, problem))
    shown = ShownShapes(hints) if hints is not None else ShownShapes.ALL
    switches: dict[str, Any] = {"inlay_hints": shown}
    for key, name in _SWITCHES.items():
        value = table.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise ConfigurationError(about(PLACE, message("settings.switch", key=key)))
        if value is not None:
            switches[name] = value
    project = dict(read_settings(table, PLACE, folder or Path()))
    language = project.pop("language", None)
    log_level = _LEVELS[level] if level is not None else logging.WARNING
    return ClientSettings(MappingProxyType(project), language, log_level, **switches)
