"""Which values are tensors by their use: surely, very likely, or not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import CATALOGUE, NPU, code
from npulens.analysis import analyze, analyze_shapes
from npulens.catalog.model import Language, Target, TorchVersion
from npulens.cli.main import cli
from npulens.text.document import Document

HEAD = "import math\nimport numpy as np\nimport torch\nfrom torch import nn\n\n\n"
# Each snippet with the places that surely happen to a tensor, and those that very likely do.
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "a value that is read": (
        """
        def rate(record):
            return record.value.item()
        """,
        [],
        ["record.value.item()"],
    ),
    "an array of NumPy": (
        """
        def rate(path):
            values = np.load(path)
            best = values[values > 0].max().item()
            return best, f"{values.T.mean()}", [float(value) for value in values]
        """,
        [],
        [],
    ),
    "a table of pandas": (
        """
        import pandas

        def rows(path):
            table = pandas.read_csv(path)
            return table[table.length > 3].mean().item()
        """,
        [],
        [],
    ),
    "what a function of PyTorch takes": (
        """
        def kept(boxes, scores):
            areas = torch.sum(boxes, dim=1)
            return scores[areas > 0], boxes.item()
        """,
        ["scores[areas > 0]", "boxes.item()"],
        [],
    ),
    "a part of what such a function takes": (
        """
        def overlap(first, second):
            assert (first[:, 2:] >= first[:, :2]).all()
            return torch.max(first[:, None, :2], second[:, :2])
        """,
        ["(first[:, 2:] >= first[:, :2]).all()"],
        [],
    ),
    "an index that no list takes": (
        """
        def checked(boxes):
            assert (boxes[:, 2:] >= boxes[:, :2]).all()
        """,
        [],
        ["(boxes[:, 2:] >= boxes[:, :2]).all()"],
    ),
    "what isinstance has shown": (
        """
        class Meter:
            def update(self, **values):
                for name, value in values.items():
                    if isinstance(value, torch.Tensor):
                        value = value.item()
                    self.meters[name] = value

        def numbers(values):
            return [v.item() for v in values if torch.is_tensor(v)] or [
                v.item() if isinstance(v, torch.Tensor) and v.numel() else v for v in values
            ]
        """,
        ["value.item()", "v.item()", "v.item()"],
        [],
    ),
    "values of dictionaries": (
        """
        def step(outputs, weights):
            losses = {name: torch.mean(value) for name, value in outputs.items()}
            losses["all"] = torch.sum(outputs["logits"])
            total = sum(losses[name] * weights[name] for name in losses)
            return total.item(), [v.item() for v in losses.values()], losses["other"].item()
        """,
        ["total.item()", "v.item()", 'losses["other"].item()'],
        [],
    ),
    "functions that are mapped": (
        """
        def shown(images):
            images, sums = map(lambda t: t.detach().cpu(), (images, torch.sum(images)))
            t = 3
            print(t)
        """,
        ["t.detach().cpu()"],
        [],
    ),
    "text": (
        """
        def reported(x, writer):
            y = torch.exp(x)
            writer.add_scalar("y", y.mean(), 3)
            return "{} {}".format(y, 1)
        """,
        ["y.mean()", "y"],
        [],
    ),
    "comparisons of what is not known": (
        """
        def chosen(boxes, scores, limit):
            keep = scores > limit
            boxes[~keep] = 0
            flag = limit > 3
            if flag:
                return boxes[keep & (scores < 9)]
        """,
        [],
        ["boxes[~keep]", "boxes[keep & (scores < 9)]"],
    ),
    "masks by their name": (
        """
        def chosen(hidden, valid_mask, mask_index):
            return hidden[valid_mask], hidden[mask_index]
        """,
        [],
        ["hidden[valid_mask]"],
    ),
    "names that are none of masks": (
        """
        def chosen(hidden, is_labelled, is_valid):
            return hidden[is_labelled], hidden[is_valid]
        """,
        [],
        ["hidden[is_valid]"],
    ),
    "masks by their name, where they select nothing": (
        """
        def chosen(hidden, pad_mask):
            if pad_mask.any():
                return hidden[pad_mask]
            else:
                return hidden[~pad_mask]
        """,
        [],
        ["pad_mask.any()", "hidden[pad_mask]"],
    ),
    "sums over gradients": (
        """
        class Preconditioned(torch.optim.Optimizer):
            def step(self):
                total = 0
                for p in self.params:
                    total += (p.grad.data * p.grad.data).sum()
                return min(1, math.sqrt(3 / total))
        """,
        [],
        ["math.sqrt(3 / total)"],
    ),
    "numbers that were copied": (
        """
        def cut(x: torch.Tensor, lengths: torch.Tensor):
            sizes = lengths.cpu().numpy().tolist()
            parts = [x[:size] for size in sizes]
            height = int(lengths.cpu()[0])
            return parts, nn.functional.interpolate(x, size=(height, 4))
        """,
        [
            "lengths.cpu()",
            "x[:size]",
            "lengths.cpu()",
            "nn.functional.interpolate(x, size=(height, 4))",
        ],
        [],
    ),
    "elements of a tensor as sizes": (
        """
        def points(shapes: torch.Tensor):
            for height, width in shapes:
                yield torch.linspace(0, height - 1, height), torch.arange(width)
        """,
        ["shapes", "torch.linspace(0, height - 1, height)", "torch.arange(width)"],
        [],
    ),
    "ends of a row of numbers": (
        """
        def rows(rois: torch.Tensor, size):
            for i in range(rois.shape[0]):
                x1, x2 = rois[i, 1:]
                yield torch.linspace(x1 + 0.5, x2 - 0.5, size, device=rois.device)
        """,
        ["torch.linspace(x1 + 0.5, x2 - 0.5, size, device=rois.device)"],
        [],
    ),
    "tables of pandas": (
        """
        def returns(df, q):
            for _, group in df.groupby("date"):
                yield float(group["y"].iloc[-q:].mean() - group["y"].loc[:q].mean())
        """,
        [],
        [],
    ),
    "lengths that a forward pass is given": (
        """
        class Bias(nn.Module):
            def forward(self, i, j, shapes):
                for height, width in shapes:
                    yield range(height)
                return torch.arange(j), torch.ones(i, 4), [0 for _ in range(i)]
        """,
        [],
        ["shapes", "range(height)"],
    ),
    "graphs": (
        """
        from torch_geometric.nn import global_mean_pool
        from torch_geometric.utils import degree, softmax
        from torch_scatter import scatter_add

        class Net(nn.Module):
            def __init__(self):
                self.pool = global_mean_pool

            def forward(self, x, batch, index):
                deg = degree(index), degree(index, 9)
                weights = softmax(x, index), softmax(x, index, None, 9)
                sums = scatter_add(x, index, dim_size=9), scatter_add(x, index)
                return self.pool(x, batch), global_mean_pool(x, batch, size=3)
        """,
        [],
        [
            "degree(index)",
            "softmax(x, index)",
            "scatter_add(x, index)",
            "self.pool(x, batch)",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_a_tensor_by_its_use(name: str) -> None:
    snippet, sure, likely = CASES[name]
    source = HEAD + code(snippet)
    found = sorted(
        (each.hotspot for each in analyze_shapes(Document("m.py", source), CATALOGUE).ranked),
        key=lambda hotspot: hotspot.span,
    )
    assert [each.symbol for each in found if each.is_sure] == sure
    assert [each.symbol for each in found if not each.is_sure] == likely


TRAINING = """
def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch)
        {}
        optimizer.step()
        total += sum(loss.values()).item()
