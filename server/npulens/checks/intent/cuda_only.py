"""Code that is about CUDA itself: on the NPU its other way is right, and a port changes nothing.

A fix would do harm here: with `x.is_npu` for `x.is_cuda` an NPU tensor reaches a CUDA kernel.
"""

import ast
import re
from collections.abc import Callable, Container, Iterator

from npulens.syntax.walking import nodes_below

Source = Callable[[ast.AST], str]
"""Gives the text of a node."""

_ELSEWHERE = re.compile(
    r"sagemaker|colab|azureml|(?:\A|_)(?:in|patch)_aml(?![a-z])|^(?:cuda|cpu|mps|xpu|hpu|mlu|sdaa)_?(?:accelerator|platform|backend)"
    r"|^(?:sycl|npu|xpu|hpu|cpu)_?op_?builder",
    re.IGNORECASE,
)
_ABOUT_CUDA = re.compile(
    r"cuda\w*(?:capab|compat|_backend|_kernels?_forward)|cuda_core|(?:is|has|call)_cuda_ext|require\w*_(?:cuda|torch_gpu|multi_gpu)|check_(?!is_)\w+_cuda|xformers"
    r"|nccl\w*_version|nccl_is_available",
    re.IGNORECASE,
)
_TESTS_NCCL = re.compile(r"\Atest_nccl|\ATest\w*NCCL")
_WAY_FOR_CUDA = re.compile(r"(\w+)_cuda\Z")
_OTHER_WAYS = ("_ref", "_reference", "_cpu", "_torch", "_native", "_pytorch", "_slow")
_CAPABILITY = re.compile(r"get_device_capability|\w*cuda\w*(?:capability|support|compat\w*)\(")
_LIBRARY_MISSING = re.compile(r"not _?is_(?!torch|accelerate|dist|tf|flax)\w+_available\(")
_CUDA_QUESTION = re.compile(r"torch\.cuda\.(?:is_available|get_device_capability)\(")
_OTHER_QUESTION = re.compile(r"\b(?:torch\.(?:xpu|mps)|is_torch_xpu)")
_APEX = re.compile(r"\b(?:use|has|have|with)_apex\b|apex_available|\bapex is not None")
_OLD_LIBRARY = re.compile(r"\bversion\([\"'][\w-]+[\"']\)\)?\s*<")
_BEFORE_NPU = re.compile(r"torch\w*version\(\s*max_version\s*=\s*[\"']?(?:[01]\.|2\.[0-5]\b)")
_ROCM = re.compile(r"version\.hip|\brocm|_rocm|ROCM")
_OPTIONAL_KERNEL = re.compile(r"[\w.]*(?:kernel|\bops|_ops|_ext|cuda_obj)\w* is not None\Z")
_TOOLKIT = re.compile(r"(?:[\w.]+\.)?CUDA_HOME(?: is not None)?\Z")
_LIBRARY_TEST = re.compile(
    r"(?!\w*(?:cuda|gpu|device|torch|accelerate|dist))\w+_available(?:\(\))?\Z"
)
_NO_KERNEL = re.compile(r"\w*(?:kernel|ops|_ext)\w* is None\Z")
_OLD_TORCH = re.compile(r"\(?(?:AttributeError|TypeError|, )+\)?\Z")
_NVIDIA_NAME = re.compile(r"[\w.]*nvidia\w*\s*[:=]", re.IGNORECASE)
_DRIVER = re.compile(r"^\s*import (?:pynvml|amdsmi)\b", re.MULTILINE)
_ON_CUDA = re.compile(r"\.cuda\b|[\"']cuda")
_ISINSTANCE = re.compile(r"isinstance\((\w+), ([A-Z]\w*)\)")
NEGATION = re.compile(r"!=|\bnot\b")
_TENSOR_DEVICE = re.compile(
    r"\.is_cuda\b|\bdevice(?:_type)? == |\bdevice\.type\b|\.device\)? [!=]= "
)
_AVAILABLE = re.compile(r"torch\.cuda\.\w+\(")
_KERNEL_CALL = re.compile(r"\w+_cuda(?:_\w+)?\Z|cuda_\w+\Z|\w*[kK]ernel\w*\Z|is_\w*gpu_available\Z")
_NCCL_TEST = re.compile(r"[\"']nccl[\"']|Backend\.NCCL")
_ABOUT_NCCL = re.compile(r"NCCL|nccl\w|\w_nccl|\.nccl\b")
_PLAIN_CUDA_CALLS = frozenset({"is_cuda", "to_cuda", "move_to_cuda"})
_REFUSAL_FOR_KERNEL = re.compile(
    r"CUDA kernel|(?:backend|kernel)\b.{0,20}only supported"
    r"|xformers|flash.?att|mamba|triton|nunchaku|tensorrt",
    re.IGNORECASE,
)


