"""Texts that the driver cannot have written, on few rows among many."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gpureport.testing import Recording
from tests.readers.pairs import check_account
from tests.support.logs import read_text, stamp

UUID = "GPU-8b2f1f0a-1c2d-4e3f-8a9b-0123456789ab"


def read(folder: Path, texts: Mapping[str, str], odd: Sequence[int], *, count: int = 36, gap: int = 0) -> Recording:
    """Return a log of one GPU, some of whose rows hold another text, and before the first of which a gap may lie.

    Args:
        folder: where the log is written.
        texts: `heading` of the column, its `common` text and the `rare` one.
        odd: places of the rows that hold the rare one.
        count: rows in all.
        gap: seconds that nothing was logged.
    """
    rows = [
        f"{stamp(place + gap * (place >= odd[0]))}, 0, {texts['rare' if place in odd else 'common']}, {place} %"
        for place in range(count)
    ]
    header = f"timestamp, index, {texts['heading']}, utilization.gpu [%]"
    recording = read_text(folder, "\n".join([header, *rows, ""]))
    check_account(recording)
    return recording


def torn(recording: Recording) -> int:
    """Return how many rows were rejected as torn."""
    return sum(entry.rows for entry in recording.run.quality.rejected if entry.reason == "torn line")


def test_a_rare_text_is_torn_when_the_driver_cannot_have_written_it(tmp_path: Path) -> None:
    for heading, common, rare, is_torn in (
        ("name", "NVIDIA A100-SXM4-80GB", "NVIDIA A100IDIA A100-SXM4-80GB", True),
        ("name", "NVIDIA A100-SXM4-80GB", "NVIDIA A1", True),
        ("name", "NVIDIA RTX 3080 Ti", "NVIDIA RTX 3080", True),
        ("uuid", UUID, "GPU-8b2f1f0a-1GPU-8b2f1f0a-1c2d-4e3f-8a9b-0123456789ab", True),
        ("pci.bus_id", "00000000:0B:00.0", "00000000:000000:0B:00.0", True),
        ("memory.total [MiB]", "24564 MiB", "2456 MiB", True),
        ("name", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", False),
    ):
        recording = read(tmp_path, {"heading": heading, "common": common, "rare": rare}, [30])
        assert (torn(recording), len(recording.run.gpus)) == (is_torn, 1), rare


@pytest.mark.parametrize(
    "texts",
    [
        {"heading": "memory.total [MiB]", "common": "24564 MiB", "rare": "23564 MiB"},
        {"heading": "name", "common": "RTX 3080 Ti", "rare": "RTX 3080"},
    ],
)
def test_a_change_that_lasts_is_no_damage(texts: dict[str, str], tmp_path: Path) -> None:
    for odd, gap, lost in (
        ([57, 58, 59], 0, 0),
        ([57, 58, 59], 100, 0),
        ([0, 1], 0, 0),
        ([59], 100, 0),
        ([59], 0, 1),
        ([30, 31, 32], 0, 3),
        ([30, 31], 100, 0),
    ):
        assert torn(read(tmp_path, texts, odd, count=60, gap=gap)) == lost, (odd, gap)


def test_what_is_common_is_never_torn(tmp_path: Path) -> None:
    rows = [f"{stamp(place)}, {place % 2}, NVIDIA L4{'0' * (place % 2)}, 5 %" for place in range(60)]
    recording = read_text(tmp_path, "\n".join(["timestamp, index, name, utilization.gpu [%]", *rows, ""]))
    assert (torn(recording), [gpu.model for gpu in recording.run.gpus]) == (0, ["NVIDIA L4", "NVIDIA L40"])
