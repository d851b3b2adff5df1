"""Shell text as a tree of commands, read once from left to right.

Not a shell: nothing is expanded, and what is broken is read as far as it goes, with no text lost.
Each method of the reader takes one construct of the grammar, from where it starts to behind its
end. `bash -n` and tree-sitter are compared with it in tests.
"""

import re

from npulens.syntax.shell_tree import Arm, Block, Command, Compound, ShellText, Step, Word
from npulens.syntax.shell_words import DEEPEST, WordReader
from npulens.text.spans import Span

_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|\n]")
_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|case|esac|for|select|while|until|do|done|function|time|coproc"
    r"|\[\[|[!{}])(?=[ \t\r\f\v\n;&|()<>]|\\\r?\n|\Z)"
)
_NO_ARGUMENTS = re.compile(r"[ \t]*\([ \t]*\)")
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_IN = re.compile(r"in(?=[ \t\r\f\v\n;&|()<>]|\\\r?\n|\Z)")
_END_OF_ARM = re.compile(r";;&|;;|;&")


def read_shell(text: str, start: int = 0, end: int | None = None) -> ShellText:
    """The commands between two offsets of a text."""
    reader = _Reader(text, start, len(text) if end is None else end)
    block = reader.whole()
    return ShellText(block, reader.comments, reader.broken)


