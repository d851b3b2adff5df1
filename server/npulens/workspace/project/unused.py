"""Classes, functions and methods that nothing of a project uses, such as losses tried once."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from npulens.text.late_patterns import late
from npulens.workspace.files.repository import read_plain
from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo, text, texts

_LONGEST_DECORATOR = 500
_PACKAGED_BY = {
    "setup.py": late(rb""),
    "setup.cfg": late(rb"(?m)^\[(?:metadata|options)"),
    "pyproject.toml": late(rb"(?m)^\[(?:project|build-system|tool\.(?:poetry|flit|pdm))"),
}
"""Files by which a project can be installed, and what they hold then."""
_LARGEST_SETTING = 1_000_000
_PART = late(rb"\n(?=[^\s#)\]}'\"])")
"""Where statements of a module begin."""
_CLASS = late(rb"class (\w+)[ \t]*(?:\(([\w. ]*)\))?[ \t]*:")
_FUNCTION = re.compile(rb"(?:async[ \t]+)?def (\w+)[ \t]*\(")
_METHOD = late(rb"\n(?:    |\t)(?:async[ \t]+)?def (\w+)[ \t]*\(")
_CALLED_BY_OTHERS = late(
    rb"__\w+__|main|test\w*|Test\w*|pytest_\w+|set_?[uU]p\w*|tear_?[dD]own\w*"
    rb"|forward|backward|extra_repr|reset_parameters|[gs]et_extra_state|_load_from_state_dict"
    rb"|write|writelines|flush|read|readline|close|emit|format|filter|handle|run|default"
)
"""What Python, PyTorch, tests and launchers call by these names."""
_CALLED_BY_NAME = {
    (b"getattr(",): late(
        rb"getattr\((?<!\w........)([\w.]{1,80}),[ \t]*(?![ \t\"'f])[^()\n]{1,80}\)[ \t]*\("
    ),
    (b"eval(",): late(rb"eval\((?<![\w.].....)(?<!def .....)"),
    (b"__dict__",): late(
        rb"(?m)(?:^|(?<=[^\w.]))([\w.]{1,80})\.__dict__[ \t]*\[(?![\"'])[^\]\n]{1,80}\][ \t]*\("
    ),
    (b"globals()", b"vars("): late(
        rb"(?:globals\(\)|vars\(\w+\))[ \t]*\[(?![\"'])[^\]\n]{1,80}\][ \t]*\("
    ),
}
"""`getattr(losses, settings["loss"])(...)`, `models.__dict__[args.arch]()`, `eval(args.model)`.

