"""From a script that trains on one device to one process for each card.

A script that wraps its model in `DataParallel` is rewritten as `distributed.py` does it. In others
the model is wrapped behind the statement that makes it or moves it last; code that needs more than
a wrapped model has uses the model inside. Files are saved by the first process alone. What the
script does not show in one place is refused with the reason: half a change would train each card
on its own and look as if it worked.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import Edit, LocalizedText
from npulens.fixes.data_loaders import (
    BACKWARD,
    sampler_edits,
    training_functions,
    training_loader,
)
from npulens.fixes.distributed import process_per_card, wraps_in_data_parallel
from npulens.fixes.model_uses import inner_model_edits
from npulens.fixes.numbered_cards import unnumbered_devices
from npulens.fixes.scripts import (
    ALREADY_SEVERAL_PROCESSES,
    Cards,
    Home,
    Script,
    UnclearError,
    calls_of,
    home_of,
    joined,
    read_script,
    setup_edits,
)
from npulens.syntax.meanings import qualified_names
from npulens.syntax.parsing import module_tree
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.lines import line_ending
from npulens.text.spans import Span
from npulens.verdicts.conditions import Known

_MOVES = frozenset({"to", "cuda", "npu", "half", "float", "double", "bfloat16"})
_OTHER_WAYS = re.compile(
    r"\b(?P<library>deepspeed|horovod|colossalai)\b"
    r"|\bset_default_(?P<default>device|tensor_type)\((?![\"']cpu)(?=[^)\n]*(?:cuda|npu|device))"
)
"""What else starts processes or moves tensors for a whole script."""
_VISIBLE = re.compile(
    r"environ(?:\[|\.setdefault\()\s*[\"'](?:CUDA|ASCEND_RT)_VISIBLE_DEVICES[\"']\s*(?:,|\]\s*=(?!=))"
)
"""Where a script chooses the cards that it sees: the other processes would find none."""
_FIRST_PROCESS = "if torch.distributed.get_rank() == 0:"


class Caution(NamedTuple):
    """Something that a person should know of the new script."""

    line: int
    text: LocalizedText


def distribute(text: str, model: str, known: Known, cards: Cards) -> tuple[Edit, ...]:
    """The edits that make a script train in one process for each card.

    Raises:
        UnclearError: It is not clear how; the reason says what and where.
    """
    try:
        tree = module_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnclearError(line, "distributed.does-not-parse") from error
    if several := ALREADY_SEVERAL_PROCESSES.search(text):
        raise UnclearError(_line_of(several), "distributed.chooses-device", code=several[0])
    if other := _OTHER_WAYS.search(text):
        if other["library"]:
            library = other["library"]
            raise UnclearError(_line_of(other), "distributed.other-library", library=library)
        call = f"set_default_{other['default']}"
        raise UnclearError(_line_of(other), "distributed.default-device", call=call)
    if visible := _VISIBLE.search(text):
        raise UnclearError(_line_of(visible), "distributed.chooses-cards")
    if BACKWARD not in text:
        raise UnclearError(1, "distributed.no-training")
    script = read_script(tree, text, cards)
    if wraps_in_data_parallel(script):
        edits = process_per_card(script, known)
    else:
        edits = joined(_wrapped(script, model))
    return joined([*edits, *_saves(script)])


def _line_of(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start()) + 1


def _wrapped(script: Script, model: str) -> Iterator[Edit]:
    """All steps for a model that nothing wraps yet."""
    calls = list(calls_of(script.tree.body, script.module))
    home = _home(script, model, calls)
    _require_one_model(script, model, calls)
    at = _last_preparation(script, home.body, model)
    following = home.body[at + 1 : at + 2]
    place = following and script.line_before(following[0], _wrapping(model, script.cards))
    if not place:
        raise UnclearError(home.body[at].lineno, "distributed.nothing-follows", model=model)
    yield from setup_edits(script, home)
    yield place
    yield from sampler_edits(script, home.body, training_loader(script, home.body, calls))
    yield from unnumbered_devices(script)
    yield from inner_model_edits(script, home.body[at + 1 :], model)


def _wrapping(model: str, cards: Cards) -> tuple[str, ...]:
    """The statements that wrap a model.

    It is moved by a statement of its own: as part of the assignment, `npu` would look like the
    author's own answer to the assignment of `model.cuda()` before it.
    """
    wrapper = "torch.nn.parallel.DistributedDataParallel"
    return (
        f"{model}.to({cards.of_process})",
        f"{model} = {wrapper}({model}, device_ids=[local_rank])",
    )


def _home(script: Script, model: str, calls: Sequence[tuple[ast.Call, Scope]]) -> Home:
    """The block that makes the model."""
    values = [value for node in nodes_below(script.tree) for value in _assigned(node, model)]
    made = [(call, scope) for call, scope in calls if any(value is call for value in values)]
    if not made:
        raise _never_made(script, model, values)
    homes = [home_of(script, call, scope) for call, scope in made]
    first = homes[0]
    if first is None:
        raise UnclearError(made[0][0].lineno, "distributed.made-elsewhere", model=model)
    for (call, _), home in zip(made, homes, strict=True):
        if home is None or home.body is not first.body:
            raise UnclearError(call.lineno, "distributed.several-functions", model=model)
    return first


def _never_made(script: Script, model: str, values: Sequence[ast.expr]) -> UnclearError:
    """Why no call is known to make the model, at the line that comes nearest to it."""
    if values:
        return UnclearError(values[0].lineno, "distributed.not-made-by-call", model=model)
    named = [
        node.lineno
        for node in nodes_below(script.tree)
        if (isinstance(node, ast.Name) and node.id == model)
        or (isinstance(node, ast.arg) and node.arg == model)
    ]
    if named:
        return UnclearError(min(named), "distributed.not-made", model=model)
    return UnclearError(1, "distributed.no-variable", model=model)


def _assigned(node: ast.AST, model: str) -> Iterator[ast.expr]:
    """What a statement assigns to the model: of `model, loss = Net(), Loss()` the first value."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return
    value = node.value
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if getattr(target, "id", "") == model:
            yield value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            beside = len(values) == len(target.elts) and not any(
                isinstance(each, ast.Starred) for each in (*values, *target.elts)
            )
            for at, each in enumerate(target.elts):
                if getattr(each, "id", "") == model:
                    yield values[at] if beside else value


