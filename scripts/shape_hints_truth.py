"""Compares the symbolic shapes that an editor shows in model files with those of a run.

    python scripts/shape_hints_truth.py FOLDER [NAME ...] [--all]

FOLDER holds checkouts, and for each model a file `run_NAME.py` that builds it small and calls it
once on the CPU; its docstring names the files to compare, one a line, relative to FOLDER or as
modules (`transformers.models.t5.modeling_t5`). The files are run with a call behind each
assignment that tells what was assigned. A hint is right if the tensor has as many dimensions, each
number is its length, and each symbol is one length within a call: that of the local variable, of
the parameter or of the attribute of `self` with this name, if there is one. Printed are how many
hints a file has, how many of them the run reached, and how many of these are wrong, with their
lines; with `--all` every hint.

The environment has to have what the models import.
"""

import argparse
import ast
import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FrameType
from typing import Any

from npulens.analysis import StatementCache, analyze, shapes_of_names
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Target
from npulens.text.document import Document

Name = tuple[int, str]
"""An assigned name with the line that it stands in."""
_MARK = "__shape_assigned__"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="print every hint")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    runs = [asked.folder / f"run_{name}.py" for name in asked.names]
    if asked.one:
        print(json.dumps(compared(runs[0])))
        return
    print("model\tfile\thints\treached\twrong")
    for run in runs or sorted(asked.folder.glob("run_*.py")):
        name = run.stem.removeprefix("run_")
        command = [sys.executable, __file__, str(asked.folder), name, "--one"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}\tfailed: {done.stderr.strip()[-2000:]}")
            continue
        for path, found in json.loads(done.stdout.splitlines()[-1]).items():
            wrong = found["wrong"]
            print(name, path, len(found["hints"]), found["reached"], len(wrong), sep="\t")
            for line in found["hints"] if asked.all else wrong:
                print(f"    {line}", flush=True)


def compared(run: Path) -> dict[str, Any]:
    """For each file that a run names: its hints, how many were reached, and what was wrong."""
    named = (ast.get_docstring(ast.parse(run.read_text(encoding="utf-8"))) or "").split()
    comparisons = {name: Comparison(_path(name, run.parent)) for name in named}
    by_path = {str(each.path): each for each in comparisons.values()}
    original = SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, *rest: Any, **options: Any) -> Any:
        comparison = by_path.get(str(Path(path).resolve())) if isinstance(path, str) else None
        if comparison is None:
            return original(self, data, path, *rest, **options)
        return compile(comparison.marked(), path, "exec")

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]
    SourceFileLoader.get_code = _without_cache  # type: ignore[method-assign]
    import builtins

    def assigned(path: str, line: int, name: str, value: object) -> None:
        by_path[path].assigned(line, name, value, sys._getframe(1))

    setattr(builtins, _MARK, assigned)
    sys.path.insert(0, str(run.parent))
    stdout, sys.stdout = sys.stdout, sys.stderr
    runpy.run_path(str(run), run_name="__main__")
    sys.stdout = stdout
    return {
        name: {
            "hints": [each.shown(place) for place in sorted(each.hints)],
            "reached": len(each.reached),
            "wrong": list(each.wrong.values()),
        }
        for name, each in comparisons.items()
    }


def _without_cache(self: SourceFileLoader, fullname: str) -> Any:
    path = self.get_filename(fullname)
    return self.source_to_code(self.get_data(path), path)


def _path(name: str, folder: Path) -> Path:
    if name.endswith(".py"):
        return (folder / name).resolve()
    # The module itself is not to be imported before it is marked, so only its package is found.
    top, _, rest = name.partition(".")
    found = importlib.util.find_spec(top)
    if found is None or found.origin is None:
        raise FileNotFoundError(name)
    return (Path(found.origin).parent / (rest.replace(".", "/") + ".py")).resolve()


