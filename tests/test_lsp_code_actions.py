"""Code actions through the real server process: what is offered, and what it makes of a text."""

from collections.abc import Iterator

import pytest

from lsp_client import LspClient, Message, applied_edit, replacing

CALL = "torch.cuda.synchronize"
TEXT = f"import torch\n{CALL}()\n{CALL}()\n"
RESOLVES = {
    "dataSupport": True,
    "resolveSupport": {"properties": ["edit"]},
    "disabledSupport": True,
}
EVERYTHING = {
    "textDocument": {"codeAction": RESOLVES},
    "workspace": {
        "workspaceEdit": {
            "documentChanges": True,
            "changeAnnotationSupport": {"groupsOnLabel": True},
        }
    },
}
NORM = """\
import torch


def rms_norm(x, weight, eps):
    variance = x.pow(2).mean(-1, keepdim=True)
    return weight * (x * torch.rsqrt(variance + eps))
"""


@pytest.fixture(scope="module")
def client() -> Iterator[LspClient]:
    with LspClient() as shared:
        shared.initialize(capabilities=EVERYTHING)
        yield shared


@pytest.fixture(scope="module")
def plain() -> Iterator[LspClient]:
    """A client that can do little."""
    with LspClient() as shared:
        shared.initialize()
        yield shared


_names = iter(f"file:///nowhere/action_{number}.py" for number in range(1000))


@pytest.fixture
def uri() -> str:
    return next(_names)


def action(
    client: LspClient, uri: str, line: int, title: str, column: int = 5, **context: object
) -> Message:
    found = client.code_actions(uri, (line, column), (line, column), **context)
    (chosen,) = [each for each in found if title in each["title"]]
    return dict(chosen)


def resolved(client: LspClient, chosen: Message) -> Message:
    answer: Message = client.request("codeAction/resolve", chosen)
    return answer


def after(client: LspClient, uri: str, text: str, line: int, title: str, **context: object) -> str:
    """The text after an action was chosen."""
    return applied_edit(text, resolved(client, action(client, uri, line, title, **context))["edit"])


