"""What shell text is read into: lists of commands, each with its words."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from npulens.text.spans import Span


@dataclass(slots=True, eq=False)
class Word:
    """A word with its quotes.

    Attributes:
        inner: What is read apart in it, with its place: commands of `$(...)`, backquotes and
            `<(...)`, and the elements of an array.
    """

    span: Span
    inner: "list[tuple[Span, Block]]" = field(default_factory=list)

    def text(self, text: str) -> str:
        """Its text, in which what is read apart looks like a variable of the same length."""
        start, end = self.span
        if not self.inner:
            return text[start:end]
        parts = []
        for hole, _ in self.inner:
            parts.append(text[start : hole.start])
            parts.append("$".ljust(hole.end - hole.start, "_"))
            start = hole.end
        parts.append(text[start:end])
        return "".join(parts)


@dataclass(slots=True, eq=False)
class Heredoc:
    """A here-document.

    Attributes:
        span: Its body.
        body: The same as a word; commands in it run unless the delimiter is quoted.
        delimiter: The word behind `<<`.
    """

    span: Span
    body: Word
    delimiter: Span


@dataclass(slots=True, eq=False)
class Command:
    """A simple command, `[[ ]]` and `(( ))` included.

    Attributes:
        redirects: The words behind `<`, `>`, `<<<` and the like.
        is_array: It is the elements of an array and runs nothing itself.
    """

    words: list[Word] = field(default_factory=list)
    redirects: list[Word] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    is_array: bool = False


@dataclass(slots=True, eq=False)
class Arm:
    """A list of commands with what it depends on.

    Attributes:
        test: The commands behind `if`, `elif`, `while` or `until`.
        patterns: The patterns of an arm of `case`.
    """

    body: "Block"
    test: "Block | None" = None
    patterns: list[Word] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Compound:
    """A command made of lists of commands.

    Attributes:
        kind: `if`, `case`, `for`, `select`, `while`, `until`, `function`, `{` or `(`.
        head: The words that `case` and `for` take, as a command that runs nothing; a name.
        arms: Its lists, of which `if` and `case` run one at most.
        redirects: As those of commands, with the here-documents.
    """

    kind: str
    head: Command = field(default_factory=Command)
    arms: list[Arm] = field(default_factory=list)
    redirects: Command = field(default_factory=Command)


@dataclass(slots=True, eq=False)
class Step:
    """A command in a list, with the operator before it: `&&`, `||`, `|`, `&`, `;` or none."""

    node: Command | Compound
    before: str
    is_negated: bool = False


@dataclass(slots=True, eq=False)
class Block:
    """A list of commands."""

    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class ShellText:
    """What a text holds.

    Attributes:
        broken: Where something that a shell wants was missing, or something was too much.
    """

    block: Block = field(default_factory=Block)
    comments: list[Span] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    def commands(self) -> Iterator[Command]:
        """All simple commands, those in substitutions and functions included."""
        yield from _commands(self.block)


def inner_blocks(node: Command | Compound) -> Iterator[Block]:
    """The lists of commands in the words of a command, and behind its redirections."""
    if isinstance(node, Command):
        words = [*node.words, *node.redirects, *(heredoc.body for heredoc in node.heredocs)]
    else:
        words = [pattern for arm in node.arms for pattern in arm.patterns]
        yield from inner_blocks(node.head)
        yield from inner_blocks(node.redirects)
    for word in words:
        for _, block in word.inner:
            yield block


def _commands(block: Block) -> Iterator[Command]:
    for step in block.steps:
        if isinstance(step.node, Command):
            yield step.node
        for inner in inner_blocks(step.node):
            yield from _commands(inner)
        if isinstance(step.node, Compound):
            for arm in step.node.arms:
                if arm.test is not None:
                    yield from _commands(arm.test)
                yield from _commands(arm.body)
