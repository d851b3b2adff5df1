"""Counts the special cases by which the engine decides that a place needs nothing.

    python scripts/special_cases.py [REVISION...]

Each revision is a column; without any, the files as they are. Counted are in `checks/`, `verdicts/`
`workspace/project/` and `workspace/index/` of the engine, by the syntax tree:

- predicates: functions annotated `-> bool`;
- patterns: calls of functions of `re` whose pattern is a literal, and their alternatives: one for
  each pattern and one more for each `|` in it;
- word sets: sets and frozensets of two or more literal strings, and their words.

Words that became data are counted apart: the strings in the lists of `rules/verdicts/`.
"""

import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FOLDERS = ("checks/intent", "checks", "verdicts", "workspace/project", "workspace/index")
"""A file counts for the first of these that holds it."""
_ALSO_INTENT = frozenset({"checks/purpose.py", "checks/optional_code.py"})
"""Files that do the same, beside those that use them."""
_SILENCE = ("checks/intent", "verdicts")
"""What does nothing but decide that a place needs nothing; the rest also finds places."""
_MEASURES = ("predicates", "patterns", "alternatives", "word sets", "words")
_OF_RE = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer", "sub"})
_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What is escaped, and classes of characters: there `|` parts nothing."""


def main() -> None:
    revisions = sys.argv[1:]
    columns = {name: _of_revision(name) for name in revisions} or {"now": counts(ROOT)}
    print(f"{'':34}" + "".join(f"{name:>12}" for name in columns))
    for folder in (*_FOLDERS, "all", "intent+verdicts", "rules/verdicts"):
        for measure in ("words",) if folder == "rules/verdicts" else _MEASURES:
            numbers = "".join(f"{found[folder, measure]:12}" for found in columns.values())
            print(f"{folder:20}{measure:14}{numbers}")


def _of_revision(revision: str) -> Counter[tuple[str, str]]:
    """The counts at a revision, whose files git writes elsewhere."""
    command = ["git", "archive", revision, "server/npulens", "rules"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return counts(Path(folder))


def counts(root: Path) -> Counter[tuple[str, str]]:
    """How many there are of each, by folder."""
    found: Counter[tuple[str, str]] = Counter()
    engine = root / "server" / "npulens"
    for path in sorted(engine.rglob("*.py")):
        folder = _folder(path.relative_to(engine))
        if folder:
            for measure, number in _in_module(ast.parse(path.read_text(encoding="utf-8"))):
                found[folder, measure] += number
                found["all", measure] += number
                found["intent+verdicts", measure] += number * (folder in _SILENCE)
    for path in sorted((root / "rules" / "verdicts").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        found["rules/verdicts", "words"] += sum(1 for _ in _listed(data))
    return found


def _folder(path: Path) -> str:
    if path.as_posix() in _ALSO_INTENT:
        return "checks/intent"
    within = f"{path.parent.as_posix()}/"
    return next((folder for folder in _FOLDERS if within.startswith(f"{folder}/")), "")


def _in_module(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(node.returns, ast.Name) and node.returns.id == "bool":
                yield "predicates", 1
        elif isinstance(node, ast.Call) and _is_of_re(node.func) and node.args:
            pattern = _literal(node.args[0])
            if pattern:
                yield "patterns", 1
                yield "alternatives", 1 + _CLASS.sub("", pattern).count("|")
        elif isinstance(node, ast.Set):
            words = sum(isinstance(each, ast.Constant) for each in _words(node.elts))
            if words > 1:
                yield "word sets", 1
                yield "words", words


def _is_of_re(callee: ast.expr) -> bool:
    is_member = isinstance(callee, ast.Attribute) and callee.attr in _OF_RE
    owner = callee.value if isinstance(callee, ast.Attribute) else None
    return is_member and isinstance(owner, ast.Name) and owner.id == "re"


def _literal(node: ast.expr) -> str:
    """The literal text of a pattern; of an f-string what stands in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    value = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def _words(elements: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The strings of a set, and of tuples that are unpacked into it."""
    for element in elements:
        if isinstance(element, ast.Starred) and isinstance(element.value, (ast.Tuple, ast.List)):
            yield from _words(element.value.elts)
        elif isinstance(element, ast.Constant) and isinstance(element.value, str):
            yield element


def _listed(data: object) -> Iterator[str]:
    """Strings in lists, and keys of tables, but for texts in two languages."""
    if isinstance(data, list):
        for each in data:
            yield from [each] if isinstance(each, str) else _listed(each)
    elif isinstance(data, dict) and not {"en", "zh"} <= data.keys():
        for key, value in data.items():
            yield from [key] if isinstance(value, str) else _listed(value)


if __name__ == "__main__":
    main()
