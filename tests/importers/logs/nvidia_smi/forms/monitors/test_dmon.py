"""`nvidia-smi dmon` is read in every shape its options give it."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.nvidia_smi.forms.monitors.dmon import Dmon
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.testing import Recording
from tests.importers.accounts import absent, column, kept, lines, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.monitor_logs import PUC, PUCVMET, aligned, clock, csv, dmon, heading, values
from tests.importers.written_logs import read_text

EXPECTED = {
    "gpu_power_watts": 300.0,
    "gpu_temperature_celsius": 60.0,
    "gpu_memory_temperature_celsius": 70.0,
    "gpu_utilization_ratio": 0.9,
    "gpu_memory_controller_ratio": 0.4,
    "gpu_encoder_ratio": 0.0,
    "gpu_decoder_ratio": 0.01,
    "gpu_jpeg_ratio": 0.02,
    "gpu_ofa_ratio": 0.03,
    "gpu_memory_clock_hertz": 2619e6,
    "gpu_sm_clock_hertz": 1980e6,
    "gpu_power_violation_ratio": 0.12,
    "gpu_thermal_violation": True,
    "gpu_memory_used_bytes": 2**30,
    "gpu_bar1_used_bytes": 3 * 2**20,
    "gpu_protected_memory_used_bytes": 0,
    "gpu_ecc_single_bit_total": 4,
    "gpu_ecc_double_bit_total": 5,
    "pcie_replays_total": 6,
    "pcie_receive_bytes_per_second": 945e6,
    "pcie_transmit_bytes_per_second": 17e6,
}


def same(one: Recording, other: Recording) -> bool:
    """Return whether two recordings hold the same series."""
    return bool(one.series.equals(other.series))


def test_every_column_fills_its_metric(tmp_path: Path) -> None:
    """All columns of -s pucvmet arrive in base units, at the time of their row."""
    recording = read_text(tmp_path, dmon(100, gpus=2, names=PUCVMET))
    assert kept(recording) == 200
    assert {name: column(recording, name)[0] for name in EXPECTED} == EXPECTED
    assert [name for name in recording.series.column_names if name.startswith("extra_")] == []
    assert seconds(recording, "gpu:1") == list(map(float, range(100)))
    assert column(recording, "gpu_temperature_celsius", "gpu:1")[0] == 61.0
    assert recording.run.quality.headers == 10


def test_every_way_to_write_it_is_the_same(tmp_path: Path) -> None:
    """Text and CSV, with and without units, CRLF, tabulators and a separate `#` are one log."""
    text = dmon(100, gpus=2, names=PUCVMET)
    expected = read_text(tmp_path, text)
    for other in (
        csv(text),
        csv(text, units=False),
        csv(text).replace(", ", ","),
        text.replace("\n", "\r\n"),
        text.replace("#", "# "),
        "\n\n" + text.replace("   ", "\t\t"),
        csv(text, header=False),
        text.encode("utf-16"),
    ):
        assert same(read_text(tmp_path, other), expected)


def test_a_header_that_is_left_out_must_be_the_usual_one(tmp_path: Path) -> None:
    """Columns of a CSV without header are told where they are the default ones; a note says so."""
    recording = read_text(tmp_path, csv(dmon(10), header=False))
    assert kept(recording) == 10
    assert column(recording, "gpu_sm_clock_hertz")[0] == 1980e6
    assert "dmon wrote no header" in recording.run.quality.notes[0]
    with pytest.raises(SourceError, match="not a recognised GPU log"):
        read_text(tmp_path, csv(dmon(10, names=("pwr", "sm")), header=False))


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("names", [PUCVMET, PUC, ("pwr", "gtemp", "mtemp", "fb", "bar1", "ccpm"), ("rxpci", "txpci")])
def test_units_alone_tell_the_columns(tmp_path: Path, names: tuple[str, ...], *, stamped: bool) -> None:
    """`--format csv,noheader` leaves the line of units, in which no two sets of columns are alike; a note says so."""
    whole = dmon(10, gpus=2, names=names, stamped=stamped)
    bare = "".join(line for line in csv(whole).splitlines(keepends=True) if "gpu" not in line)
    interval = ReadOptions(interval=None if stamped else 1.0)
    recording = read_text(tmp_path, bare, interval)
    assert bare.startswith("#")
    assert same(recording, read_text(tmp_path, csv(whole), interval))
    assert f"(noheader); its columns are taken for gpu {' '.join(names)}." in recording.run.quality.notes[0]


def test_units_of_unknown_columns_tell_nothing(tmp_path: Path) -> None:
    """A line of units that stands for no known columns is no heading."""
    with pytest.raises(SourceError, match="not a recognised GPU log"):
        read_text(tmp_path, "#Idx, W, C, %\n 0, 300, 60, 90\n 0, 300, 60, 91\n")


def test_counters_of_the_hardware(tmp_path: Path) -> None:
    """Columns of `--gpm-metrics` are the metrics that DCGM profiles; others of them are kept as they are."""
    names = ("#Date", "Time", "gpu", "sm", "gract", "smutil", "smocc", "mmaact", "dram", "fp64", "pcirx", "nvltx")
    units = ("#YYYYMMDD", "HH:MM:SS", "Idx", "%", *["GPM:%"] * 6, *["GPM:MiB/s"] * 2)
    rows = [[*clock(s), 0, 38, *(["-"] * 8 if s < 2 else [99, 95, 14, 92, 26, 1, 5, 7])] for s in range(4)]
    recording = read_text(tmp_path, lines(*map(aligned, [names, units, *rows])))
    expected = {
        "gpu_utilization_ratio": 0.38,
        "gpu_graphics_engine_active_ratio": 0.99,
        "gpu_sm_active_ratio": 0.95,
        "gpu_sm_occupancy_ratio": 0.14,
        "gpu_tensor_active_ratio": 0.92,
        "gpu_dram_active_ratio": 0.26,
        "extra_fp64": "1",
        "pcie_receive_bytes_per_second": 5 * 2**20,
        "nvlink_transmit_bytes_per_second": 7 * 2**20,
    }
    assert {name: recording.series.column(name)[3].as_py() for name in expected} == pytest.approx(expected)
    assert recording.series.column("gpu_sm_active_ratio").to_pylist()[:2] == [None, None]
    assert ("smutil", "-", 2) in absent(recording)


def test_old_drivers_have_one_temperature(tmp_path: Path) -> None:
    """`temp` is the temperature of the GPU."""
    recording = read_text(tmp_path, dmon(3, names=("pwr", "temp", "sm", "mem", "enc", "dec", "mclk", "pclk")))
    assert column(recording, "gpu_temperature_celsius") == [60.0, 60.0, 60.0]


def test_headings_may_change(tmp_path: Path) -> None:
    """What stands below other headings is read with those."""
    recording = read_text(tmp_path, dmon(3) + dmon(6, names=("fb", "pwr")).replace("09:00:0", "09:01:0"))
    assert column(recording, "gpu_power_watts") == [300, 301, 302, 300, 301, 302, 303, 304, 305]
    assert column(recording, "gpu_memory_used_bytes") == [None] * 3 + [2**30] * 6


def test_headings_stand_anywhere(tmp_path: Path) -> None:
    """Headings between the rows of one tick, and in the middle of a pair, cost nothing."""
    recording = read_text(tmp_path, dmon(20, gpus=3, every=4))
    assert kept(recording) == 60
    assert recording.run.quality.headers == 30


def test_a_dash_is_not_recorded(tmp_path: Path) -> None:
    """A cell without a value is null, and counted."""
    text = lines(*heading(("Date", "Time", "gpu", "pwr", "sm")), *(aligned([*clock(s), 0, "-", 50]) for s in range(5)))
    recording = read_text(tmp_path, text)
    assert "gpu_power_watts" not in recording.series.column_names or column(recording, "gpu_power_watts") == [None] * 5
    assert column(recording, "gpu_utilization_ratio") == [0.5] * 5
    assert absent(recording) == [("pwr", "-", 5)]


def test_without_time_an_interval_is_needed(tmp_path: Path) -> None:
    """Without -o there is no time; the message says what dmon's interval is."""
    with pytest.raises(SourceError, match="have no time") as raised:
        read_text(tmp_path, dmon(5, stamped=False))
    assert "1 s unless -d" in raised.value.hint
    recording = read_text(tmp_path, dmon(5, gpus=2, stamped=False), ReadOptions(interval=2))
    assert recording.run.quality.synthetic_time
    assert seconds(recording, "gpu:1", 0) == [0, 2, 4, 6, 8]


