"""Expressions that check whether a library is there, by their names: `is_triton_available()`."""

import ast
import re
from collections.abc import Collection
from functools import lru_cache

from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below

_QUERIES = re.compile(
    r"available|installed|find_spec|found|exists|package|importable|has_", re.IGNORECASE
)
_QUERY_NODES = (ast.Name, ast.Attribute, ast.Call)
_NAMES_LIBRARY = re.compile(
    r"\A_?(?:(?:is|has|have)_)?(\w+?)(?:_2|_3)?(?:_is)?(?:_(?:available|installed|found|imported))?\Z",
    re.IGNORECASE,
)


def queried_library(node: ast.expr, libraries: Collection[str] | None = None) -> str:
    """Which of some libraries, or of all there are, an expression checks for; empty if for none.

    It is a call, `is_triton_available()` or `find_spec("triton")`, or a flag, `HAS_TRITON`.
    """
    callee = node.func if isinstance(node, ast.Call) else node
    name = last_name(callee)
    named = _named_library(name)
    named_libraries = [named] if named else []
    if isinstance(node, ast.Call) and _QUERIES.search(name):
        strings = (a.value for a in node.args[:1] if isinstance(a, ast.Constant))
        named_libraries += [_root(value) for value in strings if isinstance(value, str)]
    return next((each for each in named_libraries if libraries is None or each in libraries), "")


def may_query_library(test: ast.expr, libraries: Collection[str], names: Collection[str]) -> bool:
    """Whether a part of a condition checks for one of some libraries, or is one of some names."""
    return any(
        (isinstance(part, ast.Name) and part.id in names)
        or (isinstance(part, _QUERY_NODES) and queried_library(part, libraries) != "")
        for part in nodes_below(test)
    )


@lru_cache(maxsize=8_192)
def _named_library(name: str) -> str:
    """The library of `is_triton_available`, `HAS_TRITON`; empty for other names."""
    match = _NAMES_LIBRARY.match(name)
    return match[1].lower() if match is not None and match[1] != name else ""


def _root(requirement: str) -> str:
    """The package of `flash_attn.ops`, `bitsandbytes>=0.42`."""
    match = re.match(r"\w+", requirement)
    return match[0] if match is not None else ""
