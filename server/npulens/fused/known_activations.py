"""Tells which activation a module may be built with: what the code around it says."""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from npulens.graphs.activations import chosen_name
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    GLOBAL,
    INPUT,
    LIBRARY,
    OPAQUE,
    SELECT,
    TABLE,
    Node,
    entry,
    reachable,
)
from npulens.syntax.walking import names_in

_OTHERS = ("gelu", "geglu", "relu", "reglu", "sigmoid", "tanh")
_MAX_DEPTH = 4


class _Kind(NamedTuple):
    """An activation that is looked for."""

    names: tuple[str, ...]
    unlike: str
    """Words in names of others: hard swish, quick GELU."""
    is_likely: bool
    """Whether it is expected where nothing is said."""


_SILU = _Kind(("silu", "swish"), "hard", is_likely=True)
_GELU = _Kind(("gelu",), "quick", is_likely=False)


def may_be_silu(function: Node, evaluator: Evaluator) -> bool:
    """Whether a function is an activation that is configured, and SiLU by all that is known.

    A default in the file or of a configuration decides; where there is none, a name with `act` in
    it is taken for one that may be SiLU.
    """
    return _may_be_configured(function, evaluator, _SILU)


def is_silu_by_default(function: Node, evaluator: Evaluator) -> bool:
    """Whether a configured activation is SiLU by a default in the file or of a configuration."""
    return _may_be_configured(function, evaluator, _SILU._replace(is_likely=False))


def is_gelu_by_default(function: Node, arguments: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether a configured activation is GELU by a default in the file, or by its result's name.

    `hidden_gelu = self.act(...)` is how T5 and its many copies say it.
    """
    if _may_be_configured(function, evaluator, _GELU):
        return True
    named = evaluator.result_names.get((function, *arguments), set())
    return may_be_silu(function, evaluator) and any("gelu" in name.lower() for name in named)


def _may_be_configured(function: Node, evaluator: Evaluator, kind: _Kind) -> bool:
    known = evaluator.initial(function) or function
    if known.operands if known.operator == OPAQUE else known is not function:
        return _may_be(known, evaluator, kind, _MAX_DEPTH)
    is_named_so = function.operator in (ATTRIBUTE, INPUT) and _sounds(str(function.label))
    return kind.is_likely and is_named_so


def names_another(place: ast.AST) -> bool:
    """Whether code calls what it multiplies by another activation: `hidden_gelu * hidden`."""
    names = (name.lower() for name in names_in(place))
    return any(word in name for name in names for word in _OTHERS)


def _may_be(known: Node, evaluator: Evaluator, kind: _Kind, depth: int) -> bool:
    """For what a constructor assigned."""
    if depth == 0:
        return False
    key = chosen_name(known)
    if key is not None:
        return _key_may_be(key, evaluator, kind)
    if known.operator == SELECT:
        return _one_may_be(known.operands[1:], evaluator, kind, depth)
    if known.operator == INPUT:
        default = evaluator.default(known)
        if default is None:
            return kind.is_likely and _sounds(str(known.label))
        is_left_open = default.operator == CONSTANT and default.value is None
        return kind.is_likely if is_left_open else _is_named(default, kind)
    if known.operator == "apply":
        return _may_be(known.operands[0], evaluator, kind, depth - 1)
    if known.operator == ATTRIBUTE:
        return kind.is_likely and _sounds(str(known.label))
    if known.operator == "index" and known.operands[0].operator == TABLE:
        default = evaluator.default(known.operands[1])
        chosen = None if default is None else entry(known.operands[0], default)
        return kind.is_likely if chosen is None else _is_named(chosen, kind)
    if known.operator in ("index", OPAQUE) and known.operands:
        return _is_named(known.operands[0], kind) or _comes_from_table(known, evaluator, kind)
    return False


def _one_may_be(choices: tuple[Node, ...], evaluator: Evaluator, kind: _Kind, depth: int) -> bool:
    """`nn.SiLU() if ... else None`; a function that is written down counts more."""
    written = [node for node in choices if node.operator in _WRITTEN]
    if written:
        return any(_is_named(node, kind) for node in written)
    return any(_may_be(node, evaluator, kind, depth - 1) for node in choices)


_WRITTEN = frozenset({LIBRARY, "module", "instance"})


def _comes_from_table(known: Node, evaluator: Evaluator, kind: _Kind) -> bool:
    """`ACTIVATIONS[config.activation]`, `make_activation(name)`."""
    table, *keys = known.operands
    name = str(table.label).rpartition(".")[2]
    is_class = known.operator == OPAQUE and name[:1].isupper()
    if is_class or not _sounds(name) or not keys:
        return False
    return _key_may_be(keys[0], evaluator, kind)


def _key_may_be(key: Node, evaluator: Evaluator, kind: _Kind) -> bool:
    written = evaluator.default(key) or key
    if written.operator != CONSTANT or written.value is None:
        return kind.is_likely
    return _fits(str(written.value), kind)


def _is_named(value: Node, kind: _Kind) -> bool:
    """A function or class whose name says so."""
    names = (
        str(node.label[0] if isinstance(node.label, tuple) else node.label)
        for node in reachable(value)
        if node.operator in (LIBRARY, GLOBAL, "module", CONSTANT)
    )
    return any(_fits(name, kind) for name in names)


def _fits(name: str, kind: _Kind) -> bool:
    return kind.unlike not in name.lower() and any(word in name.lower() for word in kind.names)


def _sounds(name: str) -> bool:
    return "act" in name.lower().rpartition(".")[2]
