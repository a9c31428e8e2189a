"""What holds of any analysis: evidence meets its limits, and a run told in two ways is judged alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gpureport
from gpureport import testing
from gpureport.testing import (
    START,
    Analysis,
    Finding,
    Floats,
    Recording,
    Run,
    Severity,
    analyze,
    findings_of,
    recording,
    steps,
)
from tests.support.logs import SAMPLES
from tests.support.tables import read_table

FOLDERS = sorted(path.parent.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("nvidia-smi.csv"))
BOUNDED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"
BUSY = st.sampled_from([97.0, 88.0, 79.0])
STRETCHES = st.lists(
    st.tuples(st.one_of(BUSY, st.sampled_from([0.0, 3.0, 30.0, 55.0])), st.integers(8, 150)), min_size=3, max_size=9
)

Parts = list[tuple[float, int]]
PARTS = st.builds(lambda first, middle, last: [(first, 90), *middle, (last, 90)], BUSY, STRETCHES, BUSY)
"""Utilisation of a GPU that works, rests and does little by turns, at work at both ends: per cent and seconds."""


def run_of(*gpus: Parts) -> Recording:
    drawn = [testing.steps(*parts) for parts in gpus]
    length = min(map(len, drawn))
    util = np.array([one[:length] for one in drawn])
    return testing.recording(util=util, power=60 + 3 * util, memory=30, temperature=60, clock=1400, clock_max=1410)


@cache
def sample(folder: str) -> Recording:
    host = SAMPLES / folder / "host.csv"
    (run,) = gpureport.read(SAMPLES / folder / "nvidia-smi.csv", host=[host] if host.exists() else [])
    return run


def fact(one: Finding, named: dict[str, str] | None = None, shift: int = 0) -> tuple[Any, ...]:
    devices = tuple(sorted((named or {}).get(device, device) for device in one.devices))
    lost = None if one.lost_gpu_seconds is None else round(one.lost_gpu_seconds, 6)
    times = [(part.start + shift, part.end + shift) for part in one.intervals]
    return one.kind, devices, one.severity, one.confidence, one.cause, times, lost


def facts(analysis: Analysis, named: dict[str, str] | None = None, shift: int = 0) -> list[tuple[Any, ...]]:
    return sorted((fact(one, named, shift) for one in analysis.findings), key=repr)


def stamps(series: pa.Table) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return series.column("timestamp").cast(pa.int64()).to_numpy()


def kept(run: Recording, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]", described: Run) -> Recording:
    series = run.series.filter(pa.array(rows))
    ended = min(int(stamps(series).max()), described.ended)
    return replace(run, run=replace(described, ended=ended)).with_series(series)


def every_second(run: Recording) -> Recording:
    """Return a recording with every second row of each device, as one taken at twice the interval holds."""
    names = np.array(run.series.column("device").to_pylist())
    rows = np.zeros(len(names), dtype=np.bool_)
    for name in set(names.tolist()):
        rows[np.flatnonzero(names == name)[::2]] = True
    interval = run.run.interval
    return kept(run, rows, replace(run.run, interval=None if interval is None else 2 * interval))


def without(run: Recording, start: float, end: float) -> Recording:
    """Return a recording that holds no rows of a part of its time, given in shares of it."""
    first, stop = (run.run.started + share * (run.run.ended - run.run.started) for share in (start, end))
    return kept(run, (stamps(run.series) < first) | (stamps(run.series) >= stop), run.run)


def reordered(run: Recording, order: Sequence[int]) -> Recording:
    """Return a recording in which the GPU at each place of `order` has the place's number."""
    named = {f"gpu:{old}": f"gpu:{new}" for new, old in enumerate(order)}
    devices = [
        replace(one, id=named[one.id], index=int(named[one.id][4:])) if one.id in named else one
        for one in run.run.devices
    ]
    devices.sort(key=lambda one: (one.index is None, one.index or 0))
    names = [named.get(str(name), str(name)) for name in run.series.column("device").to_pylist()]
    rank = {one.id: place for place, one in enumerate(devices)}
    place = run.series.schema.get_field_index("device")
    series = run.series.set_column(place, "device", pa.array(names, pa.string()).dictionary_encode())
    by_device = np.argsort([rank[name] for name in names], kind="stable")
    return replace(run, run=replace(run.run, devices=tuple(devices))).with_series(series.take(by_device))


def same_in_halves(folder: Path, lines: list[str], share: float) -> None:
    header, *rows = lines
    cut = round(share * len(rows))
    folder.mkdir(exist_ok=True)
    whole = folder.with_suffix(".csv")
    for path, part in ((whole, rows), (folder / "a.csv", rows[:cut]), (folder / "b.csv", rows[cut:])):
        path.write_text("\n".join([header, *part]) + "\n")
    (one,), (joined,) = gpureport.read(whole), gpureport.read(folder, as_one_run=True)
    assert joined.series.equals(one.series)
    first, second = analyze(one), analyze(joined)
    assert replace(second, run=first.run) == first