def lives_elsewhere(text: str) -> bool:
    """Whether a name or a test is about a place that has no NPU: SageMaker, Colab, Azure.

    So is the class that a library with several accelerators has for CUDA: `CUDAAccelerator`.
    """
    return _ELSEWHERE.search(text) is not None


def is_about_cuda(function_name: str) -> bool:
    """Whether a function is about CUDA by its name: `get_cuda_capability`, `require_torch_cuda`."""
    return _ABOUT_CUDA.search(function_name) is not None


def tests_nccl(name: str) -> bool:
    """Whether a function or class tests something of NCCL's own: `TestNCCLAllocator`."""
    return _TESTS_NCCL.match(name) is not None


def has_other_way(function_name: str, names: Container[str]) -> bool:
    """Whether a function is the way of CUDA beside another: `blur_cuda` and `blur_ref`."""
    way = _WAY_FOR_CUDA.match(function_name)
    return way is not None and any(way[1] + ending in names for ending in _OTHER_WAYS)


def asks_about_kernels(node: ast.BoolOp, operands: list[str]) -> bool:
    """Whether `and` asks for CUDA only to use what CUDA alone has.

    An NVIDIA architecture, a ROCm build, a kernel that may be missing, the CUDA toolkit:
    `ops is not None and x.is_cuda`.
    """
    if any(_ROCM.search(text) for text in operands):
        return True
    if isinstance(node.op, ast.Or):
        return False
    return any(_CAPABILITY.search(t) or _OPTIONAL_KERNEL.match(t) for t in operands) or any(
        _TOOLKIT.match(text) for text in operands
    )


def builds_for_cuda(test: str, built: str) -> bool:
    """Whether a test that mentions CUDA decides if an extension is built for it.

    `extension = CUDAExtension if torch.cuda.is_available() else CppExtension`: with the NPU in its
    place, CUDA sources would be compiled.
    """
    return "CUDAExtension" in built and not NEGATION.search(test)


def kernel_flags(function: ast.AST, source: Source) -> set[str]:
    """Names that a function asks only beside a missing kernel: `kernel is None or no_cuda`."""
    names: set[str] = set()
    for node in nodes_below(function):
        if isinstance(node, ast.BoolOp) and any(_NO_KERNEL.match(source(v)) for v in node.values):
            names.update(value.id for value in node.values if isinstance(value, ast.Name))
    return names


