"""Symbolic shapes of ordinary models: there are enough of them, and a run has these shapes."""

import importlib.util
import sys
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace

import pytest
import torch

import hint_models
from helpers import CATALOGUE, code
from npulens.analysis import StatementCache, analyze, shapes_of_names
from npulens.catalog.model import Target
from npulens.checks.segments.shape_answers import Hint
from npulens.text.document import Document
from shape_execution import with_marks

CONFIG = SimpleNamespace(n_embd=24, n_head=4, vocab_size=50)
IDS = torch.arange(14).view(2, 7)
IMAGES = torch.randn(2, 3, 16, 24)
INPUTS: dict[str, tuple[torch.Tensor, ...]] = {
    "GPT": (IDS,),
    "LLAMA": (IDS,),
    "VIT": (IMAGES,),
    "DIFFUSION": (IMAGES, torch.tensor([3, 5])),
    "VOCODER": (torch.randn(2, 8, 13),),
    "TAGGER": (IDS, torch.ones(2, 7, 5, dtype=torch.long)),
    "AUTOENCODER": (IMAGES,),
    "GRAPH": (torch.randn(9, 6), torch.ones(9, 9)),
    "DETECTOR": (IMAGES,),
    "ACTOR": (torch.randn(3, 11), torch.randn(3)),
}
FEWEST = 15


