"""Modules that a project imports and does not hold, which say by their name that they are for CUDA.

`import iou3d_cuda` of an extension that is built elsewhere: no table knows it, and it fails on the
NPU all the same.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from npulens.catalog.tables import Catalogue
from npulens.workspace.index.contents import Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words, imported_modules

_FOR_CUDA = re.compile(r"(?:\w+_)?cuda_\w+|\w+_cuda", re.IGNORECASE)


def foreign_extensions(
    files: Iterable[Path], modules: Modules, catalogue: Catalogue, memo: FactMemo
) -> frozenset[str]:
    """The names of such modules, as far as no rule speaks of them."""
    found = {
        root
        for content in modules.values()
        if any(map(_FOR_CUDA.fullmatch, import_words(content, memo).all))
        for root in (name.partition(".")[0] for name in imported_modules(content.data))
        if _FOR_CUDA.fullmatch(root)
    }
    if not found:
        return frozenset()
    known = {name.partition(".")[0] for name in catalogue.libraries}
    own = {part for file in files for part in (file.stem.partition(".")[0], *file.parts)}
    return frozenset(found - known - own)
