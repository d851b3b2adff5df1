"""Migrates public scripts, trains them on the emulated NPU and writes what came of it.

    python scripts/train_public.py CLONES [--packages FOLDER] [--only TEXT] [--modes MODE,MODE]
        [--results FILE [--new]]

CLONES holds clones of the projects in `public_scripts/scripts.json`, by their names without their
owners. What is not there is skipped, and said. Each script is run by `npulens verify` four times:
with safe fixes, with the unsafe ones, too, in the style `device-agnostic` with both, and with the
safe ones in the style `runtime-shim`. Beside the second its original runs on the CPU
(`--compare`).

The matrix goes to `docs/runs.md`, whose last section stays. `--packages` holds torchvision and the
like if npulens' own environment has none. With `--results`, what an earlier call has found is kept
there, and the page shows all of it; with `--only` and without that, no page is written. Data is
made up (`public_scripts/made_up.py`), no run has the network, and nothing of the projects is kept.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from public_scripts.manifest import HERE, name_of, parser, public_scripts, unpack

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "runs.md"
MODES: Mapping[str, list[str]] = {
    "safe": [],
    "unsafe": ["--unsafe-fixes", "--compare", "--tolerance", "0.02"],  # half precision rounds
    "device-agnostic": ["--unsafe-fixes", "--migration-style", "device-agnostic"],
    "runtime-shim": ["--migration-style", "runtime-shim"],
}
"""What is given to `npulens verify` for each column."""
VARIABLES = {"runtime-shim": {"TORCH_NPU_DEVICE_CAPABILITY": "8.0"}}
"""What is exported beside: libraries take apart the capability of CUDA, which is `None` on an NPU.

Source: Ascend/pytorch, docs/zh/api/environment_variable/device_management/.
"""
TRAINS = ("passed", "limit-reached")
_NOT_RUN = "-"
_OTHER = "\n## Rewritten for several processes\n"
"""What follows on the page is written by hand, from what `train_in_two.py` prints."""
_STEPS, _SECONDS = 2, 240

Results = dict[str, dict[str, dict[str, Any]]]
"""What is known of each script, by mode."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--results", type=Path, metavar="FILE", help="what is known, and will be")
    options.add_argument("--new", action="store_true", help="only what is not known yet")
    options.add_argument("--modes", default=",".join(MODES), help="only these, in this order")
    asked = options.parse_args()
    modes = asked.modes.split(",")
    results: Results = {}
    if asked.results is not None and asked.results.exists():
        results = json.loads(asked.results.read_text(encoding="utf-8"))
    scripts = public_scripts("verify")
    for script in scripts:
        name = name_of(script)
        known = results.get(name, {})
        wanted = [mode for mode in modes if not (asked.new and mode in known)]
        if asked.only not in name or not wanted:
            continue
        clone = asked.clones / script["project"].partition("/")[2]
        if not clone.is_dir():
            print(f"{name}: skipped, no clone", flush=True)
            continue
        try:
            results[name] = {**known, **tried(clone, script, asked.packages, wanted)}
        except subprocess.CalledProcessError as error:
            print(f"{name}: skipped, {str(error.stderr or error)[:200]}", flush=True)
            continue
        print(f"{name}:", "; ".join(in_words(results[name])), flush=True)
        if asked.results is not None:
            asked.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if asked.results is not None or not asked.only:
        shown = [each for each in scripts if results.get(name_of(each))]
        kept = PAGE.read_text(encoding="utf-8").partition(_OTHER)
        PAGE.write_text(page(shown, results) + "".join(kept[1:]), encoding="utf-8")
    print(summary(list(results.values())))


def tried(
    clone: Path, script: dict[str, Any], packages: Path | None, modes: list[str]
) -> dict[str, dict[str, Any]]:
    """What comes of a script in some modes."""
    found = {}
    for mode in modes:
        options = MODES[mode]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "project")
            unpack(clone, script, folder, packages)
            variables = {**environment(folder, script, packages), **VARIABLES.get(mode, {})}
            found[mode] = verified(folder, script, options, variables)
    return found


