"""How long `check` takes for a tree, as a ratio to `ast.parse` of the same files.

    python tests/benchmarks/check_throughput.py PATH... [--rounds N]

One process, no cache. Each round does both over all files, so that a slow moment of the machine
meets both; file reading counts for neither. The baseline parses every file; the check may skip
files that hold no word of interest.
"""

import argparse
import ast
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from npulens.catalog.loader import load_catalogue
from npulens.workspace.runs.processes import collect_seldom
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    files = [
        file
        for path in options.paths
        for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]
    contents = [(str(file), file.read_bytes()) for file in files]
    lines = sum(data.count(b"\n") for _, data in contents)
    print(f"{len(files)} files, {lines:,} lines")

    start = time.perf_counter()
    catalogue = load_catalogue()
    print(f"loading the catalogue: {(time.perf_counter() - start) * 1000:.1f} ms")

    checker = Checker(catalogue, Configuration())
    ratios = []
    for _ in range(options.rounds):
        parsing = timed(lambda: parse_all(contents))
        checking = timed(lambda: check_all(checker, contents))
        ratios.append(checking / parsing)
        print(f"ast.parse {parsing:.2f} s, check {checking:.2f} s, ratio {checking / parsing:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def check_all(checker: Checker, contents: list[tuple[str, bytes]]) -> None:
    """As the command does it: the collector runs seldom, and no report is kept."""
    before = gc.get_threshold()
    collect_seldom()
    try:
        for path, data in contents:
            checker.check_bytes(path, data)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def parse_all(contents: list[tuple[str, bytes]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, data in contents:
            ast.parse(data)


if __name__ == "__main__":
    main()
