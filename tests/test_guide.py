"""`npulens guide`: what answers its points, its state file, its outputs in both languages."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from commands import git, invoke
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import LANGUAGES
from npulens.cli.instrument import KINDS
from npulens.cli.main import cli
from npulens.text.kinds import Kind
from npulens.workspace.files.folders import STATE_FILE
from npulens.workspace.guiding.guide_points import Need, guide_plan
from npulens.workspace.guiding.guide_state import Mark, change_state
from npulens.workspace.guiding.noted_runs import note_run
from npulens.workspace.guiding.point_answers import _FITTING, _KINDS
from npulens.workspace.verifying.outcomes import Outcome, Verdict
from npulens.workspace.verifying.run_arguments import RunArguments
from npulens.workspace.verifying.verification import Verification
from test_schemas import validator

ROOT = Path(__file__).resolve().parents[1]
GPU = """\
import torch

model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.ones(4, 2).cuda():
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""
NPU = GPU.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu")
POINTS = [point.id for point in guide_plan().points]


def guide(*arguments: str) -> tuple[int, dict[str, Any]]:
    """The points of the current folder by their ids, and the exit code."""
    code, output, errors = invoke("guide", ".", "--output-format", "json", *arguments)
    assert errors in ("", "npulens: .: no Python file in this folder\n")
    record = json.loads(output)
    assert [each.message for each in validator("guide.schema.json").iter_errors(record)] == []
    assert (record["next"] is None) == (code == 0)
    return code, {point["id"]: point for phase in record["phases"] for point in phase["points"]}


def states(*arguments: str) -> dict[str, str]:
    return {id_: point["state"] for id_, point in guide(*arguments)[1].items()}


def write(here: Path, **files: str) -> None:
    for name, text in files.items():
        path = here / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def train(here: Path, text: str) -> None:
    (here / "train.py").write_text(text, encoding="utf-8")


# The points as data


def test_every_point_can_be_answered_and_has_its_texts() -> None:
    plan = guide_plan()
    assert len(set(POINTS)) == len(POINTS)
    assert [phase.id for phase in plan.phases] == [*dict.fromkeys(p.phase for p in plan.points)]
    for point in plan.points:
        assert re.fullmatch(r"[a-z][a-z-]*", point.id)
        assert point.read, point.id
        codes = [re.findall(r"`[^`]+`", point.text.in_language(each)) for each in LANGUAGES]
        assert sorted(codes[0]) == sorted(set(codes[0]) & set(codes[1])) or codes[1], point.id
        for text in (point.title, point.text):
            assert re.search(r"[\u4e00-\u9fff]", text.zh), point.id
            assert not re.search(r"[\u4e00-\u9fff]", text.en), point.id


def test_what_points_need_exists() -> None:
    rules = load_catalogue().rules.values()
    for need in guide_plan().needs:
        assert any(getattr(need, field) for field in (*_KINDS, "run"))
        assert not need.findings or need.findings in _FITTING
        assert set(need.families) <= {rule.family for rule in rules}
        assert set(need.rules) <= {rule.name for rule in rules}
        assert set(need.kinds) <= {kind.value for kind in Kind}
        assert {*need.instruments, *need.without_instruments} <= set(KINDS)
        assert need.run in ("", "any", "migrated")
        assert bool(need.written) == bool(need.kinds)


def test_commands_and_pages_of_points_exist() -> None:
    codes = load_catalogue().rules.keys()
    for point in guide_plan().points:
        for command in (point.command, point.then, *point.read):
            words = command.split()
            if words[:1] == ["npulens"]:
                known = {name for each in cli.commands[words[1]].params for name in each.opts}
                assert {word for word in words if word.startswith("--")} <= known
                for code in re.findall(r"NPU\d+", command):
                    assert any(each.startswith(code) for each in codes), code
        for page in point.read:
            if page.startswith("docs/"):
                assert (ROOT / page).is_file(), page


