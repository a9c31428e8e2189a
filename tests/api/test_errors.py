"""Errors a person can act on."""

import pickle

import pytest

from gpureport.errors import GpureportError, InternalError, SettingsError, SourceError


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("--by", "no run has it", "name another"),
        SourceError("a.csv", "no rows", "give a log", "an example"),
        InternalError("a.csv", ValueError("odd")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_go_to_another_process(error: GpureportError) -> None:
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert type(other) is type(error)
    assert (str(other), other.where, other.what, other.hint) == (str(error), error.where, error.what, error.hint)
    assert getattr(other, "aside", None) == getattr(error, "aside", None)


def test_an_error_is_a_line_and_not_a_book() -> None:
    error = SettingsError("gpureport.toml:4", f"{'x' * 100_000}' is no limit", "write one such as 'idle_ratio <= 5%'")
    assert len(str(error)) < 5000
    assert str(error).startswith("gpureport.toml:4: xxx")
    assert str(error).endswith("x' is no limit; write one such as 'idle_ratio <= 5%'")