"""


@pytest.mark.parametrize(
    ("statement", "is_reported"),
    [("loss['all'].backward()", True), ("loss['all'].mean()", False)],
    ids=["in training", "anywhere"],
)
def test_what_is_likely_is_reported_where_training_leads(statement: str, is_reported: bool) -> None:
    source = HEAD + TRAINING.format(statement)
    found = analyze(Document("m.py", source), CATALOGUE, Target(TorchVersion(2, 8), NPU))
    texts = {
        language: [each.message(language) for each in found if each.rule.code == "NPU805"]
        for language in ("en", "zh")
    }
    assert bool(texts["en"]) == is_reported
    for language, words in (("en", "as is very likely"), ("zh", "很可能")):
        assert all(words in text for text in texts[_language(language)])


LOGGED = """
import mlflow
import swanlab


def train(model, loader, optimizer, writer):
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        {}
"""


@pytest.mark.parametrize(
    "statement",
    [
        "mlflow.log_metric('l', loss)",
        "mlflow.log_metrics({'l': loss})",
        "swanlab.log({'l': loss})",
        "writer.log_value('l', loss)",
        "writer.log_scalar('l', loss)",
        "writer.log_metric('l', loss)",
        "writer.log_metrics({'l': loss})",
    ],
)
def test_what_is_logged_in_training_is_reported(statement: str) -> None:
    source = HEAD + LOGGED.format(statement)
    found = analyze(Document("m.py", source), CATALOGUE, Target(TorchVersion(2, 8), NPU))
    line = source[: source.index(statement)].count("\n")
    lines = [source[: each.span.start].count("\n") for each in found if each.rule.code == "NPU805"]
    assert lines == [line]


def _language(name: str) -> Language:
    return "zh" if name == "zh" else "en"


RARE = {
    "step % 100 == 0": True,
    "not step % self.every": True,
    "step % 2 == 0": False,
    "step % self.delay == 0": False,
    "step % n == 0": True,
    "step % 100 != 0": False,
    "self.log_ent_coef is not None": False,
    "log_probs is not None": False,
    "math.log(3) > 1": False,
    "self.do_log": True,
    "log_every": True,
    "rank == 0": True,
    "dist.get_rank() == 0": True,
    "not self.rank": True,
    "self.lora_rank > 0": False,
    "self.low_rank is None": False,
    "self.is_first": True,
    "self.is_first_layer": False,
    "step == 0": True,
    "self.num_step == 1": False,
    "n_step == 1": False,
}
CLASS = """
class Agent(nn.Module):
    def __init__(self, delay: int = 2, every: int = 100):
        self.delay, self.every = 0, 0
        self.delay = delay
        self.every = every

    def forward(self, x: torch.Tensor, step, n, log_every, log_probs, rank, dist):
        if {}:
            return x.sum().item()
