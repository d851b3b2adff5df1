"""Files beside the Python code: scripts, settings, C++ and CUDA sources."""
