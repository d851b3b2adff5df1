"""What CMake builds of CUDA code for Python."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Related, Rule
from npulens.catalog.settlements import Settlement
from npulens.checks.other_files.cpp_bindings import CUDA_SUFFIXES
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.shared_rules import CUDA_EXTENSION
from npulens.syntax.cmake import Command, Word, cmake_commands, cmake_variables, expanded
from npulens.text.spans import Span

_MODULES = frozenset(
    {"pybind11_add_module", "nanobind_add_module", "python_add_library", "python3_add_library"}
)
_CUDA_LIBRARIES = frozenset({"cuda_add_library", "cuda_add_executable"})
_LIBRARIES = frozenset({"add_library", "add_executable"})
_FOR_PYTHON = re.compile(r"torch|pybind11|nanobind|python3?_add_library", re.IGNORECASE)
"""What a file names that builds for PyTorch or Python; others build programs of their own."""
_IMPORTABLE = re.compile(r"\bPREFIX\s+\"\"")
_SETTING = re.compile(
    r"(?:CMAKE_)?CUDA_(?:ARCHITECTURES|NVCC_FLAGS|FLAGS|SEPARABLE\w*|STANDARD)\w*"
)
_FOLDERS = re.compile(r"\$\{(?:CMAKE_)?CUDA(?:Toolkit)?_[A-Z_]*(?:INCLUDE|LIBRAR|TARGET|BIN)\w*\}")
"""Where CUDA's headers and libraries are."""
_LANGUAGES = frozenset({"project", "enable_language", "find_package"})
_TOOLKITS = frozenset({"CUDA", "CUDAToolkit", "TensorRT"})
_RUNTIMES = frozenset({"cudart", "CUDA::cudart", "nvinfer", "cublas", "cudnn"})
_MOST_RELATED = 20


class CudaTarget(NamedTuple):
    """A target with CUDA code.

    Attributes:
        name: What it is called.
        command: The command that makes it, as written.
        span: The place of that.
        line: The line of that, from 1.
        is_module: It can be imported.
        sources: The names of its sources, without folders.
    """

    name: str
    command: str
    span: Span
    line: int
    is_module: bool
    sources: tuple[str, ...]


def cuda_targets(text: str) -> list[CudaTarget]:
    """The targets of a file that have CUDA code, if it builds for PyTorch or Python."""
    if _FOR_PYTHON.search(text) is None:
        return []
    commands = list(cmake_commands(text))
    variables = cmake_variables(commands)
    return [target for command in commands for target in _targets(command, variables, text)]


def _targets(command: Command, variables: dict[str, list[Word]], text: str) -> Iterator[CudaTarget]:
    if command.name not in _MODULES | _CUDA_LIBRARIES | _LIBRARIES or not command.words:
        return
    words = list(expanded(command.words[1:], variables))
    sources = tuple(dict.fromkeys(w.text.rpartition("/")[2] for w in words if "." in w.text))
    if command.name in _CUDA_LIBRARIES or any(s.endswith(CUDA_SUFFIXES) for s in sources):
        is_module = command.name in _MODULES or (
            "executable" not in command.name and _IMPORTABLE.search(text) is not None
        )
        line = text.count("\n", 0, command.span.start) + 1
        written = text[slice(*command.span)]
        name = command.words[0].text
        yield CudaTarget(name, written, command.span, line, is_module, sources)


def cmake_findings(report: LaunchReport) -> None:
    """A finding for each module that is built of CUDA code, or else for the first target.

    Other targets, CUDA sources and settings for CUDA are settled there.
    """
    targets = cuda_targets(report.text)
    rule = report.catalogue.rule_named(CUDA_EXTENSION)
    if rule is None:
        return
    if not targets:
        _program(rule, report)
        return
    leads = [target for target in targets if target.is_module] or targets[:1]
    places = {lead.span for lead in leads}
    parts = [target.span for target in targets if target.span not in places]
    parts += _parts(list(cmake_commands(report.text)))
    related: dict[Span, list[Related]] = {lead.span: [] for lead in leads}
    for part in sorted(set(parts)):
        before = [lead for lead in leads if lead.span < part]
        lead = (before or leads)[-1 if before else 0]
        related[lead.span].append(Related(part, message("check.part-of-build")))
        arguments = {"symbol": report.text[slice(*part)], "replacement": ""}
        settled = Settlement("reported-at-build", lead.span)
        report.findings.append(Finding(rule, part, arguments, settlement=settled))
    for lead in leads:
        arguments = {"symbol": lead.command, "replacement": ""}
        beside = tuple(related[lead.span][:_MOST_RELATED])
        report.findings.append(Finding(rule, lead.span, arguments, related=beside))


def _program(rule: Rule, report: LaunchReport) -> None:
    """A finding for a program built with CUDA, at its first place; the others are settled."""
    places = list(_parts(list(cmake_commands(report.text))))
    for place in places:
        arguments = {"symbol": report.text[slice(*place)], "replacement": ""}
        settled = None if place is places[0] else Settlement("reported-at-build", places[0])
        others = () if settled else places[1:_MOST_RELATED]
        beside = tuple(Related(p, message("check.part-of-build")) for p in others)
        report.findings.append(Finding(rule, place, arguments, related=beside, settlement=settled))


def _parts(commands: Sequence[Command]) -> Iterator[Span]:
    for command in commands:
        for word in command.words:
            is_language = command.name in _LANGUAGES and word.text in _TOOLKITS
            is_source = word.text.endswith(CUDA_SUFFIXES)
            is_runtime = command.name == "target_link_libraries" and word.text in _RUNTIMES
            is_part = is_language or is_source or is_runtime
            if is_part or _SETTING.fullmatch(word.text) or _FOLDERS.search(word.text):
                yield word.span
