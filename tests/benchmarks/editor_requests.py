"""What an editor waits for, beside other servers, in one run.

A script, not a test:

    python tests/benchmarks/editor_requests.py [--file PATH] [--lines 3000] [--other COMMAND]

For npulens, for a server that does nothing but parse the text (`parsing_server.py`), for ruff's
server where it is installed, and for any other server that `--other` starts over stdio: from a key
to diagnostics, in files of 300, 3,000 and 12,000 lines and in `--file`; the processor time of the
server for a key, by what is typed; from the last of 30 keys to diagnostics; code actions,
hovers and inlay hints while diagnostics are current; from the start of the process to the first
diagnostics; memory with 50 open documents in a workspace of 2,000 files, which is checked if the
server can do that. Ratios are to `ast.parse` of the same text, measured in between. The servers do
different work; ruff knows the hover of its own comments only.
"""

import argparse
import ast
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from typing_latency import (
    Scenario,
    cpu_seconds,
    keys,
    measured,
    position,
    quantile,
    say,
    training_file,
)

from lsp_client import LspClient, Message, replacing

PARTS = ["keys", "requests", "memory"]
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
PARSING = "a server that parses"
_KEYS_AT_ONCE = 12
_DOCUMENTS = 50
_FILES = 2_000
_BURST = 30
_SLOW = 0.4
"""Seconds for a key; of a server that takes longer, fewer keys are measured."""


def row(name: str, values: list[float], base: float) -> str:
    shown = [quantile(values, share) * 1000 for share in (0.5, 0.95, 0.99)]
    times = "".join(f"{value:9.1f}" for value in shown)
    ratios = "".join(f"{value / 1000 / base:8.2f}" for value in shown)
    return f"  {name:30}{len(values):5}{times}  {ratios}"


def uri_of(number: int) -> str:
    return f"file:///nowhere/editor_requests_{number}.py"


def wait_for(client: LspClient, uri: str, version: int, timeout: float = 60.0) -> None:
    """Until diagnostics of a version are there; some servers do not say of which they are."""

    def is_there() -> bool:
        return any(
            each["uri"] == uri and each.get("version") in (version, None)
            for each in client.published
        )

    client.wait(is_there, timeout)
    client.published.clear()


