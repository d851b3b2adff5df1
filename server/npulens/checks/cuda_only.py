"""Code that is about CUDA itself: on the NPU its other way is right, and a port changes nothing.

A fix would do harm here: with `x.is_npu` for `x.is_cuda` an NPU tensor reaches a CUDA kernel.
"""

import ast
import re
from collections.abc import Iterator

_ELSEWHERE = re.compile(r"sagemaker|colab", re.IGNORECASE)
_ABOUT_CUDA = re.compile(
    r"cuda\w*(?:capab|compat|_backend)|require\w*_(?:cuda|torch_gpu)|check_(?!is_)\w+_cuda",
    re.IGNORECASE,
)
_CAPABILITY = re.compile(r"get_device_capability|\w*cuda\w*(?:capability|support|compat\w*)\(")
_APEX = re.compile(r"\b(?:use|has|have|with)_apex\b|apex_available|\bapex is not None")
_OLD_LIBRARY = re.compile(r"\bversion\([\"'][\w-]+[\"']\)\)?\s*<")
_ROCM = re.compile(r"version\.hip|\brocm|_rocm|ROCM")
_OPTIONAL_KERNEL = re.compile(r"[\w.]*(?:kernel|\bops|_ops|_ext|cuda_obj)\w* is not None\Z")
_LIBRARY_TEST = re.compile(
    r"(?!\w*(?:cuda|gpu|device|torch|accelerate|dist))\w+_available(?:\(\))?\Z"
)
_TENSOR_DEVICE = re.compile(r"\.is_cuda\b|\bdevice\.type\b|\.device\)? [!=]= ")
_AVAILABLE = re.compile(r"torch\.cuda\.\w+\(")
_KERNEL_CALL = re.compile(r"\w+_cuda(?:_\w+)?\Z|cuda_\w+\Z|\w*[kK]ernel\w*\Z")
_PLAIN_CUDA_CALLS = frozenset({"is_cuda", "to_cuda", "move_to_cuda"})
_REFUSAL_FOR_KERNEL = re.compile(
    r"CUDA kernel|xformers|flash.?att|mamba|triton|nunchaku|tensorrt", re.IGNORECASE
)


def lives_elsewhere(text: str) -> bool:
    """Whether a name or a test is about a place that has no NPU: SageMaker, Colab."""
    return _ELSEWHERE.search(text) is not None


def is_about_cuda(function_name: str) -> bool:
    """Whether a function is about CUDA by its name: `get_cuda_capability`, `require_torch_cuda`."""
    return _ABOUT_CUDA.search(function_name) is not None


def asks_about_kernels(node: ast.BoolOp, operands: list[str]) -> bool:
    """Whether `and` asks for CUDA only to use what CUDA alone has.

    An NVIDIA architecture, a ROCm build, a kernel that may be missing:
    `ops is not None and x.is_cuda`.
    """
    if any(_ROCM.search(text) for text in operands):
        return True
    if isinstance(node.op, ast.Or):
        return False
    return any(_CAPABILITY.search(t) or _OPTIONAL_KERNEL.match(t) for t in operands)


def library_test(node: ast.BoolOp, operands: list[str]) -> int | None:
    """Where `and` or `or` asks first whether a library works.

    `is_fast_path_available and "cuda" in x.device.type`: without the library, which is for CUDA,
    the second question is never asked; nor is it in `not is_fast_path_available or ...`.
    """
    for index, text in enumerate(operands):
        if isinstance(node.op, ast.Or):
            if not text.startswith("not "):
                continue
            text = text[4:]
        if _LIBRARY_TEST.match(text):
            return index
    return None


def is_cuda_matter(node: ast.If, test: str, body: str) -> bool:
    """Whether an `if` asks for CUDA for CUDA's own sake, so that test and body are right.

    Args:
        node: The statement, whose test mentions CUDA.
        test: The text of its test.
        body: The text of its body.
    """
    if "cudagraph_mark" in body:
        return True
    if "get_device_capability" in body and _asks_only_capability(node):
        return True
    refuses = isinstance(node.body[-1], ast.Raise)
    if refuses and _REFUSAL_FOR_KERNEL.search(body):
        return True
    if not _TENSOR_DEVICE.search(test) or _AVAILABLE.search(test):
        return False
    return all(_is_contiguous(s) for s in node.body) or any(_kernel_calls(node.body))


def leaves_out_body(test: str) -> bool:
    """Whether a test keeps the NPU out of its body.

    Colab, ROCm builds, very old libraries, apex where there is another way.
    """
    if _APEX.search(test) and not re.search(r"\bnot\b(?! None)", test):
        return True
    return (
        lives_elsewhere(test) or _ROCM.search(test) is not None or bool(_OLD_LIBRARY.search(test))
    )


def _asks_only_capability(node: ast.If) -> bool:
    """Whether the body uses CUDA only to ask for the architecture."""
    for part in (part for statement in node.body for part in ast.walk(statement)):
        if isinstance(part, ast.Constant):
            used = isinstance(part.value, str) and part.value.startswith("cuda")
        elif isinstance(part, ast.Attribute):
            owner = part.value
            used = isinstance(owner, ast.Attribute) and owner.attr == "cuda"
            used = used and part.attr != "get_device_capability"
        else:
            callee = part.func if isinstance(part, ast.Call) else None
            used = isinstance(callee, ast.Attribute) and callee.attr == "cuda"
        if used:
            return False
    return True


def _is_contiguous(statement: ast.stmt) -> bool:
    """`x = x.contiguous()`: a way around a CUDA attention kernel, harmless to leave out."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "contiguous"
        and not statement.value.args
        and not statement.value.keywords
    )


def _kernel_calls(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                callee = node.func
                name = callee.attr if isinstance(callee, ast.Attribute) else ""
                name = name or getattr(callee, "id", "")
                if _KERNEL_CALL.match(name) and name not in _PLAIN_CUDA_CALLS:
                    yield name
