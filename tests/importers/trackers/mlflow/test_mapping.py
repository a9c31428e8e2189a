"""MLflow's system metrics as series: names, units, times, rates, nodes, monitors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport import columns
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.reading.attachments import join_attached_logs
from gpureport.importers.reading.tracked_reading import TrackedReading
from gpureport.importers.trackers.mlflow import Mlflow
from gpureport.importers.trackers.mlflow.derived_totals import derive_total
from gpureport.importers.trackers.mlflow.metric_names import parse_names
from gpureport.importers.trackers.mlflow.read_times import assign_monitors, estimate_read_times
from gpureport.testing import Recording
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id

ID = run_id(1)
TICKS = [10_050 + 10_050 * place for place in range(9)]


def read(source: Path | str, options: ReadOptions | None = None, **selection: Any) -> Recording:  # noqa: ANN401 - any option
    """Return the only run of a store that is meant."""
    (run,) = Mlflow().runs(str(source), Selection(**selection)).runs
    return TrackedReading(
        "mlflow", run, options or ReadOptions(), Labels(), strict=False, join=join_attached_logs
    ).recording()


@pytest.fixture(params=[database, folder], ids=["sqlite", "file store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a store, a database or a folder."""
    return lambda *runs: request.param(tmp_path / "mlflow.db", runs)


def column(recording: Recording, device: str, name: str) -> list[float | None]:
    """Return a column of a device, None where it is null."""
    values = columns.floats(recording.rows_of(device).column(name))
    return [None if np.isnan(value) else round(float(value), 4) for value in values]


def seconds(recording: Recording, device: str) -> list[float]:
    """Return the times of a device, in seconds after the run started."""
    times = columns.integers(recording.rows_of(device).column("timestamp"))
    return [(time / 1000 - START) / 1000 for time in times.tolist()]


def test_every_metric_has_its_column_and_base_unit(store: Callable[..., Path]) -> None:
    """Per cent become ratios, megabytes bytes of a million each, and nothing is left over."""
    recording = read(store(Made(id=ID, series=monitored(TICKS))))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "host"]
    rows = recording.rows_of("gpu:0")
    first = {name: rows.column(name)[0].as_py() for name in rows.column_names[3:]}
    assert first["gpu_utilization_ratio"] == pytest.approx(0.9)
    assert first["gpu_memory_used_bytes"] == 42_949_700_000
    assert first["gpu_memory_used_ratio"] == pytest.approx(0.5)
    assert first["gpu_power_watts"] == pytest.approx(300)
    assert first["gpu_power_ratio"] == pytest.approx(0.75)
    assert column(recording, "host", "host_memory_used_bytes")[0] == 8_000_000_000
    assert column(recording, "host", "host_memory_used_ratio")[0] == 0.5
    quality = recording.run.quality
    assert quality.accounted
    assert quality.lines == 9 * len(TICKS)


def test_values_stand_where_they_were_read_not_where_they_were_logged(store: Callable[..., Path]) -> None:
    """A value was read when the one before it was logged, the first when the run started."""
    recording = read(store(Made(id=ID, series=monitored(TICKS))))
    assert seconds(recording, "gpu:0") == [0, *(tick / 1000 for tick in TICKS[:-1])]
    assert any("moved back, by 10.05 s" in note for note in recording.run.quality.notes)


def test_a_person_may_have_them_where_they_were_logged(store: Callable[..., Path]) -> None:
    """As MLflow's own pages show them; it is another run in the store."""
    source = store(Made(id=ID, series=monitored(TICKS)))
    raw = read(source, ReadOptions(as_logged=True))
    assert seconds(raw, "gpu:0") == [tick / 1000 for tick in TICKS]
    assert raw.run.id != read(source).run.id
    assert any("as --mlflow-raw-times says, they stay there" in note for note in raw.run.quality.notes)


def test_the_first_value_of_the_cpu_and_of_a_count_say_nothing(store: Callable[..., Path]) -> None:
    """They speak of a time before the monitor began; they are counted, not kept."""
    recording = read(store(Made(id=ID, series=monitored(TICKS))))
    assert column(recording, "host", "cpu_utilization_ratio") == [None, *[0.3] * 8]
    assert column(recording, "host", "host_network_receive_bytes_per_second") == [None, *[0.0] * 8]
    quality = recording.run.quality
    assert quality.noise == 2
    assert {(cells.reason, cells.cells) for cells in quality.absent_cells} == {("first value of a monitor", 1)}


