"""Write `rules/launch/suite-names.toml`: the names of all options of the training suites.

    python scripts/make_suite_names.py CLONE...

Each CLONE is a git directory of Megatron-LM, MindSpeed, MindSpeed-LLM, MindSpeed-MM or a fork that
has options of its own. All branches of releases count, since scripts are pinned to one. Only
names are taken, and whether an option takes a value; one that takes none in some release of a
suite counts as such.
"""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "rules" / "launch" / "suite-names.toml"
BRANCH = re.compile(r"(?:main|master|dev|core_r0[\w.]*|v?\d+\.\d[\w.]*)\Z")
NAME = re.compile(r"--[A-Za-z][\w-]*\Z")
CONFIGURATION = re.compile(
    r"megatron/(?:core|training)/.*config\w*\.py\Z|megatron/.*/config/.*\.py\Z"
)
"""Where Megatron-LM has classes whose fields it makes options of."""
SUITES = {
    "MindSpeed-MM": re.compile(r"mindspeed_mm/(?:training/)?arguments\.py\Z"),
    "MindSpeed-LLM": re.compile(
        r"(?:mindspeed_llm|modellink)/(?:features_manager/|(?:training/)?arguments\.py\Z)"
    ),
    "MindSpeed": re.compile(r"mindspeed/(?:features_manager/|arguments\.py\Z)"),
    "Megatron-LM": re.compile(r"megatron/(?:training/)?arguments\.py\Z|" + CONFIGURATION.pattern),
}
"""Where the options of each suite are, the one that others build on last; others are of tools."""
FLAGS = frozenset({"store_true", "store_false", "store_const", "count", "help", "version"})
HEAD = """# Made by scripts/make_suite_names.py; names alone, of all releases.
"""


def git(clone: str, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", clone, *arguments], check=True, capture_output=True)
    return run.stdout.decode("utf-8", "replace")


def sources(clone: str) -> Iterator[tuple[str, str]]:
    """Path and text of each version of each Python file that may say options."""
    seen: set[str] = set()
    for branch in git(clone, "for-each-ref", "--format=%(refname)", "refs/").split():
        if BRANCH.match(branch.rpartition("/")[2]) is None:
            continue
        for line in git(clone, "ls-tree", "-r", branch).splitlines():
            about, _, path = line.partition("\t")
            blob = about.split()[2]
            if path.endswith(".py") and blob not in seen:
                seen.add(blob)
                yield path, blob


def texts(clone: str) -> Iterator[tuple[str, str]]:
    found = list(sources(clone))
    process = subprocess.Popen(
        ["git", "-C", clone, "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    for path, blob in found:
        process.stdin.write(f"{blob}\n".encode())
        process.stdin.flush()
        head = process.stdout.readline().split()
        if len(head) < 3:
            continue
        data = process.stdout.read(int(head[2]))
        process.stdout.read(1)
        yield path, data.decode("utf-8", "replace")
    process.stdin.close()
    process.wait()


def options(path: str, text: str) -> Iterator[tuple[str, bool | None]]:
    """Each option that a file adds to a parser, and whether it takes a value, if that is sure."""
    is_configuration = CONFIGURATION.search(path) is not None
    if "add_argument(" not in text and not is_configuration:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            yield from added(node)
        elif is_configuration and isinstance(node, ast.ClassDef):
            for name, takes_value in of_fields(node):
                yield name, takes_value or None  # which of the fields are options is not known


def added(call: ast.Call) -> Iterator[tuple[str, bool]]:
    action = next((k.value for k in call.keywords if k.arg == "action"), None)
    is_flag = isinstance(action, ast.Constant) and action.value in FLAGS
    is_both = getattr(action, "attr", "") == "BooleanOptionalAction"
    for argument in call.args:
        if isinstance(argument, ast.Constant) and NAME.match(str(argument.value)):
            yield argument.value, not (is_flag or is_both)
            if is_both:
                yield f"--no-{argument.value[2:]}", False


def of_fields(node: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name = field.target.id.replace("_", "-")
            is_flag = ast.unparse(field.annotation).startswith(("bool", "Optional[bool]"))
            yield f"--{name}", not is_flag
            if is_flag:
                yield f"--no-{name}", False


def listed(names: set[str]) -> str:
    lines = textwrap.wrap(
        " ".join(sorted(names)), 100, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def main(clones: list[str]) -> None:
    owners: dict[str, str] = {}
    flags: set[str] = set()
    flags_of_tools: set[str] = set()
    flags_by_field: set[str] = set()
    valued: set[str] = set()
    for clone in clones:
        for path, text in texts(clone):
            owner = next((name for name, places in SUITES.items() if places.search(path)), "")
            for option, takes_value in options(path, text):
                name = option[2:]
                owners[name] = max(owners.get(name, ""), owner, key=["", *SUITES].index)
                if takes_value is None:
                    flags_by_field.add(name)
                elif not takes_value:
                    (flags if owner else flags_of_tools).add(name)
                elif owner:
                    valued.add(name)
    flags |= flags_by_field - valued
    flags |= {name for name in flags_of_tools if not owners[name]}
    parts = [HEAD]
    for owner in (*reversed(SUITES), ""):
        names = {name for name, of in owners.items() if of == owner}
        parts += group(owner, "nothing", names & flags) + group(owner, "value", names - flags)
    FILE.write_text("\n".join(parts), encoding="utf-8")


def group(owner: str, takes: str, names: set[str]) -> list[str]:
    of_suite = [f'owner = "{owner}"'] if owner else []
    listing = f'names = """\n{listed(names)}\n"""'
    source = f'source = "add_argument in {owner or "tools and examples of the suites"}"\n'
    return ["[[suite-names]]", *of_suite, f'takes = "{takes}"', listing, source]


if __name__ == "__main__":
    main(sys.argv[1:])
