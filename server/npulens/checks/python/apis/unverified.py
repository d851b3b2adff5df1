"""Names of PyTorch that the support tables do not list for the release aimed at."""

from npulens.catalog.model import Finding
from npulens.catalog.native_tables import NativeTable, includes
from npulens.checks.context import Context
from npulens.checks.entries import longest_entry
from npulens.text.spans import Span

_NO_API = """
    float16 float32 float64 bfloat16 half float double complex32 complex64 complex128 chalf cfloat
    cdouble uint8 uint16 uint32 uint64 int8 int16 int32 int64 short int long bool quint8 qint8
    qint32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz strided sparse_coo sparse_csr
    contiguous_format channels_last channels_last_3d preserve_format Size pi inf nan e newaxis
    version ops classes types
"""
"""Constants, types and what is no part of an API."""


_NO_API_WORDS = frozenset(_NO_API.split())


def report_unverified(name: str, span: Span, context: Context) -> None:
    """Report a name below `torch` that is not listed, under whatever path."""
    native = context.catalogue.native
    if native.verified is None or span in context.reported.spans:
        return
    parts = name.split(".")
    if (
        parts[0] != "torch"
        or len(parts) < 2
        or any(p in _NO_API_WORDS or p[0] == "_" for p in parts)
    ):
        return
    if longest_entry(name, context) is not None or _is_listed(parts, native, context):
        return
    rule = context.catalogue.required("native-api-unverified")
    version = str(context.target.torch_version)
    context.add(Finding(rule, span, {"symbol": name, "replacement": "", "version": version}))


def _is_listed(parts: list[str], native: NativeTable, context: Context) -> bool:
    """Whether a name, something it belongs to, or it under another path is listed; or a module."""
    version = native.listed(context.target.torch_version)
    for listed in native.listed_as(parts):
        versions = (native.verified or {}).get(listed)
        if versions is None or includes(versions, version):
            return True
    return False
