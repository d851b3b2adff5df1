"""Makes up the files that public scripts read.

    python made_up.py FOLDER < data.json

The data are paths below FOLDER, each with its kind: a function of this module, or what it holds:
`{"lines": [...]}` or `{"weights": ARCHITECTURE}`, random ones of a model of torchvision.
"""

import json
import math
import random
import struct
import sys
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WORDS = ["the", "a", "one", "two", "bright", "slow", "quick", "host", "moves", "waits"]


def main() -> None:
    folder = Path(sys.argv[1])
    for path, kind in json.load(sys.stdin).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        make(file, kind, random.Random(path))


def make(file: Path, kind: str | dict[str, Any], chance: random.Random) -> None:
    """Make one file, or the folder of a model."""
    if isinstance(kind, str):
        KINDS[kind](file, chance)
    elif "lines" in kind:
        file.write_text("\n".join(kind["lines"]) + "\n", encoding="utf-8")
        if kind["lines"][0].startswith("#!"):
            file.chmod(0o755)
    else:
        weights(file, kind["weights"])


def text(file: Path, chance: random.Random) -> None:
    """Lines of words."""
    lines = [" ".join(chance.choices(_WORDS, k=8)) for _ in range(120)]
    lines[0] = "O God, O God!"  # what scripts start from has to be there
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def long_text(file: Path, chance: random.Random) -> None:
    """Enough lines of words to be split."""
    lines = (" ".join(chance.choices(_WORDS, k=40)) for _ in range(5000))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def names(file: Path, chance: random.Random) -> None:
    """A word in each line, of letters."""
    words = ("".join(chance.choices("abcdefgh", k=chance.randint(3, 8))) for _ in range(1200))
    file.write_text("\n".join(words) + "\n", encoding="utf-8")


def tokens(file: Path, chance: random.Random) -> None:
    """Numbers of tokens below 64, two bytes each."""
    file.write_bytes(struct.pack("<2048H", *(chance.randrange(64) for _ in range(2048))))


def series(file: Path, chance: random.Random) -> None:
    """Seven values for each hour, as the transformers' data of Zhou et al. have them."""
    lines = ["date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT"]
    for hour in range(600):
        day, of_day = divmod(hour, 24)
        month, of_month = divmod(day, 28)
        values = (f"{math.sin(hour / (3 + i)) + chance.random():.4f}" for i in range(7))
        moment = f"2016-{month + 7:02}-{of_month + 1:02} {of_day:02}:00:00"
        lines.append(",".join([moment, *values]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def papers(file: Path, chance: random.Random) -> None:
    """Numbered papers with the words that they have and their subjects, as Cora has them."""
    subjects = ["Genetic_Algorithms", "Neural_Networks", "Theory"]
    lines = []
    for number in range(2708):
        has = " ".join(chance.choices("01", weights=[9, 1], k=32))
        lines.append(f"{number + 10} {has} {chance.choice(subjects)}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def citations(file: Path, chance: random.Random) -> None:
    """Pairs of papers."""
    pairs = (f"{chance.randrange(2708) + 10} {chance.randrange(2708) + 10}" for _ in range(5000))
    file.write_text("\n".join(pairs) + "\n", encoding="utf-8")


def image(file: Path, chance: random.Random) -> None:
    """A picture of 96 times 96 points in colours."""
    _write_png(file, 2, [bytes(chance.randrange(256) for _ in range(96 * 3)) for _ in range(96)])


def mask(file: Path, chance: random.Random) -> None:
    """Two classes for each point of such a picture."""
    _write_png(file, 0, [bytes(chance.randrange(2) for _ in range(96)) for _ in range(96)])


def _write_png(file: Path, colours: int, rows: list[bytes]) -> None:
    """Write rows of a square: of grey (0) or of colours (2)."""

    def chunk(name: bytes, content: bytes) -> bytes:
        checked = name + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", len(rows), len(rows), 8, colours, 0, 0, 0)
    content = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = (chunk(b"IHDR", head), chunk(b"IDAT", content), chunk(b"IEND", b""))
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def boxes(file: Path, chance: random.Random) -> None:
    """Two boxes of one class in a picture, as YOLO has them: centre and size in parts of it."""
    lines = (
        f"0 {chance.uniform(0.3, 0.7):.3f} 0.5 0.4 {chance.uniform(0.2, 0.4):.3f}" for _ in "ab"
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sound(file: Path, chance: random.Random) -> None:
    """A second and a half of a tone."""
    rate = 22050
    pitch = chance.uniform(200, 600)
    values = (int(9000 * math.sin(2 * math.pi * pitch * i / rate)) for i in range(rate * 3 // 2))
    with wave.open(str(file), "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(b"".join(struct.pack("<h", value) for value in values))


def pairs(file: Path, chance: random.Random) -> None:
    """Two sentences in each line."""
    lines = ("\t".join(" ".join(chance.choices(_WORDS, k=4)) for _ in "ab") for _ in range(32))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def texts(file: Path, chance: random.Random) -> None:
    """An object with a text in each line."""
    lines = (json.dumps({"text": " ".join(chance.choices(_WORDS, k=12))}) for _ in range(32))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def completions(file: Path, chance: random.Random) -> None:
    """Tokens of a context and of what follows it, as the examples of LoRA have them."""

    def some() -> list[int]:
        return [chance.randrange(1000) for _ in range(6)]

    lines = (json.dumps({"context": some(), "completion": some()}) for _ in range(12))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def instructions(file: Path, chance: random.Random) -> None:
    """What is asked, and what is answered."""

    def some() -> str:
        return " ".join(chance.choices(_WORDS, k=5))

    asked = [{"instruction": some(), "input": "", "output": some()} for _ in range(12)]
    file.write_text(json.dumps(asked), encoding="utf-8")


def causal_model(folder: Path, chance: random.Random) -> None:
    """A GPT-2 of one layer with a tokenizer of bytes, as transformers saves them."""
    from tokenizers import ByteLevelBPETokenizer  # type: ignore[import-not-found]
    from transformers import (  # type: ignore[import-not-found]
        GPT2Config,
        GPT2LMHeadModel,
        GPT2TokenizerFast,
    )

    words = ByteLevelBPETokenizer()
    special = "<|endoftext|>"
    words.train_from_iterator(_WORDS, vocab_size=300, special_tokens=[special])
    folder.mkdir()
    words.save_model(str(folder))
    tokenizer = GPT2TokenizerFast.from_pretrained(folder, model_max_length=64)
    tokenizer.chat_template = "{% for each in messages %}{{ each.content }}\\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    size = words.get_vocab_size()
    config = GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=1, n_head=2)
    GPT2LMHeadModel(config).save_pretrained(folder)


def font(file: Path, chance: random.Random) -> None:
    """The font of matplotlib."""
    import shutil

    from matplotlib import font_manager  # type: ignore[import-not-found]

    shutil.copyfile(font_manager.findfont("DejaVu Sans"), file)


def weights(file: Path, architecture: str) -> None:
    """Random weights of a model of torchvision."""
    import torch
    import torchvision  # type: ignore[import-not-found]

    torch.manual_seed(0)
    torch.save(torchvision.models.get_model(architecture, weights=None).state_dict(), file)


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "text": text,
    "long text": long_text,
    "names": names,
    "tokens": tokens,
    "series": series,
    "papers": papers,
    "citations": citations,
    "image": image,
    "mask": mask,
    "boxes": boxes,
    "sound": sound,
    "pairs": pairs,
    "texts": texts,
    "completions": completions,
    "instructions": instructions,
    "causal model": causal_model,
    "font": font,
}

if __name__ == "__main__":
    main()
