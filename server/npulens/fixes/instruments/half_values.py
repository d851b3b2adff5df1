"""Which values of a script are of half precision once autocast is around what computes a loss.

Autocast of the NPU computes products in half precision, and criteria, `softmax`, `log_softmax` and
others in float32 (Ascend/pytorch `torch_npu/csrc/aten/AutoCastOps.cpp`).
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from npulens.syntax.values import dotted_name, last_name

IN_FLOAT32 = frozenset(
    {"softmax", "log_softmax", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "kl_div"}
    | {"smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "triplet_margin_loss"}
    | {"cosine_embedding_loss", "margin_ranking_loss", "cosine_similarity", "layer_norm"}
    | {"group_norm", "exp", "log", "log1p", "log10", "logsumexp", "softplus", "sum", "norm"}
    | {"cumsum", "prod", "cdist", "pow"}
)
"""What autocast computes in float32."""
_OTHER_TYPES = frozenset(
    {
        "float",
        "double",
        "long",
        "int",
        "bool",
        "item",
        "tolist",
        "numpy",
        "argmax",
        "argmin",
        "argsort",
    }
    | {"eq", "ne", "gt", "lt", "ge", "le", "size", "dim", "numel", "isnan", "isinf", "all", "any"}
    | {"type", "nonzero", "multinomial", "bincount"}
)
"""Methods and functions of torch whose result is of another type, whatever they are given."""
_ELEMENTWISE = frozenset({"softmax", "log_softmax", "exp", "log", "log1p", "softplus", "cumsum"})
"""Of what autocast computes in float32 that of which the result has the shape of its argument."""
_NEW = frozenset({"zeros", "ones", "rand", "randn", "empty", "eye"})
"""What makes tensors of float32."""
_SAME_SHAPES = frozenset(
    {"view", "reshape", "unsqueeze", "detach", "cpu", "cuda", "npu", "clone", "permute", "expand"}
    | {"transpose", "contiguous", "flatten", "repeat"}
)
_PUTTING_TOGETHER = frozenset({"cat", "concat", "stack", "hstack", "vstack", "where"})
"""What widens its arguments to one type."""
PRODUCTS = frozenset(
    {"matmul", "mm", "bmm", "einsum", "linear", "conv1d", "conv2d", "conv3d", "baddbmm", "addmm"}
)
"""Functions that autocast computes in half precision."""
OF_TENSORS = IN_FLOAT32 | {
    *("gather", "view", "reshape", "squeeze", "unsqueeze", "mean", "max", "min", "detach", "cpu"),
    *("clone", "permute", "transpose", "contiguous", "flatten", "expand", "repeat", "clamp", "to"),
    *("cuda", "npu", "mul", "add", "sub", "div", "abs", "index_select", "sigmoid", "relu", "tanh"),
    *("t", "std", "var", "chunk", "split", "unbind", "topk", "sort", "sqrt", "square", "view_as"),
}
"""Methods of tensors: their result is of the type of the tensor, but for those in float32."""
_OF_HOST = frozenset(
    {"numpy", "sklearn", "skimage", "scipy", "cv2", "pandas", "math", "random", "PIL", "imageio"}
    | {"librosa", "soundfile", "h5py", "json", "os", "pickle", "time"}
)
"""What works on the host, with no tensors."""
_BUILTINS = frozenset(
    {"len", "int", "float", "str", "bool", "range", "isinstance", "type", "print"}
)
_PASSING = frozenset(
    {"zip", "enumerate", "list", "tuple", "set", "dict", "sorted", "reversed", "iter", "next"}
    | {"sum", "min", "max", "abs", "map", "filter", "getattr"}
)
"""Builtin functions whose result has what they are given."""
_WITH_INDICES = frozenset({"max", "min", "topk", "sort", "median"})
"""What has indices beside its values, as the second of two."""
_LOSS = re.compile(r"(?i)loss(?:_?f(?:n|unc|unction)?)?$")
"""What a criterion is called that nobody knows."""
_TYPES = ("float32", "float64", "float", "double", "long", "int", "bool", "dtype")
_FILLS = frozenset({"append", "extend", "insert"})


def names_of(node: ast.expr) -> list[str]:
    """A dotted name and what it is a part of: `self.out`, `self`."""
    name = dotted_name(node)
    parts = () if name is None else (name.root, *name.path)
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


class HalfValues:
    """The names that hold something of half precision, statement by statement.

    Args:
        meanings: The full names of what libraries define, that an expression means.
        result: Whether a call of a function of the file gives something of half precision, part by
            part; `None` if it is none of those.
        is_cast: Whether a statement is computed under autocast.
    """

    def __init__(
        self,
        meanings: Callable[[ast.expr], Sequence[str]],
        result: Callable[[ast.Call, "HalfValues"], list[bool] | None],
        is_cast: Callable[[ast.stmt], bool],
        names: Iterable[str] = (),
    ) -> None:
        self._meanings = meanings
        self._result = result
        self._casts = is_cast
        self.is_cast = False
        self.names = set(names)
        self._host: set[str] = set()
        self._full: set[str] = set()

    def come_to(self, statement: ast.stmt) -> None:
        """Go on to a statement."""
        self.is_cast = self._casts(statement)

    def read(self, statement: ast.stmt) -> None:
        """Go on behind a statement; not those of a block that it has."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._assign(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, statement.value)
        elif isinstance(statement, ast.AugAssign):
            if self.is_half(statement.value):
                self._store(statement.target, is_half=True)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            self._iterate(statement.target, statement.iter)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if getattr(call.func, "attr", "") in _FILLS and any(map(self.is_half, call.args)):
                self._store(getattr(call.func, "value", call.func), is_half=True)

    def _iterate(self, target: ast.expr, iterated: ast.expr) -> None:
        """Go on with the elements of what is iterated over: `zip` has some of each argument."""
        if isinstance(iterated, ast.Call) and isinstance(target, ast.Tuple) and iterated.args:
            name = getattr(iterated.func, "id", "")
            if name == "enumerate" and len(target.elts) == 2:
                self._store(target.elts[0], is_half=False)
                self._iterate(target.elts[1], iterated.args[0])
                return
            if name == "zip" and len(target.elts) == len(iterated.args):
                for each, given in zip(target.elts, iterated.args, strict=True):
                    self._iterate(each, given)
                return
        self._store(target, is_half=self.is_half(iterated))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = self.parts(value)
            if len(parts) != len(target.elts) and self._is_criterion_of_project(value):
                parts = [self.is_cast and not _is_loss(each) for each in target.elts]
            elif len(parts) != len(target.elts):
                parts = [any(parts)] * len(target.elts)
            for each, is_half in zip(target.elts, parts, strict=True):
                self._store(each, is_half=is_half)
        else:
            is_full = self._is_full(value)
            self._store(target, is_half=self.is_half(value))
            if is_full:
                self._full.update(names_of(target)[:1])
            if self._is_of_host(value):
                self._host.update(names_of(target)[:1])
            else:
                self._host.difference_update(names_of(target)[:1])

    def _is_criterion_of_project(self, node: ast.expr) -> bool:
        """Whether a call is one of what is only called a criterion: it may return scores, too."""
        if not isinstance(node, ast.Call) or not _LOSS.search(last_name(node.func)):
            return False
        names = self._meanings(node.func)
        return not any(name.partition(".")[0] == "torch" for name in names)

    def _is_of_host(self, node: ast.expr) -> bool:
        """Whether an expression is an image or the like, and no tensor."""
        while isinstance(node, (ast.Call, ast.Subscript)):
            if isinstance(node, ast.Subscript):
                node = node.value
                continue
            if any(name.partition(".")[0] in _OF_HOST for name in self._meanings(node.func)):
                return True
            if not isinstance(node.func, ast.Attribute):
                return False
            node = node.func.value
        return not self._host.isdisjoint(names_of(node)[:1])

    def _store(self, target: ast.expr, *, is_half: bool) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._store(each, is_half=is_half)
        elif isinstance(target, ast.Starred):
            self._store(target.value, is_half=is_half)
        elif isinstance(target, ast.Subscript):
            if is_half:
                self._store(target.value, is_half=True)
        elif names := names_of(target):
            self._full.discard(names[0])
            if is_half:
                self.names.add(names[0])
            else:
                self.names.discard(names[0])

    def parts(self, node: ast.expr) -> list[bool]:
        """Whether each part of a tuple, or the one value, is of half precision."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self.is_half(each) for each in node.elts]
        if isinstance(node, ast.Call):
            found = self._result(node, self)
            if found is not None:
                return found
            if getattr(node.func, "attr", "") in _WITH_INDICES and len(node.args) == 1:
                return [self.is_half(node), False]
        return [self.is_half(node)]

    def is_half(self, node: ast.expr | None) -> bool:
        """Whether an expression may be of half precision."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            names = names_of(node)
            if names or not isinstance(node, ast.Attribute):
                return not self.names.isdisjoint(names) and names[0].rpartition(".")[2] != "shape"
            return self.is_half(node.value)
        if isinstance(node, ast.Call):
            return self._is_half_call(node)
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                parts = self.parts(node.value)
                if len(parts) > 1 and 0 <= node.slice.value < len(parts):
                    return parts[node.slice.value]
            return self.is_half(node.value)
        if isinstance(node, (ast.Compare, ast.JoinedStr, ast.Lambda, ast.Constant)):
            return False
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._is_half_comprehension(node)
        if node is None:
            return False
        operands = [*_operands(node)]
        if isinstance(node, ast.BinOp) and any(map(self._is_full, operands)):
            return False
        return any(map(self.is_half, operands))

    def _is_full(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor of float32, which widens what it is put together with.

        Numbers and tensors of no dimension do not.
        """
        if isinstance(node, ast.BinOp):
            return self._is_full(node.left) or self._is_full(node.right)
        if isinstance(node, (ast.Name, ast.Attribute)):
            names = names_of(node)[:1]
            return not self._full.isdisjoint(names) and self.names.isdisjoint(names)
        if not isinstance(node, ast.Call):
            return False
        last = last_name(node.func)
        if any(keyword.arg == "dtype" for keyword in node.keywords):
            return False
        is_method = isinstance(node.func, ast.Attribute) and not self._meanings(node.func)
        if last in _NEW:
            return any(name.startswith("torch.") for name in self._meanings(node.func))
        if is_method and isinstance(node.func, ast.Attribute) and last in _SAME_SHAPES:
            return self._is_full(node.func.value)
        return last == "float" or (self.is_cast and last in _ELEMENTWISE)

    def _is_half_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> bool:
        inner = HalfValues(self._meanings, self._result, self._casts, self.names)
        inner.is_cast, inner._full = self.is_cast, set(self._full)
        for each in node.generators:
            inner._store(each.target, is_half=inner.is_half(each.iter))
        return inner.is_half(node.elt)

    def _is_half_call(self, node: ast.Call) -> bool:
        function = node.func
        attribute = function.attr if isinstance(function, ast.Attribute) else ""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if getattr(function, "id", "") in _BUILTINS or attribute in _OTHER_TYPES:
            return False
        if attribute == "to" and _names_a_type(node):
            return False
        found = self._result(node, self)
        if found is not None:
            return any(found)
        names = self._meanings(function)
        roots = {name.partition(".")[0] for name in names}
        last = names[0].rpartition(".")[2] if names else last_name(function)
        if _LOSS.search(last) or self._is_of_host(node):
            return False
        if isinstance(function, ast.Attribute) and not names and attribute in OF_TENSORS:
            is_half = self.is_half(function.value)
            return is_half and not (self.is_cast and last in IN_FLOAT32)
        if isinstance(function, ast.Attribute) and self.is_half(function.value):
            return True
        if "torch" in roots and last in _PUTTING_TOGETHER:
            parts = [part for each in given for part in getattr(each, "elts", [each])]
            return any(map(self.is_half, parts)) and not any(map(self._is_full, parts))
        if "torch" in roots:
            is_module = last[:1].isupper() or last in PRODUCTS
            is_half = any(map(self.is_half, given)) or (self.is_cast and is_module)
            return is_half and not (self.is_cast and last in IN_FLOAT32)
        is_passed_on = getattr(function, "id", "") in _PASSING
        return (self.is_cast and not is_passed_on) or any(map(self.is_half, given))


def _is_loss(target: ast.expr) -> bool:
    return "loss" in last_name(target).lower()


def _names_a_type(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(k.arg == "dtype" for k in call.keywords) or any(
        isinstance(each, ast.Attribute) and each.attr in _TYPES for each in given
    )


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value
