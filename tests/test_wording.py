"""Texts that stand in the code have both languages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import npulens

SERVER = Path(npulens.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
CODE = re.compile(r"`[^`]*`|\{[^}]*\}|[A-Z]\w*|npulens")
"""What is the same in every language: code, what is filled in, names."""


def texts() -> Iterator[tuple[str, str, str]]:
    """The place, the English and the Chinese of each text that is written as one of both."""
    for path in sorted(SERVER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            parts = [written(argument) for argument in node.args]
            if called in ("LocalizedText", "_") and None not in parts:
                yield f"{path.relative_to(SERVER)}:{node.lineno}", parts[0] or "", parts[1] or ""


def written(node: ast.expr) -> str | None:
    """The text of a string, `None` of anything else; what is filled in is left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    return None


def test_no_text_of_the_code_lacks_its_chinese() -> None:
    found = list(texts())
    assert len(found) > 200
    lacking = [
        (place, english)
        for place, english, chinese in found
        if re.search(r"[a-z]{3}", CODE.sub("", english)) and not CHINESE.search(chinese)
    ]
    assert lacking == []


def test_no_english_has_chinese_in_it() -> None:
    assert [(place, english) for place, english, _ in texts() if CHINESE.search(english)] == []


def test_both_languages_are_filled_in_with_the_same() -> None:
    names = re.compile(r"\{(\w+)\}")
    differing = [
        (place, english, chinese)
        for place, english, chinese in texts()
        if {*names.findall(english)} != {*names.findall(chinese)}
    ]
    assert differing == []
