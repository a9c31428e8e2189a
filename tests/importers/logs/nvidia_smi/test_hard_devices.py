"""GPUs that change their number, come late, are many, or are named by halves."""

import random
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.testing import analyze
from tests.importers.accounts import absent, column, kept, lines, percents, rejected, seconds
from tests.importers.written_logs import HEADER, read_text, row, stamp

UUIDS = [f"GPU-{gpu:08d}-1111-2222-3333-444444444444" for gpu in range(4)]
NAMED = "timestamp, index, uuid, utilization.gpu [%]"


def named(second: float, gpu: int, index: str) -> str:
    """Return a row under NAMED."""
    return f"{stamp(second)}, {index}, {UUIDS[gpu]}, {gpu}{second % 10:.0f} %"


def test_indices_swapped_by_a_reboot(tmp_path: Path) -> None:
    """Rows belong to the GPU of their uuid, before and after, and the reboot is a gap of both."""
    before = [named(second, gpu, str(gpu)) for second in range(4) for gpu in (0, 1)]
    after = [named(second, gpu, str(1 - gpu)) for second in range(104, 108) for gpu in (0, 1)]
    recording = read_text(tmp_path, lines(NAMED, *before, *after))
    assert [device.uuid for device in recording.run.devices] == UUIDS[:2]
    assert percents(recording) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert percents(recording, "gpu:1") == [10, 11, 12, 13, 14, 15, 16, 17]
    gaps = [(gap.device, gap.end - gap.start) for gap in recording.run.quality.gaps]
    assert (kept(recording), gaps) == (16, [("gpu:0", 101_000_000), ("gpu:1", 101_000_000)])


def test_a_gpu_replaced_at_its_index(tmp_path: Path) -> None:
    """Another uuid at index 0 is another GPU, numbered where there is room."""
    rows = [*(named(second, 0, "0") for second in range(3)), *(named(second, 2, "0") for second in range(60, 63))]
    recording = read_text(tmp_path, lines(NAMED, *rows))
    assert [(device.id, device.uuid) for device in recording.run.devices] == [("gpu:0", UUIDS[0]), ("gpu:1", UUIDS[2])]
    assert (percents(recording), percents(recording, "gpu:1")) == ([0, 1, 2], [20, 21, 22])


def test_an_index_that_cannot_be_read_for_a_while(tmp_path: Path) -> None:
    """With a uuid in each row, a missing index costs nothing and decides nothing, not even at the start."""
    rows = [named(second, gpu, "[N/A]" if second == 0 else str(gpu)) for second in range(3) for gpu in (2, 1)]
    recording = read_text(tmp_path, lines(NAMED, *rows))
    assert (kept(recording), absent(recording)) == (6, [("index", "N/A", 2)])
    assert [(device.id, device.uuid) for device in recording.run.devices] == [
        ("gpu:1", UUIDS[1]),
        ("gpu:2", UUIDS[2]),
    ]
    assert percents(recording, "gpu:2") == [20, 21, 22]


def test_a_driver_upgrade_and_a_new_spelling_of_the_model(tmp_path: Path) -> None:
    """A GPU that is called otherwise by a newer driver is the same GPU: names are no identity."""
    header = "timestamp, index, name, driver_version, utilization.gpu [%]"
    old = [f"{stamp(second)}, 0, GeForce RTX 2080 Ti, 442.19, {second} %" for second in range(30)]
    new = [f"{stamp(second)}, 0, NVIDIA GeForce RTX 2080 Ti, 560.35.03, {second} %" for second in range(60, 90)]
    recording = read_text(tmp_path, lines(header, *old, *new))
    assert [device.id for device in recording.run.devices] == ["gpu:0"]
    assert (kept(recording), percents(recording)) == (60, [*range(30), *range(60, 90)])
    (note,) = recording.run.quality.notes
    assert note.startswith("Rows of gpu:0 name GeForce RTX 2080 Ti and NVIDIA GeForce RTX 2080 Ti: one GPU")


def test_a_gpu_that_comes_late(tmp_path: Path) -> None:
    """A second GPU from the middle on is a device of its own with the time it was seen."""
    rows = [row(second, gpu, util=second) for second in range(60) for gpu in (0, 1) if gpu == 0 or second >= 40]
    recording = read_text(tmp_path, lines(HEADER, *rows))
    assert (kept(recording), rejected(recording)) == (80, [])
    assert (seconds(recording, "gpu:1"), percents(recording, "gpu:1")) == (list(range(40, 60)), list(range(40, 60)))


