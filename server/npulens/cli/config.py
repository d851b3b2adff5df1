"""`npulens config`."""

import click

from npulens.cli.help import Command
from npulens.cli.options import config_option, configuration_for
from npulens.cli.refusals import refusals

_EPILOG = """\b
Examples:
  npulens config --show
  npulens config src/train.py --show
  npulens config --show --config ci/npulens.toml"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("path", default=".")
@click.option("--show", is_flag=True, required=True, help="Print what applies, as TOML.")
@config_option
def config(path: str, show: bool, config: str | None) -> None:
    """Show which configuration applies to PATH, and from where."""
    from npulens.report.configuration_text import shown_settings

    with refusals():
        configuration = configuration_for((path,), config, {})
    click.echo(shown_settings(configuration), nl=False)
