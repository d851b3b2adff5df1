"""What an error means that ended a run or a test."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from npulens.workspace.verifying.outcomes import Outcome, Verdict
from npulens.workspace.verifying.verified_run import RunResult

_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_CUDA_WORDS = ("cuda", "nvidia", "nccl", "nvcc", "cudnn")
_NPU_WORDS = re.compile(r"(?<![\w/.-])(?:torch_npu\b|hccl\b|npu(?::\d+)?(?![\w/-]))", re.IGNORECASE)
"""A device of the NPU, or its libraries; no paths that have such a name."""
_ABOUT_DEVICES = re.compile(r"\b(?:cuda|npu)\b")
_MEMORY_WORDS = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc")
_NETWORK_ERRORS = {"URLError", "gaierror", "RequestException", "ConnectError", "ConnectionError"}
"""Of urllib, socket, requests and httpx."""
_NETWORK_WORDS = ("Name or service not known", "couldn't connect to", "Temporary failure in name")

_MODULE = re.compile(r"No module named '?([\w.]+)")
_NAME = re.compile(
    r"cannot import name '(?P<name>\w+)' from "
    r"(?:partially initialized module )?'(?P<module>[\w.]+)'"
)
_ATTRIBUTE = re.compile(r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'")
_FILE = re.compile(r"No such file or directory: '([^']+)'|Could not load this library: (\S+)")
_BACKEND = re.compile(r"Could not run '([\w:.]+)' with arguments from the '(\w*)npu' backend")
"""Of a layout: sparse, nested or quantised tensors."""
_LACK_SPARSE = {
    *("mm", "addmm", "bmm", "mv", "smm", "hspmm", "sspaddmm"),
    *("_sparse_mm", "_sparse_addmm", "_sparse_sparse_matmul", "sparse_mask"),
}
"""What neither torch_npu nor PyTorch has for sparse tensors of the NPU.

Sources: op-plugin, `sparse:` in op_plugin_functions.yaml; PyTorch, native_functions.yaml.
"""
_OPERATOR = re.compile(r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'")
_NOT_FOUND = re.compile(r"download=True|Couldn't find any class folder|Found no valid file")
"""What data sets of torchvision and torchaudio say."""
_GAPS = re.compile(
    r"No backend type associated with device type npu|isValidDeviceType"
    r"|not described well enough to be imitated"
)
"""What PyTorch and the emulator say where the device is not emulated well enough."""
_DATA_PARALLEL = re.compile(
    r"module 'torch\._C' has no attribute '_(?:scatter|gather|broadcast_coalesced)'"
)
_OWN_FAILURES = {"TypeError", "AttributeError", "KeyError", "NameError", "AssertionError"}
"""What a kernel does not raise for the arguments of a script."""
_NAMESPACES_OF_PYTORCH = {"aten", "prim", "prims", "c10d", "npu"}


def judge_error(error: Mapping[str, Any], result: RunResult) -> Verdict:
    """What an error says, as the process has described it."""
    outcome, detail = _outcome(error, result)
    return Verdict(outcome, error["path"], error["line"], detail)


def _outcome(error: Mapping[str, Any], result: RunResult) -> tuple[Outcome, str]:
    bases, message = error["bases"], error["message"]
    text = f"{error['type']}: {message}" if message else error["type"]
    if "MemoryError" in bases or means_out_of_memory(text):
        return Outcome.MEMORY_LIMIT, text
    if "NotEmulatedError" in bases:
        return Outcome.NOT_EMULATED, message
    if backend := _BACKEND.search(message):
        name = backend[1].removeprefix("aten::").partition(".")[0]
        if backend[2] == "Sparse" and name in _LACK_SPARSE:
            return Outcome.UNSUPPORTED, f"{backend[1]} of sparse tensors"
        kind = f" for {backend[2]} tensors" if backend[2] else ""
        return Outcome.NOT_EMULATED, f"{backend[1]} has no kernel{kind}"
    if _GAPS.search(message):
        return Outcome.NOT_EMULATED, text
    if error["in_data_parallel"] or _DATA_PARALLEL.search(message):
        return Outcome.UNSUPPORTED, "torch.nn.DataParallel"
    if error["in_emulator"] and not _OWN_FAILURES.isdisjoint(bases):
        return Outcome.EMULATOR_FAILED, text
    if "AttributeError" in bases or "ImportError" in bases:
        found = _missing_name(error, result)
        if found is not None:
            return found
    if _is_of_network(error, result):
        return Outcome.NEEDS_NETWORK, text
    if lacking := _lacking(error, text):
        return lacking
    if any(word in text.lower() for word in _CUDA_WORDS):
        return Outcome.CUDA_NEEDED, text
    return Outcome.NPU_ERROR if _is_about_npu(error, text) else Outcome.ERROR, text


def _is_about_npu(error: Mapping[str, Any], text: str) -> bool:
    """Whether a fact of the NPU is behind an error: any other one may be the script's own."""
    if error["refused_by_npu"] or _NPU_WORDS.search(text):
        return True
    # `torch.version.cuda`, the capability and the like are `None` there.
    return "NoneType" in text and bool(_ABOUT_DEVICES.search(error["source"] or ""))


