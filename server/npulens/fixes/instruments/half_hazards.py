"""What code that runs under autocast cannot do in half precision, in whatever file it is."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from npulens.catalog.message_ids import MessageId
from npulens.fixes.instruments.half_values import IN_FLOAT32, OF_TENSORS, PRODUCTS, names_of
from npulens.fixes.instruments.own_kernels import OwnKernels
from npulens.fixes.scripts import UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.by_node import once_by_node
from npulens.syntax.values import is_none, last_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import Site
from npulens.training.flow import Flow, Value
from npulens.training.loss_regions import LossRegion, computes
from npulens.training.program import Module
from npulens.training.training_script import TrainingScript

_NO_HALF = re.compile(
    r"torch\.(?:fft\.\w+|linalg\.(?:svd|svdvals|inv|pinv|qr|eigh?|eigvalsh?|cholesky|solve\w*|lstsq"
    r"|det|slogdet|matrix_rank|matrix_exp|ldl_\w+|lu\w*)|svd|inverse|pinverse|cholesky\w*|qr|det"
    r"|slogdet|logdet|lstsq|symeig|eig|stft|istft|rfft|irfft|ifft|triangular_solve|lu)"
)
"""Operators without a kernel for half precision.

Source: PyTorch, `aten/src/ATen/native/BatchLinearAlgebra.cpp` and `SpectralOps.cpp`.
"""
_OF_POINTS = re.compile(
    r"pytorch3d\.(?:ops\.(?:\w+\.)?(?:knn_points|ball_query|sample_\w+)"
    r"|loss\.(?:\w+\.)?chamfer_distance)"
)
"""Kernels of a library for float32 and float64 alone.

Source: PyTorch3D, `pytorch3d/csrc/knn/knn.cu` and its neighbours, `AT_DISPATCH_FLOATING_TYPES`.
"""
_SIMILARITY = re.compile(
    r"(?:pytorch_\w*ssim|kornia|piq|torchmetrics|monai|ignite|pyiqa)\.(?:\w+\.)*"
    r"\w*(?:ssim|SSIM|structural_similarity|StructuralSimilarity)\w*"
)
"""Structural similarity, whose variances of windows are lost in half precision.

They are differences of means near 1, and compared with 0.03**2, while a step of float16 is 0.0005
there and one of bfloat16 0.004.
"""
_MEANS = PRODUCTS | {"avg_pool1d", "avg_pool2d", "avg_pool3d"}
_COMPLEX = re.compile(r"torch\.(?:complex|polar|view_as_complex|angle|fft\.\w+|hilbert)")
"""What makes or takes complex numbers: bfloat16 has none, float16 has few operators for them.

Source: PyTorch, `toComplexType` in `c10/core/ScalarType.h`, and the kernels of `ComplexHalf`.
"""
_SPECTROGRAMS = re.compile(
    r"torch(?:audio|librosa)\.(?:\w+\.)?\w*(?:[Ss]pectrogram|LogmelFilterBank|MFCC|mfcc|Mel\w*)"
)
"""What leaves the range of half precision, with logarithms of nearly nothing."""
_SPECTRUM = re.compile(
    r"(?i)(?:^|_)(?:log_?)?(?:mel|spec(?:trum|trogram)?|stft|fbank|mfcc)(?:_|$|spec)"
)
"""What a function is called that makes a spectrum, where nobody knows it."""
_LOGARITHMS = ("log", "log2", "log10")
_REFUSING = frozenset({"BCELoss", "binary_cross_entropy"})
_TO_FLOAT32 = ("float", "double")
_POSITIONS = (
    *("tensor", "where", "nonzero", "BoolTensor", "LongTensor"),
    *("topk", "argsort", "randperm", "arange"),
)
"""What makes masks and positions."""
_OF_POSITIONS = re.compile(r"(?:^|_)(?:indices|indexes|idxs|inds|mask)(?:_|$)|mask")
"""What masks and positions are called."""
_LONGEST = 60
_MOST_STEPS = 60
_NEW = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "new_zeros", "new_full"})
_WRITES = frozenset(
    {"index_add_", "index_copy_", "scatter_", "masked_scatter_", "index_put_", "scatter_add_"}
    | {"index_add", "index_copy", "scatter", "masked_scatter", "scatter_reduce_", "scatter_reduce"}
    | {"lerp", "lerp_"}
)
"""What wants two tensors of one type, unlike `copy_`, `where`, `cat` and what is in slices.

