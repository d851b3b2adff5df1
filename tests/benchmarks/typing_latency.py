"""How long after a key diagnostics are there, as a ratio to `ast.parse` of the same file.

A script, not a test:

    python tests/benchmarks/typing_latency.py [--file PATH] [--edits 200] [--pause 0.02]

A real server process is driven over stdio. Between two keys the same text is parsed in this
process, so that both numbers meet the same load of the machine.
"""

import argparse
import ast
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from lsp_client import LspClient, replacing

URI = "file:///nowhere/typing_latency.py"
TARGET = 3.0


# The file: what a training repository holds, all in one. Every block has names of its own, so that
# none can be taken for another.

_HEADER = '''\
"""Training of a small zoo of models on several GPUs (generated for a benchmark)."""

import argparse
import contextlib
import logging
import math
import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger(__name__)

DEFAULT_DEVICE = "cuda"
SUPPORTED_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
'''

_BLOCKS = (
    '''\
@dataclass
class {Name}Config:
    """Everything that makes one {name} different from another.

    The defaults train the {name} on the {word} data in about {number} hours.
    """

    hidden_size: int = {number}
    num_layers: int = {small}
    num_heads: int = 8
    dropout: float = 0.{small}
    dtype: str = "bf16"
    data_folders: list[str] = field(default_factory=lambda: ["data/{word}/train", "data/{word}"])
    learning_rate: float = {small}e-4

    def head_size(self) -> int:
        if self.hidden_size % self.num_heads:
            raise ValueError(f"{{self.hidden_size}} is not a multiple of {{self.num_heads}}")
        return self.hidden_size // self.num_heads
''',
    """\
class {Name}Attention(nn.Module):
    def __init__(self, config, bias=True, layer_index={small}):
        super().__init__()
        self.heads = config.num_heads
        self.head_size = config.hidden_size // config.num_heads
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=bias)
        self.output = nn.Linear(config.hidden_size, config.hidden_size, bias=bias)
        self.dropout = nn.Dropout(config.dropout)
        self.scale = 1.0 / math.sqrt(self.head_size)
        self.layer_index = layer_index  # {word} layers share it

    def forward(self, hidden_states, attention_mask=None, past=None, use_cache=False):
        batch, length, width = hidden_states.shape
        mixed = self.query_key_value(hidden_states).view(batch, length, self.heads, -1)
        query, key, value = [part.transpose(1, 2) for part in mixed.chunk(3, dim=-1)]
        if past is not None:
            key = torch.cat([past[0], key], dim=2)
            value = torch.cat([past[1], value], dim=2)
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype))
        context = torch.matmul(weights, value).transpose(1, 2).reshape(batch, length, width)
        return self.output(context), (key, value) if use_cache else None
""",
    '''\
class {Name}Dataset(Dataset):
    """Reads samples of {word} text, {number} tokens each."""

    suffixes = (".json", ".jsonl", ".{word}")

    def __init__(self, folder, tokenizer, length={number}):
        names = sorted(name for name in os.listdir(folder) if name.endswith(self.suffixes))
        self.samples = [os.path.join(folder, name) for name in names]
        self.by_name = {{name: index for index, name in enumerate(names)}}
        self.tokenizer = tokenizer
        self.length = length
        logger.info("%s: %d samples of {word}, %.1f per epoch", folder, len(names), len(names) / 3)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        with open(self.samples[index], encoding="utf-8") as stream:
            ids = self.tokenizer.encode(stream.read())[: self.length]
        padded = ids + [self.tokenizer.pad_id] * (self.length - len(ids))
        mask = [int(position < len(ids)) for position in range(self.length)]
        return {{"input_ids": torch.tensor(padded), "mask": torch.tensor(mask)}}
''',
    '''\
def train_{name}(model, loader, optimizer, scheduler=None, epochs={small}, log_every={number}):
    """Train for some epochs and return the losses of the {word} stage."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    losses = []
    for epoch in range(epochs):
        started = torch.cuda.Event(enable_timing=True)
        for step, batch in enumerate(loader):
            batch = {{key: value.cuda(non_blocking=True) for key, value in batch.items()}}
            optimizer.zero_grad(set_to_none=True)
            output = model(batch["input_ids"], attention_mask=batch["mask"])
            loss = F.cross_entropy(output.flatten(0, 1), batch["labels"].flatten(), ignore_index=-1)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm={small}.0)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            if step % log_every == 0:
                losses.append(loss.item())
                logger.info(f"{word} {{epoch}}:{{step}} loss={{losses[-1]:.4f}} norm={{norm:.2f}}")
        torch.cuda.synchronize()
        logger.info("epoch %d of {name} took %s", epoch, started)
    return losses
''',
    '''\
def load_{name}(path, strict=True, **overrides):
    """Bring the {word} weights of a checkpoint into a new {name}."""
    state = torch.load(path, map_location="cpu")
    config = {{**state.get("config", {{}}), **overrides}}
    renamed = {{
        key.replace("module.", "").replace("{word}_", "{name}_"): value
        for key, value in state["model"].items()
        if not key.endswith((".inv_freq", ".masked_bias")) and "{word}.unused" not in key
    }}
    missing = [key for key in ("embedding.weight", "{name}.output.weight") if key not in renamed]
    if missing and strict:
        raise KeyError(f"{{path}} lacks {{', '.join(missing)}} of {name}")
    total = sum(value.numel() for value in renamed.values())
    logger.info("%s: %d tensors, %.1f M parameters", path, len(renamed), total / 1e6)
    return renamed, config
''',
    '''\
def schedule_{name}(step, warmup={number}, total={number}00, floor=0.{small}):
    """The {word} schedule: up in a line, down in a cosine."""
    if step < warmup:
        return step / max(1, warmup)
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))


def {name}_arguments(parser=None):
    parser = parser or argparse.ArgumentParser(description="Train the {name} on {word} data")
    parser.add_argument("--{word}-folder", default="data/{word}", help="where the samples are")
    parser.add_argument("--batch-size", type=int, default={small}, help="samples in one step")
    parser.add_argument("--steps", type=int, default={number}, help="steps between checkpoints")
    parser.add_argument("--resume", metavar="PATH", help="continue from a {name} checkpoint")
    return parser
''',
    '''\
class {Name}Block(nn.Module):
    """One layer: attention and a gated feed-forward network, each with its norm."""

    def __init__(self, width={number}, expansion={small}, dropout=0.1):
        super().__init__()
        self.norm_before = nn.LayerNorm(width)
        self.norm_after = nn.LayerNorm(width)
        self.gate = nn.Linear(width, width * expansion, bias=False)
        self.up = nn.Linear(width, width * expansion, bias=False)
        self.down = nn.Linear(width * expansion, width, bias=False)
        self.dropout = nn.Dropout(dropout)
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * {small}))

    def forward(self, hidden_states, attention):
        residual = hidden_states
        hidden_states = residual + self.dropout(attention(self.norm_before(hidden_states))[0])
        gated = F.silu(self.gate(self.norm_after(hidden_states))) * self.up(hidden_states)
        return hidden_states + self.dropout(self.down(gated))

    def extra_repr(self):
        return ", ".join(f"{{name}}={{tuple(p.shape)}}" for name, p in self.named_parameters())
''',
    '''\
def evaluate_{name}(model, loader, limit={number}):
    """The mean {word} loss over at most `limit` batches, the same on every rank."""
    model.eval()
    totals = [0.0, 0.0]
    with torch.no_grad(), contextlib.suppress(StopIteration):
        for index, batch in enumerate(loader):
            if index >= limit:
                break
            scores = model(batch["input_ids"])
            totals[0] += F.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten()).item()
            totals[1] += 1
    reduced = torch.tensor(totals, dtype=torch.float64)
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(reduced)
    {word}_mean = (reduced[0] / reduced[1].clamp(min=1)).item()
    return {{"{word}/loss": {word}_mean, "{word}/perplexity": math.exp(min(20.0, {word}_mean))}}
''',
)


