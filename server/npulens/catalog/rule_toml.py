"""A rule file in TOML: one rule, named like the file, and the entries of its tables.

What comes out has the form of a rule file in JSON, in which several rules are side by side.
"""

from collections.abc import Mapping
from typing import Any

from npulens.catalog.fields import unknown_field
from npulens.catalog.native_sections import KINDS
from npulens.catalog.sections import RULES, SECTIONS

_OF_RULE = RULES.readers.keys() - {"name"}
_WITH_RULE = tuple(s.name for s in (*SECTIONS, KINDS) if "rule" in s.readers)


def as_lists(content: Mapping[str, Any], name: str, family: str) -> dict[str, Any]:
    """The lists of a file, whose rule has this name, and this family if the file says none.

    Raises:
        FormatError: It has a field that only files in JSON have.
    """
    of_rule = {key: value for key, value in content.items() if key in _OF_RULE}
    lists = {key: value for key, value in content.items() if key not in _OF_RULE}
    if RULES.name in lists:
        raise unknown_field(RULES.name)
    if not of_rule:
        return {"family": family, **lists}
    for section in _WITH_RULE:
        if isinstance(lists.get(section), list):
            lists[section] = [_with_rule(entry, name) for entry in lists[section]]
    return {"family": family, "rules": [_plain({"name": name, **of_rule})], **lists}


def _with_rule(entry: object, name: str) -> object:
    return {"rule": name, **entry} if isinstance(entry, dict) else entry


def _plain(rule: dict[str, Any]) -> dict[str, Any]:
    """The fields of a rule as JSON has them: code in lines, text without the last line break."""
    if isinstance(rule.get("explanation"), dict):
        texts = rule["explanation"].items()
        rule["explanation"] = {language: _stripped(text) for language, text in texts}
    if isinstance(rule.get("examples"), list):
        rule["examples"] = [_plain_example(example) for example in rule["examples"]]
    if isinstance(rule.get("valid"), list):
        rule["valid"] = [_lines(code) for code in rule["valid"]]
    return rule


def _plain_example(example: object) -> object:
    if not isinstance(example, dict):
        return example
    return {"after": None, **{name: _lines(code) for name, code in example.items()}}


def _lines(code: object) -> object:
    return code.removesuffix("\n").split("\n") if isinstance(code, str) else code


def _stripped(text: object) -> object:
    return text.removesuffix("\n") if isinstance(text, str) else text
