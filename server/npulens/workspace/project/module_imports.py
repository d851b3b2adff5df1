"""What the imports of a module say, as far as other files of the project are concerned."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.failing_imports import tried_parts
from npulens.verdicts.library_questions import library_asked_for
from npulens.workspace.project.contents import Content
from npulens.workspace.project.fact_memo import FactMemo, text, texts

_IMPORT = b"import"
"""Plain searches: an expression takes seconds for large projects."""
_COMMENT = re.compile(rb"[#\\].*")
_WORD = re.compile(rb"\w+")


class ImportWords(NamedTuple):
    """The words of all imports: in `from a.b import c` `a` and `b` are modules, `c` is a name."""

    modules: frozenset[str]
    names: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """All words of the imports."""
        return self.modules | self.names


class ModuleImport(NamedTuple):
    """One import of a module.

    Attributes:
        level: Of a relative import its dots, 0 of an absolute one, -1 of a plain `import a.b`.
        module: What is imported from; empty if nothing is named.
        names: What is imported, each with the name that it gets.
        is_guarded: It may fail, or stands under a condition that asks for a library.
        is_at_top: It is a statement of the module itself.
    """

    level: int
    module: str
    names: tuple[tuple[str, str], ...]
    is_guarded: bool
    is_at_top: bool


def import_words(content: Content, memo: FactMemo) -> ImportWords:
    """The words of a module's imports, and some more: comments may speak of imports."""

    def answer() -> list[str]:
        modules, names = [], []
        for module, name in _imports(content.data):
            modules.append(module)
            names.append(name)
        return [_words(modules), _words(names)]

    return memo.recall("words of imports", (content.digest,), answer, _read_words)


def _words(parts: list[bytes]) -> str:
    return b" ".join(sorted({*_WORD.findall(b" ".join(parts))})).decode("ascii")


def _read_words(plain: Any) -> ImportWords:
    modules, names = plain
    return ImportWords(frozenset(text(modules).split()), frozenset(text(names).split()))


def imported_names(content: Content, memo: FactMemo) -> tuple[str, ...]:
    """What `imported_modules` says of a module, each once and in order."""

    def answer() -> list[str]:
        return sorted(set(imported_modules(content.data)))

    return memo.recall("imported modules", (content.digest,), answer, texts)


def imported_from(data: bytes) -> Iterator[tuple[str, frozenset[str]]]:
    """The last part of the name of each module that a text imports from, and the words behind."""
    for before, behind in _imports(data):
        last = _WORD.findall(before)[-1:]
        if last:
            yield last[0].decode("ascii"), frozenset(_words([behind]).split())


def imported_modules(data: bytes) -> Iterator[str]:
    """What a text imports: of `from .a import b` both `.a` and `.a.b`, for both may be modules."""
    for before, behind in _imports(data):
        names = [each.split()[:1] for each in _COMMENT.sub(b"", behind).strip(b"() \t").split(b",")]
        first = [b"".join(words).decode("ascii", "ignore") for words in names]
        source = before.split()
        if source[:1] != [b"from"]:
            yield from filter(None, first)
            continue
        module = b"".join(source[1:]).decode("ascii", "ignore")
        yield module
        joint = "" if module.endswith(".") else "."
        yield from (f"{module}{joint}{name}" for name in first if name.isidentifier())


def _imports(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What stands before each `import` in its line, and behind it.

    Behind it is what is imported: up to the closing bracket, or to the end of the line.
    """
    end = 0
    at = data.find(_IMPORT)
    while at >= 0:
        start = at + len(_IMPORT)
        if data[start : start + 1] in (b" ", b"\t", b"(", b"\\"):
            before = data[max(data.rfind(b"\n", end, at), end) : at]
            bracket = data.startswith((b"(", b" ("), start)
            end = data.find(b")" if bracket else b"\n", start)
            end = len(data) if end < 0 else end
            yield before, data[start:end]
            start = end
        at = data.find(_IMPORT, start)


def module_imports(content: Content, memo: FactMemo) -> tuple[ModuleImport, ...]:
    """All imports of a module; none of one that does not parse."""

    def answer() -> list[ModuleImport]:
        tree = parse(content.text)
        return [] if isinstance(tree, SyntaxProblem) else list(_found(tree))

    return memo.recall("imports", (content.digest,), answer, _read_imports)


def _read_imports(plain: Any) -> tuple[ModuleImport, ...]:
    return tuple(_read_import(*record) for record in plain)


def _read_import(
    level: Any, module: Any, names: Any, is_guarded: Any, is_at_top: Any
) -> ModuleImport:
    if type(level) is not int or not isinstance(module, str):
        raise TypeError("no import")
    if not isinstance(is_guarded, bool) or not isinstance(is_at_top, bool):
        raise TypeError("no import")
    pairs = tuple((name, known_as) for name, known_as in map(texts, map(list, names)))
    return ModuleImport(level, module, pairs, is_guarded, is_at_top)


def imported_paths(each: ModuleImport, file: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The modules that an import may read, as parts of a path; whether from the root of one."""
    if each.level < 0:
        yield from ((tuple(name.split(".")), False) for name, _ in each.names)
        return
    module = tuple(each.module.split(".")) if each.module else ()
    if each.level:
        parents = file.parent.parts
        module = (*parents[: len(parents) - (each.level - 1)], *module)
    yield module, bool(each.level)
    yield from (((*module, name), bool(each.level)) for name, _ in each.names)


def _found(tree: ast.Module) -> Iterator[ModuleImport]:
    pending: list[tuple[ast.AST, bool, ast.AST]] = [(tree, False, tree)]
    while pending:
        node, is_guarded, owner = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            level, module = -1, ""
            if isinstance(node, ast.ImportFrom):
                level, module = node.level, node.module or ""
            names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
            yield ModuleImport(level, module, names, is_guarded, owner is tree)
            continue
        guarded: set[ast.AST] = set()
        if isinstance(node, ast.Try):
            guarded.update(tried_parts(node))
        elif isinstance(node, ast.If):
            asked = joined(node.test, _without_all)
            if asked.holds is not None:
                guarded.update(node.orelse if asked.holds else node.body)
        inside = [
            (child, is_guarded or child in guarded, node)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
        ]
        pending += reversed(inside)


def _without_all(part: ast.expr) -> Answer:
    """What a part of a condition comes to where nothing that it asks for is there."""
    return Answer(False) if library_asked_for(part) else UNKNOWN
