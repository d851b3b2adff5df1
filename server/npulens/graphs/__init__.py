"""What a function computes, as a canonical graph of expressions.

Names say little: RMSNorm is written in a hundred ways, and a class of that name may compute
something else. So functions are evaluated on symbols (`functions.py`). Equal computations are one
node: `x.pow(2)`, `x * x` and `torch.square(x)`; `chunk(2, -1)[0]` and `x[..., : x.shape[-1] // 2]`;
a quotient is a product with a power. Straight code is followed, an `if` makes a choice, what a loop
changes is unknown, `self.x` is what the constructor assigned if no other method assigns it, small
functions of the same file and of other modules of the project (`other_definitions.py`) are looked
into, and so are modules that hold no others. What is not known is a leaf of its own and never
guessed. The work for one function is bounded.

Each function has a graph of its own: what is known of a parameter does not count for one of the
same name elsewhere. What is found in a function rests on the functions that it used and on
the interfaces of classes (`interfaces.py`): their heads and constructors, what other methods
assign to attributes, and how they use each other.
"""
