"""nvidia-smi query logs to recordings."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport import columns
from gpureport.analysis import RULES
from gpureport.errors import SettingsError, SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import AbsentCells, Recording, Rejected, analyze
from tests.importers.written_logs import HEADER, log, read_text, row

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, lines: list[str]) -> Path:
    """Return a log of these lines."""
    path = folder / "gpu.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


def values(recording: Recording, metric: str, device: str = "gpu:0") -> list[float]:
    """Return a column of one device, NaN where it is null."""
    return [float(value) for value in columns.floats(recording.rows_of(device).column(metric))]


def test_units_become_base_units(tmp_path: Path) -> None:
    """Percent, MiB and W arrive as ratio, bytes and watts."""
    recording = read_text(tmp_path, log(2))
    assert values(recording, "gpu_utilization_ratio") == pytest.approx([0.9, 0.9])
    assert values(recording, "gpu_memory_used_bytes") == [1024 * 2**20] * 2
    assert values(recording, "gpu_power_watts") == [250.0, 250.0]


def test_units_are_decided_cell_by_cell(tmp_path: Path) -> None:
    """A cell with a unit, without one, and in another unit of the same kind mean what they say."""
    rows = [row(0), row(1).replace("90 %", "90"), row(2).replace("1024 MiB", "1 GiB"), row(3, power="0.25 kW")]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert values(recording, "gpu_utilization_ratio") == pytest.approx([0.9] * 4)
    assert values(recording, "gpu_memory_used_bytes") == [2**30] * 4
    assert values(recording, "gpu_power_watts") == [250.0] * 4


@pytest.mark.parametrize(
    "token", ["[N/A]", "[Unknown Error]", "[GPU is lost]", "N/A", "[Not Supported]", "[new words]"]
)
def test_bracketed_tokens_are_null_with_their_reason(tmp_path: Path, token: str) -> None:
    """A cell that says it holds nothing is null, never 0; the rest of its row is kept."""
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), row(1, power=token), ""]))
    assert values(recording, "gpu_power_watts")[1] != 0
    assert recording.rows_of("gpu:0").column("gpu_power_watts").null_count == 1
    assert values(recording, "gpu_utilization_ratio") == pytest.approx([0.9, 0.9])
    reason = token.strip("[]")
    assert recording.run.quality.absent_cells == (AbsentCells(column="power.draw", reason=reason, cells=1),)


def test_repeated_headers_are_counted(tmp_path: Path) -> None:
    """A header before every row is no data and no error."""
    recording = read_text(tmp_path, "".join(f"{HEADER}\n{row(second)}\n" for second in range(5)))
    assert (recording.run.quality.headers, recording.run.quality.rows_kept) == (5, 5)
    assert recording.run.quality.accounted


def test_a_changed_header_changes_the_columns(tmp_path: Path) -> None:
    """Rows after another header are read by it; columns of only one part are null in the other."""
    second = "timestamp, utilization.gpu [%], temperature.gpu"
    text = "\n".join([HEADER, row(0), row(1), second, "2026/03/14 09:00:02.000, 50 %, 61", ""])
    recording = read_text(tmp_path, text)
    assert values(recording, "gpu_utilization_ratio") == pytest.approx([0.9, 0.9, 0.5])
    assert recording.rows_of("gpu:0").column("gpu_temperature_celsius").to_pylist() == [None, None, 61.0]
    assert recording.run.quality.accounted


def test_a_row_with_a_torn_cell_is_rejected_with_its_line(tmp_path: Path) -> None:
    """A cell that is not what its column holds costs its row, and is named."""
    torn = row(1).replace("90 %", "12025/06/12 %")
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), torn, row(2), "no row at all", ""]))
    assert recording.run.quality.rejected == (
        Rejected(reason="malformed utilization.gpu", rows=1, first_line=3),
        Rejected(reason="wrong number of cells", rows=1, first_line=5),
    )
    assert recording.run.quality.rows_kept == 2
    assert recording.run.quality.accounted


def test_more_than_all_the_time_is_malformed(tmp_path: Path) -> None:
    """A utilisation above 100 % is two numbers run together, not a value."""
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), row(1, util=909), ""]))
    assert recording.run.quality.rows_kept == 1


def test_a_cut_number_is_not_believed(tmp_path: Path) -> None:
    """In a log that ends inside a line, `58` may be the beginning of `58.52 W`: the cell is null, its row stays."""
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), row(1, power="58")]))
    assert recording.rows_of("gpu:0").column("gpu_power_watts").to_pylist() == [250.0, None]
    assert recording.run.quality.absent_cells == (AbsentCells(column="power.draw", reason="cut", cells=1),)


def test_a_line_cut_before_its_last_cell_is_rejected(tmp_path: Path) -> None:
    """A last line with too few cells is rejected as cut."""
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), row(1)[:30]]))
    assert recording.run.quality.rejected == (Rejected(reason="cut last line", rows=1, first_line=3),)


def test_driver_messages_are_events(tmp_path: Path) -> None:
    """A message of the driver between rows is an event, a separator is noise."""
    message = "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost.  Reboot the system"
    quality = read_text(tmp_path, "\n".join([HEADER, row(0), message, "------", row(1), ""])).run.quality
    assert (quality.events, quality.noise, quality.rows_kept) == (1, 1, 2)
    assert quality.accounted


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encoding_and_line_ends_change_nothing(tmp_path: Path, encoding: str, end: str) -> None:
    """A byte order mark, UTF-16 and CRLF give the same series."""
    plain = read_text(tmp_path, log(9))
    other = read_text(tmp_path, log(9).replace("\n", end).encode(encoding))
    assert plain.series.equals(other.series)


def test_a_byte_that_is_no_text_costs_its_line_only(tmp_path: Path) -> None:
    """A line that is not UTF-8 is rejected; one that is whole after a run of NUL bytes stays, as its neighbours do."""
    text = log(4).encode().replace(b"NVIDIA", b"\xff\xfeNVIDIA", 1)
    lines = text.split(b"\n")
    lines[3] = b"\0\0\0" + lines[3]
    quality = read_text(tmp_path, b"\n".join(lines)).run.quality
    assert [entry.reason for entry in quality.rejected] == ["not UTF-8 text"]
    assert quality.rows_kept == 3


def test_clock_events_come_apart(tmp_path: Path) -> None:
    """The mask becomes one column a reason; a bit without a name is kept."""
    rows = [f"2026/03/14 09:00:0{second}.000, 0x{mask:016X}" for second, mask in enumerate([0x1, 0x24, 0x804])]
    recording = read_text(tmp_path, "\n".join(["timestamp, clocks_throttle_reasons.active", *rows, ""]))
    assert values(recording, "clock_event_gpu_idle") == [1, 0, 0]
    assert values(recording, "clock_event_sw_power_cap") == [0, 1, 1]
    assert values(recording, "clock_event_sw_thermal_slowdown") == [0, 1, 0]
    assert values(recording, "clock_event_unknown_bits") == [0, 0, 0x800]


def test_unknown_columns_are_kept_as_text(tmp_path: Path) -> None:
    """A column without a place of its own is kept under its name."""
    text = "timestamp, utilization.gpu [%], power_smoothing.enabled\n2026/03/14 09:00:00.000, 5 %, Disabled\n"
    recording = read_text(tmp_path, text)
    assert recording.series.column("extra_power_smoothing_enabled").to_pylist() == ["Disabled"]


def test_two_sources_of_one_metric_are_both_kept(tmp_path: Path) -> None:
    """`power.draw` fills the column, `power.draw.average` beside it stays as an extra one."""
    text = "timestamp, power.draw [W], power.draw.average [W]\n2026/03/14 09:00:00.000, 50.00 W, 51.00 W\n"
    recording = read_text(tmp_path, text)
    assert values(recording, "gpu_power_watts") == [50.0]
    assert recording.series.column("extra_power_draw_average").to_pylist() == ["51.00 W"]


def test_a_log_without_time_is_refused(tmp_path: Path) -> None:
    """Without a timestamp column nothing is invented."""
    with pytest.raises(SourceError, match=r"no timestamp column among utilization\.gpu"):
        read_text(tmp_path, "utilization.gpu [%]\n5 %\n")


def test_a_log_without_a_gpu_metric_is_refused(tmp_path: Path) -> None:
    """Columns that only describe devices are no series."""
    with pytest.raises(SourceError, match="no GPU metric among the columns timestamp, uuid"):
        read_text(tmp_path, "timestamp, uuid\n2026/03/14 09:00:00.000, GPU-1\n")


ANONYMOUS = "timestamp, utilization.gpu [%]"


def anonymous(ticks: int = 20, gpus: int = 4, apart: int = 1) -> list[str]:
    """Return rows of several GPUs that no column names, some milliseconds apart in each tick."""
    return [
        f"2026/03/14 09:00:{tick:02d}.{gpu * apart:03d}, {gpu * 10 + tick % 3} %"
        for tick in range(ticks)
        for gpu in range(gpus)
    ]


def test_gpus_are_told_by_their_place_in_the_tick(tmp_path: Path) -> None:
    """Four rows a tick without an id are four GPUs, and a note says how sure that is."""
    recording = read_text(tmp_path, "\n".join([ANONYMOUS, *anonymous(), ""]))
    assert [device.id for device in recording.run.devices] == [f"gpu:{gpu}" for gpu in range(4)]
    assert values(recording, "gpu_utilization_ratio", "gpu:3")[:3] == pytest.approx([0.3, 0.31, 0.32])
    (note,) = recording.run.quality.notes
    assert "19 of 19 ticks hold 4 rows; high confidence" in note


def test_a_tick_of_another_size_names_no_gpu(tmp_path: Path) -> None:
    """Rows of a tick in which one is missing are rejected: nobody can say which."""
    rows = anonymous(40)
    del rows[41]
    quality = read_text(tmp_path, "\n".join([ANONYMOUS, *rows, ""])).run.quality
    assert quality.rejected == (Rejected(reason="tick with another number of rows", rows=3, first_line=42),)
    assert quality.accounted


def test_gpus_a_tick_can_be_said(tmp_path: Path) -> None:
    """`--gpus-per-tick` settles what the order of rows does not show."""
    text = "\n".join([ANONYMOUS, *anonymous(4, 2), ""])
    recording = read_text(tmp_path, text, ReadOptions(gpus_per_tick=2))
    assert len(recording.run.gpus) == 2
    assert len(read_text(tmp_path, text, ReadOptions(gpus_per_tick=1)).run.gpus) == 1


def test_mixed_gpus_are_one_device_of_which_nothing_is_judged(tmp_path: Path) -> None:
    """Rows of several GPUs whose ticks differ in size stay one device, and a note says so."""
    rows = [line for tick in range(40) for line in anonymous(40, 2 + tick % 3)[tick * (2 + tick % 3) :][: 2 + tick % 3]]
    recording = read_text(tmp_path, "\n".join([ANONYMOUS, *rows, ""]))
    assert [device.mixed for device in recording.run.devices] == [True]
    found = analyze(recording)
    assert found.findings == ()
    assert {entry.kind for entry in found.not_judged} == {kind for rule in RULES for kind in rule.kinds}


def test_columns_can_be_said(tmp_path: Path) -> None:
    """A log without a header is read with the columns a person names."""
    named = ReadOptions(columns=("timestamp", "index", "utilization.gpu"))
    rows = [f"2026/03/14 09:00:{second:02d}.000, 0, {second}" for second in range(9)]
    (inputs,) = find_runs(written(tmp_path, rows), kind="nvidia_smi")
    recording = Reading(inputs, named, Labels()).recording()
    assert values(recording, "gpu_utilization_ratio")[:3] == pytest.approx([0.0, 0.01, 0.02])


def test_a_wrong_column_name_is_a_settings_error(tmp_path: Path) -> None:
    """A name that is no query field is the person's mistake, not the log's."""
    (inputs,) = find_runs(written(tmp_path, ["2026/03/14 09:00:00.000, 5"]), kind="nvidia_smi")
    with pytest.raises(SettingsError, match="no query field 'gpu effort'"):
        Reading(inputs, ReadOptions(columns=("timestamp", "gpu effort")), Labels()).recording()


def test_a_log_without_stamps_needs_its_interval(tmp_path: Path) -> None:
    """Rows without a time get one from `--interval`, and the run says that no time was recorded."""
    text = "index, utilization.gpu [%]\n" + "".join(f"{gpu}, {tick} %\n" for tick in range(5) for gpu in (0, 1))
    with pytest.raises(SourceError, match="--interval"):
        read_text(tmp_path, text)
    run = read_text(tmp_path, text, ReadOptions(interval=2.0)).run
    assert (run.started, run.ended, run.interval) == (0, 8_000_000, 2.0)
    assert (run.quality.synthetic_time, run.quality.coverage_ratio) == (True, None)


def test_an_interval_of_a_log_with_stamps_is_not_used(tmp_path: Path) -> None:
    """Stamps win over `--interval`, and a note says so."""
    run = read_text(tmp_path, log(5), ReadOptions(interval=2.0)).run
    assert run.interval == 1.0
    assert run.quality.notes == ("The log has time stamps: --interval was not used.",)


def test_rows_longer_than_their_header_are_refused(tmp_path: Path) -> None:
    """Where every row has more cells than the header has names, no cell is taken for any."""
    text = "timestamp, utilization.gpu [%], temperature.gpu\n" + "2026/03/14 09:00:00.000, 5, 40, 41, 42\n" * 5
    with pytest.raises(SourceError, match="names 3 columns and its rows hold 5 cells"):
        read_text(tmp_path, text)


def test_a_lost_gpu_is_an_event(tmp_path: Path) -> None:
    """A GPU that fell off the bus is on the timeline, and the cells of its last row that hold values are kept."""
    lost = row(2, gpu=1, power="[GPU is lost]")
    message = "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost.  Reboot the system"
    lines = [HEADER, "No devices were found", row(0), row(1, gpu=1), lost, message, message, row(3), ""]
    recording = read_text(tmp_path, "\n".join(lines))
    events = [(event.kind, event.device, event.line) for event in recording.run.quality.log_events]
    assert events == [("no_devices", None, 2), ("gpu_lost", "gpu:1", 5), ("gpu_lost", None, 6)]
    times = [event.at for event in recording.run.quality.log_events]
    assert times == [recording.run.started, recording.run.started + 2_000_000, recording.run.started + 2_000_000]
    assert recording.run.quality.events == 3
    assert recording.run.quality.accounted


def test_only_selected_gpus_are_kept(tmp_path: Path) -> None:
    """`--gpus` leaves rows out and says so."""
    recording = read_text(tmp_path, log(3, gpus=3), ReadOptions(gpus=(0, 2)))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:2"]
    assert recording.run.quality.rejected == (Rejected(reason="GPU not selected", rows=3, first_line=3),)
    assert recording.run.quality.accounted


@pytest.mark.parametrize(
    ("heading", "cell"),
    [
        ("memory.used [MiB]", "99999999999999999999 MiB"),
        ("pcie.link.width.current", "99999"),
        ("ecc.errors.corrected.volatile.total", "9" * 5000),
        ("temperature.gpu", "9" * 60),
        ("power.draw [W]", "-200.00 W"),
    ],
)
def test_a_value_that_cannot_be_is_malformed(tmp_path: Path, heading: str, cell: str) -> None:
    """A number no such column can hold costs its row, not the log."""
    rows = [f"2026/03/14 09:00:0{second}.000, 5 %, {text}" for second, text in enumerate(["[N/A]", cell])]
    quality = read_text(tmp_path, "\n".join([f"timestamp, utilization.gpu [%], {heading}", *rows, ""])).run.quality
    assert (quality.rows_kept, [entry.rows for entry in quality.rejected]) == (1, [1])


def test_one_wrong_date_does_not_move_the_log(tmp_path: Path) -> None:
    """A stamp ten years off its neighbours is rejected."""
    rows = [row(second) for second in range(20)]
    rows[7] = rows[7].replace("2026", "2036")
    run = read_text(tmp_path, "\n".join([HEADER, *rows, ""])).run
    assert run.quality.rejected == (Rejected(reason="stamp out of sequence", rows=1, first_line=9),)
    assert (run.ended - run.started, run.quality.clock_steps) == (19_000_000, ())


def test_rows_under_a_useless_header_are_rejected(tmp_path: Path) -> None:
    """A later header without a time is not believed: it costs itself and its rows, not the log."""
    text = log(5) + "index, utilization.gpu [%]\n0, 5 %\n0, 6 %\n"
    quality = read_text(tmp_path, text).run.quality
    assert quality.rows_kept == 5
    assert [(entry.rows, entry.first_line) for entry in quality.rejected] == [(3, 7)]
    assert quality.accounted


def test_many_driver_messages_are_counted(tmp_path: Path) -> None:
    """The same message a thousand times with no row between is one event; each line is counted."""
    quality = read_text(tmp_path, log(3) + "No devices were found\n" * 1000).run.quality
    assert quality.events == 1000
    assert [event.kind for event in quality.log_events] == ["no_devices"]


def test_coverage_counts_every_gpu_over_the_whole_run(tmp_path: Path) -> None:
    """A GPU that was sampled for half of the run covers half of its time."""
    rows = [row(second, gpu) for second in range(101) for gpu in (0, 1) if gpu == 0 or second <= 50]
    quality = read_text(tmp_path, "\n".join([HEADER, *rows, ""])).run.quality
    assert quality.coverage_ratio == pytest.approx(0.75)


def test_pieces_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log read in small pieces by several threads, dirt included, is the same as read at once."""
    lines = log(400, gpus=2).splitlines()
    lines.insert(300, "garbage")
    lines.insert(500, HEADER)
    text = "\n".join([*lines, ""])
    whole = read_text(tmp_path, text)
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (2000,))
    pieced = read_text(tmp_path, text)
    assert pieced.series.equals(whole.series)
    assert pieced.run == whole.run
    assert pieced.run.quality.rejected == (Rejected(reason="wrong number of cells", rows=1, first_line=301),)


