"""Libraries that the code can do without, one hint for each, and those that it needs after all."""

import json
from pathlib import Path

import pytest

from commands import invoke
from helpers import CATALOGUE, code
from npulens.analysis import judge
from npulens.catalog.model import Applicability, Target
from npulens.text.document import Document

TRIED = "try:\n    import {0}\nexcept ImportError:\n    {0} = None\n\n"
FLASH = (
    "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n"
    "    flash_attn_func = None\n\n"
)


def found(source: str, path: str = "a.py") -> list[tuple[int, str]]:
    """The line and rule of each finding about libraries."""
    return [
        (source.count("\n", 0, f.span.start) + 1, f.rule.code)
        for f in judge(Document(path, source), CATALOGUE, Target()).findings
        if f.rule.family in ("library", "fused")
    ]


STAND_INS = {
    FLASH
    + "def attend(q, k, v):\n    if flash_attn_func is not None:\n"
    + "        return flash_attn_func(q, k, v)\n"
    + "    return F.scaled_dot_product_attention(q, k, v)\n": "F.scaled_dot_product_attention",
    "try:\n    from apex.normalization import FusedLayerNorm as Norm\nexcept ImportError:\n"
    "    from torch.nn import LayerNorm as Norm\n": "torch.nn.LayerNorm",
    "try:\n    from xformers.ops import SwiGLU\nexcept ImportError:\n"
    "    class SwiGLU(Module):\n        pass\n": "SwiGLU",
    "HAS_X = False\ntry:\n    import xformers.ops as xops\n    HAS_X = True\n"
    "except ImportError:\n    pass\n"
    "def run(q):\n    if not HAS_X:\n        warn('slow')\n        x = plain(q)\n    else:\n"
    "        x = xops.memory_efficient_attention(q, q, q)\n    return x\n": "plain",
    TRIED.format("flash_attn")
    + "attend = flash_attn.f if flash_attn is not None else slow\n": "slow",
}


@pytest.mark.parametrize("source", STAND_INS)
def test_the_hint_says_what_takes_the_place(source: str) -> None:
    [hint] = judge(Document("a.py", f"import torch\n{source}"), CATALOGUE, Target()).findings
    assert hint.rule.code == "NPU613"
    assert hint.effective_severity.value == "info"
    assert f"`{STAND_INS[source]}` (line " in hint.message("en")
    assert f"`{STAND_INS[source]}` 代替" in hint.message("zh")
    assert len(hint.message("en").split(". ")) > 2  # what the NPU offers, too


NEEDED = {
    "the same by another name": (
        "try:\n    from flash_attn.bert_padding import pad\nexcept ImportError:\n"
        "    from flash_attn.bert_padding import padded as pad\n",
        [(2, "NPU602"), (4, "NPU602")],
    ),
    "TRIED + assert": (
        TRIED.format("flash_attn") + "assert flash_attn is not None, 'install it'\n",
        [(2, "NPU602")],
    ),
    "if None: raise": (
        TRIED.format("flash_attn") + "if flash_attn is None:\n    raise ImportError\n",
        [(2, "NPU602")],
    ),
    "by default": (
        TRIED.format("flash_attn")
        + "class A:\n    def __init__(self, enable=True):\n        self.enable = enable\n"
        + "        if enable:\n            assert flash_attn is not None\n",
        [(2, "NPU602")],
    ),
    "a flag": (
        "try:\n    import cupy\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        "def run(x):\n    if not HAS:\n        raise RuntimeError('install cupy')\n"
        "    return cupy.asarray(x)\n",
        [(2, "NPU602")],
    ),
    "a flag that nothing reads": (
        "try:\n    import cupy\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        "def run(x):\n    return cupy.asarray(x)\n",
        [(2, "NPU602")],
    ),
    "the only way": (
        FLASH + "def attend(q, k, v):\n    return flash_attn_func(q, k, v)\n",
        [(2, "NPU602"), (7, "NPU708")],
    ),
    "of several names that are None, the default way": (
        "try:\n    import flash_attn\n    from flash_attn import flash_attn_func\n"
        "except ImportError:\n"
        "    flash_attn = None\n    flash_attn_func = None\n\n"
        "def attend(q, k, v, mode='flash'):\n    if mode == 'torch':\n"
        "        return plain(q, k, v)\n"
        "    elif mode == 'flash':\n        return flash_attn_func(q, k, v)\n"
        "    return slow(q, k, v)\n",
        [(3, "NPU602"), (12, "NPU708")],
    ),
    "used in the module": (
        TRIED.format("cupy") + "def f(x):\n    return cupy.asarray(x)\n\ny = f(1)\n",
        [(2, "NPU602")],
    ),
}


