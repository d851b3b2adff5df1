"""Which check looks at which kind of node."""

import ast

from npulens.checks import (
    amp_calls,
    apex_amp,
    environment,
    import_statements,
    layout,
    methods,
    precision,
    references,
    strings,
    switches,
)
from npulens.checks.visitor import Checks

_CHECKS: Checks = {
    ast.Attribute: (references.attribute, methods.referenced),
    ast.Import: (import_statements.imported,),
    ast.ImportFrom: (import_statements.imported,),
    ast.Call: (
        amp_calls.called,
        layout.memory_format,
        precision.double,
        precision.deterministic,
        references.default_tensor_type,
        references.literal_getattr,
        methods.called,
        strings.call,
    ),
    ast.Compare: (layout.known_formats, strings.comparison),
    ast.List: (layout.known_formats,),
    ast.Tuple: (layout.known_formats,),
    ast.Set: (layout.known_formats,),
    ast.Assign: (
        apex_amp.initialized,
        switches.switch_set,
        references.assigned,
        strings.assignment,
    ),
    ast.AnnAssign: (references.assigned, strings.assignment),
    ast.NamedExpr: (strings.assignment,),
    ast.Expr: (switches.product_precision,),
    ast.For: (precision.training_loop, strings.loop),
    ast.While: (precision.training_loop,),
    ast.IfExp: (strings.conditional,),
    ast.FunctionDef: (amp_calls.decorated,),
    ast.arguments: (strings.defaults,),
    ast.Return: (strings.returned,),
    ast.Dict: (layout.known_formats, strings.dictionary),
    ast.Match: (strings.case,),
    ast.Constant: (environment.variable, strings.constant),
    ast.JoinedStr: (strings.formatted,),
}
_CHECKS_WITH_STARS: Checks = {**_CHECKS, ast.Name: (references.bare_name,)}


def checks(has_star_imports: bool) -> Checks:
    """The checks by node type; bare names matter only where a star import may have brought them."""
    return _CHECKS_WITH_STARS if has_star_imports else _CHECKS
