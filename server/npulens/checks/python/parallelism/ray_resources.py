"""GPUs that a program gets from Ray, which counts the cards of Ascend as a resource of its own."""

import ast

from npulens.catalog.messages import message
from npulens.checks.context import Context
from npulens.syntax.meanings import Member, Qualified, resolve
from npulens.syntax.scopes import Scope

_NUMBERS = frozenset({"num_gpus", "num_gpus_per_worker", "num_gpus_per_env_runner"})
_TABLE = "resources_per_trial"
_OPTIONS = "options"
"""Of an actor or a task, whatever it is."""


def requested(node: ast.Call, scope: Scope, context: Context) -> None:
    """`@ray.remote(num_gpus=1)`, `Worker.options(num_gpus=0.5)`, `tune.run(..., {"gpu": 1})`."""
    named = [
        keyword for keyword in node.keywords if keyword.arg in _NUMBERS or keyword.arg == _TABLE
    ]
    if (
        not named
        or "ray" not in context.facts.signs.decisive_words
        or not _is_of_ray(node.func, scope)
    ):
        return
    for keyword in named:
        places = _in_table(keyword.value) if keyword.arg == _TABLE else [keyword]
        for place in places:
            _report(place, context)


def _report(place: ast.keyword | ast.Constant, context: Context) -> None:
    is_none = isinstance(place, ast.keyword) and (
        isinstance(place.value, ast.Constant) and not place.value.value
    )
    if not is_none:
        rule, note = context.catalogue.required("gpu-resource"), message("check.ray-resource")
        symbol = place.arg if isinstance(place, ast.keyword) else str(place.value)
        context.report(rule, context.span(place), symbol or "", [], note=note)


def _in_table(table: ast.expr) -> list[ast.Constant]:
    """The key `gpu` in a table of resources."""
    keys = table.keys if isinstance(table, ast.Dict) else []
    return [key for key in keys if isinstance(key, ast.Constant) and key.value == "gpu"]


def _is_of_ray(callee: ast.expr, scope: Scope) -> bool:
    if isinstance(callee, ast.Attribute) and callee.attr == _OPTIONS:
        return True
    values = [value for value in resolve(callee, scope) if isinstance(value, (Qualified, Member))]
    return any(getattr(value, "name", "").partition(".")[0] == "ray" for value in values)
