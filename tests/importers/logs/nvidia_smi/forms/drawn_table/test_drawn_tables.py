"""The tables of plain nvidia-smi are read in every driver's shape, and wherever they stand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.decoding.pieces import Piece, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.forms.drawn_table import drawn_tables
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.drawn_tables import INSTANCES as NOT_READ
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.drawn_tables import LACKS, ZONES, Tables
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_rows import SHORT
from gpureport.importers.text.text_log import Chunk
from tests.importers.accounts import absent, column, kept, lines, percents, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.outputs import INSTANCES, OLD, SHAPES, WIDE, Shape, asctime, gpu, loop, table
from tests.importers.logs.nvidia_smi.forms.snapshot_logs import read, read_cut_log
from tests.importers.written_logs import log


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_value_of_every_shape(tmp_path: Path, shape: Shape) -> None:
    """What a person reads in a table of any driver is in the series, in base units."""
    recording = read(tmp_path, table([gpu(0), gpu(1, busy="3%", watts="9W", mode="WDDM")], shape))
    expected: dict[str, float] = {
        "gpu_fan_ratio": 0.3,
        "gpu_temperature_celsius": 41,
        "gpu_performance_state": 0,
        "gpu_power_watts": 61,
        "gpu_power_limit_watts": 72,
        "gpu_memory_used_bytes": 2**30,
        "gpu_memory_total_bytes": 23034 * 2**20,
        "gpu_utilization_ratio": 0.97,
        "gpu_ecc_uncorrected_total": 0,
    }
    assert {name: column(recording, name) for name in expected} == {name: [value] for name, value in expected.items()}
    assert percents(recording, "gpu:1") == [3]
    assert seconds(recording) == [0]
    assert [(device.bus_id, device.model, device.driver) for device in recording.run.devices] == [
        (f"00000000:3{index + 1}:00.0", "NVIDIA L4", shape.banner.split("Version: ")[1].split()[0]) for index in (0, 1)
    ]
    quality = recording.run.quality
    assert (quality.headers, quality.noise, quality.rejected, LACKS in quality.notes) == (1, 0, (), True)


def test_a_loop_is_a_series(tmp_path: Path) -> None:
    """Every snapshot is a row a GPU at the time above it."""
    recording = read(tmp_path, loop(5, gpus=3, every=60))
    assert len(recording.series) == 15
    assert seconds(recording, "gpu:2") == [0, 60, 120, 180, 240]
    assert percents(recording, "gpu:2") == [2, 9, 16, 23, 30]


def test_cells_without_a_value_are_null(tmp_path: Path) -> None:
    """An error or `N/A` in a cell is no zero, and costs its row nothing else."""
    broken = gpu(0, fan="ERR!", celsius="N/A", watts="ERR!", cap="N/A", busy="N/A", errors="Off", mig="ERR!")
    recording = read(tmp_path, table([broken]))
    assert column(recording, "gpu_power_watts") == [None]
    assert column(recording, "gpu_memory_used_bytes") == [2**30]
    assert absent(recording) == [
        ("ecc.errors.uncorrected.volatile.total", "Off", 1),
        ("enforced.power.limit", "N/A", 1),
        ("fan.speed", "ERR!", 1),
        ("mig.mode.current", "ERR!", 1),
        ("power.draw", "ERR!", 1),
        ("temperature.gpu", "N/A", 1),
        ("utilization.gpu", "N/A", 1),
    ]


def test_a_shortened_name_is_no_model(tmp_path: Path) -> None:
    """Several models begin with what is left of a name; one that is whole later is not compared with it."""
    text = table([gpu(0, name="NVIDIA GeForce ...")]) + table([gpu(0, name="NVIDIA GeForce RTX 4090")], time=asctime(5))
    recording = read(tmp_path, text)
    (device,) = recording.run.devices
    assert device.model == "NVIDIA GeForce RTX 4090"
    assert absent(recording)[-1] == ("name", "shortened", 1)
    assert SHORT in recording.run.quality.notes


def test_instances_are_no_gpus(tmp_path: Path) -> None:
    """With MIG the GPU is one device whose utilisation is unknown; its instances are only noted."""
    whole = table([gpu(0, busy="N/A", mig="Enabled")], processes=0)
    head, processes = whole.split(" " * WIDE.whole + "\n")
    recording = read(tmp_path, f"{head}\n{INSTANCES}\n{processes}")
    (device,) = recording.run.devices
    assert (device.mig, percents(recording)) == (True, [None])
    assert NOT_READ in recording.run.quality.notes
    assert rejected(recording) == []


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("memory", ["1024MiB / 23034MiB", "N/A", "Not Supported"])
def test_a_gpu_that_counts_no_errors_is_read_whole(tmp_path: Path, shape: Shape, memory: str) -> None:
    """With MIG the mode of ECC stands in place of a number, and one text may stand in place of both memories."""
    busy = table([gpu(0, errors="On", busy="N/A", mig="Enabled"), gpu(1, mig="Disabled")], shape)
    recording = read(tmp_path, busy.replace("1024MiB / 23034MiB", memory.rjust(18), 1))
    assert rejected(recording) == []
    assert (column(recording, "gpu_power_watts"), column(recording, "gpu_temperature_celsius")) == ([61], [41])
    assert column(recording, "gpu_ecc_uncorrected_total") == percents(recording) == [None]
    assert column(recording, "gpu_memory_used_bytes") == [2**30 if "/ " in memory else None]
    assert percents(recording, "gpu:1") == [97]
    missing = [] if "/ " in memory else [("memory.total", memory, 1), ("memory.used", memory, 1)]
    ecc = ("ecc.errors.uncorrected.volatile.total", "On", 1)
    assert absent(recording) == [ecc, *missing, ("utilization.gpu", "N/A", 1)]


@pytest.mark.parametrize(
    ("line", "zoned"),
    [
        ("Sat Mar 14 09:00:07 UTC 2026", True),
        ("Sat 14 Mar 2026 09:00:07 AM CET", True),
        ("2026-03-14 09:00:07", False),
        ("=== 2026-03-14T09:00:07+01:00 ===", True),
        ("[2026/03/14 09:00:07.000] GPU state:", False),
    ],
)
def test_the_time_may_be_a_scripts(tmp_path: Path, line: str, zoned: bool) -> None:  # noqa: FBT001 - a parameter
    """Where nvidia-smi's own line is cut away, the time a script wrote above the table counts."""
    recording = read(tmp_path, f"step 3 done\n{line}\n\n{table(time=None)}")
    assert seconds(recording) == [7]
    assert ((ZONES in recording.run.quality.notes), recording.run.quality.noise) == (zoned, 1)


