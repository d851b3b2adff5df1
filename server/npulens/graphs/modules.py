"""Evaluates modules of `torch.nn`: how they are constructed, and what calling them computes."""

from __future__ import annotations

from collections.abc import Sequence

from npulens.graphs.activations import activated
from npulens.graphs.calls import bound_arguments, operation
from npulens.graphs.frames import Call, Frame
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    LIBRARY,
    SELECT,
    SEQUENTIAL,
    Node,
    is_identity,
    number,
)
from npulens.graphs.operators import (
    function_operator,
    module_operator,
    operator_named,
    takes_two,
)
from npulens.graphs.tensor_operations import TensorOperations

_ROOT_MEAN_SQUARE_NORMS = frozenset({"torch.nn.RMSNorm", "torch.nn.modules.normalization.RMSNorm"})
_NORM_PARAMETERS = ("normalized_shape", "eps", "elementwise_affine")
_MODULE = "module"
_LONGEST_SEQUENCE = 8
INSTANCE = "instance"
_PARAMETER = "parameter"


class Modules(TensorOperations):
    """Modules, as far as their constructors are known."""

    receiver: Node | None = None
    """What `self` is in the requested function."""

    def _constructed(self, name: str, call: Call) -> Node:
        """`nn.SiLU()`, `nn.Parameter(torch.ones(n))`, `nn.Sequential(...)`."""
        tail = name.rpartition(".")[2]
        signature = module_operator(name)
        if signature is not None:
            bound = bound_arguments(self.graph, signature, call.positional, call.keywords)
            if bound is not None:
                operands = tuple(bound[parameter.name] for parameter in signature.parameters)
                return self.graph.node(_MODULE, operands, name)
        if tail == "Parameter" and call.positional:
            return self.graph.node(_PARAMETER, (call.positional[0],), self.number_of(call.node))
        if tail == "Sequential" and not call.keywords:
            return self.graph.node(SEQUENTIAL, tuple(call.positional))
        if tail == "Identity":
            return self.graph.node(SEQUENTIAL, ())
        label = (name, tuple(call.keywords), self.number_of(call.node))
        return self.graph.node(INSTANCE, call.arguments, label)

    def _module_result(self, module: Node, argument: Node, frame: Frame) -> Node | None:
        """What a module whose constructor is known computes of one tensor."""
        if module.operator == SEQUENTIAL:
            return self._in_sequence(module, argument, frame)
        if module.operator == LIBRARY:
            signature = function_operator(str(module.label))
            bound = signature and bound_arguments(self.graph, signature, [argument], {})
            return operation(self.graph, signature, bound) if signature and bound else None
        if module.operator != _MODULE:
            return activated(self.graph, module, argument)
        if takes_two(str(module.label)):
            return None
        return self._by_constructor(module, [argument], frame)

    def _in_sequence(self, module: Node, argument: Node, frame: Frame) -> Node | None:
        """What modules compute one after another; those before the last unknown one are one."""
        parts = module.operands[:_LONGEST_SEQUENCE]
        if len(parts) < len(module.operands):
            return None
        for start in range(max(len(parts), 1)):
            result: Node | None = argument
            if start:
                before = self.graph.node(SEQUENTIAL, parts[:start])
                place = self.number_of(frame.statement)
                result = self.graph.node("apply", (before, argument), place)
            for inner in parts[start:]:
                result = result and self._module_result(inner, result, frame)
            if result is not None:
                return result
        return None

    def _loss_result(self, module: Node, arguments: Sequence[Node], frame: Frame) -> Node | None:
        """What a module computes that is called with two tensors, such as `nn.NLLLoss`."""
        if module.operator != _MODULE or not takes_two(str(module.label)):
            return None
        return self._by_constructor(module, arguments, frame)

    def _by_constructor(self, module: Node, arguments: Sequence[Node], frame: Frame) -> Node | None:
        """What a module computes with what its constructor was given."""
        constructor = module_operator(str(module.label))
        assert constructor is not None
        signature = operator_named(constructor.operator)
        assert signature is not None
        keywords = {
            parameter.name: operand
            for parameter, operand in zip(constructor.parameters, module.operands, strict=True)
        }
        if signature.operator == "dropout" and self.receiver is not None:
            keywords["training"] = self.attribute(self.receiver, "training", frame)
        bound = bound_arguments(self.graph, signature, arguments, keywords)
        return None if bound is None else operation(self.graph, signature, bound)

    def _with_own_probability(self, module: Node, result: Node) -> Node:
        """Dropout by a module: its probability is an attribute of it, wherever it came from."""
        if result.operator != "dropout" or module.operator != ATTRIBUTE:
            return result
        tensor, probability, training = result.operands
        if number(probability) is None:
            probability = self.graph.node(ATTRIBUTE, (module,), "p")
        return self.graph.node("dropout", (tensor, probability, training))

    def _norm_module_result(
        self, module: Node, called: Node, argument: Node, frame: Frame
    ) -> Node | None:
        """What an `nn.RMSNorm` stored in an attribute computes: its weight is read from there."""
        if module.operator == SELECT:
            condition, *arms = module.operands
            one, other = (
                argument
                if is_identity(arm)
                else arm.operator == INSTANCE
                and self._norm_module_result(arm, called, argument, frame)
                for arm in arms
            )
            return self.select(condition, one, other) if one and other else None
        if module.operator != INSTANCE or not isinstance(module.label, tuple):
            return None
        name, given, _ = module.label
        if name not in _ROOT_MEAN_SQUARE_NORMS:
            return None
        count = len(module.operands) - len(given)
        positional, keywords = module.operands[:count], module.operands[count:]
        options = dict(zip(_NORM_PARAMETERS, positional, strict=False))
        options.update(zip(given, keywords, strict=True))
        if "normalized_shape" not in options:
            return None
        none = self.graph.constant(None)
        affine = self.truth(options.get("elementwise_affine", self.graph.constant(True)))
        shape, weight = options["normalized_shape"], self.attribute(called, "weight", frame)
        if affine is None:  # the module alone knows whether it has a weight, and of what shape
            shape = self.attribute(called, "normalized_shape", frame)
            weight = self.graph.node(SELECT, (self.graph.node("is_none", (weight,)), none, weight))
        elif not affine:
            weight = none
        epsilon = options.get("eps", none)
        if epsilon.operator != CONSTANT:
            epsilon = self.attribute(called, "eps", frame)
        return self.graph.node("rms_norm", (argument, shape, weight, epsilon))
