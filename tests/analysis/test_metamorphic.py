"""What must hold between the analyses of one run told in two ways."""

import shutil
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gpureport
from gpureport import testing
from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.testing import Analysis, Finding, Recording, Severity, analyze
from tests.analysis.transformations import every_second, reordered, without
from tests.importers.written_logs import stamp

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FOLDERS = sorted(path.parent.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("nvidia-smi.csv"))
BOUNDED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"
_LEAST_HOLE = 0.08
_MARGIN = 0.03
_BUSY = st.sampled_from([97.0, 88.0, 79.0])
_STRETCHES = st.lists(
    st.tuples(st.one_of(_BUSY, st.sampled_from([0.0, 3.0, 30.0, 55.0])), st.integers(8, 150)), min_size=3, max_size=9
)


Parts = list[tuple[float, int]]
PARTS = st.builds(lambda first, middle, last: [(first, 90), *middle, (last, 90)], _BUSY, _STRETCHES, _BUSY)
"""Utilisation of a GPU that works, rests and does little by turns, at work at both ends: per cent and seconds."""


def run_of(*gpus: Parts) -> Recording:
    """Return a run of some GPUs sampled each second, with power that follows."""
    drawn = [testing.steps(*parts) for parts in gpus]
    length = min(map(len, drawn))
    util = np.array([one[:length] for one in drawn])
    return testing.recording(util=util, power=60 + 3 * util, memory=30, temperature=60, clock=1400, clock_max=1410)


@cache
def sample(folder: str) -> Recording:
    """Return the recording of a sample log."""
    host = SAMPLES / folder / "host.csv"
    (recording,) = gpureport.read(SAMPLES / folder / "nvidia-smi.csv", host=[host] if host.exists() else [])
    return recording


def without_run(analysis: Analysis, run: Analysis) -> Analysis:
    """Return an analysis with the run of another, whose sources are others."""
    return replace(analysis, run=run.run)


@pytest.mark.slow
@BOUNDED
@given(one=PARTS, other=PARTS, share=st.floats(0.1, 0.9))
def test_a_log_in_two_halves_is_the_log(tmp_path: Path, one: Parts, other: Parts, share: float) -> None:
    """Joined with `as_one_run`, two parts of a log give what the whole gives."""
    lines = [_HEADER, *_lines(run_of(one, other))]
    _same_in_halves(tmp_path / "logs", lines, share)


@pytest.mark.parametrize("share", [0.31, 0.5, 0.77])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_log_in_two_halves_is_the_log(tmp_path: Path, folder: str, share: float) -> None:
    """The same of logs with every column."""
    _same_in_halves(tmp_path / "logs", (SAMPLES / folder / "nvidia-smi.csv").read_text().splitlines(), share)


@BOUNDED
@given(parts=PARTS)
def test_half_of_the_samples_see_the_same_problems(parts: Parts) -> None:
    """No problem comes or goes with the sampling, unless the analysis says that it cannot be seen."""
    resting = sum(length for level, length in parts if level < 10) / sum(length for _, length in parts)
    # at a fifth of the job idle gaps become a problem, and edges are known to a part of an interval
    assume(abs(resting - IdleGap().problem.value) > _MARGIN)
    _same_problems(run_of(parts))


@pytest.mark.parametrize("folder", FOLDERS)
def test_half_of_the_samples_of_a_sample_log_see_the_same_problems(folder: str) -> None:
    """The same of logs with every column."""
    _same_problems(sample(folder))


@BOUNDED
@given(gpus=st.tuples(PARTS, PARTS, PARTS), order=st.permutations(range(3)))
def test_gpus_in_another_order_have_the_same_findings(gpus: tuple[Parts, ...], order: list[int]) -> None:
    """What is said of a GPU goes with it to its new number."""
    _same_in_order(run_of(*gpus), order)


@pytest.mark.parametrize("folder", FOLDERS)
def test_gpus_of_a_sample_log_in_another_order_have_the_same_findings(folder: str) -> None:
    """The same of logs with every column."""
    run = sample(folder)
    for order in list(permutations(range(len(run.run.gpus))))[:6]:
        _same_in_order(run, list(order))


@BOUNDED
@given(parts=PARTS, start=st.floats(0.1, 0.8), length=st.floats(_LEAST_HOLE, 0.4))
def test_a_log_gap_adds_no_idle_time(parts: Parts, start: float, length: float) -> None:
    """Time without samples is nobody's, whatever lies around it."""
    _no_more_idle(run_of(parts), start, min(start + length, 0.95))


@pytest.mark.parametrize("start", [0.15, 0.4, 0.66])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_log_gap_in_a_sample_log_adds_no_idle_time(folder: str, start: float) -> None:
    """The same of logs with every column."""
    _no_more_idle(sample(folder), start, start + 0.2)


