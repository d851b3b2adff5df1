"""Writes `server/npulens/catalog/message_ids.py`: the ids of all texts, as types.

    .venv/bin/python scripts/make_message_ids.py

It comes from `messages/` alone. Tables of help are in `zh.toml` only: click has the English.
"""

from pathlib import Path

from npulens.text.toml import parse_toml

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "server" / "npulens" / "catalog" / "message_ids.py"
SOURCE = ROOT / "messages"


def message_ids() -> str:
    """The text of the file."""
    english, chinese = (_read(SOURCE / f"{language}.toml") for language in ("en", "zh"))
    ids = [f"{table}.{key}" for table, texts in english.items() for key in texts]
    return (
        '"""Made by scripts/make_message_ids.py of messages/; do not edit."""\n\n'
        "from typing import TYPE_CHECKING, Literal\n\n"
        "if TYPE_CHECKING:\n"
        f"{_literal('MessageId', ids)}{_literal('MessageTable', [*chinese])}"
        "else:\n"
        "    MessageId = MessageTable = str  # only a checker of types needs to know all\n"
    )


def _read(path: Path) -> dict[str, dict[str, str]]:
    return parse_toml(path.read_text(encoding="utf-8"))


def _literal(name: str, members: list[str]) -> str:
    lines = "".join(f'        "{each}",\n' for each in members)
    return f"    {name} = Literal[\n{lines}    ]\n"


if __name__ == "__main__":
    FILE.write_text(message_ids(), encoding="utf-8", newline="\n")
