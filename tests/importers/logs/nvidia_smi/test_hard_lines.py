"""Lines that were torn, cut, filled with zeros, or written by something else."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from tests.importers.accounts import absent, column, kept, lines, percents, rejected, seconds
from tests.importers.packed import COMPRESSED, PACKED
from tests.importers.written_logs import HEADER, log, read_text, row, stamp

A100 = "NVIDIA A100-SXM4-80GB"
NAMED = "timestamp, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB]"
TABLE = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla V100-PCIE...  Off  | 00000000:3B:00.0 Off |                    0 |
| N/A   38C    P0    25W / 250W |   1138MiB / 32768MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+"""


def named(second: int, util: int = 90) -> str:
    """Return a row under NAMED."""
    return f"{stamp(second)}, {A100}, {util} %, 40 %, 1024 MiB"


def test_lines_torn_by_two_writers_give_no_values(tmp_path: Path) -> None:
    """Halves of lines run together, three of them with the right number of cells: only whole rows are kept."""
    rows = [named(second) for second in range(60)]
    rows[20] = f"{stamp(20)}, {A100}, 12026/03/14 09:00:20.500, {A100}, 1 %, 2 %, 423 MiB"
    rows[30] = "2025/027"
    rows[40] = f"{stamp(40)}, NVIDIA A100IDIA A100-SXM4-80GB, 0 %, 0 %, 28 MiB"
    rows[45] = f"{stamp(45)}, {A100}, 0 %, 0 %, 28"
    rows[50] = f"2026/03/14 09:02026/03/14 09:00:50.100, {A100}, 0 %, 0 %, 1 MiB"
    recording = read_text(tmp_path, lines(NAMED, *rows))
    assert rejected(recording) == [("torn line", 2, 42), ("wrong number of cells", 1, 32)]
    times = seconds(recording)
    assert (kept(recording), times[20], percents(recording)[20]) == (57, 20.5, 1)
    assert set(times) == {*range(60), 20.5, 50.1} - {20, 30, 40, 45, 50}
    assert [device.model for device in recording.run.devices] == [A100]


def test_the_last_row_of_a_lost_gpu_is_partly_valid(tmp_path: Path) -> None:
    """What the GPU still answered is kept, what it did not is null with its reason, and the loss is an event."""
    header = (
        "timestamp, temperature.gpu, power.draw [W], fan.speed [%], utilization.gpu [%], memory.used [MiB],"
        " clocks.current.sm [MHz], pcie.link.gen.current, clocks_event_reasons.active"
    )
    last = "65, 297.17 W, [GPU is lost], 95 %, [GPU is lost], [GPU is lost], 4, 0x0000000000000004"
    first = "64, 298.00 W, 80 %, 96 %, 20000 MiB, 1905 MHz, 4, 0x0000000000000004"
    recording = read_text(tmp_path, lines(header, f"{stamp(14.965)}, {first}", f"{stamp(15.965)}, {last}"))
    assert kept(recording) == 2
    assert column(recording, "gpu_power_watts") == [298.0, pytest.approx(297.17)]
    assert column(recording, "gpu_sm_clock_hertz") == [1.905e9, None]
    assert (percents(recording), column(recording, "clock_event_sw_power_cap")) == ([96, 95], [1, 1])
    lost = [(name, "GPU is lost", 1) for name in ("clocks.current.sm", "fan.speed", "memory.used")]
    assert absent(recording) == lost
    events = [(event.kind, event.device, event.line) for event in recording.run.quality.log_events]
    assert events == [("gpu_lost", "gpu:0", 3)]


def test_a_clock_that_is_an_error_in_every_row(tmp_path: Path) -> None:
    """`[Unknown Error]` in 12,792 cells is no clock of 0, and each cell is counted."""
    rows = [f"{stamp(tick / 4)}, 5 %, [Unknown Error]" for tick in range(12_792)]
    recording = read_text(tmp_path, lines("timestamp, utilization.gpu [%], clocks.current.sm [MHz]", *rows))
    assert (kept(recording), absent(recording)) == (12_792, [("clocks.current.sm", "Unknown Error", 12_792)])
    assert recording.rows_of("gpu:0").column("gpu_sm_clock_hertz").null_count == 12_792


