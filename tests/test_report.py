"""`npulens report`: what the page says, and that nobody can put a script into it."""

import errno
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from commands import CLEAN, CODE, command, invoke, records
from npulens.catalog.loader import load_catalogue
from npulens.catalog.messages import cannot_be_read
from npulens.catalog.model import Applicability, Language, Severity, Target
from npulens.report import page_settled
from npulens.report import page_wording as wording
from npulens.report.locations import FileNames
from npulens.report.page_contents import page_of
from npulens.report.page_html import MOST_FINDINGS, as_html
from npulens.report.page_markdown import as_markdown
from npulens.report.page_model import Page, Results
from npulens.report.snippets import line_of, lines_around
from npulens.text.document import Document
from npulens.text.spans import Span
from npulens.workspace.fixing.effort import effort_of, minutes_in_turn
from npulens.workspace.migrating.readiness import Readiness, readiness_of
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

pytestmark = pytest.mark.usefixtures("here")

CATALOGUE = load_catalogue()
SAFE = CODE
UNSAFE = "import torch\ntorch.cuda.get_device_properties(0)\n"
WARNING = "import torch\nx = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)\n"
BLOCKED = "import cupy\n"
DYNAMIC = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for row in x:
            if row.sum() > 0:
                x = x[x > row.sum()]
        return x.nonzero()
