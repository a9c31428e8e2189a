"""The secrets that the settings name, in use before a command does anything."""

import os
from collections.abc import Sequence
from pathlib import Path

from gpureport.redaction import OwnSecrets, use_own_secrets

_SETTINGS, _OPTION = "gpureport.toml", "--config"
_COMPLETION = "_GPUREPORT_COMPLETE"
"""Variable with which a shell asks for completions, where no error may stand."""
_HELP = {"-h", "--help", "--version"}


def use_secrets_of_settings(arguments: Sequence[str]) -> None:
    """Replace the secrets that `[secrets]` of the settings names, from --config or this folder.

    A command that cannot read them does not begin, as it could show one; help and completions read none. The other
    sections are read, and refused, by the commands that use them.

    Raises:
        SettingsError: when the file is no TOML, or `[secrets]` cannot be read.
    """
    use_own_secrets(OwnSecrets())
    if _COMPLETION in os.environ or not _HELP.isdisjoint(arguments):
        return
    named = _find_config(arguments)
    if named is not None or Path(_SETTINGS).is_file():
        from gpureport.settings import read_unchecked  # noqa: PLC0415 - only with settings
        from gpureport.settings.secret_settings import read_own_secrets  # noqa: PLC0415 - as above
        from gpureport.settings.toml_files import keep_piped  # noqa: PLC0415 - as above

        keep_piped()
        use_own_secrets(read_own_secrets(read_unchecked(named)))


def _find_config(arguments: Sequence[str]) -> Path | None:
    """Return the file that the last --config names; None without one."""
    found = None
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{_OPTION}="):
            found = Path(argument.removeprefix(f"{_OPTION}="))
        elif argument == _OPTION and place + 1 < len(arguments):
            found = Path(arguments[place + 1])
    return found
