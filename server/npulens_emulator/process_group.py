"""The process group of the NPU: gloo works on the memory of its tensors.

To be imported only where PyTorch has gloo.
"""

from typing import Any

import torch
import torch.distributed
from torch import Tensor

from npulens_emulator.memory import to_cpu

_dist: Any = torch.distributed


def _lowered(value: Any) -> Any:
    """Tensors of the CPU over the same memory, which gloo takes."""
    if isinstance(value, list | tuple):
        return [_lowered(each) for each in value]
    if not isinstance(value, Tensor):
        return value
    if value.device.type != "npu":
        device = value.device.type
        raise RuntimeError(f"No backend type associated with device type {device}")
    return to_cpu(value)


def _as_list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


class FinishedWork(_dist._Work):  # type: ignore[misc]
    """Gloo has written through the shared memory already."""

    def __init__(self, results: Any) -> None:
        super().__init__()
        self._results = results
        self._future: Any = torch.futures.Future()
        self._future.set_result(results)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def result(self) -> Any:
        return self._results

    def get_future(self) -> Any:
        return self._future


class ProcessGroupHCCL(_dist.ProcessGroup):  # type: ignore[misc]
    """Hands the memory of tensors to gloo."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._gloo = _dist.ProcessGroupGloo(store, rank, size, timeout)
        self._rank, self._size = rank, size
        self._name = self._description = ""

    def getBackendName(self) -> str:  # noqa: N802 - the name in PyTorch
        return "hccl"

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("npu")]

    def _get_backend(self, device: Any) -> "ProcessGroupHCCL":
        """What is asked for the backend of a device is this, too."""
        return self

    @property
    def supports_splitting(self) -> bool:
        """Groups are made anew."""
        return False

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def _run(self, name: str, results: Any, *args: Any) -> Any:
        work = getattr(self._gloo, name)(*args)
        if work is not None:
            work.wait()
        return FinishedWork(results)

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        tensors = _as_list(tensors)
        self._reduce_all(_lowered(tensors), opts)
        return FinishedWork(tensors)

    def _reduce_all(self, lowered: list[Tensor], opts: Any) -> None:
        operation = getattr(opts, "reduceOp", opts)
        given = _dist.AllreduceOptions()
        mean = operation == _dist.ReduceOp.AVG
        if operation is not None and not mean:  # gloo has no mean
            given.reduceOp = operation
        self._gloo.allreduce(lowered, given).wait()
        for tensor in lowered if mean else ():
            tensor.div_(self._size)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        for tensor in tensors:
            self.allreduce([tensor], opts)
        return FinishedWork(tensors)

    def broadcast(self, tensors: Any, opts: Any = None, root: int = 0) -> Any:
        tensors = _as_list(tensors)
        if not hasattr(opts, "rootRank"):
            source = opts if isinstance(opts, int) else root
            opts = _dist.BroadcastOptions()
            opts.rootRank = source
        return self._run("broadcast", tensors, _lowered(tensors), opts)

    def reduce(self, tensors: Any, opts: Any) -> Any:
        if opts.reduceOp != _dist.ReduceOp.AVG:
            return self._run("reduce", tensors, _lowered(tensors), opts)
        opts.reduceOp = _dist.ReduceOp.SUM
        self._gloo.reduce(_lowered(tensors), opts).wait()
        for tensor in _lowered(tensors) if self._rank == opts.rootRank else ():
            tensor.div_(self._size)
        return FinishedWork(tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = opts or _dist.AllgatherOptions()
        return self._run("allgather", outputs, _lowered(outputs), _lowered(inputs), opts)

    def _allgather_base(self, output: Any, source: Any, opts: Any = None) -> Any:
        memory, own = _lowered(output), _lowered(source)
        parts = [torch.empty_like(own) for _ in range(self._size)]
        self._gloo.allgather([parts], [own]).wait()
        memory.view(-1).copy_(torch.cat([part.reshape(-1) for part in parts]))
        return FinishedWork([output])

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, source in zip(outputs, inputs, strict=True):
            self._allgather_base(output, source, opts)
        return FinishedWork(outputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        return self._run("gather", outputs, _lowered(outputs), _lowered(inputs), opts)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        return self._run("scatter", outputs, _lowered(outputs), _lowered(inputs), opts)

    def _reduce_scatter_base(self, output: Any, source: Any, opts: Any = None) -> Any:
        whole = _lowered(source).clone()
        self._reduce_all([whole], opts)
        memory = _lowered(output)
        memory.copy_(whole.reshape(self._size, -1)[self._rank].reshape(memory.shape))
        return FinishedWork([output])

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, source in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, source, opts)
        return FinishedWork(outputs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, parts in zip(outputs, inputs, strict=True):
            whole = torch.stack(_lowered(parts))
            self._reduce_all([whole], opts)
            _lowered(output).copy_(whole[self._rank])
        return FinishedWork(outputs)

    def alltoall_base(self, output: Any, source: Any, to: Any, of: Any, opts: Any = None) -> Any:
        opts = opts or _dist.AllToAllOptions()
        lowered = _lowered(output), _lowered(source)
        return self._run("alltoall_base", [output], *lowered, to, of, opts)

    all_to_all_single = alltoall_base

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        sources = _lowered(inputs)
        received = torch.cat([output.reshape(-1) for output in _lowered(outputs)])
        to, of = ([each.numel() for each in some] for some in (outputs, inputs))
        sent = torch.cat([source.reshape(-1) for source in sources])
        self._gloo.alltoall_base(received, sent, to, of, _dist.AllToAllOptions()).wait()
        for output, part in zip(_lowered(outputs), torch.split(received, to), strict=True):
            output.copy_(part.view(output.shape))
        return FinishedWork(outputs)

    def send(self, tensors: Any, target: int, tag: int = 0) -> Any:
        """Others may have to send first: who waits for it is the caller."""
        return self._gloo.send(_lowered(tensors), target, tag)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Any:
        return self._gloo.recv(_lowered(tensors), source, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self._gloo.recv_anysource(_lowered(tensors), tag)

    def _start_coalescing(self, device: Any) -> None:
        """Nothing is gathered: each call is done at once."""

    def _end_coalescing(self, device: Any) -> Any:
        return FinishedWork(None)

    def barrier(self, opts: Any = None) -> Any:
        return self._run("barrier", None, _dist.BarrierOptions())
