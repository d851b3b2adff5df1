"""Settings that choose what only CUDA has: `flash_attn=True`, `optim="adamw_bnb_8bit"`.

They are those of files for launching, in Python.
"""

import ast

from npulens.catalog.tables import Place
from npulens.checks.context import Context
from npulens.checks.other_files.launch_report import LaunchReport, any_of
from npulens.checks.other_files.shell import normal_name
from npulens.checks.python.environment import take_over
from npulens.checks.python.given import given_settings
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import choices


def given(node: ast.AST, scope: Scope, context: Context) -> None:
    """A setting of the tables, with a value that is written."""
    names = any_of(context.catalogue.setting_names)
    for name, value, place in given_settings(node):
        normal = normal_name(name.lstrip("-"))
        if names.fullmatch(normal) is None or normal.endswith("channels_last"):
            continue  # in Python that is the order of dimensions that a layer takes
        if isinstance(node, ast.Call) and normal == "load_in_8bit":
            continue  # this has a check of its own, see `library_calls.py`
        for each in choices(value):
            if isinstance(each, ast.Constant):
                span = context.span(each)
                report = LaunchReport(context.text, context.catalogue)
                report.look_up(Place.SETTING, normal, str(each.value), context.span(place), span)
                take_over(report.findings, context)
