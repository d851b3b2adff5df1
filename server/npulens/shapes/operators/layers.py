"""What the layers of `torch.nn` make of shapes."""

import re

from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import UNKNOWN, Items, Layer, Tensor, Value, items_of
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, SCALAR, Dim, Shape, opened

_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_SAME = frozenset({"Identity", "Softmax", "LogSoftmax", "Sigmoid", "Tanh"})
_CONVOLUTION = re.compile(r"Conv(?:Transpose)?[123]d")
_KEEPING = ("Dropout", "Norm", "LU", "Norm1d", "Norm2d", "Norm3d", "Softplus", "Hardswish")


def layer_result(layer: Layer, call: Applied) -> Value:
    """What a layer returns; of one that is not known, something that depends on its input."""
    name = layer.name.rpartition(".")[2]
    shape = call.shape
    if not isinstance(call.first, Tensor):
        return UNKNOWN
    if name.endswith("Loss"):
        return call.result(SCALAR, "float")
    size = Dim(layer.size)
    if name == "Linear":
        return call.result(_with_last(shape, size), "float")
    if name == "Embedding":
        return call.result(_with_last(shape.inserted(-1, ANY_LENGTH), size), "float")
    if _CONVOLUTION.fullmatch(name):
        return call.result(_convolved(shape, size, int(name[-2])), "float")
    if name in _SAME or name.endswith(_KEEPING):
        return call.result(shape, "float")
    if name in _RECURRENT:
        return Items(UNKNOWN, (Tensor(opened(shape.sources), "float"), UNKNOWN))
    if name == "MultiheadAttention":
        return items_of((call.result(shape, "float"), call.result(opened(shape.sources), "float")))
    if name == "Flatten":
        return apply_operator(Applied("flatten", call.arguments))
    batch = shape.at(0)
    rest = shape.sources - batch.sources
    return call.result(Shape((batch,), hidden=rest), "float")


def _with_last(shape: Shape, size: Dim) -> Shape:
    """A shape whose last dimension has a size, also where nothing else is known."""
    if shape.is_open and not shape.tail:
        return shape._replace(tail=(size,)) if size.text != "?" else shape
    return shape.with_dim(-1, size)


def _convolved(shape: Shape, size: Dim, count: int) -> Shape:
    """The batch stays, the channels are those of the layer, and what lengths become is not known.

    A convolution is taken to be given a batch.
    """
    batch = shape.at(0)
    if shape.is_open and shape.sources:
        return Shape((batch,), hidden=shape.sources - batch.sources)
    lengths = (Dim("?", shape.at(2 + index).sources) for index in range(count))
    return Shape((batch, size, *lengths), is_open=False)
