"""Which check looks at which kind of node."""

import ast

from npulens.checks import (
    environment,
    import_statements,
    library,
    library_calls,
    methods,
    references,
    strings,
)
from npulens.checks.visitor import Checks

_CHECKS: Checks = {
    ast.Attribute: (library.referenced, references.attribute, methods.referenced),
    ast.Import: (library.imported, import_statements.imported),
    ast.ImportFrom: (library.imported, import_statements.imported),
    ast.Try: (library.tried,),
    ast.With: (library.suppressed,),
    ast.If: (library.asked,),
    ast.IfExp: (library.asked, strings.conditional),
    ast.BoolOp: (library.asked,),
    ast.FunctionDef: (library.entered,),
    ast.AsyncFunctionDef: (library.entered,),
    ast.ClassDef: (library.entered,),
    ast.Call: (
        references.default_tensor_type,
        references.literal_getattr,
        methods.called,
        strings.call,
        library_calls.called,
    ),
    ast.Compare: (strings.comparison,),
    ast.Assign: (references.assigned, strings.assignment),
    ast.AnnAssign: (references.assigned, strings.assignment),
    ast.NamedExpr: (strings.assignment,),
    ast.For: (strings.loop,),
    ast.List: (library_calls.provider_list,),
    ast.arguments: (strings.defaults,),
    ast.Return: (strings.returned,),
    ast.Dict: (strings.dictionary,),
    ast.Match: (strings.case,),
    ast.Constant: (environment.variable, strings.constant, library_calls.provider),
    ast.JoinedStr: (strings.formatted,),
}
_CHECKS_WITH_STARS: Checks = {**_CHECKS, ast.Name: (references.bare_name,)}


def checks(has_star_imports: bool) -> Checks:
    """The checks by node type; bare names matter only where a star import may have brought them."""
    return _CHECKS_WITH_STARS if has_star_imports else _CHECKS