@pytest.mark.parametrize(("source", "places"), NEEDED.values(), ids=NEEDED)
def test_what_is_needed_after_all(source: str, places: list[tuple[int, str]]) -> None:
    assert found(f"{source}") == places


CHOSEN = {
    "not by default": TRIED.format("cupy")
    + "def run(x, fast=False):\n    if fast:\n        assert cupy is not None\n"
    + "        return cupy.asarray(x)\n    return slow(x)\n",
    "another way by default": "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n\n"
    + "def run(x, mode='slow'):\n    if mode == 'fast':\n        return cupy.asarray(x)\n"
    + "    return slow(x)\n",
    "by an option": TRIED.format("cupy")
    + "def run(x, args):\n    if args.fast and cupy is None:\n        raise ImportError\n",
    "a class that is one of several": TRIED.format("cupy")
    + "class Fast:\n    def __init__(self):\n        assert cupy is not None\n"
    + "Runner = Fast if args.fast else Slow\n",
    "asked": TRIED.format("cupy")
    + "def run(x):\n    if cupy is not None:\n        return cupy.asarray(x)\n    return slow(x)\n",
    "a registry": TRIED.format("cupy")
    + "def fast(x):\n    return cupy.asarray(x)\nWAYS = {'fast': fast, 'slow': slow}\n",
    "a test that fails": TRIED.format("cupy")
    + "def run(x):\n    try:\n        return cupy.asarray(x)\n"
    + "    except Exception:\n        return slow(x)\n",
    "handed on": TRIED.format("cupy") + "ways = [cupy, numpy]\n",
}


@pytest.mark.parametrize("source", CHOSEN.values(), ids=CHOSEN)
def test_what_somebody_chooses_is_a_hint(source: str) -> None:
    assert found(source) == [(2, "NPU613")]


NONE_BEFORE = {
    "logged": "logger.warning('no flash_attn')",
    "passed over": "pass",
}


@pytest.mark.parametrize("handled", NONE_BEFORE.values(), ids=NONE_BEFORE)
def test_names_that_are_none_before_the_import_and_asked_for(handled: str) -> None:
    tried = (
        "attend = None\n\ndef load():\n    global attend\n    try:\n"
        "        from flash_attn import flash_attn_func as _attend\n        attend = _attend\n"
        f"    except ImportError:\n        {handled}\n\n"
    )
    asked = "def run(q, k, v):\n    if attend is not None:\n        return attend(q, k, v)\n"
    assert found(tried + asked) == [(6, "NPU613")]
    assert (6, "NPU602") in found(f"{tried}def run(q, k, v):\n    return attend(q, k, v)\n")


REFUSED = (
    "from diffusers.utils.import_utils import is_xformers_available\n\n"
    "def main(args, unet):\n    if args.fast:\n        if is_xformers_available():\n"
    "            unet.enable_xformers_memory_efficient_attention()\n"
    "        else:\n            {0}\n"
)


def test_a_library_without_which_the_other_arm_raises_an_error() -> None:
    source = REFUSED.format("raise ValueError('no xformers')")
    [finding] = judge(Document("a.py", source), CATALOGUE, Target()).findings
    assert (finding.rule.code, finding.effective_severity.value) == ("NPU602", "info")
    assert finding.note is not None
    assert "stops with an error" in finding.note.en
    assert found(REFUSED.format("pass")) == []


