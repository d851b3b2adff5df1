"""Batches of other sizes: what loaders, collate functions and random sizes make of shapes."""

import ast
import re

from npulens.catalog.message_ids import MessageId
from npulens.checks.arguments import is_spread
from npulens.graphs.definitions import inner_statements
from npulens.shapes.repairs.buckets import given_argument, is_padded_on
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_rules import LAST_BATCH, PADDING, RANDOM_SIZE
from npulens.shapes.values.shape_values import Foreign, Items, Number, Value, is_on
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below

_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
_COLLATORS = frozenset(
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
PIPELINE_COST = 45
PAD = "torch.nn.utils.rnn.pad_sequence"


def rule_of_batches(
    node: ast.Call, name: str, call: Applied, function: Function
) -> tuple[str, MessageId] | None:
    """The rule that a call breaks since it makes batches of other sizes, and what is better."""
    if name in _LOADERS and _keeps_last_batch(node, call):
        return None if _evaluates(node, function) else (LAST_BATCH, "shape.drop-last")
    pads_batches = name == PAD and "collate" in function.name and not is_padded_on(node, function)
    if pads_batches or (name in _COLLATORS and _pads_to_longest(call)):
        return PADDING, "shape.fixed-length"
    if name == "torch.nn.functional.interpolate" and _has_random_size(call):
        return RANDOM_SIZE, "shape.few-sizes"
    return None


def _keeps_last_batch(node: ast.Call, call: Applied) -> bool:
    """Whether a loader that shuffles, as those for training do, keeps its last, smaller batch."""
    named = {keyword.arg for keyword in node.keywords}
    if is_spread(node) or named & {"drop_last", "batch_sampler"} or len(node.args) > 8:
        return False
    size = call.get(1, "batch_size")
    if size is None or (isinstance(size, Number) and size.text in ("1", "None")):
        return False
    if isinstance(size, Foreign) or not is_on(call.get(2, "shuffle")):
        return False
    shuffles = given_argument(node, 2, "shuffle")
    is_true = isinstance(shuffles, ast.Constant) and shuffles.value is True
    return is_true and _NOT_TRAINED_ON.search(ast.unparse(node)) is None


def _evaluates(node: ast.Call, function: Function) -> bool:
    """Whether names say that a loader is for an evaluation, where no sample may be left out."""
    if _NOT_TRAINED_ON.search(function.name) is not None:
        return True
    return any(
        isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
        and any(each is node for each in nodes_below(statement))
        and _NOT_TRAINED_ON.search(ast.unparse(statement)) is not None
        for statement in inner_statements(function.body)
    )


def _pads_to_longest(call: Applied) -> bool:
    """Whether a collator of a tokenizer pads to the longest of each batch."""
    padding = call.get(1, "padding")
    fixed = isinstance(padding, Foreign) and padding.name == "max_length"
    return not fixed and "pad_to_multiple_of" not in call.keywords


def _has_random_size(call: Applied) -> bool:
    """Whether something is resized to a size that was drawn."""
    values = [call.get(1, "size"), call.keywords.get("scale_factor")]
    return any(map(_is_random, values))


def _is_random(value: Value | None) -> bool:
    if isinstance(value, Items) and value.elements is not None:
        return any(map(_is_random, value.elements))
    return value == RANDOM_NUMBER
