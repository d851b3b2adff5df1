"""What modules re-export: names that they import from other modules of the project."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import TypeVar

from npulens.syntax.other_modules import OtherModules, member_of
from npulens.workspace.index.contents import Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_words
from npulens.workspace.index.module_summary import summary_of

PACKAGE = "__init__"
"""The stem of the file that a package itself is."""

_STAR = b"import *"

Known = TypeVar("Known")


def packages(modules: Modules) -> Modules:
    """Those of some modules that are packages, which exist to re-export."""
    return {file: content for file, content in modules.items() if file.stem == PACKAGE}


def triples(known: Mapping[tuple[str, str], Known]) -> frozenset[tuple[str, str, Known]]:
    """What is known of names: the place of a module, a name in it, and what is known of that."""
    return frozenset((path, name, each) for (path, name), each in known.items())


def re_exported(
    modules: Modules, known: Mapping[tuple[str, str], Known], memo: FactMemo
) -> Iterator[tuple[tuple[str, str], Known]]:
    """What is known of names, under those by which modules have them from others.

    What says of itself that it is not public is not taken by a star.
    """
    facts = triples(known)
    names = {name for _, name in known}
    for file, content in modules.items() if facts else ():
        if _STAR not in content.data and names.isdisjoint(import_words(content, memo).names):
            continue
        elsewhere = OtherModules(facts, file.as_posix())
        for import_ in summary_of(content, memo).imports:
            if not import_.is_at_top or import_.level < 0:
                continue
            module = "." * import_.level + import_.module
            for name, known_as in import_.names:
                for taken in elsewhere.names_in(module) if name == "*" else (name,):
                    each = elsewhere.find(member_of(module, taken))
                    if each is None or (name == "*" and not getattr(each, "is_public", True)):
                        continue
                    yield (place_of(file), taken if name == "*" else known_as), each


def place_of(file: Path) -> str:
    """The path of a module without its ending; of a package its folder."""
    path = PurePath(file)
    return (path.parent if path.stem == PACKAGE else path.with_suffix("")).as_posix()