def test_hundreds_of_gpus(tmp_path: Path) -> None:
    """Three hundred indices in one log are three hundred devices, each with its own rows."""
    rows = [row(second + gpu / 1000, gpu, util=gpu % 101) for second in range(9) for gpu in range(300)]
    recording = read_text(tmp_path, lines(HEADER, *rows))
    assert (kept(recording), len(recording.run.devices)) == (2700, 300)
    assert [recording.run.devices[at].index for at in (0, 17, 299)] == [0, 17, 299]
    for gpu in (0, 101, 299):
        assert percents(recording, f"gpu:{gpu}") == [gpu % 101] * 9


@pytest.mark.parametrize("apart", [1, 3, 6])
def test_rows_of_a_tick_some_milliseconds_apart(tmp_path: Path, apart: int) -> None:
    """Three GPUs every 104 ms that no column names are told by their place, whatever their stamps differ by."""
    rows = [
        f"{stamp(tick * 0.104 + gpu * apart / 1000)}, {10 * gpu + tick % 9} %"
        for tick in range(400)
        for gpu in range(3)
    ]
    recording = read_text(tmp_path, lines("timestamp, utilization.gpu [%]", *rows))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "gpu:2"]
    for gpu in range(3):
        assert percents(recording, f"gpu:{gpu}") == [10 * gpu + tick % 9 for tick in range(400)]
    assert "(399 of 399 ticks hold 3 rows; high confidence)" in recording.run.quality.notes[0]


def test_a_wrong_number_of_gpus_a_tick_is_doubted(tmp_path: Path) -> None:
    """What a person says is done, but where the stamps show another number the note says so."""
    rows = [f"{stamp(tick + gpu / 1000)}, {gpu} %" for tick in range(20) for gpu in range(4)]
    recording = read_text(tmp_path, lines("timestamp, utilization.gpu [%]", *rows), ReadOptions(gpus_per_tick=3))
    (note,) = recording.run.quality.notes
    assert "(--gpus-per-tick 3, although 19 of 19 ticks hold 4 rows; low confidence)" in note


def test_a_log_without_stamps(tmp_path: Path) -> None:
    """Without times and without an interval nothing is read; with one, the rows of each GPU are that far apart."""
    rows = [f"{gpu}, {10 * gpu + tick} %, [N/A]" for tick in range(5) for gpu in (0, 1)]
    text = lines("index, utilization.gpu [%], temperature.memory", *rows)
    with pytest.raises(SourceError, match=r"no timestamp column among index, util.*; say with"):
        read_text(tmp_path, text)
    recording = read_text(tmp_path, text, ReadOptions(interval=0.5))
    assert (kept(recording), recording.run.quality.synthetic_time) == (10, True)
    assert seconds(recording, "gpu:1", start=0) == [0, 0.5, 1, 1.5, 2]
    assert percents(recording, "gpu:1") == [10, 11, 12, 13, 14]


@pytest.mark.parametrize(
    ("date", "noise"),
    [
        ("Mon Apr 20 03:14:15 PM UTC 2026", True),
        ("Mon 20 Apr 2026 15:14:15 CEST", True),
        ("Mon Apr 20 15:14:15 2026", True),
        ("step 120 of 900 at 03:14", False),
        ("loss: 0.31, lr: 1e-4", False),
    ],
)
def test_a_line_that_is_no_row_takes_no_place_in_the_tick(tmp_path: Path, date: str, noise: bool) -> None:  # noqa: FBT001 - pytest
    """Rows of four GPUs are counted through; a date or a job's words above some of them turn nobody's place."""
    rows = [f"{gpu}{tick % 10} %, {gpu + 1}000 MiB" for tick in range(40) for gpu in range(4)]
    for tick in range(36, 0, -9):
        rows.insert(4 * tick, date)
    options = ReadOptions(interval=1.0, gpus_per_tick=4)
    recording = read_text(tmp_path, lines("utilization.gpu [%], memory.used [MiB]", *rows), options)
    for gpu in range(4):
        assert set(column(recording, "gpu_memory_used_bytes", f"gpu:{gpu}")) == {(gpu + 1) * 1000 * 2**20}
    assert recording.run.quality.noise == (4 if noise else 0)
    assert recording.run.quality.accounted


