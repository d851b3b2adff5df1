"""Importing this lets code for CUDA run on the NPU."""

from npulens_emulator.cuda_on_npu import apply

apply()
