"""What operators of PyTorch and functions of Python make of shapes."""