def tells_kernels(statement: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`use_cuda = x.is_cuda` in an operator with its own gradient, whose kernels ask for it."""
    parameters = function.args.args
    return (
        bool(parameters)
        and parameters[0].arg == "ctx"
        and isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Attribute)
        and statement.value.attr == "is_cuda"
    )


def tells_nvidia(statement: ast.stmt, source: Source) -> bool:
    """`is_nvidia = device.type == "cuda"`, which is rightly false on the NPU."""
    return (
        isinstance(statement, (ast.Assign, ast.AnnAssign))
        and _NVIDIA_NAME.match(source(statement)) is not None
    )


def before_old_torch(body: list[ast.stmt], source: Source) -> list[ast.stmt]:
    """A block up to `try: return torch.new_name(...)`, if only its absence is caught.

    What stands behind it is for releases that are older than any for the NPU.
    """
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Try) and catches_old_torch(statement, source):
            return body[: index + 1]
    return body


def catches_old_torch(node: ast.Try, source: Source) -> bool:
    """Whether `try: return torch.new_name(...)` catches only that it is not there yet.

    Or that a device has no namespace: `try: return getattr(torch, name)`.
    """
    return (
        isinstance(node.body[0], ast.Return)
        and source(node.body[0]).startswith(("return torch.", "return getattr(torch, "))
        and all(h.type and _OLD_TORCH.match(source(h.type)) for h in node.handlers)
    )


def listed_names(function: ast.AST) -> set[str]:
    """Names that a function holds against a list with the NPU: `kind not in ("gpu", "npu")`."""
    return {
        node.left.id
        for node in nodes_below(function)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and isinstance(node.comparators[0], (ast.List, ast.Tuple, ast.Set))
        and any(getattr(e, "value", "") == "npu" for e in node.comparators[0].elts)
    }


def moves_others(node: ast.If, source: Source) -> list[ast.stmt]:
    """`if isinstance(layer, QuantizedLinear): layer.cuda(device)`: a method of somebody's class."""
    tested = _ISINSTANCE.fullmatch(source(node.test))
    if tested is None or tested[2] in ("Tensor", "Module", "Parameter"):
        return []
    call = re.compile(rf"{tested[1]}\.cuda\([a-z]\w*\)")
    return [s for s in node.body if isinstance(s, ast.Expr) and call.fullmatch(source(s))]


def moves_by_name(function_name: str, body: list[ast.stmt]) -> bool:
    """Whether a method of a class is `cuda` beside `to`: for CUDA by contract."""
    return function_name == "cuda" and any(
        isinstance(s, ast.FunctionDef) and s.name == "to" for s in body
    )


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
    if "torch._C._cuda_" in body and "torch.cuda" not in body:
        return True
    if _DRIVER.search(body) and not _ON_CUDA.search(body):
        return True  # asks the GPU's driver, and nothing of that is needed elsewhere
    refuses = isinstance(node.body[-1], ast.Raise)
    if refuses and _REFUSAL_FOR_KERNEL.search(body):
        return True
    if not _TENSOR_DEVICE.search(test) or _AVAILABLE.search(test):
        return False
    if refuses and len(node.body) == 1 and not NEGATION.search(test) and "cuda" in body.lower():
        return True  # a word on what CUDA tensors cannot do, or on how CUDA is installed
    return all(_is_contiguous(s) for s in node.body) or any(_kernel_calls(node.body))


def is_nccl_matter(test: str, body: list[str]) -> bool:
    """Whether an `if` asks for NCCL to do what is NCCL's alone: its variables, its own classes.

    Args:
        test: The text of its test.
        body: The texts of the statements of its body, all of which must name NCCL.
    """
    if not _NCCL_TEST.search(test) or NEGATION.search(test):
        return False
    return all(_ABOUT_NCCL.search(text) for text in body)


def leaves_out_body(test: str) -> bool:
    """Whether a test keeps the NPU out of its body.

    Colab, ROCm builds, very old libraries and releases of PyTorch, apex where there is another
    way.
    """
    if _BEFORE_NPU.search(test) and not NEGATION.search(test):
        return True
    if _APEX.search(test) and not re.search(r"\bnot\b(?! None)", test):
        return True
    return (
        lives_elsewhere(test) or _ROCM.search(test) is not None or bool(_OLD_LIBRARY.search(test))
    )


def without_library_questions(body: list[ast.stmt], source: Source) -> list[ast.stmt]:
    """A block without its questions about CUDA, if it also refuses where some library is missing.

    `if not is_flute_available(): raise ...` beside `if not torch.cuda.is_available(): raise ...`:
    what is asked for is what that library needs (unless it takes other devices too).
    """
    refusals = [s for s in body if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Raise)]
    if not any(_LIBRARY_MISSING.match(source(s.test)) for s in refusals):
        return body
    return [
        s
        for s in body
        if not (s in refusals or isinstance(s, ast.Assign))
        or not _CUDA_QUESTION.search(source(s))
        or _OTHER_QUESTION.search(source(s))
    ]


def _asks_only_capability(node: ast.If) -> bool:
    """Whether the body uses CUDA only to ask for the architecture."""
    for part in (part for statement in node.body for part in nodes_below(statement)):
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
        for node in nodes_below(statement):
            if isinstance(node, ast.Call):
                callee = node.func
                name = callee.attr if isinstance(callee, ast.Attribute) else ""
                name = name or getattr(callee, "id", "")
                if _KERNEL_CALL.match(name) and name not in _PLAIN_CUDA_CALLS:
                    yield name
