"""Source files as bytes, and back.

The encoding is what Python would take (PEP 263): UTF-8, unless a comment in the first two lines
names another. Only codecs of the standard library that read and write ASCII as it is are used,
because a codec is code: packages install some that rewrite source, and others decompress.
"""

import codecs
import encodings
import re
from enum import Enum
from typing import NamedTuple

from npulens.text.unreadable import Unreadable


class UndecodableReason(str, Enum):
    """Why bytes are no source text; the value is stable, wording is the face's business."""

    BAD_COOKIE = "bad-cookie"
    BAD_BYTES = "bad-bytes"
    NUL_BYTE = "nul-byte"
    UTF16_OR_32 = "utf-16-or-32"


class UndecodableSource(Unreadable, ValueError):  # noqa: N818
    """The bytes are no Python source text.

    Attributes:
        byte_offset: Where in the bytes, counted from 0, or None if it is the whole.
    """

    def __init__(self, reason: UndecodableReason, byte_offset: int | None = None) -> None:
        super().__init__(reason.value, offset=byte_offset)
        self.reason = reason
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        place = "" if self.byte_offset is None else f" at byte {self.byte_offset}"
        return f"{self.reason.value}{place}"


class UnencodableText(ValueError):  # noqa: N818
    """The text has a character that its encoding lacks.

    Attributes:
        offset: The code-point offset of the first such character.
    """

    def __init__(self, encoding: str, offset: int) -> None:
        super().__init__(encoding, offset)
        self.encoding = encoding
        self.offset = offset

    def __str__(self) -> str:
        return f"character {self.offset} does not exist in {self.encoding}"


class DecodedSource(NamedTuple):
    """A source text, without byte order mark, and what is needed to write it back as it was."""

    text: str
    encoding: str
    has_bom: bool


def decode_source(data: bytes) -> DecodedSource:
    """Read the bytes of a source file as Python would; line endings stay as they are.

    Raises:
        UndecodableSource: The encoding is not usable, or the bytes do not follow it.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise UndecodableSource(UndecodableReason.UTF16_OR_32)
    if b"\0" in data:
        if 0 in data[:2] and any(data[:4]):  # an ASCII character in two or four bytes
            raise UndecodableSource(UndecodableReason.UTF16_OR_32)
        raise UndecodableSource(UndecodableReason.NUL_BYTE, data.index(b"\0"))
    has_bom = data.startswith(codecs.BOM_UTF8)
    body_start = len(codecs.BOM_UTF8) if has_bom else 0
    body = data[body_start:]
    codec = _UTF8
    if cookie := _COOKIE.match(body):
        named = _find_codec(cookie[1].decode("ascii"))
        if named is None or (has_bom and named.name != _UTF8.name):
            raise UndecodableSource(UndecodableReason.BAD_COOKIE, body_start + cookie.start(1))
        codec = named
    try:
        text, _ = codec.decode(body, "strict")
    except UnicodeDecodeError as error:
        place = body_start + error.start
        raise UndecodableSource(UndecodableReason.BAD_BYTES, place) from error
    return DecodedSource(text, codec.name, has_bom)


def encode_source(text: str, encoding: str, has_bom: bool) -> bytes:
    """The bytes of a source file, from what `decode_source` returned or an edit of that text.

    Unedited text gives the bytes it came from. (In an encoding with several byte sequences for one
    character, such as the vendor duplicates of cp932, each comes back as the usual one.)

    Raises:
        UnencodableText: A character does not exist in the encoding.
        LookupError: `encoding` is not one that `decode_source` returns.
    """
    codec = _find_codec(encoding)
    if codec is None:
        raise LookupError(f"not an encoding of source text: {encoding}")
    try:
        data, _ = codec.encode(text, "strict")
    except UnicodeEncodeError as error:
        raise UnencodableText(encoding, error.start) from error
    return codecs.BOM_UTF8 + data if has_bom else data


_UTF8 = codecs.lookup("utf-8")

# PEP 263: in the first line, or in the second if the first is blank or a comment.
_COOKIE = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))??"
    rb"[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)"
)

_FUTURE_FSTRINGS = "future-fstrings"
"""A codec that the package of this name registers: text in UTF-8, whose f-strings it rewrites for
Python 2 and 3.5. Source: asottile/future-fstrings, future_fstrings.py."""

# What every usable codec must write and read unchanged. The escape is there for codecs that would
# turn it into another character.
_ASCII_PROBE = "".join(map(chr, range(32, 127))) + "\t\n\f\r" + "\\u0041"


def _find_codec(name: str) -> codecs.CodecInfo | None:
    """The standard library's codec, or None if there is none that suits source text."""
    normal = name[:12].lower().replace("_", "-")  # as CPython: an Emacs `utf-8-unix` is UTF-8
    if re.match(r"utf-8(-|$)", normal) or name.lower().replace("_", "-") == _FUTURE_FSTRINGS:
        return _UTF8
    if re.match(r"(latin-1|iso-8859-1|iso-latin-1)(-|$)", normal):
        name = "iso-8859-1"
    # Not codecs.lookup, which also uses the codecs that packages have registered.
    codec = encodings.search_function(name.lower())
    return codec if codec is not None and _keeps_ascii(codec) else None


def _keeps_ascii(codec: codecs.CodecInfo) -> bool:
    try:
        data, _ = codec.encode(_ASCII_PROBE, "strict")
        return data == _ASCII_PROBE.encode() and codec.decode(data, "strict")[0] == _ASCII_PROBE
    except Exception:  # a codec that is not for text fails in any way it likes
        return False
