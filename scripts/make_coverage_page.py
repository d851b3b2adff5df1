"""Writes `docs/coverage.md` and `tests/data/coverage.tsv`: what of the collected facts is a rule.

The facts about the NPU come from a folder of JSON files, which is not part of the repository:

    .venv/bin/python scripts/make_coverage_page.py KNOWLEDGE_FOLDER

Without a folder the entries are those of the table, and only what covers them is looked up anew.
Run it so after adding rules.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import fused_coverage
import instrumentation_coverage
import peer_advice_coverage
import shape_coverage

from npulens.catalog.loader import load_catalogue
from npulens.catalog.tables import Catalogue, Place
from npulens.syntax.meanings import canonical

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
TABLE = ROOT / "tests" / "data" / "coverage.tsv"
NATIVE_TABLE = ROOT / "tests" / "data" / "native_coverage.tsv"
"""Made by `make_native_table.py`."""
HEADER = ("file", "entry", "rules", "reason")

NOT_YET = "not yet"
SUPPORTED = "works on the NPU"
NPU_ONLY = "set on the NPU only; no CUDA code names it"
WORKS_AS_IT_IS = "the library works with torch_npu, or has a plugin"
UNKNOWN = "nobody says whether it works"
OF_PYTORCH = "a variable of PyTorch itself; it means the same on the NPU"

FILES = {
    "torch_cuda_api.json": "Names of `torch.cuda` and what goes with them",
    "third_party.json": "Libraries",
    "env_vars.json": "Environment variables",
    "transfer_to_npu.md": "What the run-time shim leaves undone",
    "affinity_api.json": "Fused operators of the NPU",
    "dynamic_shape_ops.json": "Operators with dynamic shapes",
    instrumentation_coverage.FILE: "Precision, profiling, launching, suites",
    peer_advice_coverage.FILE: "[Advice of msTransplant](#advice-of-mstransplant)",
}

SHIM_POINTS: dict[str, tuple[str, ...] | str] = {
    "01 tests of the backend's name": ("nccl-backend",),
    "02 tests of the device's type": ("cuda-device-comparison",),
    "03 torch.device objects": ("cuda-device-string",),
    "04 torch.jit.script": ("torch-api-limited",),
    "05 channels_last": ("channels-last",),
    "06 DataParallel": ("data-parallel",),
    "07 float64 tensor type": ("cuda-tensor-type",),
    "08 names that torch_npu lacks": ("cuda-api-unsupported", "nccl-api", "cuda-profiler"),
    "09 values that differ": ("cuda-api-limited", "cuda-build-flag"),
    "10 switches of torch.backends": ("cuda-backend-switch",),
    "11 tensor types as text": ("cuda-tensor-type",),
    "12 parts of torch.amp": ("grad-scaler", "cuda-autocast-device"),
    "13 map_location as a function": ("cuda-method",),
    "14 further device arguments": ("cuda-device-string",),
    "15 environment variables": ("cuda-environment",),
    "16 CUDA code of third parties": ("cuda-extension", "cuda-library", "cuda-library-name"),
    "17 Triton": ("library-needs-npu-build",),
    "18 names bound before the shim": ("bound-before-shim",),
    "19 fused kernels, dynamic shapes": ("rms-norm", "attention", "dynamic-shape-operator"),
    "20 apex FusedAdam": ("cuda-library-name",),
}
"""In the order of the file, in words of our own: the rules for it, or why there are none."""

WRITTEN = {
    '"cuda"': "cuda-device-string",
    'torch.distributed.get_backend()=="nccl"': "nccl-backend",
    "torch.Tensor.device": "cuda-device-comparison",
    "onnxruntime": "cuda-execution-provider",
    "torch.set_default_tensor_type(torch.cuda.FloatTensor)": "cuda-tensor-type",
}
"""Entries that are code and no name, with the rule that such code breaks."""


class Row(NamedTuple):
    """One fact: the codes of the rules that cover it, or why none does."""

    file: str
    entry: str
    rules: tuple[str, ...]
    reason: str


# What covers an entry


def rules_for(file: str, entry: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The codes of the rules that an entry of a file leads to in the catalogue."""
    if file == "transfer_to_npu.md":
        names = SHIM_POINTS[entry]
        return _named(names, catalogue) if isinstance(names, tuple) else ()
    if file == instrumentation_coverage.FILE:
        return _named(instrumentation_coverage.rules_of(entry), catalogue)
    if file == peer_advice_coverage.FILE:
        return _named(peer_advice_coverage.rules_of(entry), catalogue)
    if entry in WRITTEN:
        rule = catalogue.rule_named(WRITTEN[entry])
        return () if rule is None else (rule.code,)
    if file == "third_party.json":
        return _sorted(
            code for module in entry.split(" + ") for code in _of_module(module, catalogue)
        )
    if file == "env_vars.json":
        variables = entry.removesuffix(")").split(" (for ")
        found = [catalogue.environment.get(name) for name in variables]
        checked = [
            entry
            for place in (Place.VARIABLE, Place.TOGETHER)
            for entry in catalogue.launch[place]
            if any(re.fullmatch(entry.name, name) for name in variables)
        ]
        return _sorted(e.rule.code for e in (*found, *checked) if e is not None)
    if file == "affinity_api.json":
        return _sorted({*_proposing(entry, catalogue), *_of_patterns(entry, catalogue)})
    if file == shape_coverage.FILE:
        return _of_shapes(entry, catalogue)
    return _sorted(_of_name(file, entry, catalogue))


