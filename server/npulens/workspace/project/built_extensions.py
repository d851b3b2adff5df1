"""Extension modules that a project builds: what build files declare, and how modules load them."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from npulens.checks.other_files.cmake_targets import cuda_targets
from npulens.checks.other_files.cpp_bindings import CUDA_SUFFIXES
from npulens.syntax.bindings import target_names
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.walking import names_in, nodes_below, parents_below
from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, text, texts, truth
from npulens.workspace.project.composed_text import composed_text
from npulens.workspace.project.optional_kernels import BUILD_FILE, globals_of

_BUILDERS = b"cpp_extension"
_EXTENSION = re.compile(r"extension|(?:^|_)ext(?:_|$)", re.IGNORECASE)
_CUDA, _HOST, _LOADED, _SOME = "cuda", "host", "loaded", "some"
_KINDS = {
    "CUDAExtension": _CUDA,
    "CppExtension": _HOST,
    "load": _LOADED,
    "load_inline": _LOADED,
}
_MODULE = "cpp_extension"
_MAX_CALLS = 200
"""Of a helper that makes extensions; more are not looked at."""


class Extension(NamedTuple):
    """An extension module as a file declares it.

    Attributes:
        module: Its name, with that of its package as far as that is known.
        sources: What it is made of, as names without folders.
        is_cuda: It is made of CUDA code.
        bound: Names of the module that hold what `load` gave, of an extension that is built when
            the program runs; others can be imported.
        is_loaded: It is built when the program runs.
    """

    file: Path
    module: str
    sources: frozenset[str]
    is_cuda: bool
    line: int
    bound: tuple[str, ...] = ()
    is_loaded: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the file that builds it."""
        return self.file.parent

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.module.rpartition(".")[2]


class _Declared(NamedTuple):
    module: str
    sources: tuple[str, ...]
    is_cuda: bool
    line: int
    bound: tuple[str, ...]
    is_loaded: bool


def extensions_of(modules: Modules, memo: FactMemo) -> dict[Path, list[Extension]]:
    """The extension modules that the Python files of a project build, by file.

    Files are read that build something by their names, or that use PyTorch's builders.
    """
    return {
        file: [Extension(file, e[0], frozenset(e[1]), *e[2:]) for e in _declared_in(content, memo)]
        for file, content in modules.items()
        if BUILD_FILE.search(file.stem) or _BUILDERS in content.data
    }


def _declared_in(content: Content, memo: FactMemo) -> tuple[_Declared, ...]:
    def answer() -> list[_Declared]:
        tree = tree_or_none(content.text)
        return [] if tree is None else list(_BuildFile(tree).declared())

    return memo.recall("extensions built", (content.digest,), answer, _read)


def _read(plain: Any) -> tuple[_Declared, ...]:
    return tuple(_read_one(*each) for each in plain)


def _read_one(
    module: Any, sources: Any, is_cuda: Any, line: Any, bound: Any, is_loaded: Any
) -> _Declared:
    if type(line) is not int:
        raise TypeError("no line")
    names, bound_names = texts(list(sources)), texts(list(bound))
    return _Declared(text(module), names, truth(is_cuda), line, bound_names, truth(is_loaded))


def cmake_extensions(files: Mapping[Path, Content], memo: FactMemo) -> list[Extension]:
    """The modules that CMake builds of CUDA code."""

    def answer(content: Content) -> list[_Declared]:
        return [
            _Declared(target.name, target.sources, True, target.line, (), False)
            for target in cuda_targets(content.text)
            if target.is_module and target.name.isidentifier()
        ]

    found = []
    for file, content in files.items():
        compute = partial(answer, content)
        known = memo.recall("extensions of CMake", (content.digest,), compute, _read)
        found += [Extension(file, e[0], frozenset(e[1]), *e[2:]) for e in known]
    return found


