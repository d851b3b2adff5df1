"""What a step of training waits for, wherever that is written: what is reported of it."""

import pytest

from helpers import CATALOGUE, code
from npulens.analysis import analyze
from npulens.catalog.model import Target
from npulens.text.document import Document

HEAD = (
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
    "from torch_geometric.nn import global_add_pool\n\n\n"
)
TRAIN = """
        def train(model, loader, optimizer, args, rank):
            for epoch in range(9):
                for step, (x, y) in enumerate(loader):
                    loss = F.mse_loss(model(x.cuda()), y.cuda())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    {}
"""
MAIN = """
        def main(args, model):
            if args.weighted:
                {} loss_of(logits: torch.Tensor, targets: torch.Tensor):
                    known = ~torch.isnan(targets)
                    return F.mse_loss(logits[known], targets[known])
            {}
"""
SPLIT = """
        class Dispatcher:
            def __init__(self, gates):
                self.rows = torch.nonzero(gates)
                self.sizes = {}

            def dispatch(self, x):
                return torch.split(x, self.sizes, dim=0)

        class Experts(nn.Module):
            def forward(self, x):
                return Dispatcher(x).dispatch(x)
"""
VALIDATED = """
        class Tagger(nn.Module):
            def {}(self, x, mask):
                self._validate(x, mask)
                return x * mask

            def _validate(self, x, mask):
                if not mask[:, 0].all():
                    raise ValueError("empty")
"""
MASKS = ["logits[known]", "targets[known]"]
CASES: dict[str, tuple[str, list[str]]] = {
    "the second tensor of a function": (
        """
        def overlap(first, second):
            assert (second[:, 2:] >= second[:, :2]).all()
            return torch.max(first, second[:, :2])
        """,
        ["(second[:, 2:] >= second[:, :2]).all()"],
    ),
    "the number of an axis from a table": (
        """
        def highest(first, axes):
            assert axes[0] > 3
            return torch.max(first, axes[0])
        """,
        [],
    ),
    "an element with several indices": (
        """
        def depth_loss(volume, least):
            rows = torch.zeros(volume.shape[0], device=volume.device)
            for row in range(9):
                if volume[row, 0] > least:
                    rows[row] = 1
            return rows
        """,
        ["volume[row, 0] > least"],
    ),
    "an element of an array": (
        """
        def depth_loss(volume, least):
            volume = volume.astype("float32")
            if volume[0, 0] > least:
                return 1
        """,
        [],
    ),
    "a number computed from what is annotated": (
        """
        def pitch_loss(sound: torch.Tensor, ratio: torch.Tensor, rate: float):
            factor = float(1.0 / ratio)
            return F.interpolate(sound, scale_factor=factor), float(2.0 / rate)
        """,
        ["float(1.0 / ratio)", "F.interpolate(sound, scale_factor=factor)"],
    ),
    "a factor of the settings": (
        """
        def pitch_loss(sound: torch.Tensor, factor: float):
            return F.interpolate(sound, scale_factor=float(factor))
        """,
        [],
    ),
    "a nested function that another one is given": (
        MAIN.format("def", "fit(model, loss_of)"),
        MASKS,
    ),
    "a nested function that is called": (
        MAIN.format("def", "loss_of(model(args.x), args.y)"),
        MASKS,
    ),
    "a nested function for examples": (MAIN.format("def", "args.data.map(loss_of)"), []),
    "a nested function for batches": (MAIN.format("def", "Loader(collate_fn=loss_of)"), []),
    "a nested function for evaluation": (
        MAIN.format("def", "fit(model, evaluate)").replace("loss_of", "evaluate"),
        [],
    ),
    "lengths that a constructor reads": (
        SPLIT.format("(gates > 0).sum(0).tolist()"),
        [
            "torch.nonzero(gates)",
            "(gates > 0).sum(0).tolist()",
            "torch.split(x, self.sizes, dim=0)",
        ],
    ),
    "lengths that a constructor is given": (
        SPLIT.format("list(gates.shape)"),
        ["torch.nonzero(gates)"],
    ),
    "what a forward pass checks": (VALIDATED.format("forward"), ["mask[:, 0].all()"]),
    "what something else checks": (VALIDATED.format("load"), []),
    "a function in an attribute": (
        """
        class Graphs(nn.Module):
            def __init__(self, kind):
                super().__init__()
                if kind == "sum":
                    self.pool = global_add_pool
                else:
                    self.pool = nn.Linear(4, 4)

            def forward(self, x, batch):
                return self.pool(x, batch)
        """,
        ["self.pool(x, batch)"],
    ),
    "a buffer behind another name": (
        """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rate", torch.tensor(1))

        class Speaker(nn.Module):
            def __init__(self, table):
                super().__init__()
                self.decoder = Decoder()
                self.table = table
                self.register_buffer("step", torch.zeros(1))

            def now(self):
                return self.step.data.item(), self.decoder.rate.item(), self.table.row.item()
        """,
        ["self.step.data.item()", "self.decoder.rate.item()"],
    ),
    "what a logger has its parts do once": (
        """
        class MetricLogger:
            def synchronize(self):
                for meter in self.meters:
                    meter.synchronize()

        class SmoothedValue:
            def synchronize(self):
                totals = torch.tensor([self.count, self.total]).cuda()
                self.count, self.total = totals.tolist()
        """,
        [],
    ),
    "an override of what only a constructor calls": (
        """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_schedule()

            def register_schedule(self):
                steps = torch.linspace(0, 1, 9).cuda()
                assert not torch.isnan(steps).all()

        class Latent(Base):
            def register_schedule(self):
                super().register_schedule()
        """,
        [],
    ),
}
RANKS = [
    "rank == 0",
    "args.local_rank == 0",
    "args.local_rank in [-1, 0]",
    "dist.get_rank() == 0",
    "accelerator.is_main_process",
    "is_main_process()",
]


def _reported(snippet: str) -> list[str]:
    source = HEAD + code(snippet)
    found = analyze(Document("m.py", source), CATALOGUE, Target())
    spans = sorted(each.span for each in found if each.rule.code.startswith("NPU80"))
    return [source[slice(*span)] for span in spans]


@pytest.mark.parametrize("name", CASES)
def test_what_a_step_waits_for_is_reported(name: str) -> None:
    snippet, expected = CASES[name]
    assert _reported(snippet) == expected


@pytest.mark.parametrize("test", RANKS)
def test_the_process_that_writes_waits_in_each_step(test: str) -> None:
    statement = f"if {test}:\n                        print(loss.item())"
    assert _reported(TRAIN.format(statement)) == ["loss.item()"]


@pytest.mark.parametrize(
    "test", ["rank == 0 and step % 100 == 0", "step % 100 == 0", "args.debug", "rank == 3"]
)
def test_what_it_does_now_and_then_is_not(test: str) -> None:
    statement = f"if {test}:\n                        print(loss.item())"
    assert _reported(TRAIN.format(statement)) == []


def test_what_it_writes_after_an_epoch_is_not() -> None:
    statement = "pass\n                if rank == 0:\n                    print(loss.item())"
    assert _reported(TRAIN.format(statement)) == []
