"""What the layers of `torch.nn` make of shapes."""

import re

from npulens.shapes.operators.combining import with_last
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import (
    LIKELY,
    UNKNOWN,
    Items,
    Layer,
    Tensor,
    Value,
    items_of,
)
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, SCALAR, Dim, Shape, closed, opened

_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_TAKING_TENSORS = re.compile(
    r"Linear|Embedding|Conv(?:Transpose)?[123]d|LayerNorm|RMSNorm|GroupNorm|MultiheadAttention"
    r"|(?:Batch|Instance)Norm[123]d|(?:Max|Avg)Pool[123]d"
)
_SAME = frozenset({"Identity", "Softmax", "LogSoftmax", "Sigmoid", "Tanh"})
_CONVOLUTION = re.compile(r"Conv(?:Transpose)?[123]d")
_POOL = re.compile(r"(?:Adaptive)?(?:Max|Avg)Pool([123])d")
_KEEPING = ("Dropout", "Norm", "LU", "Norm1d", "Norm2d", "Norm3d", "Softplus", "Hardswish")


def layer_result(layer: Layer, call: Applied) -> Value:
    """What a layer returns; of one that is not known, something that depends on its input."""
    name = layer.name.rpartition(".")[2]
    if call.first is UNKNOWN and _TAKING_TENSORS.fullmatch(name) is not None:
        call.arguments = [LIKELY, *call.arguments[1:]]
    if name.endswith("Loss") and (call.first is UNKNOWN or isinstance(call.first, Tensor)):
        return call.result(SCALAR, "float")
    if not isinstance(call.first, Tensor):
        return UNKNOWN
    shape = call.shape
    size = Dim(layer.size)
    if name == "Linear":
        return call.result(with_last(shape, size), "float")
    if name == "Embedding":
        return call.result(with_last(shape.inserted(-1, ANY_LENGTH), size), "float")
    if _CONVOLUTION.fullmatch(name):
        return call.result(_convolved(shape, layer, int(name[-2])), "float")
    if name in ("LayerNorm", "RMSNorm"):
        known = shape.at(-1)
        is_said = known.text != "?" or known.sources or (shape.is_open and shape.sources)
        return call.result(shape if is_said else with_last(shape, size), "float")
    if name in _SAME or name.endswith(_KEEPING):
        return call.result(_with_channels(shape, size, name), "float")
    if name in _RECURRENT:
        outputs = call.result(with_last(shape, size), "float")
        return Items(UNKNOWN, (outputs, UNKNOWN))
    if name == "MultiheadAttention":
        whole = shape if shape.sources or shape.at(-1).text != "?" else with_last(shape, size)
        return items_of((call.result(whole, "float"), call.result(opened(shape.sources), "float")))
    if name == "Flatten":
        return apply_operator(Applied("flatten", call.arguments))
    pool = _POOL.fullmatch(name)
    if pool is not None and not shape.hidden:
        count = int(pool[1])
        lengths = (Dim("?", shape.at(2 + index).sources) for index in range(count))
        return call.result(closed(shape.at(0), shape.at(1), *lengths), "float")
    batch = shape.at(0)
    rest = shape.sources - batch.sources
    return call.result(Shape((batch,), hidden=rest), "float")


def _with_channels(shape: Shape, size: Dim, name: str) -> Shape:
    """What a norm of channels shows of its input: with dimensions in its name, all of it."""
    if shape.sources or size.text == "?" or shape.at(1).text != "?":
        return shape
    if shape.is_open and name[-2] in "23" and len(shape.lead) <= 2:
        lengths = (shape.at(index - int(name[-2])) for index in range(int(name[-2])))
        return closed(shape.at(0), size, *lengths)
    return shape if shape.is_open else shape.with_dim(1, size)


def _convolved(shape: Shape, layer: Layer, count: int) -> Shape:
    """The batch stays, the channels are those of the layer, and lengths may stay.

    A convolution is taken to be given a batch.
    """
    size = Dim(layer.size)
    batch = shape.at(0)
    if shape.is_open and shape.sources:
        return Shape((batch,), hidden=shape.sources - batch.sources)
    lengths = (shape.at(2 + index) for index in range(count))
    if not layer.keeps_lengths:
        lengths = (Dim("?", dim.sources) for dim in lengths)
    return Shape((batch, size, *lengths), is_open=False)
