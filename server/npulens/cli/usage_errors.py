"""What is wrong with the words of a command, by what click says in fields and not in a sentence."""

import click

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.cli.refusals import WrongUsage, spoken


class WrongValue(click.BadParameter):
    """A value that an option or argument does not take."""

    def __init__(self, text: LocalizedText) -> None:
        super().__init__(text.en)
        self.text = text


def wrong_value(name: MessageId, /, **values: object) -> WrongValue:
    """That a value is not taken, in these words."""
    return WrongValue(message(name, **values))


def show_wrong_usage(error: click.UsageError) -> None:
    """What is wrong with the words of a command, and how it is used."""
    language = spoken(error.ctx)
    if language == "en" or error.ctx is None:
        click.UsageError(usage_error(error).in_language(language), error.ctx).show()
        return
    usage = " ".join(error.ctx.command.collect_usage_pieces(error.ctx))
    text = message(
        "usage.error",
        usage=f"{error.ctx.command_path} {usage}",
        command=error.ctx.command_path,
        problem=usage_error(error),
    )
    click.echo(text.in_language(language), err=True)


def usage_error(error: click.UsageError) -> LocalizedText:
    """What is wrong; the English, and what only the sentence of click says, are of click."""
    english = error.format_message()
    known = _known(error)
    return LocalizedText(english, english if known is None else known.zh)


def option_error(error: click.BadOptionUsage, command: click.Command) -> LocalizedText:
    """What is wrong with an option of a command: it has a value, or it has none."""
    named = [each for each in command.params if error.option_name in each.opts]
    is_flag = any(isinstance(each, click.Option) and each.is_flag for each in named)
    name = error.option_name
    text = message("usage.takes-no-value" if is_flag else "usage.needs-value", name=name)
    return LocalizedText(error.message, text.zh)


def _known(error: click.UsageError) -> LocalizedText | None:
    if isinstance(error, WrongUsage):
        return error.text
    if isinstance(error, WrongValue):
        return message("usage.wrong-value", name=_hint(error), problem=error.text)
    if isinstance(error, click.MissingParameter):
        is_option = isinstance(error.param, click.Option)
        name = _hint(error)
        return message("usage.missing-option" if is_option else "usage.missing-argument", name=name)
    if isinstance(error, click.BadParameter) and error.param is not None:
        problem = _wanted(error.param.type)
        return problem and message("usage.wrong-value", name=_hint(error), problem=problem)
    if isinstance(error, click.NoSuchOption):
        problem = message("usage.no-such-option", name=error.option_name)
        return _with_possibilities(problem, error.possibilities)
    if name := getattr(error, "command_name", ""):  # `NoSuchCommand`, which is new in click 8.4
        problem = message("usage.no-such-command", name=name)
        return _with_possibilities(problem, getattr(error, "possibilities", None))
    return None


def _wanted(kind: object) -> LocalizedText | None:
    """What the values of a parameter have to be."""
    if isinstance(kind, click.Choice):
        return message("usage.one-of", choices=", ".join(map(repr, kind.choices)))
    if isinstance(kind, click.IntRange | click.FloatRange):
        bounded = f"{kind.min}<=x<={kind.max}"
        wanted = f"x>={kind.min}" if kind.max is None else bounded
        is_whole = isinstance(kind, click.IntRange)
        return message("usage.whole-number" if is_whole else "usage.number", range=wanted)
    return None


def _hint(error: click.BadParameter) -> str:
    """What a parameter is called."""
    named = error.param_hint
    if named is None and error.param is not None and error.ctx is not None:
        named = error.param.get_error_hint(error.ctx)
    return (named if isinstance(named, str) else " / ".join(named or ())).replace("'", "")


def _with_possibilities(problem: LocalizedText, names: list[str] | None) -> LocalizedText:
    quoted = [repr(name) for name in names or ()]
    if not quoted:
        return problem
    if len(quoted) == 1:
        return message("usage.did-you-mean", problem=problem, name=quoted[0])
    return message("usage.did-you-mean-one-of", problem=problem, names=", ".join(sorted(quoted)))
