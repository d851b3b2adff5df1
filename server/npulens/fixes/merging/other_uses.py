"""What names a layer besides what makes and calls it."""

import re
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from npulens.fixes.merging.joined_module import SETTINGS, JoinedModule, Use
from npulens.fixes.merging.merge_refusals import MergeRefusedError

_MODULE = ("torch.nn.Module", "torch.nn.modules.module.Module")


class ClassGraph:
    """The classes of a module with their bases."""

    def __init__(self, index: JoinedModule) -> None:
        self._index = index
        self._named: dict[str, list[cst.ClassDef]] = {}
        for each in index.classes:
            self._named.setdefault(each.name.value, []).append(each)
        self._bases = {each: [*self._bases_of(each)] for each in index.classes}
        self._derived: dict[cst.ClassDef, list[cst.ClassDef]] = {}
        for each, bases in self._bases.items():
            for base in bases:
                self._derived.setdefault(base, []).append(each)
        unclear = [each for each in index.classes if self._unknown_base(each) is not None]
        self._unclear = _reached(unclear, self._derived)

    def require_known(self, line: int, owner: cst.ClassDef) -> None:
        """That a class derives from `nn.Module`, and from classes of this file at most besides.

        Raises:
            MergeRefusedError: It does not; at a line.
        """
        above = _reached([owner], self._bases)
        unknown = next(filter(None, map(self._unknown_base, above)), None)
        bases = [base.value for each in above for base in each.bases]
        name = owner.name.value
        if unknown is not None:
            raise MergeRefusedError(line, "merging.base", owner=name, base=unknown)
        if not any(self._index.means(base, *_MODULE) for base in bases):
            raise MergeRefusedError(line, "merging.no-module", owner=name)

    def relatives(self, owner: cst.ClassDef) -> Collection[cst.ClassDef]:
        """The classes whose `self` may be of a class."""
        below = _reached([owner], self._derived)
        return _reached([*below], self._bases) | self._unclear

    def _bases_of(self, definition: cst.ClassDef) -> Iterator[cst.ClassDef]:
        for argument in definition.bases:
            if isinstance(argument.value, cst.Name):
                yield from self._named.get(argument.value.value, ())

    def _unknown_base(self, definition: cst.ClassDef) -> str | None:
        """A base that is neither `nn.Module` nor one class of this file."""
        for argument in definition.bases:
            base = argument.value
            named = self._named.get(base.value, ()) if isinstance(base, cst.Name) else ()
            if len(named) != 1 and not self._index.means(base, *_MODULE, "builtins.object"):
                return self._index.code(base)
        return next(map(self._index.code, definition.keywords), None)


def require_no_other_use(
    index: JoinedModule,
    relatives: Collection[cst.ClassDef],
    name: str,
    known: Collection[cst.CSTNode],
) -> None:
    """That a module names no attribute of a class but in these nodes.

    Raises:
        MergeRefusedError: It does.
    """
    own = [use for each in relatives for use in index.own.get((each, name), ())]
    uses = [use for use in (*own, *index.other.get(name, ())) if use.node not in known]
    if name in index.words:
        uses.append(index.words[name])
    if uses:
        first = min(uses, key=_line)
        raise MergeRefusedError(first.line, "merging.other-use", name=name)
    lookups = [use for each in relatives for use in index.lookups.get(each, ())]
    lines = [use.line for use in lookups if may_be_name(use.node, name)]
    if lines:
        raise MergeRefusedError(min(lines), "merging.computed", name=name)
    for use in index.other_lookups:
        if may_be_name(use.node, name):
            raise MergeRefusedError(use.line, "merging.computed-of-other", name=name)


def may_be_name(text: cst.CSTNode, name: str) -> bool:
    """Whether a text that is computed may be a name, or a path with dots in which it is."""
    if not isinstance(text, cst.FormattedString):
        return True
    is_fixed = cst.FormattedStringText
    code = "".join(each.value if isinstance(each, is_fixed) else "\0" for each in text.parts)
    return any(_is_filled(part.split("\0"), name) for part in code.split("."))


def _is_filled(parts: list[str], name: str) -> bool:
    """Whether a name is some parts in their order, with anything between them."""
    first, *others = parts
    if not others:
        return name == first
    *inner, last = others
    place = len(first)
    for part in inner:
        found = name.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return name.startswith(first) and name.endswith(last) and place <= len(name) - len(last)


def named_elsewhere(name: str, is_python: bool) -> re.Pattern[str]:
    """How another file may name an attribute; the last group that takes part is the name."""
    word = rf"({re.escape(name)})"
    begin = rf"(?:\b|\\[A-Za-z]){word}\b"
    text = rf"[\"'][^\"'\s]{{0,200}}?{begin}[^\"'\s]{{0,200}}[\"']"
    if not is_python:
        listed = rf"[,=.|\[]{word}(?![\w-])|(?<![\w-]){word}[,.|]"
        item = rf"(?:^[ \t]*-|:)[ \t]+{word}[ \t]*$"
        option = rf"--[\w-]{{1,60}}[ \t]+(?:[\w.]+[ \t]+){{0,20}}?{word}(?![\w-])"
        return re.compile(f"{text}|{listed}|{item}|{option}", re.M)
    holders = ("self", *SETTINGS)
    not_settings = "".join(rf"(?<!\b{each})" for each in holders)
    return re.compile(rf"{not_settings}\.{word}\b|{text}", re.M)


def derived_elsewhere(owner: str) -> re.Pattern[str]:
    """How a class of another file may derive from one, also by another name."""
    name = rf"\b({re.escape(owner)})\b"
    bases = r"\bclass \w+\s*\((?:[^()]|\([^()]*\)){0,500}?"
    renamed = rf"{name}[ \t]+as[ \t]+(\w+)(?=[\s\S]*?{bases}\b\2\b)"
    assigned = rf"\b(\w+)[ \t]*=[ \t]*(?:\w+\.)*{name}[ \t]*(?:#.*)?$(?=[\s\S]*?{bases}\b\3\b)"
    return re.compile(f"{renamed}|{assigned}|{bases}{name}", re.M)


def _line(use: Use) -> int:
    return use.line


def _reached(
    start: Iterable[cst.ClassDef], edges: dict[cst.ClassDef, list[cst.ClassDef]]
) -> set[cst.ClassDef]:
    """Classes, and those that edges lead to from them."""
    found: set[cst.ClassDef] = set()
    pending = [*start]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += edges.get(each, ())
    return found
