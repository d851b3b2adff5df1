"""Which computations an operator of torch_npu represents."""

from npulens.catalog.model import Rule
from npulens.catalog.tables import Catalogue
from npulens.fused.patterns import read_patterns


def rules_of_operator(name: str, catalogue: Catalogue) -> tuple[Rule, ...]:
    """The rules whose patterns become an operator, each once; none of an unknown name."""
    codes = [p.rule for p in read_patterns(catalogue.patterns) if p.operator == name]
    rules = (catalogue.rule_named(code) for code in dict.fromkeys(codes))
    return tuple(rule for rule in rules if rule is not None)
