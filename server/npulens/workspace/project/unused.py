"""Classes and functions that nothing of a project uses, such as losses that were tried once."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo, text, texts

_LONGEST_DECORATOR = 500
_PACKAGED_BY = ("setup.py", "setup.cfg", "pyproject.toml")
_CLASS = re.compile(rb"(?:^|(?<=\n))class (\w+)[ \t]*(?:\(([\w. ]*)\))?[ \t]*:")
_PRIVATE = re.compile(rb"\ndef (_[a-z]\w*)\(")
READS = re.compile(
    rb"nonzero|unique|masked_|nms\(|\.(?:item|tolist|cpu|any|all)\(|where\(|mask\w*\]"
)
"""What makes a function worth the check whether it is used."""
_BODY = re.compile(rb"\n(?=[^\s#)])")
_WORD = re.compile(rb"\w+")
_PLAIN_BASES = frozenset(
    b" object nn.Module torch.nn.Module autograd.Function torch.autograd.Function".split(b" ")
)
"""Of these nobody hears that there is a class of them."""


Counts = list[tuple[str, int]]


def unused_classes(
    files: Sequence[Path], folders: Iterable[Path], contents: Contents, memo: FactMemo
) -> frozenset[str]:
    """The names of classes that are named nowhere but in themselves.

    Others may import what a package offers, so only projects that cannot be installed are looked
    at, and only as a whole.
    """
    named = list(folders)
    if not named or any(may_be_used_elsewhere(folder) for folder in named):
        return frozenset()
    own: Counter[str] = Counter()
    defined: Counter[str] = Counter()
    for file in files:
        for name, count in _defined_in(contents.of(file), memo):
            own[name] += count
            defined[name] += 1
    if not own:
        return frozenset()
    used: Counter[str] = Counter()
    names = {name.encode() for name in own}
    all_names = blake2b(" ".join(sorted(own)).encode(), digest_size=16).hexdigest()
    for file in files:
        for name, count in _used_in(contents.of(file), names, all_names, memo):
            used[name] += count
    return frozenset(name for name in own if used[name] == own[name] and defined[name] == 1)


def unused_functions(modules: Modules, folders: Iterable[Path], memo: FactMemo) -> frozenset[str]:
    """The names of private functions of modules that occur nowhere but in their definition.

    Only whole packages and projects are looked at: elsewhere another part may import them.
    """
    named = [folder.resolve() for folder in folders]
    if not named or any((folder.parent / "__init__.py").exists() for folder in named):
        return frozenset()
    return frozenset(
        name
        for file, content in modules.items()
        for name in _private_in(content, memo)
        if not any(name.encode() in m.data for each, m in modules.items() if each is not file)
    )


def _private_in(content: Content, memo: FactMemo) -> tuple[str, ...]:
    """The private functions of a module that it does not use itself, and that read data."""

    def answer() -> list[str]:
        is_torch = b"torch" in content.data
        return [name.decode() for name in _private(content.data)] if is_torch else []

    return memo.recall("private functions", (content.digest,), answer, texts)


def _private(data: bytes) -> Iterator[bytes]:
    for definition in _PRIVATE.finditer(data):
        name = definition[1]
        end = _BODY.search(data, definition.end())
        body_end = len(data) if end is None else end.start()
        is_alone = data.count(name) == 1 and not _is_decorated(data, definition.start())
        if is_alone and READS.search(data, definition.end(), body_end) is not None:
            yield name


def _is_decorated(data: bytes, at: int) -> bool:
    before = data[max(at - _LONGEST_DECORATOR, 0) : at].rstrip()
    return before.rpartition(b"\n")[2].startswith(b"@")


def may_be_used_elsewhere(folder: Path) -> bool:
    """Whether others may use what a folder holds: from the folder around it, or installed."""
    outside = folder.resolve().parent
    return (
        any((place / name).exists() for place in (folder, outside) for name in _PACKAGED_BY)
        or (folder / "__init__.py").exists()
        or next(folder.glob("*.dist-info"), None) is not None
        or next(outside.glob("*.py"), None) is not None
    )


def _defined_in(content: Content, memo: FactMemo) -> Counts:
    """Plain classes without decorators, each with how often it is in its own statement."""

    def answer() -> Counts:
        return [(name.decode(), count) for name, count in _defined(content.data)]

    return memo.recall("plain classes", (content.digest,), answer, _read_counts)


def _used_in(content: Content, names: Collection[bytes], all_names: str, memo: FactMemo) -> Counts:
    """How often each of some names is in a file."""

    def answer() -> Counts:
        words = Counter(word for word in _WORD.findall(content.data) if word in names)
        return sorted((name.decode(), count) for name, count in words.items())

    return memo.recall("uses of names", (content.digest, all_names), answer, _read_counts)


def _read_counts(plain: Any) -> Counts:
    if not all(isinstance(count, int) for _, count in plain):
        raise TypeError("no counts")
    return [(text(name), count) for name, count in plain]


def _defined(data: bytes) -> Iterator[tuple[bytes, int]]:
    for found in _CLASS.finditer(data):
        if _is_decorated(data, found.start()) or (found[2] or b"") not in _PLAIN_BASES:
            continue
        end = _BODY.search(data, found.end())
        body = data[found.start() : len(data) if end is None else end.start()]
        yield found[1], _WORD.findall(body).count(found[1])
