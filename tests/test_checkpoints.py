"""Checkpoints that are loaded to where they were saved."""

import pytest

from helpers import check, code, fixed

FIXED = [
    ('torch.load("a.pth")', 'torch.load("a.pth", map_location="cpu")'),
    (
        "torch.load(path, weights_only=True)",
        'torch.load(path, map_location="cpu", weights_only=True)',
    ),
    ('torch.load(open("a", "rb"))', 'torch.load(open("a", "rb"), map_location="cpu")'),
    ("torch.jit.load(path)", 'torch.jit.load(path, map_location="cpu")'),
    (
        "model.load_state_dict(torch.load(path))",
        'model.load_state_dict(torch.load(path, map_location="cpu"))',
    ),
]
NOT_FOUND = [
    'torch.load(path, map_location="cpu")',
    'torch.load(path, "cpu")',
    "torch.load(path, map_location=device)",
    "torch.load(path, **options)",
    "torch.load(*arguments)",
    "json.load(path)",
    "model.load(path)",
    "torch.hub.load(path)",
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_a_place_is_given(before: str, after: str) -> None:
    assert fixed(f"import torch\n\nstate = {before}\n") == f"import torch\n\nstate = {after}\n"


TO_THE_HOST = [
    # without CUDA they are read to the host, which works on the NPU
    "if torch.cuda.is_available():\n    s = torch.load(path)\n"
    "else:\n    s = torch.load(path, map_location=torch.device('cpu'))",
    "if not torch.cuda.is_available():\n    s = load(path, map_location='cpu', strict=True)\n"
    "else:\n    s = load(path, strict=True)",
    "map_location = None if torch.cuda.is_available() else 'cpu'",
    "torch.load(p, map_location=None if torch.cuda.is_available() else torch.device('cpu'))",
    "torch.load(p) if torch.cuda.is_available() else torch.load(p, map_location='cpu')",
    "torch.load(p, map_location=(None if torch.cuda.is_available() else lambda s, place: s))",
]


@pytest.mark.parametrize("snippet", TO_THE_HOST)
def test_a_condition_that_reads_to_the_host_stays(snippet: str) -> None:
    text = f"import torch\n{snippet}\n"
    check(text)
    assert fixed(text) == text


@pytest.mark.parametrize("call", NOT_FOUND)
def test_what_names_a_place_is_not_found(call: str) -> None:
    check(f"import json\nimport torch\n\nstate = {call}\n")


@pytest.mark.parametrize("call", ["torch.load((path))", "torch.load(\n    # trained\n    path)"])
def test_what_cannot_be_written_has_no_fix(call: str) -> None:
    text = f"import torch\n\nstate = {call}\n"
    check(text.replace("torch.load", "⟦NPU117:torch.load⟧"))
    assert fixed(text) == text


WHOLE = {
    "called": ("model = torch.load(path)\ny = model(x)", False),
    "an attribute": ("self.net = torch.load(path)\nself.net.eval()", False),
    "moved": ("model = torch.load(path)\nmodel.to(device)\ny = model(x)", True),
    "moved at once": ("model = torch.load(path).to(device)\ny = model(x)", True),
    "its values": ("state = torch.load(path)\nmodel.load_state_dict(state['model'])", True),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_model_that_nothing_moves_is_not_left_on_the_host(name: str) -> None:
    snippet, is_written = WHOLE[name]
    text = f"import torch\n\n{snippet}\n"
    marked = "⟦NPU117:torch.load⟧"
    if name != "its values":
        marked = f"⟦NPU119:{marked}⟧"
    check(text.replace("torch.load", marked))
    assert ("map_location" in fixed(text)) is is_written


def test_other_names_of_the_function() -> None:
    check(
        code(
            """
        from torch import load as load_file

        def restore(path):
            return ⟦NPU117:load_file⟧(path)["model"]
        """
        )
    )


CHOSEN = [
    "device = None if ⟦NPU101:torch.cuda.is_available⟧() else 'cpu'",
    "place = ⟦NPU110:'cuda'⟧ if ⟦NPU101:torch.cuda.is_available⟧() else 'cpu'\n"
    "s = torch.load(path, map_location=place)",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    s = ⟦NPU117:torch.load⟧(path)\n"
    "else:\n    s = torch.load(other, map_location='cpu')",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    s = ⟦NPU117:torch.load⟧(path)\n"
    "    m.⟦NPU105:cuda⟧()\nelse:\n    s = torch.load(path, map_location='cpu')",
]


@pytest.mark.parametrize("snippet", CHOSEN)
def test_a_condition_that_chooses_more_is_found(snippet: str) -> None:
    check("import torch\n" + snippet)
