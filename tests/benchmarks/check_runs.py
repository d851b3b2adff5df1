"""How long the command takes for a tree: one process, two, with a cache, after one file changed.

    python tests/benchmarks/check_runs.py FOLDER

A copy of the tree is checked. Times are of the whole command by the clock, so the machine should
be quiet; the peak of memory is that of the largest process.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        tree = place / "tree"
        shutil.copytree(options.folder, tree, symlinks=True)
        one = timed(place, "--no-cache", "--jobs", "1")
        two = timed(place, "--no-cache", "--jobs", "2")
        cold = timed(place, "--jobs", "1")
        warm = min(timed(place, "--jobs", "1") for _ in range(3))
        largest = max(tree.rglob("*.py"), key=lambda file: file.stat().st_size)
        middle = sorted(tree.rglob("*.py"), key=lambda file: file.stat().st_size)
        changed = {}
        for label, file in (("median", middle[len(middle) // 2]), ("largest", largest)):
            file.write_bytes(file.read_bytes() + b"\n# import torch\n")
            changed[label] = timed(place, "--jobs", "1")
    print(f"one process {one:.2f} s, two {two:.2f} s: {two / one:.2f} of one")
    print(f"filling the cache {cold:.2f} s, warm {warm:.2f} s: 1/{cold / warm:.0f} of cold")
    for label, seconds in changed.items():
        print(f"{label} file changed {seconds:.2f} s: 1/{cold / seconds:.0f} of cold")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


def timed(place: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "npulens", "check", "tree", "--output-format", "jsonl"]
    start = time.perf_counter()
    result = subprocess.run([*command, *arguments], cwd=place, stdout=subprocess.DEVNULL)
    assert result.returncode in (0, 1)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
