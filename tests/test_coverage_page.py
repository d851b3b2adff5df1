"""The coverage page, its table and the catalogue agree."""

import importlib.util
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from npulens.catalog.loader import load_catalogue
from npulens.catalog.tables import Place

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
CATALOGUE = load_catalogue()
STALE = "run scripts/make_coverage_page.py"


def generator() -> ModuleType:
    path = ROOT / "scripts" / "make_coverage_page.py"
    spec = importlib.util.spec_from_file_location("make_coverage_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = generator()
ROWS = SCRIPT.read_table()


def test_the_page_agrees_with_the_table() -> None:
    assert SCRIPT.PAGE.read_text(encoding="utf-8") == SCRIPT.page(ROWS, CATALOGUE), STALE


def test_the_table_agrees_with_the_catalogue() -> None:
    facts = [(row.file, row.entry, row.reason) for row in ROWS]
    assert SCRIPT.TABLE.read_text(encoding="utf-8") == SCRIPT.table(
        SCRIPT.rows(facts, CATALOGUE)
    ), STALE


def test_each_rule_named_exists() -> None:
    assert {code for row in ROWS for code in row.rules} <= CATALOGUE.rules.keys()


def test_what_is_claimed_resolves() -> None:
    """Apart from the script: the names themselves, or their last parts, are in the tables."""
    tables = [getattr(CATALOGUE, each.name) for each in fields(CATALOGUE)]
    known = {name for each in tables if isinstance(each, Mapping) for name in each}
    proposed = {entry.becomes for entry in CATALOGUE.libraries.values()}
    proposed |= {entry.becomes for entries in CATALOGUE.calls.values() for entry in entries}
    patterns = "\n".join(source.text for source in CATALOGUE.patterns)
    for row in ROWS:
        decided = row.file in ("transfer_to_npu.md", "instrumentation.json", "msTransplant")
        written = {**SCRIPT.WRITTEN, **SCRIPT.shape_coverage.WRITTEN}
        if not row.rules or decided or row.entry in written:
            continue
        if row.file == SCRIPT.shape_coverage.FILE:
            assert known.intersection(SCRIPT.shape_coverage.names_of(row.entry)), row
            continue
        name = row.entry.removeprefix("env:").partition("(")[0]
        candidates = {name, name.rpartition(".")[2], f".{name.rpartition('.')[2]}"}
        if row.file == "third_party.json":
            modules = row.entry.split(" + ")
            assert any(symbol.startswith(module) for module in modules for symbol in known)
            continue
        if row.file == "env_vars.json":
            candidates = set(row.entry.removesuffix(")").split(" (for "))
            checked = [entry.name for entry in CATALOGUE.launch[Place.VARIABLE]]
            if any(re.fullmatch(expression, each) for expression in checked for each in candidates):
                continue
        if row.file == "affinity_api.json":
            assert name in proposed or row.entry in patterns, row
            continue
        if name == "torch.nn.parallel.data_parallel.DataParallel":
            candidates.add("torch.nn.DataParallel")
        assert candidates & known, row


@pytest.mark.parametrize("file", SCRIPT.FILES)
def test_every_file_is_there_with_a_reason_for_each_entry(file: str) -> None:
    own = [row for row in ROWS if row.file == file]
    assert own
    assert all(row.reason for row in own)
    assert len({row.entry for row in own}) == len(own)


def test_the_points_of_the_shim_are_complete() -> None:
    numbers = [row.entry[:2] for row in ROWS if row.file == "transfer_to_npu.md"]
    assert numbers == [f"{number:02}" for number in range(1, 21)]


def test_each_decision_on_instrumentation_is_about_an_entry_and_a_rule() -> None:
    decisions = SCRIPT.instrumentation_coverage
    entries = {row.entry for row in ROWS if row.file == decisions.FILE}
    assert decisions.COVERED.keys() | decisions.EXCEPTIONS.keys() <= entries
    assert not decisions.COVERED.keys() & decisions.EXCEPTIONS.keys()
    for names in decisions.COVERED.values():
        assert all(CATALOGUE.rule_named(name) is not None for name in names), names


def test_every_shipped_rule_about_names_covers_something() -> None:
    covering = {code for row in ROWS for code in row.rules}
    # What Slurm sets is not among the facts on CUDA and PyTorch.
    with_symbols = {e.rule.code for e in CATALOGUE.environment.values() if not e.read}
    assert with_symbols <= covering


@pytest.mark.parametrize(
    ("file", "entry", "codes"),
    [
        ("torch_cuda_api.json", "torch.cuda.synchronize", ("NPU101",)),
        ("torch_cuda_api.json", "torch.Tensor.cuda", ("NPU105", "NPU110")),
        ("torch_cuda_api.json", "env:CUDA_VISIBLE_DEVICES", ("NPU901",)),
        ("torch_cuda_api.json", 'torch.load(map_location="cuda")', ("NPU110",)),
        ("torch_cuda_api.json", "torch.cuda.never_heard_of", ()),
        ("third_party.json", "never_heard_of", ()),
        ("env_vars.json", "ASCEND_RT_VISIBLE_DEVICES (for CUDA_VISIBLE_DEVICES)", ("NPU901",)),
        ("affinity_api.json", "torch_npu.npu_rms_norm", ("NPU701",)),
        ("affinity_api.json", "torch_npu.optim.NpuFusedAdamW", ("NPU716",)),
        ("affinity_api.json", "torch_npu.contrib.module.NpuDropPath", ("NPU714",)),
        ("affinity_api.json", "torch_npu.npu_never_heard_of", ()),
    ],
)
def test_what_covers_an_entry(file: str, entry: str, codes: tuple[str, ...]) -> None:
    assert SCRIPT.rules_for(file, entry, CATALOGUE) == codes
