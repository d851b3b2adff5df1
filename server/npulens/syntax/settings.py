"""Settings of YAML, JSON, TOML and INI files with their places, read by line or by token.

Not parsers: they yield the plain forms in which people write a device or a backend, skip what they
do not understand, and take time in proportion to the text. A parser with places of values would be
slower by far (PyYAML's pure one 100 times) and give up on the first mistake.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.text.spans import Span


class Setting(NamedTuple):
    """A key with its value, or an element of a list.

    Attributes:
        key: The key, empty for an element.
        key_span: Where it is, without quotes.
        value: The scalar as written, without quotes.
        span: Where it is, without quotes.
        parents: The keys around it, the outermost first.
        is_block: It is a text of several lines.
    """

    key: str
    key_span: Span
    value: str
    span: Span
    parents: tuple[str, ...]
    is_block: bool = False


_DEEPEST = 60
_FLOW = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<double>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<single>'[^'\n]*')"
    r"|(?P<comment>\#[^\n]*|//[^\n]*)"
    r"|(?P<mark>[{}\[\],:])"
    r"|(?P<plain>[^\s{}\[\],:\"'#][^{}\[\],:\n#]*(?::(?=[^\s,\[\]{}])[^{}\[\],:\n#]*)*)"
    r"|(?P<other>[\s\S])"
)


def json_settings(text: str) -> Iterator[Setting]:
    """The settings of a JSON text, which may hold comments."""
    found = _flow(text, 0, len(text), ())
    return (item for item in found if isinstance(item, Setting))


def _flow(text: str, start: int, end: int, outer: tuple[str, ...]) -> Iterator[Setting | int]:
    """The settings of nested `{}` and `[]` from an offset on, and at last where they end."""
    parents: list[str] = []
    is_map: list[bool] = []
    key: tuple[str, Span] | None = None
    scalar: tuple[str, Span] | None = None
    position = start

    def setting() -> Iterator[Setting]:
        if scalar is not None and len(parents) <= _DEEPEST:
            around = (*outer, *(name for name in parents if name))
            name, place = key or ("", scalar[1])
            yield Setting(name, place, *scalar, around)

    while position < end:
        token = _FLOW.match(text, position, end)
        if token is None:
            break
        position = token.end()
        kind, source = token.lastgroup, token.group()
        if kind in ("double", "single"):
            scalar = (source[1:-1], Span(token.start() + 1, position - 1))
        elif kind == "plain":
            source = source.rstrip()
            scalar = (source, Span(token.start(), token.start() + len(source)))
        elif kind != "mark":
            continue
        elif source in "{[":
            parents.append(key[0] if key is not None else "")
            is_map.append(source == "{")
            key = scalar = None
        elif source == ":":
            if is_map and is_map[-1]:
                key = scalar
            scalar = None
        else:
            if is_map and (key is not None or not is_map[-1]):
                yield from setting()
            key = scalar = None
            if source in "}]" and parents:
                parents.pop()
                is_map.pop()
            if not parents:
                break
    yield position


_YAML_LINE = re.compile(r"[^\n]*\n?")
_YAML_START = re.compile(r"(?P<indent>[ ]*)(?P<dashes>(?:-[ ]+)*)")
_YAML_KEY = re.compile(r"(?P<quote>[\"']?)(?P<key>[\w./-]+)(?P=quote)[ \t]*:(?=\s|\Z)[ \t]*")
_YAML_PROPERTY = re.compile(r"(?:[&!][\w/:.-]*[ \t]+)*")
_YAML_BLOCK = re.compile(r"[|>][-+\d]*[ \t]*(?:\#[^\n]*)?\r?\n?\Z")
_YAML_PLAIN = re.compile(r"(?:[^\s#]|(?<=\S)\#|[ \t](?!\#))*")
_YAML_DOUBLE = re.compile(r"\"((?:[^\"\\]|\\[\s\S])*)\"")
_YAML_SINGLE = re.compile(r"'((?:[^']|'')*)'")


def yaml_settings(text: str) -> Iterator[Setting]:
    """The settings of a YAML text."""
    position = 0
    above: list[tuple[int, str]] = []
    while position < len(text):
        line = _YAML_LINE.match(text, position)
        assert line is not None
        position = line.end()
        start = _YAML_START.match(text, line.start())
        assert start is not None
        column = start.end() - line.start()
        if start.end() >= len(text) or text[start.end()] in "#\r\n":
            continue
        while above and above[-1][0] >= column:
            above.pop()
        parents = tuple(name for _, name in above[:_DEEPEST])
        found = _YAML_KEY.match(text, start.end())
        key, key_span, at = "", Span(start.end(), start.end()), start.end()
        if found is not None:
            key, key_span, at = found["key"], Span(*found.span("key")), found.end()
            above.append((column, key))
        elif not start["dashes"]:
            continue  # more lines of a plain text
        value_at = _YAML_PROPERTY.match(text, at)
        at = value_at.end() if value_at is not None else at
        if at >= line.end():
            continue
        first = text[at]
        if first in "{[":
            around = (*parents, key) if key else parents
            for item in _flow(text, at, len(text), around):
                if isinstance(item, Setting):
                    yield item
                else:
                    position = max(position, _next_line(text, item))
        elif first in "\"'":
            pattern = _YAML_DOUBLE if first == '"' else _YAML_SINGLE
            quoted = pattern.match(text, at)
            if quoted is None:
                return  # nothing behind an open quote can be trusted
            yield Setting(key, key_span, quoted[1], Span(*quoted.span(1)), parents)
            position = max(position, _next_line(text, quoted.end()))
        elif first in "|>" and _YAML_BLOCK.match(text[at : line.end()]):
            floor = column if key else start.end("indent") - line.start()
            position = _block_end(text, position, floor)
            span = Span(line.end(), position)
            yield Setting(key, key_span, text[slice(*span)], span, parents, is_block=True)
        else:
            plain = _YAML_PLAIN.match(text, at, line.end())
            value = plain.group().rstrip() if plain is not None else ""
            if value:
                yield Setting(key, key_span, value, Span(at, at + len(value)), parents)


def _next_line(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _block_end(text: str, position: int, column: int) -> int:
    """Where the lines end that are blank or indented deeper than `column`."""
    while position < len(text):
        line = _YAML_LINE.match(text, position)
        assert line is not None
        content = line.group()
        if content.strip() and len(content) - len(content.lstrip(" ")) <= column:
            break
        position = line.end()
    return position


_TOML = re.compile(
    r"(?P<space>[ \t\r]+)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<long>\"\"\"(?:[^\"\\]|\\[\s\S]|\"(?!\"\"))*\"\"\"|'''(?:[^']|'(?!''))*''')"
    r"|(?P<double>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<single>'[^'\n]*')"
    r"|(?P<mark>[\[\]{},=])"
    r"|(?P<plain>[^\s\[\]{},=#\"']+)"
    r"|(?P<other>[\s\S])"
)
_TOML_HEADER = re.compile(r"[ \t]*\[\[?([^\]\n]*)\]\]?[^\n]*")


def toml_settings(text: str) -> Iterator[Setting]:
    """The settings of a TOML text."""
    table: tuple[str, ...] = ()
    key: tuple[str, Span] | None = None
    inner: list[tuple[str, tuple[str, Span] | None]] = []
    scalar: tuple[str, Span] | None = None
    position = 0
    at_line_start = True
    while position < len(text):
        if at_line_start and not inner:
            key = None
            header = _TOML_HEADER.match(text, position)
            if header is not None:
                parts = re.sub("[\"']", "", header[1]).split(".")
                table = tuple(part.strip() for part in parts)[:_DEEPEST]
                position = header.end()
        token = _TOML.match(text, position)
        if token is None:
            break
        position = token.end()
        kind, source = token.lastgroup, token.group()
        at_line_start = kind == "newline"
        if kind in ("double", "single", "plain"):
            cut = 0 if kind == "plain" else 1
            span = Span(token.start() + cut, position - cut)
            scalar = (text[slice(*span)], span)
            if key is not None and (not inner or inner[-1][0] == "[" or inner[-1][1] is not None):
                owner = inner[-1][1] if inner and inner[-1][0] == "{" else key
                is_element = bool(inner) and inner[-1][0] == "["
                name, place = ("", span) if is_element or owner is None else owner
                around = (*table, key[0]) if inner else table
                yield Setting(name, place, *scalar, around)
        elif kind == "long":
            scalar = None
        elif source == "=":
            if not inner:
                key = scalar
            elif inner[-1][0] == "{":
                inner[-1] = ("{", scalar)
        elif source in ("[", "{"):
            inner.append((source, None))
        elif source in ("]", "}") and inner:
            inner.pop()
        elif source == "," and inner and inner[-1][0] == "{":
            inner[-1] = ("{", None)


_INI_HEADER = re.compile(r"\[([^\]\n]*)\]")
_INI_SEPARATOR = re.compile(r"[=:]")
_INI_COMMENT = re.compile(r"[ \t][#;]")


def ini_settings(text: str) -> Iterator[Setting]:
    """The settings of an INI text; lines that are indented deeper than their key are elements."""
    section: tuple[str, ...] = ()
    key, column = "", 0
    for line in re.finditer(r"[^\n]+", text):
        content = _stripped(text, Span(*line.span()))
        first = text[content.start : content.start + 1]
        if first in ("", "#", ";"):
            continue
        indent = content.start - line.start()
        if key and indent > column:
            value = _ini_value(text, content)
            yield Setting("", value, text[slice(*value)], value, (*section, key))
        elif (header := _INI_HEADER.match(text, *content)) is not None:
            section, key = (header[1].strip(),), ""
        elif (found := _INI_SEPARATOR.search(text, *content)) is not None:
            name = _stripped(text, Span(content.start, found.start()))
            key, column = text[slice(*name)], indent
            value = _ini_value(text, Span(found.end(), content.end))
            if value.end > value.start:
                yield Setting(key, name, text[slice(*value)], value, section)


def _ini_value(text: str, span: Span) -> Span:
    """A value without the comment behind it and without quotes."""
    comment = _INI_COMMENT.search(text, *span)
    start, end = _stripped(text, span if comment is None else Span(span.start, comment.start()))
    if end - start > 1 and text[start] in "\"'" and text[end - 1] == text[start]:
        return Span(start + 1, end - 1)
    return Span(start, end)


def _stripped(text: str, span: Span) -> Span:
    content = text[slice(*span)]
    start = span.end - len(content.lstrip())
    return Span(start, max(start, span.start + len(content.rstrip())))