@pytest.mark.parametrize("name", ["guide.md", "guide.zh-CN.md"])
def test_the_page_says_what_answers_each_point(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| "))
    assert [id_ for id_ in POINTS if f"`{id_}`" not in rows] == []


# What answers them


def test_a_folder_without_anything(here: Path) -> None:
    code, points = guide()
    assert code == 1
    assert {point["state"] for point in points.values()} == {"open"}
    assert points["safe-fixes"]["evidence"] == "no file here uses PyTorch"
    assert points["verified"]["command"] == "npulens verify --as-is --steps 3 SCRIPT"


def test_a_script_for_the_gpu(here: Path) -> None:
    train(here, GPU)
    code, points = guide()
    assert code == 1
    assert points["training"]["evidence"] == "steps at train.py:5"
    assert points["training"]["by"] == "code"
    assert points["training"]["place"] == {"path": str(here / "train.py"), "line": 5}
    assert points["safe-fixes"]["evidence"] == "2 findings, the first at train.py:3"
    assert points["baseline"]["command"] == "python train.py"
    done = {id_ for id_, point in points.items() if point["state"] == "done"}
    assert {"training", "blockers", "unsafe-fixes", "by-hand", "instruments-out"} <= done
    assert not {"safe-fixes", "npu-code", "verified", "environment", "profile"} & done
    assert points["export"]["state"] == "not-needed"
    assert not (here / STATE_FILE).exists()


def test_the_script_after_its_fixes(here: Path) -> None:
    train(here, GPU)
    invoke("fix", "--allow-dirty", "train.py")
    _, points = guide()
    assert points["safe-fixes"]["state"] == points["npu-code"]["state"] == "done"
    assert points["npu-code"]["evidence"].startswith("`torch_npu` at train.py:2")


@pytest.mark.parametrize(
    ("code", "is_done"),
    [
        ("import torch\nx = torch.ones(1)\n", False),
        ("import torch\nx = torch.ones(1).to('npu:0')\n", True),
        ("import torch as t\nt.npu.synchronize()\n", True),
        ("import torch\nx = torch.ones(1)  # .to('npu') import torch_npu\n", False),
        ("import torch\nfrom accelerate import Accelerator\na = Accelerator()\n", True),
        ("import torch\ndevice = torch.accelerator.current_accelerator()\n", True),
    ],
)
def test_code_for_the_npu(here: Path, code: str, is_done: bool) -> None:
    train(here, code)
    assert (states()["npu-code"] == "done") == is_done


def test_only_what_the_script_imports_chooses_the_npu(here: Path) -> None:
    train(here, GPU.replace(".cuda()", ""))
    write(here, other_DOT_py="import torch_npu\n")
    assert states()["npu-code"] == "open"
    train(here, "import other\n" + GPU.replace(".cuda()", ""))
    assert guide()[1]["npu-code"]["evidence"] == "`torch_npu` at other.py:1"


def test_training_that_is_not_understood(here: Path) -> None:
    train(
        here, "import torch\ndef f(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
    )
    _, points = guide()
    assert points["training"]["state"] == "open"
    assert "train.py:4: no loop of this file runs `f`" in points["training"]["evidence"]
    assert points["training"]["command"] == "npulens instrument step-time train.py --diff"
    assert points["profile"]["command"] == "npulens instrument profiler SCRIPT"
    assert points["baseline"]["command"] == "python SCRIPT"


def test_training_in_a_class_of_another_file(here: Path) -> None:
    code = "import torch\nfrom ours import OurTrainer\nt = OurTrainer()\nt.train(resume=None)\n"
    train(here, code)
    _, points = guide()
    assert points["training"]["state"] == points["verified"]["state"] == "open"
    said = "train.py:2 looks like training, but no loop is understood"
    assert points["training"]["evidence"] == said
    assert points["training"]["place"]["line"] == 2


def test_a_project_that_only_predicts(here: Path) -> None:
    train(here, "import torch, torch_npu\nprint(torch.ones(1).npu())\n")
    found = states()
    for id_ in ("training", "trial", "verified", "determinism", "watch"):
        assert found[id_] == "not-needed"


def test_the_script_that_starts_is_not_the_file_with_the_loop(here: Path) -> None:
    loop = NPU.replace("for x", "def run():\n  for x").replace("    loss", "      loss")
    write(here, engine__loop_DOT_py=loop.replace("    opt", "      opt"))
    write(here, main_DOT_py="from engine.loop import run\nif __name__ == '__main__':\n    run()\n")
    _, points = guide()
    assert points["first-run"]["command"] == "python main.py"
    assert points["profile"]["command"] == "npulens instrument profiler engine/loop.py"


@pytest.mark.parametrize(
    ("name", "shown"), [("my train.py", "'my train.py'"), ("train\n.py", "SCRIPT")]
)
def test_names_in_commands_are_one_word(here: Path, name: str, shown: str) -> None:
    (here / name).write_text(NPU)
    assert guide()[1]["profile"]["command"] == f"npulens instrument profiler {shown}"


def test_versions_and_scripts(here: Path) -> None:
    train(here, NPU)
    assert (states()["versions"], states()["launch"]) == ("open", "open")
    write(here, requirements_DOT_txt="torch\ntorch-npu\n")
    assert states()["versions"] == "open"
    write(here, requirements_DOT_txt="torch==2.7.1\ntorch-npu==2.7.1\n")
    write(here, run_DOT_sh="#!/bin/bash\n# source set_env.sh\npython train.py\n")
    assert (states()["versions"], states()["launch"]) == ("done", "open")
    write(here, requirements_DOT_txt="torch==2.6.0\ntorch-npu==2.7.1\n")
    write(here, run_DOT_sh="source /usr/local/Ascend/cann/set_env.sh\npython train.py\n")
    _, points = guide()
    assert (points["versions"]["state"], points["launch"]["state"]) == ("open", "done")
    assert points["launch"]["evidence"] == "written at run.sh:1"


def test_instruments_in_the_code(here: Path) -> None:
    train(here, NPU)
    before = guide()[1]
    for kind in ("profiler", "determinism", "monitor"):
        invoke("instrument", kind, "train.py")
        if kind == "profiler":
            _, points = guide()
            assert before["profile"]["command"] == "npulens instrument profiler train.py"
            assert points["profile"]["command"] == "python train.py"
            assert points["profile"]["state"] == points["instruments-out"]["state"] == "open"
            assert points["profile"]["evidence"].startswith("`profiler` at train.py:3")
            invoke("instrument", "all", "train.py", "--remove")
    found = states()
    assert (found["determinism"], found["watch"]) == ("done", "done")
    assert (before["determinism"]["state"], before["watch"]["state"]) == ("open", "open")


def test_what_tools_leave(here: Path) -> None:
    train(here, NPU)
    (here / "npu_profile" / "host_1_2_ascend_pt").mkdir(parents=True)
    write(here, mstt_advisor_1_DOT_html="", output__compare_result_1_DOT_csv="")
    _, points = guide()
    for id_ in ("profile", "advisor", "dump"):
        assert points[id_]["state"] == "done"
    assert points["profile"]["evidence"] == "npu_profile/host_1_2_ascend_pt is there"


@pytest.mark.parametrize(
    ("line", "is_watched"),
    [
        ("export NPU_ASD_ENABLE=1", True),
        ("export NPU_ASD_ENABLE=0", False),
        ("export NPU_ASD_CONFIG=enable:true,with_checksum:true", True),
        ("export NPU_ASD_CONFIG=enable:false", False),
    ],
)
def test_watching_may_be_switched_on_in_a_script(here: Path, line: str, is_watched: bool) -> None:
    train(here, NPU)
    write(here, run_DOT_sh=f"{line}\npython train.py\n")
    assert (states()["watch"] == "done") == is_watched


def test_export_is_needed_where_code_exports(here: Path) -> None:
    train(here, f"{NPU}torch.onnx.export(model, (x,), 'm.onnx')\n")
    assert states()["export"] == "open"
    write(here, model_DOT_om="")
    assert states()["export"] == "done"


# Ticking


def test_ticks_are_kept_in_a_file(here: Path) -> None:
    train(here, NPU)
    guide("--done", "baseline", "--skip", "timeline", "--note", "loss of May")
    content = json.loads((here / STATE_FILE).read_text(encoding="utf-8"))
    assert validator("guide-state.schema.json").is_valid(content)
    assert content["points"].keys() == {"baseline", "timeline"}
    _, points = guide()
    assert (points["baseline"]["state"], points["timeline"]["state"]) == ("done", "skipped")
    assert (points["baseline"]["by"], points["baseline"]["note"]) == ("hand", "loss of May")
    guide("--open", "baseline")
    assert states()["baseline"] == "open"
    assert states()["timeline"] == "skipped"


def test_the_file_is_the_same_for_the_same_ticks(here: Path) -> None:
    guide("--done", "loss", "--done", "baseline")
    first = (here / STATE_FILE).read_bytes()
    (here / STATE_FILE).unlink()
    guide("--done", "baseline")
    guide("--done", "loss")
    assert (here / STATE_FILE).read_bytes() == first


def test_a_point_that_this_release_does_not_know_stays(here: Path) -> None:
    mark = Mark("done", "hand", "2026-01-02", "x")
    change_state(here, {"of-the-future": mark})
    guide("--done", "loss")
    assert json.loads((here / STATE_FILE).read_text())["points"]["of-the-future"] == mark._asdict()


def test_fixes_go_on_after_a_tick_that_is_in_no_commit(here: Path) -> None:
    train(here, GPU)
    guide("--done", "baseline", "--note", "torch.cuda")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    guide("--done", "loss")
    _, output, errors = invoke("fix", ".")
    assert "Fixed 2 problems in 1 file." in output
    assert errors == ""
    assert states()["loss"] == "done"
    assert invoke("fix", ".")[0] == 2  # the script itself has changes now


def test_a_project_that_is_finished(here: Path) -> None:
    train(here, NPU)
    ticks = [word for id_ in POINTS for word in ("--done", id_)]
    code, points = guide(*ticks)
    assert code == 0
    assert {point["state"] for point in points.values()} == {"done"}
    _, output, _ = invoke("guide", ".")
    assert "Nothing is open." in output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2, "points": {}}',
        '{"version": 1}',
        '{"version": 1, "points": {"loss": {"state": "done"}}}',
        '{"version": 1, "points": {"loss": {"state": "x", "by": "hand", "when": "2026-01-01"}}}',
        '{"version": 1, "points": {"loss": {"state": "done", "by": "hand", "when": "today"}}}',
        '{"version": 1, "points": {"loss": {"state": "done", "by": "hand", "when": 3}}}',
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--done", "loss")])
def test_a_damaged_file_is_one_sentence(here: Path, text: str, arguments: tuple[str, ...]) -> None:
    (here / STATE_FILE).write_text(text)
    code, output, errors = invoke("guide", ".", *arguments)
    assert (code, output) == (2, "")
    assert errors.startswith(f"npulens: {STATE_FILE} is no state of the guide") or re.fullmatch(
        rf"npulens: .*{STATE_FILE} is no state of the guide.*\n", errors
    )
    assert errors.count("\n") == 1
    assert (here / STATE_FILE).read_text() == text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--done", "basline"), 'no point "basline"; did you mean "baseline"?'),
        (("--done", "loss", "--open", "loss"), "`loss` is given to two of"),
        (("--note", "x"), "--note goes with"),
    ],
)
def test_wrong_ticks(here: Path, arguments: tuple[str, ...], words: str) -> None:
    code, output, errors = invoke("guide", ".", *arguments)
    assert (code, output) == (2, "")
    assert words in errors
    assert not (here / STATE_FILE).exists()


