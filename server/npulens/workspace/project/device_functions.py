"""Functions of a project that say which device is used, and know the NPU."""

from npulens.verdicts.device_answers import TRACES
from npulens.verdicts.device_answers import device_functions as functions_in
from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo, texts
from npulens.workspace.index.re_exports import packages, place_of, re_exported, triples

_TRACES = tuple(trace.encode() for trace in TRACES)


def device_functions(modules: Modules, memo: FactMemo) -> frozenset[tuple[str, str, bool]]:
    """The functions, by the paths of their modules without ending and their names."""
    found = {
        (place_of(file), name): True
        for file, content in modules.items()
        if _may_define(content, memo)
        for name in _functions(content, memo)
    }
    found.update(re_exported(packages(modules), found, memo))
    return triples(found)


def _may_define(content: Content, memo: FactMemo) -> bool:
    """Whether a module may hold such a function."""
    return memo.is_so(
        "names devices",
        content.digest,
        lambda: b"device" in content.data and any(trace in content.data for trace in _TRACES),
    )


def _functions(content: Content, memo: FactMemo) -> tuple[str, ...]:
    return memo.recall(
        "device functions", (content.digest,), lambda: list(functions_in(content.text)), texts
    )
