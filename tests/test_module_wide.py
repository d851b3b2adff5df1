"""What only a module as a whole shows: saved modules, seeds, the order of calls of tools."""

import pytest

from helpers import findings, fixed, unmarked

HEAD = "import torch\n"
LOADED = [
    "⟦torch.save⟧(net, 'a.pt')\nnet.eval()\nmodel = ⟦torch.load⟧('a.pt')",
    "net.eval()\ndef save():\n    ⟦torch.save⟧(net, path)",
    "model = ⟦torch.load⟧(path)\nmodel.eval()",
    "model = ⟦torch.load⟧(path, map_location='cpu')\ny = model(x)",
    "model = ⟦torch.load⟧(path).to(device)\nfor p in model.parameters():\n    p.detach_()",
    "y = ⟦torch.load⟧(path, 'cpu').eval()(x)",
    "config = json.load(f)\nmodel = ⟦torch.load⟧('m.pt').to('cpu')\nmodel.eval()",
    "model = (\n    ⟦torch.load⟧(path)\n)\nmodel.eval()",
    "weights = ⟦torch.load⟧(path).state_dict()",
    "c = ⟦torch.load⟧(path)\nmodel = c['ema'].float().eval()",
    "model = ⟦torch.load⟧(path)['model'].float()\nmodel.eval()",
    "class A:\n    def __init__(self):\n        self.net = ⟦torch.load⟧(path)\n"
    "    def run(self, x):\n        return self.net(x)",
    "def f(model):\n    model.eval()\n    ⟦torch.save⟧(model, path)",
    "def f(model):\n    o = optimizer(model.parameters())\n    ⟦torch.save⟧(model.module, path)",
    "def f(model):\n    model.eval()\n    ⟦torch.save⟧(model, a)\n    torch.save(model, b)",
]
NOT_LOADED = [
    "x['model'].eval()\ntorch.save(x, path)",
    "torch.serialization.add_safe_globals([Net])\nnet.eval()\ntorch.save(net, path)",
    "net.eval()\ntorch.save(net, path)\nnet = torch.load(path, weights_only=False)",
    "⟦torch.save⟧(net, 'a.pt')\nnet.eval()\nmodel = ⟦torch.load⟧('a.pt')",
    "net.eval()\ndef save():\n    ⟦torch.save⟧(net, path)",
    "model = torch.load(path, weights_only=False)\nmodel.eval()",
    "model = torch.load(path, **options)\nmodel.eval()",
    "model = torch.load(path, pickle_module=dill)\nmodel.eval()",
    "state = torch.load(path)\nmodel.load_state_dict(state['model'])\nmodel.eval()",
    "model.load_state_dict(torch.load(path))\nmodel.eval()",
    "model = torch.load(path)\nmodel = build(model)\nmodel.eval()",
    "x = torch.load(path)\nfor k, v in x.items():\n    v.to(device)",
    "def f():\n    model = torch.load(path)\n    return model\ndef g(model):\n    model.eval()",
    "torch.serialization.add_safe_globals([Net])\nmodel = torch.load(path)\nmodel.eval()",
    "torch.load = partial(torch.load, weights_only=False)\nmodel = torch.load(path)\nmodel.eval()",
    "model = joblib.load(path)\nmodel.eval()",
    "model.eval()\ntorch.save(model.state_dict(), path)",
    "model.eval()\ntorch.save({'model': model}, path)",
    "torch.save(results, path)",
    "optimizer.zero_grad()\ntorch.save(optimizer.state_dict(), path)",
    "def f(model):\n    torch.save(model, path)\ndef g(model):\n    model.eval()",
]


def places(text: str, code: str) -> list[str]:
    return [text[slice(*f.span)] for f in findings(text) if f.rule.code == code]


def assert_found(snippet: str, code: str, head: str = HEAD) -> None:
    text, expected = unmarked(head + snippet.replace("⟦", f"⟦{code}:") + "\n")
    found = [tuple(f.span) for f in findings(text) if f.rule.code == code]
    assert found == [(mark.start, mark.end) for mark in expected]


@pytest.mark.parametrize("snippet", [*LOADED, *NOT_LOADED])
def test_whole_modules(snippet: str) -> None:
    assert_found(snippet, "NPU119")


def test_a_whole_module_is_loaded_on_request() -> None:
    text = "import torch\n\nmodel = torch.load(path, map_location='cpu')\nmodel.eval()\n"
    assert fixed(text) == text.replace("'cpu')", "'cpu', weights_only=False)")


