"""What is known of the shapes in a segment that depend on data."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from npulens.catalog.model import Fix, LocalizedText
from npulens.graphs.interfaces import Interface
from npulens.text.spans import Span


class Hint(NamedTuple):
    """Something to show at a place.

    Attributes:
        span: A name that is assigned, or the name of a function.
        home: The function that it is in, see `Hotspot`.
        shape: The symbolic shape of the name, such as `[?, 4]`; empty for a function.
        is_dynamic: The shape depends on data.
        shapes: How many places of the function make shapes depend on data.
        synchronizations: In how many places the host waits for the device.
        sources: Where the shape of the name comes from, each with its `home`.
    """

    span: Span
    home: str = ""
    shape: str = ""
    is_dynamic: bool = False
    shapes: int = 0
    synchronizations: int = 0
    sources: tuple[tuple[str, Span], ...] = ()

    @property
    def is_informative(self) -> bool:
        """Functions have no shape; one that does not depend on data has to say some size."""
        return bool(self.shape) and (self.is_dynamic or says_a_size(self.shape))


def says_a_size(shape: str) -> bool:
    """Whether some size of a symbolic shape is known; that one is 1 is little."""
    return any(size not in ("?", "1", "...", "") for size in shape.strip("[]").split(", "))


class FunctionShapes(NamedTuple):
    """What a function takes and gives.

    Attributes:
        span: Its name.
        home: The function that it is in, see `Hotspot`.
        takes: Its parameters whose shapes it shows, each with the shape.
        gives: The shape of what it returns, in brackets those of several; empty if not known.
    """

    span: Span
    home: str
    takes: tuple[tuple[str, str], ...]
    gives: str


class NamedShapes(NamedTuple):
    """The symbolic shapes that are no finding.

    Attributes:
        hints: Of the names that are assigned.
        reads: Of names and attributes where they are read.
        functions: What functions take and give.
    """

    hints: tuple[Hint, ...] = ()
    reads: tuple[Hint, ...] = ()
    functions: tuple[FunctionShapes, ...] = ()


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A place where a shape comes to depend on data, or where the host waits for the device.

    Attributes:
        rule: The name of the rule that it breaks.
        span: The place, in offsets from the first line of its home.
        symbol: Its text, in one line.
        home: `function` or `Class.method` at the top of the module; empty for the segment itself.
        function: `function` or `Class.method` that it is in.
        cost: How much it hurts in a step, from 0 to 100.
        loops: How many loops of the function are around it.
        is_rare: It is reached every so many steps, or in evaluation only.
        synchronizes: The host waits for the device here.
        is_shape: A shape depends on data from here on.
        is_sure: It is a tensor for certain that this happens to.
        advice: What is better.
        used: Where what comes of it is worked on, each with its `home`.
        fixes: Ways to repair it.
    """

    rule: str
    span: Span
    symbol: str
    home: str
    function: str
    cost: int
    loops: int
    is_rare: bool
    synchronizes: bool
    is_shape: bool
    is_sure: bool
    advice: LocalizedText
    used: tuple[tuple[str, Span], ...]
    fixes: tuple[Fix, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What evaluating one function on shapes has found.

    Attributes:
        hotspots: The hotspots, also in functions that it calls.
        rests_on: The functions that were queried: it holds as long as these are what they were.
        passed_arguments: What calls in it pass to methods of their class.
        has_events: Something happened in it.
        from_host: Parameters that were taken to be on the host, with what they hold.
    """

    hotspots: tuple[Hotspot, ...]
    hints: tuple[Hint, ...]
    rests_on: frozenset[ast.AST]
    passed_arguments: tuple[object, ...]
    has_events: bool
    from_host: Mapping[str, object]


class Described(NamedTuple):
    """A function as the call graph knows it.

    Attributes:
        name: `function` or `Class.method`.
        calls: The last parts of the names that it calls.
        trains: It holds a backward pass.
        has_loop: It holds a loop.
        is_step: It is the step of an optimizer.
        is_module: It is a method of a class with a `forward`.
        sends_objects: It sends objects as bytes, or over a group of the hosts.
        loops_train: Its backward pass is in one of its loops, so what is around them is not; a
            step without one is in a loop of its caller.
        is_unused: It or its class will be removed, and nothing of the module calls it.
    """

    name: str
    calls: frozenset[str]
    trains: bool
    is_module: bool
    sends_objects: bool
    has_loop: bool = False
    is_step: bool = False
    loops_train: bool = False
    is_unused: bool = False


@dataclass(slots=True)
class ShapeAnswers:
    """What `shapes` has come to know of one segment.

    Attributes:
        hotspots: What was found from its functions on; `None` until that is known.
        exempt_hotspots: What was found from functions of which nothing is reported.
        looked_through: The functions they were looked for in, by name: whether these are exempt.
        hints: What an editor can show of shapes besides.
        evaluations: What was found from each of its functions on, by node.
        queried: The interfaces that its hotspots rest on, by name.
        named: What each function shows of shapes besides, with the functions that rests on.
        named_queried: The interfaces that this rests on, by name.
        sources: Where words of sources of dynamic shapes are; `None` until queried.
        described: Its functions with what they call; `None` until queried.
    """

    hotspots: tuple[Hotspot, ...] | None = None
    exempt_hotspots: tuple[Hotspot, ...] = ()
    looked_through: dict[str, bool] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    evaluations: dict[ast.AST, Evaluation] = field(default_factory=dict)
    queried: dict[str, Interface | None] = field(default_factory=dict)
    named: dict[ast.AST, tuple[NamedShapes, frozenset[ast.AST]]] = field(default_factory=dict)
    named_queried: dict[str, Interface | None] = field(default_factory=dict)
    sources: object = None
    described: tuple[Described, ...] | None = None

    def take_over(self, before: "ShapeAnswers") -> None:
        """Keep what holds for functions that an edit of one statement has left as they were."""
        self.evaluations, self.queried = before.evaluations, before.queried
        self.named, self.named_queried = before.named, before.named_queried

    def forget(self) -> None:
        """Forget the hotspots, which have to be looked for anew."""
        self.hotspots, self.evaluations, self.named = None, {}, {}
