"""What the samples are, and what a real machine wrote against what was measured beside it."""

import gzip
import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpureport
from gpureport.testing import Analysis, Comparison, Floats, Recording, Verdict, findings_of
from tests.samples.archives import unpack
from tests.support.logs import SAMPLES
from tests.support.runs import STEPS

RECORDED = SAMPLES / "recorded"
FACTS = Path(__file__).parents[1] / "golden" / "samples"


def test_every_kind_has_a_sample_of_its_name() -> None:
    reference = (SAMPLES.parent / "docs" / "reference" / "kinds.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^## (\w+)$", reference, re.MULTILINE)
    assert len(kinds) > 30
    facts = {kind: [*FACTS.glob(f"{kind}.txt"), *FACTS.glob(f"{kind}/*.txt")] for kind in kinds}
    lacking = [
        kind for kind, files in facts.items() if not any(f"finding {kind} " in path.read_text() for path in files)
    ]
    assert lacking == []


def test_samples_say_what_they_are_and_stay_small() -> None:
    readmes = {path.parent.name: path.read_text(encoding="utf-8") for path in SAMPLES.glob("*/README.md")}
    assert readmes.keys() == {path.name for path in SAMPLES.iterdir()}
    assert "recorded on" in readmes.pop("recorded")
    assert [name for name, text in readmes.items() if "generated" not in text] == []
    # Generated ones under one megabyte and recorded ones under 420 kB, since every wheel carries them.
    sizes = {path: path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()}
    recorded = sum(size for path, size in sizes.items() if RECORDED in path.parents)
    assert sum(sizes.values()) - recorded < 1_000_000
    assert recorded < 420_000
    for path in sorted(RECORDED.rglob("*.gz")):
        text = gzip.decompress(path.read_bytes())
        assert b"/tmp/" not in text
        assert b"/root/" not in text
        at = text.find(b"GPU-")
        assert at < 0 or text[at:].startswith((b"GPU-00000000-0000-0000-0000-000000000001", b"GPU-h", b"GPU-Util"))


WATCHED = {"query": 1.0, "query-0p1s": 0.1, "dmon": 1.0, "dmon-gpm": 1.0, "table": 1.0, "nvitop": 1.0}
"""Recorders of the phases that sample finely enough to show every gap, and how many seconds apart they do."""
RUNS = [f"{step}/{repetition}" for step in STEPS for repetition in (1, 2, 3)]
STORES = {"mlflow": ("mlruns", "mlruns"), "neptune": ("neptune", "neptune/.neptune")}
"""Archive of each tracker, and its store within."""
RATE, PER_WORK = "training_rate_hertz", "gpu_seconds_per_1000_work"
UTILISATION, POWER, MEMORY = "gpu_utilization_ratio", "gpu_power_watts", "gpu_memory_used_bytes"
SECOND = 1e6


@cache
def read(path: str, host: str = "") -> Recording:
    (recording,) = gpureport.read(RECORDED / path, host=RECORDED / host if host else ())
    return recording


@cache
def analyzed(path: str, host: str = "") -> Analysis:
    return gpureport.analyze(read(path, host))


@cache
def tracked(tracker: str) -> dict[str, Recording]:
    archive, store = STORES[tracker]
    with TemporaryDirectory() as folder:
        unpack(RECORDED / "training_steps" / f"{archive}.tar.gz", Path(folder))
        recordings = gpureport.read(Path(folder) / store)
    return {each.run.name: each for each in sorted(recordings, key=lambda each: each.run.name)}


@cache
def compared(tracker: str) -> Comparison:
    return gpureport.compare([*tracked(tracker).values()])


