"""Suppression comments."""

import ast

import pytest

from helpers import CATALOGUE, check, findings, fixed, unmarked
from npulens.catalog.model import Finding

SUPPRESSED = [
    "x.cuda()  # npulens: ignore",
    "x.cuda()  # npulens: ignore[NPU105]",
    "x.cuda()  # npulens: ignore[cuda-method]",
    "x.cuda()  # npulens: ignore [NPU105]",
    "x.cuda()  #npulens:ignore[NPU105]",
    "x.cuda()  # npulens: ignore[ NPU105 ]",
    "x.cuda()  # npulens: ignore[NPU105] because",
    "x.cuda()  # noqa # npulens: ignore[NPU105]",
    "x.cuda()  # npulens: ignore[NPU105]  # noqa",
    "x.cuda(); y.cuda()  # npulens: ignore[NPU105]",
    'x.to("cuda").cuda()  # npulens: ignore[NPU105, NPU110]',
    'x.to("cuda").cuda()  # npulens: ignore[cuda-method,cuda-device-string]',
    'x.to("cuda").cuda()  # npulens: ignore',
    "y = f'{x.cuda()}'  # npulens: ignore[NPU105]",
    'y = "漢😀"; x.cuda()  # npulens: ignore[NPU105]',
    # a finding over several lines: on its first or its last line
    "(torch  # npulens: ignore[NPU101]\n .cuda\n .synchronize())",
    "(torch\n .cuda\n .synchronize())  # npulens: ignore[NPU101]",
    'x.to(\n    "cuda",  # npulens: ignore[NPU110]\n)',
    # whole files
    '# npulens: ignore-file\nx.cuda()\ny.to("cuda")',
    '# npulens: ignore-file[NPU105, NPU110]\nx.cuda()\ny.to("cuda")',
    "x.cuda()\n# npulens: ignore-file",
    "def f():\n    # npulens: ignore-file\n    x.cuda()",
]

SUPPRESSED += [
    # in a condition whose text says for which device an arm is
    'if (\n    x.device.type not in ("cuda", "xpu")  # npulens: ignore[NPU111]\n'
    "    and x.is_leaf\n):\n    f()",
    'assert same(torch.cuda.get_rng_state()), "not on the GPU"  # npulens: ignore[NPU101]',
    'if (\n    b == 1\n    and dist.get_backend() == "nccl"  # npulens: ignore[NPU201]\n'
    "    or not fine\n):\n    f()",
]

# Marked as always; NPU002 is an unused suppression.
NOT_SUPPRESSED = [
    "x.⟦NPU105:cuda⟧()  ⟦NPU002:# npulens: ignore[NPU101]⟧",
    "x.⟦NPU105:cuda⟧()  ⟦NPU002:# npulens: ignore[NPU999]⟧",
    "x.⟦NPU105:cuda⟧()  # type: ignore",
    "x.⟦NPU105:cuda⟧()  # noqa",
    "x.⟦NPU105:cuda⟧()  # see npulens ignore",
    "x.⟦NPU105:cuda⟧()  # npulens: ignored",
    "x.⟦NPU105:cuda⟧()  # npulens: ignore-files",
    "x.⟦NPU105:cuda⟧()  # npulens: ignore[NPU110",
    'x.to(⟦NPU110:"cuda"⟧).cuda()  # npulens: ignore[NPU105]',
    "⟦NPU002:# npulens: ignore⟧\nx.⟦NPU105:cuda⟧()",
    "x.⟦NPU105:cuda⟧()\n⟦NPU002:# npulens: ignore⟧",
    'x.to(  ⟦NPU002:# npulens: ignore[NPU110]⟧\n    ⟦NPU110:"cuda"⟧,\n)',
    # in strings
    'y = "# npulens: ignore"; x.⟦NPU105:cuda⟧()',
    "y = '# npulens: ignore'; x.⟦NPU105:cuda⟧()",
    'y = """\n# npulens: ignore-file\n"""\nx.⟦NPU105:cuda⟧()',
    "y = r'\\'; # npulens: ignore'; x.⟦NPU105:cuda⟧()",
    'y = f"{z} # npulens: ignore"; x.⟦NPU105:cuda⟧()',
    '"""\n# npulens: ignore-file\n"""\nx.⟦NPU105:cuda⟧()',
    # unused
    "x = 3  ⟦NPU002:# npulens: ignore⟧",
    "x = 3  ⟦NPU002:# npulens: ignore[NPU105]⟧",
    "x.cuda()  ⟦NPU002:# npulens: ignore[NPU105, NPU110]⟧",
    "⟦NPU002:# npulens: ignore-file⟧\nx = 3",
    "⟦NPU002:# npulens: ignore-file[NPU110]⟧\nx.⟦NPU105:cuda⟧()",
    "x.cuda()  # npulens: ignore[NPU105]\ny = 3  ⟦NPU002:# npulens: ignore[NPU105]⟧",
]


