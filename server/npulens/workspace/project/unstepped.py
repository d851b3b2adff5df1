"""Optimizers that an object keeps and nothing of a project steps."""

import re
from collections.abc import Iterable
from pathlib import Path

from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, texts
from npulens.workspace.project.unused import runs_alone

_KEPT = re.compile(
    rb"\bself\.(\w+)[ \t]*=[ \t]*(?:torch\.)?(?:optim\.)?"
    rb"(?:Adam|AdamW|SGD|RMSprop|Adadelta|RMSpropTF|AdamP)\("
)
_SCHEDULED = re.compile(rb"(?:[sS]chedul\w*|LR|lr)\((?:\s*optimizer\s*=)?\s*self\.\Z")
_HARMLESS = re.compile(
    rb"[ \t]*=(?!=)|\.(?:state_dict|load_state_dict|param_groups|zero_grad|defaults)\b"
)
"""What is done to an optimizer that steps nothing."""
_BACK = 60


def unstepped_optimizers(
    modules: Modules, folders: Iterable[Path], memo: FactMemo
) -> frozenset[str]:
    """Attributes that hold an optimizer which is only made, saved and given to a scheduler.

    Only whole projects are looked at that nobody can install: others may step what they find.
    """
    if not runs_alone(folders):
        return frozenset()
    kept = {name for content in modules.values() for name in _kept_in(content, memo)}
    datas = [content.data for content in modules.values()]
    return frozenset(
        name for name in kept if not any(_may_step(data, name.encode()) for data in datas)
    )


def _kept_in(content: Content, memo: FactMemo) -> tuple[str, ...]:
    """The attributes that a module has for optimizers."""

    def answer() -> list[str]:
        found = _KEPT.findall(content.data) if b"optim" in content.data else []
        return [name.decode() for name in found]

    return memo.recall("kept optimizers", (content.digest,), answer, texts)


def _may_step(data: bytes, name: bytes) -> bool:
    """Whether a module does more with what has this name, or names it in a way not understood."""
    return name in data and any(
        _HARMLESS.match(data, found.end()) is None
        and _SCHEDULED.search(data, max(found.start() - _BACK, 0), found.start()) is None
        for found in re.finditer(rb"\b%b\b" % re.escape(name), data)
    )
