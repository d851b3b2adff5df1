"""Places in Python, by the syntax tree alone: no name is followed but those that imports bind."""

import ast
import re
import warnings
from collections.abc import Iterator

from measure.place import LIBRARIES, REQUIREMENT, VARIABLE, Place

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEVICE = re.compile(r"cuda(?::\d+)?\Z")
_DEVICE_NAME = re.compile(r"device|backend|accelerator|platform|map_location", re.IGNORECASE)
_MAYBE_DEVICE = re.compile(
    r"dev|backend|accel|platform|locat|place|target|type|cuda|gpu|group|dist|default|choices|str",
    re.IGNORECASE,
)
"""What a string of CUDA's may be given to by its name; `impl` and `transport` are no devices."""
_SETS_VARIABLE = r"(?:\A|[\n;&|]|\b(?:export|env)\s)\s*(?:\w+=\S*\s+)*"
_SET = re.compile(rf"{_SETS_VARIABLE}({VARIABLE.pattern})=")
_PATHS = frozenset({"join", "Path", "glob", "joinpath", "exists", "isdir", "listdir"})
_NEUTRAL = ("CppExtension", "BuildExtension")
_PROGRAM = re.compile(r"(?:\A|[;&|(]|&&)\s*(?:sudo\s+)?(?:[\w/.-]*/)?(nvidia-smi|nvcc)(?![\w-])")
_WHEELS = re.compile(r"download\.pytorch\.org/whl/(?:\w+/)?cu\d+|\+cu1\d\d\b")
_TALK = re.compile(
    r"print|warn(?:ing)?|info|debug|error|log|critical|exception|echo|write|add_row|skip(?:If|Unless)?"
)
_LONGEST = 70
_LONGEST_COMMAND = 300