By words of which one stands in each.
"""
_OF_TORCH = late(
    rb"(?m)^[ \t]*(?:import|from)[ \t]+(?:torch|torchvision)\b[^\n#]*?\b(\w+)[ \t]*(?=$|#|,|\r)"
)
"""What a module calls something of PyTorch, in which no definition of the project is looked up."""
_MADE_UP = late(rb"[\"'](\w+_)(?:\{|[\"'][ \t]*[+%.])|\}(_\w+)[\"']|[+][ \t]*[\"'](_\w+)[\"']")
"""Beginnings and ends of names that are put together: `getattr(self, f"load_{kind}")`."""
_PRIVATE = late(rb"\ndef (_[a-z]\w*)\(")
READS = late(
    rb"nonzero|unique|masked_|nms\(|\.(?:item|tolist|cpu|any|all)\(|where\(|mask\w*\]|cuda|nccl"
)
"""What makes a function worth the check whether it is used."""
_BODY = late(rb"\n(?=[^\s#)])")
_CALL = late(rb"^(?:[A-Za-z_][\w.]*\(|if\b.*__name__|for\b|while\b|with\b)", re.MULTILINE)
"""A statement at the top of a module that runs something."""
_WORD = late(rb"\w+")
_COMMENT = late(rb"(?m)^[ \t]*#[^\n]*")
_RENAMED = late(rb"(\w+)[ \t]+as[ \t]+\w+")
_PLAIN_BASES = frozenset(
    b" object nn.Module torch.nn.Module autograd.Function torch.autograd.Function".split(b" ")
)
"""Of these nobody hears that there is a class of them."""

_MAIN = b"\nif __name__"
_MADE_INPUT = late(rb"\btorch\.(?:rand|randn|randint|ones|zeros)\(")
_WORKS = late(
    rb"\bbackward|\.step\(|load|open\(|read|argparse|parse_args|argv|save|write|Data[sl]|\bmain\("
)
"""What a main program does that is more than to try out the definitions around it."""
_ENTRANCES = frozenset({"conftest.py", "hubconf.py"})
_HARMLESS = late(
    rb"@(?:torch\.)?(?:no_grad|inference_mode|jit\.\w+|staticmethod|classmethod|property)\b"
)
"""Decorators by which nobody else comes to know a function."""

Uses = list[tuple[str, str]]
"""The definition around a use, empty outside of any, and the name that is used there."""


def unused_definitions(
    files: Sequence[Path], folders: Iterable[Path], contents: Contents, memo: FactMemo
) -> frozenset[str]:
    """The names of classes, functions and methods that are named nowhere but in themselves.

    Or in others that nothing uses; names of several definitions are left out. Others may import
    what a package offers, so only projects that cannot be installed are looked at, as a whole.
    """
    if not runs_alone(folders):
        return frozenset()
    ways = {way for file in files for way in _calls_by_name(contents.of(file), memo)}
    if "" in ways:
        return frozenset()
    modules = [contents.of(file) for file in files if file.suffix == ".py"]
    has_tryout = any(_has_tryout(module, memo) for module in modules)
    if has_tryout and not any(runs_something(module, memo) for module in modules):
        return frozenset()  # all there is to run is what tries it out
    defined = Counter(name for file in files for name in _defined_in(file, contents.of(file), memo))
    methods = {
        name for file in files for name in _methods_in(file, contents.of(file), memo)
    }  # several classes may have a method that others call by its name
    once = {name for name, count in defined.items() if count == 1 or name not in methods}
    once -= methods if ways else set()
    if not once:
        return frozenset()
    names = frozenset(name.encode() for name in once)
    all_names = blake2b(" ".join(sorted(once)).encode(), digest_size=16).hexdigest()
    uses: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for owner, name in _used_in(file, contents.of(file), names, all_names, memo):
            uses[name].add(owner)
    unused = _without_uses(once, uses)
    return unused if len(unused) < len(defined) else frozenset()  # it is all for somebody else


def _calls_by_name(content: Content, memo: FactMemo) -> tuple[str, ...]:
    """Where names that are made up are called: `"self"` for methods, `""` for anything.

    Any of what is there may be called, from a setting or an option.
    """

    def answer() -> list[str]:
        data = content.data
        owners = [
            (found[1] or b"") if found.re.groups else b""
            for words, way in _CALLED_BY_NAME.items()
            if any(word in data for word in words)
            for found in way.finditer(data)
        ]
        of_torch = {b"torch", *_OF_TORCH.findall(data)} if any(owners) else set()
        left = {owner for owner in owners if owner.partition(b".")[0] not in of_torch}
        return sorted({"self" if owner.startswith(b"self") else "" for owner in left})

    return memo.recall("calls by name", (content.digest,), answer, texts)


def _without_uses(names: Iterable[str], uses: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Those that are used in themselves alone, or in others of which that is true."""
    unused: set[str] = set()
    left = set(names)
    while found := {name for name in left if all(o in unused or o == name for o in uses[name])}:
        unused |= found
        left -= found
    return frozenset(unused)


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
        is_alone = data.count(name) == 1 and not _has_decorator(data, definition.start())
        if is_alone and READS.search(data, definition.end(), body_end) is not None:
            yield name


def runs_alone(folders: Iterable[Path]) -> bool:
    """Whether whole projects are looked at, and others use nothing of them."""
    named = list(folders)
    return bool(named) and not any(map(_may_be_used_elsewhere, named))


def _may_be_used_elsewhere(folder: Path) -> bool:
    """Whether others may use what a folder holds: from the folder around it, or installed."""
    outside = folder.resolve().parent
    return (
        any(map(_is_packaged, (folder, outside)))
        or (folder / "__init__.py").exists()
        or next(folder.glob("*.dist-info"), None) is not None
        or next(outside.glob("*.py"), None) is not None
    )


def _is_packaged(folder: Path) -> bool:
    return any(
        needed.search(read_plain(str(folder / name), _LARGEST_SETTING) or b"") is not None
        for name, needed in _PACKAGED_BY.items()
        if (folder / name).exists()
    )


def _defined_in(file: Path, content: Content, memo: FactMemo) -> tuple[str, ...]:
    def answer() -> list[str]:
        names = (name.decode() for name, _ in _parts(file, content.data) if name)
        return list(dict.fromkeys(names))

    return memo.recall("plain definitions", (content.digest, _kind(file)), answer, texts)


def _methods_in(file: Path, content: Content, memo: FactMemo) -> tuple[str, ...]:
    def answer() -> list[str]:
        is_module = _kind(file) == "module"
        return sorted({m.decode() for m in _METHOD.findall(content.data)}) if is_module else []

    return memo.recall("names of methods", (content.digest, _kind(file)), answer, texts)


