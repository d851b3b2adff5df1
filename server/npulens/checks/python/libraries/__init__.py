"""Libraries for GPUs and extensions of CUDA: imports, calls, attention."""