@pytest.mark.parametrize(
    ("end", "rows", "why", "cells"),
    [
        (", 95830 MiB,", 2, [], [("power.draw", "cut", 1)]),
        (", 95830 MiB, 58", 2, [], [("power.draw", "cut", 1)]),
        (", 95830 MiB, 58.52 W", 2, [], []),
        ("2", 1, [("cut last line", 1, 3)], []),
    ],
)
def test_the_end_of_a_killed_log(
    tmp_path: Path, end: str, rows: int, why: list[tuple[str, int, int]], cells: list[tuple[str, str, int]]
) -> None:
    """Of a last line without a newline only what must be whole is believed: `58` may be the start of `58.52 W`."""
    header = "timestamp, index, memory.used [MiB], power.draw [W]"
    last = f"{stamp(1)}, 0{end}" if end.startswith(",") else end
    recording = read_text(tmp_path, lines(header, f"{stamp(0)}, 0, 95830 MiB, 58.52 W") + last)
    assert (kept(recording), rejected(recording), absent(recording)) == (rows, why, cells)
    assert column(recording, "gpu_power_watts") == [58.52, *([None] if cells else [58.52])][:rows]
    assert recording.run.quality.notes == ("The log has no newline at its end, so its last line may be cut.",)


def test_a_log_cut_at_a_block(tmp_path: Path) -> None:
    """A log of 8,192 bytes, as a killed logger leaves it, is its whole lines."""
    content = log(200).encode()[:8192]
    recording = read_text(tmp_path, content)
    assert kept(recording) == content.count(b"\n") - 1
    assert rejected(recording) == [("cut last line", 1, content.count(b"\n") + 1)]


@pytest.mark.parametrize("length", [1, 79, 8_772, 248_022])
def test_a_nul_block_between_lines(tmp_path: Path, length: int) -> None:
    """Zeros of a crashed file system between two lines cost nothing, and are counted."""
    parts = [lines(HEADER, row(0, util=1), row(1, util=2)).encode(), lines(row(2, util=3), row(3, util=4)).encode()]
    recording = read_text(tmp_path, (b"\0" * length).join(parts))
    assert (kept(recording), percents(recording), rejected(recording)) == (4, [1, 2, 3, 4], [])
    note = f"{length:,} NUL byte{'s' if length > 1 else ''} in 1 run skipped."
    assert recording.run.quality.notes == (note,)


def test_a_nul_block_inside_a_line(tmp_path: Path) -> None:
    """The two parts of a broken line are rejected under its number; no value is made of them."""
    text = lines(*(row(second, util=second) for second in range(6)))
    place = text.index("L4, 3 %")
    text = lines(HEADER) + text[:place] + "\0" * 248_022 + text[place:]
    recording = read_text(tmp_path, text)
    assert (kept(recording), percents(recording)) == (5, [0, 1, 2, 4, 5])
    assert rejected(recording) == [("NUL bytes", 2, 5)]


def test_an_index_glued_to_zeros_names_no_gpu(tmp_path: Path) -> None:
    """`0` after zeros may be the end of `10`, so its row has no GPU; the rows after it are whole."""
    header = "index, name, timestamp, utilization.gpu [%]"
    rows = [f"{gpu}, Tesla V100-PCIE-32GB, {stamp(s)}, {10 * gpu + s} %" for s in range(4) for gpu in (0, 1)]
    recording = read_text(tmp_path, lines(header, *rows[:4], "\0" * 4 + rows[4], *rows[5:]))
    assert (kept(recording), rejected(recording)) == (7, [("GPU not named", 1, 6)])
    assert (percents(recording), percents(recording, "gpu:1")) == ([0, 1, 3], [10, 11, 12, 13])


