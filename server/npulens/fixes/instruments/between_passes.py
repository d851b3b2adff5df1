"""Calls between a backward pass and its update: they may clip gradients that are scaled."""

import ast
import builtins
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from npulens.fixes.scripts import Script, UnclearError
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.values import dotted_name, last_name
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.turns import Turn
from npulens.training.updates import Backward, Update

_BUILTINS = frozenset(dir(builtins))
_OF_MODELS = frozenset({"parameters", "named_parameters", "train", "zero_grad"})
_LEAVE_GRADIENTS = frozenset({"save", "deepcopy", "state_dict", "param_groups"})
_OF_TORCH = ("torch.nn.", "torch.save", "torch.distributed.", "torch.optim.")


class BetweenPasses:
    """What runs between backward passes and updates of a script.

    Args:
        sites: The calls of the script.
        program: The calls of the script and of what it imports, as far as that is looked at.
    """

    def __init__(self, script: Script, sites: CallSites, program: CallSites) -> None:
        self._script, self._sites, self._program = script, sites, program
        self._start = program.program.start.tree

    def clipping(self, turn: Turn) -> Iterator[ast.expr]:
        """The calls of functions of other files that clip gradients.

        Raises:
            UnclearError: A call runs what is in no file of the project, and may do so.
        """
        models = {*_models(self._sites), *(ast.unparse(u.optimizer) for u in turn.updates)}
        for site, call in self._between(turn):
            if is_clip(call):
                continue
            run = self._program.run_by(self._program.site_of.get(call, site))
            if not run:
                self._require_harmless(site, call, models)
            elif all(self._is_elsewhere(each) for each in run) and self._clips(run):
                yield call

    def _between(self, turn: Turn) -> Iterator[tuple[Site, ast.Call]]:
        """The calls behind a backward pass and before an update in the same function."""
        going_back, updated = _lines(turn.backwards), _lines(turn.updates)
        for site, call in self._sites.calls():
            ends = updated.get(site.function, [])
            at = bisect_right(ends, call.lineno)
            if at < len(ends):
                begins = going_back.get(site.function, [])
                last = bisect_right(begins, ends[at])
                if last and begins[last - 1] < call.lineno:
                    yield site, call

    def _is_elsewhere(self, function: Function) -> bool:
        return self._program.program.module_with[function].tree is not self._start

    def _clips(self, functions: Iterable[Function]) -> bool:
        """Whether functions clip gradients, or what they run does."""
        calls = (n for n in self._program.nodes_run(functions) if isinstance(n, ast.Call))
        return any(map(is_clip, calls))

    @cached_property
    def _own_names(self) -> set[str]:
        """The functions of the file, and the attributes that it gives to `self`."""
        found = set()
        for node in nodes_below(self._script.tree):
            if isinstance(node, Function):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
        return found

    def _require_harmless(self, site: Site, call: ast.Call, models: set[str]) -> None:
        name = dotted_name(call.func)
        is_own = name is not None and name.root == "self" and len(name.path) == 1
        if is_own and name is not None:
            is_unknown = name.path[0] not in self._own_names
        else:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            is_given = any(_is_of(each, models) for each in given)
            is_unknown = is_given and not _is_harmless(call.func, site)
        if is_unknown:
            code = self._script.source(call.func)
            raise UnclearError(call.lineno, "instrument.unknown-between", code=code)


def _lines(made: Iterable[Backward | Update]) -> dict[Function | None, list[int]]:
    """The lines of some calls in each function, in order."""
    found: dict[Function | None, list[int]] = defaultdict(list)
    for each in made:
        found[each.site.function].append(each.site.node.lineno)
    return {function: sorted(lines) for function, lines in found.items()}


def is_clip(call: ast.Call) -> bool:
    """Whether a call clips gradients."""
    return last_name(call.func).startswith("clip_grad")


def _models(sites: CallSites) -> Iterator[str]:
    for _, call in sites.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_MODELS:
            yield ast.unparse(call.func.value)


def _is_of(argument: ast.expr, models: set[str]) -> bool:
    """Whether an argument is a model or an optimizer, or the parameters of one."""
    if isinstance(argument, ast.Starred):
        argument = argument.value
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
        if argument.func.attr not in _OF_MODELS:
            return False
        argument = argument.func.value
    return ast.unparse(argument) in models


def _is_harmless(called: ast.expr, site: Site) -> bool:
    last = last_name(called)
    if last in _LEAVE_GRADIENTS or (isinstance(called, ast.Name) and last in _BUILTINS):
        return True
    return any(name.startswith(_OF_TORCH) for name in qualified_names(called, site.scope))
