"""What a function computes, as a canonical graph of expressions."""
