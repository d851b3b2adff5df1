"""Which functions are worth evaluating: those whose text holds a word of some source."""

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from npulens.graphs.definitions import ClassHere, Definitions, FunctionHere
from npulens.syntax.bindings import Function
from npulens.syntax.values import last_name
from npulens.syntax.words import Words
from npulens.text.late_patterns import late

_HOST_CODE = late(
    r"Dataset|Transform(?!er)|Augment|Visuali[sz]er|Collat|Tokenizer"
    r"|(?<!Attn)(?<!Attention)(?<!Logits)(?<!Logit)Processor"
)
_SAMPLERS = frozenset(
    {"Sampler", "BatchSampler", "DistributedSampler", "SequentialSampler", "RandomSampler"}
    | {"SubsetRandomSampler", "WeightedRandomSampler"}
)
"""Those of `torch.utils.data`."""
_LONGEST_LINE = 400
_LONGEST_INDEX = 90
_MOST_NAMES = 200
_MOST_LINES = 3
"""Of an assignment before the comparison in it."""
_SHORT = 12
"""In lines."""
_HOST_FUNCTION = late(r"__getitem__|__repr__|__str__|collate|visuali[sz]e|plot|^draw|^show")
_WORDS = (
    *("nonzero", "argwhere", "masked_select", "unique(", "unique_consecutive(", "unique_dim("),
    *("bincount", "nms("),
    *("combinations", "one_hot", "lstsq", "pack_padded", "to_sparse", ".item(", ".tolist("),
    *(".cpu(", "allclose", ".equal(", "synchronize(", "error_if_nonfinite"),
    *("assert_close", "DataLoader(", "DataCollator", "pad_sequence(", "print(", " bool(", "(bool("),
    *("float(torch.", "int(torch.", "int(t)", "timestep[0]", "multi_apply(", "math.sqrt("),
    *("linspace(", ".data[0]", "add_scalar", "add_histogram(", "set_postfix(", "wandb.log("),
    *("log_value(", "log_scalar(", "log_metric", "mask]", "valid]", ".type(torch."),
)
"""Of these one alone makes a function worth reading."""
_COUNT = (
    r"(?:repeats=)?(?:\d+|(?:self|config)\.\w[\w.]{0,60}(?: // (?:self|config)\.\w[\w.]{0,60})?"
    r"|(?:\w{1,30}_)?(?:batch|block)_size|repeat_by|n_rep|num_(?:frames|heads|\w{1,30}_per_prompt))"
)
_REPEATED_ALIKE = late(
    rf"repeat_interleave\(\s{{0,99}}{_COUNT}\s{{0,99}}[,)]"
    r"|(?<=torch\.)repeat_interleave\(\s{0,99}[\w.]{1,60}(?:\[[^\]()]{0,60}\])?,\s{0,99}"
    rf"{_COUNT}\s{{0,99}}[,)]"
)
"""All elements as often, as these names say."""
_OF_TOKENS = late(r"\.equal\(\s{0,60}\w{0,60}ids,\s{0,60}\w{0,60}ids\s{0,60}\)")
_TOKENIZED = late(r"tokenizer(?:_\w{1,9})?\(")
_MOVED_TOKENS = late(r"ids = .{0,200}ids\.to\(")
"""What a tokenizer returns, which is on the host unless it is moved."""
_LONGEST_ARGUMENT = 300
_BRACKETS = late(r"[()\[\],]")
_TORCH_CONDITIONS = ("if torch.", "while torch.", "if not torch.", "while not torch.")
_OF_PYTORCH = late(
    r"is_(?!nonzero)|are_|get_|cuda|npu|xpu|mps|jit|distributed|version|__version__|backends|onnx|_|fx"
    r"|compiler|overrides|utils|accelerator|amp|autograd|classes|ops|hip"
)
"""Questions about PyTorch itself, answered on the host."""
_READ_EACH = late(r"\b(?:int|float)\([^()]{0,60}\Z")
"""`int(x)` before the `for` of a comprehension."""
_JOINING = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "stack"})
_JOINS = late(r" = torch\.(?:cat|concat|concatenate|hstack|vstack|stack)\(\s*[\[(]\s*")
_JOINED = late(r"(?:\w{1,60}\.)?\w{1,60}(?:\[[\w.\"']{1,60}\])?\Z")
"""A name that something may be joined to: `x`, `self.x`, `x["key"]`."""
_REGISTERED = late(r"register_buffer\(\s{0,99}[\"'](\w{1,60})[\"']")
_BEFORE_BUFFERS = ("if ", "while ", "assert ", "not ", "and ", "or ", "int(", "float(")
_NO_VALUE = (" is ", ".shape", ".size(", ".device", ".dtype", ".numel(", ".dim(")
"""What follows a buffer of which no value is read."""
_TENSOR_GIVEN = late(r"\b(\w{1,60}): (?:torch\.)?Tensor\b")
_COMPUTED = late(r"(?:float|int)\(([^\n()]{1,80})\)")
_NAMES = late(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])")
_BOUNDS = ("] > ", "] < ", "] >= ", "] <= ", "] == ", "] != ")
_ELEMENT = late(r"(?:if|elif|while|assert) .{0,120}\[[^\[\]]{1,60},[^\[\]]{1,60}\Z")
_READ_AND_KEPT = late(
    r"self\.(\w{1,60}) = "
    r"(?:int\([^\n]{1,200}|[^\n]{1,200}\.(?:tolist|item)\(\)|[^\n]{0,80} [<>=!]=? )"
)
_ATTRIBUTE_GIVEN = late(
    r"(?:split|zeros|ones|full|empty|arange|rand|randn|repeat|expand)\([^\n()]{0,100}"
    r"\bself\.(\w{1,60})"
)
_ATTRIBUTE_IN_BRACKETS = late(r"[\[:] ?self\.(\w{1,60})[\],]")
_LONGEST_FUNCTION = 20_000
_MOST_LOOPS = 8
_LOOP = late(r"\n([ \t]*)(?:for|while|async for) ")
_DIFFERENTIATED = late(r"([\w.]{1,60})(?:\)| [*/] [\w.]{1,60}\))?\Z")
"""Where a backward pass begins: `loss`, `scaler.scale(loss)`, `(loss / steps)`."""
_GIVEN = late(r"[\w.]{1,60}(?=[,)])")
"""What an engine is given for that."""
_FLOOR = late(r"max\(1(?:\.0)?,\s{0,99}[\w.()\[\], ]{0,200}\.sum\(")
"""`max(1, mask.sum())`, which Python decides on."""
_REDUCTIONS = (
    *(".any(", ".all(", ".sum(", ".max(", ".min(", ".mean(", ".norm(", ".amax(", ".amin("),
    *(".argmax(", ".argmin(", "torch.tensor("),
)
_NUMPY = ("(np", " np", "numpy")
_READ = late(r"(?:if|elif|while|assert)\b|.*(?<!\w)(?:int|float|bool|arange|not|if|and|or)[( ]")
_TRUTHS = (".any(", ".all(")
_ALONE = late(r"[\w.]+\Z")
"""The text before one of these in a condition over several lines."""
_INLINE = (".bool()]", "[~", "[torch.is", "[torch.logical")
_OPENED = late(r"[\w)]\[[\w.()\[\]:, ]{0,80}\Z")
_CLOSED = late(r"[^\n\]]{0,80}\]")
_COMPARISONS = (" == ", " != ", " < ", " > ", " <= ", " >= ", "= ~")
_PREDICATES = (
    *("isnan(", "isinf(", "isfinite(", "logical_", "isin(", ".bool(", "torch.bool"),
    *(".eq(", ".ne(", ".gt(", ".lt(", ".ge(", ".le("),
)
_DECIDING = ("if ", "while ", "assert ")
_COUNTED = late(r"\.(?:arg(?:max|min)|cumsum|sum)\([^()]{0,40}\)[^()]{0,20}\Z")
_LENGTH = late(r"len|(?:^|\.)(?:max|num|n)_")
_DERIVED = late(r"((?:self\.)?\w+) = ~?((?:self\.)?\w+)\Z")
_ASSIGNED = late(r"((?:self\.)?\w+)(?:: [\w.]+)? [&|]?= ")


