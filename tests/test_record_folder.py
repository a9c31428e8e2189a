"""What `run.json` says is read as it was written, and anything else is no `run.json`."""

from pathlib import Path

import pytest

from gpureport.record_folder import GPU_LOG, RecordedRun, find_log, format_run_file, name_log, parse_run_file

RUN = RecordedRun(
    command=("python", "train.py", "--token", "***"),
    host="node1",
    timezone="Europe/Berlin",
    started=1_795_000_000_000_000,
    ended=1_795_000_180_000_000,
    exit_code=0,
    interval=1.0,
    params=(("torch", "2.11"),),
    tags=(("user", "ada"), ("job", "4411")),
    notes=("dmon was not recorded: nvidia-smi refused it.",),
)


def test_a_run_file_is_read_as_written() -> None:
    """Every field survives."""
    assert parse_run_file(format_run_file(RUN)) == RUN


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "gpureport.record/1"}', '{"schema": "other"}'])
def test_other_text_is_no_run_file(text: str) -> None:
    """A file cut short, or of another program, says nothing about a run."""
    assert parse_run_file(text) is None


@pytest.mark.parametrize("name", ["gpu.csv", "gpu.csv.gz", "gpu.csv.zst", "gpu.csv.bz2", "gpu.csv.xz"])
def test_a_log_is_found_as_it_is_named(name: str, tmp_path: Path) -> None:
    """As it was recorded, and as it was compressed since."""
    assert find_log(tmp_path, GPU_LOG) is None
    (tmp_path / name).touch()
    assert find_log(tmp_path, GPU_LOG) == tmp_path / name
    assert name_log(tmp_path / name) == GPU_LOG
