"""Makefiles: their recipes are commands for a shell, and their settings are variables."""

import re

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.shell_commands import shell_findings
from npulens.text.spans import Span

_RECIPE = re.compile(r"^\t[ \t]*[@+-]*(?P<command>(?:[^\\\n]|\\\r?\n|\\.)*)", re.MULTILINE)
_SETTING = re.compile(
    r"^(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*(?:::?|[?+!])?=[ \t]*(?P<value>[^\n#]*)",
    re.MULTILINE,
)
_SHELL = re.compile(r"^[^\t#\n][^\n]*?\$\(shell[ \t]+(?P<command>[^()\n]*)\)", re.MULTILINE)
"""What a setting is computed by; those in recipes are read with them."""
_COMPILER = re.compile(r"(?:.*/)?nvcc\Z")


def makefile_findings(report: LaunchReport) -> None:
    """Report what the recipes run, what settings are of CUDA, and the compiler they name."""
    for setting in _SETTING.finditer(report.text):
        value = setting["value"].strip()
        name = Span(*setting.span("name"))
        report.variable(name, value)
        if _COMPILER.match(value) is not None:  # recipes run it by this name
            start = setting.start("value") + setting["value"].rindex("nvcc")
            span = Span(start, start + len("nvcc"))
            report.look_up(Place.COMMAND, "nvcc", "with arguments", span, span)
    for inner in _SHELL.finditer(report.text):
        shell_findings(report, *inner.span("command"))
    for recipe in _RECIPE.finditer(report.text):
        shell_findings(report, *recipe.span("command"))
