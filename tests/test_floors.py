"""The floors of the design: no import goes up, and only the faces speak to the world."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import npulens

FLOORS = (
    {"__main__"},
    {"cli"},
    {"lsp", "report"},
    {"workspace"},
    {"analysis"},
    {"fused", "shapes"},
    {"checks"},
    {"fixes"},
    {"training"},
    {"verdicts"},
    {"graphs"},
    {"syntax"},
    {"text", "catalog"},
    {"npulens"},
)
"""From the top; what shares a floor stays apart. The last is `npulens/__init__.py`."""

NEIGHBOURS = {("catalog", "text")}
FACES = {"__main__", "cli", "lsp", "report"}
ONLY_IN = {
    "lsprotocol": {"lsp"},
    "pygls": {"lsp"},
    "click": {"cli", "report/human.py"},
}
OUTPUT = {
    "print": {"cli"},
    "input": {"cli"},
    "exit": {"cli"},
    "quit": {"cli"},
    "SystemExit": {"cli"},
    "sys.exit": {"cli", "lsp"},
    "os._exit": {"cli", "lsp"},
    "sys.stdout": {"cli", "lsp"},
    "sys.stderr": {"cli", "lsp"},
}
ONE_DOOR = {"ast.parse": {"syntax/parsing.py"}}
"""What needs a precaution: two threads may not build trees at once."""

LEVEL = {part: level for level, parts in enumerate(FLOORS) for part in parts}


class Import(NamedTuple):
    """One imported name: `from npulens.text import lines` has the module `npulens.text`."""

    line: int
    module: str
    name: str


def imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (Import(node.lineno, module, alias.name) for alias in node.names)


def module_name(path: str) -> str:
    """`checks/symbols.py` is `npulens.checks.symbols`, `checks/__init__.py` is `npulens.checks`."""
    names = ["npulens", *path.removesuffix(".py").split("/")]
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def part_of(module: str) -> str:
    """The part of the package that a module belongs to: `checks`."""
    names = module.split(".")
    return names[1] if len(names) > 1 else names[0]


def target_of(found: Import, modules: Mapping[str, ast.AST]) -> str:
    submodule = f"{found.module}.{found.name}"
    if any(module == submodule or module.startswith(f"{submodule}.") for module in modules):
        return submodule
    return found.module


def rises(source: str, target: str) -> bool:
    """Whether one part must not import the other."""
    if source == target:
        return False
    if LEVEL[source] == LEVEL[target]:
        return (source, target) not in NEIGHBOURS
    return LEVEL[source] > LEVEL[target]


def is_allowed(path: str, places: set[str]) -> bool:
    return path in places or path.partition("/")[0].removesuffix(".py") in places


def violations(files: Mapping[str, str]) -> list[str]:
    """What of a package breaks the design; paths are those below `npulens/`."""
    trees = {path: ast.parse(text, path) for path, text in files.items()}
    modules: dict[str, ast.AST] = {module_name(path): tree for path, tree in trees.items()}
    problems: list[str] = []
    edges: dict[str, list[str]] = {}
    for path, tree in trees.items():
        source = module_name(path)
        if part_of(source) not in LEVEL:
            problems.append(f"{path}: {part_of(source)} is on no floor")
            continue
        for found in imports(tree):
            place = f"{path}:{found.line}"
            root = found.module.partition(".")[0]
            if found.module.startswith("."):
                problems.append(f"{place}: relative import")
            elif root in ONLY_IN and not is_allowed(path, ONLY_IN[root]):
                problems.append(f"{place}: imports {root}")
            elif root == "npulens":
                target = target_of(found, modules)
                edges.setdefault(source, []).append(target)
                if part_of(target) not in LEVEL:
                    problems.append(f"{place}: {part_of(target)} is on no floor")
                elif rises(part_of(source), part_of(target)):
                    problems.append(f"{place}: {part_of(source)} imports {part_of(target)}")
        problems += (f"{path}:{line}: uses {name}" for line, name in output(tree, path))
    return problems + [f"cycle: {' > '.join(cycle)}" for cycle in cycles(edges)]


def output(tree: ast.AST, path: str) -> Iterator[tuple[int, str]]:
    """Where code prints, reads from a terminal, ends the process or parses, though not its task."""
    places = OUTPUT | ONE_DOOR
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names = [node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"{node.value.id}.{node.attr}"]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if not is_allowed(path, places.get(name, {path})):
                assert isinstance(node, ast.Name | ast.Attribute | ast.ImportFrom)
                yield node.lineno, name


def cycles(edges: Mapping[str, list[str]]) -> list[list[str]]:
    """The first way back to each module that is on one, found depth first."""
    found: list[list[str]] = []
    done: set[str] = set()

    def follow(module: str, way: list[str]) -> None:
        if module in way:
            found.append([*way[way.index(module) :], module])
        elif module not in done:
            for target in edges.get(module, ()):
                follow(target, [*way, module])
            done.add(module)

    for module in edges:
        follow(module, [])
    return found


def package() -> dict[str, str]:
    folder = Path(npulens.__file__).parent
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def test_the_package_keeps_to_its_floors() -> None:
    assert violations(package()) == []


def test_every_floor_that_is_built_is_seen() -> None:
    parts = {part_of(module_name(path)) for path in package()}
    assert parts >= {"cli", "lsp", "report", "workspace", "analysis", "checks", "fixes", "syntax"}
    assert parts >= {"text", "catalog", "npulens", "__main__"}
    assert parts <= LEVEL.keys()


MOST_FILES, MOST_LINES = 30, 6_000
"""Of a folder, its inner folders not counted."""


def folder_of(path: str) -> str:
    """`checks/python/apis/native.py` is in `checks/python/apis`."""
    return path.rpartition("/")[0]


def test_no_folder_is_too_large_to_look_through() -> None:
    folders: dict[str, list[str]] = {}
    for path, text in package().items():
        folders.setdefault(folder_of(path), []).append(text)
    sizes = {f: (len(t), sum(each.count("\n") for each in t)) for f, t in folders.items()}
    assert {f: n for f, n in sizes.items() if n[0] > MOST_FILES or n[1] > MOST_LINES} == {}
    unsaid = [folder for folder in folders if not package()[f"{folder}/__init__.py".lstrip("/")]]
    assert unsaid == [], "the docstring of a package says what is in it"


def test_folders_of_one_part_do_not_import_each_other_in_a_circle() -> None:
    files = package()
    trees = {module_name(path): ast.parse(text) for path, text in files.items()}
    folders = {module_name(path): folder_of(path) for path in files}
    edges: dict[str, list[str]] = {}
    for module, tree in trees.items():
        for found in imports(tree):
            target = target_of(found, trees)
            if found.module.startswith("npulens.") and part_of(module) == part_of(target):
                source, aim = folders[module], folders[target]
                if source != aim:
                    edges.setdefault(source, []).append(aim)
    assert [" > ".join(cycle) for cycle in cycles(edges)] == []


def test_faces_are_the_upper_floors() -> None:
    assert {part for level in FLOORS[:3] for part in level} == FACES
    for places in [*ONLY_IN.values(), *OUTPUT.values()]:
        assert {place.partition("/")[0] for place in places} <= FACES


GOOD = {
    "__init__.py": "__version__ = '1'\n",
    "__main__.py": "from npulens.cli.main import main\nmain()\n",
    "cli/__init__.py": "",
    "cli/main.py": (
        "import sys\nimport click\nfrom npulens import __version__\n\n\ndef main():\n"
        "    from npulens.lsp.session.language_server import serve\n"
        "    print(serve)\n    sys.exit(0)\n"
    ),
    "lsp/session/language_server.py": (
        "import sys\nfrom pygls import uris\nimport lsprotocol.types\nsys.exit(1)\n"
    ),
    "report/human.py": "import click\nfrom npulens.text.lines import LineMap\n",
    "workspace/runs/run.py": "from npulens.analysis import analyze\n",
    "analysis.py": "from npulens.checks import symbols\nfrom npulens.text import lines\n",
    "fused/match.py": "import npulens.checks.symbols\n",
    "shapes/spread.py": "import npulens.syntax.scopes as s\n",
    "checks/symbols.py": "from npulens.checks.context import Context\n",
    "checks/context.py": "from npulens.fixes.imports import import_edit\n",
    "fixes/imports.py": "from npulens.syntax.scopes import Scope\n",
    "syntax/scopes.py": "from npulens.catalog.model import Rule\nprinter = 1\n",
    "catalog/model.py": "from npulens.text.lines import LineMap\n",
    "text/lines.py": 'import re\n"""print() and sys.exit() in a text are no use of them."""\n',
}

PLANTED = {
    "up-one-floor": (
        "fixes/a.py",
        "from npulens.checks.symbols import x\n",
        "fixes imports checks",
    ),
    "up-to-the-top": ("text/a.py", "import npulens.cli.main\n", "text imports cli"),
    "up-from-the-door": (
        "analysis.py",
        "import npulens.workspace.runs.run\n",
        "analysis imports work",
    ),
    "up-in-a-function": (
        "syntax/a.py",
        "def f():\n    from npulens.analysis import analyze\n",
        "syntax/a.py:2: syntax imports analysis",
    ),
    "up-for-a-type": (
        "checks/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import npulens.fused.match\n",
        "checks imports fused",
    ),
    "up-by-package": ("text/a.py", "from npulens import syntax\n", "text imports syntax"),
    "up-by-submodule": ("catalog/a.py", "from npulens import analysis\n", "catalog imports analys"),
    "root-imports-a-part": (
        "__init__.py",
        "from npulens.text import lines\n",
        "npulens imports te",
    ),
    "report-imports-lsp": ("report/a.py", "import npulens.lsp.server\n", "report imports lsp"),
    "lsp-imports-report": ("lsp/a.py", "import npulens.report.human\n", "lsp imports report"),
    "fused-imports-shapes": (
        "fused/a.py",
        "import npulens.shapes.spread\n",
        "fused imports shapes",
    ),
    "text-imports-catalog": ("text/a.py", "import npulens.catalog.model\n", "text imports catalog"),
    "relative": ("checks/a.py", "from . import symbols\n", "checks/a.py:1: relative import"),
    "relative-up": ("checks/a.py", "from ..cli import main\n", "relative import"),
    "pygls-below-lsp": ("workspace/a.py", "import pygls.uris\n", "imports pygls"),
    "lsprotocol-in-report": ("report/a.py", "from lsprotocol import types\n", "imports lsprotocol"),
    "click-in-workspace": ("workspace/a.py", "import click\n", "imports click"),
    "click-in-another-report": ("report/a.py", "import click\n", "imports click"),
    "print": ("checks/a.py", "def f():\n    print('x')\n", "checks/a.py:2: uses print"),
    "print-handed-on": ("analysis.py", "show = print\n", "uses print"),
    "print-in-lsp": ("lsp/a.py", "print('x')\n", "uses print"),
    "sys-exit": ("workspace/a.py", "import sys\nsys.exit(2)\n", "workspace/a.py:2: uses sys.exit"),
    "exit-imported": ("fixes/a.py", "from sys import argv, exit\n", "uses sys.exit"),
    "system-exit": ("syntax/a.py", "raise SystemExit(1)\n", "uses SystemExit"),
    "stdout": ("report/a.py", "import sys\nsys.stdout.write('x')\n", "uses sys.stdout"),
    "parsing": ("checks/a.py", "import ast\nast.parse('x')\n", "checks/a.py:2: uses ast.parse"),
    "unknown-floor": ("helpers/a.py", "", "helpers/a.py: helpers is on no floor"),
    "unknown-target": ("cli/a.py", "import npulens.helpers.a\n", "helpers is on no floor"),
    "cycle": (
        "checks/context.py",
        "from npulens.checks.symbols import attribute\n",
        "cycle: npulens.checks.symbols > npulens.checks.context > npulens.checks.symbols",
    ),
    "cycle-with-itself": ("text/a.py", "from npulens.text import a\n", "cycle: npulens.text.a > "),
    "cycle-in-a-function": (
        "checks/context.py",
        "def f():\n    import npulens.checks.symbols\n",
        "cycle: npulens.checks.symbols > npulens.checks.context",
    ),
}


def test_a_good_tree_passes() -> None:
    assert violations(GOOD) == []


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_seen(name: str) -> None:
    path, text, message = PLANTED[name]
    problems = violations({**GOOD, path: text})
    assert any(message in problem for problem in problems), problems


def test_no_file_name_stands_for_two_files() -> None:
    """A name in a traceback, a search or an editor's list leads to one file."""
    root = Path(npulens.__file__).parent
    names = [path.name for path in root.rglob("*.py") if path.name != "__init__.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_libcst_is_imported_by_two_packages_alone() -> None:
    """What a user asks for loads it; nothing else waits for that."""
    root = Path(npulens.__file__).parent
    importing = {
        path.parent.name
        for path in root.rglob("*.py")
        if any(found.module == "libcst" for found in imports(ast.parse(path.read_text("utf-8"))))
    }
    assert importing == {"merging", "multi_device"}
