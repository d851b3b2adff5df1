"""Runtimes of other accelerators and of the host, which take what tensors hold from host memory."""

import ast
import re
from collections.abc import Iterable, Iterator

from npulens.syntax.bindings import Bindings
from npulens.syntax.values import Imported
from npulens.syntax.words import Words
from npulens.text.late_patterns import late

_NAMES = (
    "MNN|ai_edge_litert|ais_bench|axelera|coreai|coremltools|dx_engine|executorch|hailo_platform|ncnn"
    "|onnxruntime|openvino|paddle|qai_appbuilder|rknn|rknnlite|tensorflow|tensorrt|tflite_runtime"
    "|tritonclient"
)
_ROOTS = frozenset(_NAMES.split("|"))
_IMPORT = late(rf"^[ \t]*(?:from|import)[ \t]+(?:{_NAMES})\b|[\"']tritonclient\b", re.MULTILINE)
_MODULE = late(rf"(?!tensorflow)(?:{_NAMES})(?:\.|\Z)")
"""A module that works with TensorFlow as well as with PyTorch imports both at its top."""
_COPIES = frozenset({"cpu", "numpy", "to"})


def runtime_names(segments: Iterable[Bindings]) -> Iterator[str]:
    """Names of a module that represent such a runtime or a part of it."""
    for bindings in segments:
        for name, found in bindings.names.items():
            imported = (each.value for each in found if isinstance(each.value, Imported))
            if any(_MODULE.match(value.qualified) is not None for value in imported):
                yield name


def uses_runtime(words: Words, names: re.Pattern[str] | None) -> bool:
    """Whether a class or function imports such a runtime, or uses names that represent one."""
    if not _ROOTS.isdisjoint(words.identifiers) and _IMPORT.search(words.text) is not None:
        return True
    return names is not None and names.search(words.text) is not None


def is_copy(node: ast.AST) -> bool:
    """Whether a call copies a tensor to the host, and reads no single value of it."""
    callee = node.func if isinstance(node, ast.Call) else None
    return isinstance(callee, ast.Attribute) and callee.attr in _COPIES
