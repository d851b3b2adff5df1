"""Activations that configurations name by default, where models say `config.hidden_act` only."""

import re
from bisect import bisect_right

from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, text
from npulens.workspace.index.re_exports import packages, place_of, re_exported, triples

_NAMED = re.compile(
    r"act(?:ivation)?(?:_\w{1,60})?[ \t]*(?::[^=,\n]{1,80})?=[ \t]*[\"'](\w{1,60})[\"']"
)
"""A parameter of a constructor, or a field, from some part of its name on: `act: str = "silu"`."""
_BEFORE = re.compile(r"(?:\A|[\s(,])(\w{0,60})\Z")
_NAME = re.compile(r"\w+")
_HEAD = re.compile(r"\n(?:class (\w{1,80}Config)\b|class |def |@)")
_LONGEST = 80
_Defaults = tuple[tuple[str, str], ...]


def configured_activations(
    modules: Modules, memo: FactMemo
) -> frozenset[tuple[str, str, _Defaults]]:
    """Classes of configurations with the activations that they name, by their attributes."""
    found = {
        (place_of(file), name): defaults
        for file, content in modules.items()
        if _may_name(content, memo)
        for name, defaults in _classes(content, memo)
    }
    found.update(re_exported(packages(modules), found, memo))
    return triples(found)


def _may_name(content: Content, memo: FactMemo) -> bool:
    """Whether a module may hold such a class."""
    data = content.data
    return memo.is_so("configures", content.digest, lambda: b"Config" in data and b"act" in data)


def _classes(content: Content, memo: FactMemo) -> list[tuple[str, _Defaults]]:
    def answer() -> list[tuple[str, list[tuple[str, str]]]]:
        return [(name, sorted(found.items())) for name, found in _described(content.text).items()]

    return memo.recall("activations", (content.digest,), answer, _read)


def _described(source: str) -> dict[str, dict[str, str]]:
    """The classes of a module with what they name, determined from the text."""
    found = list(_NAMED.finditer(source))
    heads = list(_HEAD.finditer(f"\n{source}")) if found else []
    starts = [head.start() for head in heads]
    classes: dict[str, dict[str, str]] = {}
    for named in found:
        index = bisect_right(starts, named.start()) - 1
        owner = heads[index][1] if index >= 0 else None
        before = _BEFORE.search(source, max(0, named.start() - _LONGEST), named.start())
        name = None if before is None else _NAME.match(source, before.start(1))
        if owner is not None and name is not None:
            classes.setdefault(owner, {})[name[0]] = named[1]
    return classes


def _read(plain: list[tuple[str, list[tuple[str, str]]]]) -> list[tuple[str, _Defaults]]:
    return [
        (text(name), tuple((text(attribute), text(value)) for attribute, value in defaults))
        for name, defaults in plain
    ]
