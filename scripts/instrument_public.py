"""Instruments public training scripts, runs them on the emulated NPU and compares the losses.

    python scripts/instrument_public.py CLONES [--packages FOLDER] [--only TEXT] [--results FILE]

CLONES holds clones of the projects in `public_scripts/scripts.json`, as for `train_public.py`; what
is not there is skipped. Each script is run by `npulens verify` for two optimizer steps, as it is
and with each kind, and the lines are taken out again. A table goes to standard output: `same`
losses, those that are `near` (within 2 %, for half precision), how many steps the scaler left out,
`refused`, or what went wrong.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from public_scripts.manifest import name_of, parser, public_scripts, unpack
from train_public import TRAINS, environment

KINDS = ("profiler", "dump", "monitor", "bfloat16", "float16")
_NEAR = 0.02
_MOST_SECONDS = 400
_TOO_LONG = f"takes more than {_MOST_SECONDS} s"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--results", type=Path, metavar="FILE", help="what is known, and will be")
    asked = options.parse_args()
    results: dict[str, dict[str, str]] = {}
    if asked.results is not None and asked.results.exists():
        results = json.loads(asked.results.read_text(encoding="utf-8"))
    for script in public_scripts("verify"):
        name, entry = name_of(script), script["command"][0]
        clone = asked.clones / script["project"].partition("/")[2]
        if asked.only not in name or name in results or not clone.is_dir():
            continue
        if "processes" in script or not entry.endswith(".py"):
            continue
        found = tried(clone, script, asked.packages)
        if found is None:
            print(f"{name}: does not train as it is", file=sys.stderr, flush=True)
            continue
        results[name] = found
        print(f"{name}: {found}", file=sys.stderr, flush=True)
        if asked.results is not None:
            asked.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(table(results))


def tried(clone: Path, script: dict[str, Any], packages: Path | None) -> dict[str, str] | None:
    """What comes of each kind; `None` if the script does not train as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "project")
        try:
            unpack(clone, script, folder, packages)
        except subprocess.CalledProcessError:
            return None
        run = Run(folder, script, packages)
        before = run.losses()
        if not before or isinstance(before, str):
            return None
        return {kind: run.compared(kind, before) for kind in KINDS}


class Run:
    """A script in a folder of its own."""

    def __init__(self, folder: Path, script: dict[str, Any], packages: Path | None) -> None:
        self._folder, self._script = folder, script
        self._variables = environment(folder, script, packages)
        self._entry = script["command"][0]

    def losses(self) -> list[float] | str:
        """The losses of its first steps, or what is wrong."""
        arguments = [*self._script["command"][1:]]
        arguments += self._script.get("arguments", {}).get("CUDA", [])
        given = ["--steps", "2", "--seconds", "240", "--torch-version", "2.13", "--offline"]
        given += ["--output-format", "json", "--unsafe-fixes"]
        if "cwd" in self._script:
            given += ["--cwd", self._script["cwd"]]
        try:
            ended = self._npulens("verify", *given, self._entry, "--", *arguments)
        except subprocess.TimeoutExpired:
            return _TOO_LONG
        try:
            said = json.loads(ended.stdout)
        except json.JSONDecodeError:
            return (ended.stderr or ended.stdout).strip().rpartition("\n")[2]
        found: list[float] = said["losses"]
        if said["status"] in TRAINS:
            return found
        status, text = said["status"], said["message"][:80]
        return text if text.startswith(status) else f"{status}: {text}"

    def compared(self, kind: str, before: list[float]) -> str:
        """How the losses are with an instrument, and whether it goes without a trace."""
        path = self._folder / self._entry
        original = path.read_bytes()
        try:
            ended = self._npulens("instrument", kind, self._entry)
            if ended.returncode:
                return "refused"
            after = self.losses()
            self._npulens("instrument", kind, self._entry, "--remove")
            if path.read_bytes() != original:
                return "bytes differ"
        except subprocess.TimeoutExpired:
            return _TOO_LONG
        finally:
            path.write_bytes(original)
        return after if isinstance(after, str) else in_words(before, after)

    def _npulens(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "npulens", *arguments]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_SECONDS,
        )


def in_words(before: list[float], after: list[float]) -> str:
    """How losses are to those before."""
    if after == before:
        return "same"
    if len(after) > len(before):  # the scaler leaves out steps until its scale fits
        left_out = len(after) - len(before)
        return f"near, {left_out} left out" if near(after[:1], before[:1]) else "differ"
    if len(after) < len(before):
        return "fewer steps"
    return "near" if near(after, before) else "differ"


def in_short(cell: str) -> str:
    """What is counted: `near, 3 left out` is near, and each missing file is one that it needs."""
    return "needs a file" if cell.startswith("needs the file") else re.split("[,:]", cell)[0]


def near(after: list[float], before: list[float]) -> bool:
    """Whether losses agree within the limits of half precision."""
    pairs = zip(after, before, strict=True)
    return all(abs(a - b) <= _NEAR * max(abs(b), 1e-3) for a, b in pairs)


def table(results: dict[str, dict[str, str]]) -> str:
    """The table for the page, with a line of sums."""
    lines = [f"| script | {' | '.join(KINDS)} |", f"| --- |{' --- |' * len(KINDS)}"]
    for name, found in results.items():
        project, folder, entry = name.split(" ")[:3]
        cells = " | ".join(found[kind] for kind in KINDS)
        lines.append(f"| {project.partition('/')[2]} `{folder}/{entry}` | {cells} |")
    sums = (Counter(map(in_short, (r[kind] for r in results.values()))) for kind in KINDS)
    summed = (", ".join(f"{n} {what}" for what, n in each.most_common()) for each in sums)
    return "\n".join([*lines, f"| all | {' | '.join(summed)} |"])


if __name__ == "__main__":
    main()
