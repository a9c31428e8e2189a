"""Files of TOML: what no type holds, or would cost minutes, is refused in one line."""

from pathlib import Path

import pytest

from gpureport.errors import SettingsError
from gpureport.settings.toml_files import read_toml


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = [", "Invalid value"),
        ("a = " + "9" * 5000, "limit"),
        ("a = 0x" + "f" * 5000, "a whole number of more than 64 bits"),
        ("a = [{b = -9223372036854775809}]", "a whole number of more than 64 bits"),
        ("a = " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
        ("a = " + "[" * 60_000, "recursion"),
        (".".join("a" * 60) + " = 1", "nested more than 50 deep"),
        (".".join("a" * 100_000) + " = 1", "a key of too many parts"),
        (".".join(["'a'", '"\\""'] * 30_000) + " = 1", "a key of too many parts"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The hint is that of the caller."""
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=rf"a\.toml: not TOML \(.*{said}.*\); correct it"):
        read_toml(path, "correct it")


def test_what_is_read(tmp_path: Path) -> None:
    """The largest whole number of TOML, and a list of very many files in one line."""
    path = tmp_path / "a.toml"
    files = [f"../runs/a{number}.csv" for number in range(5000)]
    path.write_text(f"a = 9223372036854775807\nb = {files}\nc = {files}\n")
    assert read_toml(path, "correct it").content == {"a": 2**63 - 1, "b": files, "c": files}
