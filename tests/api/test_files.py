"""What is opened of someone else's folder, and what a recording says of its lines."""

import os
import socket
import threading
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SettingsError, SourceError
from gpureport.testing import Quality, Rejected, recording

PRICE = '[prices]\ncurrency = "EUR"\ndate = "2026-03-14"\ngpu_hour = 2.0\n'
LOG = "timestamp, index, utilization.gpu [%]\n" + "".join(f"2026/03/14 09:00:{s:02}.000, 0, 97 %\n" for s in range(60))


def make(path: Path, what: str) -> None:
    if what == "socket":
        # the path of a socket holds 107 bytes at most
        here = Path.cwd()
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "large":
        path.touch()
        os.truncate(path, 20_000_000_000)
    else:
        path.mkdir()


def test_what_is_no_small_regular_file_is_not_read_as_settings(tmp_path: Path) -> None:
    run = recording(util=[50.0] * 60)
    for what in ("socket", "device", "folder", "large"):
        make(tmp_path / what, what)
        with pytest.raises(SettingsError):
            gpureport.analyze(run, settings=tmp_path / what)


def test_a_pipe_is_read_while_somebody_writes_to_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(PRICE,))
    writer.start()
    cost = gpureport.analyze(recording(util=[50.0] * 60), settings=pipe).cost
    writer.join()
    assert cost is not None


def test_folders_of_logs_are_searched_only_so_deep(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 200).mkdir(parents=True)
    with pytest.raises(SourceError):
        gpureport.read(tmp_path)


def test_a_recorded_folder_with_a_run_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(LOG)
    for text in ("", "{", "[]", "{}", '{"schema": "gpureport.record/1"}', '{"schema": "other"}'):
        (tmp_path / "run.json").write_text(text)
        (run,) = gpureport.read(tmp_path)
        assert (len(run.series), run.run.params) == (60, ()), text


def test_rows_are_found_by_device() -> None:
    run = recording(util=[[50.0] * 3, [60.0] * 3])
    assert {device: len(rows) for device, rows in run.by_device().items()} == {"gpu:0": 3, "gpu:1": 3}
    assert (len(run.rows_of("gpu:1")), len(run.rows_of("host"))) == (3, 0)
    assert run.with_series(run.series.slice(0, 0)).by_device() == {}


def test_the_account_must_add_up() -> None:
    rejected = (Rejected(reason="x", rows=2, first_line=3),)
    counts = {10: True, 11: False}
    for lines, accounted in counts.items():
        account = Quality(lines=lines, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1)
        assert account.accounted is accounted, lines
