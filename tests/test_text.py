import ast
import codecs
import encodings
import io
import itertools
import pkgutil
import tokenize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npulens.text.decoding import (
    DecodedSource,
    UndecodableReason,
    UndecodableSource,
    UnencodableText,
    decode_source,
    encode_source,
)
from npulens.text.document import Document, PositionEncoding, TextChange
from npulens.text.lines import LineMap
from npulens.text.spans import Position, Span

UTF8, UTF16, UTF32 = PositionEncoding.UTF8, PositionEncoding.UTF16, PositionEncoding.UTF32
encodings_of_positions = pytest.mark.parametrize("encoding", PositionEncoding)

# What is not a line ending, though str.splitlines says so.
NOT_LINE_ENDINGS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
COMBINING = "e\N{COMBINING ACUTE ACCENT}"
LONE_SURROGATE = "\ud83d"

CHARACTERS = [
    "a",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    *NOT_LINE_ENDINGS,
    "é",
    COMBINING,
    "中",
    "😀",
    "𠀀",
]
texts = st.lists(st.sampled_from(CHARACTERS), max_size=30).map("".join)


def document(text: str) -> Document:
    return Document("train.py", text, 1)


class TestSpans:
    @pytest.mark.parametrize(
        ("one", "other", "conflict"),
        [
            (Span(2, 5), Span(4, 8), True),
            (Span(2, 5), Span(3, 4), True),
            (Span(2, 5), Span(2, 5), True),
            (Span(2, 5), Span(5, 8), False),
            (Span(2, 5), Span(6, 8), False),
            (Span(3, 3), Span(2, 5), True),
            (Span(2, 2), Span(2, 5), False),
            (Span(5, 5), Span(2, 5), False),
            (Span(3, 3), Span(3, 3), True),
            (Span(3, 3), Span(4, 4), False),
        ],
    )
    def test_overlaps(self, one: Span, other: Span, conflict: bool) -> None:
        assert one.overlaps(other) is conflict
        assert other.overlaps(one) is conflict

    def test_shifted(self) -> None:
        assert Span(2, 5).shifted(3) == Span(5, 8)


class TestLines:
    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            ("", [""]),
            ("a", ["a"]),
            ("a\n", ["a", ""]),
            ("a\nb", ["a", "b"]),
            ("a\r\nb\r\n", ["a", "b", ""]),
            ("a\rb\r", ["a", "b", ""]),
            ("\n\r\n\r", ["", "", "", ""]),
            ("\r\r\n\n", ["", "", "", ""]),
            ("中\n😀\r\nb", ["中", "😀", "b"]),
            (f"a{NOT_LINE_ENDINGS}b\nc", [f"a{NOT_LINE_ENDINGS}b", "c"]),
        ],
    )
    def test_line_text(self, text: str, lines: list[str]) -> None:
        seen = document(text)
        assert seen.line_count == len(lines)
        assert [seen.line_text(line) for line in range(seen.line_count)] == lines

    @pytest.mark.parametrize("line", [-1, 2])
    def test_no_such_line(self, line: int) -> None:
        with pytest.raises(IndexError):
            document("a\nb").line_text(line)

    def test_starts_count_code_points(self) -> None:
        assert document("a\r\n😀中\rb\n").line_starts == [0, 3, 6, 8]

    @pytest.mark.parametrize(
        "text",
        [
            "first = 1\nname = 2\n",
            "变量 = 1\r\nx, 名字, name = 1, '😀', 变量\r\n",
            f"s = '{COMBINING}\x85\u2028😀'; name = 1\rname\r",
            "if x:\n\ty = '中'; name\n\f\n\fname\n",
            "s = '''中\r\n\r\n😀'''; name = 1",
            "# 中\n\nname",
        ],
    )
    def test_offset_of_ast_places(self, text: str) -> None:
        lines = LineMap(text)
        checked = 0
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name):
                assert node.end_lineno is not None and node.end_col_offset is not None
                start = lines.offset(node.lineno, node.col_offset)
                end = lines.offset(node.end_lineno, node.end_col_offset)
                assert text[start:end] == node.id
                checked += 1
        assert checked

    def test_offset_of_no_line(self) -> None:
        with pytest.raises(IndexError):
            LineMap("a\n").offset(3, 0)

    @settings(deadline=None)
    @given(texts, texts, st.data())
    def test_edited_is_as_read_again(self, text: str, new: str, data: st.DataObject) -> None:
        start, end = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
        edited = LineMap(text).edited(Span(start, end), new)
        assert edited.text == text[:start] + new + text[end:]
        assert edited.starts == LineMap(edited.text).starts

    def test_edited_around_crlf(self) -> None:
        """Every edit of every short text of letters, CR and LF."""
        segments = [
            "".join(segment)
            for size in range(4)
            for segment in itertools.product("a\r\n", repeat=size)
        ]
        for text, new in itertools.product(segments, segments):
            lines = LineMap(text)
            for start in range(len(text) + 1):
                for end in range(start, len(text) + 1):
                    edited = lines.edited(Span(start, end), new)
                    assert edited.starts == LineMap(edited.text).starts


