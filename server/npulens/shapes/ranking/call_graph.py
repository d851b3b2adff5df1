"""The call graph of a module: from where its functions are reached, and which of them count."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.shape_answers import Described, Hotspot
from npulens.shapes.ranking.described import MODULE, described
from npulens.shapes.ranking.scoring import Reach, leaving, reaches, score
from npulens.shapes.ranking.twins import has_npu_twin, is_for_npu
from npulens.shapes.values.shape_rules import PIPELINES
from npulens.verdicts.file_role import FileRole, file_role

_NOWHERE = Reach(is_hot=False, is_cold=False)


class CallGraph:
    """From where the functions of a module are reached."""

    def __init__(self, module: AnalysedModule) -> None:
        project = module.target.project
        self._segments = module.segments
        self._definitions = module.definitions.all
        self._unused = project.unused.names
        role = file_role(project.place_of(module.path))
        self.is_cold_file = module.path in project.unused.modules or FileRole.COLD in role
        self.is_of_host = FileRole.HOST in role
        self._is_on_host = module.path in project.on_host

    def reach(self, function: str) -> Reach:
        """From where `function` or `Class.method` is reached."""
        found = self._reaches.get(function, _NOWHERE)
        return found._replace(is_on_host=True) if self._is_on_host else found

    def is_exempt(self, function: str) -> bool:
        """Whether all that happens in a function scores too low to be reported."""
        reach = self.reach(function)
        return reach.is_cold or reach.is_unused or self._is_apart(function)

    def counts(self, hotspot: Hotspot) -> bool:
        """Whether a hotspot is one, for what the module is for."""
        # It may be for kernels of CUDA, and another function does the same for the NPU.
        return not has_npu_twin(hotspot.function.rpartition(".")[2], self._for_npu)

    def score(self, hotspot: Hotspot) -> int:
        """How much a hotspot hurts, from 0 to 100."""
        return score(
            hotspot.cost,
            hotspot.loops,
            self.reach(hotspot.function),
            _is_rare(hotspot),
            self._is_apart(hotspot.function),
        )

    def _is_apart(self, function: str) -> bool:
        return self.is_cold_file or function.partition(".")[0] in self._unused

    @cached_property
    def _for_npu(self) -> Sequence[str]:
        """Functions of the module that say that they are for the NPU."""
        return [name for name in self._definitions.functions if is_for_npu(name)]

    @cached_property
    def _reaches(self) -> Mapping[str, Reach]:
        """The call graph is only read where there is something to score."""
        for segment in self._segments:
            if segment.shapes.described is None:
                segment.shapes.described = tuple(described(segment, self._definitions))
        return _reaches(
            tuple(s.shapes.described for s in self._segments if s.shapes.described),
            tuple(self._leaving),
        )

    @property
    def _leaving(self) -> Iterator[str]:
        """Classes, functions and methods that say that they will be removed."""
        for segment in self._segments:
            if "deprecate" in segment.parsed.text:
                yield from leaving(segment.parsed)


@lru_cache(maxsize=4)
def _reaches(
    segments: tuple[tuple[Described, ...], ...], leaving: tuple[str, ...]
) -> Mapping[str, Reach]:
    """From where functions are reached; most edits leave what the graph has to know of them."""
    return reaches([*chain.from_iterable(segments)], leaving)


def _is_rare(hotspot: Hotspot) -> bool:
    """What a module does once when it is run is start-up."""
    is_once = hotspot.function == MODULE and not hotspot.loops
    return hotspot.is_rare or (is_once and hotspot.rule not in PIPELINES)
