"""Whether a project only uses models, and trains none."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.project.unused import runs_alone

_WITHOUT_GRADIENT = re.compile(rb"\b(?:no_grad|inference_mode)\b")
_MAY_TRAIN = re.compile(
    rb"backward|\boptim\b|[oO]ptimizer|Trainer|Lightning|autograd|requires_grad|\.(?:fit|train)\("
)
"""Of this, one is wherever gradients are computed; most of it stands elsewhere too."""


def only_infers(
    modules: Modules,
    files: Sequence[Path],
    folders: Iterable[Path],
    contents: Contents,
    memo: FactMemo,
) -> bool:
    """Whether a project turns gradients off, and no module or notebook of it may compute any.

    Only whole projects are looked at that nobody can install: others may train what they find.
    """
    if not runs_alone(folders):
        return False

    notebooks = (contents.of(file) for file in files if file.suffix == ".ipynb")
    turns_off = False
    for content in chain(modules.values(), notebooks):
        if _may_train(content, memo):
            return False
        turns_off = turns_off or _turns_off(content, memo)
    return turns_off


def _turns_off(content: Content, memo: FactMemo) -> bool:
    data = content.data
    return memo.is_so(
        "turns gradients off", content.digest, lambda: _WITHOUT_GRADIENT.search(data) is not None
    )


def _may_train(content: Content, memo: FactMemo) -> bool:
    data = content.data
    # What is too large to be read is empty here, and may hold anything.
    return not data or memo.is_so(
        "may train", content.digest, lambda: _MAY_TRAIN.search(data) is not None
    )
