"""What `run.json` says is read as it was written, and anything else is no `run.json`."""

import pytest

from gpureport.record_folder import RecordedRun, format_run_file, parse_run_file

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
