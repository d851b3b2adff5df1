"""Findings on dynamic shapes: what is told, how loud, where it leads, and what is left alone."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import CATALOGUE, NPU, check, code, findings, unmarked
from npulens.analysis import StatementCache, analyze, analyze_shapes
from npulens.catalog.model import Severity, Target, TorchVersion
from npulens.cli.main import cli
from npulens.text.document import Document

HEAD = "import torch\nfrom torch import Tensor, nn\n\n\n"
# What is marked is found, and nothing else; each stands behind HEAD.
FOUND = {
    "functions-in-lists-and-tables": """
        def pick(functions, x: Tensor):
            return ⟦NPU802:x[x > 0]⟧

        class Net(nn.Module):
            def forward(self, x):
                def inner(y):
                    return y
                return pick([inner, lambda z: z], x), pick({"f": inner}, x)
        """,
    "windows-of-one-length-wait-for-where-they-start": """
        def forward(x: Tensor, pointer: Tensor, length: int) -> Tensor:
            start = ⟦NPU805:pointer.item()⟧
            x[:, start : start + length] = 0
            return x[start : length + start]
        """,
    "windows-whose-length-is-read": """
        def forward(x: Tensor, pointer: Tensor, lengths: Tensor) -> Tensor:
            start, length = ⟦NPU805:int(pointer)⟧, ⟦NPU805:int(lengths.sum())⟧
            return ⟦NPU804:x[start : start + length]⟧
        """,
    "operators": """
        def forward(x: Tensor) -> Tensor:
            return ⟦NPU801:torch.nonzero(x > 0)⟧
        """,
    "of-a-method": """
        def forward(x: Tensor) -> Tensor:
            return ⟦NPU801:x.unique()⟧
        """,
    "parameter-that-may-be-of-another-class": """
        from typing import Optional, Union

        def forward(x, chosen: Optional[Union[torch.Tensor, "Block"]] = None):
            if chosen is not None and ⟦NPU806:(chosen == 0).any()⟧:
                return x
        """,
    "not-an-engine-that-runs-the-backward-pass": """
        class Trainer:
            def train(self, model, loader):
                for batch in loader:
                    loss = self.training_step(model, batch)
                    if ⟦NPU806:torch.isnan(loss)⟧:
                        break

            def training_step(self, model: nn.Module, inputs) -> Tensor:
                loss = self.compute_loss(model, inputs)
                if self.engine:
                    loss = self.engine.backward(loss)
                else:
                    loss.backward()
                return loss.detach()
        """,
    "under-another-name": """
        from torch import nonzero as places

        def forward(x: Tensor) -> Tensor:
            return ⟦NPU801:places(x)⟧
        """,
    "masks-by-how-they-are-made": """
        def forward(x: Tensor, chosen: Tensor) -> Tensor:
            a = chosen.isnan() | (x > 1)
            return ⟦NPU802:x[a]⟧
        """,
    "mask-between-others": """
        def forward(x: Tensor) -> Tensor:
            kept = x[0, :, 0] > 1
            return ⟦NPU802:x[:, kept, :]⟧
        """,
    "length-as-an-argument": """
        def forward(x: Tensor, lengths: Tensor) -> Tensor:
            max_length = lengths.clamp(min=2).max()
            return ⟦NPU804:x.new_zeros(x.size(0), max_length)⟧
        """,
    "length-over-samples": """
        def forward(x: Tensor, mask: Tensor) -> Tensor:
            tdnn_lengths = mask.sum(dim=1)
            parts = []
            for i, length in enumerate(⟦NPU805:tdnn_lengths⟧):
                parts.append(⟦NPU804:x[i, :length]⟧.mean(dim=0))
            return torch.stack(parts)
        """,
    "written-to-elements": """
        def forward(mask: Tensor, seen: Tensor, places: Tensor) -> None:
            for place in ⟦NPU801:torch.nonzero(places)⟧:
                row, col = place[0], place[1]
                mask[⟦NPU805:row⟧, col, col] = True
                seen[0, ⟦NPU805:col⟧] = False
        """,
    "repeats-alone": """
        def forward(x: Tensor, counts: Tensor) -> Tensor:
            return x[⟦NPU801:torch.repeat_interleave(counts)⟧]
        """,
    "parts-of-what-is-handed-in": """
        class Net(nn.Module):
            def forward(self, x, past: list[Tensor]):
                key, cache_size, sizes = past[0]
                first = ⟦NPU805:key.mean().item()⟧
                if cache_size > 0:
                    x = x + first
                if ⟦NPU806:sizes > 0⟧:
                    x = x + key
                return x
        """,
    "a-device-that-is-the-host-in-one-case": """
        def run(args, x: Tensor) -> Tensor:
            if args.device == "npu" and not torch.npu.is_available():
                args.device = "cpu"
            device = torch.device(args.device)
            for epoch in range(args.epochs):
                x = x.to(device)
                x.sum().backward()
                print(⟦NPU805:x.sum().item()⟧)
            return x
        """,
    "a-device-that-is-the-host": """
        def run(args, x: Tensor) -> Tensor:
            args.device = "cpu"
            device = torch.device(args.device)
            for epoch in range(args.epochs):
                x.sum().backward()
                print(⟦NPU805:x.to(device)⟧)
                print(⟦NPU805:x.sum().item()⟧)
            return x
        """,
    "parts-of-an-annotated-tuple": """
        class Resample(nn.Module):
            def forward(self, audio: tuple[Tensor, int]) -> Tensor:
                wave, rate = audio
                if rate != self.rate:
                    wave = wave * ⟦NPU805:wave.max().item()⟧
                return wave
        """,
    "repeats-of-a-tensor": """
        def forward(x: Tensor, repeats: Tensor) -> Tensor:
            return ⟦NPU801:x.repeat_interleave(repeats, dim=0)⟧
        """,
    "mask-through-a-helper": """
        def pick(x, where):
            return ⟦NPU802:x[where]⟧

        def forward(x: Tensor) -> Tensor:
            return pick(x, x > 0)
        """,
    "mask-of-a-member": """
        class Net(nn.Module):
            def forward(self, x):
                self.kept = x.sigmoid() > 0.5
                return ⟦NPU802:x[self.kept]⟧
        """,
    "branch": """
        def forward(x: Tensor) -> Tensor:
            if ⟦NPU806:x.isnan().any()⟧:
                x = x * 0
            return x
        """,
    "branch-by-or": """
        def forward(x: Tensor, quick: bool) -> Tensor:
            while quick or not ⟦NPU806:(x < 1).all()⟧:
                x = x / 2
            return x
        """,
    "size": """
        def forward(x: Tensor, lengths: Tensor) -> Tensor:
            longest = ⟦NPU805:lengths.max().item()⟧
            return ⟦NPU804:x[:, :longest]⟧
        """,
    "growing": """
        def forward(step, ids: Tensor) -> Tensor:
            for _ in range(8):
                ⟦NPU809:ids = torch.cat([ids, step(ids)], dim=1)⟧
            return ids
        """,
    "growing-cache": """
        class Cache:
            def __init__(self) -> None:
                self.keys, self.layers = None, []

            def forward(self, keys: Tensor, layer: int) -> Tensor:
                if self.keys is None:
                    self.keys = keys
                else:
                    ⟦NPU809:self.keys = torch.cat([self.keys, keys], dim=-2)⟧
                ⟦NPU809:self.layers[layer] = torch.cat((self.layers[layer], keys), dim=-2)⟧
                return self.keys
        """,
    "growing-entries": """
        def forward(model, ids: Tensor, past: list) -> Tensor:
            while ids.shape[1] < 64:
                out = model(ids)
                for layer in range(3):
                    ⟦NPU809:past[layer] = torch.cat([past[layer], out], dim=1)⟧
                ⟦NPU809:ids = torch.cat([ids, out.argmax(-1)], dim=-1)⟧
            return ids
        """,
    "of-transformers": """
        class ThinkerTransformer(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return ⟦NPU802:x[x > 0]⟧
        """,
    "processors-of-the-device": """
        class FlowAttnProcessor2_0:
            def __call__(self, x: Tensor) -> Tensor:
                return ⟦NPU802:x[x > 0]⟧

        class TopLogitsProcessor:
            def __call__(self, scores: Tensor) -> Tensor:
                return ⟦NPU801:scores.unique()⟧
        """,
    "names-of-comprehensions-are-their-own": """
        def training_step(options: dict, outputs: dict) -> None:
            for value in outputs.values():
                value = value.unsqueeze(0)
            print(", ".join(f"{value}" for value in options.values()))
            print({key: ⟦NPU805:value.detach().item()⟧ for key, value in outputs.items()})
        """,
    "flag-that-a-loop-sets": """
        def forward(x: Tensor) -> Tensor:
            found = False
            for _ in range(3):
                if found:
                    x = ⟦NPU802:x[x > 0]⟧
                found = True
            return x
        """,
    "what-is-surely-a-tensor": """
        def forward(x: Tensor) -> float:
            if isinstance(x, torch.Tensor):
                return ⟦NPU805:x.item()⟧
            return 0.0
        """,
    "handed-from-host-by-one-call-of-two": """
        class Tracker:
            def forward(self, boxes: Tensor) -> None:
                self.update(torch.full((4,), -1))
                self.update(boxes)

            def update(self, numbers: Tensor) -> None:
                self.rest = ⟦NPU801:torch.nonzero(numbers == -1)⟧
        """,
    "handed-from-the-host": """
        class Tracker:
            def forward(self, boxes: Tensor) -> None:
                self.update(torch.full((4,), -1), boxes)
                return ⟦NPU801:boxes.unique()⟧

            def update(self, numbers: Tensor, boxes: Tensor) -> None:
                rest = torch.nonzero(numbers == -1).squeeze(1)
                self.rest = rest[rest > 0]
        """,
    "masks-of-what-is-not-known": """
        def forward(boxes, scores: Tensor):
            keep = scores > 0.5
            ⟦NPU803:boxes.scores[keep]⟧ = 0
            return ⟦NPU802:boxes.wide[keep]⟧
        """,
    "masks-over-several-lines": """
        def forward(scores: Tensor, threshold: float) -> Tensor:
            keep = scores.softmax(
                0)[0] * scores >= threshold
            return ⟦NPU802:scores[keep]⟧
        """,
    "lists-of-multi-apply": """
        from .misc import multi_apply

        class Head(nn.Module):
            def loss(self, scores: Tensor, targets: list) -> Tensor:
                (masks, numbers) = multi_apply(self._one, scores, targets)
                masks = torch.cat(masks, 0)
                return ⟦NPU802:scores.flatten()[masks]⟧

            def _one(self, scores: Tensor, target: int):
                return scores > target, target
        """,
    "nonzero-of-pytorch": """
        def forward(self, mask):
            return ⟦NPU801:mask.nonzero(as_tuple=True)⟧
        """,
    "reads": """
        def training_step(loss: Tensor, log: dict) -> None:
            log["loss"] = ⟦NPU805:float(loss)⟧
            print("loss", ⟦NPU805:loss⟧)
            log["text"] = f"{⟦NPU805:loss⟧:.3f}"
        """,
    "seed-drawn-in-each-turn": """
        def forward(x: Tensor) -> Tensor:
            draws = torch.Generator(x.device)
            for _ in range(8):
                seed = ⟦NPU805:torch.randint(0, 9, (1,), generator=draws, device=x.device).item()⟧
                x = x + seed
            return x
        """,
    "not-given-by-one-caller": """
        class Net(nn.Module):
            def forward(self, lengths: Tensor) -> Tensor:
                return self._mask(lengths, longest=4) + self._mask(lengths)

            def _mask(self, lengths: Tensor, longest=None) -> Tensor:
                if longest is None:
                    longest = ⟦NPU805:lengths.max().item()⟧
                return lengths.unsqueeze(1) * longest
        """,
    "not-given-from-outside": """
        class Net(nn.Module):
            def forward(self, lengths: Tensor) -> Tensor:
                return self.mask(lengths, longest=4)

            def mask(self, lengths: Tensor, longest=None) -> Tensor:
                if longest is None:
                    longest = ⟦NPU805:lengths.max().item()⟧
                return lengths.unsqueeze(1) * longest
        """,
    "about-to-go-but-in-use": """
        import warnings

        class Scorer(nn.Module):
            def __init__(self) -> None:
                warnings.warn("`Scorer` is deprecated and will be removed in v5.")

            def forward(self, scores: Tensor) -> float:
                return ⟦NPU805:scores.max().item()⟧

        class Net(nn.Module):
            def __init__(self) -> None:
                self.scorer = Scorer()
        """,
    "device-tensor-with-a-host-number": """
        def forward(x: Tensor) -> Tensor:
            y = torch.arange(4, device=x.device) * torch.tensor(2)
            y = torch.nn.functional.pad(y, (0, x.shape[0]))
            return ⟦NPU802:y[y > x]⟧
        """,
    "method-about-to-go-but-in-use": """
        class Pipeline:
            def decode(self, latents: Tensor):
                deprecate("decode", "1.0.0", "The decode method is deprecated")
                return ⟦NPU805:latents.max().item()⟧

            def sample(self, latents: Tensor):
                return self.decode(latents)
        """,
    "arrays-for-the-next-step": """
        import numpy as np

        def forward(costs: Tensor) -> Tensor:
            rows = np.argsort(⟦NPU805:costs.cpu()⟧.numpy())
            return costs + torch.from_numpy(rows)
        """,
    "at-module-level": """
        total = 0.0
        for batch in torch.randn(4, 8, device="npu"):
            total += ⟦NPU805:batch.sum().item()⟧
        """,
}
SILENT = {
    "what-numpy-takes-is-on-the-host": """
        def forward(x: Tensor, mask: Tensor) -> Tensor:
            rows = x.detach().numpy()
            return torch.from_numpy(rows[mask.numpy()])
        """,
    "repeats-that-are-not-known": """
        def widened(self, x: Tensor, n, mask: Tensor) -> Tensor:
            x = x.repeat_interleave(n, dim=0) + torch.repeat_interleave(mask, repeats=self.n, dim=0)
            return x.repeat_interleave(repeats=self.n // 2, dim=1)
        """,
    "repeats-to-a-given-length": """
        def forward(x: Tensor, counts: Tensor, total: int) -> Tensor:
            return torch.repeat_interleave(x, counts, dim=0, output_size=x.shape[0]) + x[
                torch.repeat_interleave(counts, output_size=total)
            ]
        """,
    "masks-by-name": "def forward(x: Tensor, mask: Tensor) -> Tensor:\n    return x[mask]",
    "numbers-called-masks": """
        def forward(x: Tensor, mask: torch.LongTensor) -> Tensor:
            return x[mask]
        """,
    "no-growing-cache": """
        class Queue:
            def forward(self, keys: Tensor, caches: list) -> Tensor:
                self.keys = torch.cat([self.keys, keys])
                self.keys = self.keys[-16:]
                for cache in caches:
                    cache.keys = torch.cat([cache.keys, keys])
                for layer in range(3):
                    caches[layer] = torch.cat([caches[layer], keys])
                window = keys
                for _ in range(8):
                    window = torch.cat([window, keys])
                    window = window[-8:]
                    both = torch.cat([window, keys])
                return both
        """,
    "windows-of-one-length": """
        def forward(x: Tensor, starts: list, length: int) -> Tensor:
            return x[:, starts[0] : starts[0] + length]
        """,
    "processors-of-the-host": """
        class MaskImageProcessor:
            def __call__(self, x: Tensor) -> Tensor:
                return x[x > 0]

        class CropTransform:
            def __call__(self, x: Tensor) -> Tensor:
                return x[x > 0]
        """,
    "flags-that-are-off": """
        def forward(x: Tensor) -> Tensor:
            merge = False
            if merge and x.shape[0] > 3:
                x = x[x > 0]
            return x
        """,
    "what-is-no-tensor": """
        def forward(x: Tensor) -> Tensor:
            if torch.is_tensor(x):
                return x * 2
            return torch.tensor([x], device="npu")
        """,
    "modules-that-are-moved": """
        def train(model, frozen: list) -> None:
            model = model.half()
            for name, weight in model.named_parameters():
                weight.requires_grad = any(part in name for part in frozen)
                weight.sum().backward()
        """,
    "lists-and-tensors-of-the-host": """
        def forward(x: Tensor, first: bool) -> Tensor:
            masks = [torch.arange(4) > 1]
            for number in range(3):
                masks.append(torch.rand(4) > number)
            if first:
                masks = masks[0]
            return x * torch.stack(masks, dim=0)[0].item()
        """,
    "copies-made-on-the-host": """
        def forward(x: Tensor) -> Tensor:
            return torch.zeros_like(x, device="cpu").unique()
        """,
    "lengths-of-what-is-told-already": """
        def forward(lengths: Tensor) -> Tensor:
            made = torch.zeros(lengths.shape[0], 4, device=lengths.device)
            return torch.arange(made.shape[1], device=lengths.device)
        """,
    "runtime-of-ascend": """
        class Backend(nn.Module):
            def load(self, path: str) -> None:
                from ais_bench.infer.interface import InferSession

                self.session = InferSession(0, path)

            def forward(self, image: Tensor):
                return self.session.infer([image.cpu().numpy()])
        """,
    "numbers-as-index": """
        def forward(x: Tensor, chosen: Tensor) -> Tensor:
            order = (chosen > 0).long().argsort()
            return x[order]
        """,
    "numpy": "import numpy as np\n\ndef forward(x):\n    y = np.asarray(x)\n    return y[y > 0]",
    "not-known-to-be-a-tensor": "def rate(record):\n    return record.value.item()",
    "host-tensors": """
        def forward(n: int) -> float:
            return torch.zeros(n).sum().item()
        """,
    "tokens-of-the-host": """
        def forward(tokenizer, text: str) -> bool:
            first = tokenizer(text, return_tensors="pt").input_ids
            other = tokenizer(text + ".", return_tensors="pt").input_ids
            return torch.equal(first, other)
        """,
    "datasets": """
        class Pairs(torch.utils.data.Dataset):
            def __getitem__(self, index: int) -> Tensor:
                return self.x[self.x > index].unique()
        """,
    "shapes-and-types": """
        def forward(x: Tensor, y: Tensor | None) -> Tensor:
            if x.shape[0] > 4 and y is not None and x.dtype == y.dtype and x.numel():
                print(x.shape, f"{x.dtype}")
            return x
        """,
    "made-anew-in-each-turn": """
        def forward(parts: list[Tensor], other: Tensor) -> None:
            for part in parts:
                both = part * 2
                both = torch.cat([both, other])
        """,
    "loaders-of-evaluation": """
        from torch.utils.data import DataLoader

        val_loader = DataLoader(dataset, batch_size=4)
        """,
    "mask-of-a-padded-host-tensor": """
        def forward(grid: Tensor, width: list[int]) -> Tensor:
            rows = torch.arange(8).reshape(2, 4)
            rows = torch.nn.functional.pad(rows, (0, width[0]), "constant", -1)
            rows = rows.reshape(-1, width[0])
            return rows[rows != -1]
        """,
    "mask-of-host-tensors-joined": """
        def forward(x: Tensor) -> Tensor:
            both = torch.cat([torch.full((3, 4), 2.0), torch.linspace(0, 1, 4)[None]])
            taken = both[both > 1]
            seen = torch.zeros(4, dtype=torch.bool)
            return taken.sum() + torch.tensor([1, 2, 3, 4])[~seen].sum()
        """,
    "host-tensor-in-one-branch": """
        def forward(x: Tensor, place: Tensor | None = None) -> Tensor:
            place = torch.arange(9) if x.dim() else torch.zeros(4)
            place = place * 2
            return place[place > 3]
        """,
    "no-size": """
        def forward(mask: Tensor, x: Tensor) -> Tensor:
            unique = mask.new_ones((x[:2]))
            return unique
        """,
    "other-runtimes": """
        from numpy import ndarray

        class Backend(nn.Module):
            def load(self, path: str) -> None:
                from openvino import Core

                self.net = Core().compile_model(path)

            def forward(self, image: Tensor) -> ndarray:
                image = image.cpu()
                return self.net(image.numpy())
        """,
    "session-of-another-runtime": """
        import onnxruntime as runtime

        class Backend:
            def __init__(self, path: str) -> None:
                self.session = runtime.InferenceSession(path)

            def forward(self, image: Tensor):
                return self.session.run(None, {"x": image.cpu().numpy()})
        """,
    "calibration": """
        class Hook:
            def _calibration_step(self, now: Tensor, before: Tensor) -> None:
                self.ratios.append((now / before).mean().item())

            def forward(self, now: Tensor, before: Tensor) -> Tensor:
                if self.config.calibrate:
                    self._calibration_step(now, before)
                return now
        """,
    "seed-drawn-once": """
        def __call__(self, generator, draw: Tensor) -> int:
            seed = int(torch.randint(0, 99, (1,), generator=generator, device=draw.device).item())
            return seed
        """,
    "given-by-all-callers": """
        class Net(nn.Module):
            def forward(self, lengths: Tensor) -> Tensor:
                return self._mask(lengths, longest=lengths.shape[0])

            def _mask(self, lengths: Tensor, longest=None) -> Tensor:
                if longest is None:
                    longest = lengths.max().item()
                return lengths.unsqueeze(1) * longest
        """,
    "about-to-go": """
        import warnings

        class Scorer:
            def __init__(self) -> None:
                warnings.warn("`Scorer` is deprecated and will be removed in v5.")

            def process(self, scores: Tensor) -> float:
                return scores.max().item()
        """,
    "method-about-to-go": """
        class Pipeline:
            def decode(self, latents: Tensor):
                deprecate("decode", "1.0.0", "The decode method is deprecated")
                return latents.max().item()
        """,
    "pictures-for-the-caller": """
        def sample(image: Tensor):
            image = (image / 2 + 0.5).clamp(0, 1)
            image = image.cpu().permute(0, 2, 3, 1).float().numpy()
            return image
        """,
    "arrays-for-the-caller": """
        import numpy as np

        def features(model, text: Tensor) -> np.ndarray:
            return text.sigmoid().detach().cpu().numpy()
        """,
    "collators": """
        class TextCollator:
            def create_mask(self, masks: Tensor) -> Tensor:
                return torch.ones(masks.sum().item())
        """,
    "modules-of-devices": """
        def owner(device: str):
            return torch.get_device_module(device)

        def wait(device: str) -> None:
            if owner(device).is_available():
                print("waits")
        """,
    "other-accelerators": """
        def rotate(ids: Tensor) -> Tensor:
            if ids.device.type == "mps":
                ids = ids.to("cpu")
            return ids * 2
        """,
    "errors": """
        def forward(x: Tensor) -> Tensor:
            if x.dim() != 2:
                raise ValueError(f"not a matrix: {x}")
            return x
        """,
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    check(HEAD + code(FOUND[name]))


@pytest.mark.parametrize("name", SILENT)
def test_what_is_left_alone(name: str) -> None:
    check(HEAD + code(SILENT[name]))


MODEL = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, x: Tensor):\n        return x[x > 0].sum()\n"
)


FILES = {
    "/data/me/project/model.py": True,
    "/home/me/tests/project/losses/focal.py": True,
    "models/visual_bert/modeling_visual_bert.py": True,
    "models/retrieval/scores.py": True,
    "detectron2/data/mapper.py": False,
    "mmdet/datasets/samplers/balanced.py": False,
    "mmdet/evaluation/functional/mean_ap.py": False,
    "project/tests/model.py": False,
    "tools/convert-weights.py": False,
    "project/model_debugging_utils.py": False,
    "engine/results.py": False,
    "engine/resulting.py": True,
}


@pytest.mark.parametrize("path", FILES)
def test_a_file_and_its_folder_tell_what_it_is_for(path: str) -> None:
    document = Document(path, MODEL, 1)
    found = analyze(document, CATALOGUE, Target(TorchVersion(2, 8), NPU))
    assert bool(found) == FILES[path]


SOURCE = "x[scores > 0.5]"
PLACES = {
    "forward pass": ("def forward({}):\n    return {}", Severity.WARNING),
    "loop of it": ("def forward({}):\n    for _ in range(3):\n        y = {}", Severity.WARNING),
    "called by it": (
        "def pick({}):\n    return {}\n\n\ndef forward({}):\n    return pick(x, scores)",
        Severity.WARNING,
    ),
    "training": (
        "def run({}):\n    for _ in range(3):\n        y = {}\n        y.sum().backward()",
        Severity.WARNING,
    ),
    "anywhere": ("def pick({}):\n    return {}", Severity.HINT),
    "evaluation": ("def evaluate({}):\n    return {}", None),
    "start-up": ("def build_targets({}):\n    return {}", None),
    "start of a run": ("def set_timesteps({}):\n    return {}", None),
    "loading of weights": ("def resize_position_table({}):\n    return {}", None),
    "metrics of an assigner": (
        "def metrics({}):\n    return {}\n\n\ndef forward({}):\n    return metrics(x, scores)",
        Severity.WARNING,
    ),
    "targets of a loss": (
        "def build({}):\n    return {}\n\n\ndef loss({}):\n    return build(x, scores)",
        Severity.WARNING,
    ),
    "logits are no log": ("def logits({}):\n    return {}", Severity.HINT),
    "checkpoints are no check": ("def checkpointed({}):\n    return {}", Severity.HINT),
    "nested in start-up": (
        "def setup({}):\n    def inner():\n        return {}\n    return inner()",
        None,
    ),
    "kernels of another device": ("def cuda_kernels_forward({}):\n    return {}", None),
    "calibration": ("def _calibration_step({}):\n    return {}", None),
    "what the caller wants": (
        "def sample({}, output_type: str):\n    if output_type == 'np':\n        return {}",
        None,
    ),
    "every so many steps": (
        "def training_step({}, step: int):\n    if step % 100 == 0:\n        y = {}",
        None,
    ),
    "loops of an evaluation": (
        "def evaluate({}):\n    for _ in range(3):\n        for _ in range(3):\n            y = {}",
        None,
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_how_loud_a_place_is_told(name: str) -> None:
    template, severity = PLACES[name]
    arguments = "x: Tensor, scores: Tensor"
    text = template.format(*[arguments, SOURCE, arguments][: template.count("{}")])
    found = [f.effective_severity for f in findings(HEAD + text + "\n")]
    assert found == ([] if severity is None else [severity])


def test_what_works_on_the_result_belongs_to_the_finding() -> None:
    source = HEAD + code(
        """
        def forward(x: Tensor) -> Tensor:
            kept = x[x > 0]
            scaled = kept * 2
            return scaled.exp().sum()
        """
    )
    (finding,) = findings(source)
    assert [source[slice(*part.span)] for part in finding.related] == [
        "kept * 2",
        "scaled.exp()",
        "scaled.exp().sum()",
    ]


def test_the_table_of_operators_says_what_is_better_in_both_languages() -> None:
    for entry in CATALOGUE.operators.values():
        assert entry.advice.en
        assert entry.advice.zh
        assert entry.source


OF_EVALUATION = HEAD + code(
    """
    def pick(x, where):
        return x[where]

    def evaluate(x: Tensor) -> Tensor:
        return pick(x, x > 0)
    """
)


def test_what_only_an_evaluation_leads_to_is_in_the_ranked_list_alone() -> None:
    cache = StatementCache()
    assert findings(OF_EVALUATION) == findings(OF_EVALUATION, cache=cache) == ()
    assert [each.hotspot.symbol for each in cache.shapes.ranked] == ["x[where]"]
    training = OF_EVALUATION.replace("evaluate", "forward")
    assert findings(training, cache=cache) == findings(training) != ()
    assert findings(OF_EVALUATION, cache=cache) == ()


EDITS = [
    ("x > 0", "x > 1"),
    ("def pick(x, where):", "def pick(x, where):\n    where = where.long()"),
    ("def forward", "def evaluate"),
    ("return pick", "return 2 * pick"),
    ("import torch\n", "import torch\nimport os\n"),
]


@pytest.mark.parametrize(("before", "after"), EDITS)
def test_findings_kept_while_typing_are_those_of_a_new_analysis(before: str, after: str) -> None:
    source, _ = unmarked(HEAD + code(FOUND["mask-through-a-helper"]))
    cache = StatementCache()
    findings(source, cache=cache)
    changed = source.replace(before, after, 1)
    assert changed != source
    assert findings(changed, cache=cache) == findings(changed)
    assert findings(source, cache=cache) == findings(source)
    document = Document("snippet.py", source, 1)
    assert cache.shapes == analyze_shapes(document, CATALOGUE)


def test_hints_have_symbolic_shapes_counts_and_the_way_from_the_source() -> None:
    source = HEAD + code(
        """
        def forward(x: Tensor, classes: int) -> Tensor:
            batch, boxes, width = x.shape
            mask = x[..., 0] > 0.5
            kept = x[mask]
            coded = kept.new_zeros(batch, 4)
            return kept.sum() + coded
        """
    )
    report = analyze_shapes(Document("snippet.py", source, 1), CATALOGUE)
    named = {source[slice(*hint.span)]: hint for hint in report.hints}
    shown = {name: hint.shape for name, hint in named.items()}
    assert shown == {
        "forward": "",
        "mask": "[batch, boxes]",
        "kept": "[?, width]",
        "coded": "[batch, 4]",
    }
    assert named["kept"].is_dynamic
    assert not named["mask"].is_dynamic
    assert [source[slice(*span)] for _, span in named["kept"].sources] == ["x[mask]"]
    assert (named["forward"].shapes, named["forward"].synchronizations) == (1, 1)


@pytest.mark.parametrize(
    ("made", "is_dynamic"),
    [
        ('torch.randn(32, 8, device="npu")', True),
        ('torch.randint(9, (32, 8), device="npu")', True),
        ('torch.arange(9, device="npu")', False),
        ('torch.tensor([1.5, 2.5], device="npu")', False),
    ],
)
def test_random_values_are_none_that_are_written(made: str, is_dynamic: bool) -> None:
    source = HEAD + f"def forward():\n    x = {made}\n    kept = x[x > 0]\n    return kept.exp()\n"
    hints = analyze_shapes(Document("snippet.py", source, 1), CATALOGUE).hints
    (forward,) = [hint for hint in hints if source[slice(*hint.span)] == "forward"]
    assert (forward.shapes, forward.synchronizations) == (int(is_dynamic), 1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    forward, _ = unmarked(HEAD + code(FOUND["operators"]))
    (tmp_path / "model.py").write_text(forward)
    rare = HEAD + "def evaluate(x: Tensor) -> float:\n    return x.sum().item()\n"
    (tmp_path / "evaluation.py").write_text(rare)
    return tmp_path


def test_the_command_ranks_all_places(project: Path) -> None:
    result = CliRunner().invoke(cli, ["shapes", str(project), "--output-format", "json"])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [(row["rank"], row["code"], row["kind"], row["reached"]) for row in rows] == [
        (1, "NPU801", "shape, wait", "training"),
        (2, "NPU805", "wait", "evaluation"),
    ]
    assert rows[0]["score"] > rows[1]["score"]
    assert (rows[0]["line"], rows[0]["function"]) == (6, "forward")


def test_the_command_writes_csv_with_the_same_rows(project: Path) -> None:
    out = project / "shapes.csv"
    arguments = ["shapes", str(project), "--output-format", "csv", "--output", str(out)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert [row["code"] for row in rows] == ["NPU801", "NPU805"]


def test_the_command_speaks_both_languages_and_keeps_a_limit(project: Path) -> None:
    for language, word in (("en", "Better"), ("zh", "建议")):
        arguments = ["shapes", str(project), "--limit", "1", "--language", language]
        text = CliRunner().invoke(cli, arguments).stdout
        assert word in text
        assert "NPU805" not in text


def test_the_command_refuses_what_is_not_there(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["shapes", str(tmp_path / "none.py")]).exit_code == 2