def test_counts_become_rates_and_begin_anew_with_a_process(store: Callable[..., Path]) -> None:
    """A count that falls is that of another process, whose first value of the CPU says nothing either."""
    series = monitored(TICKS)
    counts = [0.0, 20.1, 40.2, 60.3, 0.0, 10.05, 20.1, 30.15, 40.2]
    series["system/network_receive_megabytes"] = [
        (START + tick, count, place) for place, (tick, count) in enumerate(zip(TICKS, counts, strict=True))
    ]
    recording = read(store(Made(id=ID, series=series)))
    rates = column(recording, "host", "host_network_receive_bytes_per_second")
    assert rates == [None, 2e6, 2e6, 2e6, None, 1e6, 1e6, 1e6, 1e6]
    assert column(recording, "host", "cpu_utilization_ratio")[4] is None


def test_totals_and_limits_are_derived_and_said_to_be(store: Callable[..., Path]) -> None:
    """Memory and power limit follow from a value and its share."""
    run = read(store(Made(id=ID, series=monitored(TICKS)))).run
    assert run.gpus[0].memory_total_bytes == pytest.approx(80 * 2**30, rel=1e-3)
    assert run.gpus[0].power_limit_watts == pytest.approx(400)
    assert run.hosts[0].memory_total_bytes == pytest.approx(16e9)
    assert any(note.startswith("Derived") and "gpu:0 (80.0 GiB)" in note for note in run.quality.notes)


@given(st.floats(1e9, 2e11), st.lists(st.floats(0.03, 1), min_size=1, max_size=50))
def test_a_derived_whole_is_as_good_as_its_largest_share_is_rounded(total: float, shares: list[float]) -> None:
    """MLflow rounds per cent to one decimal: the error is at most half of it, of the largest share."""
    used = np.array(shares) * total
    found = derive_total(used, np.round(np.array(shares) * 100, 1) / 100)
    assert found == pytest.approx(total, rel=0.00055 / (0.9 * max(shares)))


def test_a_whole_is_not_derived_from_shares_that_rounding_made_of() -> None:
    """A GPU that is 0.4 % full may have 60 or 100 GB."""
    assert derive_total(np.array([4e8]), np.array([0.004])) is None
    assert derive_total(np.array([0.0, np.nan]), np.array([0.0, 0.5])) is None
    assert derive_total(None, np.array([0.5])) is None


def test_a_long_time_before_a_value_was_a_time_without_a_monitor() -> None:
    """After a pause the usual distance is taken, as it is where the run began long before its monitor."""
    times = np.array([100_000, 110_000, 120_000, 180_000, 190_000])
    assert estimate_read_times(times, 0).tolist() == [90_000, 100_000, 110_000, 170_000, 180_000]
    assert estimate_read_times(times, 91_000).tolist()[0] == 91_000
    assert estimate_read_times(times, None).tolist()[0] == 90_000
    assert estimate_read_times(times[:1], 91_000).tolist() == [91_000]
    assert estimate_read_times(times[:1], None).tolist() == [100_000]


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=40), st.one_of(st.none(), st.integers(-100_000, 200_000)))
def test_values_are_read_in_order_and_before_they_are_logged(steps: list[int], started: int | None) -> None:
    """Whatever the distances, no value is read after it was logged, nor before one that was logged earlier."""
    times = np.cumsum(np.array(steps)) + 100_000
    found = estimate_read_times(times, started)
    assert (found <= times).all()
    assert (np.diff(found) >= 0).all()


@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 400))
def test_ticks_of_several_monitors_are_told_apart(ticks: int, monitors: int, late: int) -> None:
    """Every monitor counts for itself: each gets exactly its own ticks back."""
    offsets = [place * 170 + late * (place > 0) for place in range(monitors)]
    points = sorted((500 * step + offset, step, place) for place, offset in enumerate(offsets) for step in range(ticks))
    times, steps, owners = (np.array(each) for each in zip(*points, strict=True))
    found = assign_monitors(times, steps)
    assert len(set(zip(found.tolist(), owners.tolist(), strict=True))) == monitors


def test_two_monitors_of_one_machine_are_kept_and_said(store: Callable[..., Path]) -> None:
    """All ranks logged the same hardware under the same names: no value is lost, and the reader is told."""
    one, other = monitored(TICKS), monitored([tick + 3_000 for tick in TICKS])
    recording = read(store(Made(id=ID, series={key: [*one[key], *other[key]] for key in one})))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "host"]
    assert len(recording.rows_of("gpu:0")) == 18
    assert seconds(recording, "gpu:0")[2:6] == [10.05, 13.05, 20.1, 23.1]
    assert any("2 processes recorded the same names" in note for note in recording.run.quality.notes)


def test_monitors_of_two_machines_are_two_nodes(store: Callable[..., Path]) -> None:
    """Where the memory in use differs at the same time, the same names are those of two machines."""
    other = {"system_memory_usage_megabytes": 30_000.0, "gpu_0_utilization_percentage": 10.0}
    one = monitored(TICKS, {key: value / 2 for key, value in other.items()})
    two = monitored([tick + 3_000 for tick in TICKS], other)
    recording = read(store(Made(id=ID, series={key: [*one[key], *two[key]] for key in one})))
    assert [device.id for device in recording.run.gpus] == ["writer_1/gpu:0", "writer_2/gpu:0"]
    assert column(recording, "writer_2/gpu:0", "gpu_utilization_ratio") == [0.1] * 9


