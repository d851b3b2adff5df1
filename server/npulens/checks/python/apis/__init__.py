"""PyTorch's own APIs: what the NPU limits, memory formats, switches, other calls in their place."""
