"""The simple search for fused operators, and the table of verdicts that was made with it."""

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "data" / "fused_recognition.tsv"
OPERATORS = {"rms_norm", "swiglu", "geglu", "rotary", "attention", "flash_attention", "sdpa"}


def load_search() -> ModuleType:
    """The script, which is no package, as a module."""
    path = ROOT / "scripts" / "fused_candidates.py"
    specification = importlib.util.spec_from_file_location("fused_candidates", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


SEARCH = load_search()


def rows() -> list[dict[str, str]]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(
    ("source", "operator"),
    [
        (
            "def norm(x, g):\n    return x / (x.square().mean(-1, True) + 1e-6).sqrt() * g",
            "rms_norm",
        ),
        ("def unit(a, b):\n    return torch.mul(b, F.silu(a))", "swiglu"),
        ("def unit(x):\n    a, b = x.chunk(2, -1)\n    a = F.gelu(a)\n    return b * a", "geglu"),
        ("def turn(a, b, cos, sin):\n    return a * cos - b * sin", "rotary"),
        ("def turn(x, turns):\n    return torch.view_as_complex(x) * turns", "rotary"),
        ("def look(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v", "attention"),
        ("def look(q, k, v):\n    return flash_attn_func(q, k, v)", "flash_attention"),
        ("def look(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)", "sdpa"),
    ],
)
def test_is_listed(source: str, operator: str) -> None:
    assert [found.operator for found in SEARCH.candidates(source)] == [operator]


def test_is_not_listed() -> None:
    assert not list(SEARCH.candidates("def scale(x, s):\n    return x * s + 1"))


def test_copies_share_a_key() -> None:
    one = (
        'class A:\n    def f(self, x: int):\n        """Text."""\n'
        "        y = F.silu(x)\n        return y * self.up"
    )
    two = "class B:\n    def g(self, a):\n        b = F.silu(a)\n        return b * self.up"
    other = "class B:\n    def g(self, a):\n        b = F.silu(a)\n        return b * self.down"
    keys = [next(iter(SEARCH.candidates(source))).key for source in (one, two, other)]
    assert keys[0] == keys[1] != keys[2]


def test_activation_of_the_constructor_is_in_the_key() -> None:
    source = (
        "class A:\n"
        "    def __init__(self):\n        self.act = nn.{}()\n"
        "    def forward(self, x, y):\n        return self.act(x) * y"
    )
    silu, gelu = (next(iter(SEARCH.candidates(source.format(name)))) for name in ("SiLU", "GELU"))
    assert (silu.operator, gelu.operator) == ("swiglu", "geglu")
    assert silu.key != gelu.key


def test_table_is_complete() -> None:
    table = rows()
    assert len(table) > 1000
    for row in table:
        assert all(row.values()), row
        assert row["operator"] in OPERATORS, row
        assert row["fusable"] in {"yes", "manual", "no"}, row
    places = [(row["path"], row["line"], row["function"], row["operator"]) for row in table]
    assert len(set(places)) == len(places)


def test_copies_share_a_verdict() -> None:
    verdicts: dict[tuple[str, str], set[str]] = {}
    for row in rows():
        verdicts.setdefault((row["key"], row["operator"]), set()).add(row["fusable"])
    assert all(len(found) == 1 for found in verdicts.values())