class Comparison:
    """What is shown in one file, and how a run agrees with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text(encoding="utf-8")
        self.hints = hints_of(self.source)
        self.reached: set[Name] = set()
        self.wrong: dict[Name, str] = {}
        self._symbols: list[tuple[FrameType, dict[str, int]]] = []

    def shown(self, place: Name) -> str:
        """A hint with its line."""
        line = self.source.splitlines()[place[0] - 1].strip()
        mark = "" if place in self.reached else "   (not reached)"
        return f"{place[0]} {place[1]}: {self.hints[place]}{mark} | {line[:90]}"

    def marked(self) -> ast.Module:
        """The module with a call behind each assignment."""
        marker = _Marker(str(self.path))
        return ast.fix_missing_locations(marker.visit(ast.parse(self.source)))

    def assigned(self, line: int, name: str, value: Any, frame: FrameType) -> None:
        shown = self.hints.get((line, name))
        if shown is None or not hasattr(value, "shape") or not hasattr(value, "dtype"):
            return
        self.reached.add((line, name))
        known = [symbols for each, symbols in self._symbols if each is frame]
        if not known:
            known = [{}]
            self._symbols = [*self._symbols[-50:], (frame, known[0])]
        actual = tuple(int(length) for length in value.shape)
        if not agrees(shown, actual, known[0], numbers_of(frame)):
            text = f"{self.shown((line, name))}, but {actual} {known[0]}"
            self.wrong.setdefault((line, name), text)


def hints_of(source: str) -> dict[Name, str]:
    """The shapes that an editor shows, by name and line."""
    cache = StatementCache()
    analyze(Document("m.py", source), load_catalogue(), Target(), cache)
    return {
        (source.count("\n", 0, hint.span.start) + 1, source[slice(*hint.span)]): hint.shape
        for hint in shapes_of_names(cache).hints
        if hint.is_informative
    }


def numbers_of(frame: FrameType) -> Mapping[str, int]:
    """The whole numbers of a call by name: attributes of `self`, then local variables."""
    found: dict[str, int] = {}
    receiver = frame.f_locals.get("self")
    for values in (vars(receiver) if hasattr(receiver, "__dict__") else {}, frame.f_locals):
        found.update((k, v) for k, v in values.items() if type(v) is int)
    return found


def agrees(
    shown: str, actual: tuple[int, ...], symbols: dict[str, int], numbers: Mapping[str, int]
) -> bool:
    """Whether a symbolic shape is that of a tensor; `symbols` keeps the lengths of symbols."""
    texts = [text for text in shown.strip("[]").split(", ") if text]
    if "..." in texts:
        place = texts.index("...")
        lead, tail = texts[:place], texts[place + 1 :]
        if len(lead) + len(tail) > len(actual):
            return False
        pairs = [*zip(lead, actual, strict=False)]
        pairs += zip(tail, actual[len(actual) - len(tail) :], strict=True)
    elif len(texts) != len(actual):
        return False
    else:
        pairs = [*zip(texts, actual, strict=True)]
    return all(_is(text, length, symbols, numbers) for text, length in pairs)


def _is(text: str, length: int, symbols: dict[str, int], numbers: Mapping[str, int]) -> bool:
    if text == "?":
        return True
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    known = {**symbols, **{name: numbers[name] for name in names if name in numbers}}
    if all(name in known for name in names):
        return bool(eval(text, known) == length)
    return symbols.setdefault(text, length) == length


class _Marker(ast.NodeTransformer):
    def __init__(self, path: str) -> None:
        self._path = path

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            return [node, *self._marks([node.target] if node.value is not None else [])]
        if isinstance(node, ast.Assign):
            return [node, *self._marks(node.targets)]
        if isinstance(node, ast.For | ast.AsyncFor):
            node.body = [*self._marks([node.target]), *node.body]
        return node

    def _marks(self, targets: Sequence[ast.expr]) -> list[ast.stmt]:
        names = (
            each
            for target in targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
        text = "{}({!r}, {}, {!r}, {})"
        return [
            ast.parse(text.format(_MARK, self._path, n.lineno, n.id, n.id)).body[0] for n in names
        ]


if __name__ == "__main__":
    main()
