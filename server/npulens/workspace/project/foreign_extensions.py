"""Modules that a project imports and does not hold, and that are CUDA code by their name.

`import iou3d_cuda` of an extension that is built elsewhere: no table knows it, and it fails on the
NPU all the same. Of `import fast_kernels` the name does not say for what it is compiled.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.tables import Catalogue
from npulens.text.late_patterns import late
from npulens.workspace.index.contents import Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words, imported_modules

_FOR_CUDA = late(r"(?:\w+_)?cuda_\w+|\w+_cuda|\w*diff_\w*(?:rasteri[sz]|gauss)\w*", re.IGNORECASE)
_OF_KERNELS = late(
    r"_C|_ext|\w+_(?:kernels?|c?ext)"
    r"|(?:\w+_)?flash_(?:attn|attention|decod|mla|linear)\w*|\w*gaussian_rasteri[sz]\w*"
)
"""How extensions of PyTorch are called, and few others."""
_SHORTEST = 5
"""Of the name of a library with whose name the name of such a module may begin."""


class ForeignExtensions(NamedTuple):
    """The names of such modules, as far as no rule speaks of them.

    Attributes:
        certain: They are for CUDA.
        likely: They are compiled, of modules that use PyTorch.
    """

    certain: frozenset[str] = frozenset()
    likely: frozenset[str] = frozenset()


def foreign_extensions(
    files: Iterable[Path], modules: Modules, catalogue: Catalogue, memo: FactMemo
) -> ForeignExtensions:
    """The modules of both kinds that a project imports."""
    libraries = {name for name in catalogue.missing_libraries if len(name) >= _SHORTEST}
    certain: set[str] = set()
    likely: set[str] = set()
    for content in modules.values():
        words = import_words(content, memo).all
        named = set(_named(words, libraries))
        if not named:
            continue
        roots = {name.partition(".")[0] for name in imported_modules(content.data)} & named
        certain |= {root for root in roots if _FOR_CUDA.fullmatch(root)}
        likely |= roots if "torch" in words else set()
    if not certain and not likely:
        return ForeignExtensions()
    known = {name.partition(".")[0] for name in catalogue.libraries}
    own = {part for file in files for part in (file.stem.partition(".")[0], *file.parts)}
    return ForeignExtensions(
        frozenset(certain - known - own), frozenset(likely - certain - known - own)
    )


def _named(words: Iterable[str], libraries: set[str]) -> Iterator[str]:
    """The words that may be the name of an extension."""
    for word in words:
        if "_" in word and (
            _FOR_CUDA.fullmatch(word)
            or _OF_KERNELS.fullmatch(word)
            or _extends_library(word, libraries)
        ):
            yield word


def _extends_library(word: str, libraries: set[str]) -> bool:
    """Whether a name begins with that of a library: `gsplat_panorama`."""
    ends = (at for at, letter in enumerate(word) if letter == "_")
    return any(word[:at] in libraries for at in ends)
