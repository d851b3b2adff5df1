"""Where a region under autocast begins: behind what only fetches, moves or chooses data."""

import ast
import re
from collections.abc import Iterator

from npulens.syntax.bindings import Function
from npulens.syntax.meanings import Local, Qualified, resolve
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.loss_regions import LossRegion, computes, is_computation

_FETCHES = frozenset({"pop", "sample", "next_batch", "get_batch", "choice", "randint", "popleft"})
_OF_MODULES = frozenset({"train", "eval", "parameters", "named_parameters", "requires_grad_"})
_CRITERION = re.compile(r"torch\.nn\.functional\.\w*(?:loss|cross_entropy|kl_div)\w*")
_MOST_CALLS = 4


class RegionStart:
    """Knows what of a script prepares data without any model.

    Args:
        sites: The calls of the script.
        program: The calls of the script and of what it imports, as far as that is looked at.
    """

    def __init__(self, sites: CallSites, program: CallSites) -> None:
        self._sites = program
        self._modules = frozenset(_modules(sites))
        self._models = frozenset(_models(sites))

    def trimmed(self, region: LossRegion) -> LossRegion:
        """A region without the statements at its begin that only prepare data."""
        statements = region.statements
        first = next((n for n, s in enumerate(statements) if not self._prepares(s)), None)
        if not first:
            return region
        rest = statements[first:]
        begin = next((n for n, s in enumerate(rest) if computes(s, region.scope)), None)
        return region if begin is None else region._replace(statements=rest[begin:])

    def runs_model(self, statement: ast.stmt) -> bool:
        """Whether a statement calls what is trained, evaluated or asked for its parameters."""
        calls = (node for node in nodes_below(statement) if isinstance(node, ast.Call))
        return any(map(self.is_model, calls))

    def is_model(self, call: ast.Call) -> bool:
        """Whether a call is one of what is trained, evaluated or asked for its parameters."""
        return ast.unparse(call.func) in self._models

    def _prepares(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            return False
        return all(
            self._fetches(node, 0) for node in nodes_below(statement) if isinstance(node, ast.Call)
        )

    def _fetches(self, call: ast.Call, depth: int) -> bool:
        """Whether a call runs no model, as far as it is seen."""
        site = self._sites.site_of.get(call)
        if site is None or depth > _MOST_CALLS:
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(ast.unparse(each) in self._modules for each in given):
            return False
        if not is_computation(call, site.scope) or self._is_fetching_method(call):
            return True
        run = self._sites.run_by(site)
        if run:
            return all(self._only_fetches(function, depth) for function in run)
        return _is_imported_function(call.func, site)

    def _is_fetching_method(self, call: ast.Call) -> bool:
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _FETCHES:
            return False
        return ast.unparse(function.value) not in self._modules

    def _only_fetches(self, function: Function, depth: int) -> bool:
        return all(
            self._fetches(node, depth + 1)
            for node in nodes_below(function)
            if isinstance(node, ast.Call)
        )


def _modules(sites: CallSites) -> Iterator[str]:
    """What is called a model: its methods tell, or it is called itself."""
    yield from _models(sites)
    for site, call in sites.calls():
        if not [*resolve(call.func, site.scope)]:
            yield ast.unparse(call.func)


def _models(sites: CallSites) -> Iterator[str]:
    """What has the methods of a model."""
    for _, call in sites.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_MODULES:
            yield ast.unparse(call.func.value)


def _is_imported_function(function: ast.expr, site: Site) -> bool:
    values = resolve(function, site.scope)
    if any(isinstance(v, Qualified) and _CRITERION.fullmatch(v.name) for v in values):
        return False
    return bool(values) and all(
        (isinstance(v, Qualified) and v.name.rpartition(".")[2][:1].islower())
        or (isinstance(v, Local) and not v.definition.is_class)
        for v in values
    )
