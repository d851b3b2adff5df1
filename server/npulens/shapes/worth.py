"""Which functions are worth evaluating: those whose text holds a word of some source."""

import ast
import re
from collections.abc import Iterable, Iterator

from npulens.graphs.definitions import ClassHere, Definitions, FunctionHere
from npulens.syntax.bindings import Function

_HOST_CODE = re.compile(r"Dataset|Transform|Augment|Visuali[sz]er|Sampler|Tokenizer|Processor")
_HOST_FUNCTION = re.compile(r"__getitem__|__repr__|__str__|collate|visuali[sz]e|plot|^draw|^show")
_SOURCE = re.compile(
    r"nonzero|argwhere|masked_select|unique|bincount|repeat_interleave|combinations|nms\b"
    r"|one_hot|lstsq|pack_padded|to_sparse|\.item\(|\.tolist\(|\.cpu\(|\.numpy\(|allclose"
    r"|\.equal\(|synchronize|error_if_nonfinite|assert_close"
    r"|where\([^,()]*(?:\([^()]*\))?[^,()]*\)"
    r"|^[ \t]*(?:el)?(?:if|while|assert)\b.*\.(?:any|all|sum|max|min|mean|norm)\("
    r"|(?:int|float|bool)\([^()\n]*\.(?:any|all|sum|max|min|mean)\("
    r"|arange\([^()\n]*\.max\(|DataLoader\(|DataCollator|\binterpolate\("
    r"|(\w+) = torch\.(?:cat|concat)\(\s*[\[(]\s*\1\b",
    re.MULTILINE,
)
_MASK = re.compile(
    r"(?:[=(,&|~\[]\s*[\w.\[\]()]+ (?:==|!=|<=?|>=?) )|isnan|isinf|isfinite|logical_|\.bool\(\)"
    r"|torch\.bool|\.(?:eq|ne|gt|lt|ge|le)\("
)
_INDEXED = re.compile(r"\w\[~?\(?[A-Za-z_][\w.]*(?:\[|\]|\(| [<>=!&|]|, )")


def is_worth(text: str) -> bool:
    """Whether the text of a function holds a word of some source."""
    if _SOURCE.search(text) is not None:
        return True
    return _MASK.search(text) is not None and _INDEXED.search(text) is not None


def is_host_code(function: FunctionHere) -> bool:
    """Whether a function prepares data or pictures on the host."""
    if _HOST_FUNCTION.search(function.node.name) is not None:
        return True
    return function.owner is not None and _HOST_CODE.search(function.owner.node.name) is not None


def functions_of(body: Iterable[ast.stmt], definitions: Definitions) -> Iterator[FunctionHere]:
    """The functions and methods that statements of a module define."""
    for node in body:
        if isinstance(node, Function):
            function = definitions.functions.get(node.name)
            if function is not None and function.node is node:
                yield function
        elif isinstance(node, ast.ClassDef):
            found = definitions.classes.get(node.name)
            if found is not None and found.node is node:
                yield from methods_of(found)
        elif isinstance(node, ast.If | ast.Try):
            yield from functions_of(node.body, definitions)


def methods_of(owner: ClassHere) -> Iterator[FunctionHere]:
    """The methods of a class."""
    yield from owner.methods.values()
