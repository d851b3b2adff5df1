"""Functions that compute the same have the same graph, and those that look alike do not.

The door is `Evaluator.result`: what a function returns for its parameters, as a node.
"""

import ast
import time

import pytest

from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import Target
from npulens.graphs.definitions import Definitions
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import Node
from npulens.syntax.bindings import bindings_of
from npulens.syntax.scopes import ModuleNames, ModuleScope
from npulens.text.document import Document

IMPORTS = """
import math
import torch
import torch.nn.functional as F
from torch import nn
"""


def results(*bodies: str, before: str = "") -> list[Node | None]:
    """What functions of x, y, n and flag return; a body without `return` is an expression."""
    text = IMPORTS + before + "".join(map(_function, range(len(bodies)), bodies))
    tree = ast.parse(text)
    definitions = Definitions()
    definitions.add(tree.body, ModuleScope(ModuleNames([bindings_of(tree.body, [])]), 0))
    evaluator = Evaluator(definitions)
    return [evaluator.result(definitions.functions[f"f{i}"]) for i in range(len(bodies))]


def _function(index: int, body: str) -> str:
    lines = body.splitlines() if "return" in body else [f"return {body}"]
    return f"\ndef f{index}(x, y, n, flag):\n" + "".join(f"    {line}\n" for line in lines)


