"""Waits and sizes that follow from models, loops, lists and text, and what only looks like them."""

import pytest

from helpers import CATALOGUE, code
from npulens.analysis import StatementCache, analyze, analyze_shapes
from npulens.catalog.model import Target
from npulens.text.document import Document

HEAD = "import copy\nimport torch\nimport torch.distributed as dist\nimport torch.nn as nn\n\n\n"
# Each snippet with the places that surely happen to a tensor, and those that very likely do.
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "what a model returns that was moved or wrapped": (
        """
        class Actor(nn.Module):
            def forward(self, x):
                return torch.tanh(x)

        class Agent:
            def __init__(self, device):
                self.actor = nn.DataParallel(Actor().to(device)).cuda()
                self.target = copy.deepcopy(self.actor)

            def act(self, state):
                return self.actor(state).cpu(), self.target(state).tolist()
        """,
        ["self.actor(state).cpu()", "self.target(state).tolist()"],
        [],
    ),
    "what a module that is not known returns": (
        """
        def run(model, image):
            model.eval()
            guess = model(image)
            print(guess)
        """,
        [],
        ["guess"],
    ),
    "a copy behind which something is read": (
        """
        def told(result, model):
            state = model.cpu().state_dict()
            return result.points().cpu().numpy(), state
        """,
        ["result.points().cpu()"],
        ["model.cpu()"],
    ),
    "a model that is moved in place": (
        """
        def told(parser, trees):
            parser.cuda()
            for tree in parser.parse(trees):
                print(tree)
        """,
        [],
        [],
    ),
    "rows that a loop unpacks": (
        """
        def boxes(found: torch.Tensor, names):
            for *box, conf, kind in found:
                names.append(int(kind))
        """,
        ["found", "int(kind)"],
        [],
    ),
    "rows that the host does not read": (
        """
        def boxes(found: torch.Tensor, kept):
            for row in found:
                kept.append(row * 2)
        """,
        [],
        [],
    ),
    "text that is put together": (
        """
        def told(losses: torch.Tensor, step):
            return ("%10s" * 2 + "%.3f") % ("a", step, *losses), "%d" % step
        """,
        ['("%10s" * 2 + "%.3f") % ("a", step, *losses)'],
        [],
    ),
    "lists and dictionaries of tensors as text": (
        """
        def told(x: torch.Tensor, step):
            print({"x": x, "step": step})
            return f"{[x, step]}"
        """,
        ['{"x": x, "step": step}', "[x, step]"],
        [],
    ),
    "lengths in a list": (
        """
        def parts(x: torch.Tensor, starts: torch.Tensor, heads: int):
            lengths = [int(n) for n in starts]
            return x.split(lengths), x.split([heads, 2]), x.repeat(lengths[0], 1)
        """,
        ["int(n)", "x.split(lengths)", "x.repeat(lengths[0], 1)"],
        [],
    ),
    "a truth that is kept": (
        """
        def checked(mask: torch.Tensor, first):
            is_full = first and mask.all()
            if is_full:
                return 1
        """,
        ["is_full"],
        [],
    ),
    "what a generator yields": (
        """
        def batches():
            while True:
                yield torch.ones(3, device="cuda"), 1

        def run():
            x, number = next(batches())
            print(x, number)
        """,
        ["x"],
        [],
    ),
    "a list that begins with None": (
        """
        def kept(x: torch.Tensor, counts):
            found = [None] * 4
            for i in counts:
                found[i] = x[i]
            return found[0].item()
        """,
        ["found[0].item()"],
        [],
    ),
    "elements that are copied to the host one by one": (
        """
        def kept(x: torch.Tensor, counts):
            found = [None for _ in counts]
            for i in counts:
                found[i] = x[i]
                if found[i] is not None:
                    found[i] = found[i].cpu().numpy()
            return int(found[0])
        """,
        ["found[i].cpu()"],
        [],
    ),
    "parameters of a model": (
        """
        def norms(model):
            return [p.grad.norm().item() for name, p in model.named_parameters()]
        """,
        ["p.grad.norm().item()"],
        [],
    ),
    "what other processes send": (
        """
        def longest(world):
            sizes = [torch.tensor([0], device="cuda") for _ in range(world)]
            dist.all_gather(sizes, sizes[0])
            lengths = [int(size.item()) for size in sizes]
            return torch.empty((max(lengths),))
        """,
        ["size.item()", "torch.empty((max(lengths),))"],
        [],
    ),
    "a loss by its index": (
        """
        def step(criterion, batch):
            loss = criterion(batch)
            loss.backward()
            return loss.data[0]

        def test(criterion, batch, record):
            loss_all = criterion(batch)
            return loss_all.data[0], record.data[0]

        class Trainer:
            def step(self, x: torch.Tensor):
                self.loss = x.mean()
                return self.loss.data[0]
        """,
        ["loss.data[0]", "self.loss.data[0]"],
        ["loss_all.data[0]"],
    ),
    "a type that is known": (
        """
        def sizes(x: torch.Tensor):
            if isinstance(x, (tuple, list)):
                return x
            return x.tolist()

        def image(x: torch.Tensor, size: torch.Tensor):
            return x[: sizes(size)[0]]
        """,
        ["x.tolist()", "x[: sizes(size)[0]]"],
        [],
    ),
    "what is kept for the record": (
        """
        import wandb

        def noted(writer, bar, loss: torch.Tensor, step: int):
            wandb.log({"loss": loss, "step": step})
            bar.set_postfix(loss=loss)
            writer.add_scalar("step", step)
        """,
        ['{"loss": loss, "step": step}', "loss"],
        [],
    ),
    "norms of gradients": (
        """
        def noted(model, writer, loss):
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            writer.add_scalar("norm", norm)
        """,
        ["norm"],
        [],
    ),
    "what has a device and a shape": (
        """
        def first(volume, threshold):
            out = torch.zeros(volume.shape[1], device=volume.device)
            if volume[0, 0] > threshold:
                return out

        def other(config):
            if config.device == config.shape[0]:
                return config
        """,
        ["volume[0, 0] > threshold"],
        [],
    ),
    "samplers of models and of data sets": (
        """
        class RaySampler(nn.Module):
            def forward(self, x: torch.Tensor):
                return x[x > 0]

        class ByLength(torch.utils.data.Sampler):
            def lengths(self, x: torch.Tensor):
                return x[x > 0]

        class PairSampler:
            def __iter__(self):
                return iter(self.lengths.tolist())

            def pairs(self, x: torch.Tensor):
                return x[x > 0]
        """,
        ["x[x > 0]"],
        [],
    ),
    "a number that another method replaced": (
        """
        class Solver:
            def train(self):
                self.log = {"loss": 0}
                self.compute()
                return self.log["loss"].item()
        """,
        [],
        ['self.log["loss"].item()'],
    ),
    "types from before 0.4, which say where a tensor is": (
        """
        def told(model, batch, images):
            out = model(batch.cuda()).sigmoid()
            host = out.type(torch.FloatTensor)
            back = host.type(torch.cuda.FloatTensor)
            early = images.type(torch.FloatTensor)
            print(host, early)
            return float(back.mean())
        """,
        ["out.type(torch.FloatTensor)", "float(back.mean())"],
        [],
    ),
    "parts of a batch that are moved": (
        """
        def told(model, loader, device, kinds):
            for index, (x, y) in enumerate(loader):
                y = y.to(device)
                print(y.tolist(), index)
            for model in kinds:
                model = model.to(device)
                print(model)
        """,
        [],
        ["y.tolist()"],
    ),
    "what a constructor makes on the device": (
        """
        class Agent:
            def __init__(self, device, start):
                self.weight = torch.tensor(start).to(device)
                self.bound = torch.zeros(1, device=device)
                self.kept = torch.zeros(1)

            def act(self):
                print(f"{self.weight} {self.kept}")
                return self.bound if self.bound > 1 else None
        """,
        ["self.weight", "self.bound > 1"],
        [],
    ),
    "copies of what another method shows to be a module": (
        """
        class Learner:
            def __init__(self, make):
                self.actor = make()
                self.optimizer = torch.optim.Adam(self.actor.parameters())

            def policy(self, on_device):
                copied = copy.deepcopy(self.actor)
                return copied.cuda() if on_device else copied.cpu()

            def host(self):
                other = copy.deepcopy(self.actor)
                other.cpu()
                return self.actor.cpu(), other
        """,
        [],
        [],
    ),
    "what another method has read and keeps": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.longest = None
                self.places, self.twice = 0, 0

            def measure(self, lengths: torch.Tensor, size):
                self.longest = lengths.max().item()
                self.inside = lengths > 3
                self.places = int(size)
                self.twice = int(lengths.sum())
                self.twice += 1

            def forward(self, x):
                rows = x[: self.longest] + x[: self.places] + x[: self.twice]
                return rows, x[self.inside]
        """,
        ["lengths.max().item()", "int(lengths.sum())", "x[: self.longest]", "x[self.inside]"],
        [],
    ),
    "attributes that a constructor annotates": (
        """
        class Parts:
            def __init__(self):
                self.parts: list[torch.Tensor] = []
                self.table: torch.Tensor = None
                self.names: list[str] = []

            def told(self):
                for part in self.parts:
                    print(part.to("cpu"), self.names)
                return int(self.table[0])
        """,
        ['part.to("cpu")', "int(self.table[0])"],
        [],
    ),
    "what is made a tensor unless it is one": (
        """
        def told(x, y):
            if not isinstance(x, torch.Tensor):
                x = torch.from_numpy(x)
            if not isinstance(y, torch.Tensor):
                return None
            return x.max().item(), float(torch.from_numpy(y).mean())
        """,
        [],
        ["x.max().item()"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_and_where_sizes_are_from(name: str) -> None:
    snippet, sure, likely = CASES[name]
    ranked = analyze_shapes(Document("m.py", HEAD + code(snippet)), CATALOGUE).ranked
    found = sorted((each.hotspot for each in ranked), key=lambda hotspot: hotspot.span)
    assert [each.symbol for each in found if each.is_sure] == sure
    assert [each.symbol for each in found if not each.is_sure] == likely


def test_a_caller_shows_what_a_method_is_given() -> None:
    source = HEAD + code(
        """
        class Points(nn.Module):
            def points(self, shapes):
                for height, width in shapes:
                    yield torch.linspace(0, 1, height)

            def forward(self, x, sizes):
                shapes = torch.as_tensor(sizes, device=x.device)
                return list(self.points(shapes))
        """
    )
    for cache in (None, StatementCache()):
        found = analyze(Document("m.py", source), CATALOGUE, Target(), cache)
        assert {f.rule.code for f in found} >= {"NPU804", "NPU805"}


def test_calls_behind_old_scalars_are_evaluated_once() -> None:
    nested = "x"
    for _ in range(14):
        nested = f"g({nested}).data[0]"
    source = HEAD + f"def f(x: torch.Tensor):\n    y = {nested}\n    return x.nonzero()\n"
    ranked = analyze_shapes(Document("m.py", source), CATALOGUE).ranked
    assert [each.hotspot.symbol for each in ranked] == ["x.nonzero()"]


@pytest.mark.parametrize(
    "mask", ["x[x > 0]", "(x - 1)[x > 0]", "x.abs()[x > 0]", "x[0][x.abs() > 0]"]
)
def test_masks_behind_any_expression_are_looked_for(mask: str) -> None:
    source = f"{HEAD}def forward(x: torch.Tensor):\n    return {mask}\n"
    found = analyze(Document("m.py", source), CATALOGUE, Target())
    assert {f.rule.code for f in found} >= {"NPU802"}
