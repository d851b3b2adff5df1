"""What a file cannot know of its project: gathered once, before the files are checked.

Names of other modules have two parts before what is known of them: the path of the module without
its ending, and the name.
"""

from dataclasses import dataclass
from typing import NamedTuple


class LibraryName(NamedTuple):
    """A name of a module of the project that represents a module of a library.

    Attributes:
        qualified: What it represents, `torch.nn`.
        is_public: `from module import *` takes it.
    """

    qualified: str
    is_public: bool

    @property
    def is_of_pytorch(self) -> bool:
        """It represents a module of PyTorch."""
        return self.qualified.partition(".")[0] == "torch"


class ExtensionName(NamedTuple):
    """A module that the project builds of CUDA code.

    Attributes:
        module: Its name as the build has it, with that of its package: `pack._C`.
        build: The path of the file that builds it.
        line: Where in that file.
        is_loaded: It is built when the program runs, and only known by what `load` gives.
    """

    module: str
    build: str
    line: int
    is_loaded: bool


class ReturnedShape(NamedTuple):
    """What a function returns, as far as its shape depends on data.

    See `shapes/evaluation/elsewhere.py`.

    Attributes:
        kind: `tensor`, `number`, `items`, or empty for what does not depend on data.
        dims: Of a tensor the first dimensions: a number, `?` if it is not known, or empty if it
            depends on data. Of a list the length.
        is_open: There may be more dimensions.
        depends: It depends on data which dimensions there are, or a dimension behind those.
        element: The type of the elements of a tensor, empty if it is not known.
        parts: Of a tuple its elements; of a list one of them.
        synchronizes: The function waits for the device.
        unless: Parameters, by place and name; where one of them is given, such as the length of a
            mask, nothing depends on data.
    """

    kind: str = ""
    dims: tuple[str, ...] = ()
    is_open: bool = False
    depends: bool = False
    element: str = ""
    parts: "tuple[ReturnedShape, ...]" = ()
    synchronizes: bool = False
    unless: tuple[tuple[int, str], ...] = ()


class KeptArguments(NamedTuple):
    """What a method keeps of its arguments in attributes, as they are or added up.

    Attributes:
        method: Its name.
        parameters: Those that can be given by place, without `self`.
        kept: Attributes, each with the parameter that it rests on. What the method has read of a
            tensor is none any more, so it is left out.
    """

    method: str
    parameters: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]


class Keeper(NamedTuple):
    """A class that keeps something of what its methods are given, such as a meter of losses.

    See `workspace/project/keepers.py`.
    """

    name: str
    methods: tuple[KeptArguments, ...]


@dataclass(frozen=True, slots=True)
class ExtensionFacts:
    """Extension modules of CUDA code: what the project builds, and what it takes from elsewhere.

    Attributes:
        operators: Operators that CUDA sources bind for Python, each as the last name of its
            extension module and its own name; the module is empty where nobody says its name.
        registered: Those that they register with PyTorch, as `namespace.name`.
        names: The modules themselves, by the package or module that they are taken from.
        foreign: Modules from elsewhere that are for CUDA by their name.
        likely: Modules from elsewhere that are compiled, by their name.
        beside_cuda: Paths of C++ sources that are compiled together with CUDA files.
        settled_sources: Paths of C++ and CUDA sources of which nothing is reported: a builder for
            the NPU replaces them, or another copy of them is reported.
        is_for_host: There are C++ sources, and none of them is for CUDA.
    """

    operators: frozenset[tuple[str, str]] = frozenset()
    registered: frozenset[str] = frozenset()
    names: frozenset[tuple[str, str, ExtensionName]] = frozenset()
    foreign: frozenset[str] = frozenset()
    likely: frozenset[str] = frozenset()
    beside_cuda: frozenset[str] = frozenset()
    settled_sources: frozenset[str] = frozenset()
    is_for_host: bool = False


