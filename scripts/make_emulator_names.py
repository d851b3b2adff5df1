"""Writes which names `torch_npu` has in each release, for the emulator.

    .venv/bin/python scripts/make_emulator_names.py WHEEL...

The wheels are those of torch_npu; nothing of them is run. Names of a package are those that its
`__init__.py` binds; operators are those whose schemas its libraries define. The result is
`server/npulens_emulator/names.json`: for each package the names by the releases that have them.
"""

import ast
import json
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "server" / "npulens_emulator" / "names.json"
SCHEMA = re.compile(rb"(?<=\x00)([A-Za-z_]\w*)(?:\.\w+)?\((?:[^\x00()]|\([\w!]*\))*\) -> ")
PACKAGES = ("npu", "npu.amp", "optim", "profiler", "contrib", "contrib.function", "contrib.module")
LEGACY = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
"""Types of tensors such as `torch.npu.FloatTensor`, which C++ binds in every release."""


def bound_names(wheel: zipfile.ZipFile, path: str) -> set[str]:
    """What the top level of a module binds, foreign modules apart."""
    found: set[str] = set()
    for node in ast.parse(wheel.read(path).decode("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and is_own(node):
            found |= {alias.asname or alias.name for alias in node.names if alias.name != "*"}
            if any(alias.name == "*" for alias in node.names):
                found |= public_names(wheel, path, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                found |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def is_own(node: ast.ImportFrom) -> bool:
    """Whether something is imported from torch_npu."""
    return node.level > 0 or (node.module or "").partition(".")[0] == "torch_npu"


def public_names(wheel: zipfile.ZipFile, path: str, node: ast.ImportFrom) -> set[str]:
    """What `import *` takes from a module."""
    assert node.module is not None
    inside = node.module.replace(".", "/")
    name = f"{path.rpartition('/')[0]}/{inside}" if node.level else inside
    source = f"{name}.py" if f"{name}.py" in wheel.namelist() else f"{name}/__init__.py"
    for inner in ast.parse(wheel.read(source).decode("utf-8")).body:
        if isinstance(inner, ast.Assign) and ast.unparse(inner.targets[0]) == "__all__":
            return set(ast.literal_eval(inner.value))
    return {name for name in bound_names(wheel, source) if not name.startswith("_")}


def names_of(wheel: zipfile.ZipFile, package: str) -> set[str]:
    """The names of a package of torch_npu, with its modules."""
    folder = f"torch_npu/{package.replace('.', '/')}/"
    found = bound_names(wheel, f"{folder}__init__.py")
    for path in wheel.namelist():
        if path.startswith(folder) and path.endswith(".py"):
            found.add(path.removeprefix(folder).partition("/")[0].removesuffix(".py"))
    if package == "npu":
        found |= {f"{kind}Tensor" for kind in LEGACY}
    return {name for name in found if not name.startswith("__")}


def operators_of(wheel: zipfile.ZipFile) -> set[str]:
    """The operators that the libraries define."""
    found: set[str] = set()
    for path in wheel.namelist():
        if path.endswith(".so"):
            found |= {name.decode() for name in SCHEMA.findall(wheel.read(path))}
    return found


def main() -> None:
    tables: dict[str, dict[str, list[str]]] = {name: {} for name in (*PACKAGES, "operators")}
    releases = []
    for path in sorted(map(Path, sys.argv[1:]), key=lambda path: path.name):
        release = ".".join(path.name.split("-")[1].split(".")[:2])
        releases.append(release)
        with zipfile.ZipFile(path) as wheel:
            for package, table in tables.items():
                is_package = package != "operators"
                names = names_of(wheel, package) if is_package else operators_of(wheel)
                for name in names:
                    table.setdefault(name, []).append(release)
    content = {
        "source": f"torch_npu wheels of the releases {', '.join(releases)}: names alone",
        "releases": releases,
        "names": {package: by_releases(table) for package, table in tables.items()},
    }
    TARGET.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def by_releases(table: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names by the releases that have them, as `2.10 2.11`."""
    found: dict[str, list[str]] = {}
    for name in sorted(table):
        found.setdefault(" ".join(table[name]), []).append(name)
    return found


if __name__ == "__main__":
    main()
