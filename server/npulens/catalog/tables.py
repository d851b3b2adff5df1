"""The catalogue: every rule and every table of symbols, ready to look things up in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain

from npulens.catalog.entry_names import EntryNames
from npulens.catalog.model import (
    Applicability,
    LocalizedText,
    PatternSource,
    Rule,
    Severity,
    TorchVersion,
)
from npulens.catalog.native_tables import NativeTable
from npulens.catalog.npu_tables import NO_NPU_TABLE, NpuTable
from npulens.catalog.rule_properties import WITH_OTHER_WAYS, LibraryState, SettledBy
from npulens.catalog.suite_tables import SuiteTable
from npulens.catalog.verdict_tables import NO_CONDITIONS, ConditionTable


class Meaning(str, Enum):
    """What a string argument represents."""

    DEVICE = "device"
    BACKEND = "backend"
    ACCELERATOR = "accelerator"


class WithoutDevice(str, Enum):
    """What a callable does if it is given no device.

    Attributes:
        CUDA: It uses CUDA, and fails without.
        CHOSEN: It looks for CUDA, and uses the CPU if there is none.
    """

    CUDA = "cuda"
    CHOSEN = "chosen"


OPTIMIZERS = frozenset(
    {"SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "RMSpropTF", "AdamP", "BertAdam"}
    | {"create_optimizer", "create_optimizer_v2"}
)
"""The last names of optimizers that have a fused form for the NPU, and of what makes them."""
CHECKED_WORDS = OPTIMIZERS | frozenset(
    {"backward", "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "GradScaler"}
    | {"set_default_dtype", "set_default_tensor_type", "set_float32_matmul_precision"}
    | {"use_deterministic_algorithms", "device_ids", "allow_tf32"}
    | {"all_reduce", "reduce_scatter", "reduce_scatter_tensor"}
    | {"nvcc", "nsys", "ncu", "nvprof", "gpustat", "trtexec"}
)
"""Words of code that no table lists and a check looks at all the same."""


@dataclass(frozen=True, slots=True)
class SymbolEntry:
    """What is known of one qualified name, such as `torch.cuda.synchronize`.

    Attributes:
        rule: The rule a reference to it breaks.
        becomes: The qualified name to use instead, with `()` behind it where an attribute becomes a
            call, or `None` where there is none or nothing needs to change.
        fix: How safe putting `becomes` in its place is; `manual` where there is no edit.
        since: First torch_npu release that has `becomes`, or `None` for all supported ones.
        shimmed: `torch_npu.contrib.transfer_to_npu` makes the CUDA name work.
        severity: Overrides the rule's, or `None`.
        note: What else is true of this very symbol, or `None`.
        source: Where the fact was read.
    """

    symbol: str
    rule: Rule
    becomes: str | None
    fix: Applicability
    since: TorchVersion | None
    shimmed: bool
    severity: Severity | None
    note: LocalizedText | None
    source: str


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """A method or property known by its name alone, on a receiver whose type need not be known.

    Attributes:
        name: The attribute, such as `cuda`.
        owners: Qualified names of the classes that have it, for the message.
        called: Only a call of it counts, not a mere reference.
    """

    name: str
    owners: tuple[str, ...]
    called: bool
    rule: Rule
    becomes: str | None
    fix: Applicability
    shimmed: bool
    note: LocalizedText | None
    source: str

    @property
    def is_of_library(self) -> bool:
        """Whether it is a method of another library than PyTorch, with arguments of its own."""
        return not any(owner.startswith("torch.") for owner in self.owners)


@dataclass(frozen=True, slots=True)
class ParameterEntry:
    """A parameter of a known callable whose string value names a device, backend or accelerator.

    Attributes:
        callable: Qualified name, or `.name` for a method of any receiver.
        position: Its 0-based place among the positional arguments, or `None` if keyword-only.
        fix: `manual` if the callable accepts nothing for the NPU.
        without: What the callable does if it is not given, `None` if that works.
    """

    callable: str
    parameter: str
    position: int | None
    meaning: Meaning
    rule: Rule
    shimmed: bool
    note: LocalizedText | None
    source: str
    fix: Applicability = Applicability.SAFE
    without: WithoutDevice | None = None


Constant = bool | int | float | str
"""A value that may be written for an argument."""


@dataclass(frozen=True, slots=True)
class CallEntry:
    """A callable that another one replaces, if the arguments of the call allow it.

    Attributes:
        callable: The qualified name of what is called.
        becomes: The qualified name of what replaces it.
        fix: `manual` if the two only do much the same.
        positions: Parameters that both have, in the order of both.
        keywords: Parameters that both have, but not at the same place.
        drops: Parameters that only `callable` has and that do not change what comes out.
        same: Parameters that only `callable` has, and the value with which both do the same.
        when: Those of them that have to be written in the call.
        adds: Parameters with another default, and the default of `callable` as code.
        neutral: It is for the device-agnostic style, in place of those that name the NPU.
    """

    callable: str
    rule: Rule
    becomes: str
    fix: Applicability
    positions: tuple[str, ...]
    keywords: tuple[str, ...]
    drops: tuple[str, ...]
    same: Mapping[str, Constant]
    when: Mapping[str, Constant]
    adds: Mapping[str, Constant]
    neutral: bool
    note: LocalizedText | None
    source: str


@dataclass(frozen=True, slots=True)
class EnvironmentEntry:
    """An environment variable of the CUDA world.

    Attributes:
        read: Whether a program breaks that reads it, since nobody sets it where there is no GPU.
        prefix: `variable` is how the names begin of all that have no entry of their own.
    """

    variable: str
    rule: Rule
    becomes: str | None
    fix: Applicability
    note: LocalizedText | None
    source: str
    severity: Severity | None = None
    read: bool = False
    prefix: bool = False


class When(str, Enum):
    """Which calls of an operator have a shape that depends on data, or wait for the device."""

    ALWAYS = "always"
    ONE_ARGUMENT = "one-argument"
    TENSOR_REPEATS = "tensor-repeats"
    WITHOUT_CLASSES = "without-classes"
    ERROR_IF_NONFINITE = "error-if-nonfinite"
    WITHOUT_SIZE = "without-size"


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """An operator whose shape depends on data, or that the host waits for.

    Attributes:
        operator: The qualified name of the function, or of the method of `torch.Tensor`.
        method: Tensors have a method of that name too, or only that.
        gives: What comes out, by a name of `shapes/operators/shape_sources.py`.
        waits: The host has to know something about values before it goes on.
        cost: How much a call hurts in a step, from 0 to 100; our own estimate.
        advice: What to use instead.
        size: The place of the argument that gives the size which is read from values without it.
    """

    operator: str
    rule: Rule
    gives: str
    cost: int
    advice: LocalizedText
    source: str
    method: bool = False
    waits: bool = True
    when: When = When.ALWAYS
    size: int = 0


class Place(str, Enum):
    """A kind of place in launch files and configuration."""

    OPTION = "option"
    SCHEDULER = "scheduler"
    CONTAINER = "container"
    COMMAND = "command"
    MODULE = "module"
    PATH = "path"
    IMAGE = "image"
    PACKAGE = "package"
    EXTRA = "extra"
    """An extra of a requested package."""
    INDEX = "index"
    KEY = "key"
    SETTING = "setting"
    """A key in a file, an option of a command, or one that is on by being there."""
    VARIABLE = "variable"
    TOGETHER = "together"
    """A variable with another one that is set beside it."""
    TOOL = "tool"
    """A word or an option of one tool's command line: `msprobe compare -b`."""
    TOOL_KEY = "tool-key"
    """A key in the settings of one tool: `msprobe tensor.list`."""