def _of_shapes(entry: str, catalogue: Catalogue) -> tuple[str, ...]:
    if entry in shape_coverage.LEFT_OUT:
        return ()
    written = shape_coverage.WRITTEN.get(entry)
    if written is not None:
        return _named(written, catalogue)
    found = (catalogue.operators.get(name) for name in shape_coverage.names_of(entry))
    return _sorted(each.rule.code for each in found if each is not None)


def _named(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    found = (catalogue.rule_named(name) for name in names)
    return _sorted(rule.code for rule in found if rule is not None)


def _sorted(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(codes)))


def _proposing(operator: str, catalogue: Catalogue) -> Iterator[str]:
    """The rules on fused operators that propose one of them; others may name it in passing."""
    of_calls = (entry for entries in catalogue.calls.values() for entry in entries)
    for entry in (*catalogue.libraries.values(), *of_calls):
        if entry.becomes == operator and entry.rule.family == "fused":
            yield entry.rule.code


def _of_patterns(entry: str, catalogue: Catalogue) -> Iterator[str]:
    """The rules of pattern files that write an operator, or name it as what to use."""
    for source in catalogue.patterns:
        rule = re.search(r'^RULE = "(\w+)"', source.text, re.MULTILINE)
        if rule is not None and re.search(rf"(?<![\w.]){re.escape(entry)}\b", source.text):
            yield rule[1]


def _of_module(module: str, catalogue: Catalogue) -> Iterator[str]:
    for of_table in _tables(catalogue):
        for name, entry in of_table.items():
            if f"{name}.".startswith(f"{module}.") and hasattr(entry, "rule"):
                yield entry.rule.code


def _of_name(file: str, entry: str, catalogue: Catalogue) -> Iterator[str]:
    if entry.startswith("env:"):
        variable = catalogue.environment.get(entry.removeprefix("env:"))
        yield from () if variable is None else (variable.rule.code,)
    elif call := re.fullmatch(r"([\w.]+)\((?:(\w+)=)?\"\w+\"\)", entry):
        for parameter in catalogue.parameters.get(call[1], ()):
            if call[2] in (None, parameter.parameter):
                yield parameter.rule.code
    else:
        for name in (entry, canonical(entry)):
            yield from _of_tables(name, catalogue)
        owner, _, member = entry.rpartition(".")
        method = catalogue.methods.get(member)
        if method is not None and (owner in method.owners or owner.endswith("Storage")):
            yield method.rule.code
        if file == "torch_cuda_api.json" and owner in ("torch.Tensor", "torch.nn.Module"):
            yield from (p.rule.code for p in catalogue.parameters.get(f".{member}", ()))


def _of_tables(name: str, catalogue: Catalogue) -> Iterator[str]:
    """The rule of a qualified name, in whichever table of the catalogue it stands."""
    for of_table in _tables(catalogue):
        if hasattr(found := of_table.get(name), "rule"):
            yield found.rule.code


def _tables(catalogue: Catalogue) -> Iterator[Mapping[str, Any]]:
    for each in fields(catalogue):
        value = getattr(catalogue, each.name)
        # What is said of shapes is another matter than whether a name works.
        if isinstance(value, Mapping) and each.name != "operators":
            yield value


# The entries


