"""Evaluates operators and methods of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from npulens.graphs.algebra import add, multiply, power
from npulens.graphs.calls import bound_arguments, operation
from npulens.graphs.expressions import Expressions
from npulens.graphs.frames import Call
from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, GLOBAL, INPUT, LIBRARY, TUPLE, Node, number
from npulens.graphs.operators import CASTS, UNCHANGED, VIEWS, Signature, method_operator
from npulens.graphs.pairs import reshaped
from npulens.graphs.permutations import permute
from npulens.graphs.products import einsum, hoisted
from npulens.graphs.scalars import filled, is_scalar
from npulens.graphs.tensor_views import unsqueeze


class TensorOperations(Expressions):
    """What operators and methods compute of tensors, in canonical form."""

    def _tensor_method(self, owner: Node, name: str, call: Call) -> Node | None:
        graph, positional = self.graph, call.positional
        if name in UNCHANGED:
            return graph.node("contiguous", (owner,))
        if name in CASTS:
            target = CASTS[name]
            if target:
                return graph.node("cast", (owner, graph.node(LIBRARY, (), f"torch.{target}")))
            targets = tuple(each for each in call.arguments if name != "to" or not _is_device(each))
            if call.arguments and not targets:
                return graph.node("contiguous", (owner,))
            return graph.node("cast", (owner, *targets))
        if name in VIEWS and not call.keywords:
            return self._view(name, owner, positional)
        if name in ("view_as", "reshape_as") and len(positional) == 1:
            return self._view("reshape", owner, [graph.node("shape", (positional[0],))])
        if name == "size":
            return graph.node("size" if positional else "shape", (owner, *positional))
        if name in ("dim", "detach") and not positional:
            return graph.node(name, (owner,))
        signature = method_operator(name, bool(positional))
        if signature is None:
            return None
        bound = bound_arguments(graph, signature, (owner, *positional), call.keywords)
        return None if bound is None else self._operation(signature, bound)

    def _operation(self, signature: Signature, bound: dict[str, Node]) -> Node:
        """An operator, in the form that what is known of attributes allows."""
        node = operation(self.graph, signature, bound)
        if node.operator == "where":
            return filled(self.graph, node, self.initial)
        if node.operator == "unsqueeze":
            tensor, dimension = node.operands
            return self._widened(tensor, dimension) or node
        return hoisted(self.graph, node, self.initial)

    def _in_a_row(self, tensor: Node) -> Node:
        """All elements in one dimension: what `gather` chose with a column is squeezed."""
        graph = self.graph
        column = tensor.operands[2] if tensor.operator == "gather" else tensor
        if column is not tensor and column.operator == "unsqueeze":
            places, inserted = column.operands
            is_row = places.operator == "reshape" and [number(s) for s in places.operands[1:]] == [
                -1
            ]
            if is_row and number(inserted) == 1:
                return graph.node("squeeze", (tensor, graph.constant(1)))
        return graph.node("reshape", (tensor, graph.constant(-1)))

    def _widened(self, tensor: Node, dimension: Node) -> Node | None:
        """What is computed of a reduction and of numbers, with the reduced dimension kept."""
        if tensor.operator == "power" and number(tensor.operands[1]) is not None:
            base = self._widened(tensor.operands[0], dimension)
            return base and power(self.graph, base, tensor.operands[1])
        if tensor.operator in ("add", "multiply"):
            for one, other in (tensor.operands, tensor.operands[::-1]):
                if is_scalar(one, self.initial):
                    kept = self._widened(other, dimension)
                    combine = add if tensor.operator == "add" else multiply
                    return kept and combine(self.graph, one, kept)
            return None
        widened = unsqueeze(self.graph, tensor, dimension)
        return None if widened.operator == "unsqueeze" else widened

    def _einsum(self, positional: Sequence[Node]) -> Node:
        """`torch.einsum`, as a product of matrices where it is one."""
        recipe, *tensors = positional
        if len(tensors) == 1 and tensors[0].operator == TUPLE:
            tensors = list(tensors[0].operands)
        if len(tensors) == 2 and recipe.operator == CONSTANT and isinstance(recipe.value, str):
            product = einsum(self.graph, recipe.value, *tensors)
            if product is not None:
                return self._hoisted_inside(product)
        return self.graph.node("einsum", tuple(positional))

    def _hoisted_inside(self, product: Node) -> Node:
        """Numbers in front of a product whose result is swapped stay behind the swap."""
        if product.operator == "transpose":
            inner = hoisted(self.graph, product.operands[0], self.initial)
            return self.graph.node("transpose", (inner, *product.operands[1:]))
        return hoisted(self.graph, product, self.initial)

    def _view(self, name: str, tensor: Node, sizes: Sequence[Node]) -> Node:
        if len(sizes) == 1 and sizes[0].operator == TUPLE:
            sizes = sizes[0].operands
        if name == "permute":
            return permute(self.graph, tensor, sizes)
        operator = "reshape" if name == "view" else name
        if operator == "reshape":
            if [number(size) for size in sizes] == [-1, 1]:
                return self.graph.node("unsqueeze", (self._in_a_row(tensor), sizes[1]))
            if [number(size) for size in sizes] == [-1]:
                return self._in_a_row(tensor)
            pairs = reshaped(self.graph, tensor, sizes)
            if pairs is not None:
                return pairs
        return self.graph.node(operator, (tensor, *sizes))


def _is_device(target: Node) -> bool:
    """Whether `x.to(target)` moves a tensor: `"cuda:0"`, `y.device`, `self.device`, `device`."""
    if target.operator == CONSTANT:
        return isinstance(target.value, str)
    named = target.operator in (ATTRIBUTE, INPUT, GLOBAL)
    return named and str(target.label).rpartition(".")[2].lower().endswith("device")