class TestPositions:
    @pytest.mark.parametrize(
        ("text", "offset", "line", "columns"),
        [
            ("", 0, 0, (0, 0, 0)),
            ("abc", 3, 0, (3, 3, 3)),
            ("abc\n", 4, 1, (0, 0, 0)),
            ("\tx", 1, 0, (1, 1, 1)),
            ("x = '😀'; y", 6, 0, (9, 7, 6)),
            ("变量 = 1", 2, 0, (6, 2, 2)),
            ("𠀀𠀀.cuda()", 3, 0, (9, 5, 3)),
            ("é.cuda()", 2, 0, (3, 2, 2)),
            (COMBINING + "x", 2, 0, (3, 2, 2)),
            ("中\r\n😀x", 4, 1, (4, 2, 1)),
            ("中\r😀x", 3, 1, (4, 2, 1)),
            ("a\u2028b\x85c", 4, 0, (7, 4, 4)),
            ("a\fb\vc\nd", 5, 0, (5, 5, 5)),
            (LONE_SURROGATE + "x", 1, 0, (3, 1, 1)),
        ],
    )
    def test_both_ways(
        self, text: str, offset: int, line: int, columns: tuple[int, int, int]
    ) -> None:
        seen = document(text)
        for encoding, column in zip((UTF8, UTF16, UTF32), columns, strict=True):
            position = Position(line, column)
            assert seen.position_at(offset, encoding) == position
            assert seen.offset_at(position, encoding) == offset

    @pytest.mark.parametrize(
        ("offset", "position"),
        [(-3, (0, 0)), (2, (0, 1)), (3, (1, 0)), (99, (1, 1))],
        ids=["before the text", "inside CRLF", "after CRLF", "after the text"],
    )
    @encodings_of_positions
    def test_offsets_are_clamped(
        self, encoding: PositionEncoding, offset: int, position: tuple[int, int]
    ) -> None:
        assert document("a\r\nb").position_at(offset, encoding) == Position(*position)

    @pytest.mark.parametrize(
        ("encoding", "line", "column", "offset"),
        [
            (UTF8, 0, 1, 0),
            (UTF8, 0, 3, 0),
            (UTF8, 0, 4, 1),
            (UTF8, 0, 6, 1),
            (UTF8, 0, 7, 2),
            (UTF16, 0, 1, 0),
            (UTF16, 0, 2, 1),
            (UTF16, 0, 3, 2),
            (UTF32, 0, 1, 1),
            *((encoding, 0, 99, 3) for encoding in PositionEncoding),
            *((encoding, 1, 99, 6) for encoding in PositionEncoding),
            *((encoding, 2, 0, 7) for encoding in PositionEncoding),
            *((encoding, 3, 0, 7) for encoding in PositionEncoding),
            *((encoding, -1, 5, 0) for encoding in PositionEncoding),
            *((encoding, 1, -5, 5) for encoding in PositionEncoding),
        ],
    )
    def test_positions_are_clamped(
        self, encoding: PositionEncoding, line: int, column: int, offset: int
    ) -> None:
        assert document("😀中a\r\nb\n").offset_at(Position(line, column), encoding) == offset

    @settings(deadline=None)
    @given(texts, st.sampled_from(PositionEncoding))
    def test_round_trip(self, text: str, encoding: PositionEncoding) -> None:
        seen = document(text)
        positions = [seen.position_at(offset, encoding) for offset in range(len(text) + 1)]
        assert positions == sorted(positions)
        for offset, position in enumerate(positions):
            inside_crlf = text[offset - 1 : offset + 1] == "\r\n"
            assert seen.offset_at(position, encoding) == offset - inside_crlf


