"""Write `rules/native/npu_names.json`: the names of torch_npu and the arguments of its operators.

    python scripts/make_npu_names.py PYTORCH OP_PLUGIN

Args:
    PYTORCH: A repository of Ascend/pytorch with its release branches.
    OP_PLUGIN: The same of Ascend/op-plugin.

A name counts if any release has it: what is in none of them is reported. Facts are read from the
sources, of which nothing else is taken.
"""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "rules" / "native" / "npu_names.json"
MODULES = {
    "torch.npu": "torch_npu/npu",
    "torch.npu.amp": "torch_npu/npu/amp",
    "torch_npu.contrib": "torch_npu/contrib",
    "torch_npu.optim": "torch_npu/optim",
    "torch_npu.profiler": "torch_npu/profiler",
}
"""Modules by their qualified names; a module is closed if all names in it can be read."""
MORE: dict[str, dict[str, object]] = {
    "torch.npu": {"grows": True, "renamed": {"set_compile": "set_compile_mode"}},
}
"""Projects put functions of their own into `torch.npu`."""
RELEASE = re.compile(r"v\d|\d|master")
_OPERATOR = re.compile(r"^\s*-\s*(?:\w+:\s*)*func:\s*(?:\w+::)?([\w.]+)\((.*)\)\s*->", re.MULTILINE)
_STAR = re.compile(r"^from \.([\w.]*) import \*", re.MULTILINE)
_TABLES = re.compile(r"(op_plugin/config|torch_npu/csrc|codegen)/.*\.ya?ml")


class Repository:
    """A repository whose branches are read without a work tree."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", self._folder, *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode(
            errors="replace"
        )

    def trees(self) -> Iterator[dict[str, str]]:
        """The files of each release, with the names of their contents."""
        for branch in self._git("for-each-ref", "--format=%(refname:short)").split():
            if RELEASE.match(branch):
                lines = self._git("ls-tree", "-r", branch).splitlines()
                yield {
                    name: head.split()[2] for head, _, name in (x.partition("\t") for x in lines)
                }

    def text(self, blob: str) -> str:
        """A content by its name."""
        if blob not in self._texts:
            self._texts[blob] = self._git("cat-file", "blob", blob)
        return self._texts[blob]


def names_bound(text: str, with_texts: bool) -> set[str]:
    """The names that a module binds, and those that it lists in texts, as `__all__` does."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif with_texts and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return {name for name in found if name.isidentifier()}


def module_names(tree: dict[str, str], folder: str, repository: Repository) -> set[str]:
    """The names in a package of one release."""
    first = f"{folder}/__init__.py"
    if first not in tree:
        return set()
    text = repository.text(tree[first])
    found = names_bound(text, with_texts=True)
    for star in _STAR.findall(text):
        inner = f"{folder}/{star.replace('.', '/')}"
        for name in (f"{inner}.py", f"{inner}/__init__.py"):
            found |= names_bound(repository.text(tree[name]), True) if name in tree else set()
    prefix = f"{folder}/"
    below = (name.removeprefix(prefix) for name in tree if name.startswith(prefix))
    inside = {name.partition("/")[0].removesuffix(".py") for name in below}
    return found | {name for name in inside if name.isidentifier()}


def operators(repositories: list[Repository]) -> dict[str, set[str]]:
    """The arguments of each operator, in all its forms and releases."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for repository in repositories:
        files = [item for tree in repository.trees() for item in tree.items()]
        for blob in {blob for name, blob in files if _TABLES.match(name)}:
            for name, given in _OPERATOR.findall(repository.text(blob)):
                parts = re.split(r",(?![^\[(]*[\])])", given)
                words = [part.partition("=")[0].split() for part in parts]
                found[name.partition(".")[0]].update(w[-1] for w in words if w and w[-1] != "*")
    return found


def main() -> None:
    pytorch, plugin = map(Repository, sys.argv[1:])
    names: defaultdict[str, set[str]] = defaultdict(set)
    own: set[str] = set()  # wrapped in Python, with arguments of their own
    for tree in pytorch.trees():
        if "torch_npu/__init__.py" not in tree:
            continue
        for owner, folder in MODULES.items():
            names[owner] |= module_names(tree, folder, pytorch)
        own |= names_bound(pytorch.text(tree["torch_npu/__init__.py"]), with_texts=False)
    arguments = operators([pytorch, plugin])
    rule = {"rule": "npu-name-unknown", "source": "Ascend/pytorch: torch_npu (release branches)"}
    members: list[dict[str, object]] = [
        {"owner": owner, "names": sorted(names[owner]), **rule, **MORE.get(owner, {})}
        for owner in MODULES
    ]
    known = {name for name in own | {*arguments} if name.startswith("npu_")}
    source = "Ascend/op-plugin: op_plugin/config; Ascend/pytorch: torch_npu/csrc"
    growing = {"rule": "npu-name-unknown", "prefix": "npu_", "grows": True, "source": source}
    members.append({"owner": "torch_npu", "names": sorted(known), **growing})
    signatures = [
        {
            "callable": f"torch_npu.{name}",
            "rule": "npu-argument",
            "parameters": sorted(arguments[name] | {"input", "out"} - {"self"}),
            "grows": True,
            "source": source,
        }
        for name in sorted(known - own)
    ]
    content = {"family": "native", "members": members, "signatures": signatures}
    TARGET.write_text(json.dumps(content).replace('{"', '\n{"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
