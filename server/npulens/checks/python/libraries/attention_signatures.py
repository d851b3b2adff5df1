"""What functions of GPU attention libraries take, and how a call fills it in."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from npulens.checks.arguments import is_spread

TOP_LEFT, BOTTOM_RIGHT = 2, 3
"""Values of `sparse_mode`: which corner of the scores a causal mask starts from."""


class Signature(NamedTuple):
    """A function that computes attention.

    Attributes:
        parameters: What can be given by position, as far as all releases agree on the order.
        options: What else can be given, by keyword.
        alignment: The `sparse_mode` of its causal mask.
        library: The package, for what the table says of its arguments.
    """

    parameters: tuple[str, ...]
    options: frozenset[str]
    alignment: int
    library: str

    @property
    def has_lengths(self) -> bool:
        """Whether sequences of different lengths lie behind each other."""
        return "cu_seqlens" in self.parameters or "cu_seqlens_q" in self.parameters


_TENSORS = {"": ("q", "k", "v"), "qkvpacked": ("qkv",), "kvpacked": ("q", "kv")}
_LENGTHS = ("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")
_SAME_LENGTHS = ("cu_seqlens", "max_seqlen")
_SHARED = ("dropout_p", "softmax_scale", "causal")
_OPTIONS = frozenset(
    {"window_size", "softcap", "alibi_slopes", "deterministic", "return_attn_probs"}
)
_XFORMERS = Signature(
    ("query", "key", "value", "attn_bias", "p", "scale"),
    frozenset({"op", "output_dtype"}),
    TOP_LEFT,
    "xformers",
)
_XFORMERS_MODULES = ("xformers.ops", "xformers.ops.fmha")
_XFORMERS_NAMES = ("memory_efficient_attention", "memory_efficient_attention_forward")


def _signatures() -> Iterator[tuple[str, Signature]]:
    for module in ("flash_attn", "flash_attn.flash_attn_interface"):
        for packing, tensors in _TENSORS.items():
            lengths = _SAME_LENGTHS if packing == "qkvpacked" else _LENGTHS
            ending = f"{packing}_func" if packing else "func"
            whole = Signature((*tensors, *_SHARED), _OPTIONS, BOTTOM_RIGHT, "flash_attn")
            parameters = (*tensors, *lengths, *_SHARED)
            cut = whole._replace(parameters=parameters, options=_OPTIONS | {"block_table"})
            yield f"{module}.flash_attn_{ending}", whole
            yield f"{module}.flash_attn_varlen_{ending}", cut
            # The names of flash-attn 1, older than the change of the causal mask in 2.1.
            yield f"{module}.flash_attn_unpadded_{ending}", cut._replace(alignment=TOP_LEFT)
    for module in _XFORMERS_MODULES:
        for name in _XFORMERS_NAMES:
            yield f"{module}.{name}", _XFORMERS


SIGNATURES = dict(_signatures())
"""By qualified name."""

UNSETTLED = frozenset(
    f"{module}.{name}"
    for module in ("flash_attn_interface", "flash_attn_3.flash_attn_interface")
    for name in ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_qkvpacked_func")
)
"""Functions of flash-attn 3, whose arguments and results differ from release to release."""


def filled(call: ast.Call, signature: Signature) -> dict[str, ast.expr] | None:
    """The arguments of a call by parameter; `None` if that is not known."""
    if is_spread(call) or len(call.args) > len(signature.parameters):
        return None
    given = dict(zip(signature.parameters, call.args, strict=False))
    for keyword in call.keywords:
        known = keyword.arg in signature.parameters or keyword.arg in signature.options
        if keyword.arg is None or not known or keyword.arg in given:
            return None
        given[keyword.arg] = keyword.value
    tensors = {"q", "k", "v", "qkv", "kv", "query", "key", "value"}.union(_LENGTHS[:2])
    needed = [p for p in signature.parameters if p in tensors or p == "cu_seqlens"]
    return given if all(name in given for name in needed) else None


def without_mapping(given: dict[str, ast.expr]) -> str | None:
    """The first argument that the NPU operator has nothing for, unless it changes nothing."""
    for name, harmless in _HARMLESS.items():
        if name in given and ast.unparse(given[name]) not in harmless:
            return name
    return None


_HARMLESS = {
    "window_size": ("(-1, -1)", "[-1, -1]", "None", "(None, None)"),
    "softcap": ("0.0", "0", "None"),
    "alibi_slopes": ("None",),
    "return_attn_probs": ("False",),
    "block_table": ("None",),
    "output_dtype": ("None",),
}
