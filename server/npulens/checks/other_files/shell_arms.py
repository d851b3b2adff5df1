"""Which commands of a script run on an NPU machine, and what depends on them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from npulens.syntax.shell_tree import Arm, Block, Command, Compound, Step, Word, inner_blocks

_NPU = re.compile(
    r"(?<![A-Za-z])[Nn]pu|(?<![A-Z])NPU|[Aa]scend(?!ing)|ASCEND(?!ING)|/dev/davinci|davinci_manager"
)
_OTHERS = re.compile(
    r"[\"']?(?:cuda|gpu|nvidia|rocm|hip|amd|xpu|hpu|mlu|musa|mps|cpu)[\"']?\Z", re.IGNORECASE
)
_OTHERS_COMMANDS = frozenset({"nvidia-smi", "nvcc", "rocm-smi", "rocminfo", "hipcc"})
_OTHERS_PATH = re.compile(r"/dev/nvidia|/proc/driver/nvidia|nvidia-smi|rocm-smi|/dev/kfd")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_NOTHING = re.compile(r"[\"']?(?:0|false|False|FALSE|no|off)?[\"']?\Z")
_IS_NOTHING = re.compile(r"==?\s*0\b|<\s*1\b")
_OTHER_ARM = re.compile(
    r"[\"']?(?:cpu|cu\d+|cuda-?[\d.]+\*?|rocm[\d.*]*|hip)[\"']?\Z", re.IGNORECASE
)
"""A pattern of `case` that is for another hardware, or for one version of CUDA."""
_PROBES = frozenset({"command", "which", "type", "hash"})
_LEAVES = frozenset({"exit", "return", "exec"})
_COUNTERS = re.compile(r"\bwc\b|\bgrep\s+(?:-\w+\s+)*(?:-\w*c|--count)|\bawk\b.*\bNR\b")
_COUNT_QUERY = re.compile(r"--query-gpu=[\"']?count\b")
_COUNT_INSTEAD = re.compile(r"echo\s+[\"']?\d+[\"']?\s*\Z")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_LOOKS = re.compile(r"\b(?:nvidia-smi|nvcc)\b")
_STARTS = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|mpirun)\Z")
Truth = bool | None
"""Whether something holds on an NPU machine; `None` if that is not known."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What is done with a command around it.

    Attributes:
        is_output_used: Its output goes to another command or into a word.
        is_test: An `if` or a loop decides by it.
        is_conditional: It is in an arm, a function or behind `&&`.
        is_counted: What it prints is counted.
        is_tolerated: `|| true` is behind it.
        is_decisive: Something other than a look at the cards depends on its result.
        guarded: The commands that are checked for before it runs.
    """

    is_output_used: bool = False
    is_test: bool = False
    is_conditional: bool = False
    is_counted: bool = False
    is_tolerated: bool = False
    is_decisive: bool = False
    guarded: frozenset[str] = frozenset()

    def having(self, **values: Any) -> "CommandContext":
        """The same with other values; itself where they are what it has."""
        has = all(getattr(self, name) == value for name, value in values.items())
        return self if has else replace(self, **values)

    def inside(self) -> "CommandContext":
        """The same for commands in a body that runs on a condition."""
        return CommandContext(
            self.is_output_used,
            is_conditional=True,
            is_counted=self.is_counted,
            guarded=self.guarded,
        )


Placed = tuple[Command, CommandContext]


def commands_for_npu(block: Block, text: str, answers: frozenset[str]) -> Iterator[Placed]:
    """The commands that run on an NPU machine, as far as the script itself decides.

    Only an arm beside one for the NPU is left out. `answers` are variables that fixes write, which
    are no sign of an author's decision; nor is a call of `npu-smi`.
    """
    return _Walk(text, answers).block(block, CommandContext())


def probed(command: Command, text: str) -> Iterator[Word]:
    """The commands that `command -v`, `which` and the like check for."""
    words = [text[slice(*word.span)] for word in command.words]
    if not words or words[0] not in _PROBES or (words[0] == "command" and words[1:2] == ["-p"]):
        return
    if words[0] == "command" and words[1:2] not in (["-v"], ["-V"]):
        return
    yield from (w for w, raw in zip(command.words[1:], words[1:], strict=True) if raw[:1] != "-")


def all_probed(block: Block, text: str) -> Iterator[Word]:
    """The same for all commands of a list, those in substitutions included."""
    for step in block.steps:
        if isinstance(step.node, Command):
            yield from probed(step.node, text)
        elif step.node.kind in ("{", "("):
            yield from all_probed(step.node.arms[0].body, text)
        for inner in inner_blocks(step.node):
            yield from all_probed(inner, text)


def and_or_lists(block: Block) -> list[list[Step]]:
    """The steps of a list, those together that `&&`, `||` and `|` join."""
    found: list[list[Step]] = []
    for step in block.steps:
        if found and step.before in ("&&", "||", "|", "|&"):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def leaves(block: Block, text: str) -> Command | None:
    """The `exit`, `return` or `exec` at the end of a list."""
    last = block.steps[-1].node if block.steps else None
    if isinstance(last, Compound):
        return leaves(last.arms[0].body, text) if last.kind in ("{", "(") else None
    words = [] if last is None else last.words
    return last if words and text[slice(*words[0].span)] in _LEAVES else None


def matters(node: Command | Compound, text: str) -> bool:
    """Whether something is set, ended or started, other than by a look at the cards."""
    if isinstance(node, Compound):
        return any(matters(step.node, text) for step in _bodies(node))
    words = [text[slice(*word.span)] for word in node.words]
    if not words:
        return False
    if words[0] == "exit":
        return words[1:] != ["0"]
    assigned = [word for word, raw in zip(node.words, words, strict=True) if _ASSIGNED.match(raw)]
    if any(not _LOOKS.search(text, *word.span) for word in assigned):
        return True
    started = [raw for raw in words if not _ASSIGNED.match(raw)]
    return bool(started) and _STARTS.match(started[0]) is not None


def _bodies(node: Compound) -> list[Step]:
    return [step for arm in node.arms for step in arm.body.steps]


def _pipelines(steps: Sequence[Step]) -> list[list[Step]]:
    found: list[list[Step]] = []
    for step in steps:
        if found and step.before in ("|", "|&"):
            found[-1].append(step)
        else:
            found.append([step])
    return found


class _Walk:
    """A way through the lists of a script, in the order of the text."""

    def __init__(self, text: str, answers: frozenset[str]) -> None:
        self._text = text
        self._tests = _Tests(text, answers)

    def block(self, block: Block, context: CommandContext) -> Iterator[Placed]:
        for steps in and_or_lists(block):
            yield from self._list(steps, context)
            if self._tests.leaves_the_rest_to_others(steps):
                return
            guards = self._guards_of_the_rest(steps)
            context = context.having(guarded=context.guarded | guards)

    def _list(self, steps: Sequence[Step], context: CommandContext) -> Iterator[Placed]:
        """`a && b || c`: what the NPU does not come to is left out."""
        pipelines = _pipelines(steps)
        about_npu = len(pipelines) > 1 and self._tests.checks_for_npu(steps)
        deciding = self._last_that_matters(pipelines)
        truth: Truth = None
        is_for_npu = False  # `a && b || c` is written for `if a; then b; else c; fi`
        for index, pipeline in enumerate(pipelines):
            operator = pipeline[0].before if index else ""
            if (operator == "&&" and truth is False) or (operator == "||" and is_for_npu):
                continue
            following = pipelines[index + 1] if index + 1 < len(pipelines) else []
            around = self._around(pipeline, following, context)
            if index:
                around = around.having(is_conditional=True)
            if index < deciding:
                around = around.having(is_decisive=not about_npu)
            yield from self._pipeline(pipeline, around)
            if len(pipelines) == 1:
                return
            names = {self._name(word) for word in self._probes(pipeline)}
            context = context.having(guarded=context.guarded | names)
            term = self._tests.pipeline(pipeline, about_npu)
            truth = _joined(truth, operator, term) if index else term
            is_for_npu = is_for_npu or truth is True

    def _last_that_matters(self, pipelines: Sequence[Sequence[Step]]) -> int:
        """The place of the last command for whose sake those before it run."""
        for index in range(len(pipelines) - 1, 0, -1):
            if any(matters(step.node, self._text) for step in pipelines[index]):
                return index
        return 0

    def _around(
        self, pipeline: Sequence[Step], following: Sequence[Step], context: CommandContext
    ) -> CommandContext:
        texts = [self._source(step.node) for step in pipeline]
        is_counted = any(map(_COUNTERS.match, texts[1:])) or any(map(_COUNT_QUERY.search, texts))
        if following and following[0].before == "||":
            instead = self._source(following[0].node)
            if instead in ("true", ":"):
                context = context.having(is_tolerated=True)
            is_number = _COUNT_INSTEAD.match(instead) is not None
            is_counted = is_counted or (context.is_output_used and is_number)
        return context.having(is_counted=is_counted)

    def _pipeline(self, pipeline: Sequence[Step], context: CommandContext) -> Iterator[Placed]:
        for index, step in enumerate(pipeline):
            is_used = context.is_output_used or index + 1 < len(pipeline)
            yield from self._node(step.node, context.having(is_output_used=is_used))

    def _node(self, node: Command | Compound, context: CommandContext) -> Iterator[Placed]:
        if isinstance(node, Command):
            yield node, context
        elif node.head.words and node.kind != "function":
            yield node.head, context.having(is_test=False)
        for inner in inner_blocks(node):
            is_array = any(isinstance(s.node, Command) and s.node.is_array for s in inner.steps)
            used = context.having(is_test=False, is_counted=False)
            yield from self.block(inner, used if is_array else used.having(is_output_used=True))
        if isinstance(node, Compound):
            yield from self._compound(node, context)

    def _compound(self, node: Compound, context: CommandContext) -> Iterator[Placed]:
        if node.kind == "if":
            yield from self._if(node, context)
        elif node.kind == "case":
            for arm in self._tests.arms_for_npu(node.arms):
                yield from self.block(arm.body, context.inside())
        else:
            for arm in node.arms:
                if arm.test is not None:
                    testing = context.having(is_test=True, is_decisive=True)
                    yield from self.block(arm.test, testing)
                is_group = node.kind in ("{", "(")
                yield from self.block(arm.body, context if is_group else context.inside())

    def _if(self, node: Compound, context: CommandContext) -> Iterator[Placed]:
        tests = [arm.test for arm in node.arms if arm.test is not None]
        names = {self._name(word) for test in tests for word in all_probed(test, self._text)}
        guarded = context.having(guarded=context.guarded | names)
        about_npu = self._tests.chain_checks_for_npu(node)
        decides = not about_npu and any(matters(step.node, self._text) for step in _bodies(node))
        testing = context.having(is_test=True, is_decisive=decides)
        if about_npu:
            testing = context.having(guarded=context.guarded | _OTHERS_COMMANDS)
        for arm in node.arms:
            truth: Truth = None
            if arm.test is not None:
                yield from self.block(arm.test, testing)
                truth = self._tests.block(arm.test, about_npu)
            if truth is not False:
                yield from self.block(arm.body, guarded.inside())
            if truth is True:
                return

    def _guards_of_the_rest(self, steps: Sequence[Step]) -> frozenset[str]:
        """What is there for what follows, as the script would have ended without it."""
        node = steps[0].node
        words: list[Word] = []
        if isinstance(node, Compound) and node.kind == "if":
            if any(leaves(arm.body, self._text) is not None for arm in node.arms):
                words = [
                    word
                    for arm in node.arms
                    if arm.test is not None
                    for word in all_probed(arm.test, self._text)
                ]
        elif leaves(Block([*steps[-1:]]), self._text) is not None:
            words = list(self._probes(steps))
        return frozenset(map(self._name, words))

    def _probes(self, steps: Sequence[Step]) -> Iterator[Word]:
        return all_probed(Block([*steps]), self._text)

    def _name(self, word: Word) -> str:
        return self._text[slice(*word.span)].strip("\"'").rpartition("/")[2]

    def _source(self, node: Command | Compound) -> str:
        if isinstance(node, Compound) or not node.words:
            return ""
        return self._text[node.words[0].span.start : node.words[-1].span.end]


class _Tests:
    """What tests say of an NPU machine."""

    def __init__(self, text: str, answers: frozenset[str]) -> None:
        self._text = text
        self._answers = answers

    def checks_for_npu(self, steps: Sequence[Step]) -> bool:
        """Whether one of these checks for the NPU."""
        return any(self._step(step, False) is not None for step in steps)

    def chain_checks_for_npu(self, chain: Compound) -> bool:
        """Whether a test of an `if` checks for the NPU, or for `npu-smi` beside other hardware."""
        tests = [arm.test for arm in chain.arms if arm.test is not None]
        if any(self.checks_for_npu(test.steps) for test in tests):
            return True
        truths = [self.block(test, True) for test in tests]
        return True in truths and False in truths

    def block(self, block: Block, about_npu: bool) -> Truth:
        """Whether a test holds; what is not about the NPU counts only if `about_npu`."""
        lists = and_or_lists(block)
        if not lists:
            return None
        truth: Truth = None
        for index, pipeline in enumerate(_pipelines(lists[-1])):
            term = self.pipeline(pipeline, about_npu)
            truth = _joined(truth, pipeline[0].before, term) if index else term
        return truth

    def pipeline(self, pipeline: Sequence[Step], about_npu: bool) -> Truth:
        values = [self._step(replace(step, is_negated=False), about_npu) for step in pipeline]
        known = [value for value in values if value is not None]
        return _turned(known[0], pipeline[0].is_negated) if known else None

    def _step(self, step: Step, about_npu: bool) -> Truth:
        if isinstance(step.node, Command):
            return _turned(self._command(step.node, about_npu), step.is_negated)
        if step.node.kind in ("{", "("):
            return _turned(self.block(step.node.arms[0].body, about_npu), step.is_negated)
        return None

    def leaves_the_rest_to_others(self, steps: Sequence[Step]) -> bool:
        """Whether the NPU comes no further: its arm ends the script or the function."""
        node = steps[0].node
        if isinstance(node, Command) or node.kind != "if":
            return False
        about_npu = self.chain_checks_for_npu(node)
        for arm in node.arms:
            truth = self.block(arm.test, about_npu) if arm.test is not None else None
            if truth is True:
                return leaves(arm.body, self._text) is not None
        return False

    def arms_for_npu(self, arms: Sequence[Arm]) -> list[Arm]:
        """The arms of a `case` that an NPU machine may take."""
        named = [arm for arm in arms if any(self._is_npu_pattern(each) for each in arm.patterns)]
        if named:
            return named
        return [arm for arm in arms if not self._is_for_others(arm)]

    def _is_npu_pattern(self, pattern: Word) -> bool:
        raw = self._text[slice(*pattern.span)]
        return not raw.startswith("-") and self._names_npu(raw)

    def _is_for_others(self, arm: Arm) -> bool:
        raw = [self._text[slice(*pattern.span)] for pattern in arm.patterns]
        return bool(raw) and all(map(_OTHER_ARM.match, raw))

    def _command(self, command: Command, about_npu: bool) -> Truth:
        words = [self._text[slice(*word.span)] for word in command.words]
        if not words:
            return None
        if words[0] in ("[", "[[", "test"):
            return self._condition(
                [word for word in words[1:] if word not in ("]", "]]")], about_npu
            )
        if words[0].startswith("(("):
            truth = True if self._names_npu(words[0]) else None
            return _turned(truth, _IS_NOTHING.search(words[0]) is not None)
        names = [self._text[slice(*word.span)] for word in probed(command, self._text)]
        if names:
            return self._probe(names, about_npu)
        if words[0] in _OTHERS_COMMANDS:
            return False if about_npu else None
        if words[0] == "npu-smi":
            return True if about_npu else None  # a fix may have written it
        return True if any(map(self._names_npu, _without_values(words))) else None

    def _probe(self, names: Sequence[str], about_npu: bool) -> Truth:
        if any(_NPU.search(name) for name in names):
            return True
        return False if about_npu and any(name in _OTHERS_COMMANDS for name in names) else None

    def _condition(self, words: Sequence[str], about_npu: bool) -> Truth:
        """The condition in `[ ]` or `[[ ]]`."""
        truth: Truth = None
        for index, ways in enumerate(_parted(words, ("||", "-o"))):
            term: Truth = None
            for place, part in enumerate(_parted(ways, ("&&", "-a"))):
                value = self._comparison(part, about_npu)
                term = _joined(term, "&&", value) if place else value
            truth = _joined(truth, "||", term) if index else term
        return truth

    def _comparison(self, words: Sequence[str], about_npu: bool) -> Truth:
        truth: Truth = None
        if any(not word.startswith("-") and self._names_npu(word) for word in words):
            truth = True
        elif about_npu and any(_OTHERS.match(word) or _OTHERS_PATH.search(word) for word in words):
            truth = False
        return _turned(truth, _is_denied(words))

    def _names_npu(self, word: str) -> bool:
        """Whether a word speaks of the NPU, other than by what fixes write."""
        if "npu-smi" in word:
            is_queried = re.search(r"\b(?:command -v|which|type|hash) +npu-smi\b|/npu-smi\b", word)
            return is_queried is not None

        def without_answers(match: re.Match[str]) -> str:
            return "" if match.group() in self._answers else match.group()

        return _NPU.search(_VARIABLE.sub(without_answers, word)) is not None


def _without_values(words: Sequence[str]) -> Iterator[str]:
    """The words that are neither options nor what fixes write behind them."""
    previous = ""
    for word in words:
        is_value = previous.startswith("-") and "=" not in previous and not _is_flag(previous)
        is_setting = re.match(r"[\w.-]+=", word) is not None
        if not word.startswith("-") and not is_value and not is_setting:
            yield word
        previous = word


def _is_flag(option: str) -> bool:
    """Whether an option is one letter or several, as `-q` or `-c`, which take code or a pattern."""
    return re.match(r"-[a-zA-Z]{1,3}\Z", option) is not None


def _is_denied(words: Sequence[str]) -> bool:
    """Whether a condition holds where its words do not: `!=`, `-z`, `= 0`."""
    denials = sum(word in ("!", "!=", "-ne", "-z") for word in words)
    if len(words) > 2 and words[-2] in ("=", "==", "-eq", "-le", "-lt", "!=", "-ne"):
        denials += _NOTHING.match(words[-1]) is not None
    return denials % 2 == 1


def _parted(words: Sequence[str], operators: Sequence[str]) -> list[list[str]]:
    """The words between operators."""
    parts: list[list[str]] = [[]]
    for index, word in enumerate(words):
        if word in operators and index:  # `[ -a file ]` checks for a file
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _turned(value: Truth, is_negated: bool) -> Truth:
    return (not value) if is_negated and value is not None else value


def _joined(first: Truth, operator: str, second: Truth) -> Truth:
    """`first && second` or `first || second`, where either may be unknown."""
    deciding = operator == "||"
    if first is deciding or second is deciding:
        return deciding
    return None if first is None or second is None else not deciding
