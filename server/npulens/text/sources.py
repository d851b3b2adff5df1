"""The text of a file of any kind, and the bytes of a file that holds another text instead."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from npulens.text.decoding import decode_source, encode_source
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.notebooks import notebook_bytes, notebook_text


class Source(NamedTuple):
    """The text of a file.

    Attributes:
        text: The text; of a notebook, that of its cells.
        encode: The bytes of the file with this text instead. It raises `UnencodableText`, or
            `NotWrittenBack` for a notebook.
        encoding: What to call the form of the bytes.
    """

    text: str
    encode: Callable[[str], bytes]
    encoding: str


def read_source(path: str, data: bytes) -> Source:
    """The text of a file that can be written back.

    Raises:
        UndecodableSource: The bytes are no text.
        UnreadableNotebook: They should be a notebook, and are none for Python.
    """
    if kind_by_name(path) is Kind.NOTEBOOK:
        return Source(notebook_text(data), partial(notebook_bytes, data), "JSON")
    source = decode_source(data)
    encode = partial(encode_source, encoding=source.encoding, has_bom=source.has_bom)
    return Source(source.text, encode, source.encoding)