def test_both_arguments_are_added() -> None:
    text = "import torch\n\nmodel = torch.load(path)\nmodel.to(device).eval()\n"
    given = fixed(fixed(text))
    assert 'map_location="cpu"' in given and "weights_only=False" in given


SCRIPT = "import random\nimport torch\nimport numpy as np\n"
MAIN = "if __name__ == '__main__':\n    "
UNSEEDED = [
    "import unittest\nclass T(unittest.TestCase):\n    def setUp(self):\n"
    "        torch.manual_seed(0)\n        f(random.random()).backward()\n"
    + MAIN
    + "unittest.main()",
    f"{MAIN}⟦torch.manual_seed⟧(0)\n    i = np.random.permutation(9)\n    loss(i).backward()",
    f"{MAIN}⟦torch.manual_seed⟧(args.seed)\n    i = random.choice(a)\n    loss(i).backward()",
    "def train():\n    for x in a:\n        if random.random() < 1:\n            f(x).backward()\n"
    f"{MAIN}⟦torch.manual_seed⟧(0)\n    train()",
    "def set_seed(s):\n    ⟦torch.manual_seed⟧(s)\n"
    f"{MAIN}set_seed(0)\n    np.random.shuffle(a)\n    loss(a).backward()",
]
SEEDED = [
    f"{MAIN}torch.manual_seed(0)\n    i = torch.randn(9)\n    loss(i).backward()",
    f"{MAIN}torch.manual_seed(0)\n    np.random.seed(0)\n    l(np.random.rand()).backward()",
    f"{MAIN}torch.manual_seed(0)\n    seed_everything(0)\n    l(random.random()).backward()",
    f"{MAIN}torch.manual_seed(0)\n    g = np.random.default_rng(0)\n    l(g.random()).backward()",
    f"{MAIN}torch.manual_seed(np.random.randint(9))\n    l(np.random.rand()).backward()",
    "class D:\n    def __getitem__(self, i):\n        return random.random()\n"
    f"{MAIN}torch.manual_seed(0)\n    l(D()).backward()",
    "def load():\n    return random.random()\n"
    f"{MAIN}torch.manual_seed(0)\n    l(D(load)).backward()",
    "torch.manual_seed(0)\nx = np.random.rand()",  # trains nothing
    f"{MAIN}i = np.random.rand()\n    loss(i).backward()",
]


@pytest.mark.parametrize("snippet", [*UNSEEDED, *SEEDED])
def test_generators_without_a_seed(snippet: str) -> None:
    assert_found(snippet, "NPU311", SCRIPT)


def test_the_seed_is_given_to_all() -> None:
    text = (
        f"{SCRIPT}{MAIN}torch.manual_seed(args.seed)\n"
        "    i = np.random.rand() + random.random()\n    loss(i).backward()\n"
    )
    both = "(args.seed)\n    np.random.seed(args.seed)\n    random.seed(args.seed)\n"
    assert fixed(text) == text.replace("(args.seed)\n", both)


TOOLS = (
    "import random\nimport torch\nfrom msprobe.core.config_check import ConfigChecker\n"
    "from msprobe.pytorch import PrecisionDebugger\nfrom vllm import LLM\n"
)
MISPLACED = [
    "model = torch.nn.Linear(2, 2)\n⟦ConfigChecker.apply_patches⟧('pytorch')",
    "class Net(torch.nn.Module):\n    pass\nmodel = Net()\n⟦ConfigChecker.apply_patches⟧()",
    "def main():\n    x = random.random()\n    ⟦ConfigChecker.apply_patches⟧(fmk='pytorch')",
    "ConfigChecker(model=model)\n⟦ConfigChecker.apply_patches⟧()",
    "debugger = ⟦PrecisionDebugger⟧('a.json')\nengine = LLM(model='m')",
    "ConfigChecker.apply_patches()\nmodel = torch.nn.Linear(2, 2)\nConfigChecker(model=model)",
    "def build():\n    return torch.nn.Linear(2, 2)\nConfigChecker.apply_patches()\nbuild()",
    "loss = torch.nn.MSELoss()\nargs = parser.parse_args()\nConfigChecker.apply_patches()",
    "engine = LLM(model='m')\ndebugger = PrecisionDebugger('a.json')",
    "model = torch.nn.Linear(2, 2)\ndebugger = PrecisionDebugger('a.json')",
]


@pytest.mark.parametrize("snippet", MISPLACED)
def test_the_order_of_calls(snippet: str) -> None:
    assert_found(snippet, "NPU508", TOOLS)
