"""Runs scripts in a process of its own: on the CPU, on an emulated NPU, on recorded calls of CUDA.

    python one_code_runs.py cpu|npu|cuda < scripts.json > outcomes.json

An outcome is what a script printed, its error, and on `cuda` what it asked of the device, by
`scripts/public_scripts/recorded_cuda.py`.
"""

import contextlib
import io
import json
import sys
from typing import Any


def run(source: str) -> dict[str, Any]:
    """What a script prints, and its error."""
    printed = io.StringIO()
    error = ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(f"import torch\n{source}", "script.py", "exec"), {"__name__": "__main__"})
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
    return {"printed": printed.getvalue(), "error": error}


def record(source: str) -> dict[str, Any]:
    """The same on a CUDA of recorded calls, and what is asked of it."""
    from recorded_cuda import recording

    with recording() as events:
        outcome = run(source)
    return {**outcome, "events": events}


def main() -> None:
    mode = sys.argv[1]
    if mode == "npu":
        import torch_npu  # noqa: F401
    scripts = json.load(sys.stdin)
    work = record if mode == "cuda" else run
    outcomes = {name: work(source) for name, source in scripts.items()}
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