SILENT = {
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cupy\n",
    "another release of the same": "try:\n    from vllm.a import A\nexcept ImportError:\n"
    + "    from vllm.b import B as A\n",
    "reported elsewhere in the file": TRIED.format("cupy")
    + "if cupy is not None:\n    pass\ndef f():\n    import cupy.linalg\n",
}


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_no_hint(source: str) -> None:
    assert "NPU613" not in [rule for _, rule in found(source)]


def test_a_test_gets_no_hint() -> None:
    source = CHOSEN["asked"]
    assert found(source, "test_a.py") == []


def test_a_hint_for_each_library_of_a_file() -> None:
    source = TRIED.format("cupy") + TRIED.format("flash_attn") + TRIED.format("cupy")
    source += "if cupy is None or flash_attn is None:\n    fast = False\n"
    assert found(source) == [(2, "NPU613"), (7, "NPU613")]


def test_the_fix_of_the_catalogue_is_offered() -> None:
    source = (
        "import torch\n" + FLASH + "def attend(q, k, v):\n    if flash_attn_func is not None:\n"
        "        return flash_attn_func(q, k, v)\n    return plain(q, k, v)\n"
    )
    judged = judge(Document("a.py", source), CATALOGUE, Target())
    [hint] = judged.findings
    assert all(fix.applicability is Applicability.MANUAL for fix in hint.fixes)
    assert "npu_fusion_attention" in hint.fixes[0].edits[0].replacement
    apex = (
        "import torch\ntry:\n    from apex.normalization import FusedLayerNorm\n"
        "except ImportError:\n"
        "    from torch.nn import LayerNorm as FusedLayerNorm\n"
    )
    [hint] = judge(Document("a.py", apex), CATALOGUE, Target()).findings
    assert hint.fixes[0].applicability is Applicability.UNSAFE


def test_once_for_each_project(here: Path) -> None:
    for name in ("b.py", "a.py", "sub/c.py"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(CHOSEN["asked"])
    for jobs in ("1", "2"):
        for _ in range(2):  # the second time from the cache
            arguments = ("--output-format", "json", "--explain-silence", "--jobs", jobs)
            told = json.loads(invoke("check", *arguments)[1])
            hints = [(r["path"], r.get("reason", "")) for r in told if r["code"] == "NPU613"]
            assert hints == [("a.py", ""), ("b.py", "reported-once"), ("sub/c.py", "reported-once")]
    assert "info NPU613" in invoke("explain", "b.py:2")[1]


def test_what_is_needed_says_where(here: Path) -> None:
    (here / "a.py").write_text(NEEDED["by default"][0])
    [told] = json.loads(invoke("check", "--output-format", "json")[1])
    assert [place["line"] for place in told["related"]] == [10]
    text = code(
        """
        try:
            import cupy
        except ImportError:
            cupy = None


        def run(x):
            if cupy is None:
                raise ImportError("cupy")
            import cupy.linalg as linalg
            return linalg.norm(x)
        """
    )
    assert found(text) == [(2, "NPU602"), (10, "NPU602")]


NO_STAND_IN = {
    "a refusal": "    if cupy is None:\n        if x:\n            raise ValueError('cupy')\n",
    "no result": "    if cupy is None:\n        lines.append(1)\n",
}


@pytest.mark.parametrize("body", NO_STAND_IN.values(), ids=NO_STAND_IN)
def test_what_computes_nothing_takes_no_place(body: str) -> None:
    source = TRIED.format("cupy") + f"def run(x, lines):\n{body}    return 1\n"
    [hint] = judge(Document("a.py", source), CATALOGUE, Target()).findings
    assert "takes its place" not in hint.message("en")


def test_a_call_stays_a_finding_where_the_handler_binds_nothing() -> None:
    source = (
        "import logging\ntry:\n    import xformers.ops\nexcept ImportError:\n"
        "    logging.error('missing')\n"
        "def attend(q):\n    return xformers.ops.memory_efficient_attention(q, q, q)\n"
    )
    assert (7, "NPU602") in found(source)


def test_a_library_that_a_build_brings_is_no_error_where_it_is_asserted() -> None:
    source = TRIED.format("vllm") + "def run():\n    assert vllm is not None\n"
    assert found(source) == [(2, "NPU613")]
