"""What is looked up by the kind of a node takes nodes of that kind."""

import ast
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

from npulens.checks import device_words, visitor
from npulens.checks.python.registry import checks
from npulens.syntax import values


def _registered() -> Iterator[tuple[type[ast.AST], Callable[..., Any]]]:
    for kind, found in checks(has_star_imports=True, names_gpus=True).items():
        yield from ((kind, check) for check in found)
    yield from visitor._EXPANSIONS.items()
    yield from device_words._LITERALS.items()
    yield from values._READERS.items()


def test_each_function_takes_the_nodes_that_it_is_registered_for() -> None:
    for kind, function in _registered():
        taken = next(iter(get_type_hints(function).values()))
        kinds = get_args(taken) or (taken,)
        assert issubclass(kind, kinds), f"{function.__module__}.{function.__name__}: {kind}"
