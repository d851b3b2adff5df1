"""Every fix for a dynamic shape: whether it is safe, and that both texts compute the same."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from helpers import CATALOGUE, code, findings, fixed
from npulens.analysis import analyze_shapes
from npulens.catalog.model import Applicability
from npulens.fixes.apply import apply_edits
from npulens.text.document import Document

HEAD = "import torch\nfrom torch import Tensor\n\n\n"
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


class Case(NamedTuple):
    """A function, what the fix writes, whether it is safe, and whether sums may be rounded."""

    before: str
    after: str
    applicability: Applicability
    is_exact: bool = True


CASES = {
    "sum of a mask of the same tensor": Case(
        "mask = x > 0\nreturn x[mask].sum()",
        "mask = x > 0\nreturn torch.where(mask, x, 0).sum()",
        SAFE,
        is_exact=False,
    ),
    "sum of a mask of another tensor": Case(
        "return x[y > 0].sum()",
        "return torch.where(y > 0, x, 0).sum()",
        UNSAFE,
        is_exact=False,
    ),
    "sum where all dimensions are known": Case(
        "rows, columns = x.shape\nmask = x * 2 > 0.5\nreturn x[mask].sum()",
        "rows, columns = x.shape\nmask = x * 2 > 0.5\nreturn torch.where(mask, x, 0).sum()",
        SAFE,
        is_exact=False,
    ),
    "without missing values": Case(
        "return x[~torch.isnan(x)].sum()",
        "return torch.where(~torch.isnan(x), x, 0).sum()",
        SAFE,
        is_exact=False,
    ),
    "mean": Case(
        "mask = x > 0\nreturn torch.masked_select(x, mask).mean() * 2",
        "mask = x > 0\nreturn (torch.where(mask, x, 0).sum() / mask.sum()) * 2",
        SAFE,
        is_exact=False,
    ),
    "mean of a method": Case(
        "return x.masked_select(y > 0).mean()",
        "return torch.where(y > 0, x, 0).sum() / (y > 0).sum()",
        UNSAFE,
        is_exact=False,
    ),
    "where with one argument": Case(
        "return x[torch.where(x > 0)].sum()",
        "return torch.where(x > 0, x, 0).sum()",
        SAFE,
        is_exact=False,
    ),
    "count by length": Case(
        "return len(torch.nonzero(x > 0))", "return int(torch.count_nonzero(x > 0))", SAFE
    ),
    "count by shape": Case(
        "return (x > 0).nonzero().shape[0]", "return int(torch.count_nonzero(x > 0))", SAFE
    ),
    "count by size": Case(
        "return torch.nonzero(x).size(0) + 1", "return int(torch.count_nonzero(x)) + 1", SAFE
    ),
    "missing values": Case(
        "x = x.clone()\nx[torch.isnan(x)] = 0.5\nreturn x",
        "x = x.clone()\nx.masked_fill_(torch.isnan(x), 0.5)\nreturn x",
        SAFE,
    ),
    "below a bound": Case(
        "x = x.clone()\nx[x < 0] = 0\nreturn x",
        "x = x.clone()\nx.masked_fill_(x < 0, 0)\nreturn x",
        SAFE,
    ),
    "a fraction for what may be whole": Case(
        "x = x.clone()\nx[x < 0] = -0.5\nreturn x",
        "x = x.clone()\nx.masked_fill_(x < 0, -0.5)\nreturn x",
        UNSAFE,
    ),
    "by another mask": Case(
        "x = x.clone()\nx[y > 0] = 0\nreturn x",
        "x = x.clone()\nx.masked_fill_(y > 0, 0)\nreturn x",
        UNSAFE,
    ),
    "places of a condition": Case(
        "x = x.clone()\nx[torch.where(x < 0)] = 0\nreturn x",
        "x = x.clone()\nx.masked_fill_(x < 0, 0)\nreturn x",
        SAFE,
    ),
    "accumulated": Case(
        "total = 0.0\nfor part in x:\n    total += part.mean().item()\nreturn float(total / 6)",
        "total = 0.0\nfor part in x:\n    total += part.mean().detach()\nreturn float(total / 6)",
        UNSAFE,
        is_exact=False,
    ),
}
SUMMED = "total = 0.0\nfor part in x:\n    total += part.mean().item()\n    {}\n{}"
NO_FIX = {
    "one dimension is summed": "return x[x > 0].sum(0)",
    "more than a mask": "return x[x[:, 0] > 0, 1].sum()",
    "rows are used": "return torch.nonzero(x)[0]",
    "as a tuple": "return len(torch.nonzero(x, as_tuple=True))",
    "the value is used at once": "total = x.sum().item()\nreturn total",
    "the callee is given a float": SUMMED.format("show(float(total))", "log(total)"),
    "it is returned": SUMMED.format("pass", "return total"),
    "a quotient is returned": SUMMED.format("pass", "return total / len(x)"),
    "it is appended": SUMMED.format("seen.append(total)", "pass"),
    "it is printed": SUMMED.format("print(total)", "pass"),
    "it is formatted": SUMMED.format("log(f'{total:.3f}')", "pass"),
    "it is formatted by percent": SUMMED.format("text = '%.3f' % total", "pass"),
    "it is put in a dictionary": SUMMED.format("pass", "return json.dumps({'loss': total})"),
    "it is compared": SUMMED.format("pass", "return 1 if total > 3 else 0"),
    "it is added to a float": SUMMED.format("pass", "return float(0.5 + total)"),
    "a float is added": SUMMED.format("total += 0.5", "return float(total)"),
    "another number is added": SUMMED.format("total += len(part)", "return float(total)"),
    "it is kept": SUMMED.format("pass", "self.total = total\nreturn float(total)"),
    "it has another name": SUMMED.format("pass", "other = total\nreturn float(other)"),
    "a function inside uses it": SUMMED.format("pass", "return lambda: total"),
    "another function sees it": SUMMED.format("pass", "return float(total)").replace(
        "total = 0.0", "global total\ntotal = 0.0"
    ),
    "it comes from elsewhere": "for part in x:\n    y += part.mean().item()\nreturn float(y)",
    "float is another function": SUMMED.format("pass", "float = str\nreturn float(total)"),
    "on the device of the parts": SUMMED.format("pass", "return torch.tensor([total])"),
    "an attribute": "for part in x:\n    self.total += part.mean().item()\nreturn x",
    "a step is added": "x[x > 0] += 1\nreturn x",
}


def function_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}def forward(x: Tensor, y: Tensor):\n{lines}"


def fixes(source: str) -> list[tuple[str, Applicability]]:
    return [
        (apply_edits(source, fix.edits), fix.applicability)
        for finding in findings(source)
        if finding.rule.family == "dynamic"
        for fix in finding.fixes
    ]


def result(source: str, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(2, 6, 5, generator=generator)
    if "isnan" in source:
        x[y > 1] = float("nan")
    space: dict[str, Any] = {}
    exec(source, space)
    return torch.as_tensor(space["forward"](x, y))


@pytest.mark.parametrize("name", CASES)
def test_what_a_fix_writes(name: str) -> None:
    case = CASES[name]
    assert fixes(function_of(case.before)) == [(function_of(case.after), case.applicability)]


@pytest.mark.parametrize("name", CASES)
def test_both_compute_the_same(name: str) -> None:
    case = CASES[name]
    for seed in range(6):
        before, after = (result(function_of(text), seed) for text in (case.before, case.after))
        if case.is_exact:
            assert torch.equal(before, after)
        else:
            torch.testing.assert_close(before, after, check_dtype=False, equal_nan=True)


@pytest.mark.parametrize("name", NO_FIX)
def test_where_there_is_no_fix(name: str) -> None:
    assert fixes(function_of(NO_FIX[name])) == []


def test_titles_of_safe_sums_say_what_may_differ() -> None:
    source = function_of(CASES["sum of a mask of the same tensor"].before)
    (fix,) = (fix for finding in findings(source) for fix in finding.fixes)
    assert "up to the order of the sum" in fix.title.en
    assert "顺序" in fix.title.zh


@pytest.mark.parametrize(
    "body",
    [
        "mask = x[:, 0] > 0\nreturn x[mask].sum()",
        "return x[(x > 0).any(-1)].mean()",
        "x[torch.where(x.sum(-1) == x.shape[-1])] = 0\nreturn x",
        "mask = torch.all(x > 0, dim=1)\nx[mask] = 0\nreturn x",
    ],
)
def test_a_mask_of_fewer_dimensions_has_no_fix(body: str) -> None:
    assert fixes(function_of(body)) == []


def test_what_a_reduction_of_another_tensor_leaves_may_fit() -> None:
    source = function_of("x[(y[None] > 0).any(0)] = 0\nreturn x")
    assert [applicability for _, applicability in fixes(source)] == [UNSAFE]


def test_a_tensor_that_changed_since_is_not_the_one_of_the_mask() -> None:
    source = function_of("mask = x > 0\nx = x[0]\nreturn x[mask].sum()")
    assert [applicability for _, applicability in fixes(source)] == [UNSAFE]


TENSOR_TOTALS = [
    "return float(total)",
    "return float(total / len(x)), int(total)",
    "total = 0.0\nreturn float(2 * total)",
    "return torch.tensor([total, 1.0], device=x.device, dtype=torch.float64)",
]


@pytest.mark.parametrize("uses", TENSOR_TOTALS)
def test_a_total_that_becomes_a_number_again_stays_on_the_device(uses: str) -> None:
    before = function_of(SUMMED.format("pass", uses))
    ((after, applicability),) = fixes(before)
    assert applicability is UNSAFE
    assert after == before.replace(".item()", ".detach()")
    torch.testing.assert_close(result(after, 1), result(before, 1))


def test_the_last_batch_is_dropped_behind_the_other_arguments() -> None:
    source = code(
        """
        from torch.utils.data import DataLoader

        loader = DataLoader(
            dataset,
            batch_size=8,
            shuffle=True,  # anew in each epoch
        )
        """
    )
    ((text, applicability),) = fixes(source)
    assert applicability is Applicability.MANUAL
    assert "shuffle=True, drop_last=True,  # anew" in text


def test_the_last_batch_is_dropped_by_a_person_alone() -> None:
    source = "from torch.utils.data import DataLoader\n\nloader = DataLoader(data, 8, True)\n"
    (finding,) = findings(source)
    assert finding.rule.code == "NPU807"
    assert "drops the last" in finding.fixes[0].title.en
    assert "would drop it" in finding.message("en")
    assert fixed(source) == source


EVALUATED = {
    "by its name": "test_loader = DataLoader(data, 8, shuffle=True)",
    "by its data": "loader = DataLoader(val_data, 8, shuffle=True)",
    "beside one for training": (
        "train, valid = DataLoader(a, 8, shuffle=True), DataLoader(b, 8, shuffle=True)"
    ),
    "in a dictionary": "loaders = {k: DataLoader(d[k], 8, shuffle=True) for k in ['train', 'val']}",
    "in a function": "def eval_loader(data):\n    return DataLoader(data, 8, shuffle=True)",
    "in a method": (
        "class A:\n    def val_dataloader(self):\n"
        "        return DataLoader(self.data, 8, shuffle=True)"
    ),
}


@pytest.mark.parametrize("body", EVALUATED.values(), ids=EVALUATED)
def test_no_sample_is_left_out_of_an_evaluation(body: str) -> None:
    source = f"from torch.utils.data import DataLoader\n\n{body}\n"
    assert findings(source) == ()
    found = analyze_shapes(Document("snippet.py", source), CATALOGUE).ranked
    assert [each for each in found if "loader" in each.hotspot.rule] == []


PADDING = "import torch\nfrom torch.nn.utils.rnn import pad_sequence\n\n\n"
PADDED = {
    "assigned": (
        "ids = pad_sequence(samples, batch_first=True)  # to the longest\nreturn ids",
        "ids = pad_sequence(samples, batch_first=True)  # to the longest\n"
        "ids = torch.nn.functional.pad(ids, (0, 0) * (ids.dim() - 2) + (0, -ids.shape[1] % 128))\n"
        "return ids",
    ),
    "returned, with another value": (
        "return pad_sequence(samples, True, padding_value=-100)",
        "return torch.nn.functional.pad(padded := pad_sequence(samples, True, padding_value=-100), "
        "(0, 0) * (padded.dim() - 2) + (0, -padded.shape[1] % 128), value=-100)",
    ),
    "the batch is the second dimension": (
        "padded = len(samples)\nreturn pad_sequence(samples).transpose(0, 1)",
        "padded = len(samples)\n"
        "return torch.nn.functional.pad(padded_0 := pad_sequence(samples), "
        "(0, 0) * (padded_0.dim() - 1) + (0, -padded_0.shape[0] % 128)).transpose(0, 1)",
    ),
}
NOT_PADDED = {
    "in a comprehension": "return [pad_sequence(part) for part in samples][0]",
    "over a dimension that is chosen": "return pad_sequence(samples, batch_first=bool(samples))",
    "a value that is computed": "return pad_sequence(samples, padding_value=float(len(samples)))",
    "beside another statement": "ids = pad_sequence(samples); ids = ids + 1\nreturn ids",
}


def collate_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{PADDING}def collate(samples):\n{lines}"


@pytest.mark.parametrize("name", PADDED)
def test_batches_are_padded_on_to_a_multiple(name: str) -> None:
    before, after = (collate_of(body) for body in PADDED[name])
    assert fixes(before) == [(after, UNSAFE)]


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("width", [(), (3,)])
def test_what_is_added_is_padding_alone(name: str, width: tuple[int, ...]) -> None:
    value = -100 if "value" in name else 0
    lengths = set()
    for longest in (5, 90, 128, 130, 250):
        samples = [torch.rand(n, *width) + 1 for n in (longest, 3, longest // 2)]
        made = []
        for body in PADDED[name]:
            space: dict[str, Any] = {}
            exec(collate_of(body), space)
            made.append(space["collate"](samples))
        before, after = made
        assert torch.equal(after[:, :longest], before)
        assert (after[:, longest:] == value).all()
        mask = after != value  # as a model sees it
        assert torch.equal(after[mask], before[before != value])
        lengths.add(after.shape[1])
    assert lengths == {128, 256}


@pytest.mark.parametrize("name", NOT_PADDED)
def test_where_padding_on_cannot_be_written(name: str) -> None:
    assert fixes(collate_of(NOT_PADDED[name])) == []


def test_collators_of_tokenizers_pad_to_a_multiple() -> None:
    head = "from transformers import DataCollatorWithPadding\n\n"
    ((text, applicability),) = fixes(f"{head}made = DataCollatorWithPadding(tokenizer)\n")
    assert applicability is UNSAFE
    assert text == f"{head}made = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=128)\n"
    assert fixes(text) == []
    assert fixes(f"{head}made = DataCollatorWithPadding(tokenizer, **options)\n") == []


def test_nothing_is_written_where_torch_has_no_name() -> None:
    source = "from torch import Tensor\n\n\ndef forward(x: Tensor):\n    return x[x > 0].sum()\n"
    assert fixes(source) == []


def test_masks_of_one_dimension_would_spread_wrongly() -> None:
    """Why there is no such fix: rows are selected, but columns would be masked."""
    x = torch.arange(4.0).reshape(2, 2)
    mask: Tensor = x[:, 0] > 0
    assert x[mask].sum() != torch.where(mask, x, 0).sum()