def memory_of(process_id: int) -> float:
    """The resident memory of a process in megabytes; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


class Typist:
    """Somebody who types in one document, at several places in turn."""

    def __init__(self, client: LspClient, text: str) -> None:
        self._client = client
        self._text = text
        self._version = 1
        self._places = cycle(scenarios_in(text))
        self.typing = ""
        client.open(uri_of(0), text)
        wait_for(client, uri_of(0), 1)

    def sequence(self, length: int) -> Iterator[Message]:
        """Changes at the next place, each a key; then everything is taken back."""
        current = self._text
        scenario = next(self._places)
        self.typing, place = scenario.name, keys(scenario, self._text)
        for _ in range(length):
            start, end, new = next(place)
            yield replacing(position(current, start), position(current, end), new)
            current = current[:start] + new + current[end:]

    def send(self, change: Message) -> None:
        self._version += 1
        self._client.change(uri_of(0), self._version, change)

    def answered(self, change: Message) -> float:
        return measured(lambda: (self.send(change), self._wait()))

    def burst(self, pause: float) -> tuple[float, float]:
        """From the last of many keys to the diagnostics, and the same for one key after them."""
        *many, one = self.sequence(_BURST + 1)
        for change in many:
            time.sleep(pause)
            self.send(change)
        last = measured(self._wait)
        time.sleep(0.1)
        return last, self.answered(one)

    def _wait(self) -> None:
        wait_for(self._client, uri_of(0), self._version)

    def start_again(self) -> None:
        self.send({"text": self._text})
        self._wait()


def scenarios_in(text: str) -> list[Scenario]:
    """What is typed in a text, behind a call in the middle."""
    line = re.compile(r"^ {8}\w.*\)$", re.MULTILINE).search(text, len(text) // 2)
    if line is None:
        sys.exit("The file has no call in a method to type behind, in its second half.")
    anchor = line[0]
    return [
        Scenario("in a comment", anchor, "  # slower on 昇腾 cards"),
        Scenario("in an expression", anchor, " + size * 12"),
        Scenario("a new statement", anchor, "\n        del x"),
    ]


def bench_keys(command: list[str], text: str, count: int) -> None:
    """Print how long after a key diagnostics are there."""
    parses: list[float] = []
    single: list[float] = []
    bursts: list[tuple[float, float]] = []
    with LspClient(command, subprocess.DEVNULL) as client:
        client.initialize()
        typist = Typist(client, text)
        spent: dict[str, list[float]] = {}
        while len(single) < count:
            before = cpu_seconds(client.process.pid) or 0.0
            for change in typist.sequence(_KEYS_AT_ONCE):
                time.sleep(0.03)
                single.append(typist.answered(change))
            after = cpu_seconds(client.process.pid) or 0.0
            spent.setdefault(typist.typing, []).append((after - before) / _KEYS_AT_ONCE)
            parses.append(measured(lambda: ast.parse(text)))
            if statistics.median(single) > _SLOW:
                break
            typist.start_again()
        for _ in range(3 if statistics.median(single) > _SLOW else 10):
            typist.start_again()
            bursts.append(typist.burst(0.025))
            parses.append(measured(lambda: ast.parse(text)))
    base = statistics.median(parses)
    say(row("ast.parse", parses, base))
    say(row("one key", single, base))
    say(row(f"the last of {_BURST} keys", [last for last, _ in bursts], base))
    ratio = statistics.median(last for last, _ in bursts) / statistics.median(o for _, o in bursts)
    for name, each in spent.items():
        mean = statistics.mean(each)
        share = f"{mean / base:.2f} of ast.parse"
        say(f"  processor time for a key {name}: {mean * 1000:.1f} ms ({share})")
    say(f"  after {_BURST} keys it takes {ratio:.2f} times as long as after one more")


def bench_requests(command: list[str], text: str, count: int) -> float:
    """Print how long requests take; the p95 of the slowest kind."""
    chance = random.Random(0)
    lines = text.split("\n")
    parses: list[float] = []
    latencies: dict[str, list[float]] = {}
    starts = []
    for _ in range(5):
        starts.append(measured(lambda: first_diagnostics(command, text)))
        parses.append(measured(lambda: ast.parse(text)))
    with LspClient(command, subprocess.DEVNULL) as client:
        offered = client.initialize()
        client.open(uri_of(0), text)
        wait_for(client, uri_of(0), 1)
        for _ in range(count):
            line = chance.randrange(len(lines))
            here = {"line": line, "character": chance.randrange(len(lines[line]) + 1)}
            asked: dict[str, Callable[[], object]] = {}
            for kind, provider, method, more in (
                ("hover", "hoverProvider", "hover", {"position": here}),
                ("code action", "codeActionProvider", "codeAction", within(here, here)),
                ("inlay hints", "inlayHintProvider", "inlayHint", within(above(here), here)),
            ):
                if offered.get(provider):
                    params = {"textDocument": {"uri": uri_of(0)}, **more}
                    asked[kind] = asking(client, f"textDocument/{method}", params)
            for kind, ask in asked.items():
                found = latencies.setdefault(kind, [])
                if len(found) < 5 or statistics.median(found) < _SLOW:
                    found.append(measured(ask))
            parses.append(measured(lambda: ast.parse(text)))
    base = statistics.median(parses)
    say(row("ast.parse", parses, base))
    say(row("start to first diagnostics", starts, base))
    for kind, found in latencies.items():
        say(row(kind, found, base))
    return max(quantile(found, 0.95) for found in latencies.values())


def asking(client: LspClient, method: str, params: Message) -> Callable[[], object]:
    return lambda: client.response(client.start_request(method, params), 60)


def above(place: Message) -> Message:
    return {"line": max(place["line"] - 30, 0), "character": 0}


def within(start: Message, end: Message) -> Message:
    return {"range": {"start": start, "end": end}, "context": {"diagnostics": []}}


def first_diagnostics(command: list[str], text: str) -> None:
    with LspClient(command, subprocess.DEVNULL) as client:
        client.initialize()
        client.open(uri_of(0), text)
        wait_for(client, uri_of(0), 1)


def bench_memory(command: list[str], folder: Path, text: str) -> None:
    with LspClient(command, subprocess.DEVNULL) as client:
        offered = client.initialize(rootUri=folder.as_uri())
        for number in range(_DOCUMENTS):
            client.open(uri_of(number), f"{text}# {number}\n")
            wait_for(client, uri_of(number), 1)
        opened = memory_of(client.process.pid)
        told = f"  memory with {_DOCUMENTS} open documents {opened:.0f} MB"
        provider = offered.get("diagnosticProvider") or {}
        if provider.get("workspaceDiagnostics"):
            asked = {"previousResultIds": [], "partialResultToken": "p"}
            request = client.start_request("workspace/diagnostic", asked)
            client.response(request, 900)
            client.forget()
            told += f", and {_FILES} files checked {memory_of(client.process.pid):.0f} MB"
        say(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--keys", type=int, default=120)
    parser.add_argument("--file", type=Path, help="a Python file to type in, beside generated ones")
    parser.add_argument("--other", action="append", default=[], help="how a server is started")
    parser.add_argument(
        "--lines",
        type=int,
        nargs="*",
        default=[300, 3_000, 12_000],
        help="lengths of generated files",
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this alone")
    arguments = parser.parse_args()
    commands = {
        "npulens": [sys.executable, "-m", "npulens", "server"],
        PARSING: [sys.executable, str(Path(__file__).with_name("parsing_server.py"))],
    }
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is not None:
        commands["ruff"] = [ruff, "server"]
    for other in arguments.other:
        commands[Path(shlex.split(other)[0]).name] = shlex.split(other)
    texts = {f"{lines} lines": training_file(lines) for lines in arguments.lines}
    if arguments.file is not None:
        texts[arguments.file.name] = arguments.file.read_text(encoding="utf-8")
    say(f"  {'times in ms':30}{'n':>5}{'p50':>9}{'p95':>9}{'p99':>9}  as multiples of ast.parse")
    parts = arguments.part or PARTS
    for title, text in texts.items() if "keys" in parts else ():
        for name, command in commands.items():
            say(f"\n{name}, {title}")
            bench_keys(command, text, arguments.keys)
    text = training_file(1_000) + _SHAPES
    slowest = {}
    del commands[PARSING]
    for name, command in commands.items() if "requests" in parts else ():
        say(f"\n{name}, requests in {text.count(chr(10))} lines")
        slowest[name] = bench_requests(command, text, arguments.requests)
    if "memory" in parts:
        with tempfile.TemporaryDirectory() as folder:
            small = training_file(60)
            for number in range(_FILES):
                (Path(folder) / f"module_{number}.py").write_text(f"{small}# {number}\n")
            for name, command in commands.items():
                say(f"\n{name}, a workspace of {_FILES} files")
                bench_memory(command, Path(folder), text)
    if slowest:
        p95 = slowest["npulens"] * 1000
        say(f"\nthe slowest p95 of npulens is {p95:.1f} ms; the target is {TARGET * 1000:.0f}")


if __name__ == "__main__":
    main()
