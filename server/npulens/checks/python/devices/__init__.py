"""Devices: strings, methods, names of `torch.cuda`, the shim that renames them at run time."""