"""


@pytest.mark.parametrize("condition", RARE)
def test_a_condition_is_rare_by_what_it_compares(condition: str) -> None:
    (found,) = analyze_shapes(Document("m.py", HEAD + CLASS.format(condition)), CATALOGUE).ranked
    assert found.hotspot.is_rare == RARE[condition]


@pytest.mark.parametrize(
    ("update", "is_rare"),
    [("", True), ("optimizer.zero_grad()", False), ("scaler.unscale_(optimizer)", False)],
)
def test_steps_that_sum_up_gradients_are_training(update: str, is_rare: bool) -> None:
    source = HEAD + code(
        f"""
        def train(x: torch.Tensor, steps, optimizer):
            for step in range(9):
                if step % steps == 0:
                    {update}
                    print(x.sum().item())
        """
    )
    (found,) = analyze_shapes(Document("m.py", source), CATALOGUE).ranked
    assert found.hotspot.is_rare == is_rare


REACHED = {
    "a metric of a training step": (
        """
        def accuracy(guess, labels):
            return (torch.eq(guess, labels)).sum().item()

        def train(loader):
            for batch in loader:
                loss.backward()
                right = accuracy(batch, batch)
        """,
        True,
    ),
    "a metric that nothing shows to be of one": (
        """
        def accuracy(guess, labels):
            return (torch.eq(guess, labels)).sum().item()
        """,
        False,
    ),
    "a loop around a step of training": (
        """
        def step(model, batch):
            loss = model(batch)
            loss.backward()
            return loss

        def run(model, loader):
            for batch in loader:
                total = step(model, batch).item()
        """,
        True,
    ),
    "the meters of a logger": (
        """
        class MetricLogger:
            def update(self, value: torch.Tensor):
                self.total += value.item()
        """,
        True,
    ),
    "a model that trains in a loop": (
        """
        def run(model, loader, x: torch.Tensor):
            model.train()
            for batch in loader:
                total = x.sum().item()
        """,
        True,
    ),
    "a model that trains again": (
        """
        def test(model, loader, x: torch.Tensor):
            model.eval()
            for batch in loader:
                total = x.sum().item()
            model.train()
        """,
        False,
    ),
}


@pytest.mark.parametrize("name", REACHED)
def test_what_belongs_to_a_training_step(name: str) -> None:
    snippet, is_reported = REACHED[name]
    source = HEAD + code(snippet)
    found = analyze(Document("m.py", source), CATALOGUE, Target(TorchVersion(2, 8), NPU))
    assert any(each.rule.code in ("NPU805", "NPU912") for each in found) == is_reported


def test_the_list_says_how_sure_a_place_is(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(HEAD + code(CASES["a value that is read"][0]))
    runner = CliRunner()
    rows = json.loads(runner.invoke(cli, ["shapes", str(tmp_path), "--output-format=json"]).stdout)
    assert [row["confidence"] for row in rows] == ["likely"]
    for language, word in (("en", "wait (likely)"), ("zh", "等待 (很可能)")):
        text = runner.invoke(cli, ["shapes", str(tmp_path), "--language", language]).stdout
        assert word in text


def test_copies_in_code_for_the_host_are_listed(tmp_path: Path) -> None:
    source = HEAD + code(
        """
        def visualize(model, image):
            mask = model(image)
            x = mask > 0
            return mask.detach().cpu().numpy(), mask[x].max()
        """
    )
    found = analyze_shapes(Document("m.py", source), CATALOGUE).ranked
    assert [each.hotspot.symbol for each in found] == ["mask.detach().cpu()"]
    assert all(each.score < 20 for each in found)


def test_masks_in_masks_are_read_once() -> None:
    inner = "m.mask"
    for _ in range(14):
        inner = f"x[{inner}].mask"
    source = f"def f(x, m, y: torch.Tensor):\n    z = {inner}\n    return y.nonzero()\n"
    source = f"import torch\n\n\n{source}"
    ranked = analyze_shapes(Document("m.py", source), CATALOGUE).ranked
    assert "y.nonzero()" in [each.hotspot.symbol for each in ranked]