UNIT_CODECS = {UTF8: ("utf-8", 1), UTF16: ("utf-16-le", 2), UTF32: ("utf-32-le", 4)}


class UnitModel:
    """Editing as the protocol defines it, on units instead of characters."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self.codec, self.size = UNIT_CODECS[encoding]
        self.units = self.encode(text)

    def encode(self, text: str) -> list[int]:
        data = text.encode(self.codec)
        return [
            int.from_bytes(data[place : place + self.size], "little")
            for place in range(0, len(data), self.size)
        ]

    def text(self) -> str:
        return b"".join(unit.to_bytes(self.size, "little") for unit in self.units).decode(
            self.codec
        )

    def index(self, position: Position) -> int:
        place, line = 0, 0
        while line < position.line and place < len(self.units):
            if self.units[place] == 10 or (
                self.units[place] == 13 and self.units[place + 1 : place + 2] != [10]
            ):
                line += 1
            place += 1
        if line < position.line:
            return len(self.units)
        for _ in range(position.column):
            if place < len(self.units) and self.units[place] not in (10, 13):
                place += 1
        while place < len(self.units) and self.continues(self.units[place]):
            place -= 1
        return place

    def continues(self, unit: int) -> bool:
        return {1: unit & 0xC0 == 0x80, 2: 0xDC00 <= unit < 0xE000, 4: False}[self.size]

    def apply(self, change: TextChange) -> None:
        if change.start is None or change.end is None:
            self.units = self.encode(change.text)
        else:
            start, end = self.index(change.start), self.index(change.end)
            self.units[start : max(start, end)] = self.encode(change.text)


positions = st.builds(Position, st.integers(0, 6), st.integers(0, 8))
edits = st.builds(TextChange, positions, positions, texts)
replacements = st.builds(TextChange, st.none(), st.none(), texts)


class TestEdits:
    @settings(max_examples=300, deadline=None)
    @given(
        texts,
        st.lists(st.lists(edits | edits | edits | replacements, max_size=4), max_size=4),
        st.sampled_from(PositionEncoding),
    )
    def test_as_the_model(
        self, text: str, batches: list[list[TextChange]], encoding: PositionEncoding
    ) -> None:
        model, seen = UnitModel(text, encoding), document(text)
        for version, changes in enumerate(batches):
            for change in changes:
                model.apply(change)
            seen = seen.edited(changes, encoding, version)
            assert seen == Document("train.py", model.text(), version)
            assert seen.line_starts == LineMap(seen.text).starts

    @pytest.mark.parametrize(
        ("before", "changes", "after"),
        [
            ("ab", [((0, 1), (0, 1), "x")], "axb"),
            ("a\n", [((1, 0), (1, 0), "b")], "a\nb"),
            ("a\nb\nc", [((0, 1), (2, 0), "")], "ac"),
            ("a", [((0, 1), (0, 1), "\n"), ((1, 0), (1, 0), "b")], "a\nb"),
            ("😀x", [((0, 2), (0, 3), "y")], "😀y"),
            ("a\u2028b\nc", [((1, 0), (1, 1), "d")], "a\u2028b\nd"),
            ("a\f\nb", [((1, 0), (1, 1), "c")], "a\f\nc"),
            ("a\r\nb", [((0, 9), (1, 0), "")], "ab"),
            ("a\r\nb", [((0, 9), (0, 9), "!")], "a!\r\nb"),
            ("abc", [((0, 2), (0, 1), "x")], "abxc"),
        ],
    )
    def test_examples(
        self,
        before: str,
        changes: list[tuple[tuple[int, int], tuple[int, int], str]],
        after: str,
    ) -> None:
        made = [TextChange(Position(*start), Position(*end), text) for start, end, text in changes]
        assert document(before).edited(made, UTF16, 2).text == after

    def test_original_stays(self) -> None:
        old = document("a\nb")
        new = old.edited([TextChange(None, None, "c")], UTF16, 2)
        assert (old.text, old.version, old.line_starts) == ("a\nb", 1, [0, 2])
        assert (new.text, new.version, new.line_starts) == ("c", 2, [0])

    def test_no_change_is_a_new_version(self) -> None:
        assert document("a").edited([], UTF16, 7) == Document("train.py", "a", 7)


class TestDecoding:
    @pytest.mark.parametrize(
        ("data", "decoded"),
        [
            (b"", DecodedSource("", "utf-8", False)),
            ("x = '中😀'\r\n".encode(), DecodedSource("x = '中😀'\r\n", "utf-8", False)),
            (b"\xef\xbb\xbfx\r", DecodedSource("x\r", "utf-8", True)),
            (b"\xef\xbb\xbf# coding: utf-8\n", DecodedSource("# coding: utf-8\n", "utf-8", True)),
            (b"\xef\xbb\xbf\xef\xbb\xbf", DecodedSource("\ufeff", "utf-8", True)),
            (b"# coding: utf8\n", DecodedSource("# coding: utf8\n", "utf-8", False)),
            (b"# coding: gbk\n# \xd6\xd0", DecodedSource("# coding: gbk\n# 中", "gbk", False)),
            (b"#\xd6\xd0\n# coding=gbk\n", DecodedSource("#中\n# coding=gbk\n", "gbk", False)),
            (
                b"# -*- coding: future_fstrings -*-\n",  # of a package: UTF-8
                DecodedSource("# -*- coding: future_fstrings -*-\n", "utf-8", False),
            ),
            (
                b"# coding: cp932\n# \x92\x86",
                DecodedSource("# coding: cp932\n# 中", "cp932", False),
            ),
        ],
    )
    def test_examples(self, data: bytes, decoded: DecodedSource) -> None:
        assert decode_source(data) == decoded
        assert encode_source(*decoded) == data

    @pytest.mark.parametrize(
        ("data", "reason", "byte_offset"),
        [
            (b"# coding: rot13\n", UndecodableReason.BAD_COOKIE, 10),
            (b"#!/bin/python\n# coding: hex\n", UndecodableReason.BAD_COOKIE, 24),
            (b"# coding: no-such\n", UndecodableReason.BAD_COOKIE, 10),
            (b"\xef\xbb\xbf# coding: gbk\n", UndecodableReason.BAD_COOKIE, 13),
            (b"x\n# caf\xe9\n", UndecodableReason.BAD_BYTES, 7),
            (b"\xef\xbb\xbf# caf\xe9\n", UndecodableReason.BAD_BYTES, 8),
            (b"# coding: ascii\n\xe9", UndecodableReason.BAD_BYTES, 16),
            (b"# coding: gbk\n\xff", UndecodableReason.BAD_BYTES, 14),
            (b"import torch\n\0", UndecodableReason.NUL_BYTE, 13),
            (b"\0\0\0\0\0\0", UndecodableReason.NUL_BYTE, 0),
            *(
                ("import torch\n".encode(codec), UndecodableReason.UTF16_OR_32, None)
                for codec in (
                    "utf-16",
                    "utf-16-le",
                    "utf-16-be",
                    "utf-32",
                    "utf-32-le",
                    "utf-32-be",
                )
            ),
            (codecs.BOM_UTF16_BE + "a".encode("utf-16-be"), UndecodableReason.UTF16_OR_32, None),
            (codecs.BOM_UTF32_BE + "a".encode("utf-32-be"), UndecodableReason.UTF16_OR_32, None),
        ],
    )
    def test_refused(self, data: bytes, reason: UndecodableReason, byte_offset: int | None) -> None:
        with pytest.raises(UndecodableSource) as caught:
            decode_source(data)
        assert (caught.value.reason, caught.value.byte_offset) == (reason, byte_offset)
        assert reason.value in str(caught.value)

    def test_codecs_that_are_not_for_source(self) -> None:
        """Of all codecs of the standard library, those that transform are refused."""
        refused = set()
        for module in pkgutil.iter_modules(encodings.__path__):
            try:
                codecs.lookup(module.name)
            except LookupError:
                continue
            try:
                source = decode_source(f"# coding: {module.name}\nx = 1\n".encode())
            except UndecodableSource:
                refused.add(module.name)
            else:
                assert encode_source(*source) == f"# coding: {module.name}\nx = 1\n".encode()
        assert refused >= {
            *("base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec"),
            *("zlib_codec", "utf_7", "utf_16", "utf_32", "idna", "punycode", "undefined"),
            *("unicode_escape", "raw_unicode_escape", "cp037"),
        }
        assert not refused & {"ascii", "big5", "cp1252", "cp932", "euc_jp", "gb18030", "gb2312"}
        assert not refused & {"gbk", "iso2022_jp", "latin_1", "koi8_r", "shift_jis", "utf_8"}

    def test_registered_codecs_are_not_asked(self) -> None:
        asked = []

        def search(name: str) -> codecs.CodecInfo | None:
            asked.append(name)
            return codecs.lookup("utf-8") if name == "npulens_test" else None

        codecs.register(search)
        try:
            with pytest.raises(UndecodableSource):
                decode_source(b"# coding: npulens-test\n")
        finally:
            codecs.unregister(search)
        assert not asked

    @pytest.mark.parametrize(
        "header",
        [
            b"",
            b"# -*- coding: latin-1 -*-\n",
            b"# vim: set fileencoding=gbk :\n",
            b"\t\f # coding:gbk\n",
            b"#!/usr/bin/env python\r\n# coding: gbk\r\n",
            b"\n# coding: gbk\n",
            b"\n\n# coding: gbk\n",
            b"x = 1\n# coding: gbk\n",
            b"x = 1 # coding: gbk\n",
            b"'''\n# coding: gbk\n'''\n",
            b"# coding: gbk\n# coding: utf-8\n",
            b"# coding : gbk\n",
            b"# coding:: gbk\n",
            b"# coding= \tgbk\n",
            b"# -*- coding: utf-8-unix -*-\n",
            b"# -*- coding: UTF_8-dos -*-\n",
            b"# coding: latin-1-unix\n",
            b"# coding: iso-8859-15\n",
            b"# coding: utf-8-sig\n",
            b"# coding: GB18030",
            b"# encoding: cp936\n",
        ],
    )
    def test_as_tokenize(self, header: bytes) -> None:
        expected, _ = tokenize.detect_encoding(io.BytesIO(header).readline)
        assert decode_source(header).encoding == codecs.lookup(expected).name

    def test_cookie_after_lone_cr(self) -> None:
        assert decode_source(b"# a\r# coding: gbk\r").encoding == "gbk"
        assert decode_source(b"x = 1\r# coding: gbk\r").encoding == "utf-8"

    @settings(deadline=None)
    @given(texts, st.sampled_from(["utf-8", "gbk", "latin-1", "cp932", "gb18030"]), st.booleans())
    def test_round_trip(self, text: str, encoding: str, has_bom: bool) -> None:
        text = f"# coding: {encoding}\n{text}".encode(encoding, "ignore").decode(encoding)
        data = text.encode(encoding)
        if has_bom and encoding == "utf-8":
            data = codecs.BOM_UTF8 + data
        source = decode_source(data)
        assert source.text == text
        assert encode_source(*source) == data

    @settings(deadline=None)
    @given(st.binary(max_size=40))
    def test_any_bytes(self, data: bytes) -> None:
        try:
            source = decode_source(data)
        except UndecodableSource:
            return
        assert encode_source(*source) == data

    def test_character_that_does_not_fit(self) -> None:
        with pytest.raises(UnencodableText) as caught:
            encode_source("ab😀", "gbk", False)
        assert (caught.value.encoding, caught.value.offset) == ("gbk", 2)
        assert str(caught.value) == "character 2 does not exist in gbk"

    def test_encoding_that_is_none(self) -> None:
        with pytest.raises(LookupError):
            encode_source("x", "rot13", False)
