"""Advice on the speed of training scripts: where the cause is seen, and where it is not."""

import pytest

from helpers import check, code, findings, fixed

HEAD = """\
import gc
import torch
import torch_npu  # noqa: F401
from torch.utils.data import DataLoader, TensorDataset
from torch.autograd import set_detect_anomaly as watch, detect_anomaly


"""
MAIN = """

if __name__ == "__main__":
    main(*setup())
"""


def script(body: str, main: str = MAIN) -> str:
    """A script whose `main` has this body."""
    lines = ("    " + line if line else line for line in body.split("\n"))
    return f"{HEAD}def main(model, data, loader, optimizer, device):\n{chr(10).join(lines)}\n{main}"


def step(*lines: str) -> str:
    """A training loop with these lines behind its backward pass."""
    inner = "\n    ".join(["loss = model(batch)", "loss.backward()", *lines])
    return f"for batch in loader:\n    {inner}"


STEP = step()

FOUND = [
    f"⟦NPU911:torch.autograd.set_detect_anomaly(True)⟧\n{STEP}",
    f"⟦NPU911:torch.autograd.set_detect_anomaly(mode=True)⟧\n{STEP}",
    f"⟦NPU911:watch(True, check_nan=False)⟧\n{STEP}",
    "with ⟦NPU911:detect_anomaly()⟧:\n    for batch in loader:\n        model(batch).backward()",
    step("print(⟦NPU912:loss.item()⟧)"),
    step("total += ⟦NPU912:loss.item()⟧"),
    step("log(⟦NPU912:loss.detach().cpu().item()⟧)"),
    step("total_loss = loss + 1", "seen.append(⟦NPU912:total_loss.tolist()⟧)"),
    "for epoch in range(3):\n    for batch in loader:\n        loss = model(batch)\n"
    "        loss.backward()\n        history.append(⟦NPU912:loss.item()⟧)",
    "while True:\n    loss = model(batch)\n    loss.backward()\n    print(⟦NPU912:loss.item()⟧)",
    step("⟦NPU913:gc.collect()⟧"),
    step("⟦NPU913:torch.npu.empty_cache()⟧"),
    step("⟦NPU913:torch_npu.npu.empty_cache()⟧"),
    f"loader = ⟦NPU914:DataLoader⟧(data, batch_size=8)\n{STEP}",
    f"loader = ⟦NPU914:DataLoader⟧(data, 8, num_workers=0)\n{STEP}",
    f"loader = ⟦NPU914:torch.utils.data.DataLoader⟧(data, 8, True, None, None, 0)\n{STEP}",
    "loader = ⟦NPU915:DataLoader⟧(data, num_workers=4)\nfor epoch in range(3):\n"
    "    for batch in loader:\n        model(batch).backward()",
    "loader = DataLoader(data, num_workers=n, pin_memory=True)\nfor x, y in loader:\n"
    "    x = ⟦NPU916:x.to(device)⟧\n    loss = model(x)\n    loss.backward()",
    "loader = DataLoader(data, num_workers=n, pin_memory=True)\nfor batch in loader:\n"
    '    x = ⟦NPU916:batch["x"].npu()⟧\n    model(x).backward()',
    f"torch.npu.set_compile_mode(⟦NPU918:jit_compile=True⟧)\n{STEP}",
]

NOT_FOUND = [
    f"torch.autograd.set_detect_anomaly(False)\n{STEP}",
    f"torch.autograd.set_detect_anomaly(args.debug)\n{STEP}",
    f"other.set_detect_anomaly(True)\n{STEP}",
    step("if step % 100 == 0:", "    print(loss.item())"),
    step("total += loss.detach()"),
    step("try:", "    save()", "except OSError:", "    print(loss.item())"),
    step("is_shown and print(loss.item())"),
    step("match phase:", "    case 'last':", "        print(loss.item())"),
    step("name = key.item()", "row = table.item(3)"),
    "for batch in loader:\n    print(model(batch).sum().item())",
    "for epoch in range(3):\n    for batch in loader:\n        model(batch).backward()\n"
    "    print(loss.item())\n    gc.collect()\n    torch.npu.empty_cache()",
    step("def report():", "    return loss.item()"),
    step("garbage.collect()"),
    f"loader = DataLoader(data, num_workers=4, persistent_workers=True)\n{STEP}",
    f"loader = DataLoader(data, num_workers=args.workers)\n{STEP}",
    f"loader = DataLoader(data, **options)\n{STEP}",
    f"loader = DataLoader(*options)\n{STEP}",
    f"val_loader = DataLoader(test_data, 8)\n{STEP}",
    f"loader = DataLoader(data, num_workers=4)\n{STEP}",
    f"pairs = TensorDataset(x, y)\nloader = DataLoader(pairs, 8, shuffle=True)\n{STEP}",
    f"loader = DataLoader(TensorDataset(x, y), 8)\n{STEP}",
    f"loader = DataLoader([x, y], 8)\n{STEP}",
    "loader = DataLoader(valset, num_workers=1)\nfor epoch in range(3):\n"
    "    for batch in loader:\n        model(batch).backward()",
    "loader = DataLoader(data, num_workers=n, pin_memory=True)\nfor x, y in loader:\n"
    "    x = x.to(device, non_blocking=True)\n    model(x).backward()",
    "loader = DataLoader(data, num_workers=n, pin_memory=True)\nfor x, y in loader:\n"
    "    x = x.to(torch.float16)\n    y = y.to('cpu')\n    model(x).backward()",
    "loader = DataLoader(data, num_workers=n, pin_memory=False)\nfor x, y in loader:\n"
    "    x = x.to(device)\n    model(x).backward()",
    f"torch.npu.set_compile_mode(jit_compile=False)\n{STEP}",
]