def truth(folder: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((RECORDED / folder / "truth.json").read_text(encoding="utf-8"))
    return known


def loop_seconds(step: str) -> float:
    return float(truth(f"training_steps/{step}/1")["seconds"])


def true_spans(kind: str) -> list[tuple[float, float]]:
    return [(each["start"], each["end"]) for each in truth("phases")["events"] if each["kind"] == kind]


def spans(analysis: Analysis, kind: str) -> list[tuple[float, float]]:
    return sorted(
        (each.start / SECOND, each.end / SECOND) for one in findings_of(analysis, kind) for each in one.intervals
    )


def series(recording: Recording, name: str) -> tuple[Floats, Floats]:
    """Return the times of the GPU in seconds and a metric of it, where it has a value."""
    table = recording.rows_of("gpu:0")
    values = table.column(name).cast(pa.float64()).to_numpy()
    times = table.column("timestamp").cast(pa.int64()).to_numpy() / SECOND
    return times[~np.isnan(values)], values[~np.isnan(values)]


def figures(tracker: str, metric: str) -> dict[str, float | None]:
    return {step.label: step.value(metric) for step in compared(tracker).steps}


def test_gaps_and_a_full_machine_are_found() -> None:
    for recorder, every in WATCHED.items():
        (path,) = (RECORDED / "phases").glob(f"{recorder}.*")
        for kind in ("idle_gap", "startup_idle", "tail_idle"):
            known = [pytest.approx(span, abs=2 * every + 0.6) for span in true_spans(kind)]
            assert known == spans(analyzed(f"phases/{path.name}"), kind), (recorder, kind)
    (wait,) = true_spans("cpu_bound")
    for log in ("query.csv.gz", "query-0p1s.csv.gz", "dmon.txt.gz", "nvitop.csv.gz"):
        analysis = analyzed(f"phases/{log}", "" if log == "nvitop.csv.gz" else "phases/host.csv.gz")
        assert spans(analysis, "cpu_bound") == [pytest.approx(wait, abs=2.6)], log
        blamed = {finding.kind for finding in analysis.findings if finding.severity != "info"}
        assert blamed == {"cpu_bound", "idle_gap", "tail_idle"}, log


@pytest.mark.parametrize("run", RUNS)
def test_a_training_run_against_what_it_measured(run: str) -> None:
    folder = f"training_steps/{run}"
    analysis, known = analyzed(folder), truth(folder)
    times, busy = series(read(folder), UTILISATION)
    working = known["seconds"] - known["data_wait_seconds"] - sum(end - start for start, end in known["saves"])
    # kernels leave the GPU idle between them, and the first step of a process loads libraries
    assert 0.68 * working < np.trapezoid(busy, times) < 1.0 * working
    ((_, began),) = spans(analysis, "startup_idle")
    assert -0.5 < began - known["start"] - known["first_wait_seconds"] < 4
    assert 2**29 < series(read(folder), MEMORY)[1].max() - known["peak_reserved"] < 2**30
    assert findings_of(analysis, "tail_idle") == []
    # two workers cannot keep up: what was lost is what the loop waited, and nowhere else
    lost = [finding.lost_gpu_seconds for finding in findings_of(analysis, "cpu_bound_single")]
    assert lost == ([pytest.approx(known["data_wait_seconds"], rel=0.2)] if run.startswith("1-") else [])


def test_counters_settle_what_utilisation_cannot_and_a_second_tells_what_a_tenth_does() -> None:
    ((start, end),) = true_spans("hollow_util")
    active = {}
    for name in (UTILISATION, "gpu_sm_active_ratio", "gpu_tensor_active_ratio", "gpu_dram_active_ratio"):
        times, values = series(read("phases/dmon-gpm.txt.gz"), name)
        active[name] = values[(times > start + 4) & (times < end - 4)].mean()
    assert 0.25 < active.pop(UTILISATION) < 0.42
    assert set(active.values()) == {0.0}
    metrics = ((UTILISATION, UTILISATION, 0.12), (POWER, "gpu_power_instant_watts", 0.05))
    for step in STEPS:
        for one, other, allowed in metrics:
            slow = series(read(f"training_steps/{step}/1"), one)
            fast = series(read(f"training_steps_0p1s/{step}"), other)
            expected = pytest.approx(np.trapezoid(fast[1], fast[0]), rel=allowed)
            assert np.trapezoid(slow[1], slow[0]) == expected, (step, one)


def test_mlflow_saw_the_same() -> None:
    for step, recording in tracked("mlflow").items():
        known = truth(f"training_steps/{step}/1")
        begin, end = recording.run.started / SECOND, recording.run.ended / SECOND
        assert known["start"] - 2 < begin
        assert end < known["end"] + 2
        assert end - begin == pytest.approx(known["seconds"], abs=2.5)
        times, busy = series(read(f"training_steps/{step}/1"), UTILISATION)
        inside = (times > begin) & (times < end)
        assert series(recording, UTILISATION)[1].mean() == pytest.approx(busy[inside].mean(), abs=0.05)
        assert dict(recording.run.params)["workers"] == str(known["workers"])


def test_neptune_saw_the_same() -> None:
    assert [*tracked("neptune")] == [*STEPS]
    for step, recording in tracked("neptune").items():
        exact, busy = series(read(f"training_steps_0p1s/{step}"), UTILISATION)
        times, values = series(recording, UTILISATION)
        for time, value in zip(times, values, strict=True):
            near = busy[abs(exact - time) < 1.3]
            assert near.min() - 0.02 <= value <= near.max() + 0.02, step
        # the client takes a tick every 10 s, and one where it begins and ends
        assert {round(gap) for gap in np.diff(times)[1:-1]} == {10}, step
        assert len(recording.rows_of("host"))
        # what forks do to its log
        workers, quality = int(dict(recording.run.params)["parameters/workers"]), recording.run.quality
        (forked,) = quality.rejected
        ticks = forked.rows / 4  # CPU, memory of host and GPU, power; utilisation where it was not 0
        assert workers / 2 <= ticks <= 1.25 * workers, step
        assert quality.notes
        assert quality.accounted


@pytest.mark.parametrize("tracker", STORES)
def test_what_a_tracker_shows_of_the_chain(tracker: str) -> None:
    compare, seconds = compared(tracker), {step: loop_seconds(step) for step in STEPS}
    assert figures(tracker, RATE) == {step: pytest.approx(32_768 / seconds[step], rel=0.03) for step in STEPS}
    assert {step.work_unit for step in compare.steps} == {"samples"}
    # the whole job of a tracker is what its monitor sampled, in Neptune every 10 s of 32 to 97 s
    took = {step: value or 0.0 for step, value in figures(tracker, PER_WORK).items()}
    gains = {step: took[STEPS[0]] / took[step] for step in STEPS}
    assert gains == {step: pytest.approx(seconds[STEPS[0]] / seconds[step], rel=0.06) for step in STEPS}
    for delta in (compare.judged(*STEPS[:2]), compare.judged_training(*STEPS[:2])):
        assert delta is not None
        assert delta.verdict is Verdict.UNCONFIRMED
    pairs = [*pairwise(STEPS), *((STEPS[0], step) for step in STEPS[1:])]
    verdicts = {delta.verdict for pair in pairs for delta in compare.between(*pair)}
    assert verdicts <= {Verdict.UNCONFIRMED, Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}


def test_trackers_tell_the_same_rate_and_work() -> None:
    # Within 1 %, though they kept different series of the same runs.
    assert figures("neptune", RATE) == pytest.approx(figures("mlflow", RATE), rel=0.01)
    # Of 32,768 images a run: all but what was not logged, up to one point of a few batches, or not recorded.
    for step in compared("mlflow").steps:
        (run,) = step.runs
        work = run.analysis.run.work
        assert work is not None
        assert work.amount == pytest.approx(32_768 * run.analysis.seconds / loop_seconds(step.label), rel=0.035)
        assert run.throughput is not None
        usual = float(np.median(run.throughput.work.amounts))
        assert 32_768 - usual < run.throughput.work.amount < 32_768 * 1.002


def test_a_rate_that_more_than_doubled_is_seen_in_forty_seconds() -> None:
    """One run each, from 341 to 828 images a second by MLflow: its size is known. A tenth may be chance."""
    large, little = (compared("mlflow").judged_training(*pair) for pair in (STEPS[:2], STEPS[1:3]))
    assert large is not None
    assert [large.before, large.after] == pytest.approx([341, 828], rel=0.04)
    assert large.interval is not None
    assert large.interval[0] > 50
    assert little is not None
    assert (little.verdict, little.interval is None) == (Verdict.NOT_ENOUGH_DATA, False)