"""
FUSED = """\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6))
"""
BROKEN = "import torch\nx = = 1\ntorch.cuda.synchronize()\n"
PROJECT = {
    "clean.py": CLEAN,
    "train.py": SAFE + SAFE,
    "models/net.py": DYNAMIC,
    "models/norm.py": FUSED,
    "kernels/deep/draw.py": BLOCKED + SAFE,
    "kernels/deep/more.py": BLOCKED,
    "broken.py": BROKEN,
    "docs/conf.py": "from models import net, norm\n\nx = [net.Net, norm.Norm]\n",
}


def checked(name: str, text: str) -> FileReport:
    return Checker(CATALOGUE, Configuration()).check_bytes(name, text.encode())


def results(files: dict[str, str] = PROJECT, **more: Any) -> Results:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    names = FileNames(str(Path.cwd()), str(Path.cwd()))
    reports = [checked(name, text) for name, text in files.items()]
    return Results("project", reports, CATALOGUE, Target(), names, **more)


def page(files: dict[str, str] = PROJECT, language: Language = "en") -> Page:
    return page_of(results(files), language)


class TestReadiness:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (CLEAN, Readiness.AS_IS),
            (FUSED, Readiness.AS_IS),
            (DYNAMIC, Readiness.AS_IS),
            (SAFE, Readiness.SAFE),
            (SAFE + FUSED, Readiness.SAFE),
            (BLOCKED, Readiness.BLOCKED),
            (BLOCKED + BROKEN, Readiness.BLOCKED),
            (BROKEN, Readiness.UNKNOWN),
            (UNSAFE, Readiness.REVIEW),
            ("import torch\ntorch.backends.cudnn.benchmark = True\n", Readiness.AS_IS),
            ("import torch\ntorch.cuda.nvtx.range_push('x')\n" + SAFE, Readiness.REVIEW),
        ],
    )
    def test_of_texts(self, text: str, expected: Readiness) -> None:
        assert readiness_of(checked("a.py", text).findings) is expected

    def test_of_operators_to_be_ported(self) -> None:
        text = (
            "#include <torch/extension.h>\n#include <cuda_runtime.h>\n"
            'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward_cuda); }\n'
        )
        report = checked("ops.cpp", text)
        assert [finding.rule.code for finding in report.findings] == ["NPU607"]
        assert readiness_of(report.findings) is Readiness.BLOCKED

    def test_by_the_applicability_of_fixes(self) -> None:
        for text in (SAFE, UNSAFE, WARNING, BLOCKED):
            report = checked("a.py", text)
            kinds = {f.fixes[0].applicability if f.fixes else None for f in report.findings}
            state = readiness_of(report.findings)
            if kinds == {Applicability.SAFE}:
                assert state is Readiness.SAFE
            else:
                assert state in (Readiness.REVIEW, Readiness.BLOCKED, Readiness.AS_IS)


class TestModel:
    def test_every_file_is_in_one_state(self) -> None:
        made = page()
        assert sum(made.shares.values()) == len(made.files) == len(PROJECT)
        assert made.shares == {
            Readiness.AS_IS: 4,
            Readiness.SAFE: 1,
            Readiness.REVIEW: 0,
            Readiness.BLOCKED: 2,
            Readiness.UNKNOWN: 1,
            Readiness.OTHER: 0,
        }

    def test_effort_is_that_of_the_findings(self) -> None:
        made = page()
        efforts = [effort_of(entry.finding) for entry in made.entries]
        assert made.work + made.advice == sum(minutes_in_turn(efforts)) > 0
        assert made.work == sum(file.work for file in made.files) == made.folders.work
        assert made.advice == sum(file.advice for file in made.files)
        assert made.work == sum(row.work for row in made.families)
        assert made.advice == sum(row.advice for row in made.families)

    def test_what_is_done_again_costs_less(self) -> None:
        made = page()
        first, again = (e.minutes for e in made.entries if e.finding.rule.code == "NPU602")
        assert first > again > 0

    def test_sums(self) -> None:
        made = page()
        assert sum(made.severities.values()) == sum(made.fixes) == len(made.entries)
        assert sum(row.findings for row in made.families) == len(made.entries)
        assert sum(sum(row.fixes) for row in made.families) == len(made.entries)
        found = Counter(entry.finding.rule.family for entry in made.entries)
        assert {row.family: row.findings for row in made.families} == found

    def test_blockers(self) -> None:
        (group,) = page().blockers
        assert (group.rule.code, group.findings, group.files) == ("NPU602", 2, 2)
        assert [(shown.file.name, shown.file_line) for shown in group.places] == [
            ("kernels/deep/draw.py", 1),
            ("kernels/deep/more.py", 1),
        ]
        (line, *_) = group.places[0].lines
        assert (line.number, line.before, line.marked) == (1, "import ", "cupy")

    def test_libraries(self) -> None:
        made = page(
            {
                "a.py": "import cupy\nfrom flash_attn import flash_attn_func\n"
                "from apex import amp\nmodel, o = amp.initialize(model, o)\n",
                "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
                "x = CUDAExtension('a', ['a.cu'])\n",
            }
        )
        rows = {row.name: row for row in made.libraries}
        assert set(rows) == {"cupy", "flash_attn", "apex", ""}
        assert rows[""].severity is Severity.ERROR
        assert "torch_npu.npu_fusion_attention" in rows["flash_attn"].groups[0].message
        assert rows["apex"].groups[0].rule.code == "NPU304"

    def test_dynamic_shapes_come_by_score(self) -> None:
        made = page()
        scores = [row.score for row in made.hotspots]
        assert len(scores) >= 2
        assert scores == sorted(scores, reverse=True)
        assert {row.place.file.name for row in made.hotspots} == {"models/net.py"}
        assert {row.function for row in made.hotspots} == {"Net.forward"}

    def test_fused_operators(self) -> None:
        (group,) = page().fused
        assert group.rule.code == "NPU701"
        assert "npu_rms_norm" in group.message

    def test_folders(self) -> None:
        root = page().folders
        assert root.files == len(PROJECT)
        assert [(folder.name, folder.files) for folder in root.folders] == [
            ("kernels/deep", 2),
            ("models", 2),
        ]
        assert root.silent == 1
        assert root.findings == len(page().entries)

    def test_a_deep_folder(self) -> None:
        made = page({"/".join(["a"] * 60) + "/b.py": CODE})
        (folder,) = made.folders.folders
        assert folder.path == "/".join(["a"] * 60)

    def test_nothing(self) -> None:
        made = page({})
        assert made.work == made.advice == len(made.files) == 0
        for language in ("en", "zh"):
            as_html(page({}, language))
            as_markdown(page({}, language))

    def test_what_cannot_be_read(self) -> None:
        report = FileReport("gone.py", problem=cannot_be_read(OSError(errno.ENOENT, "")))
        names = FileNames(str(Path.cwd()), str(Path.cwd()))
        made = page_of(Results("x", [report], CATALOGUE, Target(), names), "en")
        assert made.shares[Readiness.UNKNOWN] == 1
        assert "cannot be read: No such file or directory" in as_html(made)

    def test_messages_are_in_the_language(self) -> None:
        assert "无法在 NPU 上使用" in page(language="zh").blockers[0].message


PORTED = """\
import torch