def _used_in(
    file: Path, content: Content, names: frozenset[bytes], all_names: str, memo: FactMemo
) -> Uses:
    """Which of some names are in a file, each with the definitions around it."""

    def answer() -> list[tuple[str, str]]:
        found = {
            (owner, word)
            for owner, part in _parts(file, content.data)
            for word in names.intersection(_WORD.findall(_code(file, part)))
        }
        found |= {(b"", name) for name in _put_together(content.data, names)}
        return sorted((owner.decode(), word.decode()) for owner, word in found)

    about = content.digest, _kind(file), all_names
    return memo.recall("uses by definition", about, answer, _read_uses)


def _code(file: Path, part: bytes) -> bytes:
    """A part of a module without lines of comments, and without names that are only imported.

    Other files come in one part, with imports at its beginning.
    """
    if _kind(file) != "module":
        return part
    code = _COMMENT.sub(b"", part) if b"#" in part else part
    is_import = code.startswith((b"from ", b"import ")) and b";" not in code
    return b" ".join(_RENAMED.findall(code)) if is_import else code


def _put_together(data: bytes, names: frozenset[bytes]) -> Iterator[bytes]:
    parts = set(_MADE_UP.findall(data))
    starts = {start for start, _, _ in parts if start}
    ends = {end or other for _, end, other in parts if end or other}
    if not parts:
        return
    forward, backward = _in_order(names)
    for start in starts:
        yield from _beginning_with(start, forward)
    for end in ends:
        yield from (name[::-1] for name in _beginning_with(end[::-1], backward))


@lru_cache(maxsize=2)
def _in_order(names: frozenset[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Names in order, and in the order of their ends, written from behind."""
    return sorted(names), sorted(name[::-1] for name in names)


def _beginning_with(start: bytes, ordered: Sequence[bytes]) -> Iterator[bytes]:
    following = islice(ordered, bisect_left(ordered, start), None)
    return takewhile(lambda name: name.startswith(start), following)


def _read_uses(plain: Any) -> Uses:
    return [(text(owner), text(name)) for owner, name in plain]


def without_tryout(data: bytes) -> bytes:
    """A module without a main program that only gives made-up inputs to what it defines."""
    start = data.find(_MAIN) + 1
    if start == 0:
        return data
    is_tryout = _MADE_INPUT.search(data, start) is not None and _WORKS.search(data, start) is None
    return data[:start] if is_tryout else data


def _has_tryout(content: Content, memo: FactMemo) -> bool:
    data = content.data
    return memo.is_so("tryout", content.digest, lambda: len(without_tryout(data)) < len(data))


def runs_something(content: Content, memo: FactMemo) -> bool:
    """Whether the top of a module does more than to define and try out."""
    data = content.data
    return memo.is_so(
        "runs something", content.digest, lambda: _CALL.search(without_tryout(data)) is not None
    )


def _kind(file: Path) -> str:
    """Whether definitions of a file are looked at; others may be used without a word of it."""
    return "module" if file.suffix == ".py" and file.name not in _ENTRANCES else "other"


def _parts(file: Path, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The statements of a module, each with the name it defines if that could be unused.

    Classes come in parts, with each of their methods by itself. A main program that only tries
    these out is no use of them.
    """
    if _kind(file) != "module":
        yield b"", data
        return
    is_registered = False
    for part in _PART.split(without_tryout(data)):
        if part.startswith(b"@"):
            is_registered = is_registered or _HARMLESS.match(part) is None
            yield b"", part
            continue
        found = _FUNCTION.match(part) or _CLASS.match(part)
        if found is None or is_registered or _CALLED_BY_OTHERS.fullmatch(found[1]):
            yield b"", part
        elif found.re is _FUNCTION:
            yield found[1], part
        elif (found[2] or b"") in _PLAIN_BASES:
            yield from _methods(found[1], part)
        else:
            yield b"", part
        is_registered = False


def _methods(owner: bytes, part: bytes) -> Iterator[tuple[bytes, bytes]]:
    start, name = 0, owner
    for found in _METHOD.finditer(part):
        yield name, part[start : found.start(1)]
        is_own = _CALLED_BY_OTHERS.fullmatch(found[1]) or _has_decorator(part, found.start())
        start, name = found.start(1), owner if is_own else found[1]
    yield name, part[start:]


def _has_decorator(data: bytes, at: int) -> bool:
    """Whether a decorator in the lines before may make more of a definition."""
    lines = reversed(data[max(at - _LONGEST_DECORATOR, 0) : at].split(b"\n"))
    stripped = (line.strip() for line in lines)
    above = takewhile(lambda line: line.startswith((b"@", b")")), stripped)
    return any(_HARMLESS.match(line) is None for line in above)
