"""The shipped tables against an independent list of facts, and rule files that must be refused."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npulens.catalog.loader import CatalogueError, load_catalogue
from npulens.catalog.model import Applicability, LocalizedText, Severity, TorchVersion
from npulens.catalog.rule_file import read_content
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.tables import Catalogue, Meaning, Place

CATALOGUE = load_catalogue()


class Fact(NamedTuple):
    """What `torch_npu` makes of a name of the CUDA world."""

    symbol: str
    status: str
    counterpart: str


FACTS = [
    Fact(*line.split("\t"))
    for line in (Path(__file__).parent / "data" / "torch_cuda_api.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]

LEFT_OUT = {
    "torch.Tensor.record_stream": "same name; it takes a torch.npu.Stream, found where it is made",
    "torch.Tensor.device": "same name; comparisons of its type are found by the engine (NPU111)",
    '"cuda"': "a literal; the engine judges it by where it stands (NPU110, NPU111)",
    'torch.distributed.get_backend()=="nccl"': "a comparison, found by the engine (NPU201)",
    "torch.set_default_tensor_type(torch.cuda.FloatTensor)": "its argument is found (NPU107)",
    "env:CUDA_DEVICE_MAX_CONNECTIONS": "kept: Megatron on the NPU checks it too",
}

METHODS = {
    "torch.Tensor.cuda": "cuda",
    "torch.nn.Module.cuda": "cuda",
    "torch.UntypedStorage.cuda": "cuda",
    "torch.Tensor.is_cuda": "is_cuda",
    "torch.storage.TypedStorage.is_cuda": "is_cuda",
    "torch.UntypedStorage.is_cuda": "is_cuda",
    "torch.Tensor.__cuda_array_interface__": "__cuda_array_interface__",
}

DEVICE_METHODS = {
    "torch.Tensor.to": ".to",
    "torch.Tensor.pin_memory": ".pin_memory",
    "torch.Tensor.is_pinned": ".is_pinned",
    "torch.nn.Module.to": ".to",
    "torch.nn.Module.to_empty": ".to_empty",
}

CALL = re.compile(r'(?P<callable>[\w.]+)\((?:(?P<parameter>\w+)=)?"(?P<value>\w+)"\)')


def expected_counterpart(fact: Fact) -> str | None:
    """The counterpart where it is another name, and not an expression or a recommendation."""
    if fact.counterpart == fact.symbol or not re.fullmatch(r"[A-Za-z_][\w.]*", fact.counterpart):
        return None
    return spelt_alike(fact.counterpart)


def spelt_alike(name: str) -> str:
    return name.removesuffix("()").replace("torch_npu.npu.", "torch.npu.")


def parameter(callable_name: str, name: str | None) -> Any:
    """The entry of a parameter, the first positional one if it has no name here."""
    entries = CATALOGUE.parameters.get(callable_name, ())
    return next(
        (e for e in entries if (e.parameter == name if name else e.position == 0)),
        None,
    )


def test_the_list_of_facts_is_whole() -> None:
    assert len(FACTS) == 365
    assert len({fact.symbol for fact in FACTS}) == 365
    assert LEFT_OUT.keys() | METHODS.keys() | DEVICE_METHODS.keys() <= {f.symbol for f in FACTS}


@pytest.mark.family(60)
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.symbol)
def test_every_fact_is_in_the_tables(fact: Fact) -> None:
    symbol = fact.symbol
    call = CALL.fullmatch(symbol)
    if symbol in LEFT_OUT:
        assert symbol not in CATALOGUE.symbols
        assert symbol.removeprefix("env:") not in CATALOGUE.environment
    elif symbol in METHODS:
        method = CATALOGUE.methods[METHODS[symbol]]
        assert symbol.rpartition(".")[0] in method.owners
        assert method.becomes == (fact.counterpart.rpartition(".")[2] or None)
    elif symbol in DEVICE_METHODS:
        assert CATALOGUE.parameters[DEVICE_METHODS[symbol]][0].meaning is Meaning.DEVICE
    elif call:
        entry = parameter(call["callable"], call["parameter"])
        meaning = {"cuda": Meaning.DEVICE, "nccl": Meaning.BACKEND}[call["value"]]
        assert entry is not None
        assert entry.meaning is meaning
    elif symbol.startswith("env:"):
        variable = CATALOGUE.environment[symbol.removeprefix("env:")]
        assert variable.becomes == (fact.counterpart or None)
    else:
        becomes = CATALOGUE.symbols[symbol].becomes
        assert (becomes and spelt_alike(becomes)) == expected_counterpart(fact)


@pytest.mark.family(40)
@pytest.mark.parametrize(
    "fact", [f for f in FACTS if f.symbol in CATALOGUE.symbols], ids=lambda fact: fact.symbol
)
def test_a_fix_is_no_safer_than_the_fact(fact: Fact) -> None:
    entry = CATALOGUE.symbols[fact.symbol]
    if fact.status == "partial":
        assert entry.fix is not Applicability.SAFE
    if fact.status == "unsupported":
        assert entry.fix is Applicability.MANUAL or entry.symbol == "torch.has_cuda"
    if fact.status == "same-name":
        assert entry.fix is not Applicability.MANUAL


@pytest.mark.parametrize("place", Place)
def test_expressions_of_the_tables_are_valid(place: Place) -> None:
    for entry in CATALOGUE.launch[place]:
        re.compile(entry.name)
        re.compile(entry.value or "")


@pytest.mark.family(40)
@pytest.mark.parametrize("entry", CATALOGUE.symbols.values(), ids=lambda entry: entry.symbol)
def test_a_symbol_does_not_become_itself(entry: Any) -> None:
    assert entry.becomes != entry.symbol
    assert entry.since in (None, TorchVersion(2, 6), TorchVersion(2, 7))


def test_positions_of_well_known_parameters() -> None:
    positions = {
        (e.callable, e.parameter): e.position for es in CATALOGUE.parameters.values() for e in es
    }
    assert positions["torch.load", "map_location"] == 1
    assert positions["torch.distributed.init_process_group", "backend"] == 0
    assert positions["torch.distributed.new_group", "backend"] == 2
    assert positions["torch.utils.data.DataLoader", "pin_memory_device"] is None
    assert positions[".to_empty", "device"] is None
    for callable_name, entries in CATALOGUE.parameters.items():
        taken = [e.position for e in entries if e.position is not None]
        assert len(taken) == len(set(taken)), callable_name


def test_names_beside_the_facts() -> None:
    assert CATALOGUE.symbols["torch.cuda"].becomes == "torch.npu"
    assert CATALOGUE.symbols["torch.channels_last_3d"].rule.name == "channels-last"
    assert CATALOGUE.symbols["torch.nn.parallel.DataParallel"].rule.name == "data-parallel"
    assert CATALOGUE.symbols["torch.cuda.OutOfMemoryError"].severity is Severity.HINT


def shipped_entries() -> list[tuple[str, str, dict[str, Any]]]:
    """File, list and content of every entry, as written."""
    found = []
    for path in sorted(rules_folder().glob("*/*.toml")):
        content: Any = read_content(path, path.name)
        for name, entries in content.items():
            if isinstance(entries, list):
                found += [(path.name, name, entry) for entry in entries]
    return found


def test_no_entry_is_in_two_shipped_files() -> None:
    kinds = ("symbols", "methods", "parameters", "environment")
    keys = [
        (
            kind,
            entry.get("symbol") or entry.get("name") or entry.get("variable"),
            entry.get("callable"),
            entry.get("parameter"),
        )
        for _, kind, entry in shipped_entries()
        if kind in kinds
    ]
    assert len(keys) == len(set(keys))


def texts() -> list[tuple[str, LocalizedText]]:
    found = [(r.code, t) for r in CATALOGUE.rules.values() for t in (r.message, r.explanation)]
    tables: list[Any] = [*CATALOGUE.symbols.values(), *CATALOGUE.methods.values()]
    tables += [e for entries in CATALOGUE.parameters.values() for e in entries]
    tables += CATALOGUE.environment.values()
    return found + [(repr(e)[:60], e.note) for e in tables if e.note is not None]


def test_every_text_is_in_both_languages() -> None:
    for place, text in texts():
        assert re.search("[一-鿿]", text.zh), place
        assert not re.search("[一-鿿]", text.en), place
        assert text.en.endswith(".") and text.zh.endswith(("。", "）。")), place
        assert set(re.findall("`[^`]+`", text.en)) == set(re.findall("`[^`]+`", text.zh)), place


@pytest.mark.parametrize("rule", CATALOGUE.rules.values(), ids=lambda rule: rule.code)
def test_a_rule_is_explained_and_shown(rule: Any) -> None:
    assert rule.code.startswith("NPU")
    assert rule.examples and rule.valid
    for language in ("en", "zh"):
        placeholders = set(re.findall(r"{(\w+)}", rule.message.in_language(language)))
        assert placeholders <= {"symbol", "replacement", "detail", "codes", "version", "type"}
    assert not any(example.after == example.before for example in rule.examples)


def test_entries_name_sources_a_reader_can_find() -> None:
    for file, _, entry in shipped_entries():
        text = json.dumps(entry, ensure_ascii=False)
        assert not re.search(r"/(work|home|root|tmp|opt)/|\bkb\b|\bseed \d", text), (file, text)


# Rule files of a user.

RULE = {
    "code": "MY001",
    "name": "my-rule",
    "severity": "warning",
    "message": {"en": "`{symbol}` is ours.", "zh": "`{symbol}` 是我们的。"},
    "explanation": {"en": "Because.", "zh": "原因。"},
    "examples": [{"before": ["a()"], "after": None}],
    "valid": [["b()"]],
}
SYMBOL = {"symbol": "our.name", "rule": "my-rule", "source": "us"}
METHOD = {"name": "shout", "owners": ["our.Class"], "rule": "my-rule", "source": "us"}
PARAMETER = {
    "callable": "our.f",
    "parameter": "device",
    "position": 0,
    "meaning": "device",
    "rule": "my-rule",
    "source": "us",
}
VARIABLE = {"variable": "OUR_PATH", "rule": "my-rule", "source": "us"}


def with_rule(**changes: Any) -> dict[str, Any]:
    return {"family": "ours", "rules": [{**RULE, **changes}]}


def with_entry(kind: str, *entries: Any) -> dict[str, Any]:
    return {"family": "ours", "rules": [RULE], kind: list(entries)}


def load(folder: Path, content: object) -> Catalogue:
    path = folder / "mine.json"
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return load_catalogue([path])


def without(entry: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != field}


REFUSED: list[tuple[object, str]] = [
    ('{"family": "ours",\n "rules": [}', "line 2: not valid JSON: Expecting value"),
    ("[]", "must be a JSON object"),
    ({"rules": []}, 'field "family" is missing'),
    ({"family": "Our Rules"}, '"family" must be a name in kebab-case, not "Our Rules"'),
    ({"family": "ours", "symbol": []}, 'unknown field "symbol"'),
    ({"family": "ours", "symbols": {}}, '"symbols" must be a list, not {}'),
    (
        {"family": "ours", "signatures": [{"callable": "a.b", "types": {"c": "bol"}}]},
        'signatures[0] a.b: "types" must be parameters with a type for each: bool, int, float or'
        ' str, not {"c": "bol"}',
    ),
    (
        {"family": "ours", "members": [{"owner": "a.b", "renamed": {"c": 1}}]},
        'members[0] a.b: "renamed" must be a name, not 1',
    ),
    (
        with_rule(code="My1"),
        'rules[0] My1: "code" must be two to ten capital letters and three digits, not "My1"',
    ),
    (with_rule(code="NPU101"), 'rules my-rule: code NPU101 is already taken by "cuda-api"'),
    (with_rule(name="cuda-api"), 'rules MY001: name "cuda-api" is already taken by NPU101'),
    (
        {"family": "ours", "rules": [RULE, RULE]},
        'rules my-rule: code MY001 is already taken by "my-rule"',
    ),
    (
        with_rule(severity="fatal"),
        'rules[0] MY001: "severity" must be one of error, warning, info, hint, not "fatal"',
    ),
    (
        with_rule(message={"en": "Only one."}),
        'rules[0] MY001: "message" must have a text in the language "zh"',
    ),
    (
        with_rule(message={"en": "a", "zh": "b", "de": "c"}),
        'rules[0] MY001: "message" must have no texts but en and zh',
    ),
    (
        with_rule(message={"en": "{symbol", "zh": "b"}),
        'rules[0] MY001: "message" must not have a brace without its partner',
    ),
    (
        with_rule(message={"en": "{0}", "zh": "b"}),
        'rules[0] MY001: "message" must have only names between braces, such as {symbol}',
    ),
    (
        with_rule(explanation="Because."),
        'rules[0] MY001: "explanation" must be {"en": "...", "zh": "..."}, not "Because."',
    ),
    (
        with_rule(examples=[{"before": ["a()"]}]),
        'rules[0] MY001: "examples" must hold objects with "before" and "after"',
    ),
    (
        with_rule(valid=["b()"]),
        'rules[0] MY001: "valid" must be a list of lines of code, not "b()"',
    ),
    (
        with_entry("symbols", {**SYMBOL, "becmes": "x"}),
        'symbols[0] our.name: unknown field "becmes"',
    ),
    (
        with_entry("symbols", {**SYMBOL, "rule": "cuda-apy"}),
        'symbols[0] our.name: unknown rule "cuda-apy"',
    ),
    (
        with_entry("symbols", without(SYMBOL, "source")),
        'symbols[0] our.name: field "source" is missing',
    ),
    (
        with_entry("symbols", {**SYMBOL, "symbol": "our..name"}),
        'symbols[0] our..name: "symbol" must be a qualified name, not "our..name"',
    ),
    (
        with_entry("symbols", {**SYMBOL, "shimmed": 1}),
        'symbols[0] our.name: "shimmed" must be true or false, not 1',
    ),
    (
        with_entry("symbols", {**SYMBOL, "since": "2"}),
        'symbols[0] our.name: "since" must be a version such as "2.7", not "2"',
    ),
    (
        with_entry("symbols", {**SYMBOL, "since": 2.7}),
        'symbols[0] our.name: "since" must be a version such as "2.7", not 2.7',
    ),
    (
        with_entry("symbols", {**SYMBOL, "fix": "safe"}),
        'symbols[0] our.name: "fix" is safe but there is no "becomes"',
    ),
    (
        with_entry("symbols", {**SYMBOL, "fix": ["safe"]}),
        'symbols[0] our.name: "fix" must be one of safe, unsafe, manual, not ["safe"]',
    ),
    (
        with_entry("symbols", {**SYMBOL, "rule": "cuda-api"}),
        'symbols[0] our.name: the message of "cuda-api" needs a "becomes"',
    ),
    (with_entry("symbols", SYMBOL, SYMBOL), "symbols[1] our.name: is there twice"),
    (with_entry("symbols", "our.name"), 'symbols[0]: must be an object, not "our.name"'),
    (
        with_entry("methods", {**METHOD, "owners": "our.Class"}),
        'methods[0] shout: "owners" must be a list of qualified names, not "our.Class"',
    ),
    (
        with_entry("methods", {**METHOD, "becomes": "a.b", "fix": "safe"}),
        'methods[0] shout: "becomes" must be a name, not "a.b"',
    ),
    (
        with_entry("parameters", {**PARAMETER, "position": -1}),
        'parameters[0] our.f device: "position" must be a whole number from 0, not -1',
    ),
    (
        with_entry("parameters", {**PARAMETER, "position": True}),
        'parameters[0] our.f device: "position" must be a whole number from 0, not true',
    ),
    (
        with_entry("parameters", {**PARAMETER, "meaning": "card"}),
        'parameters[0] our.f device: "meaning" must be one of device, backend, accelerator,'
        ' not "card"',
    ),
    (with_entry("parameters", PARAMETER, PARAMETER), "parameters[1] our.f device: is there twice"),
    (
        with_entry("environment", {**VARIABLE, "variable": "OUR PATH"}),
        'environment[0] OUR PATH: "variable" must be a name, not "OUR PATH"',
    ),
    (
        with_entry("environment", {**VARIABLE, "note": None}),
        'environment[0] OUR_PATH: "note" must be {"en": "...", "zh": "..."}, not null',
    ),
]


@pytest.mark.parametrize(("content", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_a_broken_file_is_refused_with_one_sentence(
    tmp_path: Path, content: object, reason: str
) -> None:
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, content)
    assert str(caught.value) == f"{tmp_path / 'mine.json'}: {reason}"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"missing\.json: cannot be read: No such file"):
        load_catalogue([tmp_path / "missing.json"])
    (tmp_path / "latin.json").write_bytes(b'{"family": "\xe9"}')
    with pytest.raises(CatalogueError, match=r"latin\.json: not UTF-8 text"):
        load_catalogue([tmp_path / "latin.json"])
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"deep\.json: not usable JSON"):
        load_catalogue([tmp_path / "deep.json"])


def test_shipped_rules_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npulens.catalog.loader.rules_folder", lambda: tmp_path)
    with pytest.raises(CatalogueError, match="no rule files found"):
        load_catalogue()


def test_the_smallest_file_adds_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, {"family": "ours"}) == CATALOGUE
    assert load(tmp_path, '\ufeff{"family": "ours"}') == CATALOGUE


def test_an_entry_of_the_user_replaces_the_shipped_one(tmp_path: Path) -> None:
    content = {
        "family": "ours",
        "rules": [RULE],
        "symbols": [
            {**SYMBOL, "symbol": "torch.cuda.synchronize", "becomes": "our.wait()", "fix": "safe"},
            SYMBOL,
        ],
        "methods": [{**METHOD, "name": "cuda", "becomes": "to_npu", "fix": "unsafe"}],
        "parameters": [
            {**PARAMETER, "callable": "torch.load", "parameter": "map_location", "position": 1},
            {**PARAMETER, "callable": "torch.load", "parameter": "f"},
        ],
        "environment": [{**VARIABLE, "variable": "CUDA_VISIBLE_DEVICES"}],
    }
    mine = load(tmp_path, content)
    ours = mine.rule_named("my-rule")
    assert ours is not None
    assert ours is mine.rules["MY001"]
    assert (ours.family, ours.examples[0].before, ours.valid) == ("ours", "a()\n", ("b()\n",))
    assert mine.symbols["torch.cuda.synchronize"].becomes == "our.wait()"
    assert mine.symbols["our.name"].fix is Applicability.MANUAL
    assert mine.methods["cuda"].becomes == "to_npu"
    assert mine.methods["cuda"].called
    assert [(e.parameter, e.rule.name) for e in mine.parameters["torch.load"]] == [
        ("map_location", "my-rule"),
        ("f", "my-rule"),
    ]
    assert mine.environment["CUDA_VISIBLE_DEVICES"].becomes is None
    assert mine.symbols["torch.cuda.seed"] == CATALOGUE.symbols["torch.cuda.seed"]
    assert len(mine.symbols) == len(CATALOGUE.symbols) + 1


def test_a_rule_may_be_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(with_rule()), encoding="utf-8")
    table = {"family": "ours", "symbols": [SYMBOL]}
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")
    mine = load_catalogue([tmp_path / "table.json", tmp_path / "rules.json"])
    assert mine.symbols["our.name"].rule.code == "MY001"
