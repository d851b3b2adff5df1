"""Shapes in code that does not run on the NPU, and in code that only looks so."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import CATALOGUE, NPU, check, code
from npulens.analysis import analyze
from npulens.catalog.model import Target, TorchVersion
from npulens.cli.main import cli
from npulens.text.document import Document

HEAD = "import math\nimport pickle\nimport torch\nimport torch.distributed as dist\n"
HEAD += "from torch import Tensor, nn\nfrom transformers import PreTrainedModel\n\n\n"
# What is marked is found, and nothing else; each stands behind HEAD.
CASES = {
    "a-way-for-want-of-memory": """
        def forward(boxes: Tensor) -> Tensor:
            try:
                return assign(boxes)
            except RuntimeError:
                print(boxes.cpu())
                return assign(boxes, mode="cpu")

        def assign(boxes: Tensor, mode: str = "gpu") -> Tensor:
            if mode == "cpu":
                boxes = boxes.cpu()
            chosen = ⟦NPU802:boxes[boxes > 0]⟧
            if mode != "gpu":
                print(⟦NPU805:chosen.max()⟧)
            return chosen
        """,
    "another-way-for-want-of-memory": """
        def forward(x: Tensor) -> Tensor:
            try:
                return ⟦NPU802:x[x > 0]⟧.exp()
            except torch.OutOfMemoryError:
                print("once more in parts")
            return torch.cat([part[part > 0].exp() for part in x])
        """,
    "a-way-without-a-library": """
        def forward(x: Tensor) -> Tensor:
            try:
                from chosen import select

                return select(x)
            except ImportError:
                print(⟦NPU805:x.max()⟧)
            return ⟦NPU802:x[x > 0]⟧.exp()
        """,
    "a-condition-over-lines": """
        def forward(x: Tensor, mask: Tensor) -> Tensor:
            if (
                mask is None
                or (
                    ⟦NPU806:mask.all()
                    if x.ndim == 2
                    else mask[:, :2].all()⟧
                )
            ):
                return x
            return x.exp()
        """,
    "where-of-one-argument-with-commas": """
        def forward(x: Tensor, valid: Tensor) -> Tensor:
            rows = ⟦NPU801:torch.where((x[..., 0] >= 0) & (valid[..., 0] > 0))⟧[0]
            return x[rows].exp()
        """,
    "pytorch-itself-is-asked": """
        def forward(x: Tensor, limit: float) -> Tensor:
            if torch.is_grad_enabled() and not torch.jit.is_tracing():
                x = x.exp()
            if ⟦NPU806:torch.sigmoid(x.mean()) > limit⟧:
                return x.log()
            return x
        """,
    "tokens": """
        def encode(tokenizer, text: str, device) -> Tensor:
            text_ids = tokenizer(text, return_tensors="pt").input_ids
            longest_ids = tokenizer(text, padding="longest", return_tensors="pt").input_ids
            if not torch.equal(text_ids, longest_ids):
                print("cut")
            return text_ids.to(device)
        """,
    "logging": """
        def forward(x: Tensor, logger) -> Tensor:
            if logger.isEnabledFor(10):
                print(x.cpu())
            return ⟦NPU802:x[x > 0]⟧
        """,
    "what-is-tried": """
        def forward(x: Tensor) -> Tensor:
            try:
                return ⟦NPU802:x[x > 0]⟧
            except RuntimeError:
                return x
        """,
    "before-an-error": """
        def forward(x: Tensor) -> Tensor:
            if ⟦NPU806:(x == 0).all()⟧:
                places = (x == 0).nonzero().tolist()
                raise ValueError(f"nothing at {places}")
            if ⟦NPU806:(x == 1).all()⟧:
                x = ⟦NPU802:x[x > 0]⟧
            return x
        """,
    "where-values-are-not-finite": """
        def forward(x: Tensor) -> Tensor:
            if ⟦NPU806:torch.isnan(x).any()⟧ or not ⟦NPU806:x.isfinite().all()⟧:
                x = x[~torch.isnan(x)]
            if not ⟦NPU806:torch.isnan(x).any()⟧:
                x = ⟦NPU802:x[x > 0]⟧
            return x
        """,
    "on-other-devices": """
        def forward(x: Tensor, device: torch.device) -> Tensor:
            if device.type in ("cpu", "mps"):
                return x[x > 0]
            if x.device == torch.device("cpu"):
                return x[x > 1]
            return x * 2
        """,
    "on-this-device-too": """
        def forward(x: Tensor, device: torch.device) -> Tensor:
            if device.type in ("gpu", "cpu"):
                return ⟦NPU802:x[x > 0]⟧
            if device.type != "cpu":
                return ⟦NPU802:x[x > 1]⟧
            return x[x > 2]
        """,
    "on-this-device-in-any-case": """
        def forward(x: Tensor, device: torch.device) -> Tensor:
            if device.type in ("npu", "cpu"):
                return ⟦NPU802:x[x > 0]⟧
            if device.type != "cpu":
                return x[x > 1]
            return x[x > 2]
        """,
    "lists-without-elements": """
        def forward(x: Tensor, count: int) -> Tensor:
            parts = []
            for index in range(count):
                parts.append(x[index].exp().sum())
            first = torch.stack(parts) if len(parts) > 0 else torch.tensor(parts, device=x.device)
            print(⟦NPU805:first.max()⟧)
            return torch.stack(parts) if count > 0 else ⟦NPU805:torch.tensor(parts)⟧
        """,
    "compared-on-the-host": """
        def forward(tokenizer, x: Tensor, empty: bool) -> Tensor:
            ids = tokenizer("a", return_tensors="pt").input_ids
            if empty:
                ids = torch.zeros_like(ids, device=x.device)
            if torch.equal(ids, tokenizer("b", return_tensors="pt").input_ids):
                return x
            return x * 2 if ⟦NPU805:torch.equal(x, x * 2)⟧ else x
        """,
    "kept-on-the-host": """
        class Scheduler:
            def set_timesteps(self, steps: int) -> None:
                self.sigmas = torch.linspace(0, 1, steps, device="npu").unsqueeze(0)
                self.times = self.sigmas * 2
                self.sigmas = self.sigmas.to("cpu")

            def forward(self, x: Tensor, step: int) -> Tensor:
                if self.sigmas[:, step].max() > 0:
                    return x / self.sigmas.unsqueeze(1)
                if ⟦NPU806:self.times[:, step].max() > 0⟧:
                    return x / self.times.unsqueeze(1)
                return x
        """,
    "what-may-be-no-tensor": """
        class Net(nn.Module):
            def forward(self, x, settings):
                if settings.is_wanted(1) and ⟦NPU806:x.sum() > 0⟧:
                    return ⟦NPU802:x[x.softmax(-1) > 0]⟧
                return x
        """,
    "where-results-are-kept": """
        def forward(x: Tensor, offload_device: str) -> Tensor:
            if offload_device == "cpu":
                x = ⟦NPU805:x.cpu()⟧
            return x
        """,
    "exporting": """
        class Net(nn.Module):
            def forward(self, x: Tensor, lengths: Tensor, onnx_export: bool = False) -> Tensor:
                if torch.jit.is_tracing() and lengths.max() > 3:
                    return x
                if torch.onnx.is_in_onnx_export() or self.export:
                    return x[:, : int(lengths.max())]
                if not onnx_export:
                    return x + 1
                return x[x > 0]
        """,
    "not-exporting": """
        class Net(nn.Module):
            def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
                if not torch.jit.is_tracing() and ⟦NPU806:lengths.max() > 3⟧:
                    return x
                if ⟦NPU806:lengths.min() > 3⟧ and torch.onnx.is_in_onnx_export():
                    return x
                return ⟦NPU802:x[x > 0]⟧ if not self.export else x[x > 1]
        """,
    "words-that-look-so": """
        def forward(x: Tensor, expert: int) -> Tensor:
            if expert:
                return ⟦NPU802:x[x > 0]⟧
            return x
        """,
    "other-frameworks": """
        class Pipeline:
            def forward(self, scores: Tensor) -> list:
                if self.framework == "pt":
                    return ⟦NPU805:scores.tolist()⟧
                return scores.numpy().tolist()

            def run_forward(self, scores: Tensor, return_tensors: str, kind: str) -> list:
                if return_tensors == "tf":
                    return scores.tolist()
                if kind == "tf":
                    return ⟦NPU805:scores.tolist()⟧
                return [⟦NPU805:scores.max().item()⟧]
        """,
    "what-turns-tensors-into-arrays": """
        def mask2ndarray(mask: Tensor):
            array = mask.detach().cpu()
            return array.numpy()

        def masked(mask: Tensor):
            array = ⟦NPU805:mask.detach().cpu()⟧
            return array.numpy()
        """,
    "attention-that-is-not-there": """
        class NetPreTrainedModel(PreTrainedModel):
            _supports_flash_attn = False

        class Net(NetPreTrainedModel):
            def forward(self, mask: Tensor) -> Tensor:
                if self.config._attn_implementation == "flash_attention_2":
                    return mask if (mask == 0.0).any() else None
                if ⟦NPU806:(mask == 1.0).any()⟧:
                    return mask * 2
                return mask
        """,
    "attention-that-is-there": """
        class NetPreTrainedModel(PreTrainedModel):
            _supports_flash_attn = True

        class Net(NetPreTrainedModel):
            def forward(self, mask: Tensor) -> Tensor:
                if self.config._attn_implementation == "flash_attention_2":
                    return mask if ⟦NPU806:(mask == 0.0).any()⟧ else None
                return mask
        """,
    "attention-of-another-module": """
        class Net(nn.Module):
            def forward(self, mask: Tensor) -> Tensor:
                if self.config._attn_implementation == "flash_attention_2":
                    return mask if ⟦NPU806:(mask == 0.0).any()⟧ else None
                return mask
        """,
    "kernels-beside-the-npu": """
        def _native_npu_attention(q: Tensor, mask: Tensor) -> Tensor:
            return q * mask

        def _flash_attention_varlen(q: Tensor, mask: Tensor) -> Tensor:
            places = mask.flatten().nonzero().flatten()
            return q.flatten(0, 1)[places]

        def _eager_attention(q: Tensor, mask: Tensor) -> Tensor:
            return q[⟦NPU801:mask.nonzero()⟧]

        def _flash_scores(q: Tensor, mask: Tensor) -> Tensor:
            return q[⟦NPU801:mask.nonzero()⟧]
        """,
    "kernels-alone": """
        def _flash_attention_varlen(q: Tensor, mask: Tensor) -> Tensor:
            places = ⟦NPU801:mask.flatten().nonzero()⟧.flatten()
            return q.flatten(0, 1)[places]
        """,
    "objects-as-bytes": """
        def gather_objects(data: object, group: object) -> list:
            tensor = torch.tensor(list(pickle.dumps(data)), device=DEVICE)
            size, tensor = _padded(tensor, group)
            found = [torch.empty((size,), device=DEVICE)]
            dist.all_gather(found, tensor, group=group)
            return [pickle.loads(each.cpu().numpy().tobytes()) for each in found]

        def _padded(tensor: Tensor, group: object) -> tuple:
            size = torch.tensor([tensor.numel()], device=DEVICE)
            dist.all_reduce(size, dist.ReduceOp.MAX, group)
            longest = int(size.item())
            return longest, torch.cat((tensor, tensor.new_zeros(longest)))
        """,
    "tensors-of-a-batch": """
        def gather_batches(tensor: Tensor, group: object) -> Tensor:
            size = torch.tensor([tensor.shape[0]], device=DEVICE)
            dist.all_reduce(size, dist.ReduceOp.MAX, group)
            longest = int(⟦NPU805:size.item()⟧)
            return ⟦NPU804:tensor.new_zeros(longest)⟧
        """,
    "sizes-of-the-configuration": """
        class Head(nn.Module):
            def __init__(self, grids: tuple, net: nn.Module) -> None:
                super().__init__()
                self.grids = grids

            def forward(self, x: Tensor, given: Tensor) -> Tensor:
                places = ⟦NPU801:x.nonzero()⟧
                ends = x.new_tensor(self.grids).pow(2).cumsum(0)
                strides = ⟦NPU805:x.new_ones(ends[-1])⟧
                ⟦NPU805:strides[: ends[0]]⟧ *= 2
                last = x.new_tensor(given).cumsum(0)
                ones = x.new_ones(places.size()).sum()
                return ⟦NPU804:x.new_ones(last[-1])⟧ + strides + ⟦NPU804:torch.arange(ones)⟧
        """,
    "sizes-that-change": """
        class Head(nn.Module):
            def __init__(self, grids: tuple) -> None:
                super().__init__()
                self.grids = grids

            def forward(self, x: Tensor, given: Tensor) -> Tensor:
                places = ⟦NPU801:x.nonzero()⟧
                ends = x.new_tensor(self.grids).cumsum(0)
                return ⟦NPU804:x.new_ones(ends[-1])⟧ + places

            def resize(self, sizes: list) -> None:
                self.grids = sizes
        """,
    "numbers-of-the-host": """
        def forward(x: Tensor, part: int) -> Tensor:
            count = torch.div(x.shape[0], part, rounding_mode="trunc")
            return x.new_zeros(count, 4)
        """,
    "heads-that-were-pruned": """
        class Attention(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                kept = torch.ones(x.shape[1])
                if self.pruned_heads:
                    kept[list(self.pruned_heads)] = 0
                    x = x[:, kept.bool()]
                return x
        """,
    "what-is-no-tensor-here": """
        def embed(position, x: Tensor) -> Tensor:
            if isinstance(position, (int, float)):
                position = torch.arange(position)
            return position.unsqueeze(0) + ⟦NPU801:x.nonzero()⟧
        """,
    "what-is-a-tensor-here": """
        def embed(position, x: Tensor) -> Tensor:
            if isinstance(position, torch.LongTensor):
                position = ⟦NPU804:torch.arange(position)⟧
            return position.unsqueeze(0) + ⟦NPU801:x.nonzero()⟧
        """,
    "mask-that-selects-nothing": """
        class Head(nn.Module):
            def forward(self, x: Tensor, labels: Tensor) -> Tensor:
                positive = labels >= 0
                if ⟦NPU806:positive.any()⟧:
                    loss = ⟦NPU802:x[positive]⟧.sum()
                else:
                    loss = x[positive].sum()
                return loss + ⟦NPU802:x[positive]⟧.mean()
        """,
    "one-turn": """
        class Forecast(nn.Module):
            def __init__(self, config: object) -> None:
                super().__init__()
                self.horizon = config.horizon

            def forward(self, x: Tensor) -> Tensor:
                part = self.config.horizon
                turns = (self.horizon + part - 1) // part
                for _ in range(turns):
                    token = x[:, :1]
                    x = torch.cat([x, token], dim=1)
                for _ in range(math.ceil(self.horizon / part)):
                    token = x[:, :1]
                    x = torch.cat([x, token], dim=1)
                return x
        """,
    "branches-put-together": """
        class Block(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                out = part = x
                for index in range(3):
                    part = self.layers[index](part)
                    out = torch.cat((out, part), dim=1)
                return out
        """,
    "branches-of-all-before": """
        class Block(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                out = x
                for index in range(3):
                    part = self.layers[index](out)
                    ⟦NPU809:out = torch.cat((out, part), dim=1)⟧
                return out
        """,
    "many-turns": """
        class Forecast(nn.Module):
            def __init__(self, config: object) -> None:
                super().__init__()
                self.horizon = config.horizon

            def forward(self, x: Tensor, part: int) -> Tensor:
                turns = (self.horizon + part - 1) // part
                for _ in range(turns):
                    token = x[:, :1]
                    ⟦NPU809:x = torch.cat([x, token], dim=1)⟧
                part = self.config.horizon
                for _ in range(self.horizon // part):
                    token = x[:, :1]
                    ⟦NPU809:x = torch.cat([x, token], dim=1)⟧
                return x
        """,
    "mask-handed-to-each": """
        class Head(nn.Module):
            def loss(self, scores: list, flags: list) -> list:
                inside = [torch.stack(flag).sum(dim=0) > 0 for flag in flags]
                return multi_apply(self._loss_single, scores, inside)

            def _loss_single(self, scores, inside_flags):
                return scores[inside_flags, :], max(1, scores.eq(1).sum())
        """,
    "counts-of-a-loss": """
        def loss(x: Tensor, hits: Tensor) -> Tensor:
            return x.sum() / ⟦NPU806:max(1,
                hits.eq(1).sum())⟧
        """,
    "counts-of-lists": """
        def loss(x: Tensor, hits: list) -> Tensor:
            return x.sum() / max(1, len(hits))
        """,
    "masks-in-another-form": """
        class Anchors(nn.Module):
            def forward(self, scores: Tensor, squares: Tensor) -> Tensor:
                near_mask = scores >= 0.5
                flat = near_mask.view(-1)
                return ⟦NPU802:squares[flat]⟧
        """,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_found_by_where_it_runs(name: str) -> None:
    check(HEAD + code(CASES[name]))


LOSS = """import torch


def _tried(x: torch.Tensor) -> torch.Tensor:
    return x[x.nonzero()]


def _taken(x: torch.Tensor) -> torch.Tensor:
    return x[x.nonzero()]


def loss(x: torch.Tensor) -> torch.Tensor:
    return _taken(x)
"""
USERS = {
    "nobody": ("", 1),
    "another module": ("from pack.loss import _tried\n", 2),
}


@pytest.mark.parametrize("user", USERS)
def test_private_functions_that_nobody_names_are_not_told(tmp_path: Path, user: str) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    text, expected = USERS[user]
    for name, content in {"__init__": "", "loss": LOSS, "user": text}.items():
        (package / f"{name}.py").write_text(content)
    found = CliRunner().invoke(cli, ["check", str(package)])
    assert found.output.count("NPU801") == expected
    alone = CliRunner().invoke(cli, ["check", str(package / "loss.py")])
    assert alone.output.count("NPU801") == 2


def test_what_is_private_in_one_file_is_told_without_a_project() -> None:
    document = Document("loss.py", LOSS, 1)
    found = analyze(document, CATALOGUE, Target(TorchVersion(2, 8), NPU))
    assert sum(finding.rule.code == "NPU801" for finding in found) == 2