def test_a_monitor_that_counts_anew_after_a_pause_is_not_two(store: Callable[..., Path]) -> None:
    """Before 2.9 a resumed run began at step 0 again."""
    one, later = monitored(TICKS[:4]), monitored([tick + 100_000 for tick in TICKS[:4]])
    recording = read(store(Made(id=ID, series={key: [*one[key], *later[key]] for key in one})))
    assert not any("processes" in note for note in recording.run.quality.notes)
    assert len(recording.run.quality.gaps) == 2
    assert seconds(recording, "gpu:0")[4] == pytest.approx(100)


def test_nodes_have_devices_of_their_own(store: Callable[..., Path]) -> None:
    """A node id may be anything, an address with dots included."""
    series = monitored(TICKS, node="10.0.0.1") | monitored(TICKS, node="rack/b")
    recording = read(store(Made(id=ID, series=series)))
    assert [device.id for device in recording.run.devices] == [
        "10.0.0.1/gpu:0", "rack/b/gpu:0", "10.0.0.1/host", "rack/b/host",
    ]  # fmt: skip
    assert [device.node for device in recording.run.gpus] == ["10.0.0.1", "rack/b"]


def test_the_limit_of_an_amd_gpu_is_not_derived(store: Callable[..., Path]) -> None:
    """Its share of power is one of 500 W, whatever its limit is: it is kept aside."""
    values = {
        "gpu_0_memory_usage_gigabytes": 12.5,
        "gpu_0_utilization_percentage": 50.0,
        "gpu_0_power_usage_watts": 250.0,
        "gpu_0_power_usage_percentage": 50.0,
    }
    recording = read(store(Made(id=ID, series=monitored(TICKS, values))))
    assert column(recording, "gpu:0", "gpu_memory_used_bytes")[0] == 12_500_000_000
    assert recording.run.gpus[0].power_limit_watts is None
    assert "gpu_power_ratio" not in recording.series.column_names
    assert recording.rows_of("gpu:0").column("extra_power_usage_percentage")[0].as_py() == "50"


def test_what_has_no_place_of_its_own_is_kept_and_said(store: Callable[..., Path]) -> None:
    """A metric that a later MLflow records is not dropped in silence."""
    values = {"gpu_0_utilization_percentage": 5.0, "gpu_0_temperature_celsius": 61.5, "fan": 3.0}
    recording = read(store(Made(id=ID, series=monitored(TICKS, values))))
    assert recording.rows_of("gpu:0").column("extra_temperature_celsius").to_pylist() == ["61.5"] * 9
    assert recording.rows_of("host").column("extra_fan").to_pylist() == ["3"] * 9
    assert any("extra_fan, extra_temperature_celsius" in note for note in recording.run.quality.notes)


def test_a_slash_in_an_unknown_name_is_no_node() -> None:
    """Only a name that is known tells a node."""
    found = parse_names(["system/node_1/cpu_utilization_percentage", "system/node_1/fan", "system/net/eth0", "loss"])
    assert [(name.node, name.what) for name in found] == [
        ("node_1", "cpu_utilization_percentage"),
        ("node_1", "fan"),
        (None, "net/eth0"),
    ]


def test_only_the_gpus_asked_for_are_kept(store: Callable[..., Path]) -> None:
    """MLflow records every GPU of the machine; what is left out is counted and no fault of the run."""
    values = {f"gpu_{index}_utilization_percentage": 50.0 for index in range(3)}
    source = store(Made(id=ID, series=monitored(TICKS, values)))
    recording = read(source, ReadOptions(gpus=(0, 2)))
    assert [device.index for device in recording.run.gpus] == [0, 2]
    (rejected,) = recording.run.quality.rejected
    assert (rejected.reason, rejected.rows) == ("GPU not selected", 9)
    (run,) = Mlflow().runs(str(source), Selection()).runs
    strict = TrackedReading("mlflow", run, ReadOptions(gpus=(0,)), Labels(), strict=True, join=join_attached_logs)
    assert len(strict.recording().series) == 9


def test_a_gpu_that_never_worked_is_named(store: Callable[..., Path]) -> None:
    """It may be a neighbour's, which --gpus leaves out."""
    values = {"gpu_0_utilization_percentage": 50.0, "gpu_1_utilization_percentage": 1.0}
    notes = read(store(Made(id=ID, series=monitored(TICKS, values)))).run.quality.notes
    assert any(note.startswith("gpu:1 never was above 1%") for note in notes)


