"""Idioms that an NPU operator replaces, recognised by what the code computes."""