def load_script() -> ModuleType:
    """The script that compares models with their hints, which is no package, as a module."""
    path = Path(__file__).parent.parent / "scripts" / "shape_hints_truth.py"
    specification = importlib.util.spec_from_file_location("shape_hints_truth", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


TRUTH = load_script()


class Comparison:
    """Compares what is shown with what names hold; a symbol is one number in each call."""

    def __init__(self, hints: dict[tuple[int, str], str]) -> None:
        self._hints = hints
        self._symbols: dict[FrameType, dict[str, int]] = {}
        self.compared: set[tuple[int, str]] = set()
        self.wrong: list[str] = []

    def __call__(self, line: int, name: str, value: object) -> None:
        shown = self._hints.get((line, name))
        if shown is None or not isinstance(value, torch.Tensor):
            return
        self.compared.add((line, name))
        frame = sys._getframe(1)
        symbols = self._symbols.setdefault(frame, {})
        if not TRUTH.agrees(shown, tuple(value.shape), symbols, TRUTH.numbers_of(frame)):
            self.wrong.append(f"{name} in line {line}: {shown}, but {tuple(value.shape)}")


@pytest.mark.parametrize("name", INPUTS)
def test_a_run_has_the_shapes_that_are_shown(name: str) -> None:
    source = code(getattr(hint_models, name))
    hints = TRUTH.hints_of(source)
    assert len(hints) >= FEWEST
    comparison = Comparison(hints)
    module: dict[str, object] = {"__assigned__": comparison, "__name__": "m"}
    exec(with_marks(source), module)
    torch.manual_seed(0)
    model = module["Model"](CONFIG)  # type: ignore[operator]
    with torch.no_grad():
        model(*INPUTS[name])
    assert comparison.wrong == []
    assert comparison.compared == hints.keys()


def test_an_editor_knows_the_shapes_of_functions_without_any_source() -> None:
    source = code(hint_models.GPT)
    cache = StatementCache()
    document = Document("m.py", source)
    before = analyze(document, CATALOGUE, Target())
    analyze(document, CATALOGUE, Target(), cache)
    shown = [hint for hint in shapes_of_names(cache).hints if hint.is_informative]
    assert len(shown) >= FEWEST
    assert not cache.shapes.ranked
    assert [each.rule.code for each in before] == [
        each.rule.code for each in analyze(document, CATALOGUE, Target(), cache)
    ]


@pytest.mark.parametrize(
    ("shape", "is_dynamic", "expected"),
    [
        ("[B, ?]", False, True),
        ("[?, 1, ...]", False, False),
        ("[?, 3]", False, True),
        ("[...]", False, False),
        ("[]", False, False),
        ("[?, ...]", True, True),
        ("", False, False),
    ],
)
def test_a_hint_says_something(shape: str, is_dynamic: bool, expected: bool) -> None:
    from npulens.text.spans import Span

    assert Hint(Span(0, 1), "", shape, is_dynamic).is_informative == expected


def shapes_shown(body: str, arguments: str = "x") -> dict[str, str]:
    """The last shape of each name in a method of a class with some layers."""
    source = (
        "import torch\nimport torch.nn.functional as F\nfrom einops import rearrange\n"
        "from torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self, dim, heads, config):\n"
        "        super().__init__()\n"
        "        self.heads, self.width = heads, dim\n"
        "        self.scale = dim ** -0.5\n"
        "        self.table = nn.Parameter(torch.zeros(heads, dim))\n"
        "        self.first = nn.Parameter(self.second * 2)\n"
        "        self.second = nn.Parameter(self.first * 2)\n"
        "        self.norm = nn.LayerNorm(config.hidden)\n"
        "        self.rnn = nn.GRU(dim, 32, bidirectional=True)\n"
        "        wide = 4 * dim\n"
        "        self.net = nn.Sequential(nn.Linear(dim, wide), nn.GELU(), nn.Linear(wide, dim))\n"
        "        size = 8\n"
        "        self.early = nn.Linear(dim, size)\n"
        "        size = 16\n\n"
        "    def grow(self):\n        self.width = 2 * self.width\n\n"
        f"    def forward(self, {arguments}):\n"
        + "".join(f"        {line}\n" for line in body.splitlines())
    )
    lines = TRUTH.hints_of(source).items()
    return {name: shape for (_, name), shape in sorted(lines)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = self.norm(x)", {"y": "[..., hidden]"}),
        ("y, h = self.rnn(x)", {"y": "[..., 64]"}),
        ("y = self.net(x)", {"y": "[..., dim]"}),
        ("y = self.table[None]", {"y": "[1, heads, dim]"}),
        ("y = rearrange(x, 'b n (h d) -> b h n d', h=self.heads)", {"y": "[b, heads, n, d]"}),
        ("y = rearrange(x, '(b c) n d -> (b c) n d', b=2, c=3)", {"y": "[6, n, d]"}),
        ("y = torch.einsum('bid,bjd->bij', x, x)", {"y": "[b, i, j]"}),
        ("B, T = x.shape\ny = x.unsqueeze(1).repeat(1, 3, 1)", {"y": "[B, 3, T]"}),
        ("B, T = x.shape\ny = x * self.scale", {"y": "[B, T]"}),
        # A name that means another size stands for none.
        ("B, T = x.shape\nT = T + 1\ny = torch.zeros(B, T)", {"y": "[B, ?]"}),
        ("y = self.early(x)", {}),
        ("y = torch.zeros(2, self.width)", {"y": "[2, width]"}),
        # What may be something unknown has no names.
        ("B, T = x.shape\nif B > 1:\n    x = unknown(x)\ny = x + 1", {}),
        ("B, T = x.shape\ny = F.pad(x, (0, unknown()))", {"y": "[B, ?]"}),
        ("y = self.first", {}),
    ],
)
def test_what_is_known_of_sizes(body: str, expected: dict[str, str]) -> None:
    assert shapes_shown(body) == expected


def test_a_length_is_called_as_the_caller_calls_it() -> None:
    source = (
        "import torch\nfrom torch import nn\n\n\n"
        "class Block(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
        "        self.layer = nn.Linear(dim, dim)\n\n"
        "    def forward(self, x):\n        return self.layer(x)\n\n\n"
        "class Net(nn.Module):\n    def __init__(self, wide, narrow):\n        super().__init__()\n"
        "        self.one = Block(wide)\n        self.two = Block(8)\n\n"
        "    def forward(self, x, z):\n        y = self.one(x)\n        w = self.two(z)\n"
    )
    shown = {name: shape for (_, name), shape in TRUTH.hints_of(source).items()}
    assert shown == {"y": "[..., wide]", "w": "[..., 8]"}