SAME = {
    "operands in another order": ("x * y + n", "n + y * x"),
    "square": ("x * x", "x ** 2"),
    "square as a method": ("x.pow(2)", "torch.square(x)"),
    "function and operator": ("torch.mul(x, y)", "x * y"),
    "function and method": ("torch.add(x, y)", "x.add(y)"),
    "alpha": ("torch.add(x, y, alpha=2)", "x + 2 * y"),
    "difference": ("torch.sub(x, y)", "x - y"),
    "difference the other way": ("torch.rsub(x, y)", "y - x"),
    "quotient": ("x / y", "x * y ** -1"),
    "quotient by a number": ("x / 4", "0.25 * x"),
    "reciprocal": ("torch.reciprocal(x)", "1 / x"),
    "inverse root": ("torch.rsqrt(x)", "1 / torch.sqrt(x)"),
    "inverse root as a power": ("x.rsqrt()", "x ** -0.5"),
    "root, then divided": ("y / x.sqrt()", "y * torch.rsqrt(x)"),
    "two signs": ("-(-x)", "x"),
    "constants": ("x * (2 * 3)", "6 * x"),
    "constants apart": ("2 * (3 * x)", "6 * x"),
    "root of a number": ("x * math.sqrt(64)", "x * 8"),
    "last digits of numbers": ("x / math.sqrt(96)", "x * 96 ** -0.5"),
    "whole number as float": ("x * 2.0", "2 * x"),
    "neutral elements": ("(x + 0) * 1", "x"),
    "sigmoid written out": ("1 / (1 + torch.exp(-x))", "torch.sigmoid(x)"),
    "silu written out": ("x * torch.sigmoid(x)", "F.silu(x)"),
    "silu by a module": ("nn.SiLU()(x)", "F.silu(x)"),
    "addcmul": ("torch.addcmul(x, y, n, value=3)", "x + 3 * (y * n)"),
    "dim by position": ("x.mean(-1, True)", "torch.mean(x, dim=-1, keepdim=True)"),
    "dim by NumPy's name": ("x.sum(axis=-1, keepdims=True)", "x.sum(dim=-1, keepdim=True)"),
    "dim as a tuple": ("x.mean(dim=(-1,))", "x.mean(-1)"),
    "kept dim, inserted after": ("x.mean(-1).unsqueeze(-1)", "x.mean(-1, keepdim=True)"),
    "kept dim, by index": ("x.mean(-1)[..., None]", "x.mean(-1, keepdim=True)"),
    "mean as sum by size": ("x.sum(-1) / x.size(-1)", "x.mean(-1)"),
    "mean of a square as sum": (
        "x.float().pow(2).sum(-1) / x.size(-1)",
        "x.float().pow(2).mean(-1)",
    ),
    "mean as sum by shape": ("x.sum(-1, True) / x.shape[-1]", "x.mean(-1, True)"),
    "norm": ("x.norm(dim=-1)", "x.pow(2).sum(-1).sqrt()"),
    "norm by linalg": ("torch.linalg.vector_norm(x, dim=-1)", "torch.norm(x, p=2, dim=-1)"),
    "halves by chunk and slice": ("x.chunk(2, dim=-1)[0]", "x[..., : x.shape[-1] // 2]"),
    "second half": ("x.chunk(2, -1)[1]", "x[..., x.shape[-1] // 2 :]"),
    "halves by split": ("x.split(x.size(-1) // 2, dim=-1)[1]", "torch.chunk(x, 2, dim=-1)[1]"),
    "halves unpacked": (
        "a, b = x.chunk(2, -1)\nreturn b * a",
        "x.chunk(2, -1)[0] * x.chunk(2, -1)[1]",
    ),
    "even places": ("x[..., ::2]", "x[..., 0::2]"),
    "all of a stored array": ("x[()] * 2", "2 * x[()]"),
    "pairs unbound": ("x.reshape(*x.shape[:-1], -1, 2).unbind(-1)[1]", "x[..., 1::2]"),
    "view and reshape": ("x.view(2, 3)", "x.reshape((2, 3))"),
    "roots of one number": ("d ** -0.25 * (x * d ** -0.25)", "x * d ** -0.5"),
    "swapped dims": ("x.transpose(-1, -2)", "x.transpose(-2, -1)"),
    "mT": ("x.mT", "x.transpose(-2, -1)"),
    "matrix product": ("x @ y", "torch.matmul(x, y)"),
    "batched product": ("torch.bmm(x, y)", "x @ y"),
    "names in between": ("a = x + 1\nb = a * y\nreturn b", "(x + 1) * y"),
    "annotated": ("a: torch.Tensor = x + 1\nreturn a", "x + 1"),
    "walrus": ("(a := x + 1) * a", "(x + 1) * (x + 1)"),
    "augmented": ("x *= y\nreturn x", "x * y"),
    "in place": ("x.mul_(y)\nreturn x", "x * y"),
    "in place, used": ("x.add(1).sqrt_()", "(x + 1).sqrt()"),
    "no effect on values": ("F.relu(x, inplace=True)", "torch.relu(x)"),
    "dropout of nothing": ("F.dropout(x, 0.0)", "x"),
    "dropout in evaluation": ("F.dropout(x, 0.5, training=False)", "x"),
    "equal branches": ("if flag:\n    a = x\nelse:\n    a = x\nreturn a", "x"),
    "branch and expression": (
        "if flag:\n    a = x\nelse:\n    a = y\nreturn a",
        "x if flag else y",
    ),
    "early return": ("if flag:\n    return x\nreturn y", "x if flag else y"),
    "negated condition": ("y if not flag else x", "x if flag else y"),
    "decided": ("x if True else y", "x"),
    "early error": ("if flag:\n    raise ValueError\nreturn x", "x"),
    "sequential": ("nn.Sequential(nn.SiLU(), nn.Identity())(x)", "F.silu(x)"),
    "helper": ("scaled(x, factor=n)", "x * n"),
    "helper of a helper": ("twice(x)", "2 * x"),
    "helper with a default": ("scaled(x)", "x * 2"),
    "static sizes": ("x.size(1)", "x.shape[1]"),
    "sizes unpacked": ("a, b, c = x.shape\nreturn b", "x.size(1)"),
    "tuple joined": ("(x, y)[1]", "y"),
    "with": ("with torch.no_grad():\n    a = x + 1\nreturn a", "x + 1"),
}
HELPERS = """
def scaled(value, factor=2):
    return value * factor

def twice(value):
    return scaled(value)
"""


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME.keys())
def test_equal_computations_are_one_node(pair: tuple[str, str]) -> None:
    one, other = results(*pair, before=HELPERS)
    assert one is not None
    assert one is other, f"{one!r}\n{other!r}"