def python_places(path: str, text: str) -> list[Place]:
    """The places of a module; empty if it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
    reader = _Reader(path, tree)
    return sorted({*reader.imports(), *(Place(path, *found) for found in reader.places())})


class _Reader:
    """Reads one module.

    Args:
        path: Its name, which tells a list of requirements.
        tree: Its tree.
    """

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._path = path
        self._is_setup = path.rpartition("/")[2] == "setup.py"
        self._nodes = list(ast.walk(tree))
        self._names = dict(_imported(self._nodes))
        self._parents = {
            child: node for node in self._nodes for child in ast.iter_child_nodes(node)
        }

    def imports(self) -> Iterator[Place]:
        """The imports of packages for CUDA, and of names that are CUDA's."""
        for node in self._nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from _of_import(self._path, node)

    def places(self) -> Iterator[tuple[int, str, str]]:
        """Each place: its line, what kind it is of, and what stands there."""
        for node in self._nodes:
            if isinstance(node, (ast.Attribute, ast.Name)):
                yield from self._of_chain(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._of_string(node, node.value)
            elif isinstance(node, ast.JoinedStr):
                yield from self._of_format(node)
            if isinstance(node, ast.Call):
                yield from self._of_call(node)

    def _of_chain(self, node: ast.Attribute | ast.Name) -> Iterator[tuple[int, str, str]]:
        """`torch.cuda.synchronize`, `x.is_cuda`, and names that imports bind to such."""
        if not isinstance(node.ctx, ast.Load) and not self._is_chain(node):
            return
        parent = self._parents.get(node)
        is_asked = isinstance(node.ctx, ast.Load) and not _is_self(node)
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda" and is_asked:
            yield _line(node), "is-cuda", _shown(node)
        if isinstance(parent, ast.Attribute):
            return  # the whole chain is the place
        kind = _kind_of_name(self._name(node))
        if kind:
            yield _line(node), kind, _shown(node)

    def _is_chain(self, node: ast.expr) -> bool:
        """Whether what is assigned to is an attribute: `cudnn.benchmark = True`."""
        return isinstance(node, ast.Attribute)

    def _name(self, node: ast.expr) -> str:
        """The qualified name of a chain, through imports."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return ""
        return ".".join([self._names[node.id], *reversed(attributes)])

    def _of_call(self, node: ast.Call) -> Iterator[tuple[int, str, str]]:
        """`model.cuda()`, `DataParallel(model)`, `GradScaler()`."""
        callee = node.func
        last = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        if last == "cuda" and isinstance(callee, ast.Attribute):
            yield _line(callee), "cuda-method", _shown(callee)
        elif last in ("DataParallel", "CUDAExtension"):
            kind = "data-parallel" if last == "DataParallel" else "cpp-extension"
            yield _line(callee), kind, _shown(callee)
        elif last == "GradScaler" and self._is_for_cuda(node):
            yield _line(callee), "grad-scaler", _shown(callee)

    def _is_for_cuda(self, node: ast.Call) -> bool:
        """Whether a scaler of no kind of device in particular is made without naming one."""
        names_device = node.args or any(keyword.arg == "device" for keyword in node.keywords)
        is_neutral = self._name(node.func).startswith(("torch.amp.", "torch.Grad"))
        return is_neutral and not names_device

    def _of_string(self, node: ast.Constant, value: str) -> Iterator[tuple[int, str, str]]:
        """Devices, backends, variables, programs and requirements in strings."""
        if self._is_prose(node):
            return
        shown = repr(value.strip()[:_LONGEST])
        if _DEVICE.match(value) and self._may_be_device(node):
            yield node.lineno, "device-string", shown
        elif value == "nccl" and self._may_be_device(node):
            yield node.lineno, "nccl", shown
        elif value == "gpu" and _DEVICE_NAME.search(self._receiver(node)):
            yield node.lineno, "gpu-string", shown
        yield from self._in_command(node, value)
        if _WHEELS.search(value):
            yield node.lineno, "wheels", shown
        elif self._is_setup and REQUIREMENT.match(value):
            yield node.lineno, "requirement", shown

    def _in_command(self, node: ast.Constant, value: str) -> Iterator[tuple[int, str, str]]:
        """Variables and programs, alone in a string or in a command."""
        if VARIABLE.fullmatch(value):
            yield node.lineno, "variable", value
        for variable in _SET.finditer(value):
            yield _line_within(node, variable.start(1)), "variable", variable[1]
        if len(value) > _LONGEST_COMMAND or not self._is_given(node):
            return
        for program in _PROGRAM.finditer(value):
            yield _line_within(node, program.start(1)), "program", program[1]

    def _of_format(self, node: ast.JoinedStr) -> Iterator[tuple[int, str, str]]:
        """`f"cuda:{rank}"`."""
        first = node.values[0] if node.values else None
        if not isinstance(first, ast.Constant) or self._is_prose(node):
            return
        if len(node.values) == 2 and first.value == "cuda:" and self._may_be_device(node):
            yield node.lineno, "device-string", _shown(node)

    def _may_be_device(self, node: ast.expr) -> bool:
        """Whether a string is a value, and given to nothing that is no device by its name."""
        receiver = self._receiver(node)
        is_other = receiver and not _MAYBE_DEVICE.search(receiver)
        return self._is_given(node) and not is_other

    def _is_given(self, node: ast.expr) -> bool:
        """Whether a string is a value: what a dictionary is asked for, or files under, is none."""
        parent = self._parents.get(node)
        if isinstance(parent, ast.Subscript):
            return False
        if isinstance(parent, ast.Dict):
            return node not in parent.keys
        if isinstance(parent, ast.Call) and _called(parent) in ("get", "pop", "setdefault"):
            return len(parent.args) > 1 and node is parent.args[1]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
            return False
        if isinstance(parent, ast.Call) and _called(parent) in _PATHS:
            return False
        return not (isinstance(parent, ast.Assign) and self._is_list_of_names(parent))

    @staticmethod
    def _is_list_of_names(node: ast.Assign) -> bool:
        return any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets)

    def _is_prose(self, node: ast.expr) -> bool:
        """Whether a string is a docstring, or handed to what talks to people."""
        current: ast.AST = node
        while True:
            parent = self._parents.get(current)
            if parent is None:
                return False
            if isinstance(parent, (ast.Expr, ast.Raise)):
                return current is node or isinstance(parent, ast.Raise)
            if isinstance(parent, ast.Assert):
                return current is parent.msg
            if isinstance(parent, ast.Call):
                if _TALK.fullmatch(_called(parent)):
                    return True
                if any(keyword.arg == "help" and keyword is current for keyword in parent.keywords):
                    return True
            elif isinstance(parent, ast.stmt):
                return False
            current = parent

    def _receiver(self, node: ast.expr) -> str:
        """The name of what a string is given to: a keyword, a variable, an option, a parameter."""
        parent = self._parents.get(node)
        if isinstance(parent, ast.keyword):
            call = self._parents.get(parent)
            first = call.args[0] if isinstance(call, ast.Call) and call.args else None
            option = getattr(first, "value", "")
            return f"{parent.arg} {option}" if parent.arg == "default" else f"{parent.arg}"
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            if node is not parent.value:
                return ""
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return " ".join(map(ast.unparse, targets))
        if isinstance(parent, ast.Compare):
            return ast.unparse(parent.left)
        if isinstance(parent, ast.arguments):
            return _parameter(parent, node)
        if isinstance(parent, (ast.IfExp, ast.List, ast.Tuple, ast.Set)):
            return self._receiver(parent)
        return ""


def _is_self(node: ast.expr) -> bool:
    """Whether an attribute is one of the class itself."""
    owner = getattr(node, "value", None)
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def _parameter(parameters: ast.arguments, default: ast.expr) -> str:
    """The name of the parameter that has a default."""
    positional = [*parameters.posonlyargs, *parameters.args]
    pairs = [
        *zip(reversed(positional), reversed(parameters.defaults), strict=False),
        *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=False),
    ]
    return next((each.arg for each, value in pairs if value is default), "")


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """The names that imports bind, wherever they stand, with what they stand for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname or root), (alias.name if alias.asname else root)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield (alias.asname or alias.name), f"{node.module}.{alias.name}"