def test_a_row_of_a_csv_is_no_time_of_a_table(tmp_path: Path) -> None:
    """Where a script writes a CSV and tables into one log, each keeps its own times."""
    csv = "timestamp, index, utilization.gpu [%]\n2026/03/14 09:00:01.000, 0, 5 %\n"
    recording = read(tmp_path, f"{csv}{table(time=asctime(5))}{csv.replace('01.', '09.')}{table(time=None)}")
    assert percents(recording) == [5, 97, 5]
    assert rejected(recording) == [("no time stamp", 1, 30)]


def test_a_csv_goes_on_below_a_table(tmp_path: Path) -> None:
    """A job that prints a table between the rows of a CSV, which has one header, loses none of its rows."""
    header, *rows = log(6).splitlines()
    text = lines(header, *rows[:3], *table(time=None).splitlines(), "step 7", *rows[3:], *table(time=None).splitlines())
    recording = read(tmp_path, text)
    assert seconds(recording) == [0, 1, 2, 3, 4, 5]
    assert rejected(recording) == [("no time stamp", 2, 12), ("wrong number of cells", 1, 22)]


def test_nvidia_smis_own_time_wins(tmp_path: Path) -> None:
    """The line right above the table is nearer than that of a script."""
    assert seconds(read(tmp_path, f"2026-03-14 09:00:07\n{table()}")) == [0]


def test_tables_without_a_time_need_an_interval(tmp_path: Path) -> None:
    """Snapshots are counted with --interval, and refused without."""
    text = table([gpu(0), gpu(1)], time=None) * 3
    with pytest.raises(SourceError, match="have no time"):
        read(tmp_path, text)
    recording = read(tmp_path, text, ReadOptions(interval=60.0))
    assert recording.run.quality.synthetic_time
    assert seconds(recording, "gpu:1", start=0) == [0, 60, 120]


def test_a_table_whose_beginning_is_lost_has_no_time(tmp_path: Path) -> None:
    """Rows above the first banner are not given the time of another table."""
    recording = read(tmp_path, table([gpu(0), gpu(1)]).partition("+\n|   1")[0] + "\n" + loop(2))
    assert kept(recording) == 5
    cut = table([gpu(0), gpu(1)]).split("|   0", 1)[1]
    recording = read(tmp_path, loop(2) + "|   0" + cut)
    assert rejected(recording) == [("no time stamp", 2, 45)]


def test_tables_in_the_log_of_a_job(tmp_path: Path) -> None:
    """Prose around tables is noise; messages of the driver are events; lines that hold figures are rejected."""
    message = "Unable to determine the device handle for GPU0000:31:00.0: Unknown Error"
    text = f"Epoch 1 | loss 0.5\n{table()}saving\n{message}\n{table(time=asctime(60))}| 61W / 72W |  1024MiB\ndone\n"
    recording = read(tmp_path, text)
    assert seconds(recording) == [0, 60]
    quality = recording.run.quality
    assert (quality.noise, quality.events) == (3, 1)
    assert rejected(recording) == [("no line of the format", 1, 40)]


