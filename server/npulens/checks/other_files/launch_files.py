"""Files beside the code that say where and how it runs: what is found in each kind."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext

from npulens.catalog.model import Target
from npulens.catalog.tables import Catalogue, Place
from npulens.checks.other_files.cmake_targets import cmake_findings
from npulens.checks.other_files.configuration_files import configuration_findings
from npulens.checks.other_files.dependencies import requirement, requirement_lines
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.makefiles import makefile_findings
from npulens.checks.other_files.release_pairs import release_pairs
from npulens.checks.other_files.script_variables import ScriptVariable, variables_together
from npulens.checks.other_files.shell_commands import (
    command_words,
    image,
    normal_name,
    search_path,
    shell_findings,
)
from npulens.checks.other_files.shell_programs import Atom
from npulens.syntax.settings import json_settings
from npulens.syntax.shell import read_shell
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_HASH = late(r"\"[^\"\n]*\"|'[^'\n]*'|(?:(?<=\s)|^)#[^\n]*", re.MULTILINE)
_SHELL = frozenset({Kind.SHELL, Kind.ENVIRONMENT})
"""An assignment without a command is what each line of a `.env` file is."""
_INSTALLS_ONCE = frozenset(
    {Kind.SHELL, Kind.DOCKERFILE, Kind.REQUIREMENTS, Kind.TOML, Kind.YAML, Kind.INI}
)
"""What a Makefile installs may be for targets that nobody makes together."""
_WORD = late(r"\S+")
_SHELL_PROGRAM = late(r"(?:.*/)?(?:ba|da|z)?sh\Z")
_INSTRUCTION = late(
    r"^[ \t]*(?P<name>FROM|ENV|ARG|RUN|CMD|ENTRYPOINT|COPY|ADD)[ \t]+"
    r"(?P<rest>(?:[^\\\n]|\\[ \t]*\r?\n(?:[ \t]*#[^\n]*\n)*|\\.)*)",
    re.MULTILINE | re.IGNORECASE,
)
_BODY = late(r"<<-?[ \t]*['\"]?(\w+)['\"]?")
_FLAGS = late(r"(?:--\S+(?:[ \t]|\\\r?\n)+)*")
"""Of an instruction: `RUN --network=none pip install ...`."""
_SOURCE_IMAGE = late(r"(?:--\S+(?:[ \t]|\\\r?\n)+)*--from=(?P<image>\S*/\S+)")
"""What a `COPY` takes from an image; a stage of the file has no slash in its name."""
_ENV_PAIR = late(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\"[^\"]*\"|'[^']*'|\S*)")
_ENV_OLD = late(r"(?P<name>[A-Za-z_]\w*)[ \t]+(?P<value>\S[^\n]*)")
_NPU_IMAGE = late(r"(?im)^[ \t]*(?:FROM|ARG)\b[^\n]*(?:ascend|(?<![a-z])cann(?![a-z])|\bnpu\b)")
_CUDA = late(r"(?:cuda|cu)[\d.]*|nvidia", re.IGNORECASE)
"""In the name of a Dockerfile it says from what it starts, which is the thing to change."""
_CUDA_KERNELS = late(r"(?im)^[ \t]*COPY\b[^\n]*[\s/](?:cute|cutlass)/")
_CI = late(
    r"(?:^|/)\.(?:github|circleci|buildkite|gitlab)/|(?:^|/)\.?(?:gitlab-ci|azure-pipelines"
    r"|travis|appveyor|jenkins)[\w.-]*\.ya?ml\Z|(?:^|/)\.pre-commit"
)
_OTHER_FRAMEWORK_IMAGE = late(
    r"(?im)^[ \t]*(?:FROM|ARG)\b[^\n]*/(?:[\w-]*tensorflow|mxnet|paddle|kaldi|jax)[\w-]*:"
)


def launch_findings(
    document: Document,
    catalogue: Catalogue,
    place: str,
    target: Target,
) -> LaunchReport:
    """What a file that is not Python holds, with places in its text.

    Args:
        document: The file.
        catalogue: The rules.
        place: Its path within the project.
        target: The migration style, and what is known of the project.
    """
    is_file = kind_by_name(document.path) is not Kind.NOTEBOOK  # but a command in one
    kind = document.kind if is_file else None
    report = LaunchReport(document.text, catalogue, target, kind=kind)
    reason = _settled_image(document.text) if document.kind is Kind.DOCKERFILE else None
    with nullcontext() if reason is None else report.settling(reason):
        _read(report, document.kind, place)
        if document.kind in _INSTALLS_ONCE:
            release_pairs(report)
        report.finish()
    return report


def is_run_by_service(place: str) -> bool:
    """Whether a file says what a service for continuous integration runs, by its path."""
    return _CI.search(place.replace("\\", "/")) is not None


def _read(report: LaunchReport, kind: Kind, place: str) -> None:
    reader = READERS.get(kind)
    if reader is not None:
        reader(report)
    else:
        configuration_findings(report, kind, place)


def comments_of(kind: Kind) -> Callable[[str], Iterable[Span]]:
    """What finds the comments of a kind of text, in which findings may be silenced."""
    if kind in _SHELL:
        return lambda text: read_shell(text).comments
    return _no_comments if kind is Kind.JSON else _hash_comments  # INI has them in lines alone


def _no_comments(text: str) -> Iterable[Span]:
    return ()


def _hash_comments(text: str) -> Iterator[Span]:
    for match in _HASH.finditer(text):
        if match.group().startswith("#"):
            yield Span(*match.span())


def _atom(start: int, text: str) -> Atom:
    return Atom(Span(start, start + len(text)), text)


def _settled_image(text: str) -> str | None:
    """Why nothing of a Dockerfile has to change, or `None`."""
    if _NPU_IMAGE.search(text) is not None:
        return "npu-way-beside"  # at least in one of its stages
    if _CUDA_KERNELS.search(text) is not None:
        return "file-role"  # built to test these
    if _OTHER_FRAMEWORK_IMAGE.search(text) is not None and "torch" not in text:
        return "other-device"
    return None


def _dockerfile(report: LaunchReport) -> None:
    text, position = report.text, 0
    stage, variables = 0, list[ScriptVariable]()
    while (found := _INSTRUCTION.search(text, position)) is not None:
        position = max(found.end(), found.start() + 1)
        name, span = found["name"].upper(), Span(*found.span("rest"))
        if name == "RUN" and (flags := _FLAGS.match(text, *span)) is not None:
            span = Span(flags.end(), span.end)
        if name == "FROM":
            stage += 1
            report.group = (stage,)
            _from(span, report)
        elif name in ("COPY", "ADD") and (source := _SOURCE_IMAGE.match(text, *span)) is not None:
            _image(Span(*source.span("image")), report)
        elif name in ("ENV", "ARG"):
            pairs = list(_environment(span, report))
            if name == "ENV":
                variables += [ScriptVariable(*pair, block=stage) for pair in pairs]
        elif name == "RUN" and (body := _BODY.search(text, *span)) is not None:
            ending = re.compile(rf"^[ \t]*{body[1]}[ \t\r]*$", re.MULTILINE)
            end = ending.search(text, span.end)
            position = len(text) if end is None else end.end()
            if text.startswith("<<", span.start):  # the body is the script
                shell_findings(report, span.end, position if end is None else end.start())
            else:
                shell_findings(report, span.start, position)
        elif text.startswith("[", span.start):
            _exec_form(span, report)
        else:
            shell_findings(report, *span)
    variables_together(report, variables)


def _from(span: Span, report: LaunchReport) -> None:
    for word in _WORD.finditer(report.text, *span):
        if not word.group().startswith("--"):
            _image(Span(*word.span()), report)
            return


def _image(span: Span, report: LaunchReport) -> None:
    atom = _atom(span.start, report.text[slice(*span)])
    report.request("image", atom.text, span)
    image(report, atom)


def _environment(span: Span, report: LaunchReport) -> Iterator[tuple[str, Span, Atom]]:
    """Report variables, and yield the name and the value of each."""
    pairs = list(_ENV_PAIR.finditer(report.text, *span))
    if not pairs:
        old = _ENV_OLD.match(report.text, *span)
        pairs = [old] if old is not None else []
    for pair in pairs:
        value = pair["value"].strip("\"'")
        report.variable(Span(*pair.span("name")), value)
        start = report.text.find(value, *pair.span("value")) if value else pair.end()
        given = _atom(start, value)
        image(report, given)
        report.look_up(Place.KEY, normal_name(pair["name"]), value, given.span, given.span)
        search_path(pair["name"], given, report)
        if value.startswith("http"):
            requirement(report, start, value)
        yield pair["name"], Span(*pair.span("name")), given
    if not pairs and (name := _WORD.match(report.text, *span)) is not None:
        report.variable(Span(*name.span()))


def _exec_form(span: Span, report: LaunchReport) -> None:
    inner = json_settings(report.text[slice(*span)])
    words = [Atom(each.span.shifted(span.start), each.value) for each in inner]
    if len(words) == 3 and _SHELL_PROGRAM.match(words[0].text) and words[1].text.endswith("c"):
        shell_findings(report, *words[2].span)
    else:
        command_words(report, words)


READERS: Mapping[Kind, Callable[[LaunchReport], None]] = {
    Kind.SHELL: shell_findings,
    Kind.ENVIRONMENT: shell_findings,
    Kind.DOCKERFILE: _dockerfile,
    Kind.REQUIREMENTS: requirement_lines,
    Kind.CMAKE: cmake_findings,
    Kind.MAKE: makefile_findings,
}
"""What reads each kind of file. Others hold keys with values: `configuration_files.py`."""
