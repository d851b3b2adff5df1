"""What is to be known of a project before its files are checked."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from npulens.catalog.project_model import ModuleMembers, ProjectFacts, UnusedFacts
from npulens.catalog.tables import Catalogue
from npulens.workspace.index.contents import Contents
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.project.computations import computations
from npulens.workspace.project.configured import configured_activations
from npulens.workspace.project.counterparts import with_counterparts
from npulens.workspace.project.device_functions import device_functions
from npulens.workspace.project.extension_facts import extension_facts
from npulens.workspace.project.inference_only import only_infers
from npulens.workspace.project.keepers import keepers
from npulens.workspace.project.on_host import modules_on_host
from npulens.workspace.project.opened_groups import opens_groups
from npulens.workspace.project.own_modules import own_modules
from npulens.workspace.project.reexported_libraries import reexported_libraries
from npulens.workspace.project.returned_shapes import returned_shapes
from npulens.workspace.project.tensor_method_overrides import tensor_method_overrides
from npulens.workspace.project.unstepped import unstepped_optimizers
from npulens.workspace.project.unused import unused_definitions, unused_functions
from npulens.workspace.project.unused_modules import unused_modules


def project_facts(
    files: Sequence[Path],
    folders: Iterable[Path],
    catalogue: Catalogue,
    contents: Contents | None = None,
    memo: FactMemo | None = None,
) -> ProjectFacts:
    """Read what is to be known of a project before its files are checked.

    Args:
        files: All files of it that are checked, C++ and CUDA sources among them.
        folders: The folders that the user named.
        catalogue: Says which names of modules matter.
        contents: What was read of the files already.
        memo: What was known of contents before, with the same catalogue and the same npulens.
    """
    contents, memo = contents or Contents(), memo or FactMemo()
    folders = list(folders)
    own = frozenset(own_modules(files, folders, catalogue))
    modules = contents.modules(files)
    extensions, optional = extension_facts(files, modules, catalogue, contents, memo)
    unused = unused_definitions(files, folders, contents, memo)
    apart = frozenset(name for name in unused if name.startswith("_") or name[0].isupper())
    unused_facts = UnusedFacts(
        apart | unused_functions(modules, folders, memo),
        unused - apart,
        unused_modules(modules, files, folders, contents, memo),
        unstepped_optimizers(modules, folders, memo),
    )
    members = ModuleMembers(
        returned_shapes(modules, catalogue, memo),
        tensor_method_overrides(modules, catalogue, memo),
        reexported_libraries(modules, memo, catalogue.missing_libraries - own),
        configured_activations(modules, memo),
        device_functions(modules, memo),
        computations(modules, catalogue, memo),
        keepers(modules, memo),
    )
    return ProjectFacts(
        own_modules=own,
        with_counterparts=with_counterparts(files),
        extensions=extensions,
        optional=optional,
        unused=unused_facts,
        members=members,
        names_cuda=any(b"cuda" in content.data for content in modules.values()),
        opens_groups=opens_groups(modules),
        only_infers=only_infers(modules, files, folders, contents, memo),
        on_host=modules_on_host(modules, files, folders, contents, memo),
    )
