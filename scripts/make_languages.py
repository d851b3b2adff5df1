"""Writes `vscode-client/src/languages.ts`: what editors call the kinds of files that are read.

    .venv/bin/python scripts/make_languages.py

It comes from `server/npulens/text/kinds.py` alone.
"""

import json
from pathlib import Path

from npulens.text.kinds import KINDS

FILE = Path(__file__).resolve().parents[1] / "vscode-client" / "src" / "languages.ts"


def languages() -> str:
    """The text of the file."""
    names = [language for record in KINDS.values() for language in record.languages]
    lines = "".join(f"  {json.dumps(name)},\n" for name in names)
    made_by = "// Made by scripts/make_languages.py of server/npulens/text/kinds.py; do not edit.\n"
    return f"{made_by}export const LANGUAGES = [\n{lines}];\n"


if __name__ == "__main__":
    FILE.write_text(languages(), encoding="utf-8", newline="\n")
