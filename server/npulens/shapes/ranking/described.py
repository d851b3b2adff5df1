"""What the call graph has to know of the functions of a segment, and where these are."""

import ast
import re
from collections.abc import Iterator

from npulens.checks.segments.segment import Segment
from npulens.checks.segments.shape_answers import Described
from npulens.graphs.definitions import ClassHere, Definitions
from npulens.shapes.ranking.evaluation_prefilter import functions_of
from npulens.shapes.ranking.reporting import name_of
from npulens.shapes.ranking.scoring import calls_in, sends_objects
from npulens.syntax.docstrings import docstring_of
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

MODULE = "<module>"
"""The name under which statements of a module are known."""
_LOOP = re.compile(r"^[ \t]+(?:for|while) ", re.MULTILINE)
_UPDATES = re.compile(r"step\(|zero_")
"""What a block holds that updates weights, and not only tries out its gradients."""
Block = ast.For | ast.While | ast.If | ast.With | ast.Try


def described(segment: Segment, definitions: Definitions) -> Iterator[Described]:
    """The functions and methods of a segment, and its blocks that train."""
    lines = segment.parsed.lines
    for function in functions_of(segment.parsed.body, definitions):
        owner = function.owner
        text = text_of(function.node, lines)
        has_loop = _LOOP.search(text) is not None
        trains = ".backward(" in text or (has_loop and _sets_training(text))
        is_module = owner is not None and "forward" in owner.methods
        sends = not trains and sends_objects(text)
        calls = calls_in(lines.text[slice(*code_span(function.node, lines))])
        is_step = function.node.name == "step" and owner is not None and _is_optimizer(owner)
        in_loop = trains and has_loop
        if in_loop and ".backward(" in text:
            in_loop = _trains_in_loop(function.node, lines)
        name = name_of(function)
        yield Described(name, calls, trains, is_module, sends, has_loop, is_step, in_loop)
    for node in segment.parsed.body:
        text = text_of(node, lines) if isinstance(node, Block) else ""
        if ".backward(" in text and _UPDATES.search(text) is not None:
            calls = calls_in(text)
            yield Described(MODULE, calls, True, False, False, has_loop=True, loops_train=True)


def _trains_in_loop(node: ast.stmt, lines: LineMap) -> bool:
    """Whether a backward pass is in a loop of a function."""
    loops = (part for part in nodes_below(node) if isinstance(part, ast.For | ast.While))
    return any(".backward(" in text_of(loop, lines) for loop in loops)


def _sets_training(text: str) -> bool:
    """Whether a function has a model train and does not only have it do so again."""
    return ".train()" in text and ".eval()" not in text


def _is_optimizer(owner: ClassHere) -> bool:
    return any(last_name(base).endswith("Optimizer") for base in owner.node.bases)


def lines_span(node: ast.stmt, lines: LineMap) -> Span:
    """The lines that a statement is in, as a whole."""
    starts = lines.starts
    last = node.end_lineno or node.lineno
    return Span(starts[node.lineno - 1], starts[last] if last < len(starts) else len(lines.text))


def code_span(node: ast.stmt, lines: LineMap) -> Span:
    """These lines; of a function that has a docstring, those behind it."""
    whole = lines_span(node, lines)
    text = docstring_of(node)
    if text is None:
        return whole
    return Span(lines.offset(text.end_lineno or text.lineno, text.end_col_offset or 0), whole.end)


def text_of(node: ast.stmt, lines: LineMap) -> str:
    """The text of these lines."""
    return lines.text[slice(*lines_span(node, lines))]
