"""What Python asks Slurm for, through submitit or Dora."""

import ast

from npulens.catalog.tables import Place
from npulens.checks.context import Context
from npulens.checks.given import Given, given_settings
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.python.launching.environment import take_over
from npulens.syntax.meanings import resolve
from npulens.syntax.scopes import Scope, imports_any
from npulens.syntax.walking import choices
from npulens.text.spans import Span

_PREFIX = "slurm_"
_CALLS = frozenset({"update_parameters", _PREFIX})
_COUNTS = frozenset({"gpus_per_node", "gpus_per_task"})
_FURTHER = "slurm_additional_parameters"
_SUBMITIT = frozenset({"submitit"})


def submitted(node: ast.Call, scope: Scope, context: Context) -> None:
    """`executor.update_parameters(gpus_per_node=8)` of submitit, `launcher.slurm_(gpus=8)` of Dora.

    Where the object comes from is often another file, so that names of Slurm count as well.
    """
    if not _is_request(node):
        return
    assert isinstance(node.func, ast.Attribute)
    names = {keyword.arg for keyword in node.keywords}
    is_of_slurm = any(name is not None and name.startswith(_PREFIX) for name in names)
    values = resolve(node.func, scope)
    is_of_submitit = any(getattr(v, "name", "").startswith("submitit.") for v in values)
    if node.func.attr == "update_parameters" and not is_of_slurm and not is_of_submitit:
        return
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else "unknown"
        if keyword.arg is not None and value:
            _look_up(keyword.arg.removeprefix(_PREFIX), str(value), context.span(keyword), context)


def given(node: ast.AST, scope: Scope, context: Context) -> None:
    """`parameters["slurm_constraint"] = "volta32gb"`, whoever is given the parameters later."""
    if isinstance(node, ast.Call) and _is_request(node):
        return
    for setting in given_settings(node):
        if setting.name.lstrip("-").startswith(_PREFIX) or _is_count(setting, scope):
            _report_given(setting, context)


def further(node: ast.AST, scope: Scope, context: Context) -> None:
    """`slurm_additional_parameters={"gres": "gpu:8"}`, which submitit hands to `sbatch`."""
    for setting in given_settings(node):
        if setting.name == _FURTHER and isinstance(setting.value, ast.Dict):
            for each in given_settings(setting.value):
                _report_given(each, context)


def _is_request(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS


def _is_count(setting: Given, scope: Scope) -> bool:
    """`options["gpus_per_node"] = 8`; a name may be any number of cards."""
    is_entry = isinstance(setting.place, (ast.Constant, ast.Subscript))
    return setting.name in _COUNTS and is_entry and imports_any(_SUBMITIT, scope)


def _report_given(setting: Given, context: Context) -> None:
    name = setting.name.lstrip("-").replace("-", "_").removeprefix(_PREFIX)
    for each in choices(setting.value):
        value = each.value if isinstance(each, ast.Constant) else None
        if isinstance(value, (str, int)) and value:
            start = context.span(setting.place).start
            _look_up(name, str(value), Span(start, context.span(each).end), context)
            return


def _look_up(name: str, value: str, span: Span, context: Context) -> None:
    report = LaunchReport(context.code.text, context.catalogue, context.target)
    report.look_up(Place.SCHEDULER, name, value, span, span)
    take_over(report.finish(), context)
