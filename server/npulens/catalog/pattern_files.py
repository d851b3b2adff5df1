"""The texts of pattern files and the words they are about; what they mean is read elsewhere."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from npulens.catalog.messages import about, cannot_be_read, message
from npulens.catalog.model import PatternSource
from npulens.catalog.rule_file import MEGABYTES, CatalogueError
from npulens.text.regular_files import read_regular

_WORDS = re.compile(r"^WORDS = (\(.*?\))$", re.MULTILINE | re.DOTALL)
_BESIDE = re.compile(r"^BESIDE = (\([^)]*\)|.*)$", re.MULTILINE)
_PRODUCT = r"\*(?<![,({*]\*)(?<![,({]\s\*)\s*[\w(]|\*=|mul(?:[_(](?<!mat....)|tiply)|prod\("
"""And not `*args`."""
_POWER = r"sqrt|\*\*(?<=[\w)\]]\*\*)|\*\*(?<=[\w)\]]\s\*\*)|\*\*\s*-?[\d.]|pow[_(e]"
"""And not `**kwargs`."""
_ASSIGNS = r"=(?!=|\s*(?:None|\d))"
"""And not as in `mask: Optional[Tensor] = None`: what is stored is neither that nor a number."""

BESIDES = {
    "product": _PRODUCT,
    "product or quotient": rf"{_PRODUCT}|/\s*[\w(]|/=|div[_(i]",
    "product or rotation": rf"{_PRODUCT}|rotary_emb",
    "turn": "|".join(
        (
            r"(?:cos|sin)(?<![a-z]...)(?![a-z])",
            r"rot(?<![a-z]...)|rope(?<![a-z]....)|freqs(?<![a-z].....)",
        )
    ),
    "sum": r"\+|add",
    "matrix product": r"mat_?mul|mm\(|@|einsum|dot\(",
    "product or matrix product": rf"{_PRODUCT}|mat_?mul|mm\(|@|einsum|dot\(",
    "root": rf"{_POWER}|\.norm\((?<!self......)|vector_norm\(|normalize\(",
    "root or norm": rf"{_POWER}|rms_norm\(|RMSNorm\(",
    "softmax": "oftmax",
    "softmax or exponent": r"oftmax|exp\(",
    "gain": r"Parameter\(",
    "silu": r"silu|SiLU|wish\(|exp\(-|(?:\*|mul).{0,200}sigmoid\(|sigmoid\(.{0,200}(?:\*|mul)",
    "lowest": "|".join(
        (
            r"inf(?<![a-z]...)(?![a-z])|INF(?!O)|finfo|min\b(?<![a-z]...)|MIN|neg|NEG",
            r"MASK|mask_value|-\s*\d+e\d|-\s*\d{4}",
        )
    ),
    "mask": rf"fill|where\(|\]\s*{_ASSIGNS}",
    "store": rf"index_add|\]\s*\+?{_ASSIGNS}",
    "choice": r"nll|NLL|gather|arange|range\(",
    "draw": "bernoulli|floor",
    "spread": "scatter|one_hot",
}
"""What BESIDE may name, each with an expression that matches wherever it may be written.

An expression begins with plain characters, and what must not precede them is tested behind them:
this is four times as fast.
"""


def read_pattern_files(paths: Iterable[Path]) -> tuple[PatternSource, ...]:
    """Read pattern files.

    Raises:
        CatalogueError: One cannot be read or does not say its words.
    """
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> PatternSource:
    try:
        text = read_regular(path, MEGABYTES).decode("utf-8")
    except OSError as error:
        raise CatalogueError(about(path, cannot_be_read(error))) from error
    except UnicodeDecodeError as error:
        raise CatalogueError(about(path, message("error.not-utf-8"))) from error
    words = _constant(_WORDS, text)
    if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
        raise CatalogueError(about(path, message("pattern.needs-words")))
    beside = _constant(_BESIDE, text) if _BESIDE.search(text) else ()
    if not isinstance(beside, tuple) or not all(name in BESIDES for name in beside):
        problem = message("pattern.beside", names=", ".join(BESIDES))
        raise CatalogueError(about(path, problem))
    return PatternSource(path.name, text, frozenset(words), beside)


def _constant(pattern: re.Pattern[str], text: str) -> Any:
    """What a file assigns to a name, `None` if that is no constant."""
    found = pattern.search(text)
    try:
        return ast.literal_eval(found[1]) if found else None
    except (ValueError, SyntaxError):
        return None