def test_a_header_in_a_later_piece_changes_the_rows_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces begun under the old columns are read again under the new ones."""
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (1000,))
    header = "timestamp, index, name, memory.used [MiB], utilization.gpu [%], power.draw [W]"
    later = [row(second).replace("90 %, 1024 MiB", "2048 MiB, 40 %") for second in range(100, 300)]
    text = log(100) + "\n".join([header, *later, ""])
    recording = read_text(tmp_path, text)
    assert values(recording, "gpu_utilization_ratio") == pytest.approx([0.9] * 100 + [0.4] * 200)
    assert recording.run.quality.accounted


@BOUNDED
@given(cut=st.integers(min_value=len(HEADER) + 70, max_value=len(log(12))))
def test_a_cut_at_any_byte_loses_at_most_one_line(tmp_path: Path, cut: int) -> None:
    """Every whole line before the cut is a row."""
    text = log(12)[:cut]
    quality = read_text(tmp_path, text).run.quality
    assert quality.rows_kept >= text.count("\n") - 1
    assert quality.accounted


@BOUNDED
@given(seed=st.integers(0, 10_000))
def test_column_order_and_units_change_nothing(tmp_path: Path, seed: int) -> None:
    """Shuffled columns and bare cells give the same values."""
    shuffle = random.Random(seed)
    plain = read_text(tmp_path, log(6, gpus=2))
    rows = [line.split(", ") for line in log(6, gpus=2).splitlines()]
    order = shuffle.sample(range(len(rows[0])), len(rows[0]))
    bare = [[cell if line is rows[0] or shuffle.random() < 0.5 else _bare(cell) for cell in line] for line in rows]
    text = "\n".join(", ".join(line[place] for place in order) for line in bare) + "\n"
    other = read_text(tmp_path, text)
    assert other.series.select(plain.series.column_names).equals(plain.series)


def _bare(cell: str) -> str:
    for unit in (" %", " MiB", " W"):
        cell = cell.removesuffix(unit)
    return cell


@BOUNDED
@given(data=st.data())
def test_no_damage_raises_anything_but_a_source_error(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes changed, doubled or dropped at random never crash the reader, and every line stays accounted for."""
    text = bytearray(log(8, gpus=2).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(text) - 1))
        junk = data.draw(st.binary(max_size=6) | st.sampled_from([b"\n", b"\0" * 9, b",", HEADER.encode(), b"\r"]))
        text[place : place + data.draw(st.integers(0, 40))] = junk
    try:
        recording = read_text(tmp_path, bytes(text))
    except SourceError:
        return
    assert recording.run.quality.accounted
    assert recording.run.quality.rows_kept == len(recording.series)
