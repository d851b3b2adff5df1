"""Settings in JSON of the NPU's tools: msprobe, and the profiler that is started while it runs.

Such a file may have any name, so that it is known by its keys.
"""

from collections.abc import Sequence

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import Beside, LaunchReport
from npulens.syntax.settings import Setting
from npulens.text.spans import Span

_BESIDE_TASK = ('"level"', '"step"', '"rank"')
_TASKS = frozenset({"tensor", "statistics", "acc_check", "run_ut", "overflow_check"})
_OTHER_TOOL = ("dump", "common_dump_settings")
"""Sections of another tool that guides give to msprobe; that tool itself has them side by side."""
_MOST = 1000
"""So many settings are looked at; people write fewer."""


def tool_settings(report: LaunchReport, settings: Sequence[Setting]) -> None:
    """Report keys and values that a tool of the NPU does not take."""
    tool = _tool(report.text, settings)
    if tool is None:
        return
    places = [(_path(setting), _written(report.text, setting)) for setting in settings[:_MOST]]
    pairs = [f"{path}={report.text[slice(*span)]}" for path, span in places]
    beside = Beside(pairs, is_all=len(settings) <= _MOST)
    for setting, (path, span) in zip(settings, places, strict=False):
        name = f"{tool} {path}"
        value = report.text[slice(*span)]
        report.look_up(Place.TOOL_KEY, name, value, setting.key_span, span, beside)


def _tool(text: str, settings: Sequence[Setting]) -> str | None:
    """Whose settings a file holds, if it is one of the tools."""
    if not any(word in text for word in ("dump_path", "experimental_config", _OTHER_TOOL[1])):
        return None
    keys = {setting.parents[0] if setting.parents else setting.key for setting in settings}
    if "experimental_config" in keys and not keys.isdisjoint(("prof_dir", "activities")):
        return "profiler"
    is_of_task = "task" in keys and any(key in text for key in _BESIDE_TASK)
    if "dump_path" in keys and (is_of_task or not keys.isdisjoint(_TASKS)):
        return "msprobe"
    is_of_guide = any(setting.parents[:2] == _OTHER_TOOL for setting in settings)
    return "msprobe" if is_of_guide else None


def _path(setting: Setting) -> str:
    """Its keys with dots between them; `[]` behind those of an element of a list."""
    around = ".".join(setting.parents)
    if not setting.key:
        return f"{around}[]"
    return f"{around}.{setting.key}" if around else setting.key


def _written(text: str, setting: Setting) -> Span:
    """A value with its quotes, which tell a text from a number."""
    start, end = setting.span
    is_quoted = text[start - 1 : start] == '"' == text[end : end + 1]
    return Span(start - is_quoted, end + is_quoted)
