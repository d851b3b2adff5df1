"""Makes up the files that public scripts read.

    python made_up.py FOLDER < data.json

The data are paths below FOLDER, each with its kind: a function of this module.
"""

import json
import math
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

_WORDS = ["the", "a", "one", "two", "bright", "slow", "quick", "host", "moves", "waits"]


def main() -> None:
    folder = Path(sys.argv[1])
    for path, kind in json.load(sys.stdin).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        KINDS[kind](file, random.Random(path))


def text(file: Path, chance: random.Random) -> None:
    """Lines of words."""
    lines = [" ".join(chance.choices(_WORDS, k=8)) for _ in range(120)]
    lines[0] = "O God, O God!"  # what scripts start from has to be there
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
    """A picture of 96 times 96 points, without compression."""
    side = 96
    points = bytes(chance.randrange(256) for _ in range(side * side * 3))
    file.write_bytes(f"P6 {side} {side} 255\n".encode() + points)


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "text": text,
    "names": names,
    "tokens": tokens,
    "series": series,
    "papers": papers,
    "citations": citations,
    "image": image,
}

if __name__ == "__main__":
    main()
