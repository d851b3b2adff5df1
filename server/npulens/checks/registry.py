"""Which check looks at which kind of node."""

import ast

from npulens.checks import (
    backend_options,
    environment,
    import_statements,
    methods,
    native,
    parallel,
    references,
    strings,
)
from npulens.checks.visitor import Checks

_CHECKS: Checks = {
    ast.Attribute: (references.attribute, methods.referenced, native.attribute),
    ast.Import: (import_statements.imported,),
    ast.ImportFrom: (import_statements.imported, native.imported),
    ast.Call: (
        references.default_tensor_type,
        references.literal_getattr,
        methods.called,
        backend_options.declared,
        strings.call,
        native.mentioned,
        native.literal_getattr,
        native.called,
        parallel.wrapper_test,
        parallel.device_ids,
        parallel.reduction,
    ),
    ast.Compare: (
        strings.comparison,
        native.mentioned,
        parallel.compared_backend,
        parallel.wrapper_test,
    ),
    ast.Tuple: (parallel.wrappers_together,),
    ast.List: (parallel.wrappers_together,),
    ast.Set: (parallel.wrappers_together,),
    ast.BinOp: (parallel.wrappers_together,),
    ast.BoolOp: (parallel.wrappers_together,),
    ast.Assign: (references.assigned, strings.assignment, native.mentioned),
    ast.AnnAssign: (references.assigned, strings.assignment, native.mentioned),
    ast.arg: (native.mentioned,),
    ast.Subscript: (native.mentioned,),
    ast.FunctionDef: (native.mentioned,),
    ast.AsyncFunctionDef: (native.mentioned,),
    ast.ExceptHandler: (native.mentioned,),
    ast.NamedExpr: (strings.assignment,),
    ast.For: (strings.loop,),
    ast.IfExp: (strings.conditional,),
    ast.arguments: (strings.defaults,),
    ast.Return: (strings.returned,),
    ast.Dict: (strings.dictionary, native.mentioned),
    ast.Match: (strings.case,),
    ast.Constant: (environment.variable, strings.constant),
    ast.JoinedStr: (strings.formatted,),
}
_CHECKS_WITH_STARS: Checks = {**_CHECKS, ast.Name: (references.bare_name, native.bare_name)}


def checks(has_star_imports: bool) -> Checks:
    """The checks by node type; bare names matter only where a star import may have brought them."""
    return _CHECKS_WITH_STARS if has_star_imports else _CHECKS
