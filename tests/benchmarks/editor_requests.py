"""How long an editor waits for more than diagnostics, and the memory that takes.

A script, not a test:

    python tests/benchmarks/editor_requests.py [--requests 100]

For npulens and, if it is installed, ruff's server, over stdio, in one run: diagnostics of the first
document after the start of the process, code actions and hovers while diagnostics are current, and
the memory with 50 open documents. Ratios are to `ast.parse` of the same text, measured in between.
The two servers do different work; ruff knows the hover of its own comments only.
"""

import argparse
import ast
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from typing_latency import measured, quantile, row, say, training_file

from lsp_client import LspClient

TARGET = 0.020
"""Seconds, for 95 of 100 code actions and hovers."""
_SHAPES = """
import torch
from torch import nn


class Selection(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = x[..., 0] > 0.5
        kept = x[mask]
        return torch.cat([kept, kept * 2])
"""
_DOCUMENTS = 50


def uri_of(number: int) -> str:
    return f"file:///nowhere/editor_requests_{number}.py"


def memory_of(process_id: int) -> float:
    """The resident memory of a process in megabytes; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def first_diagnostics(command: list[str], text: str) -> None:
    with LspClient(command, subprocess.DEVNULL) as client:
        client.initialize()
        client.open(uri_of(0), text)
        client.diagnostics(uri_of(0), 1)


def bench(name: str, command: list[str], text: str, requests: int) -> float:
    """Print the figures of one server; of its kinds of requests, the p95 of the slowest."""
    chance = random.Random(0)
    lines = text.split("\n")
    parses: list[float] = []
    latencies: dict[str, list[float]] = {"code action": [], "hover": [], "inlay hints": []}
    starts = []
    for _ in range(5):
        starts.append(measured(lambda: first_diagnostics(command, text)))
        parses.append(measured(lambda: ast.parse(text)))
    with LspClient(command, subprocess.DEVNULL) as client:
        offered = client.initialize()
        client.open(uri_of(0), text)
        client.diagnostics(uri_of(0), 1)
        document = {"textDocument": {"uri": uri_of(0)}}
        for _ in range(requests):
            line = chance.randrange(len(lines))
            place = (line, chance.randrange(len(lines[line]) + 1))
            here = {"line": place[0], "character": place[1]}
            there = {"start": {"line": max(line - 30, 0), "character": 0}, "end": here}
            asked = [("hover", "textDocument/hover", {**document, "position": here})]
            if "inlayHintProvider" in offered:
                asked.append(
                    ("inlay hints", "textDocument/inlayHint", {**document, "range": there})
                )
            context = {"range": {"start": here, "end": here}, "context": {"diagnostics": []}}
            asked.append(("code action", "textDocument/codeAction", {**document, **context}))
            for kind, method, params in asked:

                def answered(method=method, params=params) -> None:  # type: ignore[no-untyped-def]
                    client.request(method, params)

                latencies[kind].append(measured(answered))
            parses.append(measured(lambda: ast.parse(text)))
        for number in range(1, _DOCUMENTS):
            client.open(uri_of(number), f"{text}# {number}\n")
        for number in range(1, _DOCUMENTS):
            client.diagnostics(uri_of(number), 1)
        memory = memory_of(client.process.pid)
        client.shut_down()
    base = statistics.median(parses)
    say(f"{name}: memory with {_DOCUMENTS} open documents {memory:.0f} MB")
    say(row("start to first diagnostics", starts, base))
    for kind, found in latencies.items():
        if found:
            say(row(kind, found, base))
    return max(quantile(found, 0.95) for found in latencies.values() if found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100)
    arguments = parser.parse_args()
    text = training_file(1000) + _SHAPES
    say(f"{text.count(chr(10))} lines; times in ms, then as a multiple of ast.parse p50")
    say(f"{'':32}{'n':>5}{'p50':>9}{'p95':>9}{'max':>9}")
    server = [sys.executable, "-m", "npulens", "server"]
    p95 = bench("npulens", server, text, arguments.requests)
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is not None:
        bench("ruff", [ruff, "server"], text, arguments.requests)
    say(f"the slowest p95 of npulens is {p95 * 1000:.1f} ms; the target is {TARGET * 1000:.0f}")


if __name__ == "__main__":
    main()