DIFFERENT = {
    "operands of a difference": ("x - y", "y - x"),
    "operands of a quotient": ("x / y", "y / x"),
    "base and exponent": ("x ** 3", "3 ** x"),
    "root of a square": ("(x ** 2) ** 0.5", "x"),
    "epsilon under and beside the root": ("torch.sqrt(x + n)", "torch.sqrt(x) + n"),
    "mean over other dims": ("x.mean(-1)", "x.mean(1)"),
    "mean kept or not": ("x.mean(-1)", "x.mean(-1, keepdim=True)"),
    "sum by another size": ("x.sum(-1) / x.size(1)", "x.mean(-1)"),
    "sum by the size of another": ("x.sum(-1) / y.size(-1)", "x.mean(-1)"),
    "inserted at another place": ("x.mean(-1).unsqueeze(1)", "x.mean(-1, keepdim=True)"),
    "norms": ("x.norm(1, dim=-1)", "x.norm(2, dim=-1)"),
    "first and second half": ("x.chunk(2, -1)[0]", "x.chunk(2, -1)[1]"),
    "halves of other dims": ("x.chunk(2, -1)[0]", "x.chunk(2, 1)[0]"),
    "thirds": ("x.chunk(3, -1)[0]", "x.chunk(2, -1)[0]"),
    "half of another tensor's size": ("x[..., : y.shape[-1] // 2]", "x.chunk(2, -1)[0]"),
    "halves and even places": ("x[..., ::2]", "x.chunk(2, -1)[0]"),
    "places shifted": ("x[..., ::2]", "x[..., 1::2]"),
    "kinds of gelu": ("F.gelu(x)", "F.gelu(x, approximate='tanh')"),
    "silu of another": ("y * torch.sigmoid(x)", "F.silu(x)"),
    "true is not one": ("x.mean(-1, True)", "x.mean(-1, False)"),
    "order of a matrix product": ("x @ y", "y @ x"),
    "choice": ("x if flag else y", "y if flag else x"),
    "conditions": ("x if flag else y", "x if n else y"),
    "only one branch": ("if flag:\n    x = x + 1\nreturn x", "x + 1"),
    "loop": ("for _ in range(n):\n    x = x * 2\nreturn x", "x * 2"),
    "loop not entered": ("while flag:\n    x = x + 1\nreturn x", "x + 1"),
    "two calls of something unknown": ("z(x)", "z(x)"),
    "random numbers": ("F.dropout(x, 0.5)", "x"),
    "alias changed": ("a = x\nx.mul_(2)\nreturn a", "x"),
    "stored part": ("x[0] = y\nreturn x", "x"),
    "caught": ("try:\n    a = x\nexcept ValueError:\n    a = y\nreturn a", "x"),
    "star arguments": ("torch.mul(*x)", "torch.mul(x, y)"),
    "options": ("torch.mean(x, **n)", "torch.mean(x)"),
    "name bound again": ("torch = n\nreturn torch.exp(x)", "torch.exp(x)"),
    "cast": ("x.float()", "x"),
    "casts": ("x.half()", "x.float()"),
    "order of floor and product": ("(x // 2) * 2", "x"),
    "rounded quotient": ("torch.div(x, y, rounding_mode='floor')", "x / y"),
    "comparisons": ("x < y", "x <= y"),
    "masks": ("x.masked_fill(flag, 0)", "x.masked_fill(~flag, 0)"),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_other_computations_are_other_nodes(pair: tuple[str, str]) -> None:
    one, other = results(*pair, before=HELPERS)
    assert one is None or one is not other, repr(one)


METHODS = """
class Scale(nn.Module):
    def __init__(self, width, power=2):
        super().__init__()
        self.act = nn.SiLU()
        self.power = 2
        self.changed = 2
        self.twice = 1
        self.twice = 3

    def reset(self):
        self.changed = 5

    def _scaled(self, x, factor):
        return x * factor

    @staticmethod
    def _shifted(x, by=1):
        return x + by

{methods}
"""


def method_results(*bodies: str) -> list[Node]:
    """What the last expression of methods comes to."""
    methods = "".join(
        f"    def m{i}(self, x, y):\n        return {body}\n" for i, body in enumerate(bodies)
    )
    tree = ast.parse(IMPORTS + METHODS.replace("{methods}", methods))
    definitions = Definitions()
    definitions.add(tree.body, ModuleScope(ModuleNames([bindings_of(tree.body, [])]), 0))
    evaluator = Evaluator(definitions)
    found = []
    for i in range(len(bodies)):
        record = evaluator.evaluate(definitions.classes["Scale"].methods[f"m{i}"])
        assert record is not None
        found.append(record.places[-1][1])
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("self.act(x)", "F.silu(x)"),
        ("self._scaled(x, y)", "x * y"),
        ("self._scaled(factor=y, x=x)", "y * x"),
        ("self._shifted(x)", "x + 1"),
    ],
)
def test_methods_and_modules_of_the_class_are_looked_into(one: str, other: str) -> None:
    first, second = method_results(one, other)
    assert first is second, f"{first!r}\n{second!r}"


