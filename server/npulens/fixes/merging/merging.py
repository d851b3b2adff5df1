"""The door: a module with one projection instead of two whose outputs it joins."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from npulens.catalog.message_ids import MessageId
from npulens.fixes.merging.joined_module import JoinedModule
from npulens.fixes.merging.joined_pairs import Pair, PairFinder
from npulens.fixes.merging.merge_obstacles import OBSTACLES, Find, line_of, plain_code
from npulens.fixes.merging.merge_refusals import MergeRefusedError
from npulens.fixes.merging.one_projection import hook_of, name_of, with_one_projection
from npulens.fixes.merging.other_uses import (
    derived_elsewhere,
    named_elsewhere,
    require_no_other_use,
)


class Merged(NamedTuple):
    """A module with its pairs merged.

    Attributes:
        text: As it is without any pair that can be merged.
        refusals: Why others were not, with lines of the text before.
    """

    text: str
    refusals: Sequence[MergeRefusedError]


def with_merged_projections(text: str, find: Find, has_hook: bool, line: int | None) -> Merged:
    """Make one layer of each pair, with a hook before its class for older checkpoints.

    The order of the joined weights is that of the joined outputs, so results are the same. Without
    a bias the layer starts with the same random numbers as the two if nothing is made between
    them: `nn.Linear` draws the rows one after the other, within limits that depend on its input.
    The states of an optimizer in older checkpoints do not fit the joined weight.

    Args:
        text: The module.
        find: Looks for a pattern in other files of the project.
        has_hook: Whether the PyTorch of the project has `register_load_state_dict_pre_hook`.
        line: Where the only pair is joined that is wanted, `None` for all.
    """
    try:
        index = JoinedModule(text)
    except cst.ParserSyntaxError as error:
        return Merged(text, [MergeRefusedError(error.raw_line, "merging.does-not-parse")])
    finder = PairFinder(index)
    found = [*finder.found(line)]
    refusals = [each for each in found if isinstance(each, MergeRefusedError)]
    pairs = [each for each in found if isinstance(each, Pair)]
    if pairs and not has_hook:
        refusals += (MergeRefusedError(pair.line, "merging.older-torch") for pair in pairs)
        return Merged(text, refusals)
    if pairs:
        surroundings = _Surroundings(text, index, finder, find)
        pairs = [*surroundings.free(pairs, refusals)]
    if line is not None and not pairs and not refusals:
        refusals = [MergeRefusedError(line, "merging.not-plain")]
    return Merged(with_one_projection(index, pairs) if pairs else text, refusals)


class _Surroundings:
    """What besides a pair forbids to merge it."""

    def __init__(self, text: str, index: JoinedModule, finder: PairFinder, find: Find) -> None:
        self._code = plain_code(text)
        self._index = index
        self._finder = finder
        self._find = find
        self._hooks: set[str] = set()
        self._obstacles = [(each[0].search(self._code), *each) for each in OBSTACLES]

    def free(self, pairs: Iterable[Pair], refusals: list[MergeRefusedError]) -> Iterator[Pair]:
        """The pairs that nothing forbids to merge; why others stay is put to the refusals."""
        for pair in pairs:
            try:
                self._require_free(pair)
            except MergeRefusedError as error:
                refusals.append(error)
                continue
            yield pair

    def _require_free(self, pair: Pair) -> None:
        self._require_not_elsewhere(pair)
        self._require_not_taken(pair)
        self._require_no_obstacle(pair)
        self._hooks.add(hook_of(pair))

    def _require_no_obstacle(self, pair: Pair) -> None:
        for here, pattern, reason in self._obstacles:
            if here is not None:
                raise MergeRefusedError(pair.line, reason, line_of(self._code, here))
            place = self._find(pattern)
            if place is not None:
                raise MergeRefusedError(pair.line, reason, place=place.text)

    def _require_not_elsewhere(self, pair: Pair) -> None:
        for layer in (pair.first, pair.second):
            python, others = (named_elsewhere(layer.name, each) for each in (True, False))
            place = self._find(python, others, layer.name)
            if place is not None:
                reason: MessageId = "merging.named-elsewhere"
                raise MergeRefusedError(pair.line, reason, name=layer.name, place=place.text)
        owner = pair.owner.name.value
        place = self._find(derived_elsewhere(owner), word=owner)
        if place is not None:
            raise MergeRefusedError(pair.line, "merging.derived", owner=owner, place=place.text)

    def _require_not_taken(self, pair: Pair) -> None:
        name, hook = name_of(pair), hook_of(pair)
        try:
            require_no_other_use(self._index, self._finder.graph.relatives(pair.owner), name, ())
        except MergeRefusedError as error:
            raise MergeRefusedError(pair.line, "merging.is-taken", error.line, name=name) from error
        taken = re.search(rf"\b{hook}\b", self._code)
        if taken is not None:
            at = line_of(self._code, taken)
            raise MergeRefusedError(pair.line, "merging.is-taken", at, name=hook)
        if hook in self._hooks:
            raise MergeRefusedError(pair.line, "merging.is-taken", pair.line, name=hook)