@pytest.mark.parametrize("body", FOUND)
def test_advice_where_the_cause_is_seen(body: str) -> None:
    check(script(body))


@pytest.mark.parametrize("body", NOT_FOUND)
def test_no_advice_where_it_is_not(body: str) -> None:
    nothing_is_advised(script(body))


def nothing_is_advised(source: str) -> None:
    """What is told of shapes does not hang on what a module is."""
    assert [f for f in findings(source) if f.rule.family != "dynamic"] == []


@pytest.mark.parametrize("body", FOUND)
def test_no_advice_in_a_library_or_a_test(body: str) -> None:
    bare = script(body, main="").replace("⟦", "<").replace("⟧", ">")
    for code_of_rule in ("911", "912", "913", "914", "915", "916", "918"):
        bare = bare.replace(f"<NPU{code_of_rule}:", "")
    bare = bare.replace(">", "")
    nothing_is_advised(bare)
    nothing_is_advised(f"{bare}\n\ndef test_main():\n    pass\n{MAIN}")


def test_a_loop_of_the_module_makes_a_script_too() -> None:
    check(HEAD + "for batch in loader():\n    loss = model(batch)\n    loss.backward()\n"
          "    print(⟦NPU912:loss.item()⟧)\n")  # fmt: skip


def test_each_advice_is_given_once() -> None:
    source = script(step("a = loss.item()", "b = loss.item()", "gc.collect()", "gc.collect()"))
    advice = [f.rule.code for f in findings(source) if f.rule.family != "dynamic"]
    assert advice == ["NPU912", "NPU913"]


def test_all_of_it_is_a_hint() -> None:
    source = script("torch.autograd.set_detect_anomaly(True)\n" + step("gc.collect()"))
    assert {f.effective_severity.value for f in findings(source)} == {"hint"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.to(device)", "x = x.to(device, non_blocking=True)"),
        ("x = x.npu()", "x = x.npu(non_blocking=True)"),
        ("x = x.to(\n    device,\n)", "x = x.to(\n    device, non_blocking=True,\n)"),
    ],
)
def test_arguments_are_added(before: str, after: str) -> None:
    def whole(line: str) -> str:
        line = line.replace("\n", "\n    ")
        return script(
            "loader = DataLoader(data, num_workers=n, pin_memory=True)\n"
            f"for x in loader:\n    {line}\n    model(x).backward()"
        )

    assert fixed(code(whole(before))) == whole(after)


@pytest.mark.parametrize(
    "advice", ["torch.optim.Lamb(p)", "nn.Linear(3, 4)", "DDP(m, bucket_cap_mb=1000)"]
)
def test_no_advice_without_evidence(advice: str) -> None:
    """Each optimizer, layer or bucket size told to be changed is an advice nobody reads."""
    imports = "from torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    check(imports + script(f"x = {advice}\n{STEP}"))


@pytest.mark.parametrize(
    ("source", "is_reported"), [("torch.randn(64, 2)", False), ("read()", True)]
)
def test_a_dataset_of_generated_numbers_needs_no_workers(source: str, is_reported: bool) -> None:
    dataset = f"""
class Numbers(torch.utils.data.Dataset):
    def __init__(self):
        self.x = {source}

    def __getitem__(self, index):
        return self.x[index]

"""
    name = "⟦NPU914:DataLoader⟧" if is_reported else "DataLoader"
    body = script(f"loader = {name}(Numbers())\n{STEP}")
    check(body.replace("\ndef ", f"{dataset}\ndef ", 1))
