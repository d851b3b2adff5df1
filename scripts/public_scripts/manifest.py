"""The public scripts of `scripts.json`, and how one is laid out to be run.

A script has

* `project`, `commit` and `folder`: where it is found on GitHub;
* `kind`: what it does, one of `KINDS`; `packages`: what it needs beside PyTorch and NumPy;
* `tries`: which scripts here run it, `one-code` (`one_code_in_public.py`) or `verify`
  (`train_public.py`);
* `command`: a script or notebook below the folder, and its arguments; `arguments`: more of them,
  by the device of `one_code_in_public.py`, of which `train_public.py` gives those for `CUDA`;
* `data`: files that are made up, by what `made_up.py` makes; `files`: patterns of what it needs of
  the project besides Python; `environment`: variables, of which `PATH` and `PYTHONPATH` are below
  the folder;
* `processes`: how many it is started in, as torchrun would; `cwd`: the folder it is run in.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KINDS = (
    *("classification", "detection", "segmentation", "super-resolution", "contrastive"),
    *("GAN", "VAE", "diffusion", "language model", "fine-tuning", "graph", "RL"),
    *("time series", "ODE", "Lightning", "Trainer", "accelerate", "apex"),
    *("DDP", "FSDP2", "tensor parallel", "notebook"),
)
"""What scripts do, or with what they do it."""


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser of what scripts are asked that run these: CLONES, `--packages` and `--only`.

    Args:
        doc: The text of the script that asks; its first line says what it does.
    """
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    made.add_argument("clones", type=Path, metavar="CLONES")
    made.add_argument("--packages", type=Path, metavar="FOLDER")
    made.add_argument("--only", default="", metavar="TEXT", help="scripts whose names have it")
    return made


def public_scripts(attempt: str) -> list[dict[str, Any]]:
    """The scripts that are run for one of the two."""
    scripts = json.loads((HERE / "scripts.json").read_text(encoding="utf-8"))
    return [each for each in scripts if attempt in each["tries"]]


def name_of(script: dict[str, Any]) -> str:
    """A name that tells a script from the others."""
    return " ".join([script["project"], script["folder"], *script["command"]])


def unpack(clone: Path, script: dict[str, Any], folder: Path, packages: Path | None = None) -> None:
    """Put a script's folder into another, with the data that it reads."""
    folder.mkdir()
    files = [f"{script['folder']}/{each}" for each in ["*.py", *script.get("files", [])]]
    archive = ["git", "-C", str(clone), "archive", script["commit"], "--", *files]
    packed = subprocess.run(archive, capture_output=True, check=True).stdout
    depth = f"--strip-components={len(Path(script['folder']).parts)}"
    subprocess.run(["tar", "x", "-C", str(folder), depth], input=packed, check=True)
    (folder / "results").mkdir(exist_ok=True)
    maker = [sys.executable, "-W", "ignore", str(HERE / "made_up.py"), str(folder)]
    given = json.dumps(script.get("data", {}))
    paths = [str(HERE), *([str(packages.resolve())] if packages else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment["NPULENS_PUBLIC_SCRIPT"] = "made"
    subprocess.run(maker, input=given, text=True, check=True, env=environment)
