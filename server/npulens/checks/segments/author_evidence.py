"""What the text of a module says about the intentions of its author, as far as rules need it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npulens.catalog.tables import OPTIMIZERS
from npulens.syntax.words import Words
from npulens.text.late_patterns import late

_CASTS = late(
    r"autocast|(?<![a-z])amp(?![a-z])|apex|[bf]p?16|half|float16|bfloat|mixed|precision"
    r"|accelerat(?!or)|(?-i:Accelerator)|deepspeed|lightning|fabric|scaler|trainer",
    re.IGNORECASE,
)
"""`torch.accelerator` says nothing of precision, `Accelerator` of Accelerate does."""
_RECURRENT = late(r"lstm|(?<![a-z])(?:bi)?(?:rnn|gru)(?![a-z.])", re.IGNORECASE)
_Alternatives = Mapping[str, re.Pattern[str]]
"""Expressions, each by what a text must have for it, which is found far sooner."""
_DEVICE: _Alternatives = {
    "npu": late(r"(?<![a-zA-Z])npu(?![a-z])"),
    "accelerator": late(r"\baccelerator\b"),
}
_COLLECTIVES = late(
    r"(?:init_process_group|DistributedDataParallel|FullyShardedDataParallel|\bDDP|\bFSDP)\("
)

_ACCELERATOR = late(
    r"\bdevice\b|accelerat|lightning|\bgpus?(?:_ids?)?\b|\blocal_rank\b", re.IGNORECASE
)
_CPU = late(r"(?<!map_location=)(?<!map_location = )(?<!default=)(?<!default = )[\"']cpu[\"']")
"""A device, and neither where a checkpoint is read to nor what an option is unless it is given."""
_SHARING = (
    *("FullyShardedDataParallel", "fully_shard", "ZeroRedundancyOptimizer"),
    *("parallelize_module", "DTensor", "distribute_tensor", "dist_autograd", "colossalai"),
)
"""Identifiers of what shares parameters out: they are found far sooner than by expression."""
_CAST_MODEL = (
    r"(?:model|net|module|unet|coder|transformer|policy|actor|critic|agent|backbone|head"
    r"|generator|discriminator|self|vae|former|bert|gpt|vit|\b[A-Z]\w*\([^()\n]*\))\w*(?:\[\w+\])?"
    r"(?:\.\w+\([^()\n]*\)){0,3}\."
)
"""What is cast is a model by its name, and no tensor of a batch or a sum of hits."""
_NOT_TO_BE_FUSED: _Alternatives = {
    "torch_npu.optim": late(r"torch_npu\.optim\s+import"),  # chosen; no fix writes this
    # They share parameters out; Energon is Megatron's loader and does not.
    "FSDP": late(r"\bFSDP"),
    "DistributedOptimizer": late(r"DistributedOptimizer"),
    "megatron": late(r"\bmegatron\b(?!\.energon)"),
    "distributed.rpc": late(r"distributed\.rpc"),
    "gradient_as_bucket_view": late(r"gradient_as_bucket_view\s*=\s*True"),
    ".data": late(r"(?<!self)(?<!config)(?<!cfg)(?<!args)(?<!opt)\.data\s*=(?!=)"),
    "add_param_group(": late(r"add_param_group\("),
    "sparse": late(r"\bsparse\s*=\s*(?!False\b|None\b)\w|sparse_(?:param|grad)"),
    "SparseAdam": late(r"SparseAdam"),
    ".step(": late(r"\.step\(\s*(?:closure|lambda)"),
    "deepspeed": late(
        r"(?:^[ \t]*(?:import|from)[ \t]+|\b)deepspeed"
        r"(?:[ \t]+import\b|\.initialize|\.zero|[ \t]*$)"
        r"|strategy\s*=\s*[\"']deepspeed",
        re.MULTILINE,
    ),
    "DeepSpeed": late(r"\bDeepSpeed\w*\("),
    ".bfloat16(": late(_CAST_MODEL + r"bfloat16\("),
    ".double(": late(_CAST_MODEL + r"double\("),
    "bfloat16": late(_CAST_MODEL + r"to\([^()\n]*bfloat16"),
    "float64": late(_CAST_MODEL + r"to\([^()\n]*float64"),
    "double": late(_CAST_MODEL + r"to\([^()\n]*double"),
    "torch.bfloat16": late(r"\b(?:torch_dtype|model_dtype)\s*=\s*torch\.bfloat16"),
    "set_default_dtype(": late(r"set_default_dtype\((?!\s*torch\.float(?:32)?\b)"),
    # It takes the CPU.
    "Fabric(": late(r"\bFabric\((?![^()]{0,300}\baccelerator\b)"),
    ".Trainer(": late(r"\b(?:pl|L)\.Trainer\((?![^()]{0,300}\baccelerator\b)"),
}
_RUNS = late(r"^(?:for|while|with|[\w.]+\()", re.MULTILINE)
"""A module does more than define something when it is imported."""
_OPTIMIZER_MADE = late(r"\boptim\.[A-Z]\w+\(")
_OF_A_MODEL = late(r"parameters\(|params?\b|\bModel|\bnn\.Module")
_OWN_DATASET = late(r"^class \w+\([^)\n]*Dataset[^)\n]*\):.*(?:\n(?:[ \t].*)?)*", re.MULTILINE)
_OWN_OPTIMIZER = late(r"^class \w+\([^)\n]*Optimizer[^)\n]*\):.*(?:\n(?:[ \t].*)?)*", re.MULTILINE)
_DATA_REPLACED = late(r"(?<!self)(?<!config)(?<!cfg)(?<!args)(?<!opt)\.data\s*=(?!=)")
_GENERATED = late(r"\btorch\.(?:rand|randn|randint|arange|linspace)\(")
_LOADED = late(r"open|read|load|path|root|file|PIL|json|token|decode", re.IGNORECASE)
_GRADIENTS_LOST: _Alternatives = {
    "set_to_none": late(r"set_to_none\s*=\s*(?!False\b)\w"),
    ".grad": late(r"\.grad\s*=\s*None"),
    ".zero_grad(": late(r"\b(?:\w*(?:model|net|module)\w*)\.zero_grad\("),
}
_STEPPED_BY_LIBRARY: _Alternatives = {
    "def configure_optimizers(self": late(r"\bdef configure_optimizers\(self\b"),
    "def create_optimizer(self": late(r"\bdef create_optimizer\(self\b"),
    "optimizers": late(r"\boptimizers\s*=\s*\("),
    ".optimizer": late(r"(?<!self)\.optimizer\s*=(?!=)"),
}
"""Lightning gives `step` a closure; Trainer of transformers has the model clear gradients."""
_STEPPED_HERE = late(r"automatic_optimization\s*=\s*False")
_SCALES = late(
    r"scaler|loss_?scal|scaled?_?loss|grad(?:ient)?s?_?scal|unscale|accelerat(?!or)|deepspeed"
    r"|lightning|fabric|(?<![a-z])apex|mmengine|colossal|megatron"
    r"|(?-i:Accelerator|TrainingArguments)",
    re.IGNORECASE,
)
"""Who scales the loss, or may do it."""
_AUTOCAST = late(r"(?<!\w)autocast(?!\w)(\([^()]{0,200}(?:\([^()]{0,200}\)[^()]{0,200}){0,5}\))?")
_CAST_ELSEWHERE = late(r"\w(?<!set_)(?<!is_)_?autocast|(?<!b)float16|(?<!b)fp16|(?<![a-z])half")
_IMPORT_LINE = late(r"^[ \t]*(?:from|import)\b.*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about a whole module that are read off its text.

    Attributes:
        is_script: It runs a backward pass and has a main program.
        names_device: It names CUDA or the NPU.
        trains_in_full_precision: It runs a backward pass, not only for tensors that are
            no model's parameters, and no word of it is about another precision, about a library
            that would see to it, or about recurrent layers, which gain nothing.
        requests_determinism: It requests deterministic algorithms.
        collectives_unordered: It requests deterministic algorithms and sets up distributed
            training, and nothing makes the communication deterministic.
        may_fuse_optimizer: It names an optimizer that has a fused form, runs on an accelerator as
            far as its text shows, and nothing in it says that parameters are moved, shared out,
            added later, sparse or of a type which a fused optimizer does not take.
        makes_optimizer_for_others: All of that but for the accelerator, and it is no script; it may
            train what others have moved there.
        clears_gradients: Gradients are cleared in it.
        loses_gradients: A fused optimizer would not notice that gradients are set to `None`, or
            that an optimizer which is defined here puts other tensors in the place of parameters.
        is_stepped_by_library: The optimizer is handed to a library that steps it.
        makes_data: A dataset of its own consists of generated numbers.
        casts_without_scaler: It runs a backward pass and names autocast, and no word of it is about
            scaling the loss, or about a library that would see to it.
        casts_to_bfloat16: It makes a gradient scaler, and casts to bfloat16 and nothing else.
    """

    is_script: bool = False
    names_device: bool = False
    trains_in_full_precision: bool = False
    requests_determinism: bool = False
    collectives_unordered: bool = False
    may_fuse_optimizer: bool = False
    makes_optimizer_for_others: bool = False
    clears_gradients: bool = False
    loses_gradients: bool = False
    is_stepped_by_library: bool = False
    makes_data: bool = False
    casts_without_scaler: bool = False
    casts_to_bfloat16: bool = False