@pytest.mark.parametrize("snippet", SUPPRESSED)
def test_suppressed(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")
    check(f"import torch\n{snippet}")
    check(f"import torch\n{snippet}\n".replace("\n", "\r\n"))


@pytest.mark.parametrize("snippet", NOT_SUPPRESSED)
def test_not_suppressed(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")
    check(f"import torch\n{snippet}\n".replace("\n", "\r\n"))


# What the fix of an unused suppression leaves.
UNUSED = [
    ("x = 3  # npulens: ignore", "x = 3"),
    ("x = 3  # npulens: ignore[NPU105]", "x = 3"),
    ("x = 3  # keep # npulens: ignore[NPU105]", "x = 3  # keep"),
    ("x = 3  # npulens: ignore[NPU105] # keep", "x = 3  # keep"),
    ("x = 3  # npulens: ignore[NPU105] for y", "x = 3  # for y"),
    ("x = 3  # npulens: ignore, for y", "x = 3  # , for y"),
    (
        "x.cuda()  # npulens: ignore[NPU105, NPU110]",
        "x.cuda()  # npulens: ignore[NPU105]",
    ),
    (
        "x.cuda()  # npulens: ignore[NPU110, cuda-method, NPU111] why",
        "x.cuda()  # npulens: ignore[cuda-method] why",
    ),
    ("if x:\n    # npulens: ignore\n    y = 3", "if x:\n\n    y = 3"),
]


@pytest.mark.parametrize(("before", "after"), UNUSED)
def test_unused_suppressions_are_removed(before: str, after: str) -> None:
    result = fixed(before + "\n")
    assert result == after + "\n"
    assert not [f for f in findings(result) if f.rule.code == "NPU002"]


def test_unused_suppressions_name_what_is_unused() -> None:
    (finding,) = findings("x.cuda()  # npulens: ignore[NPU110, NPU105, NPU111]\n")
    assert "NPU110, NPU111" in finding.message("en")
    assert "NPU105" not in finding.message("en")


def test_a_suppressed_finding_is_not_fixed() -> None:
    source = "import torch\nx.cuda()  # npulens: ignore[NPU105]\ny.cuda()\n"
    assert fixed(source) == source.replace("y.cuda", "y.npu").replace(
        "torch\n", "torch\nimport torch_npu  # noqa: F401\n", 1
    )


def test_snippets_are_python() -> None:
    for case in SUPPRESSED + NOT_SUPPRESSED:
        snippet = case if isinstance(case, str) else case.values[0]
        ast.parse(unmarked(snippet)[0])


def line_of(text: str, finding: Finding) -> int:
    return text.count("\n", 0, finding.span.start) + 1


EXAMPLES = [
    (f"{rule.code}-{number}", example.before)
    for rule in CATALOGUE.rules.values()
    for number, example in enumerate(rule.examples)
    if rule.family != "launch" and not rule.code.startswith("NPU00")
]


@pytest.mark.family(40)
@pytest.mark.parametrize("text", [text for _, text in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_a_comment_that_names_npulens_is_no_word_on_the_npu(text: str) -> None:
    """What a comment silences would be told without it: removing it is no safe fix else."""
    lines = text.split("\n")
    told = [(f.rule.code, line_of(text, f)) for f in findings(text)]
    for _, line in told:
        if not lines[line - 1].endswith(("\\", '"""')) and "#" not in lines[line - 1]:
            comment = "  # npulens: ignore[NPU999]"
            changed = "\n".join([*lines[: line - 1], lines[line - 1] + comment, *lines[line:]])
            found = [f for f in findings(changed) if f.rule.code != "NPU002"]
            assert [(f.rule.code, line_of(changed, f)) for f in found] == told