if device.type == "mps":
    x.cuda()
    y.cuda()
print("cuda:0")
"""


class TestSettled:
    def test_how_many_for_which_reason_and_where(self) -> None:
        settled = page({"a.py": PORTED, "sub/b.py": PORTED, "c.py": CLEAN}).settled
        assert (settled.number, settled.listed) == (6, 6)
        reasons = [(row.reason, row.places, row.files) for row in settled.reasons]
        assert reasons == [("other-device", 4, 2), ("text", 2, 2)]
        assert settled.reasons[0].why == "this is for another device"
        assert [(each.file.name, each.number) for each in settled.files] == [
            ("a.py", 3),
            ("sub/b.py", 3),
        ]
        first, *_, last = settled.files[0].places
        assert first.at == (4, "4", "cuda")
        assert first.decides == (3, "3", 'device.type == "mps"')
        assert (last.at.place, last.why, last.decides) == ("6", "this is text for people", None)

    def test_the_list_is_bounded_and_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(page_settled, "MOST_PLACES", 4)
        made = page({"a.py": PORTED, "b.py": PORTED, "c.py": PORTED})
        assert (made.settled.number, made.settled.listed) == (9, 4)
        assert [len(each.places) for each in made.settled.files] == [3, 1]
        assert "Only 4 of 9 are listed here: npulens check --explain-silence" in as_html(made)
        assert "- … and 3 more" in as_markdown(made)

    def test_what_has_gone_is_counted_and_not_listed(self) -> None:
        made = results({"a.py": PORTED})
        Path("a.py").unlink()
        assert page_of(made, "en").settled[:2] == (3, 0)

    def test_in_html_and_markdown(self) -> None:
        made = page({"a.py": PORTED})
        seen = Seen(as_html(made))
        assert ("section", {"id": "settled"}) in seen.elements
        links = [attrs["href"] for tag, attrs in seen.elements if tag == "a"]
        assert links.count("a.py#L3") == 2
        assert "What needs nothing, and why" in "".join(seen.text)
        text = as_markdown(made)
        assert "| `other-device` | this is for another device | 2 | 1 |" in text
        assert (
            '  - line 4 `cuda`: this is for another device (line 3 `device.type == "mps"`)' in text
        )
        made = page({"a.py": PORTED}, "zh")
        assert "无需处理的位置及原因" in as_html(made)
        assert "第 4 行 `cuda`: 此处面向其他设备 (第 3 行" in as_markdown(made)

    def test_nothing_is_settled(self) -> None:
        made = page({"a.py": CLEAN})
        assert "There is no such place." in "".join(Seen(as_html(made)).text)
        assert "What needs nothing" not in as_markdown(made)

    def test_hostile_content_is_text(self) -> None:
        code = f"import torch\nif device.type == 'mps' and {HOSTILE!r}:\n    x.cuda()\n"
        made = page({HOSTILE_NAME: code})
        assert made.settled.files[0].places[0].decides is not None
        usual = page({"a.py": PORTED.replace('    y.cuda()\nprint("cuda:0")\n', "")})
        tags = [Counter(t for t, _ in Seen(as_html(each)).elements) for each in (made, usual)]
        assert tags[0] == tags[1]

    def test_by_the_command(self) -> None:
        Path("a.py").write_text(PORTED)
        for _ in range(2):  # the second time from the cache
            assert invoke("report", ".", "-o", "report.html") == (0, "", "")
            assert 'href="a.py#L3">line 3</a>' in Path("report.html").read_text(encoding="utf-8")


class TestSnippets:
    @pytest.mark.parametrize(
        ("text", "marked"),
        [
            ("    x = torch.cuda\r\ny = 1\r\n", "torch.cuda"),
            ("torch.cuda", "torch.cuda"),
            ("f(\n    torch.cuda,\n)\n", "torch.cuda"),
            ("x = '" + "a" * 5000 + "'; torch.cuda; " + "b" * 5000, "torch.cuda"),
            ("\tif torch.cuda:\n", "torch.cuda"),
        ],
    )
    def test_the_fault_is_marked(self, text: str, marked: str) -> None:
        start = text.index(marked)
        line = line_of(Document("a.py", text), Span(start, start + len(marked)))
        assert line.marked == marked
        shown = line.before + line.marked + line.after
        assert len(shown) < 260
        assert "\n" not in shown
        assert "\r" not in shown
        number = text.count("\n", 0, start) + 1
        assert line.number == number
        assert all(
            len(each.before) < 260
            for each in lines_around(Document("a.py", text), Span(start, start + 1))
        )

    def test_no_more_than_the_line(self) -> None:
        line = line_of(Document("a.py", "torch.cuda\nsecret = 1\n"), Span(0, 21))
        assert (line.marked, line.after) == ("torch.cuda", "")

    def test_in_a_notebook_lines_count_in_the_cell(self) -> None:
        cells = [["import torch\n", "x = 1"], ["y = 2\n", "import cupy\n", "z = 3"]]
        notebook = {
            "cells": [
                {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
                for source in cells
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        made = page({"a.ipynb": json.dumps(notebook, indent=1)})
        (shown,) = made.blockers[0].places
        assert shown.place == "cell 2:2"
        assert [line.number for line in shown.lines] == [1, 2, 3]
        assert [line.marked for line in shown.lines] == ["", "cupy", ""]
        assert f'href="a.ipynb#L{shown.file_line}"' in as_html(made)
        assert "import cupy" in Path("a.ipynb").read_text().splitlines()[shown.file_line - 1]

    def test_what_reorders_text_is_not_shown(self) -> None:
        line = line_of(Document("a.py", "x = 1 # \u202e\x07\n"), Span(0, 1))
        assert "\u202e" not in line.after
        assert "\x07" not in line.after


class Seen(HTMLParser):
    """The elements of a page with their attributes, and its text outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.styles: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is None:
            self.text.append(data)
        elif self._open[0] == "script":
            self.scripts.append((self._open[1], data))
        else:
            self.styles.append(data)

    @property
    def data(self) -> dict[str, Any]:
        (text,) = [text for attrs, text in self.scripts if attrs.get("id") == "data"]
        found: dict[str, Any] = json.loads(text)
        return found


def digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"
HOSTILE_NAME = "<img src=x onerror=alert(3)>\"'&`*_[a](javascript:alert(4)).py"


class TestHtml:
    def test_only_its_script_and_style_are_allowed(self) -> None:
        seen = Seen(as_html(page()))
        (policy,) = [
            attrs["content"]
            for tag, attrs in seen.elements
            if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policy is not None
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        (script,) = [text for attrs, text in seen.scripts if "type" not in attrs]
        (style,) = seen.styles
        assert rules["script-src"] == digest(script)
        assert rules["style-src"] == digest(style)
        assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}

    def test_nothing_is_fetched(self) -> None:
        text = as_html(page())
        seen = Seen(text)
        for tag, attrs in seen.elements:
            assert tag not in ("link", "img", "iframe", "object", "embed", "base", "video", "image")
            assert not {"src", "srcset", "style", "data", "action", "background"} & set(attrs)
            assert not [name for name in attrs if name.startswith("on")]
        assert "@import" not in text
        assert "url(" not in text

    def test_links_lead_to_files_and_rules(self) -> None:
        seen = Seen(as_html(page()))
        links = {attrs["href"] or "" for tag, attrs in seen.elements if tag == "a"}
        assert "kernels/deep/draw.py#L1" in links
        for link in links:
            assert re.match(r"#\w+$|[\w/]+\.py#L\d+$", link), link

    def test_hostile_content_is_text(self) -> None:
        code = f"import torch\n# {HOSTILE}\nimport cupy\ntorch.cuda.synchronize({HOSTILE!r})\n"
        files = {HOSTILE_NAME: code, "net.py": DYNAMIC.replace("row", "ｒow")}
        usual = page({"a.py": code, "net.py": DYNAMIC})
        made = page_of(results(files), "en")
        for shown in (made, usual):
            assert shown.blockers
        seen = Seen(as_html(made))
        tags = Counter(tag for tag, _ in seen.elements)
        assert tags["script"] == 2
        assert not {"img", "object"} & set(tags)
        assert tags == Counter(tag for tag, _ in Seen(as_html(usual)).elements)
        data = seen.data
        assert data["files"][0][0] == HOSTILE_NAME
        assert data["files"][0][1] == "".join(
            c if re.match(r"[\w.~-]", c) else f"%{ord(c):02X}" for c in HOSTILE_NAME
        )
        assert HOSTILE_NAME in "".join(seen.text)
        assert any(HOSTILE[:40] in row[11] for row in data["findings"])

    def test_a_hostile_title(self) -> None:
        made = page_of(results({"a.py": CODE}), "en")
        text = as_html(page_of(results({"a.py": CODE}), "en"))
        from dataclasses import replace

        hostile = Seen(as_html(replace(made, title=HOSTILE)))
        assert Counter(t for t, _ in hostile.elements) == Counter(t for t, _ in Seen(text).elements)

    @pytest.mark.skipif(sys.platform != "linux", reason="needs names that are any bytes")
    def test_a_name_that_is_no_text(self, here: Path) -> None:
        name = os.fsdecode(b"a\xff\n.py")
        (here / name).write_text(BLOCKED)
        assert invoke("report", ".", "-o", "out.html")[0] == 0
        seen = Seen((here / "out.html").read_text(encoding="utf-8"))
        assert seen.data["files"][0][:2] == [name, "a%FF%0A.py"]

    def test_data_holds_every_finding(self) -> None:
        made = page()
        data = Seen(as_html(made)).data
        assert len(data["findings"]) == len(made.entries)
        for row, entry in zip(data["findings"], made.entries, strict=True):
            assert data["rules"][row[1]][0] == entry.finding.rule.code
            assert data["messages"][row[8]] == entry.finding.message("en")
            assert str(row[7]) in data["durations"]
            assert row[10] == entry.line.marked

    def test_very_many_findings_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("npulens.report.page_html.MOST_FINDINGS", 3)
        assert MOST_FINDINGS > 10_000
        made = page()
        text = as_html(made)
        data = Seen(text).data
        assert len(data["findings"]) == 3
        assert f"Only 3 of {len(made.entries)} are listed here" in text
        assert "NPU602" in {data["rules"][row[1]][0] for row in data["findings"]}

    def test_very_many_files_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("npulens.report.page_html.MOST_FILES", 7)
        made = page()
        text = as_html(made)
        data = Seen(text).data
        assert "Only 7 of 8 are listed here" in text
        names = [file[0] for file in data["files"]]
        with_findings = {made.files[entry.file].name for entry in made.entries}
        assert with_findings < set(names)
        for row, entry in zip(data["findings"], made.entries, strict=True):
            assert names[row[0]] == made.files[entry.file].name

    def test_long_tables_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("npulens.report.page_html.MOST_ROWS", 1)
        made = page()
        text = as_html(made)
        assert f"Only the first 1 of {len(made.hotspots)} are shown here" in text
        assert text.count('class="figure score"') == 1

    def test_folders_within_folders(self) -> None:
        deep = {f"{'a/' * depth}b.py": CODE for depth in range(100)}
        text = as_html(page(deep))
        assert text.count('<details class="folder"') == 21

    def test_the_formula_is_that_of_the_program(self) -> None:
        text = "".join(Seen(as_html(page())).text)
        assert "NPU202: 120" in text
        assert "NPU6xx: 120" in text
        assert "5 min to read it, 30 min" in text

    def test_chinese(self) -> None:
        text = as_html(page(language="zh"))
        assert '<html lang="zh-CN">' in text
        seen = Seen(text)
        shown = " ".join(part.strip() for part in seen.text)
        for english in ("Overview", "Blockers", "Findings", "Effort", "Show", "Next", "safe fix"):
            assert english not in shown
        assert "阻塞项" in shown


