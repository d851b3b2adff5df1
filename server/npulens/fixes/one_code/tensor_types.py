"""Types of CUDA's tensors: called, given as a value, and set as the default."""

import ast

from npulens.catalog.model import Edit
from npulens.fixes.one_code.editing import text_of
from npulens.fixes.one_code.neutral_functions import CUDA, Functions
from npulens.fixes.one_code.vocabulary import TENSOR_TYPES
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

_DEFAULT = "torch.set_default_tensor_type"


class TensorTypes(Functions):
    """Writes types of CUDA's tensors as a type of data and a device."""

    def _typed(self, node: ast.Call, name: str, scope: Scope) -> None:
        """`x.type(torch.cuda.FloatTensor)`, `set_default_tensor_type(torch.cuda.FloatTensor)`."""
        if len(node.args) != 1 or node.keywords:
            return
        given, method = node.args[0], node.func
        dtype = TENSOR_TYPES.get(_type_of(given, scope).removeprefix(CUDA))
        if dtype is None or self._span(given) not in self._found:
            return
        device = self._device(node, given, scope)
        if device is None or not isinstance(method, ast.Attribute):
            return
        if name == _DEFAULT and dtype != "float32":
            self._done.add(given)  # no accelerator but CUDA is taken by its type
        elif name == _DEFAULT:
            self._callee(method, "set_default_device")
            self._replace(given, device, given)
        elif method.attr == "type" and not name.startswith("torch."):
            end = self._span(method).end
            self.edits.append(Edit(Span(end - len("type"), end), "to"))
            self._replace(given, f"{device}, {self._torch}.{dtype}", given)

    def _name(self, node: ast.Attribute | ast.Name, scope: Scope) -> None:
        """`torch.cuda.FloatTensor` as a value: the module of most devices has it."""
        owner = self._owners.get(node)
        is_called = isinstance(owner, ast.Call) and owner.func is node
        last = _type_of(node, scope).removeprefix(CUDA) if self._is_meant(node) else ""
        if last not in TENSOR_TYPES or is_called:
            super()._name(node, scope)
        elif isinstance(node.ctx, ast.Load):
            self._taken(node, last)

    def _taken(self, node: ast.expr, last: str) -> None:
        """Take a type of tensors from the module of whatever device there is."""
        self._callee(node, f"get_device_module().{last}")
        self.is_sure = False  # that of Apple's GPUs has none

    def _made(self, node: ast.Call, last: str, scope: Scope) -> None:
        """`torch.cuda.FloatTensor([1.0])`, `torch.cuda.LongTensor(2, n)`."""
        if not self._is_meant(node.func) or node.keywords:
            return
        values = (ast.List, ast.Tuple, ast.ListComp)
        is_single = len(node.args) == 1 and isinstance(node.args[0], values)
        counts = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.Subscript)
        are_sizes = len(node.args) > 1 and all(isinstance(each, counts) for each in node.args)
        if not (is_single or are_sizes):
            self._taken(node.func, last)
            return
        device = self._devices.at(node, scope)
        if device is None:
            return
        end = self._span(node).end - 1
        given = f", dtype={self._torch}.{TENSOR_TYPES[last]}, device={device.text}"
        self.edits.append(Edit(Span(end, end), given))
        self._callee(node.func, "tensor" if is_single else "empty")


def _type_of(node: ast.expr, scope: Scope) -> str:
    """The qualified name of a type of tensors, given as itself or as a string."""
    names = [text_of(node), *qualified_names(node, scope)]
    return next((name for name in names if name.startswith(CUDA)), "")
