"""Which check looks at which kind of node."""

import ast

from npulens.checks import (
    environment,
    import_statements,
    methods,
    performance,
    references,
    strings,
)
from npulens.checks.visitor import Checks

_CHECKS: Checks = {
    ast.Attribute: (references.attribute, methods.referenced),
    ast.Import: (import_statements.imported,),
    ast.ImportFrom: (import_statements.imported,),
    ast.Call: (
        references.default_tensor_type,
        references.literal_getattr,
        methods.called,
        environment.call,
        strings.call,
        performance.call,
    ),
    ast.Compare: (strings.comparison,),
    ast.Assign: (environment.assigned, references.assigned, strings.assignment),
    ast.AnnAssign: (references.assigned, strings.assignment),
    ast.NamedExpr: (strings.assignment,),
    ast.For: (strings.loop, performance.loop),
    ast.While: (performance.loop,),
    ast.IfExp: (strings.conditional,),
    ast.arguments: (strings.defaults,),
    ast.Return: (strings.returned,),
    ast.Dict: (environment.dictionary, strings.dictionary),
    ast.Match: (strings.case,),
    ast.Constant: (environment.variable, strings.constant),
    ast.JoinedStr: (strings.formatted,),
}
_CHECKS_WITH_STARS: Checks = {**_CHECKS, ast.Name: (references.bare_name,)}


def checks(has_star_imports: bool) -> Checks:
    """The checks by node type; bare names matter only where a star import may have brought them."""
    return _CHECKS_WITH_STARS if has_star_imports else _CHECKS
