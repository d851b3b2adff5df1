"""Methods that move to a device, taken by name and called later."""

import pytest

from helpers import check, findings, fixed

TAKEN = {
    "one of two": "def f(x, small):\n    return (x.cpu if small else x.⟦NPU105:cuda⟧)()\n",
    "by a name": "def f(model):\n    move = model.⟦NPU105:cuda⟧\n    return move()\n",
    "one of two by a name": (
        "def f(model, on):\n    move = model.⟦NPU105:cuda⟧ if on else model.cpu\n"
        "    return move(0)\n"
    ),
    "in a method": (
        "class A:\n    def f(self):\n        move = self.model.⟦NPU105:cuda⟧\n        move()\n"
    ),
}
OTHERS = {
    "a setting": "def f(config):\n    use = config.cuda\n    return use\n",
    "a setting of two": "def f(config, on):\n    use = config.cuda if on else False\n"
    "    return use\n",
    "another function of that name": (
        "def f(config):\n    use = config.cuda\n    other.use()\n    return use\n"
    ),
    "a class of its own": (
        "class Batch:\n    def cuda(self):\n        return self\n\n\n"
        "def f():\n    batch = Batch()\n    move = batch.cuda\n    return move()\n"
    ),
    "a module": "def f():\n    device = torch.version\n    return device()\n",
}


@pytest.mark.parametrize("snippet", [*TAKEN.values(), *OTHERS.values()])
def test_what_is_called_later_is_found(snippet: str) -> None:
    check(f"import torch\n\n\n{snippet}")


@pytest.mark.parametrize("snippet", TAKEN.values(), ids=TAKEN)
def test_it_is_renamed_where_it_is_taken(snippet: str) -> None:
    source = f"import torch\n\n\n{snippet}".replace("⟦NPU105:", "").replace("⟧", "")
    text = fixed(source)
    assert text == source.replace("cuda", "npu").replace(
        "import torch\n", "import torch\nimport torch_npu  # noqa: F401\n"
    )
    assert findings(text) == ()