def test_times_of_day_pass_midnight(tmp_path: Path) -> None:
    """-o T has no date: days are counted, and a note says so."""
    times = ["23:59:58", "23:59:59", "00:00:00", "00:00:01"]
    text = lines(*heading(("Time", "gpu", "sm")), *(aligned([time, 0, 50]) for time in times))
    recording = read_text(tmp_path, text)
    assert seconds(recording, start=0) == [86398, 86399, 86400, 86401]
    assert any("-o T" in note for note in recording.run.quality.notes)
    assert not recording.run.quality.synthetic_time


def test_a_day_is_no_time(tmp_path: Path) -> None:
    """-o D leaves no time to place rows at."""
    text = lines(*heading(("Date", "gpu", "sm")), *(aligned(["20260314", 0, 50]) for _ in range(4)))
    with pytest.raises(SourceError, match="have no time"):
        read_text(tmp_path, text)
    assert seconds(read_text(tmp_path, text, ReadOptions(interval=1)), start=0) == [0, 1, 2, 3]


def test_rows_of_instances_are_not_rows_of_the_gpu(tmp_path: Path) -> None:
    """What a MIG instance does is left out, and said."""
    names = ("Date", "Time", "gpu", "mig_id", "gi_id", "ci_id", "sm", "GPM:SMUtil")
    rows = [[*clock(s), 0, *(["-"] * 3 if part is None else [part] * 3), 50, 7] for s in range(4) for part in (None, 1)]
    recording = read_text(tmp_path, lines(*heading(names), *map(aligned, rows)))
    assert kept(recording) == 4
    assert rejected(recording) == [("row of a MIG instance", 4, 4)]
    assert any("MIG" in note for note in recording.run.quality.notes)
    assert recording.series.column("extra_GPM_SMUtil").to_pylist() == ["7"] * 4


