"""Runs a script as one process of several whose results can be compared, on the CPU.

    python compared_run.py SCRIPT [ARGUMENT ...]

Cards become the CPU, HCCL becomes gloo. Samples come in the order of the dataset, dropout does
nothing, and what is drawn by chance in training is the same for each sample, since no number of
processes can draw alike. Numbers are double ones, and `eps` of optimizers is larger, so that they
enlarge no rounding. Batch norm takes mean and variance over all processes. Parameters are kept
after the number of updates that `COMPARED_STEPS` says, and the process ends.

Besides those of a launcher, these variables are read:

- `COMPARED_OUT`: the file for the parameters, `COMPARED_NOTE`: the file by which processes join;
- `COMPARED_STUBS`: modules, with commas, in whose place something stands that does nothing;
- `COMPARED_EXTRA`: a file that is run before the script;
- `COMPARED_ALSO`: more folders of modules, as in `PYTHONPATH`;
- `COMPARED_UNUSED=1`: `DistributedDataParallel` is told that steps may not use all parameters;
- `COMPARED_FIX_RANDOM=0`: `random` and NumPy draw by their seeds, for data that is made in advance;
- `COMPARED_SORT=1`: parameters are sorted, for optimizers that are given a set of them.
"""

import builtins
import contextlib
import functools
import importlib.machinery
import math
import os
import random
import runpy
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as over_processes
from torch.overrides import TorchFunctionMode
from torch.utils import data

WORLD, RANK = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
HALVES = (torch.float32, torch.float16, torch.bfloat16)
functional = torch.nn.functional
kept: list[object] = []


def is_card(device: object) -> bool:
    """Whether something names a card, also by its number."""
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    return isinstance(device, (str, torch.device)) and str(device).startswith(("cuda", "npu"))


class OnCpu(TorchFunctionMode):
    """Cards are the CPU, and single precision is double."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = dict(kwargs or {})
        if function is torch.Tensor.cuda:
            return args[0]
        if function in (torch.Tensor.float, torch.Tensor.half):
            return args[0].double()
        if is_card(given.get("device")):
            given["device"] = "cpu"
        if function is torch.Tensor.to:
            args = (args[0], *("cpu" if is_card(each) else each for each in args[1:]))
        if given.get("dtype") in HALVES:
            given["dtype"] = torch.float64
        is_half = (isinstance(each, torch.dtype) and each in HALVES for each in args)
        args = tuple(
            torch.float64 if half else each for half, each in zip(is_half, args, strict=True)
        )
        made = function(*args, **given)
        is_made_here = function in (torch.tensor, torch.as_tensor)
        return made.double() if is_made_here and made.dtype in HALVES else made


def use_cpu() -> None:
    """Have modules, libraries and functions that no mode sees work on the CPU."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.utils.rename_privateuse1_backend("npu")
    torch.npu = types.SimpleNamespace(
        set_device=_nothing(),
        current_device=lambda: 0,
        is_available=lambda: False,
        device_count=lambda: 0,
        empty_cache=_nothing(),
    )
    put_stubs("torch_npu")
    for name in ("empty_cache", "synchronize", "set_device", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, _nothing())
    torch.cuda.current_device = lambda: 0
    torch.FloatTensor = torch.cuda.FloatTensor = torch.DoubleTensor
    for name in ("LongTensor", "ByteTensor", "IntTensor"):
        setattr(torch.cuda, name, getattr(torch, name))
    from_numpy, load, move = torch.from_numpy, torch.load, torch.nn.Module.to
    torch.from_numpy = lambda array: _doubled(from_numpy(array))
    torch.load = lambda *a, **k: load(*a, **{**k, "map_location": "cpu"})

    def moved(self: Any, *given: Any, **named: Any) -> Any:
        named = {k: v for k, v in named.items() if not (k == "device" and is_card(v))}
        given = tuple(each for each in given if not is_card(each))
        return move(self, *given, **named) if given or named else self

    torch.nn.Module.to = moved
    torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.nn.Module.float = lambda self: self.double()
    torch.nn.DataParallel = torch.nn.parallel.DataParallel = Plain


