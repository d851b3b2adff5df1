"""A configuration as TOML, in the words in which it is written."""

import json
from collections.abc import Iterator

from npulens.workspace.settings.configuration import Configuration


def shown_settings(configuration: Configuration) -> str:
    """All settings with their values, in a form that `npulens.toml` could have."""
    return "".join(f"{line}\n" for line in _lines(configuration))


def _lines(configuration: Configuration) -> Iterator[str]:
    yield f"# from {configuration.source or 'no file'}"
    origin = ""
    if configuration.torch_version is None:
        known = configuration.project_version is not None
        origin = "  # by the requirements of the project" if known else "  # the newest one known"
    yield f'torch-version = "{configuration.target.torch_version}"{origin}'
    yield f'migration-style = "{configuration.style.value}"'
    yield f"autoload = {str(configuration.autoload).lower()}"
    for key, words in (
        ("select", configuration.select),
        ("extend-select", configuration.extend_select),
        ("ignore", configuration.ignore),
        ("exclude", configuration.exclude),
        ("extend-rules", tuple(str(path) for path in configuration.extend_rules)),
    ):
        yield f"{key} = {_list(words)}"
    yield f"respect-gitignore = {str(configuration.respect_gitignore).lower()}"
    if configuration.language is None:
        yield "# language: that of the environment"
    else:
        yield f'language = "{configuration.language}"'
    if configuration.per_file_ignores:
        yield "\n[per-file-ignores]"
        for pattern, words in configuration.per_file_ignores:
            yield f"{_text(pattern)} = {_list(words)}"
    for key, severities in (
        ("severities", configuration.severities),
        ("reasons", configuration.reasons),
    ):
        if severities:
            yield f"\n[{key}]"
        for word, severity in severities:
            yield f'{_text(word)} = "{severity.value}"'


def _list(words: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _text(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
