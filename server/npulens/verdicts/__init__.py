"""Where code runs, and why nothing is to be done about a place: nothing vanishes.

The visitor of `checks` goes everywhere and carries what settles the node it looks at.
`regions.py` says that of the parts of a statement. One evaluator (`conditions.py`, with the table
`rules/verdicts/conditions.json`) says what a condition comes to on an NPU once its own fixes are
made: true, false or unknown. It resolves what names mean; of names that mean nothing known it takes
only those of the NPU, of other makers and of places without NPUs. The `is_cuda` of a tensor is
unknown, since a tensor may still be on the host. How the parts of a condition are joined is in
one place (`answers.py`), also for parts that only names say something about: questions for a
library (`library_questions.py`), flags of an import (`optional_names.py`).

The evaluator answers for several worlds (`Known`): an NPU for regions; a step of a model on it
for shapes, where nothing is exported; a machine with two cards for the fix of `DataParallel`; and
one without the libraries that need a build for the NPU, which says what of a module is optional.

An arm for the NPU settles what is beside it only if it does the same to devices
(`evidence.py`): what is called of `torch.npu`, moved, wrapped, set or returned. What our own
fixes write is no evidence (`npu_words.py`). `kernels.py` notes conditions behind which CUDA code
of the project is built, imported or called: their fixes have to be read, or are taken away.

What settles a finding (`Settlement`: a reason of `rules/verdicts/reasons.json`, and the place
that decides) stays with it, and the ledger (`ledger.py`) keeps it. Reasons are worded only when
they are shown (`reason_wording.py`). What a reason settles that the configuration overrules
becomes a finding again (`overruling.py`).
"""
