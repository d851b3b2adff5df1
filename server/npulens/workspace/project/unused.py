"""Classes and functions that nothing of a project uses, such as losses that were tried once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_MAX_SIZE = 2_000_000
"""In bytes; larger files are generated."""
_LONGEST_DECORATOR = 500
_PACKAGED_BY = ("setup.py", "setup.cfg", "pyproject.toml")
_CLASS = re.compile(rb"(?:^|(?<=\n))class (\w+)[ \t]*(?:\(([\w. ]*)\))?[ \t]*:")
_PRIVATE = re.compile(rb"\ndef (_[a-z]\w*)\(")
_READS = re.compile(
    rb"nonzero|unique|masked_|nms\(|\.(?:item|tolist|cpu|any|all)\(|where\(|mask\w*\]"
)
"""What makes it worth asking whether a function is used: such are told of."""
_BODY = re.compile(rb"\n(?=[^\s#)])")
_WORD = re.compile(rb"\w+")
_PLAIN_BASES = frozenset(
    b" object nn.Module torch.nn.Module autograd.Function torch.autograd.Function".split(b" ")
)
"""Of these nobody hears that there is a class of them."""


def unused_classes(files: Sequence[Path], folders: Iterable[Path]) -> frozenset[str]:
    """The names of classes that are named nowhere but in themselves.

    Others may import what a package offers, so only projects that cannot be installed are looked
    at, and only as a whole.

    Args:
        files: All files of the project that are checked.
        folders: The folders that the user named.
    """
    named = list(folders)
    if not named or any(_is_part_or_package(folder) for folder in named):
        return frozenset()
    texts = [data for file in files if (data := _data(file))]
    own: Counter[bytes] = Counter()
    defined: Counter[bytes] = Counter()
    for name, count in (found for data in texts for found in _defined(data)):
        own[name] += count
        defined[name] += 1
    if not own:
        return frozenset()
    used = Counter(word for data in texts for word in _WORD.findall(data) if word in own)
    return frozenset(n.decode() for n in own if used[n] == own[n] and defined[n] == 1)


def unused_functions(modules: Mapping[Path, bytes], folders: Iterable[Path]) -> frozenset[str]:
    """The names of private functions of modules that stand nowhere but in their definition.

    Only whole packages and projects are looked at: elsewhere another part may import them.

    Args:
        modules: The content of the Python files of the project.
        folders: The folders that the user named.
    """
    named = [folder.resolve() for folder in folders]
    if not named or any((folder.parent / "__init__.py").exists() for folder in named):
        return frozenset()
    found = set()
    for file, data in modules.items():
        for definition in _PRIVATE.finditer(data) if b"torch" in data else ():
            name = definition[1]
            end = _BODY.search(data, definition.end())
            if (
                _READS.search(data, definition.end(), len(data) if end is None else end.start())
                is None
            ):
                continue
            is_decorated = (
                data[max(definition.start() - _LONGEST_DECORATOR, 0) : definition.start()]
                .rstrip()
                .rpartition(b"\n")[2][:1]
                == b"@"
            )
            if data.count(name) != 1 or is_decorated:
                continue
            if not any(name in other for each, other in modules.items() if each is not file):
                found.add(name.decode())
    return frozenset(found)


def _is_part_or_package(folder: Path) -> bool:
    """Whether others may use what a folder holds: from the folder around it, or installed."""
    outside = folder.resolve().parent
    return (
        any((place / name).exists() for place in (folder, outside) for name in _PACKAGED_BY)
        or (folder / "__init__.py").exists()
        or next(folder.glob("*.dist-info"), None) is not None
        or next(outside.glob("*.py"), None) is not None
    )


def _data(file: Path) -> bytes:
    """The content of a file, nothing of one that cannot be read; checking it says so."""
    try:
        return file.read_bytes() if file.stat().st_size <= _MAX_SIZE else b""
    except OSError:
        return b""


def _defined(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Plain classes without decorators, each with how often it stands in its own statement."""
    for found in _CLASS.finditer(data):
        before = data[max(found.start() - _LONGEST_DECORATOR, 0) : found.start()].rstrip()
        is_decorated = before.rpartition(b"\n")[2].startswith(b"@")
        if is_decorated or (found[2] or b"") not in _PLAIN_BASES:
            continue
        end = _BODY.search(data, found.end())
        body = data[found.start() : len(data) if end is None else end.start()]
        yield found[1], _WORD.findall(body).count(found[1])
