"""What tells tensors from arrays, modules and graphs, and where Python reads their elements."""

import pytest
import torch

from helpers import CATALOGUE, code
from npulens.analysis import analyze, analyze_shapes
from npulens.catalog.model import Target
from npulens.shapes.evaluation.tensor_evidence import TENSOR_METHODS
from npulens.shapes.operators.tensor_methods import is_method_of_tensors
from npulens.text.document import Document

HEAD = "import numpy as np\nimport torch\nimport torch.nn as nn\n\n\n"
# Each snippet with the places that surely happen to a tensor, and those that very likely do.
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "functions of Python beside a star import": (
        """
        from helpers import *

        def train(model, loader, optimizer, loss_of):
            total = 0
            for x, y in loader:
                loss = loss_of(model(x), y)
                total += float(loss)
                print(loss)
                loss.backward()
        """,
        ["float(loss)", "loss"],
        [],
    ),
    "functions that a star import of a library replaces": (
        """
        from numpy import *

        def total(x: torch.Tensor):
            return max(x[0], x[1])
        """,
        [],
        [],
    ),
    "an array on one way, something unknown on the other": (
        """
        def told(agent, steps):
            if steps:
                ranks, found = agent.ranks(steps)
            else:
                ranks, found = [], np.array([0])
            return found.item()
        """,
        [],
        [],
    ),
    "text of a module that was moved": (
        """
        def told(kinds, name, log, state):
            model = getattr(kinds, name)(3).cuda()
            log.write(str(model))
            model.load_state_dict(state)
        """,
        [],
        [],
    ),
    "methods that no tensor has": (
        """
        class Layer(nn.Module):
            def forward(self, graph):
                return torch.zeros((graph.num_edges(), 3), device="cuda")
        """,
        [],
        [],
    ),
    "methods that tensors have": (
        """
        class Layer(nn.Module):
            def forward(self, lengths):
                return torch.zeros((lengths.max(), 3), device="cuda")
        """,
        ['torch.zeros((lengths.max(), 3), device="cuda")'],
        [],
    ),
    "what NumPy computes with": (
        """
        def counted(first, second, n):
            known = (first >= 0) & (first < n)
            return np.bincount(n * first[known].astype(int) + second[known], minlength=n)
        """,
        [],
        [],
    ),
    "a tensor that becomes an array": (
        """
        def counted(found):
            found = found.cpu().numpy()
            return np.bincount(found)
        """,
        ["found.cpu()"],
        [],
    ),
    "a tensor, or an array": (
        """
        def counted(found):
            if isinstance(found, torch.Tensor):
                return found.cpu()
            return np.cumsum(found)
        """,
        ["found.cpu()"],
        [],
    ),
    "parts of several axes in a function of NumPy": (
        """
        def placed(data, step):
            low = data[:, :, 2].min()
            kept = np.ones(4)
            for i in range(4):
                kept[i] = int((data[0, i, 2] - low) / step)
            return kept
        """,
        [],
        [],
    ),
    "elements that Python decides on": (
        """
        def loss_of(scores, matches):
            total = 0
            for i in range(len(matches)):
                if matches[i, 0] == i:
                    total -= torch.log(scores[i, 0])
            return total
        """,
        [],
        ["matches[i, 0] == i"],
    ),
    "elements in a loop that Python goes on with": (
        """
        def read(net, image, draw):
            found = net(image).data
            place = 0
            while found[0, 1, place, 0] >= 0.3:
                draw(found[0, 1, place], torch.zeros(3))
                place += 1
        """,
        [],
        ["found[0, 1, place, 0] >= 0.3"],
    ),
    "elements of what nothing shows to be a tensor": (
        """
        def placed(grid, i, j):
            if grid[i, j] == 0:
                return True
        """,
        [],
        [],
    ),
    "elements of what was moved": (
        """
        def chosen(batch, rows):
            found, kept = batch[1].cuda(), []
            for i in range(4):
                row = found[i]
                if row < 0:
                    continue
                kept.append(torch.abs(rows[i]))
            return kept
        """,
        [],
        ["row < 0"],
    ),
    "a number of a forward pass": (
        """
        class Loss(nn.Module):
            def forward(self, x, step):
                if step < self.first:
                    return torch.abs(x)
                return x
        """,
        [],
        [],
    ),
    "text of elements that nothing shows to be of a tensor": (
        """
        def written(boxes, file):
            for k in range(boxes.shape[0]):
                file.write("{:.3f} {:.1f}".format(boxes[k, -1], boxes[k, 0] + 1))
        """,
        [],
        [],
    ),
    "a mask of bytes turned around": (
        """
        def kept(x: torch.Tensor, y: torch.Tensor):
            low = x.gt(0.1).eq(x.lt(0.3))
            y[1 - low] = 0
            return y
        """,
        ["y[1 - low]"],
        [],
    ),
    "a loss that the module makes": (
        """
        criterion = nn.BCEWithLogitsLoss()

        def judged(model, loader):
            total = 0
            for x, y in loader:
                total += criterion(model(x), y)
            return float(total)
        """,
        [],
        ["float(total)"],
    ),
    "batches that a loop moves itself": (
        """
        def evaluate(loader, model, device):
            for data in loader:
                out = model(data["x"].to(device))
                print(data["y"].cpu(), data["y"][data["y"] > 0], out.argmax(dim=1).tolist())
            for step, (x, y) in enumerate(loader):
                out = model(x.cuda())
                found = (y == 1).nonzero()
            for x in loader:
                x = torch.reshape(x, (2, 3)).type(torch.FloatTensor)
                x = x.to(device)
                first = x.type(torch.FloatTensor)
            for batch in loader:
                x, y = batch
                wrong = y[y > 0]
                y = y.to(device)
                right = y[y > 1]
        """,
        ["out.argmax(dim=1).tolist()", "x.type(torch.FloatTensor)"],
        ["y[y > 1]"],
    ),
    "batches of a loader that another loop moves": (
        """
        def fit(loader, model, device):
            seen = []
            for x, y in loader:
                seen.append(y.cpu().numpy())
            for step, (x, y) in enumerate(tqdm(loader)):
                found = model(x.to(device)).argmax(dim=1).cpu()
        """,
        [],
        ["model(x.to(device)).argmax(dim=1).cpu()"],
    ),
    "batches that a loop does not move": (
        """
        def evaluate(loader):
            for x, y in loader:
                print(x.cpu(), y.to(x.dtype).cpu())
        """,
        [],
        ["x.cpu()", "y.to(x.dtype).cpu()"],
    ),
    "what NumPy computes with under another name": (
        """
        def error(model, x, truth):
            wanted = truth
            index = np.argwhere(wanted > 0)
            close = (truth[index[0][:]] < 3) | (truth[index[0][:]] < 0.05)
            return float(torch.sum(close)), float(torch.sum(x))
        """,
        ["float(torch.sum(x))"],
        [],
    ),
    "tables of scipy": (
        """
        import scipy.sparse as sp

        def edges(table, mask: torch.Tensor):
            loops = table + sp.eye(table.shape[0])
            rows = torch.LongTensor(loops.nonzero()), torch.FloatTensor(loops[loops.nonzero()])
            return rows, mask.nonzero()

        def edges_of(table):
            return torch.LongTensor(table.nonzero())
        """,
        ["mask.nonzero()"],
        [],
    ),
    "what is compared with a copy on the host": (
        """
        def error(x: torch.Tensor, wanted, rows):
            guess = torch.squeeze(x.cpu(), 1)
            loss = torch.mean(torch.abs(guess[rows > 0] - wanted[rows > 0]))
            print(loss)
        """,
        ["x.cpu()"],
        ["wanted[rows > 0]"],
    ),
    "a loop over several things of which one is read": (
        """
        def boxes(scores: torch.Tensor, sizes: torch.Tensor, masks: torch.Tensor):
            for score, size, mask in zip(scores, sizes, masks):
                result = Result()
                result.score = score
                result.mask = mask.cpu()
            for score, size in zip(scores, sizes):
                total = float(size)
        """,
        ["masks", "mask.cpu()", "sizes", "float(size)"],
        [],
    ),
    "a number that a forward pass counts to": (
        """
        class Shift(nn.Module):
            def forward(self, x, shift, other):
                width = x.size(3)
                left = torch.LongTensor([i for i in range(shift, width)])
                right = torch.LongTensor([i for i in range(width - shift)])
                return left, right, range(width - other)
        """,
        [],
        ["range(width - other)"],
    ),
    "text that a name holds": (
        """
        def told(x: torch.Tensor, table):
            line = "{:.3f} {}"
            return line.format(x.mean(), 1), table.format(x.mean())
        """,
        ["x.mean()"],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_shows_that_something_is_a_tensor(name: str) -> None:
    snippet, sure, likely = CASES[name]
    ranked = analyze_shapes(Document("m.py", HEAD + code(snippet)), CATALOGUE).ranked
    found = sorted((each.hotspot for each in ranked), key=lambda hotspot: hotspot.span)
    assert [each.symbol for each in found if each.is_sure] == sure
    assert [each.symbol for each in found if not each.is_sure] == likely


@pytest.mark.parametrize("operator", ["==", "!=", "<"])
def test_a_step_that_decides_on_elements_is_found(operator: str) -> None:
    source = HEAD + code(
        f"""
        class Loss(nn.Module):
            def forward(self, scores, matches):
                total = 0
                for i in range(len(matches)):
                    if matches[i, 0] {operator} i:
                        total -= torch.log(scores[i, 0])
                return total
        """
    )
    found = analyze(Document("m.py", source), CATALOGUE, Target())
    assert "NPU806" in {f.rule.code for f in found}


def test_all_methods_of_tensors_are_known() -> None:
    names = [n for n in dir(torch.Tensor) if not n.startswith("_")]
    methods = [n for n in names if callable(getattr(torch.Tensor, n, None))]
    unknown = [n for n in methods if not is_method_of_tensors(n) and n not in TENSOR_METHODS]
    assert not unknown
    assert not is_method_of_tensors("num_edges")


@pytest.mark.parametrize(
    ("path", "is_told"),
    [
        ("train_and_test.py", True),
        ("training_and_evaluation.py", True),
        ("evaluate.py", False),
        ("test_train.py", False),
    ],
)
def test_a_file_that_trains_and_tests_is_not_cold(path: str, is_told: bool) -> None:
    snippet = """
    def fit(net, loader, optimizer, loss_of):
        for x, y in loader:
            loss = loss_of(net(x), y)
            loss.backward()
            optimizer.step()
            correct = (net(x).argmax(dim=1) == y).sum().item()
    """
    found = analyze(Document(path, HEAD + code(snippet)), CATALOGUE, Target())
    assert any(each.rule.code == "NPU805" for each in found) is is_told