class _Reader(WordReader):
    """Lists of commands, and what they consist of."""

    def whole(self) -> Block:
        """All of the text: what closes nothing is passed over."""
        block = Block()
        while self._at < self._end:
            block.steps.extend(self._block().steps)
            if self._at < self._end:
                self._surplus(1)  # a bracket that belongs to nothing
        self._heredocs()
        return block

    def _block(self, *closers: str) -> Block:
        """Commands up to a closing bracket, `;;` or one of these words, which are not read."""
        self._closers.append(frozenset(closers))
        block = Block()
        before, is_negated = "", False
        while self._at < self._end:
            operator = self._separator()
            if operator is None:
                break
            before = _stronger(before, operator)
            word = self._keyword()
            if word == "!" or self._text.startswith("!(", self._at, self._end):
                self._at += 1
                is_negated = not is_negated
            elif word in _CLOSERS:
                if any(word in closers for closers in self._closers):
                    break
                self._surplus(len(word))
            else:
                node = self._node(word)
                block.steps.append(Step(node, before if block.steps else "", is_negated))
                before, is_negated = "", False
        self._closers.pop()
        return block

    def _separator(self) -> str | None:
        """Pass over operators and comments; `None` at what ends the list."""
        found = ""
        while True:
            self._blanks()
            if self._at >= self._end or self._text[self._at] == ")":
                return None
            operator = _OPERATOR.match(self._text, self._at, self._end)
            if operator is None:
                return found
            if operator.group() in (";;", ";&", ";;&"):
                if any("esac" in closers for closers in self._closers):
                    return None
                self.broken.append(self._at)
                found = ";"
            elif operator.group() == "&" and self._redirect_at() is not None:
                return found
            else:
                found = _stronger(found, operator.group())
            self._at = operator.end()
            if operator.group() == "\n":
                self._heredocs()

    def _keyword(self) -> str:
        match = _KEYWORD.match(self._text, self._at, self._end)
        return "" if match is None else match.group()

    def _expect(self, word: str) -> None:
        """Pass over an expected word, and go on if it is not here."""
        if not self._take_keyword(word):
            self.broken.append(self._at)

    def _take_keyword(self, word: str) -> bool:
        if self._keyword() != word:
            return False
        self._at += len(word)
        return True

    # Commands

    def _node(self, keyword: str) -> Command | Compound:
        if self._depth >= DEEPEST:
            return self._flat()
        self._depth += 1
        try:
            return self._compound(keyword) or self._simple()
        finally:
            self._depth -= 1

    def _flat(self) -> Command:
        """A simple command without a look at what its brackets mean."""
        while self._at < self._end and self._text[self._at] == "(":
            self._at += 1
        command = Command()
        self._words(command)
        return command

    def _compound(self, keyword: str) -> Compound | Command | None:
        if self._text.startswith("(", self._at, self._end):
            return self._arithmetic_command() or self._group("(")
        if keyword in ("while", "until"):
            return self._while(keyword)
        if keyword in ("for", "select"):
            return self._for(keyword)
        if keyword == "if":
            return self._if()
        if keyword == "case":
            return self._case()
        if keyword == "{":
            return self._group(keyword)
        if keyword == "[[":
            return self._condition()
        if keyword == "function":
            return self._function_keyword()
        return None

    def _simple(self) -> Command | Compound:
        command, start = Command(), self._at
        self._words(command)
        if len(command.words) == 1 and self._is_all(command.words[0], start):
            arguments = _NO_ARGUMENTS.match(self._text, self._at, self._end)
            if arguments is not None:
                self._at = arguments.end()
                return self._function(command.words[0])
        if self._at == start:
            self.broken.append(self._at)
            command.words.append(self._taken(1))  # whatever it is, it is not lost
        return command

    def _is_all(self, word: Word, start: int) -> bool:
        """Whether nothing but this word was read since `start`."""
        behind = self._text[word.span.end : self._at]
        return word.span.start == start and not behind.strip(" \t\r\n\\")

    def _words(self, command: Command, *, only_redirects: bool = False) -> None:
        """The words of a command up to an operator or bracket."""
        while self._at < self._end:
            self._blanks()
            redirect = self._redirect_at()
            if redirect is not None:
                self._redirect(redirect, command)
                continue
            if only_redirects or self._at >= self._end:
                return
            if self._text[self._at] in "\n;&|()":
                return
            command.words.append(self._word())
            if len(command.words) == 1 and self._times_compound(command.words[0]):
                return

    def _times_compound(self, word: Word) -> bool:
        """Whether this is `time` before something other than a simple command."""
        if self._text[slice(*word.span)] != "time":
            return False
        self._blanks()
        return self._text.startswith("(", self._at, self._end) or self._keyword() not in ("", "!")

    def _arithmetic_command(self) -> Command | None:
        if not self._text.startswith("((", self._at, self._end):
            return None
        word = Word(Span(self._at, self._at))
        if not self._arithmetic(word, 2):
            return None
        word.span = Span(word.span.start, self._at)
        command = Command([word])
        self._words(command, only_redirects=True)
        return command

    def _function_keyword(self) -> Compound:
        self._at += len("function")
        self._blanks()
        name = self._word()
        arguments = _NO_ARGUMENTS.match(self._text, self._at, self._end)
        if arguments is not None:
            self._at = arguments.end()
        return self._function(name)

    def _function(self, name: Word) -> Compound:
        self._lines_and_blanks()
        body = Block()
        if self._at < self._end and self._text[self._at] not in ");&|":
            body.steps.append(Step(self._node(self._keyword()), ""))
        return Compound("function", Command([name]), [Arm(body)])

    def _condition(self) -> Command:
        """`[[ ... ]]`, in which `<`, `(` and `&&` are words like others."""
        command = Command([self._taken(2)])
        while self._at < self._end:
            self._lines_and_blanks()
            if self._at >= self._end or self._text[self._at] == ";" or self._keyword() == "then":
                break  # it was never closed
            word = self._condition_word()
            command.words.append(word)
            if self._text[slice(*word.span)] == "]]":
                break
        if self._text[slice(*command.words[-1].span)] != "]]":
            self.broken.append(self._at)
        self._words(command, only_redirects=True)
        return command

    def _condition_word(self) -> Word:
        word = Word(Span(self._at, self._at))
        self._parts(word)
        if self._at == word.span.start:
            is_double = self._text.startswith(("&&", "||"), self._at, self._end)
            self._at += 2 if is_double else 1
        word.span = Span(word.span.start, self._at)
        return word

    # Compound commands

    def _group(self, bracket: str) -> Compound:
        self._at += 1
        closers = ("}",) if bracket == "{" else ()
        body = self._enclosed() if bracket == "(" else self._block(*closers)
        if bracket == "{":
            self._expect("}")
        return self._redirected(Compound(bracket, arms=[Arm(body)]))

    def _enclosed(self) -> Block:
        """Commands up to a closing bracket, which is read; words of outer ones do not end them."""
        closers, self._closers = self._closers, []
        block = self._block()
        while self._at < self._end and self._text[self._at] != ")":
            self._surplus(1)
            block.steps.extend(self._block().steps)
        self._close(")")
        self._closers = closers
        return block

    def _redirected(self, compound: Compound) -> Compound:
        self._words(compound.redirects, only_redirects=True)
        return compound

    def _if(self) -> Compound:
        found = Compound("if")
        while self._take_keyword("if" if not found.arms else "elif"):
            test = self._block("then", "elif", "else", "fi")
            self._expect("then")
            found.arms.append(Arm(self._block("elif", "else", "fi"), test))
        if self._take_keyword("else"):
            found.arms.append(Arm(self._block("fi")))
        self._expect("fi")
        return self._redirected(found)

    def _while(self, keyword: str) -> Compound:
        self._at += len(keyword)
        test = self._block("do", "done")
        return self._redirected(Compound(keyword, arms=[Arm(self._do(), test)]))

    def _do(self) -> Block:
        """The body of a loop."""
        if self._take_keyword("{"):
            body = self._block("}")
            self._expect("}")
            return body
        self._expect("do")
        body = self._block("done")
        self._expect("done")
        return body

    def _for(self, keyword: str) -> Compound:
        self._at += len(keyword)
        self._lines_and_blanks()
        found = Compound(keyword)
        arithmetic = self._arithmetic_command()
        if arithmetic is not None:
            found.head = arithmetic
        else:
            found.head.words.append(self._word())
            self._lines_and_blanks()
            if _IN.match(self._text, self._at, self._end):
                self._words(found.head)
        self._separator()
        found.arms.append(Arm(self._do()))
        return self._redirected(found)

    def _case(self) -> Compound:
        self._at += len("case")
        found = Compound("case")
        self._lines_and_blanks()
        found.head.words.append(self._word())
        self._lines_and_blanks()
        if _IN.match(self._text, self._at, self._end):
            self._at += len("in")
        self._lines_and_blanks()
        while self._at < self._end and not self._take_keyword("esac"):
            start = self._at
            found.arms.append(self._case_arm())
            if self._at == start:
                self._surplus(1)  # nothing that an arm could start with
            self._lines_and_blanks()
        if self._text[self._at - 4 : self._at] != "esac":
            self.broken.append(self._at)
        return self._redirected(found)

    def _case_arm(self) -> Arm:
        if self._text.startswith("(", self._at, self._end):
            self._at += 1
        patterns = []
        while self._at < self._end:
            self._blanks()
            if self._text.startswith("|", self._at, self._end):
                self._at += 1
                continue
            start = self._at
            pattern = self._word()
            if self._at == start:
                break
            patterns.append(pattern)
        self._close(")")
        body = self._block("esac")
        end = _END_OF_ARM.match(self._text, self._at, self._end)
        if end is not None:
            self._at = end.end()
        return Arm(body, patterns=patterns)


def _stronger(first: str, second: str) -> str:
    """The operator that counts of two in a row: a line may end behind `&&`."""
    second = ";" if second in (";", "\n") else second
    return first if first in ("&&", "||", "|", "|&") and second == ";" else second or first
