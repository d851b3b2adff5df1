from torch.optim import AdamW


class FusedAdam(AdamW):
    """Decays weights like AdamW, unless told otherwise."""