@pytest.mark.parametrize(
    ("attribute", "expected"), [("power", "2"), ("twice", "3"), ("changed", None), ("none", None)]
)
def test_attributes_are_what_the_constructor_left(attribute: str, expected: str | None) -> None:
    tree = ast.parse(IMPORTS + METHODS.replace("{methods}", ""))
    definitions = Definitions()
    definitions.add(tree.body, ModuleScope(ModuleNames([bindings_of(tree.body, [])]), 0))
    evaluator = Evaluator(definitions)
    owner = definitions.classes["Scale"]
    evaluator.focus(owner.methods["reset"])
    found = evaluator.initialized(owner).get(attribute)
    assert (None if found is None else repr(found)) == expected


HOSTILE = {
    "many statements": "\n".join(f"x = x * y + {i}" for i in range(5_000)) + "\nreturn x",
    "many operands": "return [" + ", ".join(f"x * {i}" for i in range(5_000)) + "]",
    "many terms": "return " + " + ".join(f"x{'' if i % 2 else ' * y'}" for i in range(800)),
    "deep brackets": "return " + "(" * 90 + "x" + ")" * 90,
    "deep calls": "return " + "torch.exp(" * 80 + "x" + ")" * 80,
    "many branches": "\n".join(f"if n == {i}:\n    x = x + {i}" for i in range(1_000))
    + "\nreturn x",
    "many doublings": "\n".join("x = x + x" for _ in range(2_000)) + "\nreturn x",
    "towers of powers": "return 9 ** 9 ** 9 ** 9 * x ** 9 ** 9 ** 9",
    "powers of powers": "\n".join(["y = 10 ** 10", *["y = y ** y"] * 50]) + "\nreturn x * y",
    "nested loops": "".join("    " * i + f"for i{i} in x:\n" for i in range(18))
    + "    " * 18
    + "x = x + 1\nreturn x",
    "calls itself": "return f0(x, y, n, flag) + f0(y, x, n, flag)",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_functions_cost_bounded_time(body: str) -> None:
    start = time.perf_counter()
    results(body)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("operator", ["*", "+"])
@pytest.mark.parametrize("count", [800, 5_000])
def test_long_sums_and_products_are_matched_in_bounded_time(operator: str, count: int) -> None:
    term = "torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"
    text = f"{IMPORTS}\ndef f(x, weight):\n    return (\n        weight\n"
    text += f"        {operator} {term}\n        {operator} x\n" * (count // 2) + "    )\n"
    start = time.perf_counter()
    analyze(Document("long.py", text), CATALOGUE, Target())
    assert time.perf_counter() - start < 10