def test_a_value_that_is_no_number_is_null_and_counted(store: Callable[..., Path]) -> None:
    """NaN is neither 0 nor a value."""
    series = monitored(TICKS)
    points = series["system/gpu_0_utilization_percentage"]
    series["system/gpu_0_utilization_percentage"] = [(*points[0][:1], float("nan"), 0), *points[1:]]
    recording = read(store(Made(id=ID, series=series)))
    assert column(recording, "gpu:0", "gpu_utilization_ratio")[0] is None
    assert ("system/gpu_0_utilization_percentage", "not a number") in {
        (cells.column, cells.reason) for cells in recording.run.quality.absent_cells
    }


def test_training_metrics_are_kept_with_step_and_time(store: Callable[..., Path]) -> None:
    """Equal steps, stamps out of order and infinities stay, in the order of time; NaN is null."""
    inf, nan = float("inf"), float("nan")
    loss = [
        (START, 1.0, 0),
        (START + 2000, inf, 2),
        (START + 1000, nan, 1),
        (START + 3000, -inf, 3),
        (START + 500, 0.9, 2),
    ]
    recording = read(store(Made(id=ID, series=monitored(TICKS) | {"train/loss": loss})))
    rows = recording.training.to_pylist()
    assert [row["step"] for row in rows] == [0, 2, 1, 2, 3]
    assert [row["value"] for row in rows] == [1.0, 0.9, None, inf, -inf]
    assert {row["name"] for row in rows} == {"train/loss"}
    assert recording.run.quality.accounted


def test_work_is_counted_by_the_throughput_that_was_logged(store: Callable[..., Path]) -> None:
    """1000 samples a second for 70 s are 70 000 samples, and a person may name another metric.

    What the first point speaks for was done before the first sample.
    """
    speed = [(START + 10_000 * place, 1000.0, place) for place in range(8)]
    other = [(time, 2.0, step) for time, _, step in speed]
    source = store(Made(id=ID, series=monitored(TICKS) | {"samples_per_second": speed, "batches": other}))
    assert str(read(source).run.work) == "Work(amount=70000.0, unit='samples')"
    work = read(source, throughput="batches").run.work
    assert work is not None
    assert work.amount == pytest.approx(140)
    missing = read(source, throughput="tokens").run
    assert missing.work is None
    assert any("'tokens'" in note for note in missing.quality.notes)


def test_params_and_tags_are_kept_without_those_of_mlflow(store: Callable[..., Path]) -> None:
    """What a run was configured with says what changed; file names do not, and its user is a label."""
    tags = {"team": "vision", "mlflow.user": "ada", "mlflow.source.git.commit": "abc", "gpureport.report": "x"}
    tags["mlflow.autologging"] = "pytorch"
    run = read(store(Made(id=ID, series=monitored(TICKS), params={"lr": "0.1", "amp": ""}, tags=tags))).run
    assert run.params == (("amp", ""), ("lr", "0.1"))
    kept = {"mlflow.autologging": "pytorch", "mlflow.source.git.commit": "abc", "team": "vision"}
    assert dict(run.tags) == kept | {"user": "ada"}


def test_a_run_without_an_end_ends_with_its_last_sample(store: Callable[..., Path]) -> None:
    """A killed run is still RUNNING in MLflow."""
    source = store(Made(id=ID, series=monitored(TICKS), status="RUNNING", end=None))
    run = read(source, runs=(ID,)).run
    assert run.ended == (START + TICKS[-2]) * 1000
    assert any("no end in MLflow" in note for note in run.quality.notes)


def test_time_without_samples_at_both_ends_is_said(store: Callable[..., Path]) -> None:
    """MLflow loses the last window, and a monitor may start late."""
    ticks = [tick + 100_000 for tick in TICKS]
    notes = read(store(Made(id=ID, series=monitored(ticks), end=START + 300_000))).run.quality.notes
    assert "No hardware samples in the first 100 s of the run." in notes
    assert "No hardware samples in the last 110 s of the run." in notes


def test_a_run_without_system_metrics_is_training_alone(store: Callable[..., Path]) -> None:
    """It is read, and the reader is told how to record them."""
    recording = read(store(Made(id=ID, series={"loss": [(START, 1.0, 0)]})), runs=(ID,))
    assert len(recording.series) == 0
    assert len(recording.training) == 1
    assert any("enable_system_metrics_logging" in note for note in recording.run.quality.notes)


def test_a_run_without_gpu_metrics_says_what_was_missing(store: Callable[..., Path]) -> None:
    """MLflow itself is silent about it."""
    notes = read(store(Made(id=ID, series=monitored(TICKS, {"cpu_utilization_percentage": 5.0})))).run.quality.notes
    assert "Host metrics only: nvidia-ml-py was missing where the run was made." in notes
