"""A rule file that says which APIs of a library do not run on the NPU, for those who use it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import npulens
from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import LANGUAGES, Applicability, Finding, LocalizedText, Severity
from npulens.catalog.rule_properties import Absent
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.places import place_at
from npulens.verdicts.file_role import FileRole, file_role
from npulens.workspace.libraries.apis import Library, Node
from npulens.workspace.libraries.library_modules import read_module
from npulens.workspace.libraries.needs import Module, Obstacle
from npulens.workspace.project.own_modules import outermost_package
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.processes import in_processes
from npulens.workspace.runs.run import Checker, decoded, internal_error

_LONGEST_CHAIN = 8


@dataclass
class LibraryReport:
    """What is known of a library.

    Attributes:
        modules: How many modules were read.
        stopped: Public names that do not run, each with its definition.
    """

    name: str
    modules: int
    stopped: dict[str, Node]
    library: Library
    problems: list[FileReport] = field(default_factory=list)


def examine_library(
    folder: Path, files: Sequence[Path], checker: Checker, jobs: int | None
) -> LibraryReport:
    """Find out which APIs of a library do not run on the NPU."""
    root = outermost_package(folder.resolve(), {})
    python = [
        file
        for file in files
        if file.suffix == ".py"
        and file.name != "setup.py"
        and FileRole.IN_TESTS not in file_role(str(file.resolve().relative_to(root)))
    ]
    modules: list[Module] = []
    problems: list[FileReport] = []
    for found in in_processes(partial(_read_file, root=root), checker, python, jobs):
        if isinstance(found, Module):
            modules.append(found)
        else:
            problems.append(found)
    library = Library(modules)
    tops = sorted({module.name.partition(".")[0] for module in modules if module.is_package})
    name = tops[0] if len(tops) == 1 else folder.resolve().name
    return LibraryReport(name, len(modules), dict(sorted(_public(library))), library, problems)


def _read_file(checker: Checker, file: Path, *, root: Path) -> Module | FileReport:
    data = checker.read(file)
    if isinstance(data, FileReport):
        return data
    relative = file.resolve().relative_to(root)
    try:
        report = checker.check_bytes(str(file), data)
        document = report.document or Document(str(file), decoded(str(file), data))
        tree = parse(document.text)
        if isinstance(tree, SyntaxProblem):
            return FileReport(str(file), problem=_left_out("error.line-not-parsed", line=tree.line))
        found = {
            finding.span.start: _obstacle(finding, document, relative.as_posix())
            for finding in reversed(report.findings)
            if _stops(finding)
        }
        parts = relative.with_suffix("").parts
        parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
        is_package = parts[-1] == "__init__" and len(parts) > 1
        name = ".".join(parts[:-1] if is_package else parts)
        return read_module(tree, document.lines, name, is_package, found)
    except UndecodableSource:
        return FileReport(str(file), problem=_left_out("error.not-in-encoding"))
    except RecursionError:
        return FileReport(str(file), problem=_left_out("error.nested-too-deeply"))
    except Exception as error:  # one file must not end the work on the others
        problem, traceback = internal_error(error)
        return FileReport(str(file), problem=problem, traceback=traceback)


def _left_out(name: MessageId, /, **values: object) -> LocalizedText:
    return message("error.left-out", reason=message(name, **values))


def _stops(finding: Finding) -> bool:
    if finding.rule.absent is None:
        return False
    if finding.effective_severity not in (Severity.ERROR, Severity.WARNING):
        return False
    return not (finding.fixes and finding.fixes[0].applicability is Applicability.SAFE)


def _obstacle(finding: Finding, document: Document, file: str) -> Obstacle:
    return Obstacle(
        finding.arguments.get("symbol", finding.rule.name),
        file,
        place_at(document, finding.span.start).line,
        finding.effective_severity.value,
        finding.rule.absent is Absent.AT_IMPORT,
        LocalizedText(*(finding.message(language) for language in LANGUAGES)),
    )


def _public(library: Library) -> Iterator[tuple[str, Node]]:
    """The names by which users reach what does not run, each under its own and its packages'."""
    for module in library.modules.values():
        whole = Node("module", module.name)
        if whole in library.reasons:
            package = Node("module", module.name.rpartition(".")[0])
            if package not in library.reasons and _is_public(module.name):
                yield module.name, whole
            continue
        names = set(module.functions) | set(module.classes)
        if module.is_package:
            names.update(module.names)
            for star in module.stars:
                taken = library.modules.get(star)
                names.update(taken.names if taken is not None else ())
        for name in sorted(names):
            if ".<locals>." not in name and _is_public(f"{module.name}.{name}"):
                yield from _of_name(library, module, name)


def _of_name(library: Library, module: Module, name: str) -> Iterator[tuple[str, Node]]:
    meant = library.find(module.name, name)
    stopped = [node for node in meant if node is not None and node in library.reasons]
    if not meant or len(stopped) < len(meant):
        stopped = []
    symbol = f"{module.name}.{name}"
    if stopped:
        if stopped[0].kind != "module":
            yield symbol, stopped[0]
    elif len(meant) == 1 and meant[0] is not None and meant[0].kind == "class":
        for method in library.methods(meant[0].module, meant[0].name):
            last = method.name.rpartition(".")[2]
            if method in library.reasons and not last.startswith("_"):
                yield f"{symbol}.{last}", method


def _is_public(path: str) -> bool:
    return not any(part.startswith("_") for part in path.split("."))


def rule_file(report: LibraryReport) -> str:
    """The rule file, as `extend-rules` takes it."""
    letters = re.sub(r"[^A-Z]", "", report.name.upper())[:10]
    code = f"{letters if len(letters) > 1 and letters != 'NPU' else 'LIBRARY'}001"
    kebab = re.sub(r"[^a-z0-9]+", "-", report.name.lower()).strip("-") or "library"
    rule = f"{kebab}-not-on-npu"
    entries = {
        symbol: _entry(symbol, node, rule, report) for symbol, node in report.stopped.items()
    }
    lists = {
        "symbols": [entries[s] for s, node in report.stopped.items() if node.kind != "module"],
        "libraries": [entries[s] for s, node in report.stopped.items() if node.kind == "module"],
    }
    parts = [
        f'"family": {json.dumps(kebab)}',
        f'"rules": [\n{_dumped(_rule(code, rule, report))}\n]',
    ]
    for name, found in lists.items():
        lines = ",\n".join(_dumped(entry) for entry in found)
        parts.append(f'"{name}": [\n{lines}\n]' if found else f'"{name}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _dumped(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False)


def _rule(code: str, rule: str, report: LibraryReport) -> dict[str, Any]:
    name, version = report.name, npulens.__version__
    explanation = message("library.explanation", name=name, version=version, modules=report.modules)
    return {
        "code": code,
        "name": rule,
        "severity": "error",
        "message": message("library.message", name=name)._asdict(),
        "explanation": explanation._asdict(),
    }


def _entry(symbol: str, node: Node, rule: str, report: LibraryReport) -> dict[str, Any]:
    names, obstacle = report.library.chain(node)
    steps = [symbol, *(name for name in names if name != symbol), obstacle.symbol]
    if len(steps) > _LONGEST_CHAIN:
        steps = [*steps[: _LONGEST_CHAIN - 3], "...", *steps[-2:]]
    chain = " -> ".join(steps)
    place = f"{obstacle.file}:{obstacle.line}"
    return {
        "symbol": symbol,
        "rule": rule,
        "severity": obstacle.severity,
        "note": message(
            "library.chain", chain=chain, place=place, obstacle=obstacle.text
        )._asdict(),
        "source": place,
    }