def _is_of_network(error: Mapping[str, Any], result: RunResult) -> bool:
    """Whether it came of a refused connection, or of the line where one was refused."""
    if error["lacks_network"]:
        return True
    place = [error["path"], error["line"]]
    return any(place == each[:2] for report in result.reports for each in report["refused"])


def _missing_name(error: Mapping[str, Any], result: RunResult) -> tuple[Outcome, str] | None:
    """A name, a module or an operator that is not there."""
    message = error["message"]
    name = _ATTRIBUTE.search(message) or _NAME.search(message)
    full = "" if name is None else f"{name['module']}.{name['name']}"
    if full.startswith("torch_npu."):
        is_unknown = any(full in report["unknown_names"] for report in result.reports)
        return (Outcome.UNKNOWN_NAME, full) if is_unknown else _not_emulated(full)
    operator = _OPERATOR.search(message)
    if operator is not None and operator[1] not in _NAMESPACES_OF_PYTORCH:
        return Outcome.NEEDS_OPERATOR, f"torch.ops.{operator[1]}.{operator[2]}"
    if "ImportError" not in error["bases"] or full.startswith("torch."):
        return None
    module = _MODULE.search(message)
    missing = (
        full or error["name"] or error["lacks_module"] or ("" if module is None else module[1])
    )
    if missing.startswith("torch_npu."):
        return _not_emulated(missing)
    if missing:
        return Outcome.NEEDS_MODULE, missing
    is_of_cuda = any(word in message.lower() for word in _CUDA_WORDS)
    return None if is_of_cuda or not message else (Outcome.NEEDS_MODULE, message)


def _not_emulated(name: str) -> tuple[Outcome, str]:
    return Outcome.NOT_EMULATED, f"{name} is not emulated"


def _lacking(error: Mapping[str, Any], text: str) -> tuple[Outcome, str] | None:
    """Something that was not given to the script."""
    bases = error["bases"]
    file = _FILE.search(text)
    if "FileNotFoundError" in bases and error["name"]:
        return Outcome.NEEDS_FILE, str(error["name"])
    if file is not None:
        return Outcome.NEEDS_FILE, file[1] or file[2]
    if "FileNotFoundError" in bases or _NOT_FOUND.search(text):
        return Outcome.NEEDS_FILE, f"({text})"
    if any(f"'{name}'" in text or f" {name} " in text for name in _LAUNCHER):
        return Outcome.NEEDS_LAUNCHER, text
    if error["asks_capability"]:
        return Outcome.NEEDS_VARIABLE, "TORCH_NPU_DEVICE_CAPABILITY"
    if error["asks_environment"]:
        return Outcome.NEEDS_VARIABLE, error["message"].strip("'")
    if error["reads_input"]:
        return Outcome.NEEDS_INPUT, text
    if "IndexError" in bases and "argv" in error["source"]:
        return Outcome.NEEDS_ARGUMENTS, text
    if not _NETWORK_ERRORS.isdisjoint(bases) or any(word in text for word in _NETWORK_WORDS):
        return Outcome.NEEDS_NETWORK, text
    return None


def means_out_of_memory(text: str) -> bool:
    """Whether a line or an error says that there is no more memory."""
    return any(word in text for word in _MEMORY_WORDS)


def last_words(result: RunResult) -> Iterator[str]:
    """The last lines that were printed, those in which parsers of arguments complain first."""
    lines = [line for line in reversed(result.output) if line.strip()]
    yield from (line for line in lines if "error: " in line)
    yield from lines