class _BuildFile:
    """A file that may build extensions."""

    def __init__(self, tree: ast.Module) -> None:
        self._nodes = list(nodes_below(tree))
        self._owners = parents_below(tree)
        self._makers: dict[str, str] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._named_sources: dict[str, set[str]] = {}
        for node in self._nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(_MODULE):
            for alias in node.names:
                if alias.name in _KINDS:
                    self._makers[alias.asname or alias.name] = _KINDS[alias.name]
        elif isinstance(node, ast.Assign):
            for name in (name for target in node.targets for name in target_names(target)):
                self._values.setdefault(name, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._values.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._calls.setdefault(node.func.id, []).append(node)

    def declared(self) -> Iterator[_Declared]:
        """The extensions that its calls declare; those of a helper where it is called."""
        for node in self._nodes:
            kinds = self._kinds(node.func) if isinstance(node, ast.Call) else set()
            if isinstance(node, ast.Call) and kinds:
                helped = list(self._through_helper(node, kinds))
                yield from helped or self._direct(node, kinds)

    def _kinds(self, callee: ast.expr) -> set[str]:
        """What a callee may build; nothing of one that builds no extension."""
        if isinstance(callee, ast.Attribute):
            kind = _KINDS.get(callee.attr)
            if kind == _LOADED:
                return {kind} if _MODULE in ast.unparse(callee.value) else set()
            return {kind or _SOME} if kind or _EXTENSION.search(callee.attr) else set()
        if not isinstance(callee, ast.Name):
            return set()
        if callee.id in self._makers:
            return {self._makers[callee.id]}
        kinds = set()
        for value in self._values.get(callee.id, ()):
            if isinstance(value, ast.Attribute) and value.attr in _KINDS:
                kinds.add(_KINDS[value.attr])
            elif isinstance(value, ast.Name) and value.id in self._makers:
                kinds.add(self._makers[value.id])
        return kinds or ({_SOME} if _EXTENSION.search(callee.id) else set())

    def _direct(self, call: ast.Call, kinds: set[str]) -> Iterator[_Declared]:
        named = _argument(call, "name")
        module = composed_text(named, self._constants) or end_of_text(named)
        sources = self._sources(call)
        is_cuda = _CUDA in kinds or any(s.endswith(CUDA_SUFFIXES) for s in sources)
        bound = tuple(self._bound(call)) if _LOADED in kinds else ()
        is_cuda = is_cuda or (_LOADED in kinds and self._gives_cuda(call)) or _is_with_cuda(call)
        yield from _checked(module, sources, is_cuda, call, bound, _LOADED in kinds)

    def _through_helper(self, call: ast.Call, kinds: set[str]) -> Iterator[_Declared]:
        """What the calls of a function declare that passes on the name of an extension."""
        helper = self._function_around(call)
        named = _argument(call, "name")
        if helper is None or composed_text(named, self._constants):
            return
        is_loaded, has_flags = _LOADED in kinds, self._gives_cuda(call)
        for use in self._calls.get(helper.name, ())[:_MAX_CALLS]:
            module = composed_text(named, {**self._constants, **_given(helper, use)})
            if module:
                sources = self._sources(use)
                has_cuda = any(s.endswith(CUDA_SUFFIXES) for s in sources)
                is_cuda = has_cuda or (_CUDA in kinds and not (_HOST in kinds and sources))
                is_cuda = is_cuda or (is_loaded and has_flags)
                bound = tuple(self._bound(use)) if is_loaded else ()
                yield from _checked(module, sources, is_cuda, use, bound, False)

    def _function_around(self, node: ast.AST) -> ast.FunctionDef | None:
        while node in self._owners:
            node = self._owners[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None

    @cached_property
    def _constants(self) -> Mapping[str, ast.expr]:
        """The names that are assigned once in the file."""
        return {name: values[0] for name, values in self._values.items() if len(values) == 1}

    def _sources(self, call: ast.Call) -> list[str]:
        """The sources among the strings of a call, and of what its arguments are assigned."""
        found = set(_sources_in(call))
        for name in set(names_in(call)):
            if name not in self._named_sources:
                values = self._values.get(name, ())
                self._named_sources[name] = {s for v in values for s in _sources_in(v)}
            found |= self._named_sources[name]
        return sorted(found)

    def _gives_cuda(self, call: ast.Call) -> bool:
        """Whether `load_inline` is given CUDA code, or `load` flags for its compiler."""
        return any(k.arg in ("cuda_sources", "extra_cuda_cflags") for k in call.keywords)

    def _bound(self, call: ast.Call) -> Iterator[str]:
        """The names of the module that hold the result of a call."""
        owner = self._owners.get(call)
        if not isinstance(owner, ast.Assign):
            return
        names = [name for target in owner.targets for name in target_names(target)]
        function = self._function_around(call)
        if function is not None:
            shared = globals_of(function)
            names = [name for name in names if name in shared]
        yield from names


def _checked(
    module: str,
    sources: list[str],
    is_cuda: bool,
    call: ast.Call,
    bound: tuple[str, ...],
    is_loaded: bool,
) -> Iterator[_Declared]:
    parts = module.replace("/", ".").split(".")
    if not parts[-1].isidentifier():
        return
    if not all(part.isidentifier() for part in parts):
        parts = parts[-1:]
    files = tuple(s for s in sources if "*" not in s)
    yield _Declared(".".join(parts), files, is_cuda, call.lineno, bound, is_loaded)


def _is_with_cuda(call: ast.Call) -> bool:
    """`create_extension("_ext.boxes", with_cuda=with_cuda)` of PyTorch before 1.0."""
    given = (keyword.value for keyword in call.keywords if keyword.arg == "with_cuda")
    return any(not isinstance(value, ast.Constant) or value.value is True for value in given)


def _argument(call: ast.Call, name: str) -> ast.expr | None:
    """An argument that comes first or is given by name."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    return given.get(name, call.args[0] if call.args else None)


def _given(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """The values of the parameters of a function in a call."""
    names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    defaults = function.args.defaults
    found = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found.update(zip(names, call.args, strict=False))
    found.update((k.arg, k.value) for k in call.keywords if k.arg is not None)
    return found


def end_of_text(node: ast.expr | None) -> str:
    """A string, or the end of one that is put together."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return end_of_text(node.values[-1])
    if isinstance(node, ast.BinOp):
        return end_of_text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _sources_in(root: ast.AST) -> Iterator[str]:
    """The names of C++ and CUDA sources among the strings of an expression, without folders."""
    for node in nodes_below(root):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.replace("\\", "/").rpartition("/")[2]
            if kind_by_name(name) is Kind.NATIVE:
                yield name
