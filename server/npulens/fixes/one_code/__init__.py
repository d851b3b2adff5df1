"""One code for CUDA, the NPU and the CPU: a whole module written with what PyTorch has for all.

`checks/one_code.py` takes the findings about devices, precision and process groups when all of
them are known, has this package write the module, and gives each of them the same fix, so that no
part can be applied alone. `vocabulary.py` is the one table of what PyTorch offers for any device,
by release, with what its counterpart of CUDA does where there is none. `devices.py` finds the
device of a place (a parameter, a variable, an attribute, an `Accelerator`) or introduces one
behind the imports. `vendor_arms.py` puts what one vendor has where its devices run it. The other
modules each write one kind of place: precision, functions, types of tensors, comparisons, strings.
The fix is safe only if nothing about devices is left in the module, every part is sure, and the
fixes for the NPU in its place are safe.
"""
