"""What `torch_npu.contrib` builds on the operators."""