def _of_import(path: str, node: ast.Import | ast.ImportFrom) -> Iterator[Place]:
    """A package for CUDA is one place; of others each name is one, or the module as a whole."""
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    last = node.end_lineno or node.lineno
    if isinstance(node, ast.ImportFrom) and (node.level or not module):
        return
    if module.partition(".")[0] in LIBRARIES:
        yield Place(path, node.lineno, "library", module, last)
        return
    for alias in node.names:
        name = f"{module}.{alias.name}".removeprefix(".")
        kind = "library" if name.partition(".")[0] in LIBRARIES else _kind_of_name(name)
        if kind:
            line = node.lineno if _kind_of_name(module) else alias.lineno
            yield Place(path, line, kind, name, max(line, alias.lineno))


def _kind_of_name(name: str) -> str:
    """What kind of place a qualified name is; empty if it belongs to no one in particular."""
    if name == "torch.cuda" or name.startswith("torch.cuda."):
        return "torch.cuda"
    if name.startswith(("torch.backends.cudnn", "torch.backends.cuda")):
        return "cudnn"
    if name.startswith("torch.utils.cpp_extension") and not name.endswith(_NEUTRAL):
        return "cpp-extension"
    return "channels-last" if name.startswith("torch.channels_last") else ""


def _called(node: ast.Call) -> str:
    callee = node.func
    return callee.attr if isinstance(callee, ast.Attribute) else str(getattr(callee, "id", ""))


def _line(node: ast.expr) -> int:
    """The line on which a chain ends, where its last name stands."""
    return node.end_lineno or node.lineno


def _line_within(node: ast.Constant, at: int) -> int:
    """The line of a place in a string, as far as its line ends are real ones."""
    before = str(node.value).count("\n", 0, at)
    return min(node.lineno + before, node.end_lineno or node.lineno)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"...{text[-_LONGEST:]}"
