"""Names that programs ask PyTorch for, and that each release has which npulens is about."""

IN_ALL_RELEASES = frozenset(
    {
        *("torch.get_autocast_dtype", "torch.no_grad", "torch.nn.SiLU", "torch.nn.GELU"),
        "torch.nn.functional.scaled_dot_product_attention",
    }
)
"""From PyTorch 2.6 on. Source: `torch/__init__.py`, `torch/nn/functional.py` of that release."""
