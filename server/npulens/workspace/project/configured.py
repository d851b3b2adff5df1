"""Activations that configurations name by default, where models say `config.hidden_act` only."""

import re
from collections.abc import Iterator

from npulens.workspace.project.contents import Content, Modules
from npulens.workspace.project.handing_on import handed_on, place_of
from npulens.workspace.project.memo import Memo, text

_CLASS = re.compile(r"^class (\w{1,80}Config)\b", re.MULTILINE)
_AFTER = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
"""What stands behind a class begins in the first column."""
_DEFAULT = re.compile(
    r"(?:^[ \t]+|[(,][ \t]*)(\w{0,60}act(?:ivation)?(?:_\w{1,60})?)[ \t]*(?::[^=,\n]{1,80})?"
    r"=[ \t]*[\"'](\w{1,60})[\"']",
    re.MULTILINE,
)
"""A parameter of a constructor, or a field: `hidden_act: str = "silu"`."""
_Defaults = tuple[tuple[str, str], ...]


def configured_activations(modules: Modules, memo: Memo) -> frozenset[tuple[str, str, _Defaults]]:
    """Classes of configurations with the activations that they name, by their attributes.

    Args:
        modules: The Python files of the project.
        memo: What is known of them.
    """
    found = {
        (place_of(file), name): defaults
        for file, content in modules.items()
        if b"Config" in content.data and b"act" in content.data
        for name, defaults in _classes(content, memo)
    }
    found.update(handed_on(modules, found, memo))
    return frozenset((path, name, defaults) for (path, name), defaults in found.items())


def _classes(content: Content, memo: Memo) -> list[tuple[str, _Defaults]]:
    def answer() -> list[tuple[str, list[tuple[str, str]]]]:
        return [(name, found) for name, found in _described(content.text) if found]

    return memo.recall("activations", (content.digest,), answer, _read)


def _described(source: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for head in _CLASS.finditer(source):
        after = _AFTER.search(source, head.end())
        end = len(source) if after is None else after.start()
        defaults = _DEFAULT.finditer(source, head.end(), end)
        yield head[1], sorted({found[1]: found[2] for found in defaults}.items())


def _read(plain: list[tuple[str, list[tuple[str, str]]]]) -> list[tuple[str, _Defaults]]:
    return [
        (text(name), tuple((text(attribute), text(value)) for attribute, value in defaults))
        for name, defaults in plain
    ]
