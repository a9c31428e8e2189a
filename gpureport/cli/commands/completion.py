"""`gpureport completion`: the script with which a shell completes commands, options and files."""

import click
from click.shell_completion import get_completion_class

from gpureport.cli.command import command
from gpureport.cli.options import Options

_LINES = {
    "bash": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion bash)"' >> ~/.bashrc""",
    "zsh": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion zsh)"' >> ~/.zshrc""",
    "fish": "gpureport completion fish > ~/.config/fish/completions/gpureport.fish",
}
"""The one line that installs completion in each shell; silent where gpureport is not on the PATH."""


@command("completion", click.Argument(["shell"], required=False, type=click.Choice(list(_LINES))))
def completion(shell: str | None, _: Options) -> None:
    """Print the script that completes commands, options and files on Tab.

    Without SHELL it prints the line that installs it.

    Example: eval "$(gpureport completion bash)"
    """
    if shell is None:
        click.echo("Install completion with one line, then open a new terminal:")
        for name, line in _LINES.items():
            click.echo(f"  {name:5} {line}")
        return
    program, made = click.get_current_context().find_root(), get_completion_class(shell)
    if made is not None:
        click.echo(made(program.command, {}, "gpureport", "_GPUREPORT_COMPLETE").source())