def same_problems(run: Recording) -> None:
    """Check that no problem comes or goes with half of the samples, unless the analysis says it cannot be seen."""
    often, seldom = analyze(run), analyze(every_second(run))
    before, after = problems(often), problems(seldom)
    said = {entry.kind for entry in seldom.not_judged}
    unseen = "short_gaps" in seldom.limit_codes
    gone = {each for each in before - after if each[0] not in said and not (unseen and is_brief(often, each, run))}
    assert (gone, after - before) == (set(), set())


def problems(analysis: Analysis) -> set[tuple[str, tuple[str, ...]]]:
    return {(one.kind, one.devices) for one in analysis.findings if one.severity is Severity.PROBLEM}


def is_brief(analysis: Analysis, problem: tuple[str, tuple[str, ...]], run: Recording) -> bool:
    """Return whether a problem is made of stretches that are too short for half of the samples."""
    least = 4 * (run.run.interval or 0.0) + 1
    same = [one for one in analysis.findings if (one.kind, one.devices) == problem]
    return all(part.seconds < least for one in same for part in one.intervals)


def same_in_order(run: Recording, order: list[int]) -> None:
    named = {f"gpu:{old}": f"gpu:{new}" for new, old in enumerate(order)}
    first, second = analyze(run), analyze(reordered(run, order))
    assert facts(second) == facts(first, named)
    times = {named[each.device]: each.seconds for each in first.gpu_time}
    assert {each.device: each.seconds for each in second.gpu_time} == times
    unjudged = {(each.kind, named.get(each.device or "", each.device)) for each in first.not_judged}
    assert {(each.kind, each.device) for each in second.not_judged} == unjudged


def no_more_idle(run: Recording, start: float, end: float) -> None:
    """Check that a log gap adds no idle time.

    Edges of gaps lie where utilisation passes half of what the busy samples of the whole log show, at most the second
    a reading covers and half an interval from the last idle sample.
    """
    whole, torn = analyze(run), analyze(without(run, start, end))
    before, after = idle(whole), idle(torn)
    edges = 1e-6 + len(findings_of(whole, "idle_gap")) * (2.0 + (whole.run.interval or 0.0))
    room = {name: 1e-6 if name.startswith("statistics") else edges for name in after}
    assert {name: seconds for name, seconds in after.items() if seconds > before[name] + room[name]} == {}


def idle(analysis: Analysis) -> dict[str, float]:
    """Return the idle seconds of each GPU as its statistics, its gaps and its share of GPU time say."""
    seconds = {f"statistics of {each.device}": each.idle_seconds or 0.0 for each in analysis.statistics}
    for each in analysis.gpu_time:
        gaps = [one for one in findings_of(analysis, "idle_gap") if each.device in one.devices]
        seconds[f"gaps of {each.device}"] = sum(part.seconds for one in gaps for part in one.intervals)
        shares = dict(each.seconds)
        seconds[f"time of {each.device}"] = sum(shares[name] for name in ("idle", "startup", "tail"))
    return seconds


@pytest.mark.slow
@BOUNDED
@given(one=PARTS, other=PARTS, share=st.floats(0.1, 0.9))
def test_a_log_in_two_halves_is_the_log(tmp_path: Path, one: Parts, other: Parts, share: float) -> None:
    table = run_of(one, other).series.to_pydict()
    moments = np.array(stamps(run_of(one, other).series), dtype="datetime64[us]").astype("datetime64[ms]")
    fields = ("device", "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts")
    rows = sorted(zip(moments.tolist(), *(table[name] for name in fields), strict=True))
    lines = [
        f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03}, {device[4:]}, NVIDIA A100-SXM4-80GB, "
        f"{100 * used:.0f} %, {held / 2**20:.0f} MiB, 81920 MiB, {watts:.2f} W"
        for moment, device, used, held, watts in rows
    ]
    same_in_halves(tmp_path / "logs", [HEADER, *lines], share)


@BOUNDED
@given(parts=PARTS)
def test_half_of_the_samples_see_the_same_problems(parts: Parts) -> None:
    resting = sum(length for level, length in parts if level < 10) / sum(length for _, length in parts)
    # at a fifth of the job gaps become a problem, at 10 s a rest becomes one; edges are known to a part of an interval
    assume(abs(resting - 0.2) > 0.03 and all(level >= 10 or abs(length - 10) > 3 for level, length in parts))
    same_problems(run_of(parts))


@BOUNDED
@given(gpus=st.tuples(PARTS, PARTS, PARTS), order=st.permutations(range(3)))
def test_gpus_in_another_order_have_the_same_findings(gpus: tuple[Parts, ...], order: list[int]) -> None:
    same_in_order(run_of(*gpus), order)


@BOUNDED
@given(parts=PARTS, start=st.floats(0.1, 0.8), length=st.floats(0.08, 0.4))
def test_a_log_gap_adds_no_idle_time(parts: Parts, start: float, length: float) -> None:
    no_more_idle(run_of(parts), start, min(start + length, 0.95))