def _nothing() -> Callable[..., None]:
    """A function that does nothing, another one each time: PyTorch keeps lists of its functions."""
    return lambda *_, **__: None


def _same() -> Callable[..., Any]:
    return lambda x, *_, **__: x


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype in HALVES else tensor


class Plain(torch.nn.Module):
    """`DataParallel` where there is one device."""

    def __init__(self, module: torch.nn.Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def join_by_gloo() -> None:
    """Have processes join by a file, and end together."""
    join, wrapper = dist.init_process_group, torch.nn.parallel.DistributedDataParallel
    note = f"file://{os.environ['COMPARED_NOTE']}"
    dist.init_process_group = lambda **_: join(
        "gloo", init_method=note, rank=RANK, world_size=WORLD
    )
    dist.destroy_process_group = lambda: None
    dist.barrier = lambda *_, **__: meet()
    looks = {"find_unused_parameters": True} if os.environ.get("COMPARED_UNUSED") else {}

    class OnTheCpu(wrapper):
        def __init__(self, module: Any, device_ids: Any = None, **named: Any) -> None:
            super().__init__(module, **{**named, **looks})

    torch.nn.parallel.DistributedDataParallel = OnTheCpu


def meet() -> None:
    if dist.is_initialized():
        dist.all_reduce(torch.ones(1))


def keep_order() -> None:
    """Have loaders and samplers give samples in the order of the dataset, without workers.

    What transforms draw is the same for each sample once there are some; weights are drawn before.
    """
    iterate = data.DataLoader.__iter__

    def iterated(self: Any) -> Any:
        torch.Tensor.uniform_ = lambda x, a=0, b=1, **_: x.fill_((a + b) / 2)
        torch.Tensor.normal_ = lambda x, mean=0, std=1, **_: x.fill_(mean + 0.3 * std)
        return iterate(self)

    data.DataLoader.__iter__ = iterated
    make, sample = data.DataLoader.__init__, data.distributed.DistributedSampler.__init__

    @functools.wraps(make)
    def ordered(
        self: Any, dataset: Any, batch_size: Any = 1, shuffle: Any = None, *more: Any, **named: Any
    ) -> None:
        for name in ("persistent_workers", "prefetch_factor", "multiprocessing_context"):
            named.pop(name, None)
        named = {**named, **dict(zip(("sampler", "batch_sampler"), more, strict=False))}
        named.update(num_workers=0, pin_memory=False, timeout=0)
        if isinstance(named.get("sampler"), data.RandomSampler):
            named["sampler"] = data.SequentialSampler(dataset)
        if isinstance(named.get("sampler"), data.SubsetRandomSampler):
            named["sampler"] = list(named["sampler"].indices)
        make(self, dataset, batch_size, False if shuffle else shuffle, **named)

    def in_order(self: Any, dataset: Any, **named: Any) -> None:
        sample(self, dataset, **{**named, "shuffle": False})

    data.DataLoader.__init__ = ordered
    data.distributed.DistributedSampler.__init__ = in_order


def take_chance_away() -> None:
    """Have dropout do nothing, and what is drawn be the same for each sample."""
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"):
        setattr(functional, name, _same())
    torch.dropout = _same()
    attend, make = functional.scaled_dot_product_attention, torch.nn.RNNBase.__init__
    attend_all = functional.multi_head_attention_forward

    def attended(
        q: Any, k: Any, v: Any, mask: Any = None, dropout_p: float = 0, is_causal: bool = False,
        **named: Any,
    ) -> Any:  # fmt: skip
        mask = named.pop("attn_mask", mask)
        return attend(q, k, v, attn_mask=mask, is_causal=is_causal, **named)

    def attended_all(*given: Any, **named: Any) -> Any:
        if "dropout_p" in named:
            named["dropout_p"] = 0.0
        return attend_all(*given[:9], *(0.0 for _ in given[9:10]), *given[10:], **named)

    functional.scaled_dot_product_attention = attended
    functional.multi_head_attention_forward = attended_all
    torch.nn.RNNBase.__init__ = lambda self, *a, **k: make(self, *a, **{**k, "dropout": 0.0})
    _draw_alike()
    if os.environ.get("COMPARED_FIX_RANDOM", "1") == "1":
        _choose_alike()


def pattern(shape: Any) -> torch.Tensor:
    """Numbers that differ within a sample, and not between samples."""
    sizes = tuple(int(size) for size in shape)
    numbers = torch.arange(math.prod(sizes[1:]), dtype=torch.get_default_dtype())
    return torch.sin(numbers * 1.7 + 1).reshape(sizes[1:]).expand(sizes).clone()


def _drawn(scale: float, shift: float) -> Callable[..., torch.Tensor]:
    def draw(*sizes: Any, size: Any = None, dtype: Any = None, **named: Any) -> torch.Tensor:
        if size is None:
            size = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
        numbers = (pattern(size) * scale + shift).to(dtype or torch.get_default_dtype())
        return numbers.requires_grad_(named.get("requires_grad", False))

    return draw


def _draw_alike() -> None:
    def whole(*given: Any, size: Any = None, **named: Any) -> torch.Tensor:
        *bounds, size = given if size is None else (*given, size)
        high = named.get("high") or bounds[-1]
        return torch.full(tuple(size), high // 2)

    normal = torch.distributions.Normal
    torch.randn, torch.rand = _drawn(1, 0), _drawn(0.45, 0.5)
    torch.randn_like = lambda *given, **named: pattern([*given, *named.values()][0].shape)
    torch.rand_like = lambda x=None, **_: pattern(x.shape) * 0.45 + 0.5
    torch.randint, torch.randperm = whole, lambda n, **_: torch.arange(n)
    torch.multinomial = lambda weights, count, *_, **__: torch.arange(count) % len(weights)
    torch.bernoulli = lambda x, *_, **__: (x > 0.5).to(x.dtype)
    torch.Tensor.bernoulli_ = lambda self, p=0.5, **_: self.fill_(p)
    normal.rsample = lambda self, shape=(): (
        self.loc + self.scale * pattern(self._extended_shape(torch.Size(shape)))
    )
    normal.sample = lambda self, shape=(): self.rsample(shape).detach()


def _choose_alike() -> None:
    def filled(value: Any) -> Callable[..., Any]:
        return lambda *_, size=None, **__: value if size is None else np.full(size, value)

    def chosen(among: Any, size: Any = None, *_: Any, **__: Any) -> Any:
        every = np.arange(among) if isinstance(among, (int, np.integer)) else np.asarray(among)
        if size is None:
            return every[len(every) // 2]
        return every[np.arange(np.prod(size)) % len(every)].reshape(size)

    random.random = lambda: 0.6
    random.uniform = lambda a, b: (a + b) / 2
    random.randint = lambda a, b: (a + b) // 2
    random.choice = lambda items: items[len(items) // 2]
    random.sample = lambda items, k, **_: list(items)[:k]
    random.shuffle = np.random.shuffle = lambda _: None
    np.random.rand = lambda *size: np.full(size, 0.6) if size else 0.6
    np.random.randn = lambda *size: np.full(size, 0.3) if size else 0.3
    np.random.random, np.random.beta = filled(0.6), filled(0.6)
    np.random.uniform = lambda low=0, high=1, size=None: filled((low + high) / 2)(size=size)
    np.random.normal = lambda loc=0, scale=1, size=None: filled(loc + scale * 0.3)(size=size)
    np.random.randint = lambda low, high=None, size=None, **_: filled(
        low // 2 if high is None else (low + high) // 2
    )(size=size)
    np.random.choice = chosen
    np.random.permutation = lambda n: np.arange(n) if isinstance(n, int) else n


def norm_over_processes() -> None:
    """Have batch norm take mean and variance of the batches of all processes.

    One process computes it likewise: on the CPU, PyTorch 2.13 gives wrong gradients for inputs
    that are transposed.
    """
    alone = functional.batch_norm

    def mean_of_all(share: torch.Tensor) -> torch.Tensor:
        return over_processes.all_reduce(share) / WORLD if dist.is_initialized() else share

    def together(
        x: Any, mean: Any, variance: Any, weight: Any = None, bias: Any = None,
        training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
    ) -> Any:  # fmt: skip
        if not (training and torch.is_grad_enabled()):
            return alone(x, mean, variance, weight, bias, training, momentum, eps)
        inner = [0, *range(2, x.dim())]
        wide = [1, -1, *[1] * (x.dim() - 2)]
        middle = mean_of_all(x.mean(inner))
        squares = ((x - middle.reshape(wide)) ** 2).mean(inner)
        spread = mean_of_all(squares)
        if mean is not None:
            count = x.numel() / x.size(1) * WORLD
            with torch.no_grad():
                mean.lerp_(middle, momentum)
                variance.lerp_(spread * count / (count - 1), momentum)
        made = (x - middle.reshape(wide)) / torch.sqrt(spread.reshape(wide) + eps)
        made = made if weight is None else made * weight.reshape(wide)
        return made if bias is None else made + bias.reshape(wide)

    functional.batch_norm = together


def keep_parameters() -> Callable[[], None]:
    """Have optimizers end the process after some updates; what does it is returned."""
    optimizers: list[Any] = []
    done = [0]
    most = int(os.environ["COMPARED_STEPS"])

    def end() -> None:
        groups = [group for each in optimizers for group in each.param_groups]
        found = {id(each): each for group in groups for each in group["params"]}
        params = [each.detach().clone() for each in found.values()]
        if os.environ.get("COMPARED_SORT"):  # they come from a set
            params.sort(key=lambda each: (tuple(each.shape), float(each.sum())))
        torch.save({"steps": done[0], "params": params}, os.environ["COMPARED_OUT"])
        meet()
        os._exit(0)  # PyTorch with gloo aborts now and then while the interpreter ends

    def count(*_: Any) -> None:
        done[0] += 1
        if done[0] >= most:
            end()

    make = torch.optim.Optimizer.__init__

    def made(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        optimizers.append(self)
        for group in self.param_groups:
            group.update({"eps": 1e-4} if "eps" in group else {})
        self.register_step_post_hook(count)

    torch.optim.Optimizer.__init__ = made
    return end


class Nothing:
    """Stands for all that a module has which is not there."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *_: Any, **__: Any) -> "Nothing":
        return Nothing()

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Any:
        return iter(())

    def __getitem__(self, _: object) -> "Nothing":
        return Nothing()

    def __setitem__(self, _: object, __: object) -> None: ...


class Stub(types.ModuleType):
    """A module that does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def __getattr__(self, name: str) -> type[Nothing]:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


def allow_old_names() -> None:
    """Have libraries take what they took when scripts were written."""
    for name in ("int", "float", "bool", "object", "str"):
        if name not in np.__dict__:
            setattr(np, name, getattr(builtins, name))
    with contextlib.suppress(ImportError):
        import yaml

        load = yaml.load
        yaml.load = lambda text, Loader=yaml.FullLoader: load(text, Loader)  # noqa: N803
    library = torch.library.Library("torchvision", "FRAGMENT")
    kept.append(library)
    for name in ("nms", "qnms"):  # without its own binary, torchvision fails when it is imported
        with contextlib.suppress(RuntimeError):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def put_stubs(*names: str) -> None:
    for name in filter(None, names):
        sys.modules[name] = stub = Stub(name)
        outer, _, inner = name.rpartition(".")
        if outer in sys.modules:
            setattr(sys.modules[outer], inner, stub)


def main() -> None:
    use_cpu()
    allow_old_names()
    join_by_gloo()
    keep_order()
    take_chance_away()
    norm_over_processes()
    end = keep_parameters()
    put_stubs("torch.utils.tensorboard", *os.environ.get("COMPARED_STUBS", "").split(","))
    if extra := os.environ.get("COMPARED_EXTRA"):
        code = compile(Path(extra).read_text(encoding="utf-8"), extra, "exec")
        exec(code, {"torch": torch, "np": np, "functools": functools, "F": functional, "os": os})
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    also = [each for each in os.environ.get("COMPARED_ALSO", "").split(os.pathsep) if each]
    sys.path[:1] = [*also, str(Path(script).resolve().parent), str(Path.cwd())]
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    with OnCpu():
        runpy.run_path(script, run_name="__main__")
    end()


if __name__ == "__main__":
    main()