@pytest.mark.parametrize(
    ("minutes", "english", "chinese"),
    [
        (0, "0 min", "0 分钟"),
        (59, "59 min", "59 分钟"),
        (60, "1 h", "1 小时"),
        (150, "2.5 h", "2.5 小时"),
        (959, "16 h", "16 小时"),
        (960, "2 days", "2 天"),
        (9600, "20 days", "20 天"),
        (960_000, "2,000 days", "2,000 天"),
    ],
)
def test_durations(minutes: int, english: str, chinese: str) -> None:
    assert wording.duration(minutes, "en") == english
    assert wording.duration(minutes, "zh") == chinese


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 10, "0%"), (10, 10, "100%"), (1, 1000, "<1%"), (999, 1000, ">99%"), (1, 3, "33%")],
)
def test_percent(part: int, whole: int, expected: str) -> None:
    assert wording.percent(part, whole) == expected
    assert wording.percent(0, 0) == "–"


class TestMarkdown:
    def test_says_the_same(self) -> None:
        made = page()
        text = as_markdown(made)
        assert "| Blocked | 2 | 25% |" in text
        assert f"**{wording.duration(made.work, 'en')}** until it runs" in text
        assert "`kernels/deep/draw.py:1`" in text
        assert len(text.splitlines()) < 60

    def test_stays_short(self) -> None:
        files = {f"{index}.py": f"import {name}\n" for index, name in enumerate(_LIBRARIES)}
        text = as_markdown(page(files))
        assert len(text.splitlines()) < 60
        assert "more" in text

    def test_hostile_content_is_text(self) -> None:
        text = as_markdown(page({"a`|<b>\n# x.py": BLOCKED}))
        assert "``a`¦<b> # x.py:1``" in text
        assert not re.search(r"^# x", text, re.M)

    def test_chinese(self) -> None:
        text = as_markdown(page(language="zh"))
        assert "## NPU 就绪度报告" in text
        assert "阻塞项" in text


