"""One code for CUDA, the NPU and the CPU: a whole module written with what PyTorch has for all."""
