"""JSON that can be shown in a terminal."""

import json
import re

_COMMANDING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What JSON leaves as it is, though terminals may obey it or show a line in another order."""


def json_text(value: object, indent: int | None = None) -> str:
    """The text of a value, with all characters escaped that command a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _COMMANDING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
