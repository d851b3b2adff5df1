"""Writes `docs/pictures/check.svg`: what `npulens check` prints, as the READMEs show it.

    .venv/bin/python scripts/make_pictures.py

The lines are those of `examples/train_gpu.py`, shortened. The pictures of the editor beside it are
taken by `vscode-client/scripts/workbench-test.mjs`.
"""

from html import escape
from pathlib import Path

from click.testing import CliRunner

from npulens.catalog.messages import message_of
from npulens.catalog.model import LANGUAGES, Language, Severity
from npulens.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLE = "examples/train_gpu.py"
SHOWN = ("NPU201", "NPU301", "NPU202")
"""One finding of each of these rules."""
WIDTH = 100
"""In characters; a longer line is cut."""
LINE, LEFT, TOP = 20, 18, 44
RED, YELLOW, BLUE = "#f47067", "#e0b45c", "#6cb6ff"
SEVERITIES = {": error ": RED, ": warning ": YELLOW, ": info ": BLUE} | {
    f": {message_of('severity', severity.value).zh} ": colour
    for severity, colour in zip(Severity, (RED, YELLOW, BLUE), strict=False)
}
FIX, PLAIN, DIM = "#8ddb8c", "#d0d7de", "#8b949e"


def lines_of(language: Language) -> list[str]:
    """The command, a finding of each rule, and the last lines."""
    arguments = ["check", EXAMPLE, "--no-cache", "--language", language]
    output = CliRunner().invoke(cli, arguments).output
    blocks = output.strip("\n").split("\n\n")
    found = [next(b for b in blocks if f" {code} " in b.split("\n")[0]) for code in SHOWN]
    lines = [f"$ npulens check {EXAMPLE}"]
    for block in found:
        lines += ["", *block.split("\n")]
    return [*lines, "", *blocks[-1].split("\n")[-2:]]


def cut(line: str) -> str:
    """A line that fits; characters of Chinese are as wide as two."""
    width = 0
    for index, character in enumerate(line):
        width += 1 + (ord(character) > 0x2E7F)
        if width > WIDTH - 1:
            return f"{line[:index]}…"
    return line


def colour_of(line: str) -> str:
    if line.startswith("$"):
        return PLAIN
    if line.lstrip().startswith("= "):
        return FIX
    return next((colour for word, colour in SEVERITIES.items() if word in line), DIM)


def picture(language: Language) -> str:
    """The text of the SVG."""
    lines = lines_of(language)
    height = TOP + LINE * len(lines)
    rows = "\n".join(
        f'<text x="{LEFT}" y="{TOP + LINE * index}" fill="{colour_of(line)}" '
        f'xml:space="preserve">{escape(cut(line))}</text>'
        for index, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * 8 + 2 * LEFT}" '
        f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="13">\n<rect width="100%" height="100%" rx="8" fill="#1c2128"/>\n'
        f"{rows}\n</svg>\n"
    )


def pictures() -> dict[str, str]:
    """The text of each file by its name."""
    names = {language: "" if language == "en" else ".zh-CN" for language in LANGUAGES}
    return {f"check{names[language]}.svg": picture(language) for language in LANGUAGES}


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