Source: PyTorch, `scatter_gather_dtype_check` in `aten/src/ATen/native/ScatterGatherChecks.h` and
`TensorAdvancedIndexing.cpp`; autocast widens `cat`, `stack`, `index_put` and `scatter_add`.
"""
_LARGEST = 65504
"""The largest number of float16."""
_SMALLEST = 2.0**-25
"""What is smaller is 0 in float16."""
_DEEPEST = 6
_LARGEST_32 = 3.4e38
_OF_FLOAT32 = ("torch.finfo(torch.float32)", "torch.finfo(torch.float)", "torch.finfo()")


_Assigned = Mapping[str, Sequence[ast.expr]]


class Hazard(NamedTuple):
    """Code that fails, or computes something else, in half precision."""

    message: MessageId
    node: ast.AST


class HalfHazards:
    """Finds what cannot be computed in half precision in a script and what it imports.

    Args:
        training: What the program of the script does to train.
        flow: Where its values come from.
        dtype: `bfloat16` or `float16`.
        script: The module that is to run under autocast, of the program.
    """

    def __init__(self, training: TrainingScript, flow: Flow, dtype: str, script: Module) -> None:
        self._script = script
        self._sites = training.sites
        self._program = training.sites.program
        self._training, self._flow, self._dtype = training, flow, dtype
        self._kernels = OwnKernels(self._program, flow)
        self._inside: dict[Function | None, list[Site]] = defaultdict(list)
        for site in self._sites.all:
            self._inside[site.function].append(site)

    def require_none(self, regions: Sequence[LossRegion], loops: Iterable[ast.AST]) -> None:
        """See that nothing that is put under autocast, or uses its gradients, is in the way.

        Raises:
            UnclearError: Something is.
        """
        for region in regions:
            below = [node for s in region.statements for node in nodes_below(s)]
            if self._program.start.tree is not self._script.tree and not self._reaches(below):
                continue
            functions = self._run_from(below)
            self._require(region, chain(self._in_nodes(below, None), self._in_all(functions)))
        if self._dtype == "float16" and self._program.start.tree is self._script.tree:
            for loop in loops:
                gradients = self._gradients(self._run_from([*nodes_below(loop)]))
                self._require(regions[0], gradients)

    def _reaches(self, nodes: Iterable[ast.AST]) -> bool:
        """Whether the program runs some code."""
        return any(node in self._sites.site_of for node in nodes if isinstance(node, ast.expr))

    def _require(self, region: LossRegion, hazards: Iterable[Hazard]) -> None:
        for hazard in hazards:
            module = self._program.module_with[hazard.node]
            line: int = getattr(hazard.node, "lineno", 1)
            code = ast.unparse(hazard.node).splitlines()[0][:_LONGEST]
            if module.tree is self._script.tree:
                raise UnclearError(line, hazard.message, code=code, where=f"{line}")
            where = f"{module.name.replace('.', '/')}.py:{line}"
            raise UnclearError(region.statements[0].lineno, hazard.message, code=code, where=where)

    def _run_from(self, nodes: Iterable[ast.AST]) -> list[Function]:
        """The functions that some code runs; forward passes of models among them."""
        found: dict[Function, None] = {}
        exprs = (node for node in nodes if isinstance(node, ast.expr))
        pending = [site for each in exprs if (site := self._sites.site_of.get(each)) is not None]
        for function in self._passes:
            found[function] = None
            pending += self._inside[function]
        while pending:
            site = pending.pop()
            for function in self._sites.run_by(site):
                if function not in found and function.name != "__init__":
                    found[function] = None
                    pending += self._inside[function]
        return list(found)

    @cached_property
    def _passes(self) -> list[Function]:
        """The forward passes of the models that the program makes."""
        methods = (
            self._program.method(node, "forward")
            for module in self._program.modules
            for node in nodes_below(module.tree)
            if isinstance(node, ast.ClassDef)
            and self._flow.is_made(node)
            and self._flow.is_module(node)
        )
        return [method for method in methods if method is not None]

    def _in_all(self, functions: Sequence[Function]) -> Iterator[Hazard]:
        for function in functions:
            nodes = [*nodes_below(function)]
            if not any(_is_called(node, "autocast") for node in nodes):
                yield from self._in_nodes(nodes, function)
        owners = {place.owner for f in functions if (place := self._flow.places.get(f))}
        for owner in owners - {None}:
            assert owner is not None
            yield from self._criteria([*nodes_below(owner)])

    def _in_nodes(self, nodes: Sequence[ast.AST], function: Function | None) -> Iterator[Hazard]:
        assigned = _assignments(nodes if function is None else nodes_below(function))
        yield from self._criteria(nodes)
        for node in nodes:
            if isinstance(node, ast.Call):
                yield from self._called(node, assigned, function)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                yield from self._stored(node.targets[0], node.value, assigned, function)
        variances = [n for n in nodes if isinstance(n, ast.BinOp) and _is_variance(n)]
        if variances and not _are_cast(nodes):
            yield Hazard("instrument.not-in-half", variances[0])

    def _criteria(self, nodes: Iterable[ast.AST]) -> Iterator[Hazard]:
        """`BCELoss` in other files; those of the script are found by its text."""
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            is_elsewhere = self._program.module_with[node].tree is not self._script.tree
            if last_name(node.func) in _REFUSING and is_elsewhere:
                yield Hazard("instrument.refuses-autocast-elsewhere", node.func)
            elif any(_SPECTROGRAMS.fullmatch(name) for name in self._flow.library_names(node.func)):
                yield Hazard("instrument.not-in-half", node.func)
            elif _is_called(node, *_LOGARITHMS) and (made := _spectrum(node)) is not None:
                yield Hazard("instrument.not-in-half", made)

    def _called(
        self, call: ast.Call, assigned: _Assigned, function: Function | None
    ) -> Iterator[Hazard]:
        names = self._flow.library_names(call.func)
        last = last_name(call.func)
        given = call.args[0] if call.args else getattr(call.func, "value", None)
        is_refused = any(_NO_HALF.fullmatch(n) or _COMPLEX.fullmatch(n) for n in names)
        if is_refused and given is not None:
            is_refused = self._is_activation(given, assigned, function)
        is_refused |= any(_OF_POINTS.fullmatch(n) or _SIMILARITY.fullmatch(n) for n in names)
        if is_refused:
            yield Hazard("instrument.not-in-half", call.func)
        elif (kernel := self._kernels.run_by(call)) is not None:
            yield Hazard("instrument.own-kernel", kernel)
        elif last in _LOGARITHMS and self._vanishes(given, assigned):
            yield Hazard("instrument.too-small-for-half", call)
        elif last in ("masked_fill", "masked_fill_") and len(call.args) > 1:
            if self._overflows(call.args[1], assigned):
                yield Hazard("instrument.too-large-for-half", call)
        elif last in _WRITES and isinstance(call.func, ast.Attribute) and len(call.args) > 1:
            is_new = self._is_new(call.func.value, assigned, function)
            if is_new and self._is_computed(_written(call), assigned):
                yield Hazard("instrument.types-differ", call)

    def _stored(
        self,
        target: ast.Subscript,
        value: ast.expr,
        assigned: _Assigned,
        function: Function | None,
    ) -> Iterator[Hazard]:
        """`out[mask] = ...`, where both are to have one type."""
        if not _is_mask(target.slice, assigned):
            return
        if self._overflows(value, assigned):
            yield Hazard("instrument.too-large-for-half", target)
        elif self._is_new(target.value, assigned, function):
            if self._is_computed(value, assigned):
                yield Hazard("instrument.types-differ", target)
        elif last_name(getattr(value, "func", value)) in IN_FLOAT32 and isinstance(value, ast.Call):
            yield Hazard("instrument.types-differ", target)

    def _is_activation(
        self, node: ast.expr, assigned: _Assigned, function: Function | None
    ) -> bool:
        """Whether a value is what layers or products compute, and not made float32 again."""
        if any(_is_called(each, *_TO_FLOAT32) for each in nodes_below(node)):
            return False
        names = {names_of(n)[-1] for n in nodes_below(node) if isinstance(n, ast.Name)}
        values = [*_assigned_to(names, assigned)]
        if any(_is_called(n, *_TO_FLOAT32) for value in values for n in nodes_below(value)):
            return False
        if any(self._is_product(n) for value in (*values, node) for n in nodes_below(value)):
            return True
        place = self._flow.places.get(function) if function is not None else None
        is_layer = place is not None and place.owner is not None
        is_given = (
            is_layer
            and function is not None
            and function.name == "forward"
            and bool(names & {a.arg for a in function.args.args} - {"self"})
        )
        return is_given or self._comes_from_model(node)

    def _comes_from_model(self, node: ast.expr) -> bool:
        """Whether a value is followed to the result of a model, through tensors and functions."""
        pending, known = [node], set[ast.expr]()
        while pending and len(known) < _MOST_STEPS:
            each = pending.pop()
            if each in known or _is_called(each, *_TO_FLOAT32):
                continue
            known.add(each)
            if self._is_product(each) or self._may_run_model(each):
                return True
            called = each.func if isinstance(each, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in OF_TENSORS:
                pending.append(called.value)
            if called is not None and isinstance(each, ast.Call) and each.args:
                names = self._flow.library_names(called)
                pending += each.args[:1] if any(n.startswith("torch.") for n in names) else ()
            pending += (value.node for value in self._flow.behind(Value(each)))
        return False

    def _is_product(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult)
        if not isinstance(node, ast.Call):
            return False
        return (
            last_name(node.func) in PRODUCTS
            or any(self._flow.is_module(owner) for owner in self._flow.classes_of(node.func))
            or self._is_own_layer(node.func)
        )

    def _is_own_layer(self, called: ast.expr) -> bool:
        """`self.head(x)` in a module, where `head` is no method and no function."""
        if not isinstance(called, ast.Attribute) or getattr(called.value, "id", "") != "self":
            return False
        place = self._flow.places.get(called)
        if place is None or place.owner is None or not self._flow.is_module(place.owner):
            return False
        return self._program.method(place.owner, called.attr) is None

    def _is_new(self, node: ast.expr, assigned: _Assigned, function: Function | None) -> bool:
        """Whether a tensor is made of float32 here, or when the object was made."""
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        name = ast.unparse(node)
        if any(map(_is_made_new, _assigned_to({name}, assigned))):
            return True
        place = self._flow.places.get(function) if function is not None else None
        owner = None if place is None else place.owner
        return owner is not None and name in _kept_new(owner)

    def _is_computed(self, value: ast.expr, assigned: _Assigned) -> bool:
        """Whether a value comes out of a model or a product, with the type that it has there."""
        if any(_is_called(n, "to", "type", "type_as", *_TO_FLOAT32) for n in nodes_below(value)):
            return False
        names = {ast.unparse(n) for n in nodes_below(value) if isinstance(n, ast.Name)}
        parts = [value, *_assigned_to(names, assigned)]
        parts = [each for each in parts if not _is_called(each, *IN_FLOAT32)]
        if value not in parts:
            return False
        return any(
            self._is_product(n) or self._may_run_model(n)
            for part in parts
            for n in nodes_below(part)
        )

    def _may_run_model(self, node: ast.AST) -> bool:
        """`net(x)`, where the net is no function that is known."""
        site = self._sites.site_of.get(node) if isinstance(node, ast.Call) else None
        if site is None or not isinstance(node, ast.Call) or self._sites.run_by(site):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_TENSORS:
            return False
        return not self._flow.library_names(node.func) and computes(ast.Expr(node), site.scope)

    def _vanishes(self, given: ast.expr | None, assigned: _Assigned) -> bool:
        """Whether the least that a logarithm is given is 0 in float16: `p + 1e-8`."""
        if self._dtype != "float16" or given is None:
            return False
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add):
            value, least = given.left, given.right
        elif isinstance(given, ast.Call) and _is_called(given, "clamp", "clamp_min", "clip"):
            own = [] if self._flow.library_names(given.func) else [given.func]
            named = [k.value for k in given.keywords if k.arg == "min"]
            parts = [*(getattr(each, "value", each) for each in own), *given.args, *named]
            value, least = (parts[0], parts[1]) if len(parts) > 1 else (given, given)
        else:
            return False
        values = [least, *_assigned_to({ast.unparse(least)}, assigned)]
        is_small = any(0 < _number(each) < _SMALLEST for each in values)
        return is_small and self._is_rounded(value, assigned, 0)

    def _is_rounded(self, node: ast.expr, assigned: _Assigned, depth: int) -> bool:
        """Whether a value is surely of half precision: a product, and what leaves its type."""
        if depth > _DEEPEST or _is_called(node, *IN_FLOAT32, *_TO_FLOAT32):
            return False
        if self._is_product(node):
            return True
        if isinstance(node, ast.Call) and last_name(node.func) in OF_TENSORS:
            is_of_library = bool(self._flow.library_names(node.func))
            owner = node.args[:1] if is_of_library else [getattr(node.func, "value", node)]
            return bool(owner) and self._is_rounded(owner[0], assigned, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            return self._is_rounded(node.right, assigned, depth + 1)
        if not isinstance(node, ast.Name):
            return False
        above = [each for each in assigned.get(node.id, ()) if each.lineno < node.lineno]
        return bool(above) and self._is_rounded(above[-1], assigned, depth + 1)

    def _overflows(self, value: ast.expr, assigned: _Assigned) -> bool:
        """Whether a number is too large for float16."""
        if self._dtype != "float16":
            return False
        values = [value]
        if isinstance(value, (ast.Name, ast.Attribute)):
            values += _assigned_to({ast.unparse(value)}, assigned)
            values += (each.node for each in self._flow.origins(value) if not each.path)
        return any(abs(number) > _LARGEST for each in values if (number := _number(each)))

    def _gradients(self, functions: Iterable[Function]) -> Iterator[Hazard]:
        """Code of other files that reads or changes gradients, but for optimizers."""
        for function in functions:
            place = self._flow.places.get(function)
            owner = place.owner if place is not None else None
            is_optimizer = owner is not None and any(
                "Optimizer" in ast.unparse(base) for base in owner.bases
            )
            if self._program.module_with[function].tree is self._script.tree or is_optimizer:
                continue
            compared = {
                n.left
                for n in nodes_below(function)
                if isinstance(n, ast.Compare) and any(map(is_none, n.comparators))
            }
            for node in nodes_below(function):
                if isinstance(node, ast.Attribute) and node.attr == "grad":
                    if isinstance(node.ctx, ast.Load) and node not in compared:
                        yield Hazard("instrument.gradients-elsewhere", node)
                elif isinstance(
                    node, ast.Call
                ) and "torch.autograd.grad" in self._flow.library_names(node.func):
                    yield Hazard("instrument.gradients-elsewhere", node.func)


def _written(call: ast.Call) -> ast.expr:
    """What a method puts into a tensor: `src` of `scatter_(dim, index, src)`."""
    for keyword in call.keywords:
        if keyword.arg in ("src", "source", "values", "end"):
            return keyword.value
    if last_name(call.func).startswith("lerp"):
        return call.args[0]
    return call.args[min(2, len(call.args) - 1)]


def _is_made_new(value: ast.expr) -> bool:
    """Whether an expression makes a tensor of float32."""
    made = next((n for n in nodes_below(value) if _is_called(n, *_NEW)), None)
    return isinstance(made, ast.Call) and not _has_type(made)


@once_by_node
def _kept_new(owner: ast.ClassDef) -> frozenset[str]:
    """The attributes of objects that hold tensors of float32: buffers, mostly."""
    found = set()
    for node in nodes_below(owner):
        if isinstance(node, ast.Call) and last_name(node.func) == "register_buffer":
            name = getattr(node.args[0], "value", None) if len(node.args) > 1 else None
            if name and _is_made_new(node.args[1]):
                found.add(f"self.{name}")
        elif isinstance(node, ast.Assign) and _is_made_new(node.value):
            found |= {ast.unparse(t) for t in node.targets if isinstance(t, ast.Attribute)}
    return frozenset(found)


def _are_cast(nodes: Iterable[ast.AST]) -> bool:
    return any(_is_called(each, *_TO_FLOAT32) for each in nodes)


def _is_variance(node: ast.BinOp) -> bool:
    """`conv2d(x * x, window) - mean ** 2`: the variance of each window."""
    left = node.left
    if not isinstance(node.op, ast.Sub) or not _is_called(left, *_MEANS):
        return False
    given = left.args[0] if isinstance(left, ast.Call) and left.args else None
    if not isinstance(given, ast.BinOp):
        return False
    is_square = isinstance(given.op, ast.Pow) and getattr(given.right, "value", None) == 2
    is_product = isinstance(given.op, ast.Mult)
    return is_square or (is_product and ast.unparse(given.left) == ast.unparse(given.right))


def _spectrum(logarithm: ast.Call) -> ast.expr | None:
    """What makes the spectrum of `mel(x).log()` and `torch.log(spectrogram(x))`."""
    given = logarithm.args[:1] or [getattr(logarithm.func, "value", logarithm)]
    for node in nodes_below(given[0]):
        if isinstance(node, ast.Call) and _SPECTRUM.search(last_name(node.func)):
            return node.func
    return None


def _is_called(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in names


def _assignments(nodes: Iterable[ast.AST]) -> _Assigned:
    """What names are assigned, in some code."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in getattr(target, "elts", [target]):
                    found[ast.unparse(part)].append(node.value)
    return found


