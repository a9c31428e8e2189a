"""A map in TOML is read, or refused in words that name the key."""

from pathlib import Path

import pytest

from gpureport.errors import SettingsError
from gpureport.importers.protocol.column_map import Mapping, read_column_map
from tests.importers import other_tools

COLUMN = '[columns."a"]\nmetric = "gpu_power_watts"\n'


def made(folder: Path, text: str) -> Mapping:
    """Return a map that was written to a file."""
    path = folder / "map.toml"
    path.write_text(text)
    return read_column_map(path)


def test_a_map_says_what_columns_are(tmp_path: Path) -> None:
    """Units that a table is written in anyway may be left out, so may the machine's device."""
    found = made(tmp_path, other_tools.MAP)
    assert (found.time, found.format, found.zone) == ("when", "epoch_s", None)
    assert [(each.heading, each.unit, each.gpu) for each in found.columns] == [
        ("GPU0 power", "W", 0),
        ("GPU1 power", "W", 1),
        ("RAM", "MiB", None),
    ]


def test_what_is_read_hangs_on_the_map_alone(tmp_path: Path) -> None:
    """Blanks and comments do not change a run's identity; another unit does."""
    same = made(tmp_path, "# as before\n" + other_tools.MAP)
    other = made(tmp_path, other_tools.MAP.replace('"MiB"', '"B"'))
    first = made(tmp_path, other_tools.MAP)
    assert str(first) == str(same) != str(other)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[columns", r"not TOML \("),
        ("a = " + "9" * 5000, r"not TOML \("),
        ("", "it maps no column; such as"),
        ("columns = 5", "columns is no table"),
        (COLUMN, "which GPU is column 'a' of"),
        (COLUMN + 'device = "cuda:0"', "which GPU is column 'a' of"),
        (COLUMN + 'device = "gpu:x"', "which GPU is column 'a' of"),
        (COLUMN + "device = 0", 'device is no text; write device = "..."'),
        (COLUMN + 'device = "gpu:0"\nunits = "W"', "unknown key 'units' in"),
        (COLUMN + 'device = "gpu:0"\nunit = "MHz"', "'MHz' is no unit of its metric .*; units are mW, W, kW"),
        ('[columns.a]\nmetric = "gpu_utilization_ratio"\ndevice = "gpu:0"', "no unit .*; units are 1, %"),
        ('[columns.a]\nmetric = "gpu_power_wat"', "no metric 'gpu_power_wat' .*; did you mean 'gpu_power_watts'"),
        ("[columns]\na = 5", "'a' is no table"),
        ('[time]\nformat = "unix"\n' + COLUMN + 'device = "gpu:0"', "no format 'unix' of a time; iso, epoch_s"),
        (
            COLUMN + 'device = "gpu:0"\n[columns.b]\nmetric = "gpu_power_watts"\ndevice = "gpu:0"',
            "two columns hold gpu_power_watts of gpu:0; map one",
        ),
    ],
)
def test_what_a_map_cannot_say(tmp_path: Path, text: str, what: str) -> None:
    """A mistake is one line that names the file, the key and what to write."""
    with pytest.raises(SettingsError, match=what):
        made(tmp_path, text)


def test_a_missing_map(tmp_path: Path) -> None:
    """A map that is not there is no traceback."""
    with pytest.raises(SettingsError, match=r"absent.toml: No such file or directory; check the path"):
        read_column_map(tmp_path / "absent.toml")