class Choice(str, Enum):
    """What a setting chooses that a program can find out itself."""

    DEVICE = "device"
    BACKEND = "backend"
    ACCELERATOR = "accelerator"
    """Of Lightning."""


@dataclass(frozen=True, slots=True)
class LaunchEntry:
    """What scripts, Dockerfiles and configuration say to run on GPUs.

    Attributes:
        place: Where it is.
        name: Regular expression for the whole name of the option, key, command and so on; those
            of options and keys have `_` for `-`, small letters, and what is before a dot left out.
        value: Regular expression for the whole value, or `None` if the name is enough.
        becomes: What to write for the group of `value` or, without one, for the name; or `None`.
        evidence: Words of which one must be in the text for this to be meant.
        unless: Words of which none may be in the text.
        beside: Regular expression for `name=value` of what is set or given beside it; one has to
            match.
        without: The same, of which none may match.
        releases: Those of a package that go with the NPU; a version that admits one is right.
        any_device: What to write in the place of `becomes` for all devices. Where that is what is
            written, nothing has to change for them.
        chooses: What it chooses, if a program can find that out itself.
    """

    place: Place
    name: str
    value: str | None
    rule: Rule
    becomes: str | None
    fix: Applicability
    severity: Severity | None
    note: LocalizedText | None
    evidence: tuple[str, ...]
    unless: tuple[str, ...]
    beside: str | None
    without: str | None
    releases: tuple[str, ...]
    any_device: str | None
    chooses: Choice | None
    source: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that is known; built once by `load_catalogue` and never changed."""

    rules: Mapping[str, Rule]
    """By code."""
    symbols: Mapping[str, SymbolEntry]
    """By qualified name."""
    methods: Mapping[str, MethodEntry]
    """By attribute name."""
    parameters: Mapping[str, tuple[ParameterEntry, ...]]
    """By qualified name of the callable, or `.name`."""
    environment: Mapping[str, EnvironmentEntry]
    """By variable name."""
    native: NativeTable = field(default_factory=NativeTable)
    """PyTorch's own APIs."""
    libraries: Mapping[str, SymbolEntry] = field(default_factory=dict)
    """Other packages and what is in them, by qualified name."""
    calls: Mapping[str, tuple[CallEntry, ...]] = field(default_factory=dict)
    """By qualified name of the callable, in the order in which they are tried."""
    plain: frozenset[str] = frozenset()
    """What is in such a package and needs nothing of it that the NPU lacks."""
    packages: frozenset[str] = frozenset()
    """By which names such packages are requested, as far as these are plain words."""
    launch: Mapping[Place, tuple[LaunchEntry, ...]] = field(default_factory=dict)
    """By the place of the entry."""
    patterns: tuple[PatternSource, ...] = ()
    """Computations that NPU operators replace."""
    operators: Mapping[str, OperatorEntry] = field(default_factory=dict)
    """What has shapes that depend on data or waits for the device, by qualified name."""
    conditions: ConditionTable = NO_CONDITIONS
    """What conditions come to on an NPU."""
    npu: NpuTable = NO_NPU_TABLE
    """What the software of the NPU has."""
    suite: SuiteTable = field(default_factory=SuiteTable)
    """Options of the training suites."""
    missing_libraries: frozenset[str] = field(init=False)
    """The roots of packages that cannot be imported where there is no CUDA."""
    optional_libraries: frozenset[str] = field(init=False)
    """These, and those with a build for the NPU, or without any statement on one.

    By the names of their requests, too: `is_flash_linear_attention_available()` asks for `fla`.
    """
    library_words: frozenset[str] = field(init=False)
    """The roots of all packages of `libraries`, and the names of their methods."""
    words_with_other_way: frozenset[str] = field(init=False)
    """The last parts of `symbols` that are missing, of whose absence code may take notice."""
    triggers: frozenset[str] = field(init=False)
    """Words of which at least one is in every statement that can break a rule."""
    parts: frozenset[str] = field(init=False)
    """Those triggers that matter only as part of a qualified name: behind a dot, or imported."""

    computing: frozenset[str] = field(init=False)
    """Those triggers that are PyTorch's own APIs alone, whose results concern no rule."""

    called_names: frozenset[str] = field(init=False)
    """The last parts of the names in `calls`."""

    lacking_names: frozenset[str] = field(init=False)
    """The last parts of the names in `symbols` that have no counterpart."""

    switch_modules: Mapping[str, SymbolEntry] = field(init=False)
    """Modules that hold switches of CUDA libraries, each with a switch of it."""

    counterparts: Mapping[str, str] = field(init=False)
    """From names under `torch.npu` back to those under `torch.cuda`."""

    launch_names: Mapping[Place, EntryNames[LaunchEntry]] = field(init=False, compare=False)
    """The entries of `launch`, to be looked up by what they are about."""

    tensor_methods: Mapping[str, OperatorEntry] = field(init=False, compare=False)
    """The entries of `operators` that are methods of tensors, by the names of these."""

    library_operators: Mapping[str, tuple[str, ...]] = field(init=False, compare=False)
    """What follows a module or package in names of `operators` that are none of PyTorch."""

    choosing: Mapping[str, Sequence[ParameterEntry]] = field(init=False)
    """Parameters without which libraries choose a device, by the last names of callables."""

    _by_name: Mapping[str, Rule] = field(init=False)

    _prefixes: tuple[EnvironmentEntry, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = frozenset(name.rpartition(".")[2] for name in self.calls)
        object.__setattr__(self, "called_names", names)
        lacking = (name for name, entry in self.symbols.items() if entry.becomes is None)
        lacking_names = frozenset(name.rpartition(".")[2] for name in lacking)
        object.__setattr__(self, "lacking_names", lacking_names)
        switches = (entry for entry in self.symbols.values() if entry.rule.family == "layout")
        of_modules = {entry.symbol.rpartition(".")[0]: entry for entry in switches}
        of_modules = {name: entry for name, entry in of_modules.items() if "cud" in name}
        object.__setattr__(self, "switch_modules", of_modules)
        named = ((name.rpartition(".")[2], entry) for name, entry in self.operators.items())
        methods = {name: entry for name, entry in named if entry.method}
        object.__setattr__(self, "tensor_methods", methods)
        object.__setattr__(self, "library_operators", _below(self.operators))
        words = {"cuda", "nccl", "npu", "torch_npu", *self.methods, *self.environment}
        words |= CHECKED_WORDS
        words |= self.called_names
        words |= self.npu.roots - {"torch"}
        by_name = {place: EntryNames(entries) for place, entries in self.launch.items()}
        object.__setattr__(self, "launch_names", by_name)
        variables = (entry.name for entry in self.launch.get(Place.VARIABLE, ()))
        words.update(name for name in variables if name.isidentifier())
        words.update(_OTHER_WORDS)
        of_names = {name: _trigger(name) for name in self.symbols}
        of_names |= {n: _library_trigger(e, self.libraries) for n, e in self.libraries.items()}
        of_names |= {p.callable: p.callable.partition(".")[0] for p in self._of_accelerators()}
        words.update(word for name, word in of_names.items() if name.partition(".")[0] == word)
        parts = {word for word in self.native.triggers if not word.startswith(".")}
        entries = chain.from_iterable(self.parameters.values())
        choosing: dict[str, list[ParameterEntry]] = {}
        for entry in entries:
            if entry.without is not None:
                choosing.setdefault(entry.callable.rpartition(".")[2], []).append(entry)
        object.__setattr__(self, "choosing", choosing)
        parts = (parts | {*of_names.values()} | choosing.keys() | _OTHER_PARTS) - words
        object.__setattr__(self, "parts", frozenset(parts))
        computing = self.native.triggers - words - {*of_names.values()}
        object.__setattr__(self, "computing", frozenset(computing))
        object.__setattr__(self, "triggers", frozenset(words | parts | self.native.triggers))
        missing = (
            name
            for name, entry in self.libraries.items()
            if "." not in name
            and entry.rule.library is LibraryState.ABSENT
            and entry.severity is None
        )
        object.__setattr__(self, "missing_libraries", frozenset(missing))
        optional = (n for n, e in self.libraries.items() if e.rule.library in _OPTIONAL)
        roots = frozenset(name for name in optional if "." not in name)
        requested = (name.replace("-", "_") for name in self.packages)
        object.__setattr__(self, "optional_libraries", roots.union(requested))
        of_methods = (name for name, method in self.methods.items() if method.is_of_library)
        all_roots = (name.partition(".")[0] for name in self.libraries)
        object.__setattr__(self, "library_words", frozenset([*all_roots, *of_methods]))
        gone = (e for e in self.symbols.values() if SettledBy.OTHER_WAY in e.rule.settled_by)
        last_words = frozenset(entry.symbol.rpartition(".")[2] for entry in gone)
        object.__setattr__(self, "words_with_other_way", last_words)
        back = {e.becomes: e.symbol for e in self.symbols.values() if e.becomes is not None}
        object.__setattr__(self, "counterparts", back)
        prefixes = tuple(entry for entry in self.environment.values() if entry.prefix)
        object.__setattr__(self, "_prefixes", prefixes)
        object.__setattr__(self, "_by_name", {r.name: r for r in self.rules.values()})

    def _of_accelerators(self) -> Iterator[ParameterEntry]:
        """Parameters whose values, such as `"gpu"`, occur in code of all kinds."""
        for entries in self.parameters.values():
            yield from (entry for entry in entries if entry.meaning is Meaning.ACCELERATOR)

    def variable(self, name: str) -> EnvironmentEntry | None:
        """What is known of an environment variable: its own entry, or that of its prefix."""
        entry = self.environment.get(name)
        if entry is None:
            prefix = next((p for p in self._prefixes if name.startswith(p.variable)), None)
            entry = None if prefix is None else replace(prefix, variable=name)
        return entry

    def rule_named(self, name: str) -> Rule | None:
        """The rule with this code or kebab-case name."""
        return self.rules.get(name) or self._by_name.get(name)

    def required(self, name: str) -> Rule:
        """The rule of this name, one that is shipped and so always there."""
        return self._by_name[name]


_OPTIONAL = WITH_OTHER_WAYS | {LibraryState.ABSENT}
"""What rules say of libraries that code may do without."""
_OTHER_WORDS = (
    *("backward", "DataLoader", "detect_anomaly", "set_detect_anomaly", "set_compile_mode"),
    *("nvidia", "SBATCH", "srun", "gres", "submitit", "torchrun", "slurm_", "gpus_per_node"),
    *("slurm_constraint", "slurm_gres", "slurm_partition", "slurm_additional_parameters"),
    *("sbatch", "bsub", "BSUB", "j_exclusive", "gmodel", "gmem"),
    *("install_requires", "extras_require", "setup_requires", "INSTALL_REQUIRES"),
    *("requirements", "REQUIREMENTS", "requires", "extras", "dependencies", "pip", "conda"),
    *("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlShutdown"),
    *("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetName"),
    *("num_gpus", "num_gpus_per_worker", "num_gpus_per_env_runner", "resources_per_trial"),
    *("accelerator", "accelerator_type", "float64", "double", "cdouble", "complex128"),
    *("flash_attn", "use_flash_attn", "enable_flash_attn", "flash_attention"),
    *("use_flash_attention", "enable_flash_attention", "use_xformers", "enable_xformers"),
    *("enable_xformers_memory_efficient_attention", "use_memory_efficient_attention_xformers"),
    *("adamw_bnb_8bit", "adamw_8bit", "lion_8bit", "ademamix_8bit", "rmsprop_bnb_8bit"),
    *("paged_adamw_8bit", "paged_adamw_32bit", "paged_lion_8bit", "paged_lion_32bit"),
    *("lion_32bit", "OptimizerNames"),
    *("adamw_apex_fused", "use_8bit_adam", "load_8bit", "tf32"),
    *("tree_method", "gpu_predictor", "task_type"),
    *(
        "LGBMClassifier",
        "LGBMRegressor",
        "LGBMRanker",
        "num_leaves",
        "index_type",
        "gpus",
        "use_cuda",
        "machine_type",
        "instance_type",
        "accelerator_type",
    ),
    *("zero_quantized_weights", "zero_quantized_gradients"),
    *("CUDA", "ShardedGradScaler", "environ", "putenv", "init_method", "__global__"),
)
"""What advice on speed is about, see `checks/python/launching/performance.py`; `nvidia-smi` and
scripts for a scheduler; what a `setup.py` requires; what Ray and Lightning get;
double precision; settings by their names, or the values of those with common ones; the text of
an error, the scaler of FSDP, and where variables of the NPU are set."""

_OTHER_PARTS = frozenset({"load"})
"""Last parts of names that a check looks at and no table lists: `torch.load`."""


def _library_trigger(entry: SymbolEntry, libraries: Mapping[str, SymbolEntry]) -> str:
    """The name of a library; of one that runs on the NPU otherwise, that of the part."""
    root = entry.symbol.partition(".")[0]
    if root in libraries:
        return root
    return (
        entry.symbol.rpartition(".")[2] if entry.rule.family == "fused" else _trigger(entry.symbol)
    )


_COMMON = frozenset({"torch", "utils", "distributed"})


def _trigger(symbol: str) -> str:
    """The longest word of a qualified name, which is least likely to occur in other code."""
    parts = [part for part in symbol.split(".") if part not in _COMMON] or [symbol]
    if parts[0] == "apex":
        return parts[0]  # its names are common words, and the import has to be there
    rare = [word for word in ("cuda", "NCCL") if word in parts]
    return rare[0] if rare else max(parts, key=len)


def _below(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What follows each module or package in qualified names that are none of PyTorch."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        parts = name.split(".")
        if parts[0] != "torch":
            for length in range(1, len(parts)):
                module, rest = ".".join(parts[:length]), ".".join(parts[length:])
                found[module] = (*found.get(module, ()), rest)
    return found
