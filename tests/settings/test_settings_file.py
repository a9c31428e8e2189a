"""The settings file."""

from pathlib import Path

import pytest

from gpureport import settings
from gpureport.errors import SettingsError
from tests.patience import patience


def written(folder: Path, text: str) -> settings.Settings:
    """Return the settings of a file of this text."""
    path = folder / "gpureport.toml"
    path.write_text(text)
    return settings.read_settings(path)


def test_no_file_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file every section is empty."""
    monkeypatch.chdir(tmp_path)
    assert settings.read_settings(None).section("rules.idle_gap").values == {}


def test_the_file_of_this_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gpureport.toml in the current folder counts without being named."""
    written(tmp_path, "[prices]\ngpu_hour = 2.5\n")
    monkeypatch.chdir(tmp_path)
    assert settings.read_settings(None).section("prices").number("gpu_hour") == 2.5


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    """A value of the wrong type is found at its line."""
    section = written(tmp_path, '\n[prices]\n# what we pay\ngpu_hour = "two"\n').section("prices")
    with pytest.raises(SettingsError, match=r"gpureport\.toml:4: gpu_hour must be a number, not 'two'"):
        section.number("gpu_hour")


def test_a_switch_is_no_number(tmp_path: Path) -> None:
    """TOML's true is not 1."""
    with pytest.raises(SettingsError, match="must be a number, not True"):
        written(tmp_path, "[prices]\ngpu_hour = true\n").section("prices").number("gpu_hour")


def test_a_section_must_be_a_table(tmp_path: Path) -> None:
    """A plain value where a table belongs is refused."""
    with pytest.raises(SettingsError, match="rules must be a table"):
        written(tmp_path, "rules = 3\n").section("rules")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[prices]\ngpu_hour = 2\n\n[[polcy]]\nlimit = "problem"\n', r":4: unknown section \[polcy\]; known are ack"),
        ("[price.rate]  # [prices]\nspot = true\n", r":1: unknown section \[price\]"),
        ('currency = "EUR"\n[prices]\n', r":1: unknown section \[currency\]"),
    ],
)
def test_a_section_nobody_reads_is_a_mistake(tmp_path: Path, text: str, said: str) -> None:
    """A mistyped heading would else be limits, or prices, that nobody misses."""
    with pytest.raises(SettingsError, match=said):
        written(tmp_path, text)


def test_tables_without_end_are_read_at_once(tmp_path: Path) -> None:
    """Each key has its line, however many tables there are: 20,000 took minutes."""
    with patience(15):
        read = written(tmp_path, '[[policy.limit]]\nthat = "x"\n' * 20_000)
        found = read.sections("policy.limit")
    assert found[-1].at("that").endswith(":40000")