def test_edits_are_made_when_an_action_is_chosen(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT, version=4)
    chosen = action(client, uri, 1, "torch.npu.synchronize")
    assert chosen["isPreferred"] and "edit" not in chosen and chosen["data"]
    edit = resolved(client, chosen)["edit"]
    (change,) = edit["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 4}
    assert applied_edit(TEXT, edit) == (
        f"import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n{CALL}()\n"
    )


def test_an_action_for_another_text_is_refused(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    chosen = action(client, uri, 1, "torch.npu.synchronize")
    client.change(uri, 2, replacing((0, 0), (0, 0), "\n"))
    client.diagnostics(uri, 2)
    answer = client.response(client.start_request("codeAction/resolve", chosen))
    assert answer["error"]["code"] == -32801


def test_an_action_holds_though_the_file_is_saved_meanwhile(client: LspClient, uri: str) -> None:
    """As an editor does by itself, with the menu still open."""
    client.open(uri, TEXT)
    chosen = action(client, uri, 1, "torch.npu.synchronize")
    client.save(uri)
    action(client, uri, 1, "torch.npu.synchronize")
    assert "torch.npu.synchronize()" in applied_edit(TEXT, resolved(client, chosen)["edit"])


@pytest.mark.parametrize(
    "data",
    [
        1,
        {},
        {"uri": 3},
        {"uri": "URI", "analysis": "SERIAL"},
        {"uri": "URI", "analysis": "SERIAL", "do": "fix", "finding": 99, "fix": 0},
        {"uri": "URI", "analysis": "SERIAL", "do": "fix", "finding": "x", "fix": None},
    ],
)
def test_data_that_nobody_sent(client: LspClient, uri: str, data: object) -> None:
    client.open(uri, TEXT)
    known = action(client, uri, 1, "torch.npu.synchronize")["data"]
    if isinstance(data, dict):
        real = {"URI": uri, "SERIAL": known["analysis"]}
        data = {key: real.get(value, value) for key, value in data.items()}
    chosen = {"title": "x", "data": data}
    answer = client.response(client.start_request("codeAction/resolve", chosen))
    assert answer["error"]["code"] in (-32602, -32801)


def test_all_of_a_rule(client: LspClient, uri: str) -> None:
    text = TEXT + "x.cuda()\n"
    client.open(uri, text)
    assert after(client, uri, text, 1, "Fix all NPU101") == (
        "import torch\nimport torch_npu  # noqa: F401\n" + "torch.npu.synchronize()\n"
        "" * 2 + "x.cuda()\n"
    )
    # Editors put what names a diagnostic beside its fixes.
    (named,) = action(client, uri, 1, "Fix all NPU101")["diagnostics"]
    assert named["range"]["start"]["line"] == 1


def test_fix_all(client: LspClient, uri: str) -> None:
    text = TEXT + "x.cuda()\n"
    client.open(uri, text)
    expected = (
        "import torch\nimport torch_npu  # noqa: F401\n"
        + "torch.npu.synchronize()\n" * 2
        + "x.npu()\n"
    )
    for only in (["source.fixAll.npulens"], ["source.fixAll"], ["source"]):
        assert after(client, uri, text, 0, "all safe fixes", only=only) == expected
    assert not client.code_actions(uri, (0, 0), (3, 0), only=["source.fixAll.ruff"])
    assert not client.code_actions(uri, (0, 0), (3, 0), only=["source.fixAllOther"])


def test_fix_all_is_there_at_once_for_clients_that_cannot_ask(plain: LspClient, uri: str) -> None:
    plain.open(uri, TEXT)
    (chosen,) = plain.code_actions(uri, (0, 0), (3, 0), only=["source.fixAll.npulens"])
    assert "torch.npu" in applied_edit(TEXT, chosen["edit"])


def test_device_agnostic_style(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    text = after(client, uri, TEXT, 1, "device-agnostic")
    assert text == "import torch\n" + "torch.accelerator.synchronize()\n" * 2


def test_rewriting_for_clients_that_cannot_ask(plain: LspClient, uri: str) -> None:
    plain.open(uri, TEXT)
    chosen = action(plain, uri, 1, "device-agnostic")
    edits = []

    def apply(params: Message) -> Message:
        edits.append(params["edit"])
        return {"applied": True}

    plain.answers["workspace/applyEdit"] = apply
    assert plain.request("workspace/executeCommand", chosen["command"]) is True
    assert "torch.accelerator" in applied_edit(TEXT, edits[0])


def test_a_fused_operator_is_a_rewrite(client: LspClient, uri: str) -> None:
    client.open(uri, NORM)
    (found,) = client.diagnostics(uri, 1)
    line = found["range"]["start"]["line"]
    rewrites = client.code_actions(uri, (line, 20), (line, 20), only=["refactor"])
    titles = [each["title"] for each in rewrites if each["kind"] == "refactor.rewrite"]
    assert any("npu_rms_norm" in title for title in titles), titles


def test_what_the_code_does_not_say_is_chosen_place_by_place(client: LspClient, uri: str) -> None:
    unit = "\n\ndef {}(act_fn, gate, up):\n    out = act_fn(gate) * up\n    return out\n"
    text = "import torch\n" + unit.format("first") + unit.format("second")
    client.open(uri, text)
    found = client.code_actions(uri, (4, 20), (4, 20))
    titles = [each["title"] for each in found]
    assert sum("if the configured activation is" in title for title in titles) == 3, titles
    assert not any("Fix all" in title for title in titles), titles
    changed = after(client, uri, text, 4, "Use torch_npu.npu_swiglu, if", column=20)
    assert changed.count("npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)") == 1


def test_an_unsafe_fix_says_so_and_is_applied_as_it_is(client: LspClient, uri: str) -> None:
    text = 'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = x\n'
    client.open(uri, text)
    chosen = action(client, uri, 1, "Use `PYTORCH_NPU_ALLOC_CONF`", column=15)
    assert chosen["title"].endswith(" (unsafe: review the result)")
    assert not chosen.get("isPreferred")
    edit = resolved(client, chosen)["edit"]
    assert "changeAnnotations" not in edit
    assert "PYTORCH_NPU_ALLOC_CONF" in applied_edit(text, edit)


def test_who_applies_a_fix_as_offered_has_all_of_it(client: LspClient, uri: str) -> None:
    """Editors do not apply what needs confirmation until it is ticked, edit by edit."""
    client.open(uri, NORM)
    (found,) = client.diagnostics(uri, 1)
    line = found["range"]["start"]["line"]
    (chosen, *_) = [
        each
        for each in client.code_actions(uri, (line, 20), (line, 20), only=["refactor"])
        if "npu_rms_norm" in each["title"]
    ]
    edit = resolved(client, chosen)["edit"]
    assert edit.get("changeAnnotations", {}) == {}
    after = applied_edit(NORM, edit)
    assert "import torch_npu\n" in after and "torch_npu.npu_rms_norm(x, weight" in after


def test_an_unsafe_rewrite_is_one_edit_beside_its_import(client: LspClient, uri: str) -> None:
    """Who previews it ticks it as a whole: half of it leaves names that nothing assigns."""
    text = (
        "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
        "def attend(q, k, v):\n"
        "    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n"
        "    att = F.softmax(att, dim=-1)\n"
        "    y = att @ v\n"
        "    return y\n"
    )
    client.open(uri, text)
    edit = resolved(client, action(client, uri, 8, "npu_fusion_attention", column=10))["edit"]
    (change,) = edit["documentChanges"]
    starts = sorted(each["range"]["start"]["line"] for each in change["edits"])
    assert starts[-1] == 6 and all(line < 4 for line in starts[:-1])
    made = applied_edit(text, edit)
    assert "torch_npu.npu_fusion_attention(" in made and "softmax" not in made


def test_an_import_that_a_fix_leaves_needless_goes_with_it(client: LspClient, uri: str) -> None:
    text = (
        "import torch\nimport torch.nn.functional as F\n\n\n"
        "def gated(a, b):\n    return F.silu(a) * b\n"
    )
    client.open(uri, text)
    made = after(client, uri, text, 5, "Use torch_npu.npu_swiglu (", column=15)
    assert made == (
        "import torch\nimport torch_npu\n\n\n"
        "def gated(a, b):\n    return torch_npu.npu_swiglu(torch.cat((a, b), dim=-1), dim=-1)\n"
    )


def test_fixing_all_of_an_unsafe_rule_says_so(client: LspClient, uri: str) -> None:
    text = "import torch_npu\n" + NORM + NORM[len("import torch") :].replace("rms_norm", "other")
    client.open(uri, text)
    (found, *_) = client.diagnostics(uri, 1)
    line = found["range"]["start"]["line"]
    titles = [each["title"] for each in client.code_actions(uri, (line, 20), (line, 20))]
    (fix_all,) = [title for title in titles if title.startswith("Fix all")]
    assert fix_all.endswith(" (unsafe: review the result)")


def test_what_cannot_be_fixed_says_why(client: LspClient, plain: LspClient, uri: str) -> None:
    text = "import torch\ny = torch.std_mean(torch.ones(3))\n"
    for one in (client, plain):
        one.open(uri, text)
        (found,) = one.diagnostics(uri, 1)
        refused = [a for a in one.code_actions(uri, (1, 8), (1, 8)) if "disabled" in a]
        if one is plain:
            assert not refused
        else:
            reason = refused[0]["disabled"]["reason"]
            assert reason.startswith("No edit does this") and reason.endswith(found["message"])


SUPPRESSED = [
    (TEXT, 1, "line", f"import torch\n{CALL}()  # npulens: ignore[NPU101]\n{CALL}()\n"),
    (TEXT, 1, "file", f"# npulens: ignore-file[NPU101]\n{TEXT}"),
    (
        f"#!/usr/bin/env python\n# coding: utf-8\n{TEXT}",
        3,
        "file",
        f"#!/usr/bin/env python\n# coding: utf-8\n# npulens: ignore-file[NPU101]\n{TEXT}",
    ),
    (
        f"import torch\n{CALL}()  # npulens: ignore[NPU105]\n",
        1,
        "line",
        f"import torch\n{CALL}()  # npulens: ignore[NPU105, NPU101]\n",
    ),
    (
        f"import torch\n{CALL}(  # why\n)\n",
        1,
        "line",
        f"import torch\n{CALL}(  # why  # npulens: ignore[NPU101]\n)\n",
    ),
    (
        f"import torch\r\n{CALL}()\r\n",
        1,
        "line",
        f"import torch\r\n{CALL}()  # npulens: ignore[NPU101]\r\n",
    ),
    (
        f"# npulens: ignore-file[NPU105]\n{TEXT}x.cuda()\n",
        2,
        "file",
        f"# npulens: ignore-file[NPU105, NPU101]\n{TEXT}x.cuda()\n",
    ),
]


@pytest.mark.parametrize(("text", "line", "where", "expected"), SUPPRESSED)
def test_suppressing(
    client: LspClient, uri: str, text: str, line: int, where: str, expected: str
) -> None:
    client.open(uri, text)
    place = {"line": "on this line", "file": "in this file"}[where]
    changed = after(client, uri, text, line, f"Suppress NPU101 {place}")
    assert changed == expected
    client.change(uri, 2, {"text": changed})
    kept = [d for d in client.diagnostics(uri, 2) if d["code"] == "NPU101"]
    here = [d for d in kept if where == "file" or d["range"]["start"]["line"] == line]
    assert not here


def test_each_way_to_silence_is_offered_once(client: LspClient, uri: str) -> None:
    text = f"import torch\nx = ({CALL}(), {CALL}(), y.cuda())\n{CALL}()\n"
    client.open(uri, text)

    def offered(end: tuple[int, int]) -> list[str]:
        titles = [each["title"] for each in client.code_actions(uri, (1, 0), end)]
        return sorted(title for title in titles if "Suppress" in title)

    one, other = (
        [f"Suppress {code} in this file", f"Suppress {code} on this line"]
        for code in ("NPU101", "NPU105")
    )
    assert offered((1, 70)) == [*one, *other]
    assert offered((2, 9)) == [*one, one[1], *other]


def test_no_comment_is_put_into_a_text_or_before_a_continued_line(
    plain: LspClient, uri: str
) -> None:
    text = f'import torch\nx = f"""\n{{{CALL}()}}\n"""\ny = 1 + \\\n  {CALL}() + \\\n  2\n'
    plain.open(uri, text)
    lines = [d["range"]["start"]["line"] for d in plain.diagnostics(uri, 1)]
    assert lines == [2, 5]
    for line in lines:
        titles = [a["title"] for a in plain.code_actions(uri, (line, 5), (line, 5))]
        assert not any("on this line" in title for title in titles)
        assert any("in this file" in title for title in titles)


def test_a_rule_is_explained(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    chosen = action(client, uri, 1, "Explain NPU101")
    page = client.request("workspace/executeCommand", chosen["command"])
    assert page.startswith("# NPU101 cuda-api") and "becomes" in page
    assert "NPU101" in client.shown[-1]["message"]


def test_native_sources_have_no_suppressions(client: LspClient) -> None:
    uri = "file:///nowhere/bind.cu"
    client.open(uri, 'PYBIND11_MODULE(x, m) { m.def("nms", &nms); }\n', language="cuda-cpp")
    assert client.diagnostics(uri, 1)
    titles = [a["title"] for a in client.code_actions(uri, (0, 0), (0, 40))]
    assert not any("Suppress" in title for title in titles)


TRAINING = """\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("line", [5, 7, 8])
def test_a_profiler_is_put_in_and_taken_out(client: LspClient, uri: str, line: int) -> None:
    client.open(uri, TRAINING)
    profiled = applied_edit(TRAINING, action(client, uri, line, "Ascend PyTorch Profiler")["edit"])
    assert profiled.splitlines()[-2].startswith("    npu_profiler.step()")
    client.change(uri, 2, {"text": profiled})
    last = profiled.count("\n") - 1
    removed = action(client, uri, last, "Take out the lines of all instruments")
    assert applied_edit(profiled, removed["edit"]) == TRAINING


def test_no_instrument_where_nothing_trains(client: LspClient, uri: str) -> None:
    text = "for x in loader:\n    model.train()\n    print(x)\n"
    client.open(uri, text)
    assert not [
        each for each in client.code_actions(uri, (0, 1), (0, 1)) if "Profiler" in each["title"]
    ]
