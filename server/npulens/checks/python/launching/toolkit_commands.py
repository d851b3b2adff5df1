"""Tools of the CUDA toolkit that Python starts: `subprocess.run(["nvcc", "-V"])`."""

import ast
from typing import NamedTuple

from npulens.catalog.tables import Place
from npulens.checks.context import Context
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.python.launching.environment import take_over
from npulens.checks.python.libraries.library_calls import RUNNERS
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import last_name
from npulens.text.spans import Span

_STARTERS = RUNNERS - {"shutil.which"}
_STARTER_NAMES = frozenset(name.rpartition(".")[2] for name in _STARTERS)


class _Program(NamedTuple):
    """The text that ends in the path of a program, or begins with its name."""

    text: str
    node: ast.expr


def started(node: ast.Call, scope: Scope, context: Context) -> None:
    """`check_output([CUDA_HOME + "/bin/nvcc", "-V"])`, `os.system("nsys profile python a.py")`."""
    if last_name(node.func) not in _STARTER_NAMES or not node.args:
        return
    program = _program(node.args[0])
    if program is None or _STARTERS.isdisjoint(qualified_names(node.func, scope)):
        return
    path = program.text.split(maxsplit=1)[0]
    name = path.rpartition("/")[2]
    at = context.code.text.find(path, *context.span(program.node))
    span = Span(at + len(path) - len(name), at + len(path))
    if at < 0 or not name or name == "nvidia-smi" or span in context.reported.spans:
        return
    report = LaunchReport(context.code.text, context.catalogue, context.target)
    report.look_up(Place.COMMAND, name, "with arguments", span, span)
    take_over(report.finish(), context)


def _program(command: ast.expr) -> _Program | None:
    """What a command starts with; of a path that is put together its last part."""
    is_list = isinstance(command, (ast.List, ast.Tuple))
    first = command.elts[0] if is_list and command.elts else command  # type: ignore[attr-defined]
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
        first = first.right
    if isinstance(first, ast.JoinedStr) and first.values:
        first = first.values[-1 if is_list else 0]
    elif isinstance(first, ast.Call) and last_name(first.func) == "join" and first.args:
        first = first.args[-1]  # `os.path.join(CUDA_HOME, "bin", "nvcc")`
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.strip():
        return _Program(first.value, first)
    return None
