"""Notebooks through the command: what is found, where that is, and what fixes leave as it was."""

import csv
import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import invoke, records
from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import Edit, Target
from npulens.fixes.cell_edits import within_cells
from npulens.report.snippets import lines_around
from npulens.syntax.cells import python_of_notebook
from npulens.text.document import Document
from npulens.text.notebooks import NotWrittenBack, notebook_bytes, notebook_text
from npulens.text.spans import Span

MAGICS = """\
%matplotlib inline
!pip install torch --index-url https://example.com/py311
files = !ls *.cuda
get_ipython().run_line_magic("time", "")
model?
cd ..
if True:
    !free -m
%time x = 1
"""
SHELL = "%%bash\nexport X=(\nfor f in 'cuda'; do\n"
IMPORTS = "import torch\nname = '昇腾'"
CALLS = "x = torch.zeros(2).cuda()\ntorch.cuda.synchronize()\nx"


def code(source: Any, **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": {"z": 1, "a": [2]},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["cuda:0 \u2028 é\n"]}],
        "source": source,
        **more,
    }


def prose(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": [f"`torch.cuda` {source} (["]}


def notebook(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"kernelspec": {"name": "python3", "language": "python"}}
    return {"cells": [*cells], "metadata": info, "nbformat": 4, "nbformat_minor": 5, **more}


def lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


USUAL = notebook(
    prose("one"), code(lines(MAGICS)), code(lines(IMPORTS)), prose("2"), code(lines(CALLS))
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(content: Any, name: str = "a.ipynb", **style: Any) -> bytes:
    style = {"indent": 1, "ensure_ascii": False, **style}
    data = (json.dumps(content, **style) + "\n").encode()
    Path(name).write_bytes(data)
    return data


def places(*arguments: str) -> list[tuple[int, int, int, str]]:
    found = records("--no-cache", *arguments)
    return [(r["cell"], r["line"], r["column"], r["code"]) for r in found]


USUAL_PLACES = [(5, 1, 20, "NPU105"), (5, 2, 1, "NPU101")]


def test_places_are_told_by_cell_and_line() -> None:
    write(USUAL)
    assert places(".") == places("a.ipynb") == USUAL_PLACES
    _, output, _ = invoke("check", "--output-format", "concise", ".")
    assert [line.split(" NPU")[0] for line in output.splitlines()] == [
        "a.ipynb:cell 5:1:20:",
        "a.ipynb:cell 5:2:1:",
    ]
    _, output, _ = invoke("check")
    assert "a.ipynb:cell 5:2:1: " in output
    assert "\n 2 | torch.cuda.synchronize()\n   | ^^^^^^" in output


def test_services_are_told_the_line_of_the_file() -> None:
    text = write(USUAL).decode()
    numbers = [
        text[: text.index(f'"{start}')].count("\n") + 1
        for start in lines(CALLS)[:0] or ("x = t", "torch.cuda.s")
    ]
    sarif = json.loads(invoke("check", "--output-format", "sarif")[1])["runs"][0]["results"]
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in sarif]
    assert regions == [{"startLine": number, "endLine": number} for number in numbers]
    assert [result["message"]["text"][:16] for result in sarif] == [
        "cell 5, line 1: ",
        "cell 5, line 2: ",
    ]
    assert not any("fixes" in result for result in sarif)
    gitlab = json.loads(invoke("check", "--output-format", "gitlab")[1])
    assert [issue["location"]["lines"]["begin"] for issue in gitlab] == numbers
    _, github, _ = invoke("check", "--output-format", "github", "--language", "zh")
    assert f"file=a.ipynb,line={numbers[1]},endLine={numbers[1]},title=NPU101" in github
    assert "::单元格 5 第 2 行：" in github
    assert "a.ipynb:cell 5:2:1: " in invoke("check", "--output-format", "junit")[1]
    rows = list(csv.DictReader(io.StringIO(invoke("check", "--output-format", "csv")[1])))
    assert [(row["cell"], row["line"]) for row in rows] == [("5", "1"), ("5", "2")]


def test_one_line_of_json_is_the_line_of_all() -> None:
    write(notebook(code(f"import torch\n{CALLS}")), indent=None)
    assert places(".") == [(1, 2, 20, "NPU105"), (1, 3, 1, "NPU101")]
    gitlab = json.loads(invoke("check", "--output-format", "gitlab")[1])
    assert [issue["location"]["lines"] for issue in gitlab] == [{"begin": 1, "end": 1}] * 2


STYLES = {
    "as Jupyter writes it": {},
    "wide": {"indent": 4},
    "tabs": {"indent": "\t"},
    "compact": {"indent": None, "separators": (",", ":")},
    "escaped": {"ensure_ascii": True},
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("in_one", [False, True], ids=["lists", "texts"])
def test_fixing_changes_the_lines_it_means(style: dict[str, Any], in_one: bool) -> None:
    def source(text: str) -> Any:
        return text if in_one else lines(text)

    cells = [prose("one"), code(source(MAGICS)), code(source(SHELL)), code(source(IMPORTS))]
    cells += [code(source("")), code(source(CALLS)), code(source("# 完\n"))]
    before = write(notebook(*cells, zebra=[1.50, 1e3]), **style).replace(b"1000.0", b"1E+3 ")
    Path("a.ipynb").write_bytes(before)
    code_, output, errors = invoke("fix", "--allow-dirty", ".")
    assert (code_, errors) == (0, ""), output
    after = Path("a.ipynb").read_bytes()
    cells[3] = code(source("import torch\nimport torch_npu  # noqa: F401\nname = '昇腾'"))
    cells[5] = code(source(CALLS.replace("cuda", "npu")))
    Path("b.ipynb").write_bytes(b"")
    expected = write(notebook(*cells, zebra=[1.50, 1e3]), "b.ipynb", **style)
    assert after == expected.replace(b"1000.0", b"1E+3 ")
    assert invoke("fix", "--allow-dirty", "a.ipynb")[0] == 0
    assert Path("a.ipynb").read_bytes() == after


def test_what_no_fix_touches_keeps_its_bytes() -> None:
    odd = code(["if True:\n", "    pass\n", "name = '\\u00e9\\/'"], metadata={"tags": []})
    data = write(notebook(odd, code(lines(f"import torch\n{CALLS}"))))
    data = data.replace("é".encode(), b"\\u00E9").replace(b'"metadata": {"', b'"metadata" :{ "')
    data = b"\xef\xbb\xbf" + data.rstrip()
    Path("a.ipynb").write_bytes(data)
    assert invoke("fix", "--allow-dirty", ".")[0] == 0
    after = Path("a.ipynb").read_bytes()
    changed = [
        (old, new)
        for old, new in zip(
            data.split(b"\n"),
            after.replace(b'    "import torch_npu  # noqa: F401\\n",\n', b"").split(b"\n"),
            strict=True,
        )
        if old != new
    ]
    assert [new.strip() for _, new in changed] == [
        b'"x = torch.zeros(2).npu()\\n",',
        b'"torch.npu.synchronize()\\n",',
    ]


def test_a_patch_is_one_of_the_file(here: Path) -> None:
    write(USUAL)
    _, patch, _ = invoke("fix", "--diff")
    assert '\n+    "torch.npu.synchronize()\\n",' in patch
    assert patch.count("\n-") == 3  # with the name of the file
    invoke("fix", "--allow-dirty")
    fixed = Path("a.ipynb").read_bytes()
    write(USUAL)
    subprocess.run(["git", "apply"], input=patch.encode(), check=True, cwd=here)
    assert Path("a.ipynb").read_bytes() == fixed


def test_a_whole_cell_may_go_and_none_joins_the_next() -> None:
    write(notebook(code(["import torch\n", "import apex.amp"]), code(["x = torch.ones(1).cuda()"])))
    before = json.loads(Path("a.ipynb").read_bytes())
    invoke("fix", "--unsafe-fixes", "--allow-dirty")
    after = json.loads(Path("a.ipynb").read_bytes())
    assert len(after["cells"]) == 2
    assert "".join(after["cells"][1]["source"]) == "x = torch.ones(1).npu()"
    assert after["metadata"] == before["metadata"]


def test_a_fix_that_would_join_cells_is_none() -> None:
    data = write(notebook(code("import torch"), code("torch.cuda.synchronize()")))
    document = Document("a.ipynb", notebook_text(data))
    (finding,) = findings = analyze(document, CATALOGUE, Target())
    assert list(within_cells(findings, document)) == [finding]
    start = finding.span.start
    for span in (Span(start - 1, start), Span(0, start + 5)):
        joining = replace(finding.fixes[0], edits=(Edit(span, ""),))
        (left,) = within_cells([replace(finding, fixes=(joining, *finding.fixes))], document)
        assert left.fixes == finding.fixes
    with pytest.raises(NotWrittenBack):
        notebook_bytes(data, document.text[: start - 1] + document.text[start:])


def test_comments_silence_in_cells() -> None:
    quiet = "torch.cuda.synchronize()  # npulens: ignore[NPU101]\n"
    write(notebook(code(lines(f"import torch\n{quiet}")), code(CALLS)))
    assert places(".") == [(2, 1, 20, "NPU105"), (2, 2, 1, "NPU101")]
    assert invoke("check", "--add-suppressions", "--allow-dirty")[0] == 0
    assert places(".") == []
    cells = json.loads(Path("a.ipynb").read_bytes())["cells"]
    assert cells[1]["source"].splitlines()[0].endswith("  # npulens: ignore[NPU105]")


def test_findings_are_accepted_and_kept_as_elsewhere() -> None:
    write(USUAL)
    assert invoke("check", "--write-baseline", "b.json")[0] == 0
    moved = notebook(code("first = 1"), *USUAL["cells"])
    write(moved)
    assert invoke("check", "--baseline", "b.json")[0] == 0
    assert invoke("check", "--output-format", "concise") == invoke(
        "check", "--output-format", "concise"
    )


BROKEN = {
    "": "line 1 is not valid JSON: expecting value",
    '{"cells": [\n{"cell_type": "code" "source": []}]}': "line 2 is not valid JSON",
    '{"cells": [\n\n{"source": ["torch", ]]}': "line 3 is not valid JSON",
    '{"torch": 1,}': "line 1 is not valid JSON",
    '{"cells": []} torch': "line 1 is not valid JSON: more than one value",
    "[" * 100_000 + '"torch"': "its JSON is nested too deeply",
    '["torch"]': "it is no notebook; Jupyter saves notebooks in format 4",
    '{"torch": 1, "nbformat": 4}': "it is a notebook of format 4",
    '{"nbformat": 3, "worksheets": ["torch"]}': "it is a notebook of format 3; Jupyter saves",
    '{"nbformat": 4, "cells": ["torch"]}': "its cell 1 is no cell",
    '{"nbformat": 4, "cells": [{"cell_type": "code", "source": [["torch"]]}]}': (
        "the source of its cell 1 is no text"
    ),
    '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "torch \\u001e"}]}': (
        "its cell 1 holds the control character U+001E"
    ),
    '{"nbformat": 4, "cells": [], "metadata": {"language_info": {"name": "julia"}}, "": "torch"}': (
        "it is a notebook for julia, not for Python"
    ),
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_notebook_gets_one_sentence(text: str) -> None:
    data = text.encode() if "torch" in text else b"\0"
    Path("a.ipynb").write_bytes(data)
    expected = BROKEN[text] if "torch" in text else "line 1 is not valid JSON: expecting value"
    exit_code, output, errors = invoke("check", "--output-format", "concise")
    assert (exit_code, output.count("\n")) == (1, 1)
    assert errors == "1 file not read (--show-skipped lists them).\n"
    expected = expected[:1].upper() + expected[1:]
    assert f"a.ipynb:1:1: NPU003 This file cannot be read. {expected}" in output
    said = invoke("check", "--output-format", "concise", "--language", "zh")[1]
    assert "a.ipynb:1:1: NPU003 无法读取该文件。" in said
    assert expected not in said
    assert invoke("fix", "--allow-dirty")[0] == 1
    assert Path("a.ipynb").read_bytes() == data


def test_a_notebook_without_code_has_no_findings() -> None:
    write(notebook(prose("with words"), prose("and more")))
    assert invoke("check", "--no-cache")[0] == 0


def test_bytes_that_are_no_text() -> None:
    Path("a.ipynb").write_bytes(b'{"cells": "torch \xff"}')
    assert "Byte 17 is not UTF-8 text." in invoke("check")[1]


def test_cells_in_other_languages_are_left_alone() -> None:
    other = code("torch.cuda.synchronize(", metadata={"vscode": {"languageId": "julia"}})
    write(notebook(other, code(f"import torch\n{CALLS}"), {**prose("x"), "cell_type": "raw"}))
    assert [cell for cell, *_ in places(".")] == [2, 2]


COMMANDS = {
    "!nvidia-smi\n": [(1, 2, "NPU906")],
    "x = 1\nif x:\n    out = !nvidia-smi -L\n": [(3, 12, "NPU906")],
    "!CUDA_VISIBLE_DEVICES=0,1 python train.py \\\n    --dist-backend nccl\nx = 2": [
        (1, 2, "NPU901"),
        (2, 20, "NPU902"),
    ],
    "!pip install -q onnxruntime-gpu  # faster\n": [(1, 17, "NPU905")],
    "%pip install onnxruntime-gpu\n": [(1, 14, "NPU905")],
    "pip install onnxruntime-gpu\n": [(1, 13, "NPU905")],
    "%%sh\npython - <<END\nimport torch\ntorch.cuda.synchronize()\nEND\n": [(4, 1, "NPU101")],
    "%%bash\nexport CUDA_VISIBLE_DEVICES=0\nnvidia-smi\n": [
        (2, 8, "NPU901"),
        (3, 1, "NPU906"),
    ],
    "%%script bash\nnvidia-smi\n": [(2, 1, "NPU906")],
    "!echo it's\nnvidia = 1\n!nvidia-smi\n": [(3, 2, "NPU906")],
    "!nvidia-smi  # npulens: ignore[NPU906]\n": [],
    "%%bash\nnvidia-smi  # npulens: ignore\n": [],
    "# npulens: ignore-file\n!nvidia-smi\n": [],
    "!ls  # npulens: ignore\n": [(1, 6, "NPU002")],
    "%%bash\nls  # npulens: ignore\n": [(2, 5, "NPU002")],
    "%%html\n!nvidia-smi\n": [],
    "%timeit nvidia-smi\n": [],
    'x = """\n!nvidia-smi\n"""\n': [],
}
"""What a cell with lines for the shell is told: line, column and code."""


@pytest.mark.parametrize("source", COMMANDS)
def test_commands_are_read_as_those_of_scripts(source: str) -> None:
    write(notebook(prose("first"), code(lines(source))))
    assert places(".") == [(2, *place) for place in COMMANDS[source]]


def test_commands_are_fixed_and_accepted() -> None:
    cell = code(["x = 1\n", "!CUDA_VISIBLE_DEVICES=0 python train.py\n", "!nvidia-smi"])
    write(notebook(cell))
    assert invoke("fix", "--allow-dirty")[0] == 1
    (fixed,) = json.loads(Path("a.ipynb").read_bytes())["cells"]
    assert fixed["source"][1] == "!ASCEND_RT_VISIBLE_DEVICES=0 python train.py\n"
    write(notebook(cell))
    assert invoke("check", "--add-suppressions", "--allow-dirty")[0] == 0
    (accepted,) = json.loads(Path("a.ipynb").read_bytes())["cells"]
    assert accepted["source"][2] == "!nvidia-smi  # npulens: ignore[NPU906]"
    assert places(".") == []


def test_names_of_one_cell_are_known_in_the_next_and_files_on_standard_input() -> None:
    content = notebook(code("from torch import cuda as gpu"), code("gpu.synchronize()"))
    found = records("--stdin-filename", "b.ipynb", "-", stdin=json.dumps(content).encode())
    assert [(r["cell"], r["line"], r["code"]) for r in found if r["cell"] == 2] == [
        (2, 1, "NPU101")
    ]
    assert found[-1]["fix"]["edits"][0]["cell"] in (1, 2)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_text_of_cells_leads_back(style: dict[str, Any]) -> None:
    data = write(USUAL, **style)
    text = notebook_text(data)
    assert notebook_bytes(data, text) == data
    assert len(python_of_notebook(text)) == len(text)
    compile(python_of_notebook(text), "cells", "exec")


@pytest.mark.parametrize("first", ["  ", "\n# note\n   "])
def test_a_cell_may_be_indented_as_a_whole(first: str) -> None:
    write(
        notebook(code("import torch"), code(f"{first}torch.cuda.synchronize()\n"), code("%%sh\n("))
    )
    assert [(cell, code) for cell, _, _, code in places(".")] == [(2, "NPU101")]
    assert invoke("fix", "--allow-dirty", ".")[0] == 0
    source = json.loads(Path("a.ipynb").read_bytes())["cells"][1]["source"]
    assert source == f"{first}torch.npu.synchronize()\n"


def test_snippets_of_pages_are_lines_of_the_cell() -> None:
    document = Document("a.ipynb", notebook_text(write(USUAL)))
    first, second = (finding.span for finding in analyze(document, CATALOGUE, Target()))
    shown = [
        (line.number, line.before + line.marked + line.after)
        for line in lines_around(document, first)
    ]
    assert shown == [(1, "x = torch.zeros(2).cuda()"), (2, "torch.cuda.synchronize()")]
    assert [line.number for line in lines_around(document, second)] == [1, 2, 3]


def test_a_page_is_made_of_notebooks_too() -> None:
    write(USUAL)
    code_, _, errors = invoke("report", ".", "-o", "page.html")
    assert (code_, errors) == (0, "")
    assert "torch.cuda.synchronize" in Path("page.html").read_text(encoding="utf-8")