def test_torn_headings_are_not_believed(tmp_path: Path) -> None:
    """Headings that lost a part, so that there are more units than names, leave those before in force."""
    written = dmon(8, names=("pwr", "fb"), every=4).splitlines()
    written[6] = written[6].replace("pwr", "").replace("fb", "sm")
    recording = read_text(tmp_path, lines(*written))
    assert column(recording, "gpu_power_watts") == [300, 301, 302, 303, 304, 305, 306, 300]
    assert recording.run.quality.headers == 4


def test_unknown_columns_are_kept(tmp_path: Path) -> None:
    """A column dmon does not have yet is kept as text."""
    recording = read_text(tmp_path, dmon(3, names=("pwr", "newest")))
    assert recording.series.column("extra_newest").to_pylist() == ["x", "x", "x"]


def test_a_heading_of_thousands_of_columns_is_none(tmp_path: Path) -> None:
    """What a damaged log repeats without end costs no column each."""
    names, units, *rows = dmon(3).splitlines()
    assert kept(read_text(tmp_path, lines(names, units, "# gpu " + "pwr " * 600, *rows))) == 3


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    """Each line that is no row is rejected with its reason, as it stands in the log."""
    good = dmon(3).splitlines()
    bad = ["garbage", "20260314 09:00:09 0 12", good[2].replace(" 300 ", " 3xx "), good[2][:20] + "\0" + good[2][21:]]
    bad += [good[2].replace("20260314", "20261314"), "é" + good[3]]
    recording = read_text(tmp_path, lines(*good[:4], *bad, good[4]))
    assert kept(recording) == 3
    assert rejected(recording) == [
        ("NUL bytes", 1, 8),
        ("malformed pwr", 1, 7),
        ("malformed timestamp", 1, 9),
        ("wrong number of cells", 3, 5),
    ]


def test_lines_that_say_the_same_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes of a compressed log may hold a hundred thousand of them."""
    looked: list[str] = []

    def classify(_: QueryGpuDialect, line: str) -> LineKind:
        looked.append(line)
        return LineKind.REJECTED

    monkeypatch.setattr(QueryGpuDialect, "classify", classify)
    recording = read_text(tmp_path, dmon(10) + "    0   1   2\n" * 1000)
    assert rejected(recording) == [("wrong number of cells", 1000, 13)]
    assert looked.count("0   1   2") <= 2


def test_a_cut_log_invents_nothing(tmp_path: Path) -> None:
    """Cut anywhere, a log keeps the rows before; the last number may be part of another and is none."""
    text = dmon(3, names=("pwr", "fb")).replace(" \n", "\n")
    whole = column(read_text(tmp_path, text), "gpu_memory_used_bytes")
    begin = len(text) - len(text.splitlines()[-1])
    for end in range(begin, len(text)):
        recording = read_text(tmp_path, text[:end])
        found = column(recording, "gpu_memory_used_bytes")
        assert found[:2] == whole[:2]
        assert found[2:] in ([], [None])
        kept(recording)


def test_damage_anywhere_costs_the_lines_it_is_in(tmp_path: Path) -> None:
    """Cut at any byte a log loses its last line at most, and NUL bytes at any byte cost two at most."""
    text = dmon(8, names=("pwr", "fb"), every=5)
    rows = column(read_text(tmp_path, text), "gpu_power_watts")
    begins = len("".join(line + "\n" for line in text.splitlines()[:2]))
    for place in range(begins, len(text), 7):
        whole = sum(not line.startswith("#") for line in text[:place].splitlines()) - 1
        if whole > 0:
            found = column(read_text(tmp_path, text[:place]), "gpu_power_watts")
            assert found[: max(whole, 0)] == rows[: max(whole, 0)]
        recording = read_text(tmp_path, text[:place] + "\0" * 100 + text[place:])
        assert kept(recording) >= len(rows) - 2
        assert set(column(recording, "gpu_power_watts")) <= set(rows)


def test_what_opens_a_block() -> None:
    """Headings of dmon do; those of pmon, prose and rows do not."""
    told = ["# gpu    pwr  gtemp", "#Date       Time        gpu   pwr", "#gpu, pwr, sm", "# gpu sm", "gpu, pwr, sm"]
    assert [line for line in told if not Dmon.opens(line)] == []
    others = [
        "# gpu        pid  type    sm   command",
        "# gpu",
        "gpu power of the machine",
        "# comment",
        "    0   12",
        "",
    ]
    assert [line for line in others if Dmon.opens(line)] == []
    assert Dmon.opens(", ".join([*clock(0), *(str(values(0, 0)[name]) for name in ("gpu", *PUC))]))
