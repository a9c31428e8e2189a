"""`gpureport completion`: the script with which a shell completes commands, options, checks, runs and files."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_BASH = """\
%(complete_func)s() {
    local word="${COMP_WORDS[COMP_CWORD]}" kind value
    local -a files
    [[ $word == "=" ]] && word=
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file | dir)
                compopt -o filenames
                mapfile -t files < <(compgen -"${kind:0:1}" -- "$word")
                COMPREPLY+=("${files[@]}") ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_LINES = {
    "bash": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion bash)"' >> ~/.bashrc""",
    "zsh": """echo 'command -v gpureport > /dev/null && eval "$(gpureport completion zsh)"' >> ~/.zshrc""",
    "fish": "gpureport completion fish > ~/.config/fish/completions/gpureport.fish",
}
"""The one line that installs completion in each shell; silent where gpureport is not on the PATH."""


class _Bash(BashComplete):
    """Bash, where files are offered beside runs; click's own script offers either."""

    source_template = _BASH

    def source(self) -> str:
        """Return the script."""
        return ShellComplete.source(self)


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", required=False, type=click.Choice(list(_SHELLS)))
def completion(*, shell: str | None) -> None:
    """Print the script that completes commands, options, checks, runs and files on Tab.

    Without SHELL it prints the line that installs it.

    Example: eval "$(gpureport completion bash)"
    """
    if shell is None:
        click.echo("Install completion with one line, then open a new terminal:")
        for name, line in _LINES.items():
            click.echo(f"  {name:5} {line}")
        return
    program = click.get_current_context().find_root()
    click.echo(_SHELLS[shell](program.command, {}, "gpureport", "_GPUREPORT_COMPLETE").source())
