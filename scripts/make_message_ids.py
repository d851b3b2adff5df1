"""Writes `server/npulens/catalog/message_ids.py`: the ids of all texts, as types.

    .venv/bin/python scripts/make_message_ids.py

It comes from `messages/en.toml` alone.
"""

from pathlib import Path

from npulens.text.toml import parse_toml

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "server" / "npulens" / "catalog" / "message_ids.py"
SOURCE = ROOT / "messages" / "en.toml"


def message_ids() -> str:
    """The text of the file."""
    tables = parse_toml(SOURCE.read_text(encoding="utf-8"))
    ids = [f"{table}.{key}" for table, texts in tables.items() for key in texts]
    made_by = '"""Made by scripts/make_message_ids.py of messages/en.toml; do not edit."""\n'
    imports = "\nfrom typing import Literal\n\n"
    return made_by + imports + _literal("MessageId", ids) + _literal("MessageTable", [*tables])


def _literal(name: str, members: list[str]) -> str:
    return f"{name} = Literal[\n" + "".join(f'    "{each}",\n' for each in members) + "]\n"


if __name__ == "__main__":
    FILE.write_text(message_ids(), encoding="utf-8", newline="\n")
