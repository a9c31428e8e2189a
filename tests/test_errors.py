"""Errors a person can act on."""

from gpureport.errors import SettingsError


def test_an_error_is_a_line_and_not_a_book() -> None:
    """What a person gave stands in it with its beginning and its end."""
    error = SettingsError("gpureport.toml:4", f"{'x' * 100_000}' is no limit", "write one such as 'idle_ratio <= 5%'")
    assert len(str(error)) < 5000
    assert str(error).startswith("gpureport.toml:4: xxx")
    assert str(error).endswith("x' is no limit; write one such as 'idle_ratio <= 5%'")