def entries(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each fact of a folder: its file, its name, and the reason if no rule covers it."""
    for api in _read(folder, "torch_cuda_api.json")["apis"]:
        works = api["status"] == "same-name" and not api["symbol"].startswith("torch.cuda.")
        yield "torch_cuda_api.json", api["symbol"], SUPPORTED if works else NOT_YET
    for library in _read(folder, "third_party.json")["libraries"]:
        name = " + ".join(i for i in library["imports"] if not i.startswith("*"))
        reasons = {"supported": WORKS_AS_IT_IS, "plugin": WORKS_AS_IT_IS, "unknown": UNKNOWN}
        yield "third_party.json", name, reasons.get(library["status"], NOT_YET)
    variables = _read(folder, "env_vars.json")
    for variable in variables["vars"]:
        there = variable.get("cuda_counterpart")
        name = f"{variable['name']} (for {there})" if there else variable["name"]
        reason = NPU_ONLY if not there else OF_PYTORCH if there == "TORCH_LOGS" else NOT_YET
        yield "env_vars.json", name, reason
    yield from (("env_vars.json", name, NOT_YET) for name in variables["no_counterpart"])
    yield from (
        ("transfer_to_npu.md", point, why if isinstance(why, str) else NOT_YET)
        for point, why in SHIM_POINTS.items()
    )
    for operator in _read(folder, "affinity_api.json")["apis"]:
        name = operator["api"]
        yield "affinity_api.json", name, fused_coverage.reason(operator)
    shapes = _read(folder, shape_coverage.FILE)
    yield from ((shape_coverage.FILE, *pair) for pair in shape_coverage.entries(shapes))
    facts = _read(folder, instrumentation_coverage.FILE)
    for entry, reason in instrumentation_coverage.entries(facts):
        yield instrumentation_coverage.FILE, entry, reason
    yield from ((peer_advice_coverage.FILE, *pair) for pair in peer_advice_coverage.entries())


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


# The table and the page


def read_table() -> list[Row]:
    """The table as it is."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    cells = (line.split("\t") for line in lines)
    return [Row(file, entry, tuple(rules.split()), reason) for file, entry, rules, reason in cells]


def rows(facts: Iterable[tuple[str, str, str]], catalogue: Catalogue) -> list[Row]:
    """Each fact once, with what covers it today."""
    unique = {(file, entry): reason for file, entry, reason in facts}
    return [Row(*key, rules_for(*key, catalogue), reason) for key, reason in unique.items()]


def table(all_rows: Iterable[Row]) -> str:
    """The table as text; the reason stays, in case that a rule goes."""
    lines = ["\t".join(HEADER)]
    lines += ["\t".join((r.file, r.entry, " ".join(r.rules), r.reason)) for r in all_rows]
    return "\n".join(lines) + "\n"


def page(all_rows: list[Row], catalogue: Catalogue) -> str:
    """The page as Markdown."""
    lines = [
        "<!-- Made by scripts/make_coverage_page.py; do not edit. -->",
        "",
        "# Coverage",
        "",
        "The rules of npulens are made from a collection of facts about the NPU, read from the",
        "documentation and the sources of Ascend and PyTorch. This page says how much of it is a",
        "rule today, and why the rest is not. Entry by entry it is in",
        "[coverage.tsv](../tests/data/coverage.tsv).",
        "",
        "| facts | entries | covered by a rule | left out |",
        "| --- | --- | --- | --- |",
    ]
    for file, title in FILES.items():
        own = [row for row in all_rows if row.file == file]
        covered = sum(bool(row.rules) for row in own)
        reasons = Counter(row.reason for row in own if not row.rules)
        why = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        lines.append(f"| {title} | {len(own)} | {covered} | {why or '-'} |")
    lines += [
        _native_line(),
        "",
        "## Rules",
        "",
        "| rule | entries that it covers |",
        "| --- | --- |",
    ]
    counted = Counter(code for row in all_rows for code in row.rules)
    lines += [
        f"| [{code}](rules/{code}.md) {catalogue.rules[code].name} | {count} |"
        for code, count in sorted(counted.items())
    ]
    lines += _listed("What `transfer_to_npu` leaves undone", "transfer_to_npu.md", all_rows)
    lines += _listed("Advice of msTransplant", peer_advice_coverage.FILE, all_rows)
    return "\n".join(lines) + "\n"


def _listed(title: str, file: str, all_rows: Iterable[Row]) -> Iterator[str]:
    """A table of each entry of a file."""
    yield from ("", f"## {title}", "", "| point | rules |", "| --- | --- |")
    for row in all_rows:
        if row.file == file:
            links = ", ".join(f"[{code}](rules/{code}.md)" for code in row.rules)
            yield f"| {row.entry} | {links or row.reason} |"


def _native_line() -> str:
    """The row for PyTorch's own API, whose entries are in a table of their own."""
    cells = [line.split("\t") for line in NATIVE_TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    covered = sum(outcome.startswith("rule: ") for *_, outcome in cells)
    title = "[PyTorch's own API](coverage/native.md), with determinism and private names"
    rest = f"{len(cells) - covered} for the reasons on its page"
    return f"| {title} | {len(cells)} | {covered} | {rest} |"


def main() -> None:
    """Write both files."""
    catalogue = load_catalogue()
    if len(sys.argv) > 1:
        facts = list(entries(Path(sys.argv[1])))
    else:
        facts = [(row.file, row.entry, row.reason) for row in read_table()]
    all_rows = rows(facts, catalogue)
    TABLE.write_text(table(all_rows), encoding="utf-8")
    PAGE.write_text(page(all_rows, catalogue), encoding="utf-8")


if __name__ == "__main__":
    main()