def verified(
    folder: Path, script: dict[str, Any], options: list[str], variables: Mapping[str, str]
) -> dict[str, Any]:
    """What `npulens verify` says, with what it is not asked for left out."""
    given = ["--steps", str(_STEPS), "--seconds", str(_SECONDS), "--torch-version", "2.13"]
    given += ["--offline", "--output-format", "json", *options]
    if "processes" in script:
        given += ["--processes", str(script["processes"])]
    if "cwd" in script:
        given += ["--cwd", script["cwd"]]
    entry, *arguments = script["command"]
    arguments += script.get("arguments", {}).get("CUDA", [])
    command = [sys.executable, "-m", "npulens", "verify", *given, entry, "--", *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        said = json.loads(ended.stdout)
    except json.JSONDecodeError:
        words = (ended.stderr or ended.stdout).strip().rpartition("\n")[2]
        refused = {"status": "refused", "message": words, "steps": 0, "comparison": None}
        return {**refused, "commit": commit()}
    said["commit"] = commit()
    kept = (
        "commit",
        "status",
        "outcome",
        "message",
        "path",
        "line",
        "detail",
        "steps",
        "fixed",
        "output",
    )
    return {key: said[key] for key in (*kept, "comparison")}


@cache
def commit() -> str:
    """The commit of npulens that runs."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def environment(folder: Path, script: dict[str, Any], packages: Path | None) -> dict[str, str]:
    """The variables of a run."""
    given = dict(script.get("environment", {}))
    paths = [ROOT / "server", HERE, *([packages.resolve()] if packages else [])]
    paths += [folder / each for each in given.pop("PYTHONPATH", ".").split(os.pathsep)]
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"):
        given.pop(name, None)  # verify sets them
    if "PATH" in given:
        given["PATH"] = os.pathsep.join([str(folder / given["PATH"]), os.environ["PATH"]])
    changed = [each for each in script["packages"] if each in ("torchvision", "timm")]
    return {
        **os.environ,
        **given,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "NPULENS_PUBLIC_SCRIPT": " ".join(["verified", *changed]),
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "ignore",
        "HF_HUB_OFFLINE": "1",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # scripts load whole models
    }


def original(found: dict[str, dict[str, Any]]) -> str:
    """Whether the original runs on the CPU: `yes`, `no`, or `differs` in its numbers."""
    if "unsafe" not in found:
        return _NOT_RUN
    comparison = found["unsafe"]["comparison"]
    trains = found["unsafe"]["status"] in TRAINS
    if trains and not found["unsafe"]["steps"]:  # without an optimizer, like the original
        return "yes"
    if comparison is None or comparison["problem"]:
        return "no"
    return "differs" if trains and comparison["divergence"] is not None else "yes"


def in_words(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What came of a script, for the terminal."""
    yield f"original {original(found)}"
    for mode, said in found.items():
        trains = said["status"] in TRAINS
        yield f"{mode} {said['steps']} steps" if trains else f"{mode} {said['message'][:160]}"


def summary(found: list[dict[str, dict[str, Any]]]) -> str:
    """How many train in each mode, of all and of those whose original runs on the CPU."""
    parts = []
    for mode in MODES:
        of_all, of_cpu = (counted(some, mode) for some in (found, on_cpu(found)))
        parts.append(f"{mode} {of_all} ({of_cpu})")
    return "; ".join(parts)


def on_cpu(found: list[dict[str, dict[str, Any]]]) -> list[dict[str, dict[str, Any]]]:
    """The scripts whose original runs on the CPU."""
    return [each for each in found if original(each) in ("yes", "differs")]


def counted(found: list[dict[str, dict[str, Any]]], mode: str) -> str:
    """How many train of those that were run in a mode."""
    run = [each[mode] for each in found if mode in each]
    return f"{sum(each['status'] in TRAINS for each in run)} of {len(run)}"


def page(scripts: list[dict[str, Any]], results: Results) -> str:
    """The page with the matrix, and a reason for all that does not train."""
    found = [results[name_of(script)] for script in scripts]
    projects = len({script["project"] for script in scripts})
    lines = [
        "# Public scripts, migrated and run",
        "",
        f"{len(scripts)} scripts of {projects} public projects, each migrated and trained on the "
        "[emulated NPU](verify.md) for two optimizer steps, as they are found at a fixed commit, "
        "without a hand. Data is made up and small, and there is no network; "
        "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1` is set, as some scripts load whole models. "
        "`scripts/train_public.py` makes this page; `scripts/public_scripts/scripts.json` lists "
        "the scripts with their commits, arguments, data and packages. Nothing of the projects "
        "is kept here.",
        "",
        "A run is `npulens verify --steps 2 --offline`: with safe fixes, with `--unsafe-fixes`, "
        "too, and in two [styles](migrating.md#styles): `device-agnostic` with both, "
        "`runtime-shim` with the safe ones and with `TORCH_NPU_DEVICE_CAPABILITY=8.0`, without "
        "which libraries fail that take apart the capability of CUDA. *CPU* says whether the "
        "original runs on the CPU with CUDA redirected there (`--compare`), and whether it "
        "trains to the same numbers as what the unsafe fixes make of it.",
        "",
        summary_table(found),
        "",
        "A number is that of the optimizer steps of a run that came to its end or to that limit; "
        "`0` ran to its end without an optimizer, and `-` was not run yet. Everything else is a "
        f"verdict, with its reason below. {of_commits(found)}",
        "",
        "| | project | script | kind | CPU | safe | unsafe | device-agnostic | runtime-shim |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for number, (script, said) in enumerate(zip(scripts, found, strict=True), 1):
        path = "/".join([*Path(script["folder"]).parts, script["command"][0]])
        cells = [cell(said[mode]) if mode in said else _NOT_RUN for mode in MODES]
        row = [str(number), script["project"], f"`{path}`", script["kind"], original(said), *cells]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "## What does not train, and why", ""]
    for number, (script, said) in enumerate(zip(scripts, found, strict=True), 1):
        lines += (f"- {number}, {modes}: {text}" for modes, text in reasons(script, said))
    return "\n".join(lines) + "\n"


def of_commits(found: list[dict[str, dict[str, Any]]]) -> str:
    """Of which state of npulens the cells are."""
    commits = Counter(said.get("commit", "") for each in found for said in each.values())
    if len(commits) == 1:
        return f"All cells are of one commit of npulens, `{next(iter(commits))}`."
    parts = [f"{n} of `{each}`" for each, n in commits.most_common() if each]
    older = [f"{commits['']} of older ones"] if commits[""] else []
    return f"The cells are of several commits of npulens: {', '.join([*parts, *older])}."


def summary_table(found: list[dict[str, dict[str, Any]]]) -> str:
    """How many train, in each mode."""
    lines = ["| train | safe | unsafe | device-agnostic | runtime-shim |", "| --- |" + " --- |" * 4]
    for name, some in (("of all", found), ("of those that run on the CPU", on_cpu(found))):
        lines.append(f"| {name} | {' | '.join(counted(some, mode) for mode in MODES)} |")
    return "\n".join(lines)


def cell(said: dict[str, Any]) -> str:
    """A mode in the matrix."""
    return str(said["steps"]) if said["status"] in TRAINS else str(said["status"])


def reasons(script: dict[str, Any], said: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What each verdict rests on that is not good, modes with the same one together."""
    texts: dict[str, list[str]] = {}
    for mode in (mode for mode in MODES if mode in said):
        found = said[mode]
        if found["status"] not in TRAINS:
            texts.setdefault(found["message"], []).append(mode)
    comparison = said["unsafe"]["comparison"] if "unsafe" in said else None
    if original(said) == "no" and comparison is not None:
        problem = comparison["problem"].partition("\n")[0]
        texts.setdefault(f"the original does not run: {problem}", []).append("CPU")
    for text, modes in texts.items():
        told = script.get("known", {}).get(modes[0], "")
        yield ", ".join(modes), " ".join(filter(None, [shown(text), told]))


def shown(text: str) -> str:
    """A message as it stands on the page."""
    line = text.partition("\n")[0][:300].replace("|", "\\|").replace("<", "\\<")
    return f"`{line}`" if "`" not in line and line.count("_") > 1 else line


if __name__ == "__main__":
    main()