@dataclass(frozen=True, slots=True)
class OptionalFacts:
    """What the project does without where a library or an extension is missing.

    Attributes:
        modules: Paths of modules that are imported only where the libraries that they need are
            there, and of build files of nothing but such extensions.
        imports: Paths of modules that do without an extension, each with the last part of its name.
    """

    modules: frozenset[str] = frozenset()
    imports: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class UnusedFacts:
    """What nothing of the project uses.

    Attributes:
        names: Classes and private functions that nothing names, or only each other.
        functions: Other functions and methods of which that is true.
        modules: Paths of modules that only define something, and that nothing names.
        optimizers: Attributes of `self` that hold an optimizer which nothing steps.
    """

    names: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    optimizers: frozenset[str] = frozenset()


class Computation(NamedTuple):
    """A function or class of a module that computes something.

    Attributes:
        path: The file of its module.
        name: Its name there.
        source: Of the module what it needs, and other computations of it beside that.
    """

    path: str
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class ModuleMembers:
    """What is known of members of the project's modules, for those who import them.

    Attributes:
        returned_shapes: Functions whose results have shapes that depend on data.
        method_overrides: Classes with methods that tensors have, too, and the names of these
            methods; functions with such a name, each with that name and brackets.
        libraries: Names that represent modules of libraries.
        activations: Classes of configurations that name activations by default: the attributes
            with the names.
        device_functions: Functions that say which device is used, and know the NPU.
        computations: Functions and classes that compute something with tensors.
        keepers: Classes that keep what their methods are given.
    """

    returned_shapes: frozenset[tuple[str, str, ReturnedShape]] = frozenset()
    method_overrides: frozenset[tuple[str, str, frozenset[str]]] = frozenset()
    libraries: frozenset[tuple[str, str, LibraryName]] = frozenset()
    activations: frozenset[tuple[str, str, tuple[tuple[str, str], ...]]] = frozenset()
    device_functions: frozenset[tuple[str, str, bool]] = frozenset()
    computations: frozenset[tuple[str, str, Computation]] = frozenset()
    keepers: frozenset[tuple[str, str, Keeper]] = frozenset()


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """All that a file cannot know of its project.

    Attributes:
        root: The folder of the project: the role of a file follows from its path below that.
        own_modules: Top-level modules and packages of the project, which hide libraries of the
            same name.
        with_counterparts: Paths of files for CUDA that have one for the NPU beside them.
        extensions: Its CUDA code.
        optional: What it does without.
        unused: What it does not use.
        members: Names that its modules import from each other.
        names_cuda: A module of it names CUDA.
        opens_groups: A module of it makes process groups of what `distributed_backend` holds, and
            nothing in it maps the name of the backend.
        only_infers: It uses models and trains none, as far as its modules show.
        on_host: Paths of scripts that name no device, and of modules that only these import.
    """

    root: str = ""
    own_modules: frozenset[str] = frozenset()
    with_counterparts: frozenset[str] = frozenset()
    extensions: ExtensionFacts = ExtensionFacts()
    optional: OptionalFacts = OptionalFacts()
    unused: UnusedFacts = UnusedFacts()
    members: ModuleMembers = ModuleMembers()
    names_cuda: bool = False
    opens_groups: bool = False
    only_infers: bool = False
    on_host: frozenset[str] = frozenset()

    def place_of(self, path: str) -> str:
        """The path of a file within the project; as it is, if the file is not below the root."""
        path = path.replace("\\", "/")
        above = f"{self.root.rstrip('/')}/"
        return path.removeprefix(above) if self.root else path

    def absent(self, libraries: frozenset[str]) -> frozenset[str]:
        """What cannot be imported of some libraries, and what the project has from elsewhere."""
        return libraries - self.own_modules | self.extensions.foreign

    @property
    def words(self) -> frozenset[str]:
        """Words of which one is in every file that uses such an operator by its module."""
        extensions = self.extensions
        modules = {module for module, _ in extensions.operators if module}
        modules |= {name for _, name, _ in extensions.names}
        modules |= extensions.foreign | extensions.likely
        modules |= {n for _, n, known in self.members.libraries if not known.is_of_pytorch}
        return frozenset(modules | {name.partition(".")[0] for name in extensions.registered})
