"""What the files of a project say together, so that one can be judged with what counts for it.

A project is what its marker (`pyproject.toml`, `setup.py`, `.git`) is in, whichever of its files
were named (`own_modules.py`, `extent.py`). `project_facts.py` answers all questions, each of which
has a file; what is known of single modules comes from `workspace/index/`. `file_context.py` looks
up on another thread what a file needs to know of the disk, when it is opened or saved, never for a
change of a text. Where a saved file changes what is known of the project, the other open documents
are analysed again.

Of members that modules import from each other: what functions return (`returned_shapes.py`:
functions that others import are evaluated once, from the part of their module that they need);
definitions that compute something with tensors, as text (`computations.py`);
classes with methods that tensors have, too (`tensor_method_overrides.py`: `batch.cuda()` stays
where `Batch` moves itself); the activation that configurations name (`configured.py`); functions
that say which device is used (`device_functions.py`); classes that keep what their methods are
given (`keepers.py`); names of libraries (`reexported_libraries.py`). Scopes see these as if the
module had imported the library itself, so no check knows of it.

Of CUDA code (`extension_facts.py`): what C++ sources bind for Python; which modules are built of it
and under which names they are imported (`built_extensions.py`, `extension_names.py`,
`foreign_extensions.py`); what is built for the NPU already (`npu_builders.py`); modules and kernels
that a project does without (`optional_modules.py`, `optional_kernels.py`). Of whole files: modules
that nothing imports, functions that nothing names and optimizers that nothing steps
(`unused_modules.py`, `unused.py`, `unstepped.py`); files for CUDA with one for the NPU beside them
(`counterparts.py`); whether the project trains nothing (`inference_only.py`); scripts
that name no device, with the modules that only these import (`on_host.py`).

Whether `transfer_to_npu` is in force is a matter of the whole process: where a file of the
project names the shim, imports are followed from the scripts on, in their order (`shim.py`). A
file runs under the shim if a script that imports it leads there and no script without it does.
"""
