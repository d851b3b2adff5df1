"""`npulens rule`."""

from typing import TYPE_CHECKING

import click

from npulens.cli.help import Command
from npulens.cli.options import complete_rules, language_option, settings
from npulens.cli.refusals import refusal

if TYPE_CHECKING:
    from npulens.catalog.model import Language


_EPILOG = """\b
Examples:
  npulens rule NPU101
  npulens rule cuda-api --language zh"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("code", shell_complete=complete_rules)
@language_option
def rule(code: str, language: "Language | None") -> None:
    """Explain the rule with this CODE or name."""
    from npulens.catalog.rule_page import rule_page
    from npulens.workspace.settings.configuration import nearest

    chosen = settings((".",), None, {"language": language})
    catalogue = chosen.catalogue
    found = catalogue.rule_named(code) or catalogue.rule_named(code.upper())
    if found is None:
        known = [*catalogue.rules, *(each.name for each in catalogue.rules.values())]
        raise refusal("error.no-such-rule", name=code, hint=nearest(code, known))
    click.echo(rule_page(found, chosen.language), nl=False)