def _assigned_to(names: Iterable[str], assigned: _Assigned) -> Iterator[ast.expr]:
    return (value for name in names for value in assigned.get(name, ()))


def _has_type(call: ast.Call) -> bool:
    return any(k.arg == "dtype" for k in call.keywords)


def _is_mask(index: ast.expr, assigned: _Assigned) -> bool:
    """Whether an index is a tensor: a mask, or what tells positions."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        if isinstance(part, ast.Compare) or (
            isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert)
        ):
            return True
        if isinstance(part, (ast.Name, ast.Attribute)):
            if _OF_POSITIONS.search(last_name(part).lower()):
                return True
            for value in _assigned_to({ast.unparse(part)}, assigned):
                if isinstance(value, ast.Compare) or _is_called(value, *_POSITIONS):
                    return True
    return False


def _number(node: ast.expr) -> float:
    """The value of `-1e9`; 0 if it is no number, or infinite, which each type has."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.Attribute) and node.attr in ("min", "max"):
        return _LARGEST_32 if ast.unparse(node.value) in _OF_FLOAT32 else 0
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value if abs(node.value) != float("inf") else 0
    if _is_called(node, "float") and isinstance(node, ast.Call) and node.args:
        given = node.args[0]
        text = given.value if isinstance(given, ast.Constant) else ""
        return float(text) if isinstance(text, str) and re.fullmatch(r"-?[\d.]+e\d+", text) else 0
    return 0
