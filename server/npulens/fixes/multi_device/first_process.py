"""What the first process alone does: saving, plotting and records; others show no bars."""

import ast
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from npulens.fixes.multi_device.models import Aliases
from npulens.fixes.multi_device.reading import Reading, last_name
from npulens.syntax.walking import nodes_below
from npulens.training.node_places import Place

_SAVES = frozenset(
    {"torch.save", "numpy.save", "numpy.savez", "numpy.savetxt", "torchvision.utils.save_image"}
    | {"imageio.imwrite", "imageio.imsave", "imageio.mimsave", "scipy.io.savemat", "cv2.imwrite"}
    | {"shutil.copyfile", "shutil.copy", "shutil.copytree", "shutil.move", "shutil.rmtree"}
    | {"os.remove", "os.rename", "torch.onnx.export"}
)
_METHODS = frozenset(
    {"savefig", "save_pretrained", "push_to_hub", "to_csv", "to_json", "write_text", "write_bytes"}
    | {"add_scalar", "add_scalars", "add_image", "add_images", "add_figure", "add_histogram"}
    | {
        "add_graph",
        "add_text",
        "add_embedding",
        "add_hparams",
        "add_video",
        "add_audio",
        "add_pr_curve",
    }
)
_NAMES = re.compile(r"(?:^|_)(?:save|dump|export|snapshot)(?:_|$)|checkpoint", re.IGNORECASE)
_LOADS = re.compile(r"load|resume|restore", re.IGNORECASE)
_BARS = frozenset({"tqdm", "trange"})
_SHOWS = frozenset({"matplotlib.pyplot.show", "matplotlib.pyplot.savefig"})
_WRITING = re.compile(r"[wax]b?\+?|[wax]\+?[bt]?")
_RECORDS = frozenset({"wandb.init"})


class FirstProcess(NamedTuple):
    """What changes where one process speaks for all; see `Plan`."""

    only: tuple[ast.stmt, ...]
    quiet: tuple[ast.Call, ...]
    opened: tuple[ast.expr, ...]
    recorded: tuple[ast.Call, ...]
    folders: tuple[ast.Call, ...]


def first_process(reading: Reading, aliases: Aliases, inner: Container[ast.expr]) -> FirstProcess:
    """What the first process alone does, and what the others do in another way.

    Args:
        reading: The script.
        aliases: What holds wrapped models.
        inner: Where the model inside of the wrapper is meant.

    Raises:
        UnclearError: Every process would save somewhere, and that is no statement.
    """
    only: dict[ast.stmt, None] = {}
    quiet: list[ast.Call] = []
    opened: list[ast.expr] = []
    recorded: list[ast.Call] = []
    folders: list[ast.Call] = []
    for call, place in reading.calls():
        names = reading.names(call.func)
        if _writes(reading, call, names):
            statement = place.statements[-1]
            if not isinstance(statement, ast.Expr) or statement.value is not call:
                if "torch.save" in names:
                    raise reading.unclear(call, "distributed.saves-within")
                continue
            if _is_of_data(reading, place):
                continue
            _require_alone(reading, call, aliases, inner)
            only[statement] = None
        elif last_name(call.func) in _BARS and "disable" not in {k.arg for k in call.keywords}:
            if any(name.partition(".")[0] == "tqdm" for name in names):
                quiet.append(call)
        elif _opens(call) and _is_for_writing(call) and not _reads_back(reading, call, place):
            opened.append(call.args[0])
        elif not _RECORDS.isdisjoint(names) and "mode" not in {k.arg for k in call.keywords}:
            recorded.append(call)
        elif _makes_folder(reading, call, names):
            folders.append(call)
    return FirstProcess(tuple(only), tuple(quiet), tuple(opened), tuple(recorded), tuple(folders))


def loads_behind(reading: Reading) -> Iterator[ast.stmt]:
    """The statements behind the training that load a file, which may be one it has saved."""
    ways = [way for step in reading.training.steps for way in step.ways]
    trained: dict[ast.AST | None, int] = {}
    for site in (site for way in ways for site in way.sites):
        line = max((loop.end_lineno or 0 for loop in site.loops), default=site.node.lineno)
        trained[site.function] = max(line, trained.get(site.function, 0))
    for call, place in reading.calls():
        end = trained.get(place.function)
        is_run = place.function is not None or reading.script_of(call) is reading.script
        is_behind = end is not None and call.lineno > end and is_run
        if is_behind and "torch.load" in reading.names(call.func):
            yield place.statements[-1]


def _writes(reading: Reading, call: ast.Call, names: list[str]) -> bool:
    if not (_SAVES | _SHOWS).isdisjoint(names):
        return True
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _METHODS:
        return True
    name = last_name(function)
    if reading.flow.functions_run(call) or _LOADS.search(name):
        return False  # what a function of this file does is seen in it
    return bool(_NAMES.search(name))


def _is_of_data(reading: Reading, place: Place) -> bool:
    """Whether it is in a dataset, which keeps for itself what it has read or computed."""
    owner = place.owner
    bases = [] if owner is None else reading.program.bases(owner)
    return any("Dataset" in last_name(base) for each in bases for base in each.bases)


def _require_alone(
    reading: Reading, call: ast.Call, aliases: Aliases, inner: Container[ast.expr]
) -> None:
    """See that what one process does alone runs no model that waits for the others."""
    for node in nodes_below(call):
        if not isinstance(node, ast.Call) or node is call:
            continue
        run = reading.flow.functions_run(node)
        used = (part for function in run for part in nodes_below(function))
        uses = any(aliases.is_wrapped(part) and part not in inner for part in used)
        if uses or aliases.is_wrapped(node.func):
            source = reading.source(node)
            raise reading.unclear(node, "distributed.computes-alone", code=source)


def _opens(call: ast.Call) -> bool:
    return getattr(call.func, "id", "") == "open" and bool(call.args)


def _reads_back(reading: Reading, call: ast.Call, place: Place) -> bool:
    """Whether the same function reads what it writes, as of a download that it checks."""
    if place.function is None:
        return False
    path = ast.unparse(call.args[0])
    return any(
        isinstance(node, ast.Call)
        and _opens(node)
        and not _is_for_writing(node)
        and ast.unparse(node.args[0]) == path
        for node in nodes_below(place.function)
    )


def _is_for_writing(call: ast.Call) -> bool:
    mode = next((k.value for k in call.keywords if k.arg == "mode"), None)
    if len(call.args) > 1:
        mode = call.args[1]
    is_text = isinstance(mode, ast.Constant) and isinstance(mode.value, str)
    return bool(call.args) and is_text and bool(_WRITING.fullmatch(mode.value))  # type: ignore[union-attr]


def _makes_folder(reading: Reading, call: ast.Call, names: list[str]) -> bool:
    if any(k.arg == "exist_ok" for k in call.keywords):
        return False
    if names and names[0] in ("os.mkdir", "os.makedirs"):
        return bool(call.args)
    return isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir" and not names


def inside_alone(
    reading: Reading, statements: tuple[ast.stmt, ...], aliases: Aliases
) -> Iterator[ast.expr]:
    """Wrapped models in what one process does alone: the model in them does not wait for others."""
    for statement in statements:
        for node in nodes_below(statement):
            if (
                isinstance(node, ast.expr)
                and aliases.is_wrapped(node)
                and getattr(reading.parents[node], "attr", "") != "module"
            ):
                yield node