def test_a_damaged_row_costs_itself_alone(tmp_path: Path) -> None:
    """A cell that is not what its column holds rejects its GPU at that time; the others stay."""
    text = table([gpu(0, celsius="4x1C"), gpu(1), gpu(2)])
    parts = text.split("\n")
    torn = next(place for place, line in enumerate(parts) if line.startswith("|   2"))
    del parts[torn + 1]
    recording = read(tmp_path, "\n".join(parts))
    assert [device.id for device in recording.run.devices] == ["gpu:1"]
    assert [reason for reason, *_ in rejected(recording)] == ["malformed fan.speed", "malformed temperature.gpu"]


def test_windows_and_indented_text(tmp_path: Path) -> None:
    """Lines may end as on Windows, and a table may be indented as in a document."""
    expected = read(tmp_path, loop(3)).series
    assert read(tmp_path, loop(3).replace("\n", "\r\n")).series.equals(expected)
    assert read(tmp_path, "".join(f"    {line}\n" for line in loop(3).splitlines())).series.equals(expected)


def test_nul_bytes_cost_the_lines_they_stand_in(tmp_path: Path) -> None:
    """A run of NUL bytes parts a line; what is whole on either side counts."""
    text = loop(3).encode()
    place = text.index(b"|   1") + 10
    recording = read(tmp_path, text[:place] + b"\0" * 500 + text[place:])
    assert kept(recording) == 5


def test_nothing_but_a_frame_is_noise(tmp_path: Path) -> None:
    """A table without a GPU says nothing of any row."""
    path = tmp_path / "gpu.log"
    path.write_text(table([]) + table([]))
    chunks = list(Tables().chunks(pieces(RawFile(path))))
    assert sum(len(chunk.numbers) for chunk in chunks) == 0
    assert sum(chunk.continued for chunk in chunks) == 0
    assert sum(len(chunk.other_lines) for chunk in chunks) == sum(chunk.lines for chunk in chunks) == 26


@pytest.mark.parametrize(
    ("line", "opened"),
    [
        ("Sat Mar 14 09:00:00 2026       ", True),
        ("| NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6     |", True),
        ("Sat Mar 14 09:00:00 UTC 2026", False),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", False),
        ("+-----------------+", False),
        ("| epoch | loss |", False),
        ("starting at Sat Mar 14 09:00:00 2026", False),
    ],
)
def test_what_opens_a_table(line: str, opened: bool) -> None:  # noqa: FBT001 - a parameter
    """nvidia-smi's time and its banner open a table, prose does not."""
    assert Tables.opens(line) is opened


def _in_pieces(text: bytes, size: int) -> Iterator[Piece]:
    """Yield a log in pieces of whole lines, as small as they get."""
    whole, first = text.splitlines(keepends=True), 1
    for begin in range(0, len(whole), size):
        part = whole[begin : begin + size]
        yield Piece(b"".join(part), first, last=begin + size >= len(whole), lines=len(part))
        first += len(part)


def _rows(chunks: Iterator[Chunk]) -> list[tuple[int, int | None, float]]:
    """Return line, time and utilisation of each row, after checking each account."""
    rows: list[tuple[int, int | None, float]] = []
    for chunk in chunks:
        assert chunk.lines == len(chunk.numbers) + len(chunk.other_lines) + chunk.continued
        if len(chunk.numbers):
            times = [None] * len(chunk.numbers) if chunk.times is None else chunk.times.tolist()
            used = chunk.data["gpu_utilization_ratio"].data.tolist()
            rows += zip(chunk.numbers.tolist(), times, used, strict=True)
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    return rows


@pytest.mark.parametrize("held", [0, 2**18])
def test_pieces_may_end_anywhere(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a log is cut into pieces, its rows are the same."""
    monkeypatch.setattr(drawn_tables, "_HELD", held)
    text = ("job begins\n" * 12 + loop(3, gpus=3) + "prose\n" * 30 + table(time=asctime(90), shape=OLD)).encode()
    whole = _rows(Tables().chunks(_in_pieces(text, 10_000)))
    assert len(whole) == 10
    for size in (1, 2, 3, 7, 20) if held else (12, 40):
        assert _rows(Tables().chunks(_in_pieces(text, size))) == whole


LOOP = loop(4, gpus=2).encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(LOOP)))
def test_a_cut_costs_one_snapshot_at_most(tmp_path: Path, cut: int) -> None:
    """A log that ends at any byte keeps every snapshot that is whole, and invents nothing."""
    rows, all_rows = read_cut_log(tmp_path, LOOP, cut, Tables)
    whole = LOOP[:cut].count(b"NVIDIA-SMI")
    if rows is None:
        assert whole <= 1
        return
    assert 2 * (whole - 1) <= len(rows) <= 2 * whole
    assert all(row in all_rows for row in rows)
