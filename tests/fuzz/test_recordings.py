"""Every valid recording yields an analysis, pages, checks and comparisons, or an error of the project.

`GPUREPORT_FUZZ=1000` makes so many recordings, beginning with the number in `GPUREPORT_FUZZ_FIRST`.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn
from xml.etree import ElementTree as ET

import numpy as np

from gpureport import testing
from gpureport.errors import GpureportError
from gpureport.testing import GIB, Analysis, Recording, analyze, build_page, check, compare, recording
from tests.fuzz.test_fuzz import FIRST, TEXTS

RULES = (
    "problem",
    "idle_ratio <= 5 %",
    "gpu_utilization_ratio p50 >= 80 %",
    "no thermal_throttle",
    "duration >= 10 min",
)
MODELS = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Tesla T4", "A card of tomorrow", None)
INTERVALS = (0.005, 0.1, 1.0, 1.0, 1.0, 2.0, 10.0, 60.0, 600.0)
HOLES = (7.0, 60.0, 3_700.0, 86_400.0, 6e8)
"""Seconds without samples, up to twenty years."""
COLUMNS = {
    **dict.fromkeys(("util", "memory_controller", "sm_active", "tensor_active", "dram_active", "temperature"), 100.0),
    **dict.fromkeys(("power", "power_limit", "default_limit"), 700.0),
    **dict.fromkeys(("memory", "received", "sent"), 60.0),
    **dict.fromkeys(("clock", "clock_max", "energy"), 1980.0),
    **dict.fromkeys(("link_generation", "link_width", "corrected", "uncorrected"), 5.0),
    **dict.fromkeys(("unknown_bits", "hw_thermal_slowdown", "sw_power_cap"), 1.0),
}
"""Columns, and what they hold at most where nothing is odd."""
HOST = {"core": 100.0, "iowait": 100.0, "cores_of_process": 8.0, "cores_of_job": 64.0, "host_memory": 100.0}
TRAINING = ("loss", "val_loss", "val_acc", "samples_per_second", "step_time", "epoch_time", "x y")
OFFENDED = (24,)
"""Recordings that once ended otherwise."""
ODD = (0.0, -1.0, 1e-300, 1e6, np.nan, np.nan)


def make(number: int) -> Recording:
    """Return the recording of a number; two in a row hold the same columns."""
    shape, chance = np.random.default_rng([number // 2, 7]), np.random.default_rng([number, 11])
    gpus, rows = int(shape.integers(1, 5)), int(chance.integers(2, 900))
    every = float(shape.choice(INTERVALS))
    times = np.arange(rows) * every
    if chance.random() < 0.4:
        times = np.maximum.accumulate(times + chance.normal(0, every / 3, rows)) + np.cumsum(
            (chance.random(rows) < 0.01) * chance.choice(HOLES)
        )
    names = [name for name in COLUMNS if name == "util" or shape.random() < 0.5]
    series: dict[str, Any] = {name: [_series(chance, rows, COLUMNS[name]) for _ in range(gpus)] for name in names}
    host = {name: _series(chance, rows, HOST[name]) for name in HOST if shape.random() < 0.4}
    made = recording(
        every=every,
        times=times,
        cpu=_series(chance, rows, 100.0) if host else None,
        cpu_every=every,
        host=host,
        model=MODELS[shape.integers(len(MODELS))],
        memory_total=None if shape.random() < 0.3 else 80 * GIB,
        **series,
    )
    points = [(float(at), str(chance.choice(TRAINING)), float(chance.choice([*ODD[:4], 0.5]))) for at in times[::7]]
    made = testing.with_training(made, points) if chance.random() < 0.5 else made
    # another run of the same name is a repetition
    run = replace(
        made.run, id=f"{number:08x}", name=f"run {number % 2}", timezone=(None, "UTC", "Europe/Berlin")[number % 3]
    )
    return replace(made, run=run)


def _series(chance: np.random.Generator, rows: int, most: float) -> testing.Floats:
    """Return a series that works and rests, is constant, or anything; some of it is odd or missing."""
    busy = np.repeat(chance.random(rows // 9 + 1) < 0.7, 9)[:rows]
    values = [busy * most * 0.9, np.full(rows, most), chance.uniform(0, most, rows)][chance.integers(3)]
    odd = chance.random(rows) < chance.choice([0, 0, 0.05])
    return np.where(odd, chance.choice(ODD), values)


def shares(analysis: Analysis) -> Iterator[tuple[str, float]]:
    if analysis.coverage_ratio is not None:
        yield "coverage", analysis.coverage_ratio
    for each in analysis.statistics:
        for summary in each.metrics:
            yield from ((f"{each.device} {summary.metric} below {limit}", share) for limit, share in summary.below)


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} in JSON")


def hold(number: int) -> None:
    """Hold what is said of a recording against what must hold of any; one in two is compared with the one before."""
    made = make(number)
    analysis = analyze(made)
    whole = (made.run.ended - made.run.started) / 1e6
    for time in analysis.gpu_time:
        seconds = [amount for _, amount in time.seconds]
        assert min(seconds) >= 0, time
        assert abs(sum(seconds) - whole) <= max(1e-6, 1e-12 * whole) * len(seconds), (time, whole)
    assert not {name: share for name, share in shares(analysis) if not 0 <= share <= 1 + 1e-6}
    forms = ("json", "md", "txt") if number % 5 else ("json", "md", "txt", "html", "svg")
    for form in forms:
        page = build_page(analysis, form)
        assert page
        if form == "json":
            json.loads(page, parse_constant=refuse)
        if form == "svg":
            ET.fromstring(page)  # noqa: S314 - our own
    check(RULES, analysis)
    if number % 2:
        before = make(number - 1)
        check(["change gpu_utilization_ratio >= -5 points"], analysis, baseline=[before])
        build_page(compare({"a": before, "b": made}), "txt")


def test_random_recordings_end_in_results() -> None:
    for number in (*OFFENDED, *range(FIRST, FIRST + 4 * TEXTS)):
        try:
            hold(number)
        except GpureportError:
            continue
        except Exception as error:
            error.add_note(f"recording {number}")
            raise
