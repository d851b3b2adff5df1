"""The state of one evaluation: what names hold, and what is known of the class around."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from npulens.catalog.model import LocalizedText
from npulens.catalog.tables import OperatorEntry
from npulens.graphs.definitions import (
    ClassHere,
    Definitions,
    FunctionHere,
    inner_statements,
    stored_attributes,
    stored_by,
)
from npulens.graphs.interfaces import CONSTRUCTORS, modules_of
from npulens.shapes.evaluation.callee_symbols import renamed
from npulens.shapes.evaluation.elsewhere import Elsewhere
from npulens.shapes.evaluation.layer_arguments import (
    argument,
    assigned_attributes,
    is_number,
    is_sent,
    keeps_lengths,
    layer_by_default,
    names_bound_after,
    settled_text,
    size_given,
    tensors_made,
)
from npulens.shapes.evaluation.tensor_evidence import (
    annotated,
    counted_names,
    known_names,
    parameters,
    targets_of,
)
from npulens.shapes.evaluation.tensor_growth import Walks
from npulens.shapes.values.events import Event, Recorder
from npulens.shapes.values.shape_rules import HOST_READ
from npulens.shapes.values.shape_values import (
    ARRAY,
    CONSTANT,
    LIKELY,
    UNKNOWN,
    Closure,
    Foreign,
    Layer,
    Layers,
    Meter,
    Number,
    Tensor,
    Value,
    may_be_on_device,
    on_device,
    sources_of,
)
from npulens.shapes.values.size_texts import size_text
from npulens.shapes.values.symbolic_dims import ANY_SHAPE, NO_SOURCES, SCALAR, Shape, Sources
from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.by_node import once_by_node
from npulens.syntax.meanings import Instance, qualified_names, resolve
from npulens.syntax.scopes import module_of
from npulens.syntax.values import Name, dotted_name, is_none, root_name
from npulens.syntax.walking import inner_nodes
from npulens.verdicts.answers import Answer
from npulens.verdicts.conditions import Known, answer

MAX_STEPS = 6000
"""How many expressions are evaluated for one function."""
MAX_TOTAL = 9000
"""How many for it and the functions that it calls."""
MAX_CALLS = 30
"""How many calls of functions of the file are looked into for one function."""
KEEPING = frozenset(
    {"to", "cuda", "npu", "cpu", "train", "eval", "float", "double", "half", "bfloat16"}
    | {"requires_grad_", "apply", "to_empty", "share_memory"}
)
"""Methods of modules that return the module."""
_WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.compile",
        "torch.jit.script",
        "copy.deepcopy",
        "copy.copy",
    }
)
"""What is given a module first and returns one that computes the same."""
_MOST_WRAPPED = 4
MAX_DEPTH = 3
"""How deep such calls are looked into."""


class ExhaustedError(Exception):
    """A function is too long to be evaluated to its end."""


class PassedArguments(NamedTuple):
    """What a call within a class passes to one of its methods."""

    method: ast.AST
    call: ast.Call
    values: Mapping[str, Value]


class Member(NamedTuple):
    """What an attribute holds, and the functions and names of the module that this rests on."""

    value: Value
    visited: tuple[ast.AST, ...] = ()
    queried: frozenset[str] = frozenset()


class Result(NamedTuple):
    """What a call came to: the value it returned, what happened in it, and what this rests on."""

    value: Value
    events: tuple[Event, ...]
    visited: tuple[ast.AST, ...]
    queried: frozenset[str]
    passed_arguments: tuple[PassedArguments, ...]


@dataclass(slots=True)
class Session:
    """What the evaluations that start from one function share.

    Attributes:
        definitions: The functions and classes of the file.
        operators: What has shapes that depend on data, by qualified name.
        methods: The same for methods of tensors, by their name.
        recorder: Where findings go.
        elsewhere: Functions and classes of other modules.
        check_cancelled: Called for each function; what it raises ends the evaluation.
        names_host: The module names the device of the host.
        conditions: What is known for conditions.
        active: The functions that are being evaluated.
        results: What calls of functions with given arguments came to.
        shared: The same of calls that the functions of a segment make themselves.
        members: What attributes of classes hold.
        names: The qualified names of dotted names.
        answers: What parts of conditions come to on an NPU, whatever the data.
        visited: The functions that the current one rests on.
        passed_arguments: What calls within a class pass to its methods.
        definers: The functions that define nested functions and lambdas, whoever calls those.
        walks: What is in loops and functions where tensors may grow.
        entered: Nested functions that were evaluated.
        kept: Where constructors read what attributes hold.
    """

    definitions: Definitions
    operators: Mapping[str, OperatorEntry]
    methods: Mapping[str, OperatorEntry]
    recorder: Recorder
    elsewhere: Elsewhere
    check_cancelled: Callable[[], None]
    names_host: bool
    conditions: Known
    active: list[ast.AST] = field(default_factory=list)
    results: dict[object, Result] = field(default_factory=dict)
    shared: dict[object, Result] = field(default_factory=dict)
    members: dict[tuple[ast.AST, str], Member] = field(default_factory=dict)
    names: dict[tuple[object, Name], str] = field(default_factory=dict)
    answers: dict[ast.expr, Answer] = field(default_factory=dict)
    visited: list[ast.AST] = field(default_factory=list)
    passed_arguments: list[PassedArguments] = field(default_factory=list)
    definers: dict[ast.AST, FunctionHere] = field(default_factory=dict)
    walks: Walks = field(default_factory=Walks)
    entered: set[ast.AST] = field(default_factory=set)
    kept: set[ast.AST] = field(default_factory=set)
    calls: int = 0
    steps: int = 0


@dataclass(eq=False)
class Frame:
    """One function under evaluation.

    Attributes:
        session: What evaluations share.
        function: The function.
        names: What its names hold, its parameters to begin with.
        given: Its optional parameters that this call gives, see `optional.py`.
        defined: The functions that it defines.
        control: What decides whether the current statement is reached, where that depends on data.
        made_at: How many of these there were when a list was made.
        leaving: The values of names where the current loop was left early.
        around: The loops around the current statement.
        rare: How many conditions around are met every so many steps only.
        behind: The call behind which an attribute is read.
    """

    session: Session
    function: FunctionHere
    names: dict[str, Value]
    given: frozenset[str]
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] = field(default_factory=list)
    defined: list[Closure] = field(default_factory=list)
    control: list[Sources] = field(default_factory=list)
    made_at: dict[str, int] = field(default_factory=dict)
    leaving: list[dict[str, Value]] = field(default_factory=list)
    around: list[ast.stmt] = field(default_factory=list)
    rare: int = 0
    behind: ast.expr | None = None
    steps: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.with_parts = {name.partition(".")[0] for name in self.names if "." in name}
        """Names of which some attribute is known."""
        self.receiver = self.function.receiver
        shown = known_names(self.function.node)
        self.known, self.arrays, self.modules, self.scalars, self.moved, self.terms = shown
        self.bound = set().union(*(scope.names for scope in self.function.scopes))
        """Names that this function and those around it bind."""
        self.module = module_of(self.function.scope)
        self.issued: dict[str, ast.AST] = dict.fromkeys(
            set(self.names) - optional_names(self.function.node.args), self.function.node
        )
        """What gave a name the size that it stands for; parameters have theirs from the caller."""
        self.rebound: set[str] = set()
        """Names that were bound: parameters among them are no longer those of the caller."""
        self.sized: set[ast.AST] = set()
        """What made numbers depend on data that tensors have been made as long as."""
        self.stale: set[str] = set()
        """Names that have come to hold another size, so that they stand for none any more."""

    def issue(self, name: str, by: ast.AST) -> bool:
        """Let a name stand for a size from here on; whether it stood for no other before."""
        if self.issued.setdefault(name, by) is not by and name not in self.stale:
            self.stale.add(name)
            for other, value in self.names.items():
                self.names[other] = renamed(value, self.told)
        return name not in self.stale

    def told(self, text: str) -> str:
        """How a length reads, `?` where one of its names has come to hold another size."""
        return settled_text(text, self.stale)

    # What is found

    def report(
        self,
        rule: str,
        node: ast.AST,
        advice: LocalizedText,
        cost: int,
        *,
        synchronizes: bool = True,
        is_shape: bool = False,
        is_whole: bool = False,
        is_elsewhere: bool = False,
        is_sure: bool = True,
    ) -> Sources:
        """Record an event, see there; returns the source of what depends on it."""
        how = (cost, synchronizes, is_shape, advice, is_whole)
        reached = (len(self.around), self.rare > 0, is_elsewhere, is_sure)
        event = Event(rule, node, self.function, *how, *reached)
        self.session.recorder.add(event)
        return frozenset((node,))

    def host_reads(
        self, node: ast.AST, values: Iterable[Value], advice: LocalizedText, cost: int
    ) -> Sources:
        """Report that the host reads those of some values that are tensors, if any is."""
        read = list(filter(may_be_on_device, values))
        if not read:
            return NO_SOURCES
        return self.report(HOST_READ, node, advice, cost, is_sure=any(map(on_device, read)))

    def uses(self, sources: Sources, node: ast.AST) -> None:
        """Note that a node works on what has these sources."""
        if sources:
            self.session.recorder.use(sources, node, self.function)

    def are_sure(self, sources: Sources) -> bool:
        """Whether some source surely happens to a tensor."""
        events = self.session.recorder.events
        return any(source not in events or events[source].is_sure for source in sources)

    def are_values(self, sources: Sources) -> bool:
        """Whether some source is a value that was read, not a length."""
        events = self.session.recorder.events
        if not self.session.kept.isdisjoint(sources):
            return True
        return any(source in events and not events[source].is_shape for source in sources)

    # Names

    def named(self, name: str) -> Value:
        """What a name or a dotted name of this function holds."""
        value = self.names.get(name, UNKNOWN)
        if value.__class__ is Tensor:
            # What a module returned may be several tensors; what is done with it tells.
            if not value.is_sure and (name in self.scalars or name in self.known):
                return value._replace(is_sure=True)
            if value == LIKELY and name not in self.rebound and self._is_counted(name):
                return CONSTANT
            return UNKNOWN if not value.is_sure and name in self.modules else value
        if name in self.scalars and value in (UNKNOWN, ARRAY):
            return Tensor(SCALAR)
        if value is not UNKNOWN:
            return value
        if name in self.known:
            return Tensor(on_host=name in self.moved)
        if name in self.terms and name not in self.arrays:
            return LIKELY
        return ARRAY if name in self.arrays else UNKNOWN

    def _is_counted(self, name: str) -> bool:
        return name in counted_names(self.function.node)

    def closure(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Closure:
        """A function that this one defines."""
        self.session.definers[node] = self.function
        return Closure(node, self.names)

    def qualified(self, node: ast.expr) -> str:
        """The qualified name of something of a library, empty if it is none."""
        root = root_name(node)
        name = None if root in self.names or root == self.receiver else dotted_name(node)
        if name is None:
            return ""
        # A name that the functions around do not bind means the same in the whole segment.
        key = (self.function.node if name.root in self.bound else self.module, name)
        if key not in self.session.names:
            found = qualified_names(node, self.function.scope)
            self.session.names[key] = found[0] if found else ""
        return self.session.names[key]

    def kept(self, name: str) -> Value:
        """An instance of a class of another module that keeps what its methods are given."""
        keeper = self.session.elsewhere.keepers.find(name)
        return UNKNOWN if keeper is None else Meter(keeper)

    def made_by_module(self, node: ast.expr) -> str:
        """The layer of PyTorch that a name of the module holds: `criterion = nn.MSELoss()`."""
        key = (self.module, Name(f"{getattr(node, 'id', '')}()"))
        if key not in self.session.names:
            made = resolve(node, self.function.scope)
            name = made[0].name if len(made) == 1 and isinstance(made[0], Instance) else ""
            self.session.names[key] = _layer(name)
        return self.session.names[key]

    def is_module(self, node: ast.expr) -> bool:
        """Whether the function shows that a name is a module, or the class that an attribute is."""
        named = dotted_name(node)
        written = "" if named is None else ".".join((named.root, *named.path))
        if written in self.modules:
            return True
        owner = self.function.owner
        if owner is None or named is None or named.root != self.receiver or len(named.path) != 1:
            return False
        return named.path[0] in modules_of(owner.node)

    def answer(self, test: ast.expr) -> Answer:
        """What a part of a condition comes to on an NPU, whatever the data."""
        answers = self.session.answers
        if test not in answers:
            answers[test] = answer(test, self.function.scope, self.session.conditions)
        return answers[test]

    def member(self, attribute: str) -> Value:
        """What an attribute of `self` holds when a method begins."""
        owner = self.function.owner
        return UNKNOWN if owner is None else self.member_of(owner, attribute)

    def member_of(self, owner: ClassHere, attribute: str) -> Value:
        """What an attribute of an instance of a class holds once that is made."""
        key, session = (owner.node, attribute), self.session
        known = session.members.get(key)
        if known is not None:
            session.visited += known.visited
            session.definitions.queried |= known.queried
            return known.value
        session.members[key] = Member(UNKNOWN)  # attributes that are made of each other
        start = len(session.visited)
        with session.definitions.looked_up() as queried:
            value = self._initial(owner, attribute)
        visited = tuple(dict.fromkeys(session.visited[start:]))
        session.members[key] = Member(value, visited, frozenset(queried))
        return value

    def _initial(self, owner: ClassHere, attribute: str) -> Value:
        lineage = list(self.session.definitions.lineage(owner))
        methods = (m for each in lineage for m in each.methods.values())
        if self.session.names_host and any(
            attribute in _moved_to_host(method.node) and method.receiver for method in methods
        ):
            return Tensor(on_host=True)
        for each in lineage:
            for name in CONSTRUCTORS:
                method = each.methods.get(name)
                if method is not None:
                    found = self._assigned_in(method, attribute)
                    if found is not None:
                        is_first = found is UNKNOWN or isinstance(found, Number)
                        return (
                            self._assigned_later(lineage, attribute, found) if is_first else found
                        )
        return self._assigned_later(lineage, attribute, UNKNOWN)

    def _assigned_later(
        self, lineage: Sequence[ClassHere], attribute: str, at_first: Value
    ) -> Value:
        """What the only method besides constructors that assigns an attribute has read for it."""
        assigning = [
            (method, value)
            for each in lineage
            for name, method in each.methods.items()
            if name not in CONSTRUCTORS
            if attribute in (stored := _stored(method.node))
            for value in [stored[attribute]]
        ]
        if len(assigning) != 1:
            return at_first
        [(method, value)] = assigning
        if value is None or not (_is_read(value) or isinstance(value, ast.Compare)):
            return at_first
        self.session.visited.append(method.node)
        found = self._read_and_kept(method, attribute)
        return at_first if found is UNKNOWN else found

    def is_given_parameter(self, node: ast.Call) -> bool:
        """Whether a parameter of the function is passed to a call as it is."""
        names = {argument.arg for argument in self.function.parameters}
        given = (
            part
            for argument in node.args
            for part in (argument.elts if isinstance(argument, ast.Tuple) else [argument])
        )
        return any(isinstance(part, ast.Name) and part.id in names for part in given)

    def default_number(self, node: ast.expr) -> int | None:
        """What number an expression is by default: one that is written, a parameter, an attribute.

        Of an attribute the constructor says so, which keeps a parameter.
        """
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.Name(name):
                return _default(self.function, name)
            case ast.Attribute(ast.Name(owner), attribute) if owner == self.receiver:
                return self._default_of_attribute(attribute)
        return None

    def _default_of_attribute(self, attribute: str) -> int | None:
        owner = self.function.owner
        for each in self.session.definitions.lineage(owner) if owner is not None else ():
            method = each.methods.get("__init__")
            value = None if method is None else _attributes(method.node).get(attribute)
            if method is not None and isinstance(value, ast.Name):
                return _default(method, value.id)
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                return value.value
        return None

    def is_from_constructor(self, attribute: str) -> bool:
        """Whether only the constructor assigns an attribute, and a value that it was given."""
        owner = self.function.owner
        for each in self.session.definitions.lineage(owner) if owner is not None else ():
            method = each.methods.get("__init__")
            if method is None or attribute not in stored_attributes(method):
                continue
            given = self._value_given(method, attribute)
            others = (m for m in each.methods.values() if m is not method)
            return given and all(attribute not in stored_attributes(m) for m in others)
        return False

    def _value_given(self, method: FunctionHere, attribute: str) -> bool:
        """Whether a constructor keeps an argument, or a part of one, or a number."""
        value = _attributes(method.node).get(attribute)
        if isinstance(value, (ast.Constant, ast.List, ast.Tuple)):
            return True
        named = None if value is None else dotted_name(value)
        return named is not None and _argument(method, named.root) is not None

    def _assigned_in(
        self, method: FunctionHere, attribute: str, left: int = _MOST_WRAPPED
    ) -> Value | None:
        """What a constructor puts into an attribute: a layer, a tensor, or something else."""
        known = _attributes(method.node)
        if attribute not in known:
            return None
        value = known[attribute]
        found = Tensor() if value is None else self._constructed(value, method, left)
        if found is UNKNOWN and value is not None and is_sent(value):
            return self._sent_at_start(value, method)
        if found is UNKNOWN:
            found = annotated(_annotations(method.node).get(attribute))
        if found is UNKNOWN and value is not None and _is_read(value):
            return self._read_and_kept(method, attribute)
        made = tensors_made(method.node).get(attribute)
        if found == Tensor() and made is not None:
            return Tensor(self._shape_made(made, method))
        return found

    def _sent_at_start(self, node: ast.expr, method: FunctionHere) -> Value:
        """A tensor that a constructor makes on the device: `torch.zeros(1).to(device)`."""
        session = replace(self.session, recorder=Recorder(notes_names=False), active=[], steps=0)
        frame = type(self)(session, method, {}, frozenset())
        try:
            value = frame.read(node)
        except ExhaustedError:
            return UNKNOWN
        return Tensor(kind=value.kind) if on_device(value) else UNKNOWN

    def _read_and_kept(self, method: FunctionHere, attribute: str) -> Value:
        """What a method reads from values and keeps, as lengths to split into are, or a mask."""
        recorder = Recorder(notes_names=False)
        session = replace(self.session, recorder=recorder, active=[method.node], steps=0)
        frame = type(self)(session, method, dict(parameters(method.node, False)), frozenset())
        frame.run()
        value = frame.names.get(f"{method.receiver}.{attribute}", UNKNOWN)
        if on_device(value) and value.kind == "bool":
            return Tensor(kind="bool")
        sources = sources_of(value)
        events = recorder.events
        if not sources or not all(each in events and events[each].is_sure for each in sources):
            return UNKNOWN
        self.session.kept.update(sources)
        return value

    def run(self) -> Value:
        """Evaluate the function; see `shape_statements.py`."""
        raise NotImplementedError

    def _shape_made(self, node: ast.expr, method: FunctionHere) -> Shape:
        """The shape of what a constructor makes a parameter or buffer of."""
        session = replace(self.session, recorder=Recorder(notes_names=False), active=[], steps=0)
        frame = type(self)(session, method, {}, frozenset())
        try:
            value = frame.read(node)
        except ExhaustedError:
            return ANY_SHAPE
        shape = value.shape if isinstance(value, Tensor) else ANY_SHAPE
        changing = self._changing(method, node)
        return (
            shape if shape.is_unknown else shape.renamed(lambda text: settled_text(text, changing))
        )

    def read(self, node: ast.expr | None) -> Value:
        """What an expression is; see `shape_expressions.py`."""
        raise NotImplementedError

    def is_kept_number(self, node: ast.expr) -> bool:
        """Whether an expression is an attribute that the constructor keeps a number in.

        What it was given as it is counts, since modules and tensors are rarely computed with.
        """
        match node:
            case ast.Attribute(ast.Name(owner), attribute) if owner == self.receiver:
                pass
            case _:
                return False
        here = self.function.owner
        for each in self.session.definitions.lineage(here) if here is not None else ():
            method = each.methods.get("__init__")
            value = None if method is None else _attributes(method.node).get(attribute)
            if method is not None and value is not None:
                return is_number(value)
        return False

    def _constructed(
        self, node: ast.expr, method: FunctionHere, left: int = _MOST_WRAPPED
    ) -> Value:
        node = unwrapped(node, method)
        match node:
            case ast.Attribute(ast.Name(owner), attribute) if owner == method.receiver and left:
                return self._assigned_in(method, attribute, left - 1) or UNKNOWN
        if isinstance(node, ast.IfExp):
            first = self._constructed(node.body, method)
            return first if isinstance(first, Layer) else self._constructed(node.orelse, method)
        if isinstance(node, ast.Constant):
            return CONSTANT if isinstance(node.value, (int, float)) else UNKNOWN
        if isinstance(node, ast.Name):
            argument = _argument(method, node.id)
            if argument is not None:
                return annotated(argument.annotation)
            names = qualified_names(node, method.scope)
            return Foreign(names[0]) if names and names[0] in self.session.operators else UNKNOWN
        if not isinstance(node, ast.Call):
            return UNKNOWN
        found = self._class_named(node.func)
        if found is not None:
            return Layer(found.node.name, found, given=self._given_to(found, node, method))
        names = qualified_names(node.func, method.scope)
        name = names[0] if names else layer_by_default(node.func, method)
        function = self.session.definitions.function(getattr(node.func, "id", ""))
        if function is not None:
            return self._made_by(function, node, method)
        if name.rpartition(".")[2] in ("weight_norm", "spectral_norm") and node.args:
            return self._constructed(node.args[0], method)  # the same layer, its weight scaled
        if name in ("torch.nn.ModuleList", "torch.nn.ModuleDict"):
            return Layers(self._contained_layer(node, method))
        if name == "torch.nn.Parameter":
            return Tensor()
        if not name.startswith("torch.nn."):
            return self.kept(name)
        if name == "torch.nn.Sequential":
            parts = [self._constructed(each, method) for each in node.args]
            are_spread = any(isinstance(each, ast.Starred) for each in node.args)
            layers = tuple(part if isinstance(part, Layer) else Layer("") for part in parts)
            return Layer(name, parts=() if are_spread else layers)
        size = size_given(node, name, self._changing(method, node))
        return Layer(name, size=size, keeps_lengths=keeps_lengths(node, name))

    def _given_to(
        self, owner: ClassHere, node: ast.Call, method: FunctionHere
    ) -> tuple[tuple[str, str], ...]:
        """What a constructor calls the parameters of another one, and attributes kept of them."""
        constructor = self.session.definitions.method(owner, "__init__")
        if constructor is None:
            return ()
        texts: dict[str, str] = {}
        changing = self._changing(method, node)
        for place, name in enumerate(each.arg for each in constructor.positional[1:]):
            given = argument(node, place, name)
            default = _default(constructor, name)
            text = "?" if default is None else str(default)
            if given is not None:
                text = settled_text(size_text(given), changing)
            texts[name] = text
        for attribute, value in _attributes(constructor.node).items():
            kept = getattr(value, "id", "") if isinstance(value, ast.Name) else ""
            texts.setdefault(attribute, texts.get(kept, "?"))
        return tuple(texts.items())

    def _changing(self, method: FunctionHere, node: ast.expr) -> frozenset[str]:
        """The names at a place of a constructor that come to mean something else later."""
        found = names_bound_after(node, method.node)
        owner = method.owner
        for each in self.session.definitions.lineage(owner) if owner is not None else ():
            others = (one for one in each.methods.values() if one.node is not method.node)
            found = found.union(*(assigned_attributes(one.node) for one in others))
        return found

    def _made_by(self, function: FunctionHere, node: ast.Call, method: FunctionHere) -> Value:
        """The layer that a function of the file makes, as `conv3x3(in_planes, planes)` does."""
        last = function.node.body[-1]
        if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Call):
            return UNKNOWN
        if getattr(last.value.func, "id", "") == function.node.name:
            return UNKNOWN
        self.session.visited.append(function.node)
        name = (qualified_names(last.value.func, function.scope) or [""])[0]
        if not name.startswith("torch.nn.") or name.endswith("Sequential"):
            return UNKNOWN
        text = size_given(last.value, name, names_bound_after(last.value, function.node))
        places = [each.arg for each in function.parameters]
        given = argument(node, places.index(text), text) if text in places else None
        if given is not None:
            text = settled_text(size_text(given), self._changing(method, node))
        return Layer(name, size=text if given is not None or text.isdecimal() else "?")

    def _contained_layer(self, node: ast.Call, method: FunctionHere) -> Layer:
        """One of the modules in a list of them."""
        inner = node.args[0] if node.args else None
        made: list[ast.expr] = [] if inner is None else [inner]
        own: frozenset[str] = frozenset()
        if isinstance(inner, (ast.ListComp, ast.GeneratorExp)):
            made, own = [inner.elt], targets_of(inner)
        elif isinstance(inner, (ast.List, ast.Tuple)):
            made = inner.elts
        contained = [self._constructed(each, method) for each in made]
        first = contained[0] if contained else UNKNOWN
        if not isinstance(first, Layer):
            return Layer("")
        # A size that differs from one to the next is none of all.
        differs = any(each != first for each in contained)
        return first._replace(size="?" if differs else settled_text(first.size, own))

    def _class_named(self, node: ast.expr) -> ClassHere | None:
        if not isinstance(node, ast.Name):
            return None
        self.session.definitions.queried.add(node.id)
        return self.session.definitions.classes.get(node.id)


def _layer(name: str) -> str:
    """`torch.nn.MSELoss` of the call of it, or of what moved it; empty for anything else."""
    owner, _, last = name.rpartition(".")
    name = owner if last in KEEPING else name
    is_layer = name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()
    return name if is_layer else ""


def unwrapped(node: ast.expr, method: FunctionHere) -> ast.expr:
    """`Net()` of `Net().to(device)`, `DataParallel(Net()).cuda()` and their like."""
    for _ in range(_MOST_WRAPPED):
        match node:
            case ast.Call(ast.Attribute(owner, name)) if name in KEEPING:
                node = owner
            case ast.Call(function, [inner, *_]) if is_wrapper(function, method):
                node = inner
            case _:
                break
    return node


def is_wrapper(node: ast.expr, method: FunctionHere) -> bool:
    """Whether a function returns a module that computes the same as the one it is given."""
    return any(name in _WRAPPERS for name in qualified_names(node, method.scope))


@once_by_node
def _attributes(method: Function) -> dict[str, ast.expr | None]:
    """What a method first assigns to attributes of `self`; `None` for a buffer or parameter."""
    receiver = _first_parameter(method)
    found: dict[str, ast.expr | None] = {}
    for node in inner_nodes(method):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    is_own = target.value.id == receiver
                    found.setdefault(target.attr if is_own else "", node.value)
        elif isinstance(node, ast.Call):
            registered = _registered(node)
            if registered:
                found.setdefault(registered, None)
    return found


@once_by_node
def _annotations(method: Function) -> dict[str, ast.expr]:
    """What a method says that attributes of `self` are: `self.parts: list[Tensor] = []`."""
    receiver = _first_parameter(method)
    found: dict[str, ast.expr] = {}
    for node in inner_nodes(method):
        match node:
            case ast.AnnAssign(ast.Attribute(ast.Name(name), attribute), annotation):
                found.update({attribute: annotation} if name == receiver else {})
    return found


@once_by_node
def _moved_to_host(method: Function) -> frozenset[str]:
    """Attributes of `self` that a method moves to the host: `self.x = self.x.to("cpu")`."""
    found: set[str] = set()
    for node in inner_statements(method.body):
        match node:
            case ast.Assign(
                targets=[ast.Attribute()],
                value=ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value="cpu"), *_]),
            ):
                found.update(stored_by(node, _first_parameter(method)))
    return frozenset(found)


def _is_read(node: ast.expr) -> bool:
    """`x.tolist()`, `x.item()`, `int(x)`."""
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "attr", "") in ("tolist", "item") or is_int(node)


def is_int(node: ast.Call) -> bool:
    """`int(x)`."""
    return isinstance(node.func, ast.Name) and node.func.id == "int"


@once_by_node
def _stored(method: Function) -> dict[str, ast.expr | None]:
    """What a method assigns to attributes of `self`; `None` where that is more than one thing."""
    receiver = _first_parameter(method)
    found: dict[str, ast.expr | None] = {}
    counts: Counter[str] = Counter()
    for node in inner_nodes(method):
        match node:
            case ast.Assign([ast.Attribute(ast.Name(name), attribute)], value) if name == receiver:
                found[attribute] = value
            case ast.Attribute(ast.Name(name), attribute, ast.Store()) if name == receiver:
                counts[attribute] += 1
    return {name: found.get(name) if count == 1 else None for name, count in counts.items()}


def _first_parameter(method: Function) -> str | None:
    return next((each.arg for each in (*method.args.posonlyargs, *method.args.args)), None)


def _registered(node: ast.Call) -> str:
    """`name` of `self.register_buffer("name", ...)`; empty for other calls."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="register_buffer" | "register_parameter"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return name
    return ""


def _default(function: FunctionHere, name: str) -> int | None:
    """The number that a parameter is by default."""
    for parameter, default in with_defaults(function.node.args):
        if parameter.arg == name and isinstance(default, ast.Constant):
            return default.value if isinstance(default.value, int) else None
    return None


def optional_names(arguments: ast.arguments) -> frozenset[str]:
    """Parameters that are `None` by default, and get their value later."""
    return frozenset(p.arg for p, default in with_defaults(arguments) if is_none(default))


def _argument(function: FunctionHere, name: str) -> ast.arg | None:
    return next((argument for argument in function.parameters if argument.arg == name), None)
