"""Shapes that depend on data, and the places where the host waits for the device.

Whether `x[index]` has a shape of its own for each batch is said by no name, so functions are
evaluated on shapes. A value is a tensor, a number of the host, a list, a layer or unknown. A
tensor has dimensions, of which the first and the last may be known and those between not; each
has a text (`B`, `4`, `n // 2`) and the sources that made it depend on data, which are nodes of
the tree. It is known whether it is of booleans, whether it is in the memory of the host, and
whether its values are fixed. Numbers have sources too: `int(mask.sum())` has, `x.shape[0]` only
if that dimension has.

In `evaluation` each class adds to the one before it: `shape_frames` (names and what is known of the
class), `indexing`, expressions, libraries, calls, `binding`, statements. Both arms of an `if` are
evaluated
and joined; loops twice; calls of functions of the file with the arguments at hand, three deep,
each function once at a time. Steps are bounded by function. What PyTorch's operators do is in
tables (`shape_operators.py`); what makes a shape depend on data or waits is data
(`rules/dynamic/`). A full reduction, `topk` with a fixed number and padding by `size -
x.shape[0]` end the dependence; conditions that depend on data pass it on to lists that are filled
under them. Conditions that are known before any data are decided (`decided_conditions.py`), and
only the arm that runs is evaluated.

An operator of the tables, a mask as index, a condition on a tensor is an event with its node;
later uses of a value with that source are its consumers. A tensor is known for certain by an
annotation, by what PyTorch's functions and layers return, by `isinstance`, by what only tensors
have (a device and a shape are enough) and what PyTorch's functions take. It is very likely one that
`item()`, `cpu()` or a reduction is called of, that has an index no list takes, or that is selected
from by a comparison; what is an array of NumPy stays one. An event is sure or likely with it.
Values keep this in dictionaries, lists, comprehensions and sums, and numbers that were copied to
the host keep where they are from.
A nested function that nothing around it calls is evaluated as well, since others are given it; one
for examples or batches is not. What only the first process does counts for each step where its
condition is in the loop that makes steps.
Datasets, collate functions and preprocessing work on the host and are left out, except for what
they do to the size of batches, and for copies from the device.

The score starts from the cost of the operator and counts the loops around it and from where the
function is reached (`call_graph.py`, `scoring.py`). `check` shows places from 20 points on as a
hint, from 40 as information, from 60 as a warning, and likely ones only where training or a
forward pass leads to them; `npulens shapes` lists all. The figures are
estimates, not measurements. Functions that only start-up or an evaluation reaches never come to
20 points, so `check` does not evaluate them; an editor does, after the others, for hints and the
list.

An editor also shows the shapes of names that depend on nothing, what functions take and what they
give (`named_shapes.py`). These are evaluated apart, when the findings are out, since no finding
rests on them. A size is called as the code calls it: `B` of `B, T = x.shape`, `n_head` of
`self.n_head`, the axes of einops. What is joined or computed with something unknown loses its
names, a name that comes to hold another size stands for none from there on (`issue` in
`shape_frames.py`), and what a function returns is read as its caller calls it
(`callee_symbols.py`).

Only functions that hold a word of some source, or call one of the module that does, are evaluated,
but for `npulens shapes`, which evaluates every function
(`evaluation_prefilter.py`). What functions of other modules return is a fact of the project; a call
of one is a source (`elsewhere.py`). Results are kept by function (`evaluations.py`), with places
from its first line (`span_remapping.py`); a node is looked up only in the text of the segment that
holds it (`reporting.py`).
"""
