"""Code that checks for CUDA to call a kernel of CUDA's: with an NPU in its place the kernel fails.

As it is, the NPU takes the other way, which works and is slower.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from npulens.syntax.bindings import with_defaults
from npulens.syntax.meanings import Qualified, resolve
from npulens.syntax.scopes import Scope, definitions_around
from npulens.syntax.values import last_name, root_name
from npulens.syntax.walking import nodes_below
from npulens.verdicts.conditions import Known

EXTENSION = re.compile(r"(?:\A|\.)(?:_C|_ext|\w+_ext|\w*_cuda|cuda_ext)(?:\.|\Z)")
"""The names of modules that are built."""
_SOURCES = re.compile(r"\.cu(?:\.o)?\Z|\AWITH_CUDA\Z|\Anvcc\Z")
_BUILDERS = frozenset({"CUDAExtension", "CUDA_HOME"})
_MODULES = re.compile(r"(?:\A|[._])(?:cuda|gpu)(?:\Z|[._])")
_KERNELS = re.compile(r"cuda_\w+\Z|(?:_cuda|_kernel)\Z|\Atriton_")
CALLED, BUILT = "called", "built"
"""What a condition leads to."""
_CARD_QUESTIONS = frozenset({"get_device_capability", "get_device_properties", "get_device_name"})


def guards_kernel(node: ast.If, scope: Scope, known: Known, behind: list[ast.stmt]) -> bool:
    """Whether an `if` on the device of a tensor passes that tensor to a kernel for CUDA.

    The kernel is of an extension or of a library for CUDA. `behind` has the statements behind the
    `if` in its block.
    """
    other_way = node.orelse or behind[:1]
    if not any(tensors_checked(node.test)) or not other_way or isinstance(other_way[-1], ast.Raise):
        return False
    # The extension's own way for the host fails for a tensor of the NPU as well.
    return calls_extension(node.body, scope, known) and not calls_extension(
        node.orelse, scope, known
    )


def moves_what_the_host_has(node: ast.If, scope: Scope, known: Known) -> bool:
    """Whether an `if` moves something to a GPU that works on the host as well, and nothing else.

    `index = faiss.index_cpu_to_gpu(resources, 0, index)`. Of a flag it has to be known that it is
    off if nobody asks for more: one that a user gives, or that CUDA answers, is on with an NPU.
    """
    calls = [call for statement in node.body for call in _calls(statement)]
    moves = any(
        isinstance(value, Qualified) and value.name in known.table.host_instead
        for call in calls
        for value in resolve(call.func, scope)
    )
    if not moves or any(last_name(call.func) in ("cuda", "to", "npu") for call in calls):
        return False
    return not isinstance(node.test, (ast.Name, ast.Attribute)) or _is_off(node.test, scope)


def _is_off(flag: ast.Name | ast.Attribute, scope: Scope) -> bool:
    """Whether a flag is `False` by what is around it, or what faiss says of its own build."""
    name, values = last_name(flag), list[ast.expr]()
    for definition in definitions_around(scope):
        for part in nodes_below(definition):
            if isinstance(part, ast.arguments):
                values += [value for given, value in with_defaults(part) if given.arg == name]
            elif isinstance(part, ast.Assign) and any(last_name(t) == name for t in part.targets):
                values.append(part.value)
    of_value = [value for value in values if not isinstance(value, (ast.Name, ast.Attribute))]
    return bool(of_value) and all(map(_says_off, of_value))


def _says_off(value: ast.expr) -> bool:
    """`False`, `wanted and faiss.get_num_gpus() > 0`."""
    if isinstance(value, ast.Constant):
        return value.value is False
    return any(last_name(call.func) == "get_num_gpus" for call in _calls(value))


def checks_only_for_card(body: list[ast.stmt]) -> bool:
    """Whether statements use CUDA for nothing but to check the card."""
    queries = False
    for part in (part for statement in body for part in nodes_below(statement)):
        if isinstance(part, ast.Constant):
            used = isinstance(part.value, str) and part.value.startswith("cuda")
        elif isinstance(part, ast.Attribute):
            owner = part.value
            of_cuda = isinstance(owner, ast.Attribute) and owner.attr == "cuda"
            is_question = of_cuda and part.attr in _CARD_QUESTIONS
            queries = queries or (is_question and part.attr == "get_device_capability")
            used = of_cuda and not is_question
        else:
            callee = part.func if isinstance(part, ast.Call) else None
            used = isinstance(callee, ast.Attribute) and callee.attr == "cuda"
        if used:
            return False
    return queries


def leads_to(node: ast.If) -> str:
    """What CUDA code of the project the body of an `if` leads to: `CALLED`, `BUILT` or nothing.

    It is called for the tensor that the test checks for, or built or imported. Without CUDA the
    project goes on without it. Names are weak evidence, which is enough to have a fix read.
    """
    inside = [part for statement in node.body for part in nodes_below(statement)]
    if any(tensors_checked(node.test)):
        callees = [part.func for part in inside if isinstance(part, ast.Call)]
        if any(EXTENSION.search(root_name(callee)) for callee in callees):
            return CALLED
        if any(_KERNELS.search(last_name(callee)) for callee in callees):
            return BUILT
    return BUILT if any(map(_built, inside)) else ""


def _built(node: ast.AST) -> str:
    """What of CUDA code a node builds or imports; empty if nothing."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = getattr(node, "module", None)
        names = [module or "", *(alias.name for alias in node.names)]
        is_of_torch = names[0 if module else 1].startswith("torch")
        return "" if is_of_torch else next(filter(_MODULES.search, names), "")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if _SOURCES.search(node.value) is not None else ""
    return node.id if isinstance(node, ast.Name) and node.id in _BUILDERS else ""


def tensors_checked(test: ast.expr) -> Iterator[str]:
    """The tensors whose device a test checks for CUDA: `x.is_cuda`, `x.device.type == "cuda"`."""
    for part in nodes_below(test):
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.NotEq, ast.NotIn)):
            return
        if isinstance(part, ast.Attribute) and part.attr in ("is_cuda", "is_npu", "device"):
            owner = part.value
            if isinstance(owner, ast.Name) and owner.id != "torch":
                yield owner.id


def _calls(statement: ast.AST) -> Iterator[ast.Call]:
    return (part for part in nodes_below(statement) if isinstance(part, ast.Call))


def calls_extension(body: Iterable[ast.AST], scope: Scope, known: Known) -> bool:
    """Whether statements call what is imported from an extension, or from a library for CUDA."""
    called = (call.func for statement in body for call in _calls(statement))
    for value in (value for callee in called for value in resolve(callee, scope)):
        if isinstance(value, Qualified):
            root = value.name.lstrip(".").partition(".")[0]
            if root in known.missing_libraries:
                return True
            if root != "torch" and EXTENSION.search(value.name.rpartition(".")[0]):
                return True
    return False
