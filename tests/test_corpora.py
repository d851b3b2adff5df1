"""What holds for any code, over real files."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from commands import git, invoke
from corpora import texts
from helpers import CATALOGUE
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Applicability, Finding, MigrationStyle, Target
from npulens.fixes.apply import FixedText, fix_text
from npulens.fixes.edit_guard import EditGuard
from npulens.text.document import Document
from npulens.text.spans import Span

pytestmark = pytest.mark.endurance

DEVICE = re.compile(r"""(['"])cuda(?::\d+)?\1""")
BROKEN = ["z_z = ", "def f(:", "    x = 1", "print 'text'", "@wrapped", '"""', "type X = = 1"]


def _analyze(path: object, text: str, cache: StatementCache | None = None) -> Sequence[Finding]:
    return analyze(Document(str(path), text, 1), CATALOGUE, Target(), cache)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_broken_line_at_the_end_changes_no_finding_before_it(seed: int) -> None:
    changed = {}
    for index, (path, text) in enumerate(texts(250, seed)):
        whole = _analyze(path, text)
        if any(finding.rule.code == "NPU001" for finding in whole):
            continue
        line = BROKEN[index % len(BROKEN)]
        found = _analyze(path, f"{text}\n{line}\n")
        in_editor = _analyze(path, f"{text}\n{line}\n", StatementCache())
        assert list(map(_known, in_editor)) == list(map(_known, found)), path
        before = [f for f in found if f.span.start < len(text)]
        if list(map(_known, before)) != list(map(_known, whole)):
            changed[str(path)] = line
    assert not changed


def _known(finding: Finding) -> object:
    return finding.rule.code, finding.span, finding.effective_severity, finding.arguments


def test_no_edit_replaces_what_it_was_not_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    misplaced = []
    guarded = EditGuard.guarded

    def noting(guard: EditGuard, findings: Sequence[Finding]) -> list[Finding]:
        kept = guarded(guard, findings)
        misplaced.extend(f for f, k in zip(findings, kept, strict=True) if f.fixes != k.fixes)
        return kept

    monkeypatch.setattr(EditGuard, "guarded", noting)
    for path, text in texts(300, 3):
        _analyze(path, text)
        _analyze(path, f"{text}\nz_z = \n", StatementCache())
    assert not misplaced


@pytest.mark.parametrize("style", list(MigrationStyle))
@pytest.mark.parametrize("applicability", [Applicability.SAFE, Applicability.UNSAFE])
def test_a_fix_hides_nothing_that_it_does_not_settle(
    style: MigrationStyle, applicability: Applicability
) -> None:
    target = Target(style=style)
    hidden = {}
    for path, text in texts(200, 4):

        def found(now: str, path: Path = path) -> Sequence[Finding]:
            return analyze(Document(str(path), now, 1), CATALOGUE, target)

        fixed = fix_text(text, found, applicability)
        if fixed.text != text:
            gone = _unsettled(found(text), fixed) - Counter(map(_meant, found(fixed.text)))
            if gone:
                hidden[str(path)] = gone
    assert not hidden


@pytest.mark.parametrize("style", list(MigrationStyle))
def test_the_fixes_of_one_rule_hide_nothing_of_others(style: MigrationStyle) -> None:
    """As where one quick fix is taken in an editor, and the rest is looked at later."""
    target = Target(style=style)
    hidden = {}
    for path, text in texts(100, 2):

        def found(now: str, path: Path = path) -> Sequence[Finding]:
            return analyze(Document(str(path), now, 1), CATALOGUE, target)

        before = found(text)
        for rule in {finding.rule.code for finding in before if finding.fixes}:

            def only(now: str, rule: str = rule) -> Sequence[Finding]:
                return [f if f.rule.code == rule else replace(f, fixes=()) for f in found(now)]

            fixed = fix_text(text, only, Applicability.UNSAFE)
            changed = [Span(e.offset, e.offset + len(e.before)) for e in fixed.edits if e.before]
            left = Counter(
                _meant(f)
                for f in before
                if f.rule.code != rule and not any(f.span.overlaps(each) for each in changed)
            )
            gone = left - Counter(map(_meant, found(fixed.text)))
            if gone:
                hidden[str(path), rule] = gone
    assert not hidden


def test_no_device_stays_beside_a_question_that_a_safe_fix_renames() -> None:
    """`"cuda" if torch.npu.is_available() else "cpu"` fails where the original took the CPU."""
    left = []
    for path, text in texts(600, 5):
        found = _analyze(path, text) if "is_available" in text else ()
        for finding in found:
            asks = finding.arguments.get("symbol") == "torch.cuda.is_available"
            if not asks or not any(f.applicability is Applicability.SAFE for f in finding.fixes):
                continue
            start = text.rfind("\n", 0, finding.span.start) + 1
            line = text[start : text.find("\n", start)].partition("#")[0]
            for match in DEVICE.finditer(line):
                at = start + match.start()
                if not any(each.span.start <= at < each.span.end for each in found):
                    left.append((str(path), line.strip()))
    assert not left


def _meant(finding: Finding) -> tuple[str, str]:
    return finding.rule.code, finding.arguments.get("symbol", "")


def _unsettled(before: Sequence[Finding], fixed: FixedText) -> Counter[tuple[str, str]]:
    """What was found before and is settled neither by a fix of its own nor by that of an import.

    What stands in lines that fixes have changed may have become something else.
    """
    changed = [Span(e.offset, e.offset + len(e.before)) for e in fixed.edits if e.before]
    left = Counter(
        _meant(finding)
        for finding in before
        if not any(finding.span.overlaps(each) for each in changed)
    )
    for finding in fixed.applied:
        left -= Counter({_meant(finding): 1})
    names = [finding.arguments.get("symbol", "") for finding in fixed.applied]
    names += [name.rpartition(".")[0] for name in names if "." in name]
    return Counter(
        {
            meant: count
            for meant, count in left.items()
            if not any(name and meant[1].startswith(f"{name}") for name in names)
        }
    )


IGNORED = ["build", "dist", "lib64", "out", "venv"]
"""In the order of the paths, since what is said once in a run is said in the first file."""


def test_what_git_tracks_is_read_whatever_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for kind, names in {"plain": "abcde", "ignored": IGNORED}.items():
        root = tmp_path / kind
        for index, (_, text) in enumerate(texts(200, 7)):
            path = root / names[index % len(names)] / f"file_{index}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (root / ".gitignore").write_text("".join(f"{name}/\n" for name in IGNORED))
        git("init", "-q", at=root)
        git("add", "-f", ".", at=root)
        monkeypatch.chdir(root)
        _, output, errors = invoke("check", "--no-cache", "--output-format", "json", ".")
        assert "not read" not in errors
        found[kind] = Counter(
            (Path(each["path"]).name, each["code"], each["line"]) for each in json.loads(output)
        )
    assert found["ignored"] == found["plain"]
    assert len({name for name, _, _ in found["plain"]}) > 50
