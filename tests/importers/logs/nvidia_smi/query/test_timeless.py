"""Logs without time stamps, in the output of a job: what it prints is no row."""

from pathlib import Path

import pytest

from gpureport.importers import ReadOptions
from tests.importers.accounts import kept, lines, percents, rejected
from tests.importers.written_logs import read_text, row

EVERY = ReadOptions(interval=1.0)


def test_prose_with_the_right_number_of_commas(tmp_path: Path) -> None:
    """Counts with commas between thousands are as many cells, but no name of a GPU stands before them."""
    text = lines(
        "name, memory.total [MiB], memory.free [MiB]",
        "NVIDIA L40S, 46068 MiB, 45469 MiB",
        "Model: ViT-B/16 | trainable parameters: 85,800,194",
        "  Train: 16,000 | Val: 2,000",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition, 97887 MiB, 1024 MiB",
        "Orin (nvgpu), 1024 MiB, 512 MiB",
    )
    recording = read_text(tmp_path, text, EVERY)
    assert (kept(recording), rejected(recording)) == (3, [("malformed name", 2, 3)])
    assert [device.model for device in recording.run.devices][1:] == [
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "Orin (nvgpu)",
    ]


@pytest.mark.parametrize(
    ("heading", "good", "bad"),
    [
        ("uuid", "GPU-12345678-1234-1234-1234-123456789012", "lr=0.1"),
        ("uuid", "GPU-xxxxxxxx-xxxx", "total"),
        ("pci.bus_id", "00000000:3B:00.0", "step 4"),
        ("serial", "1563221012345", "a b"),
        ("driver_version", "550.54.15", "v2"),
    ],
)
def test_words_the_driver_does_not_write(tmp_path: Path, heading: str, good: str, bad: str) -> None:
    """What identifies a GPU is written in its own way, or blacked out in it."""
    text = lines(f"{heading}, utilization.gpu [%]", f"{good}, 90 %", f"{bad}, 7 %", f"{good}, 80 %")
    recording = read_text(tmp_path, text, EVERY)
    assert (percents(recording), rejected(recording)) == ([90, 80], [(f"malformed {heading}", 1, 3)])


def test_numbers_without_the_unit_of_all_others(tmp_path: Path) -> None:
    """A count that a job prints between rows is none of them."""
    rows = [f"{util} %, {util} MiB" for util in range(40)]
    text = lines("utilization.gpu [%], memory.used [MiB]", *rows[:20], "16,000", "2,000", *rows[20:], "85,800")
    recording = read_text(tmp_path, text, EVERY)
    reasons = [("malformed utilization.gpu", 2, 22), ("torn line", 1, 44)]
    assert (percents(recording), rejected(recording)) == (list(range(40)), reasons)
    assert recording.run.quality.accounted


def test_rows_that_go_on_without_units(tmp_path: Path) -> None:
    """A log that goes on with `nounits` is read; whether a cell has a unit is told cell by cell."""
    rows = [f"{util} %, {util} MiB" for util in range(40)]
    bare = [line.replace(" %", "").replace(" MiB", "") for line in rows]
    recording = read_text(tmp_path, lines("utilization.gpu [%], memory.used [MiB]", *rows, *bare[:9]), EVERY)
    assert (percents(recording), rejected(recording)) == ([*range(40), *range(9)], [])


def test_a_stamp_makes_a_row_one(tmp_path: Path) -> None:
    """With a time stamp, a name is kept as it stands, and a number may lack its unit."""
    text = lines(
        "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]", row(0), row(1), row(2)
    )
    odd = text.replace("NVIDIA L4", "a: b", 1).replace("90 %", "90", 1)
    recording = read_text(tmp_path, odd)
    assert (percents(recording), rejected(recording)) == ([90, 90, 90], [])
