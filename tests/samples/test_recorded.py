"""What a real machine wrote is read whole, and what is said of it holds against what was measured beside it."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpureport
from gpureport import columns
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.comparison.steps.step_figures import TRAINING_RATE
from gpureport.comparison.steps.training_rate import TrainingBasis, TrainingSource
from gpureport.report import build
from gpureport.report.sections.head import lead
from gpureport.report.sections.head.headlines import step_headline
from gpureport.report.wording.display import GAP
from gpureport.testing import HOST, Analysis, Delta, Finding, Recording, Verdict, Work
from tests.samples.archives import unpack

RECORDED = Path(__file__).parents[2] / "sample_logs" / "recorded"
FORMS = sorted(path for path in (RECORDED / "forms").iterdir() if path.suffix != ".json")
TIMELESS = {"dmon.txt", "dmon-csv.csv"}
"""Forms without a time, which an interval gives one."""
WATCHED = {"query": 1.0, "query-0p1s": 0.1, "dmon": 1.0, "dmon-gpm": 1.0, "table": 1.0, "nvitop": 1.0}
"""Recorders of the phases that sample finely enough to show every gap, and how many seconds apart they do."""
STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
RUNS = [f"{step}/{repetition}" for step in STEPS for repetition in (1, 2, 3)]
SECOND = 1_000_000
TEXT = "utf-8"

Truth = dict[str, Any]


@cache
def read(path: str, host: str = "") -> Recording:
    """Return the one run of a recorded log."""
    interval = 1.0 if Path(path).name in TIMELESS else None
    (recording,) = gpureport.read(RECORDED / path, host=RECORDED / host if host else (), interval=interval)
    return recording


@cache
def analyzed(path: str, host: str = "") -> Analysis:
    """Return what can be said of a recorded log."""
    return gpureport.analyze(read(path, host))


def truth(folder: str) -> Truth:
    """Return what was measured beside a run."""
    found: Truth = json.loads((RECORDED / folder / "truth.json").read_text(encoding=TEXT))
    return found


def of(analysis: Analysis, kind: str) -> list[Finding]:
    """Return the findings of a kind."""
    return [finding for finding in analysis.findings if finding.kind == kind]


def spans(findings: Sequence[Finding]) -> list[tuple[float, float]]:
    """Return when findings were, in seconds since 1970, in order."""
    found = (interval for finding in findings for interval in finding.intervals)
    return sorted((interval.start / SECOND, interval.end / SECOND) for interval in found)


def series(recording: Recording, name: str) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """Return the times of the GPU in seconds and a metric of it, where it has a value."""
    table = recording.rows_of("gpu:0")
    values = columns.floats(table.column(name))
    known = ~np.isnan(values)
    return columns.integers(table.column("timestamp"))[known] / SECOND, values[known]


def digest(recording: Recording) -> dict[str, Any]:
    """Return what of a recorded form must not change unnoticed."""
    quality, table = recording.run.quality, recording.series
    numbers = [name for name in table.column_names if name.startswith(("gpu_", "pcie_", "clock_event_"))]
    return {
        "rows_kept": quality.rows_kept,
        "rejected": {entry.reason: entry.rows for entry in quality.rejected},
        "notes": list(quality.notes),
        "means": {name: _mean(recording, name) for name in sorted(numbers)},
        "extra": sorted(name for name in table.column_names if name.startswith("extra_")),
    }


def _mean(recording: Recording, name: str) -> float | None:
    column = recording.series.column(name).cast(pa.float64())
    values = columns.floats(column)
    known = values[~np.isnan(values)]
    return None if not len(known) else float(f"{known.mean():.6g}")


def test_every_form_is_read_whole(*, update_golden: bool) -> None:
    """Of each form every row is kept, and its metrics have the values that `expected.json` lists."""
    actual: dict[str, Any] = {}
    for path in FORMS:
        if path.name == "pmon.txt":
            continue
        recording = read(f"forms/{path.name}")
        assert recording.run.quality.accounted
        actual[path.name] = digest(recording)
    expectation = RECORDED / "forms" / "expected.json"
    if update_golden:
        expectation.write_text(json.dumps(actual, indent=1) + "\n", encoding=TEXT, newline="\n")
    assert actual == json.loads(expectation.read_text(encoding=TEXT))
    assert all(not each["rejected"] for each in actual.values())


def test_ways_of_dmon_agree() -> None:
    """Four dmons that ran side by side, three of them without names or units, hold the same columns and near values."""
    ways = [
        "dmon-pucvmet-DT.txt",
        *(f"dmon-csv{way}-DT.csv" for way in ("", "-nounit", "-noheader", "-nounit-noheader")),
    ]
    one, *others = (digest(read(f"forms/{name}"))["means"] for name in ways)
    for other in others:
        assert other.keys() == one.keys()
        assert other["gpu_utilization_ratio"] == pytest.approx(one["gpu_utilization_ratio"], abs=0.01)
        assert other["gpu_power_watts"] == pytest.approx(one["gpu_power_watts"], rel=0.02)
        assert other["gpu_memory_used_bytes"] == one["gpu_memory_used_bytes"]


def test_the_refresh_of_the_driver_is_found() -> None:
    """A log of 5 ms shows that utilisation is renewed every 0.2 s and power every 0.1 s."""
    (gpu,) = analyzed("forms/query-5ms.csv.gz").statistics
    found = {each.metric: each.refresh_seconds for each in gpu.metrics}
    assert found["gpu_utilization_ratio"] == pytest.approx(0.2, abs=0.01)
    assert found["gpu_power_watts"] == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("recorder", WATCHED)
def test_every_gap_is_found_and_no_other(recorder: str) -> None:
    """The seven idle gaps are found to a sample or two, and nothing else is called one; so are start-up and tail."""
    (path,) = (RECORDED / "phases").glob(f"{recorder}.*")
    analysis, slack = analyzed(f"phases/{path.name}"), 2 * WATCHED[recorder] + 0.6
    for kind in ("idle_gap", "startup_idle", "tail_idle"):
        true = [(each["start"], each["end"]) for each in truth("phases")["events"] if each["kind"] == kind]
        assert [pytest.approx(span, abs=slack) for span in true] == spans(of(analysis, kind)), kind


@pytest.mark.parametrize(
    ("log", "host"),
    [
        ("query.csv.gz", "phases/host.csv.gz"),
        ("query-0p1s.csv.gz", "phases/host.csv.gz"),
        ("dmon.txt.gz", "phases/host.csv.gz"),
        ("nvitop.csv.gz", ""),
    ],
)
def test_waiting_for_a_full_machine_is_found(log: str, host: str) -> None:
    """The phase in which all cores were full is found; nothing else is blamed than what happened."""
    analysis = analyzed(f"phases/{log}", host)
    (true,) = [(each["start"], each["end"]) for each in truth("phases")["events"] if each["kind"] == "cpu_bound"]
    assert spans(of(analysis, "cpu_bound")) == [pytest.approx(true, abs=2.6)]
    blamed = {finding.kind for finding in analysis.findings if finding.severity != "info"}
    assert blamed == {"cpu_bound", "idle_gap", "tail_idle"}


def test_recorders_agree() -> None:
    """What ten recorders say of the same seven minutes differs by their sampling and rounding alone."""
    values = {path.name: digest(read(f"phases/{path.name}"))["means"] for path in _gpu_logs()}
    for name, allowed in {"gpu_utilization_ratio": 0.03, "gpu_memory_used_bytes": 5e8, "gpu_power_watts": 12.0}.items():
        found = {log: means[name] for log, means in values.items() if name in means}
        assert len(found) >= 6, name
        assert max(found.values()) - min(found.values()) < allowed, found


def _gpu_logs() -> list[Path]:
    others = {"truth.json", "host.csv.gz", "vmstat.txt.gz"}
    return sorted(path for path in (RECORDED / "phases").iterdir() if path.name not in others)


def test_hardware_counters_settle_what_utilisation_cannot() -> None:
    """A loop of tiny kernels shows a third of utilisation, and no multiprocessor at work."""
    (true,) = [each for each in truth("phases")["events"] if each["kind"] == "hollow_util"]
    recording = read("phases/dmon-gpm.txt.gz")
    means = {}
    for name in ("gpu_utilization_ratio", "gpu_sm_active_ratio", "gpu_tensor_active_ratio", "gpu_dram_active_ratio"):
        times, values = series(recording, name)
        means[name] = values[(times > true["start"] + 4) & (times < true["end"] - 4)].mean()
    assert 0.25 < means.pop("gpu_utilization_ratio") < 0.42
    assert set(means.values()) == {0.0}


@pytest.mark.parametrize("run", RUNS)
def test_a_training_run_against_what_it_measured(run: str) -> None:
    """Start-up, waiting, busy time and memory are what the training loop measured of itself."""
    folder = f"training_steps/{run}"
    analysis, known = analyzed(folder), truth(folder)
    times, busy = series(read(folder), "gpu_utilization_ratio")
    working = known["seconds"] - known["data_wait_seconds"] - sum(end - start for start, end in known["saves"])
    # kernels leave the GPU idle between them, and the first step of a process loads libraries
    assert 0.68 * working < np.trapezoid(busy, times) < 1.0 * working
    (startup,) = of(analysis, "startup_idle")
    first_batch = known["start"] + known["first_wait_seconds"]
    assert -0.5 < startup.intervals[0].end / SECOND - first_batch < 4
    _, memory = series(read(folder), "gpu_memory_used_bytes")
    assert 2**29 < memory.max() - known["peak_reserved"] < 2**30
    assert of(analysis, "tail_idle") == []


@pytest.mark.parametrize("run", RUNS)
def test_waiting_for_workers_is_found_where_it_was(run: str) -> None:
    """Two workers cannot keep up: the GPU time that went into waiting is what the loop waited, and nowhere else."""
    found = of(analyzed(f"training_steps/{run}"), "cpu_bound_single")
    if not run.startswith("1-starved"):
        assert found == []
        return
    (finding,) = found
    assert finding.lost_gpu_seconds == pytest.approx(truth(f"training_steps/{run}")["data_wait_seconds"], rel=0.2)


@cache
def chain() -> tuple[tuple[Recording, Analysis], ...]:
    """Return the runs of all training steps, with their step and the work they did."""
    runs = []
    for name in RUNS:
        recording = read(f"training_steps/{name}")
        work = Work(amount=truth(f"training_steps/{name}")["images"], unit="images")
        labelled = replace(recording, run=replace(recording.run, step=name.partition("/")[0], work=work))
        runs.append((labelled, gpureport.analyze(labelled)))
    return tuple(runs)


def test_the_head_says_what_saved_gpu_time_and_that_training_alone_gained_more() -> None:
    """One figure to quote, its cause, and why training alone shows another; single runs name no cause."""
    found = compare([build_sampled_run(*run) for run in chain()])
    assert step_headline.describe_steps(found) == "52% less GPU time per image; most of it from more loader workers."
    sure, training = (line.replace(GAP, " ") for line in lead.write_step_lead(found))
    assert sure.startswith("Between 45 and 58% less (95% interval, 3 runs a step); largest loss now: start-up, 43")
    assert training == "Training alone is 3.7 times as fast; start-up hides it in runs this short."
    single = compare([build_sampled_run(*run) for run in chain()[::3]])
    assert step_headline.describe_steps(single).endswith("% less GPU time per image; unconfirmed, one run each.")
    assert next(iter(lead.write_step_lead(single))).startswith("Repeat every step before you rely on it.")


def test_the_chain_of_steps_is_judged() -> None:
    """Three runs a step show what more workers gain, and that each later gain is too small for three short runs."""
    found = compare([build_sampled_run(*run) for run in chain()])
    judged = {step: found.judged(STEPS[0], step) for step in STEPS[1:]}
    assert {delta.verdict for delta in judged.values() if delta} == {Verdict.BETTER}
    (more_workers, *later) = (found.judged(one, other) for one, other in pairwise(STEPS))
    assert more_workers is not None
    assert more_workers.verdict is Verdict.BETTER
    assert {delta.verdict for delta in later if delta} == {Verdict.NO_CLEAR_CHANGE}


def test_training_alone_shows_what_a_start_up_hides() -> None:
    """By work over the steady phase: the last step made training 29 % faster, the third and fourth remain unproven."""
    found = compare([build_sampled_run(*run) for run in chain()])
    rates = [step.value(TRAINING_RATE) for step in found.steps]
    assert rates == pytest.approx([367, 819, 947, 1061, 1372], abs=1)
    assert {step.training_source for step in found.steps} == {TrainingSource(basis=TrainingBasis.STEADY_PHASE)}
    links = [found.judged_training(one, other) for one, other in pairwise(STEPS)]
    shares = [percent(link) for link in links]
    assert shares == [(123, 81, 176), (16, 1, 32), (12, -1, 27), (29, 18, 42)]
    assert [link.verdict for link in links if link] == [
        Verdict.BETTER,
        Verdict.NO_CLEAR_CHANGE,
        Verdict.NO_CLEAR_CHANGE,
        Verdict.BETTER,
    ]
    assert (found.tested, found.training_tested) == (7, 7)
    assert percent(found.judged(STEPS[0], STEPS[-1])) == (-52, -58, -45)


def percent(delta: Delta | None) -> tuple[int, int, int]:
    """Return a difference and the ends of its interval in per cent."""
    assert delta is not None
    assert delta.before is not None
    assert delta.difference is not None
    assert delta.interval is not None
    low, middle, high = (round(100 * each / delta.before) for each in sorted((delta.difference, *delta.interval)))
    return middle, low, high


def test_what_differs_by_less_than_is_printed_is_not_told_beside() -> None:
    """Pinned memory takes 2 MiB of 10.2 GiB: the table says so, and the sentence above it does not say `still`."""
    runs = [run for run in chain() if run[0].run.step in {STEPS[0], STEPS[2]}]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="")
    notes = (*content.verdict.details, *content.verdict.notes)
    (better,) = (line for line in notes if line.startswith("Also better"))
    assert "energy" in better
    assert not any("memory" in line for line in notes if line.startswith("Also changed"))
    assert content.comparison is not None
    (memory,) = (row for row in content.comparison.links[0].figures.rows if row.head.text == "Peak memory")
    assert any("+2" in cell.text.replace(GAP, " ") for cell in memory.cells)


@pytest.mark.parametrize("step", STEPS)
def test_one_second_tells_what_a_tenth_does(step: str) -> None:
    """Utilisation and energy of a run are the same, sampled once or ten times a second."""
    coarse, fine = (
        read(f"{folder}/{step}{part}") for folder, part in (("training_steps", "/1"), ("training_steps_0p1s", ""))
    )
    for one, other, allowed in (
        ("gpu_utilization_ratio", "gpu_utilization_ratio", 0.12),
        ("gpu_power_watts", "gpu_power_instant_watts", 0.05),
    ):
        slow, fast = series(coarse, one), series(fine, other)
        assert np.trapezoid(slow[1], slow[0]) == pytest.approx(np.trapezoid(fast[1], fast[0]), rel=allowed)


def test_mlflow_saw_the_same(tmp_path: Path) -> None:
    """The system metrics that MLflow kept are those of nvidia-smi while the run went on."""
    _unpack("mlruns", tmp_path)
    for step in STEPS:
        recording = read_mlflow(tmp_path, step)
        known = truth(f"training_steps/{step}/1")
        begin, end = recording.run.started / SECOND, recording.run.ended / SECOND
        assert known["start"] - 2 < begin
        assert end < known["end"] + 2
        assert end - begin == pytest.approx(known["seconds"], abs=2.5)
        times, busy = series(read(f"training_steps/{step}/1"), "gpu_utilization_ratio")
        inside = (times > begin) & (times < end)
        assert series(recording, "gpu_utilization_ratio")[1].mean() == pytest.approx(busy[inside].mean(), abs=0.05)
        assert dict(recording.run.params)["workers"] == str(known["workers"])


def test_a_rate_that_more_than_doubled_is_seen_in_forty_seconds(tmp_path: Path) -> None:
    """One run each, from 341 to 828 images a second by MLflow: unconfirmed, with its size. A tenth may be chance."""
    _unpack("mlruns", tmp_path)
    recordings = [read_mlflow(tmp_path, step) for step in STEPS]
    chain = compare([build_sampled_run(recording, gpureport.analyze(recording)) for recording in recordings])
    found = chain.judged_training(STEPS[0], STEPS[1])
    assert found is not None
    assert [found.before, found.after] == pytest.approx([341, 828], rel=0.04)
    assert found.verdict is Verdict.UNCONFIRMED
    assert found.interval is not None
    assert found.interval[0] > 50
    little = chain.judged_training(STEPS[1], STEPS[2])
    assert little is not None
    assert (little.verdict, little.interval is None) == (Verdict.NOT_ENOUGH_DATA, False)


def test_neptune_saw_the_same(tmp_path: Path) -> None:
    """Zeros that Neptune's client drops are put back at ticks at which the GPU was idle or between two batches."""
    _unpack("neptune", tmp_path)
    found = {recording.run.name: recording for recording in gpureport.read(tmp_path / "neptune" / ".neptune")}
    assert sorted(found) == sorted(STEPS)
    for step, recording in found.items():
        times, values = series(recording, "gpu_utilization_ratio")
        exact, busy = series(read(f"training_steps_0p1s/{step}"), "gpu_utilization_ratio")
        for time, value in zip(times, values, strict=True):
            near = busy[abs(exact - time) < 1.3]
            assert near.min() - 0.02 <= value <= near.max() + 0.02
        # the client takes a tick every 10 s, and one where it begins and ends
        apart = [round(later - earlier) for earlier, later in pairwise(times.tolist())]
        assert set(apart[1:-1]) == {10}, apart
        (host,) = [each for each in recording.run.devices if each.id == HOST]
        assert len(recording.rows_of(host.id))


