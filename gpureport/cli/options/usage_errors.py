"""What is wrong with a command line, each with a code that stays when its sentence changes."""

from typing import NoReturn

import click

from gpureport.cli.options.gone import GONE

_CODES: tuple[tuple[type[click.ClickException], str], ...] = (
    (click.NoSuchOption, "unknown_option"),
    (click.MissingParameter, "missing_parameter"),
    (click.BadParameter, "not_a_valid_value"),
    (click.BadOptionUsage, "bad_option"),
    (click.FileError, "no_access"),
)
"""Codes of what click itself finds; of the first class that fits."""


class UsageError(click.UsageError):
    """A command line that cannot be meant, with a code."""

    def __init__(self, message: str, ctx: click.Context | None = None, *, code: str) -> None:
        super().__init__(message, ctx)
        self.code = code


class RefusedValueError(click.BadParameter):
    """A value that an option does not take, with a code."""

    code = ""


def refuse(message: str, param: click.Parameter | None, ctx: click.Context | None, *, code: str) -> NoReturn:
    """Refuse a value that was typed for an option.

    Raises:
        RefusedValueError: with the code.
    """
    error = RefusedValueError(message, ctx, param)
    error.code = code
    raise error


def describe_error(error: click.ClickException) -> tuple[str, str]:
    """Return the code of what is wrong with a command line, and its sentence."""
    if isinstance(error, click.NoSuchOption) and (instead := GONE.get(error.option_name)):
        return "gone_option", f"{error.option_name} is gone; {instead}"
    code = getattr(error, "code", "") or next((code for kind, code in _CODES if isinstance(error, kind)), "usage")
    return code, error.format_message().rstrip(".")
