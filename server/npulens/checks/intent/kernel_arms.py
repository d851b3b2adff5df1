"""Arms of conditions for a kernel that the module builds itself, with another way behind them.

`if x.device.type == "cuda" and _init(): return _kernel(x)`, where `_kernel` calls what was built
from `.cu` sources: as it is, the NPU takes the other way. With the NPU in the condition it would
build CUDA code.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import target_names
from npulens.syntax.walking import blocks, names_in, nodes_below
from npulens.text.spans import Span
from npulens.verdicts.kernels import tensors_checked

_SOURCE = ".cu"
_NAMED = re.compile(r"\.cu[\"']")


def without_kernel_arms(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without those about such conditions."""
    if _NAMED.search(module.text) is None or not any(f.rule.family == "device" for f in findings):
        return list(findings)
    tests = list(_tests(module))
    return [
        finding
        for finding in findings
        if finding.rule.family != "device"
        or not any(test.start <= finding.span.start < test.end for test in tests)
    ]


def _tests(module: WholeModule) -> Iterator[Span]:
    """Where the conditions of such arms are."""
    kernels = _kernels(module)
    if not kernels:
        return
    for body in blocks(module.nodes):
        for index, node in enumerate(body):
            if not isinstance(node, ast.If) or not any(tensors_checked(node.test)):
                continue
            other_way = node.orelse or body[index + 1 :]
            if not other_way or isinstance(other_way[0], ast.Raise):
                continue
            if any(not kernels.isdisjoint(names_in(statement)) for statement in node.body):
                yield module.lines.span(node.test)


def _kernels(module: WholeModule) -> set[str]:
    """The functions and classes of a module that use what is built from CUDA sources."""
    handles = set(_handles(module))
    if not handles:
        return set()
    return {
        node.name
        for node in module.tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not handles.isdisjoint(names_in(node))
        and not any(isinstance(part, ast.Global) for part in nodes_below(node))
    }


def _handles(module: WholeModule) -> Iterator[str]:
    """Names bound to what a call gives that gets CUDA sources, as loaders do."""
    functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef)]
    for parts in (module.tree.body, *map(nodes_below, functions)):
        given = [
            (part.value, [name for target in part.targets for name in target_names(target)])
            for part in parts
            if isinstance(part, ast.Assign)
        ]
        sources = {_SOURCE}
        for value, names in given:
            sources.update(names if _SOURCE in _sources(value) else ())
        for value, names in given:
            if isinstance(value, ast.Call) and not sources.isdisjoint(_sources(value)):
                yield from names


def _sources(node: ast.expr) -> Iterator[str]:
    """The CUDA sources that an expression names, each as their suffix, and all its names."""
    for part in nodes_below(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value[-len(_SOURCE) :]
        elif isinstance(part, ast.Name):
            yield part.id
