"""Checks of the emulated NPU; each function is one, and all run in one process of their own.

    PYTHONPATH=server:server/npulens_emulator/stand_in python tests/emulator_checks.py

The device is registered for good, so other tests must not share its process. Prints one JSON
object: the name of each check, and what failed, or an empty text.
"""

import copy
import importlib
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("NPULENS_EMULATED_NPUS", "2")
import torch
import torch.distributed as dist
import torch_npu
from torch import Tensor, nn
from torch.nn import functional

NPU = torch.device("npu:0")


def close(actual: Any, expected: Any, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(
        actual.detach().cpu(), expected.detach().cpu(), rtol=tolerance, atol=tolerance
    )


def refused(kinds: Any, function: Callable[[], object], words: str = "") -> None:
    try:
        function()
    except kinds as error:
        assert words in str(error), error
        return
    raise AssertionError("was not refused")


def trained(module: nn.Module, batches: Iterable[Any], loss_of: Any, make: Any) -> list[float]:
    """Train in place, with the clipping that most scripts do."""
    optimizer = make(module.parameters())
    losses = []
    for batch in batches:
        loss = loss_of(module, *batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def same_training(module: nn.Module, batches: list[Any], loss_of: Any, make: Any) -> None:
    """Train on both devices; losses and parameters agree."""
    other = copy.deepcopy(module).npu()
    expected = trained(module, batches, loss_of, make)
    moved = [tuple(each.npu() for each in batch) for batch in batches]
    found = trained(other, moved, loss_of, make)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for one, two in zip(module.state_dict().values(), other.state_dict().values(), strict=True):
        assert two.device == NPU
        close(two, one, 1e-3)


def images() -> list[Any]:
    return [(torch.randn(4, 3, 12, 12), torch.randint(0, 5, (4,))) for _ in range(3)]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.ConvTranspose2d(8, 4, 2, 2, bias=False),
        nn.GroupNorm(2, 4),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


def classification(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(module(x), y)


def check_convolutions_train_as_on_the_cpu() -> None:
    for options in ({}, {"foreach": True}, {"fused": True}):
        torch.manual_seed(0)
        same_training(
            network(),
            images(),
            classification,
            lambda p, o=options: torch.optim.AdamW(p, 1e-3, **o),
        )


def check_groups_of_channels_that_lie_last_are_normalised() -> None:
    x = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
    results = []
    for device in ("cpu", "npu"):
        given = x.detach().to(device).requires_grad_()
        norm = nn.GroupNorm(4, 8).to(device)
        norm(given).square().mean().backward()
        results.append((norm(given), given.grad, norm.weight.grad))
    for one, other in zip(*results, strict=True):
        close(other, one)


def check_names_that_are_not_imitated_stand_in_annotations() -> None:
    graph = torch.npu.NPUGraph
    assert (graph | None) is (None | graph) is object
    refused(Exception, graph, "not emulated")


def check_scripts_of_torch_compile_factories() -> None:
    def raised(x: Tensor) -> Tensor:
        return x + torch.zeros_like(x) + torch.ones([1], device=x.device)

    x = torch.randn(3).npu()
    close(torch.jit.script(raised)(x), x + 1)
    importlib.import_module("torch.distributed.optim")  # compiles optimizers


def check_recurrent_layers_train_as_on_the_cpu() -> None:
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(1)
        layer = kind(6, 8, 2, batch_first=True, bidirectional=True)
        batches = [(torch.randn(3, 5, 6),) for _ in range(2)]
        same_training(
            layer, batches, lambda m, x: m(x)[0].square().mean(), lambda p: torch.optim.SGD(p, 0.1)
        )


def check_operators_of_torch_agree() -> None:
    """Values and gradients of operators of many kinds: views, in place, out=, lists, indices."""
    torch.manual_seed(2)
    x = torch.randn(4, 6)
    index = torch.tensor([3, 0, 2])
    mask = torch.rand(4, 6) > 0.5
    functions: list[Callable[[Tensor, Any], Tensor]] = [
        lambda t, m: t.view(2, 12).t()[3:, 1],
        lambda t, m: torch.as_strided(t, (3, 3), (6, 2), 1),
        lambda t, m: t[m(index)] * t[:3, ::2].sum(1, keepdim=True),
        lambda t, m: t[m(mask)].cumsum(0),
        lambda t, m: torch.where(m(mask), t, 0).softmax(-1),
        lambda t, m: t.clone().index_add_(0, m(index), t[:3]),
        lambda t, m: t.clone().masked_fill_(m(mask), 2.0).relu_(),
        lambda t, m: t.scatter_add(1, m(torch.zeros(4, 6, dtype=torch.long)), t),
        lambda t, m: torch.cat(torch.split(t, [1, 2, 3], 1)[::-1], 1) @ t.t(),
        lambda t, m: torch.stack(torch._foreach_mul([t, t + 1], 3.0)),
        lambda t, m: torch.einsum("ij,kj->ik", t, t).triu().logsumexp(1),
        lambda t, m: torch.linalg.svd(t)[1],
        lambda t, m: functional.layer_norm(t, (6,)) + functional.gelu(t).std(),
        lambda t, m: functional.interpolate(t[None, None], scale_factor=2, mode="bilinear"),
        lambda t, m: functional.grid_sample(t[None, None], t.view(1, 3, 4, 2).tanh()),
        lambda t, m: functional.scaled_dot_product_attention(t[None], t[None], t[None]),
        lambda t, m: functional.embedding(m(index), t),
        lambda t, m: torch.fft.rfft(t).abs(),
        lambda t, m: t.sort(1).values + t.topk(6, 1).values,
        lambda t, m: functional.mse_loss(t, t.detach() + 1),
        lambda t, m: torch.cdist(t, t + 1),
    ]
    for number, function in enumerate(functions):
        results = []
        for on_npu in (False, True):
            leaf = (x.npu() if on_npu else x.clone()).requires_grad_()
            out = function(leaf, lambda each, on=on_npu: each.npu() if on else each)
            assert out.device.type == ("npu" if on_npu else "cpu"), number
            weights = torch.linspace(0.1, 1, out.numel()).view(out.shape).to(out.device)
            (out * weights).sum().backward()
            results.append((out, leaf.grad))
        for expected, found in zip(*results, strict=True):
            close(found, expected, 1e-4)
    out = torch.empty(0, device="npu")
    torch.add(x.npu(), 1, out=out)
    close(out, x + 1)


def check_views_share_memory() -> None:
    x = torch.zeros(4, 4, device="npu")
    row = x[1]
    row.add_(2)
    x.t()[0].fill_(5)
    assert x.sum().item() == 26 and row.tolist() == [5, 2, 2, 2]
    assert x.detach().data_ptr() == x.data_ptr()
    y = torch.ones(3, device="npu", requires_grad=True)
    refused(RuntimeError, lambda: y.add_(1), "leaf Variable")


def check_half_precision() -> None:
    torch.manual_seed(3)
    for dtype in (torch.float16, torch.bfloat16):
        module = network().npu()
        optimizer = torch.optim.SGD(module.parameters(), 0.05)
        scaler = torch.npu.amp.GradScaler(enabled=dtype is torch.float16)
        (x, y), losses = images()[0], []
        for _ in range(4):
            optimizer.zero_grad()
            with torch.autocast("npu", dtype=dtype):
                out = module(x.npu())
                loss = functional.cross_entropy(out, y.npu())
            assert (out.dtype, loss.dtype) == (dtype, torch.float32)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
    with torch.npu.amp.autocast():
        half = torch.ones(2, 2, device="npu") @ torch.ones(2, 2, device="npu")
        assert (half.dtype, half.softmax(-1).dtype) == (torch.float16, torch.float32)
        refused(RuntimeError, lambda: functional.binary_cross_entropy(half, half), "unsafe")
    assert (half @ half).dtype == torch.float16


def check_a_scaler_skips_steps_that_overflow() -> None:
    weight = nn.Parameter(torch.ones(2, device="npu"))
    optimizer, scaler = torch.optim.SGD([weight], 0.1), torch.amp.GradScaler("npu")
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    assert scaler.get_scale() == before / 2
    assert weight.tolist() == [1, 1]


def check_names_are_those_of_the_real_package() -> None:
    refused(AttributeError, lambda: torch.npu.cudart(), "no attribute 'cudart'")
    refused(AttributeError, lambda: torch.npu.nccl, "no attribute")
    refused(AttributeError, lambda: torch_npu.npu_flash_magic, "no attribute")
    refused(AttributeError, lambda: torch_npu.optim.NpuFusedMagic, "no attribute")
    refused(ImportError, lambda: exec("from torch_npu.contrib import magic"))
    graph = torch.npu.NPUGraph  # a real name
    refused(NotImplementedError, graph, "is not emulated")
    refused(NotImplementedError, lambda: torch_npu.npu_ciou(1, 2), "is not emulated")
    refused(TypeError, lambda: torch.npu.set_device(gpu=0))
    assert "empty_cache" in dir(torch.npu)
    assert torch_npu.__version__ == torch.__version__.partition("+")[0]


def check_there_is_no_cuda() -> None:
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    kinds = (RuntimeError, AssertionError)
    refused(kinds, lambda: torch.ones(2).cuda())
    refused(kinds, lambda: torch.ones(2, device="cuda"))
    refused(kinds, torch.cuda.synchronize)
    assert not torch.ones(2, device="npu").is_cuda


def check_devices_do_not_mix() -> None:
    x = torch.ones(2, 4, device="npu")
    words = "same device"
    refused(RuntimeError, lambda: x + torch.ones(2, 4), words)
    refused(RuntimeError, lambda: functional.linear(x, torch.ones(4, 4)), words)
    refused(RuntimeError, lambda: torch_npu.npu_swiglu(torch.ones(4)), "NPU")
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch_npu.optim.NpuFusedSGD([weight], lr=1)
    weight.grad = torch.ones(1)
    refused(RuntimeError, optimizer.step, "must be on NPU, got cpu")
    weight.data, weight.grad = weight.data.npu().bfloat16(), None
    weight.grad = torch.ones_like(weight)
    refused(TypeError, optimizer.step, "float32 or float16")
    refused(RuntimeError, lambda: torch.ones(2, device="npu:7"), "Invalid device ID")
    refused(TypeError, x.numpy)
    refused(RuntimeError, lambda: torch.randn(2, device="npu", generator=torch.Generator()))
    close(x * 2.0 + torch.tensor(1.0), torch.full((2, 4), 3.0))  # numbers may stay on the host


def check_devices_streams_and_events() -> None:
    assert torch.npu.is_available() and torch.npu.device_count() == 2
    assert torch.accelerator.current_accelerator().type == "npu"
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1
        assert torch.ones(1).npu().device.index == 1
    assert torch.npu.current_device() == 0
    torch.accelerator.set_device_index(1)
    assert torch.ones(1).to("npu").device.index == torch.accelerator.current_device_index() == 1
    torch.accelerator.set_device_index(0)
    torch.npu.mstx.range_push("step")
    with torch.npu.mstx.mstx_range("forward"):
        torch.npu.mstx.range_end(torch.npu.mstx.range_start("part"))
    torch.npu.mstx.range_pop()
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with torch.npu.stream(torch.npu.Stream()) as stream:
        start.record()
        (torch.ones(2, device="npu") * 2).record_stream(stream)
        end.record()
    assert start.elapsed_time(end) >= 0
    torch.npu.current_stream().wait_stream(torch.npu.default_stream())
    for general in (torch.Stream("npu"), torch.Stream(device="npu:1")):
        assert isinstance(general, torch.Stream) and isinstance(general, torch.npu.Stream)
        with general:
            assert torch.accelerator.current_stream() is general
        torch.accelerator.current_stream().wait_stream(general)
        general.wait_event(torch.Event("npu", enable_timing=True))
        general.synchronize()
    assert isinstance(general.record_event(), torch.Event)
    assert isinstance(torch.npu.current_stream(), torch.Stream)
    assert torch.accelerator.get_memory_info() == torch.npu.mem_get_info()
    assert torch.npu.memory_allocated() <= torch.npu.max_memory_allocated()
    assert torch.npu.mem_get_info()[0] < torch.npu.mem_get_info()[1]
    with torch.device("npu"):
        assert nn.Linear(2, 2).weight.is_npu
    x = torch.npu.FloatTensor([1, 2])
    assert x.is_npu and isinstance(x, torch.npu.FloatTensor) and x.type() == "torch.npu.FloatTensor"
    assert x.type(torch.npu.HalfTensor).dtype == torch.float16


def check_random_numbers() -> None:
    generator = torch.Generator("npu").manual_seed(3)
    first = torch.randn(3, generator=generator, device="npu")
    close(torch.randn(3, generator=generator.manual_seed(3), device="npu"), first)
    assert generator.device.type == "npu" and isinstance(torch.default_generator, torch.Generator)
    for draw in (lambda: torch.rand(4, device="npu"), lambda: functional.dropout(first, 0.5)):
        torch.manual_seed(7)
        one = draw()
        torch.npu.manual_seed_all(7)
        close(draw(), one)
    state = torch.npu.get_rng_state()
    assert state.shape == (16,)  # a seed and an offset
    one = torch.rand(4, device="npu")
    torch.npu.set_rng_state(state)
    close(torch.rand(4, device="npu"), one)


def check_checkpoints() -> None:
    module = network().npu()
    optimizer = torch.optim.Adam(module.parameters())
    classification(module, images()[0][0].npu(), images()[0][1].npu()).backward()
    optimizer.step()
    file = io.BytesIO()
    content = {"model": module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(content, file)
    for place, kind in (("npu:0", "npu"), (None, "npu"), ("cpu", "cpu"), (lambda s, at: s, "cpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        weight = loaded["model"]["0.weight"]
        assert weight.device.type == kind, place
        close(weight, module[0].weight)
        optimizer.load_state_dict(loaded["optimizer"])


def check_tied_weights_stay_tied() -> None:
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    one.weight = two.weight
    both = nn.ModuleList([one, two]).npu()
    assert one.weight is two.weight and len(list(both.parameters())) == 3
    both.cpu()
    assert one.weight is two.weight and one.weight.device.type == "cpu"


def check_pinned_memory_and_loaders() -> None:
    data = torch.utils.data.TensorDataset(torch.randn(8, 2), torch.arange(8))
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(data, 4, pin_memory=True, num_workers=workers)
        for x, _ in loader:
            assert x.is_pinned() and x.to("npu", non_blocking=True).is_npu
    assert not torch.ones(2).is_pinned() and torch.empty(2, pin_memory=True).is_pinned()
    del x
    for _ in range(20):  # memory that was pinned is used again
        torch.ones(8).pin_memory()
        assert not any(each.is_pinned() for each in [torch.ones(8) for _ in range(4)])


def check_activation_checkpoints() -> None:
    from torch.utils.checkpoint import checkpoint

    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1)).npu()
    for reentrant in (True, False):
        x = torch.randn(3, 4, device="npu", requires_grad=True)
        checkpoint(module, x, use_reentrant=reentrant).sum().backward()
        assert x.grad is not None


def check_fused_operators_on_the_device() -> None:
    """Their numbers are tested on the CPU; here that they run on the NPU, and give gradients."""
    torch.manual_seed(4)
    query, key, value = (torch.randn(2, 4, 6, 8) for _ in range(3))
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    leaf = query.npu().requires_grad_()
    with torch.autocast("npu"):  # operators of torch_npu are not cast
        found = torch_npu.npu_fusion_attention(
            *(leaf, key.npu(), value.npu(), 4, "BNSD"),
            atten_mask=triangle.npu(),
            scale=8**-0.5,
            sparse_mode=3,
        )[0]
    close(found, expected)
    found.sum().backward()
    assert leaf.grad is not None and leaf.grad.is_npu
    gain = torch.rand(8)
    close(torch_npu.npu_rms_norm(leaf, gain.npu())[0], functional.rms_norm(query, (8,), gain, 1e-6))
    refused(RuntimeError, lambda: torch_npu.npu_swiglu(torch.ones(3, device="npu")), "even")
    sum_ = torch_npu.npu_add_rms_norm(leaf, leaf, gain.npu())[0].sum()
    refused(RuntimeError, sum_.backward, "backward is not implemented")


def check_events_are_told() -> None:
    from npulens_emulator import events

    told: list[tuple[str, str]] = []
    events.listen(lambda kind, operator: told.append((kind, operator)))
    x = torch.arange(6, device="npu").float()
    for action, expected in (
        (lambda: x.sum().item(), ("wait", "_local_scalar_dense")),
        (lambda: bool((x > 2).any()), ("wait", "_local_scalar_dense")),
        (lambda: x.cpu(), ("wait", "copy_to_host")),
        (lambda: x.tolist(), ("wait", "copy_to_host")),
        (lambda: x.nonzero(), ("shape", "nonzero")),
        (lambda: x[x > 2], ("shape", "index")),
        (lambda: x.unique(), ("shape", "_unique2")),
        (torch.npu.synchronize, ("wait", "synchronize")),
    ):
        told.clear()
        action()
        assert expected in told, (expected, told)
    told.clear()
    x[torch.tensor([1, 2], device="npu")] = x[:2] + x.softmax(0)[:2]
    torch.where(x > 2, x, 0).cumsum(0)
    x.to("cpu", non_blocking=True)
    torch.ones(3).npu()
    assert told == []


def check_one_process_of_hccl() -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    store = dist.HashStore()
    dist.init_process_group("hccl", rank=0, world_size=1, store=store)
    assert dist.get_backend() == "hccl" and dist.is_hccl_available()
    module = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).npu(), device_ids=[0])
    module(torch.ones(1, 2, device="npu")).sum().backward()
    x = torch.ones(3, device="npu")
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.barrier()
    parts = [torch.empty_like(x)]
    dist.all_gather(parts, x)
    close(parts[0], x)
    objects: list[Any] = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    refused(RuntimeError, lambda: dist.all_reduce(torch.ones(2)), "device type cpu")
    dist.destroy_process_group()


def main() -> None:
    results = {}
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                results[name] = ""
            except Exception:
                results[name] = traceback.format_exc()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
