"""What the layers of `torch.nn` make of shapes."""

from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import UNKNOWN, Items, Layer, Tensor, Value, items_of
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, SCALAR, Shape, opened

_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_SAME = frozenset({"Identity", "Softmax", "LogSoftmax", "Sigmoid", "Tanh"})
_KEEPING = ("Dropout", "Norm", "LU", "Norm1d", "Norm2d", "Norm3d", "Softplus", "Hardswish")


def layer_result(layer: Layer, call: Applied) -> Value:
    """What a layer returns; of one that is not known, something that depends on its input."""
    name = layer.name.rpartition(".")[2]
    shape = call.shape
    if not isinstance(call.first, Tensor):
        return UNKNOWN
    if name.endswith("Loss"):
        return call.result(SCALAR, "float")
    if name == "Linear":
        return call.result(shape.with_dim(-1, ANY_LENGTH), "float")
    if name == "Embedding":
        return call.result(shape.inserted(-1, ANY_LENGTH), "float")
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
