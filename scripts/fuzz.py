"""Analyses and fixes mutated real files for a while, and prints what must never be.

    python scripts/fuzz.py SECONDS [SEED] [FOLDER...]

SECONDS is processor time, FOLDER a tree of Python files (`.corpora` if none is given). Each file
is edited at random several times, as in an editor; after each edit it must hold that

- the analysis raises nothing, and its places lie in the text, in order;
- an analysis that keeps what it knows of the text before finds the same as a fresh one;
- fixes come to an end, change nothing when applied again, and leave docstrings and comments as
  they were; code that parses still parses.
"""

import ast
import random
import sys
import time
import tokenize
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from try_fixes import texts_for_people

from npulens.analysis import StatementCache, analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, Finding, MigrationStyle, Target
from npulens.fixes.apply import fix_text
from npulens.text.document import Document

CATALOGUE = load_catalogue()
WORDS = (b"cuda", b"nccl", b"torch")
LARGEST = 60_000
EDITS = 4
INSERTED = (
    *("z_z = ", "def f(:", '"""', "'''", "(", ")", "\\", "\t", "    ", "\n", "\r", "\x0c", "\0"),
    *("type X = int", "match x:", "print 'x'", "é中\U0001f600", "\ufeff", "#", ":", "=", ","),
    *("import torch.cuda as tc", "x = x.cuda()", "from torch import *", "if True:", "else:"),
    *("return", "lambda: (yield)", "async def f(): await x", "global torch", "del torch"),
    *("# npulens: ignore", "# type: ignore", "with torch.no_grad():", "torch = None"),
    *("import torch_npu", "assert x.is_cuda", '"cuda:0"', 'f"cuda:{x}"', "try:", "finally:"),
)


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    folders = [Path(each) for each in sys.argv[3:]] or [Path(__file__).parents[1] / ".corpora"]
    draw = random.Random(seed)
    files = [path for folder in folders for path in candidates(folder)]
    counts: Counter[str] = Counter()
    used: set[Path] = set()
    slowest = (0.0, "")
    while time.process_time() < seconds:
        path = draw.choice(files)
        used.add(path)
        text = path.read_text(encoding="utf-8", errors="replace")
        other = draw.choice(files).read_text(encoding="utf-8", errors="replace")
        style = draw.choice(list(MigrationStyle))
        cache = StatementCache()
        for _ in range(EDITS):
            text = mutated(text, other, draw)
            began = time.process_time()
            for wrong in complaints(text, Target(style=style), cache, draw):
                counts["wrong"] += 1
                kept = Path(f"fuzz-{seed}-{counts['wrong']}.py")
                kept.write_text(text, encoding="utf-8", newline="")
                print(f"{path} ({style.value}), in {kept}: {wrong}", flush=True)
            counts["texts"] += 1
            took = (time.process_time() - began) / max(len(text), 1000) * 1000
            slowest = max(slowest, (took, str(path)))
    print(f"{counts['texts']} texts of {len(used)} files in {time.process_time():.0f} s:", end=" ")
    print(f"{counts['wrong']} wrong; slowest {slowest[0]:.2f} s for 1,000 characters, {slowest[1]}")


def candidates(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        if 0 < path.stat().st_size < LARGEST:
            content = path.read_bytes()
            if any(word in content for word in WORDS):
                yield path


def mutated(text: str, other: str, draw: random.Random) -> str:
    """A text after one edit: of lines, of characters, or by a piece of another file."""
    lines = text.splitlines(keepends=True)
    first = draw.randrange(len(lines) + 1)
    last = min(first + draw.choice((0, 1, 1, 2, 5, 40)), len(lines))
    place = draw.randrange(len(text) + 1)
    theirs = other.splitlines(keepends=True)
    begin = draw.randrange(len(theirs) + 1)
    indent = draw.choice(("", "    ", "        "))
    ways: tuple[Callable[[], str], ...] = (
        lambda: "".join(lines[:first] + lines[last:]),
        lambda: "".join(lines[:last] + lines[first:]),
        lambda: text[:place],
        lambda: text[:place] + draw.choice(INSERTED) + text[place:],
        lambda: "".join([*lines[:first], indent, draw.choice(INSERTED), "\n", *lines[first:]]),
        lambda: text[:place] + text[place + draw.randrange(1, 30) :],
        lambda: "".join(lines[:first] + theirs[begin : begin + 20] + lines[first:]),
        lambda: "".join([*lines[:first], *(f"    {x}" for x in lines[first:last]), *lines[last:]]),
        lambda: "".join([*lines[:first], *(x[4:] for x in lines[first:last]), *lines[last:]]),
        lambda: text.replace("\n", draw.choice(("\r\n", "\r"))),
    )
    return draw.choice(ways)()


def complaints(
    text: str, target: Target, cache: StatementCache, draw: random.Random
) -> Iterator[str]:
    def found(now: str) -> Sequence[Finding]:
        return analyze(Document("file.py", now, 1), CATALOGUE, target)

    try:
        findings = found(text)
        yield from misplaced(findings, text)
        in_editor = analyze(Document("file.py", text, 1), CATALOGUE, target, cache)
        if list(map(known, in_editor)) != list(map(known, findings)):
            yield f"an editor finds {set(map(known, in_editor)) ^ set(map(known, findings))}"
        fixed = fix_text(text, found, draw.choice((Applicability.SAFE, Applicability.UNSAFE)))
        if fixed.text != text:
            yield from spoiled(text, fixed.text)
            again = fix_text(fixed.text, found, Applicability.SAFE)
            if again.applied:
                yield f"a second run fixes {again.applied[0].rule.code}"
    except Exception:
        yield traceback.format_exc()


def known(finding: Finding) -> tuple[object, ...]:
    return finding.rule.code, finding.span, finding.effective_severity


def misplaced(findings: Sequence[Finding], text: str) -> Iterator[str]:
    before = 0
    for finding in findings:
        if not before <= finding.span.start <= finding.span.end <= len(text):
            yield f"{finding.rule.code} at {finding.span}"
        before = finding.span.start


def spoiled(before: str, after: str) -> Iterator[str]:
    if parses(before):
        if not parses(after):
            yield "does not parse after fixes"
        elif lost := for_people(before) - for_people(after):
            yield f"comments or docstrings are lost: {lost}"


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def for_people(text: str) -> Counter[str]:
    """Comments and docstrings. A suppression that a fix made needless goes with it."""
    try:
        found = texts_for_people(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (tokenize.TokenError, SyntaxError):
        return Counter()
    return Counter({text: n for text, n in found.items() if "npulens: ignore" not in text})


if __name__ == "__main__":
    main()
