"""Texts stand in `messages/`, each in both languages, and each is used."""

import ast
import errno
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import npulens
from npulens.catalog.loader import load_catalogue
from npulens.catalog.messages import messages
from npulens.catalog.model import Applicability, MigrationStyle, Severity
from npulens.text.decoding import UndecodableReason
from npulens.workspace.files import copying, not_read
from npulens.workspace.fixing.effort import EffortClass
from npulens.workspace.guiding import guide_records
from npulens.workspace.migrating.readiness import Readiness
from npulens.workspace.verifying.agreement import Agreement
from npulens.workspace.verifying.npu_apis import FAILS, FALLS_BACK, MAY_FAIL, MAY_FALL_BACK
from npulens.workspace.verifying.outcomes import Outcome

SERVER = Path(npulens.__file__).parent
ROOT = SERVER.parents[1]
(_, ENGLISH), (_, CHINESE) = messages().contents()
HELP = re.compile(r"help(-after|-option)?\.")
"""What is in Chinese alone, since click has the English; `test_help.py` sees that all is there."""
IS_CHINESE = re.compile(r"[\u4e00-\u9fff]")
CODE = re.compile(r"`[^`]*`|\{[^}]*\}|[A-Z]\w*|npulens|--[a-z-]+")
"""What is the same in every language: code, what is filled in, names."""


@cache
def trees() -> dict[str, ast.Module]:
    return {
        path.relative_to(SERVER).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SERVER.rglob("*.py"))
        if path.name != "message_ids.py"
    }


def strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def first_arguments(*functions: str) -> set[str]:
    """What these functions are called with, where that is written out."""
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    calls = (node for node in nodes if isinstance(node, ast.Call) and node.args)
    called = (call for call in calls if getattr(call.func, "id", "") in functions)
    return set(strings(call.args[0] for call in called))


def problems_of_files() -> tuple[str, ...]:
    """What may be wrong with a file, of which the lowest floor knows the names alone."""
    named = first_arguments("UnreadableNotebook", "UnsuitableFile", "UnsuitableToml")
    return (*named, *UndecodableReason, "other-format", "no-notebook")


COMPLETE = {
    "unreadable": problems_of_files(),
    "severity": Severity,
    "report-fix": Applicability,
    "page-fix": Applicability,
    "style-name": MigrationStyle,
    "page-state": Readiness,
    "page-meaning": Readiness,
    "page-reached": ("training", "evaluation", "unknown"),
    "page-family": tuple({rule.family for rule in load_catalogue().rules.values()}),
    "not-read": not_read.Reason,
    "log-not-copied": copying.Reason,
    "log-effort": EffortClass,
    "verify-outcome": Outcome,
    "verify-kind": ("shape", "wait", FAILS, MAY_FAIL, FALLS_BACK, MAY_FALL_BACK, "type"),
    "verify-diverged": ("loss", "parameter", "count"),
    "verify-agreement": Agreement,
    "editor-lens": ("training", "evaluation", "unknown"),
    "guide-state": guide_records.STATES,
}
"""Tables with a text for each of these."""
SOME = {"verify-way": Outcome, "os": tuple(name.lower() for name in errno.errorcode.values())}
"""Tables with a text for some of these."""


def values(members: type[Enum] | tuple[str, ...]) -> set[str]:
    return {getattr(member, "value", member) for member in members}


def keys(table: str) -> set[str]:
    return {name.partition(".")[2] for name in ENGLISH if name.startswith(f"{table}.")}


def test_the_types_of_ids_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("ids", ROOT / "scripts/make_message_ids.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    there = script.FILE.read_text(encoding="utf-8")
    assert there == script.message_ids(), "run scripts/make_message_ids.py"


def test_both_languages_have_the_same_ids() -> None:
    assert list(ENGLISH) == [name for name in CHINESE if not HELP.match(name)]
    assert len(ENGLISH) > 400
    assert [name for name in ENGLISH if not re.fullmatch(r"[a-z-]+\.[a-z0-9-]+", name)] == []


def test_both_languages_are_filled_in_with_the_same() -> None:
    def names(text: str) -> list[tuple[str, str | None]]:
        parts = [(name, how) for _, name, how, _ in Formatter().parse(text) if name is not None]
        assert all(name.isidentifier() for name, _ in parts), text
        return sorted(set(parts))

    differing = [name for name in ENGLISH if names(ENGLISH[name]) != names(CHINESE[name])]
    assert differing == []


def test_no_text_lacks_its_chinese() -> None:
    lacking = {
        name: text
        for name, text in ENGLISH.items()
        if re.search(r"[a-z]{3}", CODE.sub("", text)) and not IS_CHINESE.search(CHINESE[name])
    }
    assert lacking == {}


def test_no_english_has_chinese_in_it() -> None:
    assert [name for name, text in ENGLISH.items() if IS_CHINESE.search(text)] == []


@pytest.mark.parametrize("table", COMPLETE)
def test_there_is_a_text_for_each_value(table: str) -> None:
    assert keys(table) == values(COMPLETE[table])


@pytest.mark.parametrize("table", SOME)
def test_no_text_is_for_a_value_that_is_not_there(table: str) -> None:
    assert keys(table) <= values(SOME[table])


def test_tables_are_asked_for_values_where_the_values_are_known_here() -> None:
    asked = first_arguments("message_of", "message_if_any")
    assert "unreadable" in asked
    assert asked - COMPLETE.keys() - SOME.keys() == {"page", "help-option"}


def test_no_id_is_unused() -> None:
    of_tables = {f"{table}.{key}" for table in (*COMPLETE, *SOME) for key in keys(table)}
    named = {text for tree in trees().values() for text in strings(ast.walk(tree))}
    named |= {f"{text}-one" for text in named}
    pages = [*(SERVER / "report").glob("page_*.py"), *(SERVER / "report/templates").iterdir()]
    of_pages = "".join(path.read_text(encoding="utf-8") for path in pages)
    named |= {f"page.{key}" for key in keys("page") if f'"{key}"' in of_pages}
    assert ENGLISH.keys() - of_tables - named == set()


def test_texts_about_numbers_have_one_for_one() -> None:
    asked = first_arguments("plural")
    assert asked
    assert {f"{name}-one" for name in asked} <= ENGLISH.keys()


def test_no_text_is_read_while_modules_are_imported() -> None:
    """Whoever imports npulens, or asks for its version, does not wait for texts."""
    code = (
        "import importlib, pkgutil, npulens, npulens.catalog.messages as messages\n"
        "for each in pkgutil.walk_packages(npulens.__path__, 'npulens.'):\n"
        "    if not each.name.endswith('__main__'):\n"
        "        importlib.import_module(each.name)\n"
        "print(messages._texts.cache_info().currsize)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=SERVER.parent, check=True
    )
    assert done.stdout == "0\n"


IN_CODE = {
    "cli/chinese_help.py": "a pattern that breaks lines of Chinese knows its punctuation",
}
"""Where Chinese stands in the code, and why."""


def test_no_chinese_stands_in_the_code() -> None:
    found = {
        path.relative_to(SERVER).as_posix()
        for path in SERVER.rglob("*.py")
        if re.search(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", path.read_text(encoding="utf-8"))
    }
    assert found == set(IN_CODE)
