"""Options of a command line that choose the process-group backend, with their choices.

Renaming `nccl` among the choices would refuse a command line that worked, and a new default that is
no choice is refused as well: so `hccl` is added to the choices and made the default, together.
"""

import ast
from collections.abc import Iterator

from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed
from npulens.catalog.tables import Meaning
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS, last_identifier
from npulens.checks.replacements import local_import
from npulens.checks.titles import use
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

_DECLARING = frozenset(
    {"add_argument", "add_option", "option", "argument", "Option", "Argument", "DEFINE_enum"}
)
_List = ast.List | ast.Tuple | ast.Set


def declared(node: ast.Call, scope: Scope, context: Context) -> None:
    """`add_argument("--backend", default="nccl", choices=["nccl", "gloo"])`."""
    if last_identifier(node.func) not in _DECLARING or context.facts.shim.is_active:
        return
    word = WORDS[Meaning.BACKEND]
    keys = [a.value for a in node.args if isinstance(a, ast.Constant)]
    if not any(isinstance(k, str) and _is_backend(k, context) for k in keys):
        return
    choices = next(_choices(node), None)
    if choices is None:
        return
    defaults = [value for value in _defaults(node) if _is(value, "nccl")]
    if not isinstance(choices, _List):
        name = last_identifier(choices)
        if name is None or not word.identifier.search(name):
            _report(defaults, [], scope, context)  # a default that may be no choice is refused
        return
    if not choices.elts or not all(isinstance(e, ast.Constant) for e in choices.elts):
        _report(defaults, [], scope, context)
        return
    edits = [_renamed(value, context) for value in defaults]
    offered = [element for element in choices.elts if _is(element, "nccl")]
    if not any(_is(element, "hccl") for element in choices.elts):
        last = choices.elts[-1]
        end = context.span(last).end
        edits.append(Edit(Span(end, end), f", {_renamed(last, context).replacement}"))
        _report([*offered, *defaults], edits, scope, context)
    else:
        _report(defaults, edits, scope, context)
        context.settle_all(offered, "npu-way-beside")


def _is_backend(option: str, context: Context) -> bool:
    """Whether an option chooses the backend; that of Megatron only where it goes to PyTorch."""
    if context.target.project.opens_groups and option == "--distributed-backend":
        return True
    return WORDS[Meaning.BACKEND].identifier.search(option) is not None


def _choices(node: ast.Call) -> Iterator[ast.expr]:
    """What an option allows, by whatever library."""
    for keyword in node.keywords:
        if keyword.arg in ("choices", "enum_values"):
            yield keyword.value
    for value in [*node.args, *(k.value for k in node.keywords)]:
        if isinstance(value, ast.Call) and last_identifier(value.func) == "Choice" and value.args:
            yield value.args[0]
    if last_identifier(node.func) == "DEFINE_enum" and len(node.args) > 2:
        yield node.args[2]


def _defaults(node: ast.Call) -> Iterator[ast.expr]:
    yield from (k.value for k in node.keywords if k.arg in ("default", "const"))
    if last_identifier(node.func) == "DEFINE_enum" and len(node.args) > 1:
        yield node.args[1]


def _is(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _renamed(node: ast.expr, context: Context) -> Edit:
    """`hccl` in the quotes of a string."""
    source = context.source(node)
    quote = source[-1] if source[-1] in "\"'" else '"'
    return Edit(context.span(node), f"{quote}hccl{quote}")


def _report(nodes: list[ast.expr], edits: list[Edit], scope: Scope, context: Context) -> None:
    rule = context.catalogue.required(WORDS[Meaning.BACKEND].rule)
    for node in nodes:
        span = context.span(node)
        if span in context.reported.spans:
            continue
        replacement = _renamed(node, context).replacement
        fixes = []
        if edits:
            local = local_import(scope, context)
            need = ImportNeed.PLUGIN_BESIDE_TORCH if local is None else ImportNeed.NOTHING
            all_edits = (*edits, *(local or ()))
            fixes.append(Fix(use(replacement), Applicability.SAFE, all_edits, imports=need))
        context.report(rule, span, context.source(node), fixes, replacement=replacement)