def test_the_path_must_be_a_folder(here: Path) -> None:
    train(here, NPU)
    assert invoke("guide", "train.py")[::2] == (2, "npulens: train.py: is no folder\n")


# Runs


def noted(here: Path, outcome: Outcome, *, fixed: int = 0) -> dict[str, str]:
    """The states of the points about runs, after a run."""
    run = Verification(
        *(Verdict(outcome), None, fixed, RunArguments(()), 3, None, (), (), (), (), None, None),
        *("train.py", None, (), {}),
    )
    note_run(here, run)
    found = states()
    return {id_: found[id_] for id_ in ("trial", "verified")}


def test_a_run_is_noted_where_there_is_a_file(here: Path) -> None:
    train(here, NPU)
    assert noted(here, Outcome.PASSED) == {"trial": "open", "verified": "open"}
    assert not (here / STATE_FILE).exists()
    guide("--done", "baseline")
    assert noted(here, Outcome.LIMIT_REACHED, fixed=2) == {"trial": "done", "verified": "open"}
    assert noted(here, Outcome.LIMIT_REACHED) == {"trial": "done", "verified": "done"}
    _, points = guide()
    assert points["verified"]["by"] == "run"
    assert points["verified"]["note"] == "train.py: limit-reached"
    # What says nothing of the NPU takes nothing away.
    assert noted(here, Outcome.NEEDS_MODULE) == {"trial": "done", "verified": "done"}
    assert noted(here, Outcome.STEP_LIMIT) == {"trial": "done", "verified": "done"}
    assert noted(here, Outcome.CUDA_LEFT) == {"trial": "open", "verified": "open"}
    content = json.loads((here / STATE_FILE).read_text(encoding="utf-8"))
    assert validator("guide-state.schema.json").is_valid(content)
    guide("--done", "verified")
    assert noted(here, Outcome.CUDA_LEFT)["verified"] == "done"


