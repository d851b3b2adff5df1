"""Apply every fix to every Python file below folders, in memory, and look for harm.

    python scripts/try_fixes.py [--unsafe] [--style device-agnostic] [--diff PATCH] FOLDER...

Reports results that do not parse, second runs that change something, comments and docstrings that
are not the same as before, and fixes that were refused. Ends with 1 if there is any.
"""

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, MigrationStyle, Target
from npulens.fixes.apply import FixedText, fix_text
from npulens.text.document import Document


def texts_for_people(source: str) -> Counter[str]:
    """The comments and docstrings of a file, with how often each stands there."""
    found: Counter[str] = Counter()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.string] += 1
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                found[docstring] += 1
    return found


def harm(before: str, fixed: FixedText, again: FixedText) -> Iterator[str]:
    """What a fix run did to a file that it must not do."""
    for finding in fixed.refused:
        yield f"refused: {finding.rule.code} {dict(finding.arguments)}"
    try:
        ast.parse(fixed.text)
    except SyntaxError as error:
        yield f"does not parse: {error}"
        return
    if again.text != fixed.text:
        codes = sorted({finding.rule.code for finding in again.applied})
        yield f"a second run changes it: {', '.join(codes)}"
    lost = texts_for_people(before) - texts_for_people(fixed.text)
    for text in lost:
        yield f"a comment or docstring is gone: {text[:80]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--unsafe", action="store_true", help="apply unsafe fixes too")
    parser.add_argument("--style", default="npu", choices=[s.value for s in MigrationStyle])
    parser.add_argument("--diff", type=Path, help="write all changes to this file")
    options = parser.parse_args()
    catalogue = load_catalogue()
    target = Target(style=MigrationStyle(options.style))
    applicability = Applicability.UNSAFE if options.unsafe else Applicability.SAFE

    def fix(path: Path, text: str) -> FixedText:
        def findings_of(changed: str):  # type: ignore[no-untyped-def]
            return analyze(Document(str(path), changed), catalogue, target)

        return fix_text(text, findings_of, applicability)

    changed, harmed, applied = 0, 0, Counter[str]()
    patch: list[str] = []
    for path in (file for folder in options.folders for file in sorted(folder.rglob("*.py"))):
        try:
            text = path.read_text(encoding="utf-8")
            ast.parse(text)
        except (UnicodeDecodeError, SyntaxError, ValueError):
            continue
        fixed = fix(path, text)
        applied.update(finding.rule.code for finding in fixed.applied)
        if fixed.text == text:
            continue
        changed += 1
        patch += unified_diff(
            text.splitlines(True), fixed.text.splitlines(True), str(path), str(path)
        )
        for what in harm(text, fixed, fix(path, fixed.text)):
            harmed += 1
            print(f"{path}: {what}")
    if options.diff:
        options.diff.write_text("".join(patch), encoding="utf-8")
    print(f"{changed} files changed, {sum(applied.values())} fixes, {harmed} complaints")
    print(", ".join(f"{code}: {count}" for code, count in sorted(applied.items())))
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
