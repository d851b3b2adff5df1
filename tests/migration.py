"""What the tests of the rules share: marked code, and a reading of names apart from the engine."""

import ast
import re
from functools import cache
from typing import NamedTuple

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, Finding, Target
from npulens.fixes.apply import fix_text
from npulens.text.document import Document

CATALOGUE = load_catalogue()

_PLUGIN_NAME = re.compile(r"npu|hccl|mstx", re.IGNORECASE)


class Marked(NamedTuple):
    """Code with one place in it, written between « and »."""

    text: str
    start: int
    end: int

    @property
    def place(self) -> str:
        return self.text[self.start : self.end]

    def with_place(self, replacement: str) -> str:
        return self.text[: self.start] + replacement + self.text[self.end :]


def marked(code: str) -> Marked:
    before, place, after = re.split("[«»]", code)
    return Marked(before + place + after, len(before), len(before) + len(place))


@cache
def findings(text: str, target: Target) -> tuple[Finding, ...]:
    return analyze(Document("example.py", text), CATALOGUE, target)


def findings_at(code: Marked, target: Target) -> list[Finding]:
    """The findings that touch the marked place."""
    return [
        finding
        for finding in findings(code.text, target)
        if finding.span.start < code.end and code.start < finding.span.end
    ]


def fixed(text: str, target: Target) -> str:
    """The text with all fixes applied, those that must be read too."""
    result = fix_text(text, lambda now: findings(now, target), Applicability.UNSAFE)
    assert not result.refused
    return result.text


def name_of_found(text: str) -> str:
    """The full name of what the code assigns to `found`, hands to `use` or sets."""
    names: dict[str, str] = {}
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Expr):
            assert isinstance(node.value, ast.Call)
            names["found"] = _full_name(node.value.args[0], names)
        elif isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _full_name(node.value, names)
        else:
            names["found"] = _full_name(node.targets[0], names)
    return one_spelling(names["found"])


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        return f"{_full_name(node.value, names)}.{node.attr}"
    assert isinstance(node, ast.Call), ast.dump(node)
    return f"{_full_name(node.func, names)}()"


def one_spelling(name: str) -> str:
    """`torch_npu.npu` and `torch.npu` are one module."""
    return re.sub(r"\Atorch_npu\.npu(?![^.])", "torch.npu", name)


def import_problems(text: str) -> list[str]:
    """What is wrong with the way the code imports torch_npu."""
    problems = []
    imports = [
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    places = [index for index, node in enumerate(imports) if _is_plain(node, "torch_npu")]
    has_torch = any(m.partition(".")[0] == "torch" for node in imports for m in _modules(node))
    if len(places) > 1:
        problems.append("import torch_npu stands there twice")
    for place in places:
        before = [module for node in imports[:place] for module in _modules(node)]
        behind = [module for node in imports[place + 1 :][:1] for module in _modules(node)]
        if behind == ["torch.distributed"] and "hccl" in text:
            continue  # torch_npu adds the name that the next line imports
        if not has_torch:
            continue  # nothing uses torch any more, and torch_npu imports it itself
        if not before or before[-1].partition(".")[0] not in ("torch", "torch_npu"):
            problems.append("import torch_npu does not stand behind an import of torch")
        if isinstance(imports[place - 1], ast.Import) and behind and behind[0] == "torch":
            problems.append("import torch_npu stands before import torch")
    loaded = False
    for node in imports:
        loaded |= any(module.partition(".")[0] == "torch_npu" for module in _modules(node))
        taken = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        if not loaded and any(_PLUGIN_NAME.search(name) for name in (*_modules(node), *taken)):
            problems.append(f"line {node.lineno} needs torch_npu, which is imported later or never")
    if not loaded and _PLUGIN_NAME.search(text):
        problems.append("torch_npu is not imported")
    return problems


def _is_plain(node: ast.stmt, module: str) -> bool:
    return isinstance(node, ast.Import) and [a.name for a in node.names if not a.asname] == [module]


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]