NO_EVIDENCE = Evidence()


def evidence_of(segments: Sequence[Words], words: frozenset[str]) -> Evidence:
    """The evidence of a module: `words` are the `CHECKED_WORDS` in its segments."""
    if not words:
        return NO_EVIDENCE
    texts = [segment.text for segment in segments]
    names = [segment.joined for segment in segments]
    names_device = any("cuda" in each for each in names) or _any_of(_DEVICE, names)
    trains = "backward" in words and names_device
    is_deterministic = "use_deterministic_algorithms" in words
    may_fuse_somewhere = (
        not words.isdisjoint(OPTIMIZERS)
        and (names_device or not _is_for_host(texts))
        and not any(word in each for word in _SHARING for each in names)
        and not _any_of(_NOT_TO_BE_FUSED, [_without_own_optimizers(text) for text in texts])
    )
    may_fuse_optimizer = may_fuse_somewhere and (names_device or _any(_ACCELERATOR, names))
    is_for_others = may_fuse_somewhere and not may_fuse_optimizer
    return Evidence(
        is_script="backward" in words and any("__main__" in text for text in texts),
        names_device=names_device,
        trains_in_full_precision=trains
        and not _any(_CASTS, names)
        and not _any(_RECURRENT, texts)
        and (not _any(_OPTIMIZER_MADE, texts) or _any(_OF_A_MODEL, texts)),
        requests_determinism=is_deterministic,
        collectives_unordered=is_deterministic
        and _any(_COLLECTIVES, texts)
        and not any("HCCL_DETERMINISTIC" in text for text in texts),
        may_fuse_optimizer=may_fuse_optimizer,
        makes_optimizer_for_others=is_for_others
        and not any("__main__" in text for text in texts)
        and not ("backward" in words and _any(_RUNS, texts)),
        clears_gradients=may_fuse_somewhere and any(".zero_grad(" in text for text in texts),
        loses_gradients=may_fuse_somewhere
        and (
            _any_of(_GRADIENTS_LOST, texts)
            or _any(_DATA_REPLACED, [t for t in texts if ".data" in t])
        ),
        is_stepped_by_library=may_fuse_somewhere
        and _any_of(_STEPPED_BY_LIBRARY, texts)
        and not _any(_STEPPED_HERE, texts),
        makes_data="backward" in words and any(_makes_data(text) for text in texts),
        casts_without_scaler=trains
        and any("autocast" in each for each in names)
        and not _any(_SCALES, names),
        casts_to_bfloat16="GradScaler" in words and _casts_to_bfloat16(texts, names),
    )


