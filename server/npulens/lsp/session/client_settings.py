"""What the user has set in the editor: the keys of the configuration, and some of the server."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "inlayHints": "inlay_hints",
    "allShapes": "all_shapes",
    "cache": "cache",
}


@dataclass(frozen=True)
class ClientSettings:
    """The settings for one folder of the workspace.

    Attributes:
        project: What counts where the configuration of the project says nothing.
        language: The language that the user requested, or `None`.
        log_level: From which level on records are sent to the client.
        code_lens: Whether the state of a file is shown above its first line.
        inlay_hints: Whether hints are shown within lines.
        all_shapes: Whether they are shown in all functions, also in those without dynamic shapes.
        cache: Whether what is found in the files of the workspace is kept in `.npulens_cache`.
    """

    project: Settings = field(default_factory=lambda: MappingProxyType({}))
    language: Language | None = None
    log_level: int = logging.WARNING
    code_lens: bool = True
    inlay_hints: bool = True
    all_shapes: bool = False
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
        choices = quoted_choices(_LEVELS)
        problem = message("settings.choice", key="logLevel", choices=choices)
        raise ConfigurationError(about(PLACE, problem))
    switches: dict[str, bool] = {}
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