def _lines(run: Recording) -> list[str]:
    table = run.series.to_pydict()
    columns = ("timestamp", "device", "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts")
    rows = zip(*(table[name] for name in columns), strict=True)
    begun = min(table["timestamp"])
    told = (
        ((moment - begun).total_seconds(), device[4:], 100 * used, held / 2**20, watts)
        for moment, device, used, held, watts in rows
    )
    return [
        f"{stamp(at)}, {gpu}, NVIDIA A100-SXM4-80GB, {used:.0f} %, {held:.0f} MiB, 81920 MiB, {watts:.2f} W"
        for at, gpu, used, held, watts in sorted(told, key=lambda row: (row[0], row[1]))
    ]


def _same_in_halves(folder: Path, lines: list[str], share: float) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    header, *rows = lines
    cut = round(share * len(rows))
    whole = folder.with_suffix(".csv")
    whole.write_text("\n".join(lines) + "\n")
    (folder / "a.csv").write_text("\n".join([header, *rows[:cut]]) + "\n")
    (folder / "b.csv").write_text("\n".join([header, *rows[cut:]]) + "\n")
    (one,), (joined,) = gpureport.read(whole), gpureport.read(folder, as_one_run=True)
    assert joined.series.equals(one.series)
    first, second = analyze(one), analyze(joined)
    assert without_run(second, first) == first


def _same_problems(run: Recording) -> None:
    often, seldom = analyze(run), analyze(every_second(run))
    before, after = _problems(often), _problems(seldom)
    said = {entry.kind for entry in seldom.not_judged}
    unseen = any("cannot be seen" in limit for limit in seldom.limits)
    assert {
        problem for problem in before - after if problem[0] not in said and not (unseen and _brief(often, problem, run))
    } == set()
    assert after - before == set()


def _problems(analysis: Analysis) -> set[tuple[str, tuple[str, ...]]]:
    return {(found.kind, found.devices) for found in analysis.findings if found.severity is Severity.PROBLEM}


def _brief(analysis: Analysis, problem: tuple[str, tuple[str, ...]], run: Recording) -> bool:
    """Return whether a problem is made of stretches that are too short for half of the samples."""
    least = 4 * (run.run.interval or 0.0) + 1
    found = [one for one in analysis.findings if (one.kind, one.devices) == problem]
    return all(part.seconds < least for one in found for part in one.intervals)


def _same_in_order(run: Recording, order: list[int]) -> None:
    named = {f"gpu:{old}": f"gpu:{new}" for new, old in enumerate(order)}
    first, second = analyze(run), analyze(reordered(run, order))
    assert _facts(second, {}) == _facts(first, named)
    assert {each.device: each.seconds for each in second.gpu_time} == {
        named[each.device]: each.seconds for each in first.gpu_time
    }
    assert {(each.kind, each.device) for each in second.not_judged} == {
        (each.kind, named.get(each.device or "", each.device)) for each in first.not_judged
    }


def _facts(analysis: Analysis, named: dict[str, str]) -> list[tuple[object, ...]]:
    return sorted((_fact(found, named) for found in analysis.findings), key=repr)


def _fact(found: Finding, named: dict[str, str]) -> tuple[object, ...]:
    devices = tuple(sorted(named.get(device, device) for device in found.devices))
    lost = None if found.lost_gpu_seconds is None else round(found.lost_gpu_seconds, 6)
    return found.kind, found.severity, found.confidence, found.cause, devices, found.intervals, lost


def _no_more_idle(run: Recording, start: float, end: float) -> None:
    whole, torn = analyze(run), analyze(without(run, start, end))
    before, after = _idle(whole), _idle(torn)
    assert {name: seconds for name, seconds in after.items() if seconds > before[name] + _edges(whole, name)} == {}


def _edges(analysis: Analysis, name: str) -> float:
    """Return how far the length of gaps may change.

    Their edges lie where utilisation passes half of what the busy samples of the whole log show, at most the second a
    reading covers and half an interval from the last idle sample.
    """
    gaps = sum(found.kind == "idle_gap" for found in analysis.findings)
    return 1e-6 if name.startswith("statistics") else 1e-6 + gaps * (2.0 + (analysis.run.interval or 0.0))


def _idle(analysis: Analysis) -> dict[str, float]:
    """Return the idle seconds of each GPU as its statistics, its gaps and its share of GPU time say."""
    idle = {f"statistics of {each.device}": each.idle_seconds or 0.0 for each in analysis.statistics}
    for device in (each.device for each in analysis.gpu_time):
        gaps = [found for found in analysis.findings if found.kind == "idle_gap" and device in found.devices]
        idle[f"gaps of {device}"] = sum(part.seconds for found in gaps for part in found.intervals)
    for each in analysis.gpu_time:
        shares = dict(each.seconds)
        idle[f"time of {each.device}"] = sum(shares[name] for name in ("idle", "startup", "tail"))
    return idle
