"""The file of steps that `--steps` names."""

import json
from pathlib import Path

import pytest

from gpureport.cli.runs.step_file import read_step_file
from gpureport.errors import SettingsError


def written(folder: Path, text: str) -> Path:
    """Write a file of steps; return its path."""
    path = folder / "steps.toml"
    path.write_text(text)
    return path


def test_a_run_in_the_folder_is_that_file(tmp_path: Path) -> None:
    """Any other is a name in the store: one that no file can have, too."""
    (tmp_path / "a.csv").touch()
    names = ["a.csv", "b", "c" * 300, "d\0"]
    (step,) = read_step_file(written(tmp_path, f'[[step]]\nlabel = "x"\nruns = {json.dumps(names)}'))
    assert step.runs == (str(tmp_path / "a.csv"), *names[1:])


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000])
def test_a_number_without_end_is_refused(tmp_path: Path, number: str) -> None:
    """Python cannot print it."""
    with pytest.raises(SettingsError, match=r"not TOML \("):
        read_step_file(written(tmp_path, f'[[step]]\nlabel = "x"\nruns = ["a"]\nparams = {{a = {number}}}'))
