"""Writes `docs/rules`: one page for each rule in each language, and the indexes.

The pages are made from `rules/*/*.toml` alone. Run it after changing a rule:

    .venv/bin/python scripts/make_rule_pages.py
"""

from pathlib import Path

from npulens.catalog.loader import load_catalogue
from npulens.catalog.messages import message_of
from npulens.catalog.model import Language, LocalizedText, Rule
from npulens.catalog.rule_page import rule_page
from npulens.report.human import printable

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "rules"

_MADE_BY = "<!-- Made by scripts/make_rule_pages.py; do not edit. -->\n"
_HEADING = LocalizedText("# Rules", "# 规则")
_INTRODUCTION = LocalizedText(
    "In a message, `{symbol}` stands for what was found and `{replacement}` for what to use "
    "instead. `npulens rule CODE` shows the same pages.",
    "提示信息中，`{symbol}` 代表找到的代码，`{replacement}` 代表建议的替代写法。"
    "运行 `npulens rule 编号` 可查看同样的内容。",
)
_COLUMNS = LocalizedText(
    "| Code | Name | Family | Severity | Message |", "| 编号 | 名称 | 类别 | 级别 | 提示信息 |"
)


def pages() -> dict[str, str]:
    """All files of `docs/rules`, by their path in it."""
    rules = list(load_catalogue().rules.values())
    files = {"README.md": _index(rules, "en"), "zh/README.md": _index(rules, "zh")}
    for rule in rules:
        name = f"{rule.code}.md"
        files[name] = _page(rule, "en", f"[简体中文](zh/{name})")
        files[f"zh/{name}"] = _page(rule, "zh", f"[English](../{name})")
    return files


def _page(rule: Rule, language: Language, other: str) -> str:
    index = LocalizedText("All rules", "全部规则").in_language(language)
    lines = rule_page(rule, language).split("\n")
    # An example may be about characters that a text file had better not hold.
    page = "\n".join(map(printable, lines))
    return f"{page}\n[{index}](README.md) · {other}\n\n{_MADE_BY}"


def _index(rules: list[Rule], language: Language) -> str:
    other = "[简体中文](zh/README.md)" if language == "en" else "[English](../README.md)"
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.family} "
        f"| {message_of('severity', rule.severity.value).in_language(language)} "
        f"| {_cell(rule.message.in_language(language))} |"
        for rule in rules
    ]
    table = "\n".join([_COLUMNS.in_language(language), "| --- | --- | --- | --- | --- |", *rows])
    heading, introduction = _HEADING.in_language(language), _INTRODUCTION.in_language(language)
    return f"{heading}\n\n{introduction}\n\n{table}\n\n{other}\n\n{_MADE_BY}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write what has changed, and remove the pages of rules that are gone."""
    wanted = pages()
    (FOLDER / "zh").mkdir(parents=True, exist_ok=True)
    for path in FOLDER.rglob("*.md"):
        if path.relative_to(FOLDER).as_posix() not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
