"""Comments that accept what is found in a file today."""

import ast
from bisect import bisect_right
from pathlib import Path

from npulens.catalog.messages import message
from npulens.catalog.model import Finding
from npulens.checks.other_files.launch_files import comments_of
from npulens.syntax.cells import python_of_notebook
from npulens.syntax.comments import suppressions
from npulens.syntax.parsing import module_tree
from npulens.syntax.strings import comments
from npulens.text.decoding import UndecodableSource, UnencodableText
from npulens.text.document import Document
from npulens.text.kinds import Comments, Kind
from npulens.text.lines import LineMap
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.sources import read_source
from npulens.workspace.fixing.file_fixes import FixedFile
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.run import Checker, internal_error

_PYTHON = {Kind.PYTHON, Kind.NOTEBOOK}


def suppress_findings(checker: Checker, path: Path) -> FixedFile:
    """Put a comment behind each line with findings; what is left could not be silenced so."""
    data = checker.read(path)
    if isinstance(data, FileReport):
        return FixedFile(data)
    report = checker.check_bytes(str(path), data)
    document = report.document
    if document is None or not document.text:
        return FixedFile(report)
    if document.kind.comments is not Comments.ANYWHERE:
        problem = message("error.takes-no-comments")
        return FixedFile(FileReport(report.path, problem=problem) if report.findings else report)
    try:
        source = read_source(report.path, data)
        text = _suppressed(document, report.findings)
        after = source.encode(text)
        if source.encode(source.text) != data:
            return FixedFile(report)
        changed = Document(report.path, text)
        judged = checker.judged(changed)
    except (UndecodableSource, UnencodableText, UnreadableNotebook):
        return FixedFile(report)
    except Exception as error:  # one file must not end the work on the others
        problem, traceback = internal_error(error)
        return FixedFile(FileReport(str(path), problem=problem, traceback=traceback))
    if text == document.text or not _is_same_program(document, changed):
        return FixedFile(report)
    left, settled = tuple(judged.findings), tuple(judged.settled)
    count = len(report.findings) - len(left)
    new_report = FileReport(report.path, left, changed if left else None, settled=settled)
    return FixedFile(new_report, data, after, report.findings[:count])


def _suppressed(document: Document, findings: tuple[Finding, ...]) -> str:
    """The text with a comment on the first line of each finding, or else on its last."""
    lines = document.lines
    closed = _lines_that_end_in_code(document)
    codes: dict[int, list[str]] = {}
    for finding in findings:
        first = bisect_right(lines.starts, finding.span.start)
        last = bisect_right(lines.starts, finding.span.end)
        line = next((line for line in (first, last) if line in closed), None)
        if line is not None and finding.rule.code not in codes.setdefault(line, []):
            codes[line].append(finding.rule.code)
    segments = []
    for number in range(1, len(lines.starts) + 1):
        line_text = _line(lines, number)
        content = line_text.rstrip("\r\n")
        if codes.get(number):
            ending = line_text[len(content) :]
            line_text = _with_comment(content, codes[number], document.kind) + ending
        segments.append(line_text)
    return "".join(segments)


def _with_comment(content: str, codes: list[str], kind: Kind) -> str:
    known = comments if kind in _PYTHON else comments_of(kind)
    for comment in suppressions(content, known):
        if comment.codes is not None and not comment.whole_file:
            listed = ", ".join([*comment.codes, *codes])
            start, end = comment.span
            return f"{content[:start]}# npulens: ignore[{listed}]{content[end:]}"
    return f"{content.rstrip()}  # npulens: ignore[{', '.join(codes)}]"


def _lines_that_end_in_code(document: Document) -> set[int]:
    """The numbers of the lines behind which a comment would be one."""
    probe = "# npulens"
    marked = []
    for number in range(1, len(document.lines.starts) + 1):
        text = _line(document.lines, number)
        content = text.rstrip("\r\n")
        is_open = content.endswith("\\") and "#" not in content
        marked.append(text if is_open else f"{content}  {probe}{text[len(content) :]}")
    whole = LineMap("".join(marked))
    find = comments if document.kind in _PYTHON else comments_of(document.kind)
    found = set()
    for span in find(whole.text):
        line = bisect_right(whole.starts, span.start)
        if _line(whole, line).rstrip("\r\n").endswith(probe):
            found.add(line)
    return found


def _line(lines: LineMap, number: int) -> str:
    end = lines.starts[number] if number < len(lines.starts) else len(lines.text)
    return lines.text[lines.starts[number - 1] : end]


def _is_same_program(before: Document, after: Document) -> bool:
    """Whether nothing but comments changed; without Python, the lines decide."""
    if before.kind not in _PYTHON:
        return True
    try:
        return _program(before) == _program(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _program(document: Document) -> str:
    is_notebook = document.kind is Kind.NOTEBOOK
    text = python_of_notebook(document.text) if is_notebook else document.text
    return ast.dump(module_tree(text))
