"""`npulens completion`."""

import click

from npulens.cli.help import Command

_EPILOG = """\b
Examples:
  npulens completion bash > ~/.local/share/bash-completion/completions/npulens
  npulens completion zsh > ~/.zfunc/_npulens
  npulens completion fish > ~/.config/fish/completions/npulens.fish

Or, in ~/.bashrc: eval "$(npulens completion bash)\""""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script with which a SHELL completes commands, options and rules."""
    from click.shell_completion import get_completion_class

    from npulens.cli.main import cli

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(cli, {}, "npulens", "_NPULENS_COMPLETE").source(), nl=False)