def _without_data(definition: re.Match[str]) -> str:
    """An optimizer that wraps another, as SAM does, replaces tensors where it is used only."""
    return _DATA_REPLACED.sub(".data,", definition[0])


def _is_for_host(texts: Sequence[str]) -> bool:
    """Whether a module names the CPU as its device, and not as one of several."""
    return _any(_CPU, texts) and not any("cuda" in text for text in texts)


def _makes_data(text: str) -> bool:
    classes = _OWN_DATASET.findall(text) if "Dataset" in text else []
    return any(_GENERATED.search(c) and not _LOADED.search(c) for c in classes)


def _casts_to_bfloat16(texts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether each `autocast` in some texts, apart from imports, is one to bfloat16."""
    if not any("bfloat16" in each for each in names) or _any(_CAST_ELSEWHERE, names):
        return False
    casts = [cast for text in texts for cast in _AUTOCAST.findall(_IMPORT_LINE.sub("", text))]
    return bool(casts) and all("bfloat16" in cast for cast in casts)


def _without_own_optimizers(text: str) -> str:
    return _OWN_OPTIMIZER.sub(_without_data, text) if "Optimizer" in text else text


def _any_of(alternatives: _Alternatives, texts: Sequence[str]) -> bool:
    return any(
        word in text and pattern.search(text) is not None
        for text in texts
        for word, pattern in alternatives.items()
    )


def _any(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return any(pattern.search(text) is not None for text in texts)