def test_a_run_below_the_folder_of_the_file_is_noted(here: Path) -> None:
    train(here, NPU)
    guide("--done", "baseline")
    (here / "inner").mkdir()
    assert noted(here / "inner", Outcome.PASSED)["verified"] == "done"


# How it is shown


def test_for_people_the_next_point_comes_first(here: Path) -> None:
    train(here, GPU)
    code, output, _ = invoke("guide", ".", "--done", "report")
    assert code == 1
    lines = output.splitlines()
    assert re.fullmatch(
        r"NPU migration guide for .*: \d+ of 28 points are done, not needed: 1", lines[0]
    )
    assert lines[2:4] == ["Next: There is a baseline from the GPU", "  $ python train.py"]
    assert "Ticked by hand with: npulens guide . --done baseline" in output
    assert re.search(r"^  ✓ training +The script that trains is understood \(steps", output, re.M)
    assert re.search(r"^  ○ safe-fixes .*\n +\$ npulens fix \.$", output, re.M)
    assert re.search(r"^  – export .*\(not needed, ", output, re.M)


def test_in_chinese(here: Path) -> None:
    train(here, GPU)
    _, output, _ = invoke("guide", ".", "--language", "zh")
    assert "迁移分析\n" in output
    assert "下一步：" in output
    assert "已识别训练脚本（训练步骤位于 train.py:5）" in output


