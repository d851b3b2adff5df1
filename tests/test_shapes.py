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
    "operators": """
        def forward(x: Tensor) -> Tensor:
            return ⟦NPU801:torch.nonzero(x > 0)⟧
        """,
    "of-a-method": """
        def forward(x: Tensor) -> Tensor:
            return ⟦NPU801:x.unique()⟧
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
    "masks-by-name": "def forward(x: Tensor, mask: Tensor) -> Tensor:\n    return x[mask]",
    "numbers-as-index": """
        def forward(x: Tensor, chosen: Tensor) -> Tensor:
            order = (chosen > 0).long().argsort()
            return x[order]
        """,
    "numpy": "import numpy as np\n\ndef forward(x):\n    y = np.asarray(x)\n    return y[y > 0]",
    "not-known-to-be-a-tensor": "def forward_all(record):\n    return record.value.item()",
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
        def forward(grid: Tensor, width: Tensor) -> Tensor:
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


@pytest.mark.parametrize(
    ("path", "is_told"),
    [
        ("models/csm/modeling_csm.py", True),
        ("models/csm/modular_csm.py", False),
        ("modular_pipelines/flux/modular_pipeline.py", True),
        ("models/modular_csm.py", True),
    ],
)
def test_what_another_file_is_generated_from_is_told_there_alone(path: str, is_told: bool) -> None:
    document = Document(path, MODEL, 1)
    found = analyze(document, CATALOGUE, Target(TorchVersion(2, 8), NPU))
    assert bool(found) == is_told


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
    "kernels of another device": ("def cuda_kernels_forward({}):\n    return {}", None),
    "calibration": ("def _calibration_step({}):\n    return {}", None),
    "what the caller wants": (
        "def sample({}, output_type: str):\n    if output_type == 'np':\n        return {}",
        None,
    ),
    "every so many steps": (
        "def training_step({}, step: int):\n    if step % 100 == 0:\n        y = {}",
        Severity.HINT,
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_how_loud_a_place_is_told(name: str) -> None:
    template, severity = PLACES[name]
    arguments = "x: Tensor, scores: Tensor"
    text = template.format(*[arguments, SOURCE, arguments][: template.count("{}")])
    found = [f.effective_severity for f in findings(HEAD + text + "\n")]
    if name == "every so many steps":
        assert found in ([severity], [])
    else:
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
    assert [source[slice(*span)] for span in named["kept"].sources] == ["x[mask]"]
    assert (named["forward"].shapes, named["forward"].waits) == (1, 1)


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
