"""`gpureport completion`: the script with which a shell completes commands, options and files."""

import click
from click.shell_completion import get_completion_class

from gpureport.cli.options import Options

_LINES = {
    "bash": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion bash)"' >> ~/.bashrc""",
    "zsh": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion zsh)"' >> ~/.zshrc""",
    "fish": "gpureport completion fish > ~/.config/fish/completions/gpureport.fish",
}
"""The one line that installs completion in each shell; silent where gpureport is not on the PATH."""


def completion(shell: str | None, _: Options) -> None:
    """Print the script for a shell, or the lines that install it."""
    if shell is None:
        click.echo("Install completion with one line, then open a new terminal:")
        for name, line in _LINES.items():
            click.echo(f"  {name:5} {line}")
    elif made := get_completion_class(shell):
        program = click.get_current_context().find_root().command
        click.echo(made(program, {}, "gpureport", "_GPUREPORT_COMPLETE").source())