def test_in_markdown(here: Path) -> None:
    train(here, GPU)
    _, output, _ = invoke("guide", ".", "--output-format", "markdown", "--done", "baseline")
    assert re.search(r"^- \[x\] There is a baseline from the GPU: by hand, \d{4}-", output, re.M)
    assert "- [ ] No safe fix is left: 2 findings, the first at train.py:3, `npu" in output


def test_the_report_has_the_guide(here: Path) -> None:
    train(here, GPU)
    invoke("guide", ".", "--done", "baseline", "--note", "<b>&")
    code, output, _ = invoke("report", ".")
    assert code == 0
    assert "### Guide" in output
    assert "- [x] There is a baseline from the GPU: by hand" in output
    assert invoke("report", ".", "-o", "npulens-report.html")[0] == 0
    page = (here / "npulens-report.html").read_text(encoding="utf-8")
    assert '<section id="guide">' in page
    assert "&lt;b&gt;&amp;" in page
    assert "npulens-report.html is there" in page


def test_a_report_with_a_damaged_file(here: Path) -> None:
    train(here, GPU)
    (here / STATE_FILE).write_text("{")
    assert invoke("report", ".")[0] == 2


def test_a_need_without_anything_asks_nothing() -> None:
    assert not any(getattr(Need(), field) for field in _KINDS)


def test_the_schema_refuses_other_states() -> None:
    schema: Draft202012Validator = validator("guide-state.schema.json")
    mark = {"state": "done", "by": "hand", "when": "2026-01-01"}
    assert schema.is_valid({"version": 1, "points": {"loss": mark}})
    assert not schema.is_valid({"version": 1, "points": {"loss": {**mark, "state": "maybe"}}})
