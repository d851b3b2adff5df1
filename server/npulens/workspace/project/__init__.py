"""What the files of a project say together, so that one can be judged with what counts for it.

A project is what its marker (`pyproject.toml`, `setup.py`, `.git`) stands in, whichever of its
files are named (`extent.py`). `contents.py` reads each file once, `fact_memo.py` remembers the
answer to each question about one by content, and the cache keeps the answers in a `.facts` file.
What is asked about every file and answered by yes or no is kept in one answer for each content.
Editors keep a memo for each project; `file_context.py` looks up on another thread what a file needs
to know of the disk, when it is opened or saved, never for a change of a text.

The questions, each in a file: what functions return (`returned_shapes.py`: functions that others
import are evaluated once, from the part of their module that they need); classes with methods
that tensors have, too (`tensor_method_overrides.py`: `batch.cuda()` stays where `Batch` moves
itself); the activation that configurations name (`configured.py`); functions that say which device
is used (`device_functions.py`); names of libraries that modules re-export, also by a star
(`reexported_libraries.py`), and of the project (`re_exports.py`); modules that nothing imports and
functions that nothing names (`unused_modules.py`, `unused.py`); what C++ sources bind for Python
(`project_facts.py`); which modules are made of CUDA code and under which names they are imported
(`built_extensions.py`, `extension_names.py`); modules and kernels that a project can do without
(`optional_modules.py`, `optional_kernels.py`); files for CUDA with one for the NPU beside them
(`counterparts.py`). Scopes see re-exported names as if the module had imported the library itself,
so no check knows of it.

Whether `transfer_to_npu` is in force is a matter of the whole process: where a file of the
project names the shim, imports are followed from the scripts on, in their order (`shim.py`). A
file runs under the shim if a script that imports it leads there and no script without it does.
"""