def training_file(lines: int = 3000) -> str:
    """Realistic training code with about one finding in 30 lines."""
    rng = random.Random(20)
    words = ["wiki", "books", "code", "news", "speech", "legal", "medical", "forum"]
    parts = [_HEADER]
    count = _HEADER.count("\n")
    number = 0
    while count < lines:
        block = _BLOCKS[number % len(_BLOCKS)]
        name = f"model_{number}"
        text = block.format(
            Name=name.title().replace("_", ""),
            name=name,
            word=rng.choice(words),
            number=rng.randrange(64, 4096),
            small=rng.randrange(2, 9),
        )
        parts.append(text)
        count += text.count("\n") + 2
        number += 1
    return "\n\n".join(parts)


# The keys: each scenario types at one place and takes everything back again.


@dataclass
class Scenario:
    """What is typed where.

    Attributes:
        name: For the table.
        anchor: Text to look for from the middle of the file on; the caret goes behind it.
        typed: What is typed there, key by key.
    """

    name: str
    anchor: str
    typed: str
    latencies: list[float] = field(default_factory=list)


def scenarios() -> list[Scenario]:
    return [
        Scenario("in a comment", " steps", " # slower on 昇腾 cards"),
        Scenario("argument of a call in a method", "nn.Dropout(", "p=config.rate, "),
        Scenario("local name", "residual", "_states"),
        Scenario("name of a function", "\ndef schedule_", "cosine_"),
        Scenario("new call, unfinished", "torch.cuda.synchronize()\n", "        model.cuda("),
        Scenario("string, unfinished", "max_norm=", 'float("1'),
        Scenario("new function", "\n\n\n", "def helper(x):\n    return x.cuda()\n"),
        Scenario("docstring, unfinished", "model.eval()\n", '    """'),
    ]


