"""Packages that need CUDA or another build: one entry says it of their imports and of requests.

So what is said of `import torch_scatter` and of `torch-scatter==2.1.2` in a list of requirements
cannot differ.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from npulens.catalog.messages import about, message
from npulens.catalog.model import Applicability, Rule
from npulens.catalog.rule_file import CatalogueError
from npulens.catalog.tables import LaunchEntry, Place, SymbolEntry

_NOT_A_FOLDER = "(?!/).*"
"""Any requirement; a name with a path behind it is a folder."""


def imports(fields: Mapping[str, Any]) -> Iterator[SymbolEntry]:
    """The entries for what is imported of a package."""
    for module in fields["modules"]:
        yield SymbolEntry(
            symbol=module,
            rule=fields["rule"],
            becomes=None,
            fix=Applicability.MANUAL,
            since=None,
            shimmed=False,
            severity=fields["severity"],
            note=fields["note"],
            source=fields["source"],
        )


def request(fields: Mapping[str, Any], rules: Mapping[str, Rule], label: str) -> LaunchEntry:
    """The entry for requirements of a package, under the rule that its rule names for them.

    Raises:
        CatalogueError: There is no rule of that name.
    """
    rule: Rule = fields["rule"]
    of_requests = rule if rule.requested is None else rules.get(rule.requested)
    if of_requests is None:
        problem = message("format.unknown-rule", name=rule.requested)
        raise CatalogueError(about(f"{label}: rules {rule.name}", problem))
    return LaunchEntry(
        place=Place.PACKAGE,
        name="|".join(fields["names"]),
        value=_NOT_A_FOLDER,
        rule=of_requests,
        becomes=None,
        fix=Applicability.MANUAL,
        severity=fields["severity"],
        note=fields["note"],
        evidence=(),
        unless=(),
        beside=None,
        without=None,
        releases=(),
        any_device=None,
        chooses=None,
        source=fields["source"],
    )