@BOUNDED
@given(gpus=st.tuples(PARTS, PARTS), days=st.integers(-9000, 9000))
def test_a_log_of_another_day_has_the_same_findings(gpus: tuple[Parts, ...], days: int) -> None:
    run, shift = run_of(*gpus), days * 86_400_000_000
    place = run.series.schema.get_field_index("timestamp")
    moved = run.series.set_column(place, "timestamp", pa.array(stamps(run.series) + shift, pa.timestamp("us")))
    described = replace(run.run, started=run.run.started + shift, ended=run.run.ended + shift)
    first, second = analyze(run), analyze(replace(run, run=described).with_series(moved))
    assert START + shift == second.run.started
    for one, other in zip(first.gpu_time, second.gpu_time, strict=True):
        assert dict(other.seconds) == pytest.approx(dict(one.seconds), abs=1e-4)
    for before, after in zip(facts(first, shift=shift), facts(second), strict=True):
        # edges between samples are computed in floating point
        *said, times, lost = before
        assert after == (*said, [pytest.approx(part, abs=2) for part in times], pytest.approx(lost, abs=1e-5))


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_holds_of_a_sample_log(folder: str, tmp_path: Path) -> None:
    run, lines = sample(folder), (SAMPLES / folder / "nvidia-smi.csv").read_text().splitlines()
    same_in_halves(tmp_path / "logs", lines, 0.31)
    same_problems(run)
    for order in list(permutations(range(len(run.run.gpus))))[1:4]:
        same_in_order(run, list(order))
    for start in (0.15, 0.4, 0.66):
        no_more_idle(run, start, start + 0.2)


def noise(count: int, seed: int) -> Floats:
    return np.random.default_rng(seed).integers(90, 99, count).astype(np.float64)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(60, 160)), min_size=1, max_size=6),
    st.integers(2, 12),
    st.integers(0, 99),
)
def test_repeating_rows_changes_nothing(parts: list[tuple[bool, int]], times: int, seed: int) -> None:
    whole = [(True, 100), *parts, (True, 100)]
    util = np.concatenate(
        [noise(count, seed + place) if works else np.zeros(count) for place, (works, count) in enumerate(whole)]
    )
    power = 100 + util + noise(len(util), seed)
    one, many = (
        analyze(testing.recording(every=0.2 / count, util=util.repeat(count), power=power.repeat(count), model=None))
        for count in (1, times)
    )
    ordered = [sorted(each.findings, key=lambda finding: (finding.kind, finding.intervals)) for each in (one, many)]
    for before, after in zip(*ordered, strict=True):
        assert (before.fingerprint, before.confidence) == (after.fingerprint, after.confidence)
        edges = [(part.start, part.end) for part in before.intervals]
        moved = [(part.start, part.end) for part in after.intervals]
        assert moved == [pytest.approx(pair, abs=300_000) for pair in edges]


_RELATIONS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_LEVELS = {
    name: [float(level) for level in levels.split()]
    for name, levels in read_table(Path(__file__).with_name("levels.tsv"))
}
_BITS = {name for name, levels in _LEVELS.items() if levels == [0, 1]}
_HOST = ("core", "iowait", "host_memory")


def contradictions(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    """Yield every value with a limit that it does not meet, or without a word on how it stands to it."""
    for finding in analysis.findings:
        for one in finding.evidence:
            if one.threshold is None:
                assert not one.relation
            elif one.relation not in _RELATIONS or not _RELATIONS[one.relation](one.observed, one.threshold.value):
                yield finding.kind, one.metric, one.statistic, one.observed, one.relation, one.threshold.value


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_in_random_recordings(seed: int) -> None:
    chance = np.random.default_rng(seed)
    assert [each for _ in range(25) for each in contradictions(analyze(_random(chance)))] == []


def _random(chance: np.random.Generator) -> Recording:
    rows, gpus, every = (int(chance.integers(*ends)) for ends in ((60, 700), (1, 4), (1, 4)))
    drawn = ["util", *(name for name in _LEVELS if name not in {"util", "cpu", *_HOST} and chance.random() < 0.5)]
    series: dict[str, Any] = {name: np.array([_series(name, rows, chance) for _ in range(gpus)]) for name in drawn}
    known = {"power_limit": 400, "clock_max": 1410, "default_limit": 500, "link_generation": 4, "link_width": 16}
    series |= {name: np.array(value) for name, value in known.items() if chance.random() < 0.5}
    if chance.random() < 0.3:
        return recording(every=every, **series)
    host = {name: _series(name, rows * every, chance) for name in _HOST if chance.random() < 0.6}
    return recording(every=every, cpu=_series("cpu", rows * every, chance), host=host, **series)


def _series(name: str, rows: int, chance: np.random.Generator) -> Floats:
    parts = [(float(chance.choice(_LEVELS[name])), int(length)) for length in chance.integers(3, 150, rows // 3 + 1)]
    values = steps(*parts)[:rows]
    noise = 0.0 if name in _BITS else float(chance.choice([0, 0, 1, 5]))
    return np.clip(values + chance.normal(0, noise, rows), 0, 100 if max(_LEVELS[name]) <= 100 else None)