def keys(scenario: Scenario, text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and replacement of each single-character edit, without end."""
    place = text.find(scenario.anchor, len(text) // 2)
    if place < 0:  # another file: somewhere in the middle, at the end of a line
        place, behind = text.index("\n", len(text) // 2), 0
    else:
        behind = len(scenario.anchor)
    caret = place + behind
    while True:
        for typed, character in enumerate(scenario.typed):
            yield caret + typed, caret + typed, character
        for left in reversed(range(len(scenario.typed))):
            yield caret + left, caret + left + 1, ""


def measured(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def position(text: str, offset: int) -> tuple[int, int]:
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return line, len(text[start:offset].encode("utf-16-le")) // 2


def cpu_seconds(process_id: int) -> float | None:
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, values: list[float], base: float) -> str:
    p50, p95, top = (quantile(values, share) * 1000 for share in (0.5, 0.95, 1.0))
    ratios = "".join(f"{value / 1000 / base:7.2f}" for value in (p50, p95, top))
    return f"{name:32}{len(values):5}{p50:9.1f}{p95:9.1f}{top:9.1f}  {ratios}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, help="a Python file to use instead of a generated one")
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two keys")
    parser.add_argument("--write", type=Path, help="write the file there and stop")
    options = parser.parse_args()
    text = options.file.read_bytes().decode() if options.file else training_file()
    if options.write:
        options.write.write_text(text, encoding="utf-8")
        return

    types = scenarios()
    parses: list[float] = []
    with LspClient() as client:
        client.initialize()
        client.open(URI, text)
        found = len(client.diagnostics(URI, 1))
        version = 1
        cpu_before = cpu_seconds(client.process.pid)
        per_scenario = [options.edits // len(types)] * len(types)
        per_scenario[0] += options.edits - sum(per_scenario)
        for scenario, count in zip(types, per_scenario, strict=True):
            current = text
            for start, end, replacement in islice(keys(scenario, text), count):
                time.sleep(options.pause)
                parses.append(measured(lambda: ast.parse(text)))
                version += 1
                change = replacing(position(current, start), position(current, end), replacement)
                current = current[:start] + replacement + current[end:]

                def answered(change=change, version=version) -> None:  # type: ignore[no-untyped-def]
                    client.change(URI, version, change)
                    client.diagnostics(URI, version)

                scenario.latencies.append(measured(answered))
            version += 1
            client.change(URI, version, {"text": text})
            assert len(client.diagnostics(URI, version)) == found
        cpu_after = cpu_seconds(client.process.pid)
        client.shut_down()

    base = statistics.median(parses)
    every = [latency for scenario in types for latency in scenario.latencies]
    lines = text.count("\n")
    say(f"{lines} lines, {len(text) / 1000:.0f} kB, {found} findings; times in ms")
    say(f"{'':32}{'n':>5}{'p50':>9}{'p95':>9}{'max':>9}    as a multiple of ast.parse p50")
    say(row("ast.parse", parses, base))
    for scenario in types:
        say(row(scenario.name, scenario.latencies, base))
    say(row("all keys", every, base))
    if cpu_before is not None and cpu_after is not None:
        spent = (cpu_after - cpu_before) / len(every)
        say(f"processor time of the server per key: {spent * 1000:.1f} ms ({spent / base:.2f})")
    p95 = quantile(every, 0.95) / base
    say(f"p95 is {p95:.2f} times ast.parse; the target is {TARGET:.0f}")


if __name__ == "__main__":
    main()