def test_a_damaged_row_keeps_its_place_in_the_tick(tmp_path: Path) -> None:
    """What is left of it was a row."""
    rows = [f"{gpu}{tick % 10} %, {gpu + 1}000 MiB" for tick in range(40) for gpu in range(4)]
    rows[17] = "1\ufffd %, 2000 MiB"
    options = ReadOptions(interval=1.0, gpus_per_tick=4)
    recording = read_text(tmp_path, lines("utilization.gpu [%], memory.used [MiB]", *rows), options)
    assert set(column(recording, "gpu_memory_used_bytes", "gpu:3")) == {4000 * 2**20}


@pytest.mark.parametrize("every", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("lacking", [0.0, 0.03, 0.12])
def test_four_gpus_without_an_index(tmp_path: Path, every: float, lacking: float) -> None:
    """Ticks that jitter, rows that are missing, and dates between them: each GPU keeps its rows, and doubt is noted."""
    chance, rows, second = random.Random(7), [], 0.0
    for tick in range(300):
        second += every * chance.uniform(0.95, 1.3)
        gone = chance.randrange(4) if chance.random() < lacking else None
        rows += ["Mon Apr 20 03:14:15 PM UTC 2026"] if tick % 40 == 0 else []
        for gpu in range(4):
            second += chance.uniform(0.001, 0.006)
            rows += [f"{stamp(second)}, {chance.randint(80, 99)} %, {gpu + 1}000 MiB"] if gpu != gone else []
    recording = read_text(tmp_path, lines("timestamp, utilization.gpu [%], memory.used [MiB]", *rows))
    for gpu in range(4):
        assert set(column(recording, "gpu_memory_used_bytes", f"gpu:{gpu}")) == {(gpu + 1) * 1000 * 2**20}
    (note,) = recording.run.quality.notes
    assert ("low confidence" if lacking > 0.05 else "high confidence") in note


def test_a_windows_log_with_its_driver_model(tmp_path: Path) -> None:
    """Columns of the driver model are kept as text beside the metrics; a fan that stands still is 0 %."""
    header = "timestamp, name, driver_model.current, driver_model.pending, utilization.gpu [%], fan.speed [%]"
    rows = [f"{stamp(second)}, NVIDIA GeForce RTX 4080, WDDM, WDDM, {second} %, 0 %" for second in range(3)]
    recording = read_text(tmp_path, lines(header, *rows).replace("\n", "\r\n"))
    assert (kept(recording), percents(recording), column(recording, "gpu_fan_ratio")) == (3, [0, 1, 2], [0, 0, 0])
    series = recording.rows_of("gpu:0")
    assert series.column("extra_driver_model_current").to_pylist() == ["WDDM"] * 3
    assert series.column("extra_driver_model_pending").to_pylist() == ["WDDM"] * 3


def test_under_mig_utilisation_is_not_judged(tmp_path: Path) -> None:
    """`[N/A]` is no idleness: idle time is not judged, power and clocks are."""
    header = f"{NAMED}, mig.mode.current, power.draw [W], power.limit [W], clocks.sm [MHz], clocks_event_reasons.active"
    more = "Enabled, 698.00 W, 700.00 W, 1980 MHz, 0x0000000000000004"
    rows = [f"{stamp(second)}, 0, {UUIDS[0]}, [N/A], {more}" for second in range(300)]
    recording = read_text(tmp_path, lines(header, *rows))
    assert (kept(recording), absent(recording)) == (300, [("utilization.gpu", "N/A", 300)])
    assert recording.run.devices[0].mig is True
    assert column(recording, "gpu_sm_clock_hertz") == [1.98e9] * 300
    found = analyze(recording)
    assert [finding.kind for finding in found.findings] == ["power_cap"]
    assert {entry.kind for entry in found.not_judged} >= {"idle_gap", "startup_idle", "tail_idle", "cpu_bound"}
    assert all(seconds == 0 for cause, seconds in found.gpu_time[0].seconds if cause in {"idle", "startup", "tail"})
