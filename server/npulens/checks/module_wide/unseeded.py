"""Generators of random numbers that a training script draws from and does not seed.

Whoever calls `torch.manual_seed` wants the same run again, be it to compare the NPU with a GPU.
Source: Ascend/msprobe, docs/zh/best_practices/train_debug_guide.md 2.2, and
python/msprobe/pytorch/reproducibility/random_reproducibility.py.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Applicability, Edit, Finding, Fix
from npulens.catalog.tables import Catalogue
from npulens.checks.titles import add
from npulens.checks.whole_module import WholeModule
from npulens.syntax.meanings import Local, Qualified, Value, resolve
from npulens.syntax.scopes import definitions_around
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_SEED = "torch.manual_seed"
_DRAWS = {
    "numpy.random": frozenset(
        {"beta", "binomial", "choice", "exponential", "gamma", "laplace", "normal", "permutation"}
        | {"poisson", "rand", "randint", "randn", "random", "random_sample", "sample", "shuffle"}
        | {"standard_normal", "uniform"}
    ),
    "random": frozenset(
        {"betavariate", "choice", "choices", "gauss", "normalvariate", "randint", "random"}
        | {"randrange", "sample", "shuffle", "triangular", "uniform"}
    ),
}
"""By module the functions that draw from its generator for everybody.

Source: documentation of NumPy and of the standard library.
"""

_DRAWN = re.compile(r"random\.(\w+)\(|from (?:numpy\.)?random import")
_SEEDED = re.compile(r"(?<![\w.])((?:\w+\.)*)(\w*seed\w*)\(", re.IGNORECASE)
"""Calls that draw, and calls that seed."""


def _may_be_unseeded(text: str) -> bool:
    """Whether a text draws random numbers, and nothing but PyTorch or itself seeds."""
    if "manual_seed" not in text or "random" not in text:
        return False
    known = set().union(*_DRAWS.values(), {None})
    if not any(found[1] in known for found in _DRAWN.finditer(text)):
        return False
    seeds = {(found[1], found[2]) for found in _SEEDED.finditer(text)}
    return all(owner.startswith("torch.") or f"def {name}(" in text for owner, name in seeds)


class _Found:
    """What a module says of random numbers.

    Attributes:
        seeds: The calls of `torch.manual_seed`.
        drawn: By module of a generator the callees that draw from it, outside of all functions or
            in one that seeds or trains: what a data set draws, a loader seeds in its workers.
        is_seeded: Whether something else may set seeds.
    """

    def __init__(self, module: WholeModule) -> None:
        self.seeds: list[ast.Call] = []
        self.drawn: dict[str, list[ast.expr]] = {}
        self.is_seeded = False
        draws: list[tuple[str, ast.expr, ast.AST | None]] = []
        running: set[ast.AST | None] = {None}
        for node, scope in module.scoped:
            if not isinstance(node, ast.Call):
                continue
            meanings = resolve(node.func, scope)
            names = [value.name for value in meanings if isinstance(value, Qualified)]
            place: ast.AST | None = next(definitions_around(scope), None)
            if _SEED in names and not _is_drawn(node):
                self.seeds.append(node)
            if _SEED in names or last_name(node.func) == "backward":
                running.add(place)
            self.is_seeded |= _may_seed(node, meanings)
            for name in names:
                generator, _, draw = name.rpartition(".")
                if draw in _DRAWS.get(generator, ()):
                    draws.append((generator, node.func, place))
        for generator, callee, place in draws:
            if place in running:
                self.drawn.setdefault(generator, []).append(callee)


def _is_drawn(seed: ast.Call) -> bool:
    """`torch.manual_seed(np.random.randint(1 << 31))`: another run is to be another one."""
    return any(isinstance(part, ast.Call) for each in seed.args for part in nodes_below(each))


def _may_seed(call: ast.Call, meanings: Sequence[Value]) -> bool:
    """`np.random.seed(0)`, `set_seed(args.seed)` of another module."""
    if "seed" not in last_name(call.func).lower():
        return False
    return not any(
        isinstance(value, Local)
        or (isinstance(value, Qualified) and value.name.startswith("torch."))
        for value in meanings
    )


def unseeded_draws(module: WholeModule, catalogue: Catalogue) -> Iterator[Finding]:
    """`torch.manual_seed(0)` in a script that draws from `numpy.random`, too."""
    if not _may_be_unseeded(module.text):
        return
    if "unittest" in module.text:
        return  # the sizes of a test, not a training
    found = _Found(module)
    if not found.seeds or not found.drawn or found.is_seeded:
        return
    first = found.seeds[0]
    rule = catalogue.required("unseeded-generator")
    missing = sorted(found.drawn)
    arguments = {
        "symbol": module.source(first.func),
        "replacement": "`, `".join(f"{generator}.seed" for generator in missing),
    }
    fixes = _seeded_too(first, [found.drawn[each][0] for each in missing], module)
    yield Finding(rule, module.lines.span(first.func), arguments, fixes=fixes)


def _seeded_too(
    seed: ast.Call, callees: Sequence[ast.expr], module: WholeModule
) -> tuple[Fix, ...]:
    """The same seed for the others, in lines behind the one that has it."""
    statement = next((n for n in module.nodes if isinstance(n, ast.Expr) and n.value is seed), None)
    value = seed.args[0] if len(seed.args) == 1 and not seed.keywords else None
    is_plain = isinstance(value, (ast.Constant, ast.Name, ast.Attribute))
    if statement is None or value is None or not is_plain:
        return ()
    start, end = module.lines.span(statement)
    line = module.lines.starts[statement.lineno - 1]
    indentation = module.text[line:start]
    rest = module.text[end : module.text.find("\n", end)] if "\n" in module.text[end:] else ""
    if indentation.strip() or rest.strip():
        return ()
    owners = [each.value for each in callees if isinstance(each, ast.Attribute)]
    if len(owners) < len(callees):
        return ()  # `from random import shuffle`
    calls = [f"{module.source(owner)}.seed({module.source(value)})" for owner in owners]
    text = "".join(f"\n{indentation}{call}" for call in calls)
    edit = Edit(Span(end, end), text)
    return (Fix(add(", ".join(calls)), Applicability.UNSAFE, (edit,)),)
