"""Whether a project only uses models, and trains none."""

import re
from collections.abc import Iterable
from pathlib import Path

from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.project.unused import may_be_used_elsewhere

_WITHOUT_GRADIENT = re.compile(rb"\b(?:no_grad|inference_mode)\b")
_MAY_TRAIN = re.compile(
    rb"backward|\boptim\b|[oO]ptimizer|Trainer|Lightning|autograd|requires_grad|\.(?:fit|train)\("
)
"""Of this, one is wherever gradients are computed; most of it stands elsewhere too."""


def only_infers(modules: Modules, folders: Iterable[Path], memo: FactMemo) -> bool:
    """Whether a project turns gradients off, and no module of it may compute any.

    Only whole projects are looked at that nobody can install: others may train what they find.
    """
    if not any(_turns_off(content, memo) for content in modules.values()):
        return False
    if any(_may_train(content, memo) for content in modules.values()):
        return False
    named = list(folders)
    return bool(named) and not any(map(may_be_used_elsewhere, named))


def _turns_off(content: Content, memo: FactMemo) -> bool:
    data = content.data
    return memo.is_so(
        "turns gradients off", content.digest, lambda: _WITHOUT_GRADIENT.search(data) is not None
    )


def _may_train(content: Content, memo: FactMemo) -> bool:
    data = content.data
    return memo.is_so("may train", content.digest, lambda: _MAY_TRAIN.search(data) is not None)
