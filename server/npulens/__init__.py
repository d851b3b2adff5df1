"""npulens: static analysis for moving PyTorch code from NVIDIA GPUs to Huawei Ascend NPUs."""

__version__ = "0.1.0"