@pytest.mark.parametrize("packed", COMPRESSED)
def test_zeros_inside_a_cut_compressed_log(tmp_path: Path, packed: str) -> None:
    """Three kinds of damage at once: what is before the cut is read, and each is told."""
    text = lines(HEADER, *(row(second, util=second % 100) for second in range(2000))).encode()
    text = text.replace(row(30, util=30).encode(), b"\0" * 500 + row(30, util=30).encode())
    content = PACKED[packed](text)
    # some methods give nothing of a block that is not whole, so the second of two is cut
    later = PACKED[packed](lines(*(row(second) for second in range(2000, 3000))).encode())
    recording = read_text(tmp_path, content + later[: len(later) * 3 // 4])
    # zstd gives 4 KiB at once
    assert kept(recording) >= (1930 if packed == "zstd" else 1999)
    assert percents(recording)[:100] == list(range(100))
    notes = recording.run.quality.notes
    assert "The compressed log is cut: read up to there." in notes
    assert any(note.startswith("500 NUL bytes in 1 run") for note in notes)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_what_powershell_writes(tmp_path: Path, encoding: str) -> None:
    """UTF-16 or UTF-8 with a byte order mark and CRLF, also put together from two logs, is read whole."""
    parts = [lines(HEADER, row(0, util=1), row(1, util=2)), lines(HEADER, row(2, util=3), row(3, util=4))]
    content = b"".join(part.replace("\n", "\r\n").encode(encoding) for part in parts)
    recording = read_text(tmp_path, content)
    assert (kept(recording), percents(recording), rejected(recording)) == (4, [1, 2, 3, 4], [])
    assert recording.run.quality.headers == 2


def test_line_ends_that_change(tmp_path: Path) -> None:
    """145 of 215 lines with CRLF, one with two CR, and a lone CR inside a line, which ends it."""
    rows = [row(s, util=s % 100) + ("\r\n" if s < 145 else "\n") for s in range(215)]
    rows[10] = rows[10].replace("\r\n", "\r\r\n")
    rows[20] = rows[20].replace("NVIDIA", "NVI\rDIA")
    recording = read_text(tmp_path, HEADER + "\r\n" + "".join(rows))
    assert (kept(recording), len(set(seconds(recording)))) == (214, 214)
    # the line number counts the empty line that the doubled CR makes
    assert rejected(recording) == [("wrong number of cells", 2, 23)]


def test_dates_and_separators_between_rows_are_noise(tmp_path: Path) -> None:
    """A loop that writes the date before and dashes after each call is read without them."""
    block = [(f"2025-09-21 16:12:{24 + s}", row(s, util=s), "----") for s in range(5)]
    recording = read_text(tmp_path, lines(HEADER, *(line for part in block for line in part)))
    assert (kept(recording), percents(recording)) == (5, [0, 1, 2, 3, 4])
    assert (recording.run.quality.noise, rejected(recording)) == (10, [])


def test_a_table_progress_bars_and_stray_signs(tmp_path: Path) -> None:
    """What a job prints into the same file is told by line, and no row beside it is lost."""
    bars = "\r 10%|#         | 1/10\r 20%|##        | 2/10\r"
    text = lines(
        TABLE, HEADER, row(0, util=1), "&", TABLE, row(1, util=2), bars + row(2, util=3), "Epoch 1/3", row(3, util=4)
    )
    recording = read_text(tmp_path, text)
    assert (kept(recording), percents(recording)) == (4, [1, 2, 3, 4])
    assert rejected(recording) == [("no time stamp", 2, 4), ("wrong number of cells", 4, 9)]
    assert (recording.run.quality.headers, recording.run.quality.noise) == (3, 0)


def test_messages_of_the_driver_are_dated_by_the_row_before(tmp_path: Path) -> None:
    """A lost GPU, a driver that is reloaded and one that is gone stand on the timeline in their order."""
    said = [
        "Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.  Reboot the system",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it is running.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "No devices were found",
    ]
    text = lines(HEADER, *(line for second, message in enumerate(said) for line in (row(second), message)), row(9))
    recording = read_text(tmp_path, text)
    events = recording.run.quality.log_events
    kinds = ["gpu_lost", "driver_restart", "driver_restart", "no_devices"]
    assert [(event.kind, event.line) for event in events] == [(kind, 3 + 2 * at) for at, kind in enumerate(kinds)]
    assert [event.at for event in events] == [recording.run.started + second * 1_000_000 for second in range(4)]
    assert (kept(recording), recording.run.quality.events) == (5, 4)


def test_a_very_long_cell(tmp_path: Path) -> None:
    """A name of 2 MB is no row; one of 500 kB is one, however odd."""
    for length, rows, why in ((2_000_000, 2, [("wrong number of cells", 1, 3)]), (500_000, 3, [])):
        recording = read_text(tmp_path, lines(HEADER, row(0), row(1).replace("NVIDIA L4", "N" * length), row(2)))
        assert (kept(recording), rejected(recording)) == (rows, why)


@pytest.mark.parametrize("content", ["\n\n\n", " \n\t\r\n", "\0" * 300, "\0\n" * 300])
def test_blank_lines_alone(tmp_path: Path, content: str) -> None:
    """A file of nothing is called that, not a log of another kind."""
    with pytest.raises(
        SourceError,
        match="the file holds nothing but blank lines or NUL bytes; gpureport record",
    ):
        read_text(tmp_path, content)


def test_a_field_the_driver_does_not_know_is_the_whole_log(tmp_path: Path) -> None:
    """A log that is one message of nvidia-smi is shown by it."""
    with pytest.raises(SourceError, match=r'not a log .Field "compute_cap" is not a valid field'):
        read_text(tmp_path, 'Field "compute_cap" is not a valid field to query.\n')


def test_the_gpus_of_anonymous_ticks_can_be_selected(tmp_path: Path) -> None:
    """`--gpus` names places in the tick, and a number that none has is answered with those there are."""
    rows = [f"{stamp(s + gpu / 1000)}, {10 * gpu + s % 10} %" for s in range(20) for gpu in range(4)]
    text = lines("timestamp, utilization.gpu [%]", *rows)
    recording = read_text(tmp_path, text, ReadOptions(gpus=(1, 3)))
    assert (kept(recording), rejected(recording)) == (40, [("GPU not selected", 40, 2)])
    assert percents(recording, "gpu:3") == [30 + s % 10 for s in range(20)]
    with pytest.raises(SourceError, match="none of the GPUs selected; --gpus can name 0, 1, 2, 3"):
        read_text(tmp_path, text, ReadOptions(gpus=(7,)))