def test_what_forks_do_to_a_log_of_neptune(tmp_path: Path) -> None:
    """Loader workers write what was buffered again, and each sets off a tick: neither counts, and both are said."""
    _unpack("neptune", tmp_path)
    for recording in gpureport.read(tmp_path / "neptune" / ".neptune"):
        workers, quality = int(dict(recording.run.params)["parameters/workers"]), recording.run.quality
        (forked,) = quality.rejected
        assert forked.reason == "a forked process had the monitor start again"
        ticks = forked.rows / 4  # CPU, memory of host and GPU, power; utilisation where it was not 0
        assert workers / 2 <= ticks <= 1.25 * workers
        assert any("operations that forked processes wrote again count once" in note for note in quality.notes)
        assert quality.accounted


def read_mlflow(folder: Path, step: str) -> Recording:
    """Return the run of a step in the unpacked store."""
    (recording,) = gpureport.read(folder / "mlruns", tracker={"runs": step})
    return recording


def _unpack(name: str, folder: Path) -> None:
    unpack(RECORDED / "training_steps" / f"{name}.tar.gz", folder)


def test_no_identity_is_left() -> None:
    """Recorded logs hold the replaced uuid and no other, and no path of a home or a temporary folder."""
    for path in sorted(RECORDED.rglob("*.gz")):
        text = gzip.decompress(path.read_bytes())
        assert b"/tmp/" not in text
        assert b"/root/" not in text
        at = text.find(b"GPU-")
        assert at < 0 or text[at:].startswith((b"GPU-00000000-0000-0000-0000-000000000001", b"GPU-h", b"GPU-Util"))
