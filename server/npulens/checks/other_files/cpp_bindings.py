"""Operators that C++ and CUDA sources bind for Python.

pybind11 modules, `TORCH_LIBRARY` and its kin, and `torch::RegisterOperators` are read; a source
counts if it really is CUDA, which a file on its own shows by its kind or by what its code names.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Related, Target
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import Catalogue
from npulens.checks.other_files.native_tokens import Token, live_tokens
from npulens.checks.shared_rules import CUDA_OPERATOR
from npulens.text.late_patterns import late
from npulens.text.spans import Span

CUDA_SUFFIXES = (".cu", ".cuh")

UNNAMED_MODULE = "TORCH_EXTENSION_NAME"
"""The name of a module that the build fills in."""

BINDERS = ("PYBIND11_MODULE", "TORCH_LIBRARY", "RegisterOperators")
"""Sources without any of these words have no findings."""
_MODULES = frozenset({"PYBIND11_MODULE", "PYBIND11_EMBEDDED_MODULE"})
_LIBRARIES = frozenset(
    {"TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_EXPAND", "TORCH_LIBRARY_IMPL"}
    | {"TORCH_LIBRARY_IMPL_EXPAND"}
)
_ELSEWHERE = late(
    r"(?<![A-Za-z])(?:npu|NPU|sycl|dpct|musa|mlu|xpu|XPU)|aclnn|PrivateUse1|privateuseone"
)
_OTHER_FOLDER = late(
    r"[\\/](?:cpu|npu|xpu|hpu|mlu|musa|mps|sycl|ascend|(?:\w+_)?(?:rocm|hip|ck))[\\/]"
)
_CUDA_NAME = late(r"cuda|cublas|cudnn|cutlass|__global__|thrust", re.IGNORECASE)
_CUDA_CODE = late(
    r"(?i:cuda|cublas|cudnn|cutlass|thrust)|__global__|__device__|\.cuh\b|<<<|_kernel\w*\("
)
_QUESTIONS = frozenset({"is_cuda", "kCUDA", "use_cuda", "with_cuda"})
"""Names that code for other devices uses, too."""
_DEMAND = late(
    r"\b(?:TORCH_(?:INTERNAL_ASSERT|CHECK)|AT_(?:ASSERTM?|CHECK))\s*\("
    r"[\s(]*[\w.()\[\]>-]{1,80}?(?P<asked>\bis_cuda\s*\(\s*\))\s*(?:[,)]|&&)"
)
"""A check that fails for data on the NPU: `TORCH_CHECK(x.device().is_cuda(), ...)`."""

_SHOWN_NAMES = 12
"""How many operators of a block a message names."""
_ANY_TARGET = Target()


class Binding(NamedTuple):
    """One operator that a source binds.

    Attributes:
        owner: The extension module or, with `registered`, the namespace.
        name: The operator.
        registered: It is reached through `torch.ops`.
        key: The dispatch key it is implemented for, or empty.
        has_code: Code is bound, not a schema alone.
        span: The string with its name.
        block: Where the block or the call starts that binds it with others.
    """

    owner: str
    name: str
    registered: bool
    key: str
    has_code: bool
    span: Span
    block: int = 0


class CppBindings(NamedTuple):
    """What a source binds; `is_cuda` says that its own code shows it to be CUDA."""

    bindings: tuple[Binding, ...]
    is_cuda: bool
    is_ported: bool


def cpp_binding_findings(
    text: str, catalogue: Catalogue, path: str, target: Target = _ANY_TARGET
) -> list[Finding]:
    """A finding for each block that binds CUDA code, at the first operator in it.

    A block is ported as a whole, and some of its functions may do no device work at all.
    """
    rule = catalogue.rule_named(CUDA_OPERATOR)
    if rule is None or path in target.project.extensions.settled_sources:
        return []
    beside_cuda = path in target.project.extensions.beside_cuda
    place = target.project.place_of(path)
    bindings = cuda_bindings(read_native_source(text, place), beside_cuda)
    found: list[Finding] = []
    for _, block in groupby(bindings, key=lambda binding: binding.block):
        bound = list(block)
        names = list(dict.fromkeys(binding.name for binding in bound))
        shown = [*names[:_SHOWN_NAMES], *(["..."] if len(names) > _SHOWN_NAMES else [])]
        beside = () if found else _demands(text)
        arguments = {"symbol": ", ".join(shown)}
        found.append(Finding(rule, bound[0].span, arguments, related=tuple(beside)))
    return found


def cuda_source(
    text: str, catalogue: Catalogue, path: str, target: Target = _ANY_TARGET
) -> list[Finding]:
    """The CUDA code of a source that the project builds, from its first place to its last, settled.

    What builds it is reported, and it is ported as a whole.
    """
    rule = catalogue.rule_named(CUDA_OPERATOR)
    extensions = target.project.extensions
    is_cuda = path.lower().endswith(CUDA_SUFFIXES) or path in extensions.beside_cuda
    if rule is None or not is_cuda or not extensions.names or path in extensions.settled_sources:
        return []
    first = _CUDA_CODE.search(text)
    if first is None:
        return []
    *_, last = _CUDA_CODE.finditer(text, first.start())
    arguments = {"symbol": path.replace("\\", "/").rpartition("/")[2]}
    settled = Settlement("reported-at-build")
    return [Finding(rule, Span(first.start(), last.end()), arguments, settlement=settled)]


def _demands(text: str) -> Iterator[Related]:
    """Where a source requests that tensors are on a CUDA device, as macros often do."""
    for token, _ in live_tokens(text):
        if token.kind == "directive":
            asked = _DEMAND.search(text, *token.span)
        else:
            asked = _DEMAND.match(text, token.span.start) if token.kind == "name" else None
        if asked is not None:
            yield Related(Span(*asked.span("asked")), message("check.refuses-npu"))


def cuda_bindings(source: CppBindings, built_with_cuda: bool = False) -> list[Binding]:
    """The bindings that need CUDA.

    Args:
        source: What was read.
        built_with_cuda: It is compiled together with CUDA files.
    """
    if source.is_ported:
        return []
    is_cuda = source.is_cuda or built_with_cuda
    return [b for b in source.bindings if b.key == "CUDA" or (is_cuda and b.has_code and not b.key)]


def read_native_source(text: str, path: str = "") -> CppBindings:
    """What a C++ or CUDA source binds; a file that binds nothing is not read."""
    if not any(word in text for word in BINDERS) or _OTHER_FOLDER.search(f"/{path}"):
        return CppBindings((), False, False)
    read = list(live_tokens(text))
    code = [token for token, _ in read if token.kind != "directive"]
    bindings = tuple(_bindings(code))
    is_cuda = path.lower().endswith(CUDA_SUFFIXES) or _shows_cuda(read)
    return CppBindings(bindings, is_cuda, any(_is_elsewhere(token) for token, _ in read))


def _is_elsewhere(token: Token) -> bool:
    """Whether a token shows that the source is for another device, or for the NPU already."""
    if token.kind == "directive":
        return "include" in token.text and _ELSEWHERE.search(token.text) is not None
    return token.kind == "name" and _ELSEWHERE.search(token.text) is not None


def _shows_cuda(read: Iterable[tuple[Token, bool]]) -> bool:
    """Whether code that every build compiles names CUDA; `!x.is_cuda()` does not count."""
    for token, only_with_cuda in read:
        if only_with_cuda:
            continue
        if token.kind == "directive":
            if "include" in token.text and _CUDA_NAME.search(token.text):
                return True
        elif token.text == "<<<" or _names_cuda(token):
            return True
    return False


def _names_cuda(token: Token) -> bool:
    is_name = token.kind == "name" and token.text not in _QUESTIONS
    return is_name and _CUDA_NAME.search(token.text) is not None


def _bindings(code: list[Token]) -> Iterator[Binding]:
    index = 0
    while index < len(code):
        token = code[index]
        index += 1
        if token.kind != "name":
            continue
        if token.text in _MODULES or token.text in _LIBRARIES:
            arguments, after = _arguments(code, index)
            if len(arguments) < 2 or after >= len(code) or code[after].text != "{":
                continue
            registered = token.text in _LIBRARIES
            key = arguments[1] if "_IMPL" in token.text and len(arguments) > 2 else ""
            end = _closing(code, after)
            body = code[after + 1 : end]
            block = token.span.start
            for binding in _of_body(body, arguments[0], arguments[-1], registered, key):
                yield binding._replace(block=block)
            index = end
        elif token.text == "RegisterOperators":
            end = index
            while end < len(code) and code[end].text not in (";", "}"):
                end += 1
            for binding in _of_registry(code[index:end]):
                yield binding._replace(block=token.span.start)
            index = end


def _arguments(code: list[Token], index: int) -> tuple[list[str], int]:
    """The arguments of a macro that are plain names, and what follows it."""
    if index >= len(code) or code[index].text != "(":
        return [], index
    names: list[str] = []
    for place in range(index + 1, min(index + 16, len(code))):
        token = code[place]
        if token.text == ")" and token.kind == "mark":
            return names, place + 1
        if token.kind == "name":
            names.append(token.text)
    return [], index


def _closing(code: list[Token], index: int) -> int:
    """Where the block ends that starts here; at the end of the text if it is never closed."""
    depth = 0
    for place in range(index, len(code)):
        if code[place].kind == "mark":
            depth += {"{": 1, "}": -1}.get(code[place].text, 0)
            if depth == 0:
                return place
    return len(code)


def _of_body(
    body: list[Token], owner: str, variable: str, registered: bool, key: str
) -> Iterator[Binding]:
    """The operators of one block: `m.def("nms", &nms).def(...)`, `m.impl("nms", ...)`."""
    subject = ""
    depth = 0
    starts = True
    for index, token in enumerate(body):
        if token.kind == "mark":
            if token.text in ("(", "["):
                depth += 1
            elif token.text in (")", "]"):
                depth -= 1
            elif token.text in ("{", "}", ";"):
                subject, depth, starts = "", 0, True
                continue
        if starts:
            subject, starts = token.text, False
        if depth == 0 and subject == variable and _is_call(body, index):
            yield from _binding(body, index + 2, owner, registered, key)


def _is_call(body: list[Token], index: int) -> bool:
    """`.def(` or `.impl(`."""
    return (
        body[index].text in ("def", "impl")
        and body[index].kind == "name"
        and index > 0
        and body[index - 1].text == "."
        and index + 1 < len(body)
        and body[index + 1].text == "("
    )


def _binding(
    body: list[Token], index: int, owner: str, registered: bool, key: str
) -> Iterator[Binding]:
    """The operator that the arguments from here on name first."""
    parts: list[Token] = []
    depth = 0
    has_code = False
    for place in range(index, len(body)):
        token = body[place]
        if token.kind == "mark":
            if token.text in (";", "{", "}") or (token.text == ")" and depth == 0):
                break
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if token.text == "," and depth == 0:
                has_code = True
                key = key or _device_key(body[place + 1 : place + 6])
                break
        elif token.kind == "string":
            parts.append(token)
    text = "".join(part.text for part in parts).strip()
    if not parts or not text:
        return
    if registered:
        text = text.partition("(")[0].strip().partition(".")[0]
        space, _, name = text.rpartition("::")
        owner = space or owner
    else:
        name = text
        has_code = True
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        span = Span(parts[0].span.start, parts[-1].span.end)
        yield Binding(owner, name, registered, key, has_code, span)


def _device_key(argument: list[Token]) -> str:
    """The key in `ops.impl("nms", torch::kCUDA, &nms)`."""
    for token in argument:
        if token.text == ",":
            break
        if token.kind == "name" and re.fullmatch(r"k[A-Z]\w*", token.text):
            return token.text[1:]
    return ""


def _of_registry(code: list[Token]) -> Iterator[Binding]:
    """`torch::RegisterOperators().op("detection::nms", &nms)`, `("detection::nms(...)", &nms)`."""
    for index, token in enumerate(code):
        if token.kind != "string" or index == 0 or code[index - 1].text != "(":
            continue
        space, found, name = token.text.partition("(")[0].strip().rpartition("::")
        if found and re.fullmatch(r"\w+", space) and re.fullmatch(r"[A-Za-z_]\w*", name):
            yield Binding(space, name, True, "", True, token.span)