_LIBRARIES = ("cupy", "amp_C", "apex_C", "cutlass", "tensorrt", "mamba_ssm", "transformer_engine")


@pytest.fixture
def project(here: Path) -> Path:
    for name, text in PROJECT.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text, encoding="utf-8")
    return here


class TestCommand:
    def test_a_page(self, project: Path) -> None:
        assert invoke("report", ".", "-o", "missing/report.html") == (2, "", _no_folder("missing"))
        assert invoke("report", ".", "-o", "report.html") == (0, "", "")
        seen = Seen((project / "report.html").read_text(encoding="utf-8"))
        assert len(seen.data["findings"]) == len(records())
        assert (
            f"<title>{project.name} – NPU readiness</title>".encode()
            in (project / "report.html").read_bytes()
        )

    def test_the_name_decides_the_form(self, project: Path) -> None:
        assert invoke("report", ".", "-o", "report.md")[0] == 0
        assert (project / "report.md").read_text(encoding="utf-8").startswith("## NPU readiness")
        code, output, _ = invoke("report", ".")
        assert (code, output) == (0, (project / "report.md").read_text(encoding="utf-8"))
        assert invoke("report", ".", "-o", "-", "--format", "html")[1].startswith("<!DOCTYPE html>")
        code, _, errors = invoke("report", ".", "-o", "report.pdf")
        assert code == 2
        assert "report.pdf ends neither in .html nor in .md: give --format, too" in errors
        assert invoke("report", ".", "-o", "report.txt", "--format", "markdown")[0] == 0

    def test_scripts_are_judged_by_what_they_import(self, here: Path) -> None:
        net = "import cupy\nimport torch\nfrom ..tools import text\n"
        for name, text in {
            "train.py": "import lib.models\nif __name__ == '__main__':\n    pass\n",
            "show.py": (
                "from lib import (tools,  # words\n    other)\nif __name__ == '__main__': pass\n"
            ),
            "tests/test_all.py": "import lib.models\nif __name__ == '__main__':\n    pass\n",
            "src/lib/__init__.py": "",
            "src/lib/models/__init__.py": "from . import net\n",
            "src/lib/models/net.py": net,
            "src/lib/tools.py": "def text():\n    import torch.nn as nn\n",
            "src/lib/other.py": "import json\n",
            "notes.py": "# torch is not imported here\n",
        }.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text)
        for root in (".", str(here)):
            code, output, _ = invoke("report", root)
            assert code == 0
            headline = (
                "**50%** of the 2 files that use PyTorch run as they are or after safe fixes;"
            )
            assert f"{headline} 1 of them have to change\n" in output
            assert "| Without PyTorch | 7 |  |" in output
            scripts = output[output.index("### Scripts") : output.index("### Blockers")]
            assert [
                line.partition("](")[2].partition(")")[::2] for line in scripts.splitlines()[2:4]
            ] == [
                ("train.py", ": Blocked (1 of the 2 files with PyTorch that it reaches)"),
                ("show.py", ": Runs as it is (1 of the 1 files with PyTorch that it reaches)"),
            ]
            assert "test\\_all.py" not in scripts

    def test_without_paths(self, project: Path) -> None:
        assert invoke("report")[0] == 2

    def test_a_path_that_is_not_there(self, project: Path) -> None:
        code, output, errors = invoke("report", "train.py", "missing.py")
        assert code == 2
        assert "missing.py" in errors
        assert "| Not judged | 1 |" in output

    def test_links_are_relative_to_the_page(self, project: Path) -> None:
        (project / "out").mkdir()
        assert invoke("report", "models", "-o", "out/report.html")[0] == 0
        data = Seen((project / "out/report.html").read_text(encoding="utf-8")).data
        assert data["files"][0][:2] == ["net.py", "../models/net.py"]
        assert invoke("report", "models", "-o", "r.html", "--editor-links")[0] == 0
        data = Seen((project / "r.html").read_text(encoding="utf-8")).data
        assert data["files"][0][1] == f"vscode://file{project}/models/net.py"
        assert data["lineMark"] == ":"

    def test_settings_of_an_editor_come_after_the_configuration(self, project: Path) -> None:
        kept = '{"torchVersion": "2.7", "ignore": ["NPU6"], "exclude": ["models/"], "select": []}'
        assert invoke("report", ".", "-o", "r.md", "--editor-settings", kept)[0] == 0
        text = (project / "r.md").read_text(encoding="utf-8")
        assert "PyTorch 2.7" in text
        assert "NPU6" not in text
        (project / "npulens.toml").write_text('torch-version = "2.8"\nignore = []\nexclude = []\n')
        assert invoke("report", ".", "-o", "r.md", "--editor-settings", kept)[0] == 0
        text = (project / "r.md").read_text(encoding="utf-8")
        assert "PyTorch 2.8" in text
        assert "NPU6" in text
        assert invoke("report", ".", "--torch-version", "2.9", "--editor-settings", kept)[1].count(
            "PyTorch 2.9"
        )

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ("[1]", "--editor-settings must be a JSON object"),
            ("{", "--editor-settings is no JSON"),
            ('{"torchVersion": "new"}', '--editor-settings: "torch-version"'),
            ('{"colour": 1}', '--editor-settings: unknown key "colour"'),
        ],
    )
    def test_settings_of_an_editor_that_are_none(
        self, project: Path, given: str, told: str
    ) -> None:
        code, output, errors = invoke("report", ".", "--editor-settings", given)
        assert (code, output) == (2, "")
        assert told in errors
        assert "Traceback" not in errors

    def test_no_path_of_the_machine_is_in_it(self, project: Path) -> None:
        assert invoke("report", str(project), "-o", "report.html")[0] == 0
        assert str(project.parent) not in (project / "report.html").read_text(encoding="utf-8")

    def test_suppressed_findings_are_settled(self, project: Path) -> None:
        (project / "models/net.py").write_text("# npulens: ignore-file\n" + DYNAMIC)
        (project / "train.py").write_text("import models.net\n" + DYNAMIC)
        assert invoke("report", ".", "-o", "report.html", "--ignore", "NPU806")[0] == 0
        text = (project / "report.html").read_text(encoding="utf-8")
        assert "NPU802" in text
        assert "train.py" in text
        assert "NPU806" not in text
        of_findings, _, of_settled = text.partition('id="settled"')
        assert "models/net.py" not in re.findall(r'href="([\w/]+\.py)#L', of_findings)
        assert "models/net.py" in re.findall(r'href="([\w/]+\.py)#L', of_settled)

    def test_processes_and_the_cache_change_nothing(self, project: Path) -> None:
        for index in range(40):
            (project / f"{index:02}.py").write_text(DYNAMIC + CODE)
        environment = {"SOURCE_DATE_EPOCH": "86400"}
        pages = {
            command("report", ".", "--format", "html", *more, environment=environment).stdout
            for more in (["--no-cache", "--jobs", "1"], ["--no-cache", "--jobs", "3"], [], [])
        }
        assert len(pages) == 1
        assert b"1970-01-02" in pages.pop()
        assert (project / ".npulens_cache").is_dir()

    @pytest.mark.parametrize("moment", ["yesterday", "9" * 30, ""])
    def test_a_date_that_is_none(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, moment: str
    ) -> None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
        expected = f'npulens: SOURCE_DATE_EPOCH is "{moment}", which is no time in seconds\n'
        assert invoke("report", ".") == (2, "", expected)

    def test_options_of_the_configuration(self, project: Path) -> None:
        (project / "npulens.toml").write_text('language = "zh"\ntorch-version = "2.6"\n')
        output = invoke("report", ".", "--title", "Nice *name*")[1]
        assert "## NPU 就绪度报告: Nice \\*name\\*" in output
        assert "PyTorch 2.6" in output

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_on_a_full_disk(self, project: Path) -> None:
        result = command("report", ".", "-o", "/dev/full", "--format", "html")
        assert result.returncode == 2
        assert result.stderr == b"npulens: /dev/full: cannot be written: No space left on device\n"

    def test_other_commands_do_not_load_what_makes_it(self, project: Path) -> None:
        for arguments in (["check", "."], ["report", "."]):
            run = subprocess.run(
                [sys.executable, "-X", "importtime", "-m", "npulens", *arguments],
                capture_output=True,
                check=False,
            )
            assert b"npulens.workspace.runs.run" in run.stderr
            assert b"jinja2" not in run.stderr


def _no_folder(path: str) -> str:
    return f"npulens: {path}/report.html: cannot be written: no such folder\n"