def _require_one_model(script: Script, model: str, calls: Sequence[tuple[ast.Call, Scope]]) -> None:
    """See that optimizers get parameters of this model only."""
    for call, scope in calls:
        names = qualified_names(call.func, scope)
        if not any(name.startswith("torch.optim.") for name in names):
            continue
        for part in nodes_below(call):
            if isinstance(part, ast.Attribute) and part.attr in ("parameters", "named_parameters"):
                owner = part.value
                while isinstance(owner, ast.Attribute):
                    owner = owner.value
                if getattr(owner, "id", model) != model:
                    raise UnclearError(
                        part.lineno, "distributed.second-model", code=script.source(part.value)
                    )


def _last_preparation(script: Script, body: Sequence[ast.stmt], model: str) -> int:
    """The last statement of a block that makes the model or moves it."""
    last = max(at for at, statement in enumerate(body) if _prepares(statement, model))
    training = training_functions(script)
    for statement in body[: last + 1]:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        called = {
            getattr(n.func, "id", "") for n in nodes_below(statement) if isinstance(n, ast.Call)
        }
        if BACKWARD in script.source(statement) or called & training:
            raise UnclearError(
                statement.lineno, "distributed.trains-before", model=model, line=body[last].lineno
            )
    return last


def _prepares(statement: ast.stmt, model: str) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    for node in nodes_below(statement):
        if any(_assigned(node, model)):
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _MOVES
            and getattr(node.func.value, "id", "") == model
        ):
            return True
    return False


def _saves(script: Script) -> Iterator[Edit]:
    """Let the first process alone do what saves files."""
    statements = [n for n in nodes_below(script.tree) if isinstance(n, ast.Expr)]
    for call, scope in calls_of(script.tree.body, script.module):
        if "torch.save" not in qualified_names(call.func, scope):
            continue
        statement = next((s for s in statements if s.value is call), None)
        if statement is None or not _is_alone(script, statement):
            raise UnclearError(call.lineno, "distributed.saves-within")
        lines = script.lines
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        start = lines.starts[first - 1]
        indentation = lines.text[start : script.span(statement).start]
        newline = line_ending(lines.text)
        more = "\t" if indentation.endswith("\t") else "    "
        yield Edit(Span(start, start), f"{indentation}{_FIRST_PROCESS}{newline}{more}")
        for number in range(first + 1, last + 1):
            at = lines.starts[number - 1]
            yield Edit(Span(at, at), more)


def _is_alone(script: Script, statement: ast.Expr) -> bool:
    """Whether a statement has its lines to itself, and no text runs over several of them."""
    lines, span = script.lines, script.span(statement)
    before = lines.text[lines.starts[statement.lineno - 1] : span.start]
    end = statement.end_lineno or statement.lineno
    stop = lines.starts[end] if end < len(lines.starts) else len(lines.text)
    behind = lines.text[span.end : stop].strip()
    return (
        not before.strip()
        and (not behind or behind.startswith("#"))
        and not any(
            isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno
            for node in nodes_below(statement)
        )
    )


_IN_EVERY_PROCESS = re.compile(r"\b(?:SummaryWriter|wandb\.init|mlflow\.start_run)\(")
_DOWNLOADS = re.compile(r"\bdownload\s*=\s*True\b")
_MAKES_FOLDERS = re.compile(r"\bos\.(?:mkdir\(|makedirs\((?![^\n]*exist_ok))")
_NUMBERED_CARD = re.compile(r"\.cuda\((?:device=)?(?!non_blocking)[\w.]*[A-Za-z][\w.]*[,)]")
_CAUTIONS: Sequence[tuple[re.Pattern[str], MessageId]] = (
    (_IN_EVERY_PROCESS, "distributed.every-process-writes"),
    (_DOWNLOADS, "distributed.all-download"),
    (_MAKES_FOLDERS, "distributed.folder-is-there"),
    (_NUMBERED_CARD, "distributed.brackets"),
)


def cautions(text: str, distributed: str) -> list[Caution]:
    """What to know of a script that became distributed; lines are those of the first text."""
    found = [Caution(1, message("distributed.of-all"))]
    if "DistributedSampler(" in distributed and ".set_epoch(" not in distributed:
        found.append(Caution(1, message("distributed.no-epoch")))
    for pattern, caution in _CAUTIONS:
        found += (Caution(_line_of(match), message(caution)) for match in pattern.finditer(text))
    return found
