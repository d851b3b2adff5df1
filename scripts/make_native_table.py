"""Writes what is known of PyTorch's own APIs: the table, the names listed, and what became of each.

    .venv/bin/python scripts/make_native_table.py KB_FOLDER

KB_FOLDER holds the facts read from the documentation of torch_npu, `native_api_support.json` and
`native_extras.json`; it is no part of the repository. From them alone and the rule files that were
written by hand come

- `rules/native/limits.json`: the APIs with a limit that code can be seen to meet;
- `rules/native/verified.json`: all APIs that the tables list, by release;
- `tests/data/native_coverage.tsv`: each fact, and the rule that tells it or why none does;
- `docs/coverage/native.md`: the same, counted.

What is said, and what is left out, is decided in `native_wording.py` beside this file.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import native_wording as wording

from npulens.catalog.rule_file import read_content

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "rules"
SOURCE = "Ascend/pytorch: docs native_api {file}"


def release(version: str) -> str:
    """`2.7.1` is the table of the release line 2.7."""
    return ".".join(version.split(".")[:2])


def ordered(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


class Facts:
    """The facts, and the hand-written rules that come first."""

    def __init__(self, folder: Path) -> None:
        content = json.loads((folder / "native_api_support.json").read_text(encoding="utf-8"))
        self.apis: dict[str, dict[str, Any]] = content["apis"]
        self.releases = [release(version) for version in content["versions"]]
        self.extras = json.loads((folder / "native_extras.json").read_text(encoding="utf-8"))
        self.symbols: dict[str, str] = {}
        self.methods: dict[str, str] = {}
        for path in sorted(RULES.glob("*/*.toml")):
            rules: Any = read_content(path, path.name)
            self.symbols |= {entry["symbol"]: entry["rule"] for entry in rules.get("symbols", ())}
            self.methods |= {entry["name"]: entry["rule"] for entry in rules.get("methods", ())}
            kinds = {kind["kind"]: kind["rule"] for kind in rules.get("kinds", ())}
            self.symbols |= {
                entry["api"]: ", ".join(sorted({kinds[limit["kind"]] for limit in entry["limits"]}))
                for entry in rules.get("native", ())
            }

    def status(self, api: str, version: str) -> str | None:
        """`yes`, `partial` or `no`, None where the table does not list it."""
        found = self.apis.get(api, {"status": {}})["status"]
        return next((found[full] for full in found if release(full) == version), None)

    def hand_written(self, api: str) -> str | None:
        """The rule that already covers a name: its own or that of what it belongs to."""
        prefix = api
        while prefix:
            if prefix in self.symbols:
                return self.symbols[prefix]
            prefix = prefix.rpartition(".")[0]
        return self.methods.get(api.rpartition(".")[2])

    def ranges(self, versions: Iterable[str]) -> str:
        """`2.6, 2.8-2.10`: neighbours among the releases that have a table are one range."""
        wanted = set(versions)
        runs: list[list[str]] = []
        for version in self.releases:
            if version not in wanted:
                runs.append([])
            elif runs:
                runs[-1].append(version)
            else:
                runs.append([version])
        parts = [run for run in runs if run]
        return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)


def unsupported(api: str, facts: Facts) -> list[dict[str, Any]]:
    """The releases that cross an API out, with advice as far as it holds in them."""
    versions = [v for v in facts.releases if facts.status(api, v) == "no"]
    if not versions:
        return []
    kind, names = wording.advice(api)
    since = supported_since(api, facts)
    if since is not None and kind != wording.SAME_CODE:
        return [
            {"kind": wording.UNTIL, "in": facts.ranges(versions), "instead": f"PyTorch {since}"}
        ]
    helped = [v for v in versions if all(facts.status(n, v) not in (None, "no") for n in names)]
    limits = []
    if helped and kind != wording.SAME_CODE:
        limit = {"kind": kind, "in": facts.ranges(helped)}
        if names:
            limit["instead"] = ", ".join(f"`{name}`" for name in names)
        limits.append(limit)
    if len(helped) < len(versions):
        rest = [v for v in versions if v not in helped]
        limits.append({"kind": "unsupported", "in": facts.ranges(rest)})
    return limits


def supported_since(api: str, facts: Facts) -> str | None:
    """The release from which on all tables list an API; `None` if the newest does not."""
    since = None
    for version in reversed(facts.releases):
        if facts.status(api, version) in (None, "no"):
            break
        since = version
    return since


def limited(api: str, facts: Facts) -> tuple[list[dict[str, Any]], set[str]]:
    """The limits worth telling of an API, and why others are not."""
    versions: dict[str, list[str]] = {}
    reasons: set[str] = set()
    for part in facts.apis[api].get("limits", ()):
        releases = [release(v) for v in part["versions"]]
        for constraint in part["constraints"]:
            if constraint["kind"] == "dtype":
                continue
            for coded in wording.coded(api, constraint):
                if isinstance(coded, str):
                    reasons.add(coded)
                else:
                    versions.setdefault(json.dumps(coded), []).extend(releases)
    limits = [
        {"kind": (limit := json.loads(text)).pop("kind"), "in": facts.ranges(found), **limit}
        for text, found in versions.items()
    ]
    return limits, reasons


def missing_types(api: str, facts: Facts) -> tuple[list[dict[str, Any]], set[str]]:
    """The types of tensors that an operator was not verified for, of those that code names."""
    found: dict[str, set[str]] = {}
    has_list = False
    for part in facts.apis[api].get("limits", ()):
        lists = [
            c
            for c in part["constraints"]
            if c["kind"] == "dtype"
            and "only" in c
            and "hw" not in c
            and c.get("param") in wording.WHOLE_INPUT
        ]
        has_list = has_list or any(c["kind"] == "dtype" for c in part["constraints"])
        if len(lists) != 1:
            continue
        for name, short in wording.TYPES.items():
            if short not in lists[0]["only"]:
                found.setdefault(name, set()).update(release(v) for v in part["versions"])
    if not has_list:
        return [], set()
    if facts.apis[api]["file"] not in wording.OPERATOR_PAGES:
        return [], {wording.TEST_SCOPE}
    if api.rpartition(".")[2] in wording.ANY_TYPE:
        return [], {wording.TYPE_IS_NO_MATTER}
    by_range: dict[str, list[str]] = {}
    for name, versions in found.items():
        by_range.setdefault(facts.ranges(versions), []).append(name)
    limits = [
        {"kind": "type", "in": versions, "dtypes": names} for versions, names in by_range.items()
    ]
    return limits, set() if limits else {wording.TYPES_ARE_THERE}


def decide(api: str, facts: Facts) -> tuple[list[dict[str, Any]], str]:
    """The limits of an API for the table, and in a word what became of it."""
    rule = facts.hand_written(api)
    if rule is not None:
        return [], f"rule: {rule}"
    reason = wording.left_out(api)
    if reason is not None:
        return [], f"out: {reason}"
    limits = unsupported(api, facts)
    others, reasons = limited(api, facts)
    types, type_reasons = missing_types(api, facts)
    limits += [*others, *types]
    if limits:
        rules = sorted({wording.KINDS[limit["kind"]]["rule"] for limit in limits})
        return limits, "rule: " + ", ".join(rules)
    # The weightier reason: what cannot be seen, before what nobody needs to know.
    every = reasons | type_reasons or {wording.SUPPORTED}
    return [], "out: " + min(every, key=wording.REASONS.index)


def table(facts: Facts) -> tuple[dict[str, list[dict[str, Any]]], list[tuple[str, str, str]]]:
    """The lists of `rules/native/limits.json`, and what became of each fact."""
    native, coverage = [], []
    for api in sorted(facts.apis):
        limits, outcome = decide(api, facts)
        coverage.append(("native_api_support", api, outcome))
        if limits:
            source = SOURCE.format(file=facts.apis[api]["file"])
            native.append({"api": api, "limits": limits, "source": source})
    coverage += extras(facts)
    kinds = [{"kind": kind, **fields} for kind, fields in wording.KINDS.items()]
    known = {entry["api"] for entry in native}
    spellings = [
        {"name": name, "api": api} for name, api in sorted(wording.spellings(known).items())
    ]
    tensors = [{"owner": owner, "names": sorted(n)} for owner, n in wording.TENSORS.items()]
    lists = {"kinds": kinds, "native": native, "spellings": spellings, "tensors": tensors}
    return lists, coverage


def extras(facts: Facts) -> list[tuple[str, str, str]]:
    """What became of the other file of facts, which holds no limit to be seen in code."""
    rows = []
    for hardware in ("A2/A3", "950DT"):
        apis = facts.extras["deterministic"][hardware]
        rows += [(f"deterministic {hardware}", api, f"out: {wording.DETERMINISM}") for api in apis]
    apis = facts.extras["inf_nan"]["input_handling_differs"]
    rows += [("inf_nan", api, f"out: {wording.INVISIBLE}") for api in apis]
    for entry in facts.extras["private_apis"]["apis"]:
        rule = facts.hand_written(entry["api"])
        outcome = f"rule: {rule}" if rule else f"out: {wording.PRIVATE}"
        rows.append(("private_apis", entry["api"], outcome))
    return rows


def verified(facts: Facts) -> dict[str, list[str]]:
    """All names listed, by the releases that list them."""
    names: dict[str, list[str]] = {}
    for api in facts.apis:
        versions = [v for v in facts.releases if facts.status(api, v) is not None]
        names.setdefault(facts.ranges(versions), []).append(api)
    listed = set(facts.apis)
    always = facts.ranges(facts.releases)
    private = [e["api"] for e in facts.extras["private_apis"]["apis"] if e["api"] not in listed]
    names[always] += private
    return {versions: sorted(found) for versions, found in sorted(names.items())}


def rule_file(lists: dict[str, list[dict[str, Any]]]) -> str:
    """A rule file with one entry to a line."""
    blocks = ['  "family": "api"']
    for name, entries in lists.items():
        rows = [f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries]
        blocks.append(f'  "{name}": [\n' + ",\n".join(rows) + "\n  ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def coverage_table(rows: list[tuple[str, str, str]]) -> str:
    return "fact\tname\toutcome\n" + "".join("\t".join(row) + "\n" for row in rows)


def coverage_page(rows: list[tuple[str, str, str]]) -> str:
    """How many facts became a rule, and how many did not and why."""
    text = wording.PAGE
    for fact, title in wording.FACTS.items():
        own = [outcome for name, _, outcome in rows if name.split(" ")[0] == fact]
        text += f"\n## {title}: {len(own)}\n\n| what became of it | facts |\n| --- | --- |\n"
        counts = sorted(Counter(own).items(), key=lambda item: (item[0][:3] != "rul", -item[1]))
        text += "".join(f"| {outcome} | {count} |\n" for outcome, count in counts)
    return text


def main() -> None:
    """Write the four files."""
    facts = Facts(Path(sys.argv[1]))
    lists, coverage = table(facts)
    files = {
        RULES / "native" / "limits.json": rule_file(lists),
        RULES / "native" / "verified.json": json.dumps(verified(facts), indent=0) + "\n",
        ROOT / "tests" / "data" / "native_coverage.tsv": coverage_table(coverage),
        ROOT / "docs" / "coverage" / "native.md": coverage_page(coverage),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
