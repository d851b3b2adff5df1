"""Forward passes above the statements of a loss, behind another backward pass or a condition.

What `generator(x)` gives may go to the critic, whose backward pass comes first, and then to the
loss of the generator: it belongs under autocast as well.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.fixes.instruments.region_start import RegionStart
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.training.call_sites import CallSites, Site
from npulens.training.loss_regions import LossRegion, assigned_names, is_part, names_read
from npulens.training.statement_blocks import block_with
from npulens.training.step_blocks import WITHOUT_GRADIENTS


def earlier_passes(
    regions: Sequence[LossRegion],
    sites: CallSites,
    start: RegionStart,
    barriers: Collection[ast.expr],
) -> list[LossRegion]:
    """Regions of the forward passes that some regions need and do not have, in order.

    Args:
        regions: What computes the losses.
        sites: The calls of the script.
        start: Knows what is a model.
        barriers: The calls that go backward or update weights.
    """
    covered = {node for region in regions for s in region.statements for node in nodes_below(s)}
    found: dict[int, _Passes] = {}
    for region in regions:
        site = next((each for each in map(sites.site_of.get, _calls(region)) if each), None)
        wanted = _wanted(region)
        for block, end in () if site is None else _blocks_above(region, site):
            needed = [e for e in _needed(block[:end], wanted) if not _is_left_out(e, barriers)]
            new = [e for e in _on_results(reversed(needed), start) if e not in covered]
            covered.update(node for each in new for node in nodes_below(each))
            if new:
                place = found.setdefault(id(block), _Passes(block, region.scope, []))
                place.statements.extend(new)
    return [
        LossRegion(row, each.scope)
        for each in found.values()
        for row in _in_rows(each.block, each.statements)
    ]


class _Passes(NamedTuple):
    """Forward passes of a block."""

    block: Sequence[ast.stmt]
    scope: Scope
    statements: list[ast.stmt]


def _calls(region: LossRegion) -> Iterator[ast.Call]:
    for node in nodes_below(region.statements[0]):
        if isinstance(node, ast.Call):
            yield node


def _wanted(region: LossRegion) -> set[str]:
    """The names that a region reads and does not make itself."""
    wanted: set[str] = set()
    for statement in reversed(region.statements):
        if not isinstance(statement, ast.If):
            wanted -= set(assigned_names(statement))
        wanted |= names_read(statement)
    return wanted


def _blocks_above(region: LossRegion, site: Site) -> Iterator[tuple[list[ast.stmt], int]]:
    """Each block around a region up to the innermost loop, and where it goes on to the region."""
    chain = list(site.statements)
    first = region.statements[0]
    for depth in range(chain.index(first) if first in chain else -1, -1, -1):
        owner = chain[depth - 1] if depth else site.function
        block = None if owner is None else block_with(owner, chain[depth])
        if block is None:
            return
        yield block, block.index(chain[depth])
        if isinstance(owner, (ast.For, ast.AsyncFor, ast.While)):
            return


def _needed(block: Sequence[ast.stmt], wanted: set[str]) -> Iterator[ast.stmt]:
    """The statements of a block that make what is wanted, the last first."""
    for statement in reversed(block):
        assigned = set(assigned_names(statement))
        if any(is_part(name, each) for name in wanted for each in assigned):
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                wanted -= assigned
            wanted |= names_read(statement)
            yield statement


def _on_results(statements: Iterable[ast.stmt], start: RegionStart) -> Iterator[ast.stmt]:
    """Those of some statements that run a model, and those that compute with what they give."""
    results: set[str] = set()
    for each in statements:
        if start.runs_model(each) or any(
            is_part(name, made) for name in names_read(each) for made in results
        ):
            results.update(assigned_names(each))
            yield each


def _is_left_out(statement: ast.stmt, barriers: Collection[ast.expr]) -> bool:
    """Whether a statement goes backward itself, or runs without gradients."""
    for node in nodes_below(statement):
        if isinstance(node, ast.expr) and node in barriers:
            return True
        if isinstance(node, ast.Attribute) and node.attr in WITHOUT_GRADIENTS:
            return True
    return False


def _in_rows(
    block: Sequence[ast.stmt], statements: Sequence[ast.stmt]
) -> Iterator[tuple[ast.stmt, ...]]:
    """Those of some statements of a block that follow each other."""
    wanted, row = set(statements), list[ast.stmt]()
    for each in block:
        if each in wanted:
            row.append(each)
        elif row:
            yield tuple(row)
            row = []
    if row:
        yield tuple(row)
