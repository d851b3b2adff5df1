"""Batches of other sizes: what loaders, collate functions and random sizes make of shapes."""

import ast
import re

from npulens.graphs.definitions import inner_statements
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_values import Foreign, Items, Number, Value, is_on
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below

LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
COLLATORS = frozenset(
    f"transformers.{name}"
    for name in (
        "DataCollatorWithPadding",
        "DataCollatorForTokenClassification",
        "DataCollatorForSeq2Seq",
        "DataCollatorForLanguageModeling",
    )
)
RANDOM = re.compile(r"(?:random|numpy\.random|np\.random)\.(?:randint|randrange|choice|uniform)")
_NOT_TRAINED_ON = re.compile(r"(?<![a-z])val(?!u)|eval|test|infer|predict", re.IGNORECASE)
RANDOM_NUMBER = Number("random")
LOADER_COST, PADDING_COST, SIZE_COST = 45, 45, 45


def keeps_last_batch(node: ast.Call, call: Applied) -> bool:
    """Whether a loader that shuffles, as those for training do, keeps its last, smaller batch."""
    named = {keyword.arg for keyword in node.keywords}
    if None in named or named & {"drop_last", "batch_sampler"} or len(node.args) > 8:
        return False
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return False
    size = call.get(1, "batch_size")
    if size is None or (isinstance(size, Number) and size.text in ("1", "None")):
        return False
    if isinstance(size, Foreign) or not is_on(call.get(2, "shuffle")):
        return False
    shuffles = next((k.value for k in node.keywords if k.arg == "shuffle"), None)
    shuffles = shuffles or (node.args[2] if len(node.args) > 2 else None)
    is_true = isinstance(shuffles, ast.Constant) and shuffles.value is True
    return is_true and _NOT_TRAINED_ON.search(ast.unparse(node)) is None


def evaluates(node: ast.Call, function: Function) -> bool:
    """Whether names say that a loader is for an evaluation, where no sample may be left out."""
    if _NOT_TRAINED_ON.search(function.name) is not None:
        return True
    return any(
        isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
        and any(each is node for each in nodes_below(statement))
        and _NOT_TRAINED_ON.search(ast.unparse(statement)) is not None
        for statement in inner_statements(function.body)
    )


def pads_to_longest(call: Applied) -> bool:
    """Whether a collator of a tokenizer pads to the longest of each batch."""
    padding = call.get(1, "padding")
    fixed = isinstance(padding, Foreign) and padding.name == "max_length"
    return not fixed and "pad_to_multiple_of" not in call.keywords


def has_random_size(call: Applied) -> bool:
    """Whether something is resized to a size that was drawn."""
    values = [call.get(1, "size"), call.keywords.get("scale_factor")]
    return any(map(_is_random, values))


def _is_random(value: Value | None) -> bool:
    if isinstance(value, Items) and value.elements is not None:
        return any(map(_is_random, value.elements))
    return value == RANDOM_NUMBER
