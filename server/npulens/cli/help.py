"""Commands whose `--help` is in the language of the user. Click writes it in English."""

import click

from npulens.cli.refusals import WrongUsage, spoken


class _Translated(click.Command):
    """Shows its help in the language of the user."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if spoken(ctx) == "en":
            super().format_help(ctx, formatter)
        else:
            from npulens.cli.chinese_help import write_help  # seldom needed

            write_help(self, ctx, formatter)


class Command(_Translated):
    """A command."""

    allow_extra_args = True  # and refused in the language of the user

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            from npulens.cli.usage_errors import option_error

            raise WrongUsage(option_error(error, self)) from None
        if rest and not ctx.resilient_parsing:
            from npulens.catalog.messages import plural

            text = plural("usage.extra-arguments", len(rest), arguments=" ".join(map(str, rest)))
            raise WrongUsage(text, ctx)
        return rest


class CommandGroup(_Translated, click.Group):
    """A command that consists of others."""