class Sources:
    """Where words of sources are in the text of a segment."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._text = text = words.text
        some = (place for word in words.some_of(_WORDS) for place in words.places(word))
        found = [
            place
            for place in some
            if "#" not in self._line(place) and not self._compares_tokens(place)
        ]
        repeats = words.places("repeat_interleave(")
        found += (place for place in repeats if _REPEATED_ALIKE.match(text, place) is None)
        found += (place for place in words.places("where(") if self._is_one_argument(place + 5))
        found += (
            place
            for word in words.some_of(_TORCH_CONDITIONS)
            for place in words.places(word)
            if _OF_PYTORCH.match(text, place + len(word)) is None
        )
        found += (p for p in words.places(") for ") if _READ_EACH.search(self._line(p)))
        if "interpolate(" in text:
            found += words.places("random.")
        found += self._elements_decided_on()
        found += self._split_as_kept()
        found += self._annotated_read()
        found += self._growths()
        found += self._buffers_read()
        found += (place for place in words.places("max(1") if _FLOOR.match(text, place))
        self._names: list[tuple[int, str]] = []
        for word in words.some_of(_REDUCTIONS):
            for place in words.places(word):
                line = self._line(place)
                if line.endswith(_NUMPY):
                    continue
                assigned = _ASSIGNED.match(line)
                is_condition = word in _TRUTHS and _ALONE.match(line) is not None
                if is_condition or _READ.match(line) is not None:
                    found.append(place)
                elif assigned is not None:
                    self._names.append((place, assigned[1]))
        self._names.sort()
        self._losses = list(self._differentiated())
        self._masks: list[tuple[int, str]] = []
        if "[" in text:
            found += (place for word in words.some_of(_INLINE) for place in words.places(word))
            masks = list(self._assigned_masks(found))
            self._masks = sorted([*masks, *self._derived({name for _, name in masks})])
        self._places = sorted(found)

    def _compares_tokens(self, place: int) -> bool:
        """Whether what a tokenizer has returned is compared on the host, where it is made."""
        if _OF_TOKENS.match(self._text, place) is None:
            return False
        start = self._text.rfind("def ", max(0, place - _LONGEST_FUNCTION), place)
        before = self._text[max(start, 0) : place]
        return _TOKENIZED.search(before) is not None and _MOVED_TOKENS.search(before) is None

    def _is_one_argument(self, opened: int) -> bool:
        """Whether the round bracket at a place is closed before a comma that belongs to it."""
        depth = 0
        for bracket in _BRACKETS.finditer(self._text, opened, opened + _LONGEST_ARGUMENT):
            if bracket[0] == ",":
                if depth == 1:
                    return False
            else:
                depth += 1 if bracket[0] in "([" else -1
                if depth == 0:
                    return True
        return False

    def _buffers_read(self) -> Iterator[int]:
        """Where Python decides on a buffer of the class, or takes it for a number."""
        if "register_buffer(" not in self._text:
            return
        for name in {found[1] for found in _REGISTERED.finditer(self._text)}:
            part = f"self.{name}"
            for place in self._words.places(part):
                end = place + len(part)
                is_read = self._text.endswith(_BEFORE_BUFFERS, 0, place)
                if is_read and not (self._is_in_word(end) or self._text.startswith(_NO_VALUE, end)):
                    yield place

    def _elements_decided_on(self) -> Iterator[int]:
        """Where Python decides on an element of something that has several axes."""
        for word in _BOUNDS:
            for place in self._words.places(word):
                if _ELEMENT.match(self._line(place)) is not None:
                    yield place

    def _annotated_read(self) -> Iterator[int]:
        """Where a number is computed from what an annotation says is a tensor."""
        if "Tensor" not in self._words.identifiers:
            return
        tensors = {found[1] for found in _TENSOR_GIVEN.finditer(self._text)}
        for word in ("float(", "int(") if tensors else ():
            for place in self._words.places(word):
                computed = _COMPUTED.match(self._text, place)
                if computed is not None and not tensors.isdisjoint(_NAMES.findall(computed[1])):
                    yield place

    def _split_as_kept(self) -> Iterator[int]:
        """Where something has lengths that a method has read and keeps, or such a mask."""
        if "self." not in self._text:
            return
        kept = {found[1] for found in _READ_AND_KEPT.finditer(self._text)}
        for use in (_ATTRIBUTE_GIVEN, _ATTRIBUTE_IN_BRACKETS) if kept else ():
            for given in use.finditer(self._text):
                if given[1] in kept:
                    yield given.start()

    def _differentiated(self) -> Iterator[tuple[int, str]]:
        """The names that backward passes begin at, which are tensors, in order of place."""
        word = ".backward("
        for place in self._words.places(word):
            found = _GIVEN.match(self._text, place + len(word))
            if found is None:
                found = _DIFFERENTIATED.search(self._line(place))
            if found is not None:
                yield place, found[found.lastindex or 0]

    def _growths(self) -> Iterator[int]:
        """Where something is joined to itself: `x = torch.cat([x, y])`."""
        if _JOINING.isdisjoint(self._words.identifiers):
            return
        for joins in _JOINS.finditer(self._text):
            name = self._line(joins.start())
            is_first = self._text.startswith((f"{name},", f"{name} ,"), joins.end())
            if is_first and _JOINED.match(name) is not None:
                is_kept = "." in name  # an attribute grows from call to call
                place = joins.start() - len(name)
                if is_kept or self._grows_in_loop(name, place):
                    yield place

    def _grows_in_loop(self, name: str, place: int) -> bool:
        """Whether a place is in a loop with no new value for the name, before or behind it."""
        first = max(0, place - _LONGEST_FUNCTION)
        start = max(first, self._text.rfind("def ", first, place))
        indent = place - self._text.rfind("\n", first, place) - 1
        for loop in [*_LOOP.finditer(self._text, start, place)][-_MOST_LOOPS:]:
            is_left = re.compile(rf"\n[ \t]{{0,{len(loop[1])}}}[^\s#)\]}}]")
            last = loop.end() + _LONGEST_FUNCTION
            left = is_left.search(self._text, loop.end(), last)
            end = last if left is None else left.start()
            if len(loop[1]) < indent and place < end:
                assigned = rf"\n[ \t]{{1,{indent}}}{re.escape(name)} = (?!torch\.)"
                begun = re.compile(assigned).search(self._text, loop.end(), place - indent)
                called = re.compile(rf"{assigned}(?!{re.escape(name)}\b)[\w.]{{1,80}}\(")
                return begun is None and called.search(self._text, place, end) is None
        return False

    @property
    def is_empty(self) -> bool:
        return not (self._places or self._masks or self._names or self._losses)

    def has_some(self, start: int, end: int) -> bool:
        """Whether there is one between two offsets, or a mask that something is indexed by."""
        first = bisect_left(self._places, start)
        if first < len(self._places) and self._places[first] < end:
            return True
        kinds = (
            (self._masks, _indices),
            (self._names, _decisions),
            (self._losses, _loss_readings),
        )
        return any(self._uses(names, parts_of, start, end) for names, parts_of in kinds)

    def _uses(
        self,
        names: Sequence[tuple[int, str]],
        parts_of: Callable[[str], tuple[str, ...]],
        start: int,
        end: int,
    ) -> bool:
        """Whether a name that is assigned between two offsets is used there in some way."""
        first = bisect_left(names, (start, ""))
        last = min(bisect_left(names, (end, "")), first + _MOST_NAMES)
        return any(
            self._has(part, start, end)
            for name in {name for _, name in names[first:last]}
            for part in parts_of(name)
        )

    def _has(self, part: str, start: int, end: int) -> bool:
        """Whether a part is between two offsets; `, mask,` only in brackets of an index.

        And `if length ` not before `is None`; not as the beginning of another name.
        """
        place = self._text.find(part, start, end)
        while place >= 0 and (
            (part.endswith(",") and not self._is_in_index(place))
            or (part.startswith(_DECIDING) and not self._is_decided(place + len(part)))
            or (part[-1].isidentifier() and self._is_in_word(place + len(part)))
        ):
            place = self._text.find(part, place + 1, end)
        return place >= 0

    def _is_decided(self, end: int) -> bool:
        """Whether a condition is about a name alone, or compares it, but not with `None`."""
        is_next = self._text[end : end + 1] in (" ", ":", "!", "=", "<", ">", ")", ",", "\n")
        return is_next and not self._text.startswith(" is ", end)

    def _is_in_word(self, place: int) -> bool:
        return self._text[place : place + 1].isalnum() or self._text.startswith("_", place)

    def _is_in_index(self, place: int) -> bool:
        """Whether a square bracket is the last that is opened before a place in its line."""
        line = self._line(place)
        return line.rfind("[") > max(line.rfind("("), line.rfind("]"))

    def _assigned_masks(self, inline: list[int]) -> Iterator[tuple[int, str]]:
        """Where names are assigned that may be masks; comparisons in brackets go to `inline`."""
        for word in (*_COMPARISONS, *self._words.some_of(_PREDICATES)):
            for place in self._words.places(word):
                line = self._line(place + 2)
                found = _ASSIGNED.match(line) or self._assigned_before(place)
                if found is not None and not self._is_counted(place):
                    yield place, found[1]
                if "[" in line and self._is_inside(word, place):
                    inline.append(place)

    def _is_counted(self, place: int) -> bool:
        """Whether a comparison becomes a number or a place: `(ids == end).int().argmax(-1)`."""
        end = self._text.find("\n", place, place + _LONGEST_LINE)
        line = self._text[place : end if end >= 0 else place + _LONGEST_LINE]
        return _COUNTED.search(line) is not None

    def _derived(self, masks: set[str]) -> Iterator[tuple[int, str]]:
        """Where a mask in another form gets a name: `flat = mask.view(-1)`."""
        for place in self._words.places("mask."):
            found = _DERIVED.match(self._line(place + len("mask")))
            if found is not None and found[2] in masks:
                yield place, found[1]

    def _assigned_before(self, place: int) -> re.Match[str] | None:
        """The assignment that begins in one of the lines before and has an open bracket."""
        end = place
        for _ in range(_MOST_LINES):
            end = self._text.rfind("\n", max(0, end - _LONGEST_LINE), end)
            if end < 0:
                return None
            line = self._line(end)
            if not _goes_on(line):
                return None
            found = _ASSIGNED.match(line)
            if found is not None:
                return found
        return None

    def _is_inside(self, word: str, place: int) -> bool:
        """Whether a comparison is between the brackets of an index."""
        first = max(0, place - _LONGEST_INDEX)
        opened = _OPENED.search(self._text[first:place])
        if opened is None or opened[0].count("[") == opened[0].count("]"):
            return False
        return _CLOSED.match(self._text, place + len(word)) is not None

    def _line(self, place: int) -> str:
        """The line up to a place; nothing if that is very long."""
        first = max(0, place - _LONGEST_LINE)
        start = self._text.rfind("\n", first, place) + 1
        return "" if start == 0 and first else self._text[start:place].lstrip()


def _goes_on(line: str) -> bool:
    """Whether a statement does not end with a line."""
    opened = line.count("(") + line.count("[") - line.count(")") - line.count("]")
    return opened > 0 or line.endswith((",", "&", "|", "*", "+", "\\"))


def _indices(name: str) -> tuple[str, ...]:
    return f"[{name}", f"[~{name}", f", {name}]", f"[({name}", f", {name},"


def _decisions(name: str) -> tuple[str, ...]:
    """How Python decides on a name, or takes it for a length."""
    words = (f"if {name}", f"if not {name}", f"while {name}", f"assert {name}")
    lengths = (f", {name}", f"({name}") if _LENGTH.search(name) is not None else ()
    taken = (f": {name}", f":{name}", f"range({name}", f"int({name})", f"float({name})")
    return (*words, *lengths, *taken)


def _loss_readings(name: str) -> tuple[str, ...]:
    """How Python decides on a loss, takes it for a number or writes it into text."""
    return (*_decisions(name), f"{{{name}", f", {name})")


def indexing_parameter(node: Function, text: str) -> bool:
    """Whether a short function indexes something by one of its parameters."""
    if (node.end_lineno or node.lineno) - node.lineno > _SHORT:
        return False
    names = (argument.arg for argument in node.args.args)
    return any(part in text for name in names for part in (f"[{name}]", f"[~{name}]"))


def is_host_code(function: FunctionHere) -> bool:
    """Whether a function prepares data or pictures on the host."""
    if _HOST_FUNCTION.search(function.node.name) is not None:
        return True
    owner = function.owner
    if owner is None:
        return False
    return _HOST_CODE.search(owner.node.name) is not None or _chooses_items(owner)


def _chooses_items(owner: ClassHere) -> bool:
    """Whether a class gives the indices of a data set; samplers of models are on the device."""
    if "Sampler" in owner.node.name and "__iter__" in owner.methods:
        return True
    return any(last_name(base) in _SAMPLERS for base in owner.node.bases)


def functions_of(body: Iterable[ast.stmt], definitions: Definitions) -> Iterator[FunctionHere]:
    """The functions and methods that statements of a module define."""
    for node in body:
        if isinstance(node, Function):
            function = definitions.functions.get(node.name)
            if function is not None and function.node is node:
                yield function
        elif isinstance(node, ast.ClassDef):
            found = definitions.classes.get(node.name)
            if found is not None and found.node is node:
                yield from found.methods.values()
        elif isinstance(node, (ast.If, ast.Try)):
            yield from functions_of(node.body, definitions)
