"""One answer for one module, whether it is analysed as a whole or statement by statement.

An editor analyses a module in pieces and keeps what it knows of the text before; a command reads
it as a whole. Each case here once got two answers.
"""

import pytest

from helpers import check, findings
from npulens.analysis import StatementCache

TRAINING = """\
import torch


def loader(data):
    return %s(data, 4, num_workers=8)


def main(model, data):
    for epoch in range(9):
        for x in loader(data):
            model(x).sum().backward()


if __name__ == "__main__":
    main(None, [])
"""
ROTATION = """\
def rotated(x, cos, sin):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    out = torch.empty_like(x)
    out[..., 0::2] = a * cos - b * sin
    {}out[..., 1::2] = a * sin + b * cos{}
    return out.type_as(x)
"""
OTHER = """\
class Video(torch.nn.Module):
    def __init__(self):
        self.act = torch.nn.SiLU()

    def forward(self, x):
        b, t, h, w, c = x.shape
        return self.act(x.view(b * t, h, w, c).permute(0, 3, 1, 2))


"""
CAPABILITY = """\
import torch

found = ⟦NPU102:torch.cuda.get_device_capability⟧()


def is_new():
    return %s >= (8, 0)
%s"""


def test_epochs_are_counted_in_another_function() -> None:
    check(TRAINING % "⟦NPU915:torch.utils.data.DataLoader⟧")


def test_a_loop_without_a_backward_pass_trains_nothing() -> None:
    """Of a library with a demonstration in it nobody knows whether its functions are hot."""
    check(
        "import torch\n\n\n"
        "def step(model, loader):\n    for x in loader:\n        model(x).sum().backward()\n"
        "        torch.npu.empty_cache()\n\n\n"
        "for name in ():\n    print(name)\n"
    )


def test_a_function_of_another_statement_is_handed_a_mask() -> None:
    check(
        "import torch\nfrom mmdet.models.utils import multi_apply\nfrom torch import Tensor\n\n\n"
        "def one(scores, inside_flags):\n    return ⟦NPU802:scores[inside_flags, :]⟧\n\n\n"
        "class Head(torch.nn.Module):\n"
        "    def forward(self, first: Tensor, second: Tensor):\n"
        "        inside = [first.sum(1) > 0, second.sum(1) > 0]\n"
        "        return multi_apply(one, [first, second], inside)\n"
    )


def test_what_is_known_of_a_parameter_is_not_known_of_one_of_the_same_name() -> None:
    """Five dimensions of a video say nothing about what another function rotates."""
    marked = ROTATION.format("⟦NPU706:", "⟧")
    check("import torch\n\n\n" + marked)
    check("import torch\n\n\n" + OTHER + marked)


def test_a_name_is_checked_for_none_in_another_function() -> None:
    asked = "\n\ndef is_there():\n    return found is not None\n"
    check(CAPABILITY % ("⟦NPU103:found⟧", ""))
    check(CAPABILITY % ("found", asked))


def test_tf32_is_turned_off_in_another_function() -> None:
    on = "import torch\n\n\ndef fast():\n    torch.backends.cudnn.allow_tf32 = True\n"
    off = "\n\ndef exact():\n    torch.backends.cudnn.allow_tf32 = False\n"
    assert findings(on) == ()
    assert len(findings(on + off)) == 2
    assert findings(on + off, cache=StatementCache()) == findings(on + off)


@pytest.mark.parametrize("handler", ["    apex = None\n", "    pass\n"])
def test_an_import_becomes_conditional_while_it_is_typed(handler: str) -> None:
    """A line that is missing makes of a conditional import a plain one, and others depend on it."""
    head = "import torch\n\ntry:\n    import apex\nexcept ImportError:\n"
    rest = "\n\ndef prepared(model):\n    return apex.parallel.convert_syncbn_model(model)\n"
    cache = StatementCache()
    for text in (head + handler + rest, head + rest, head + handler + rest):
        assert findings(text, cache=cache) == findings(text)


def test_lines_are_put_before_a_bracket_with_lines_at_the_margin() -> None:
    """Such a text parses as a whole alone, and then as a part of nothing."""
    before = "x = 1\ny = dict(\nz=dict(\n    a=1))\n"
    cache = StatementCache()
    for text in (before, before, "a b\n" + before, before):
        assert findings(text, cache=cache) == findings(text)
