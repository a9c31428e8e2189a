"""How fast a run got its work done, over time, as its training metrics tell."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval
from gpureport.work_counting import FEWEST_POINTS, CountedWork, count_by_rates, count_by_steps, select_step_points

if TYPE_CHECKING:
    import pyarrow as pa

STEP_COUNTER = "step"
"""Name of the series where the step column counts the work."""

STEPS = "steps"
"""Unit of work counted by the step column of training metrics."""

SAMPLE_COUNTER = "consumed samples"
"""Name of the series in which Megatron counts its samples."""

_BESIDE_A_COUNTER = {"iteration_time", "it/s"}
"""What the text of a loop says beside the number of its step: a pause between two lines is not in it."""

_UNITS = {
    "samples": r"samples?|images?|imgs?|examples?|sequences?|seqs?|records?|frames?",
    "tokens": r"tokens?|toks?",
    STEPS: r"steps?|iterations?|iters?|its?|batch(?:es)?",
    "epochs": r"epochs?",
}
_PER_SECOND = {
    unit: re.compile(rf"(?:^|[^a-z])(?:{names})[ _.-]*(?:per|/|p)[ _.-]*s(?:ec(?:ond)?)?s?(?:$|[^a-z])")
    for unit, names in _UNITS.items()
}
_SECONDS_EACH = {
    unit: re.compile(
        rf"(?:^|[^a-z])(?:(?:{names})[ _.-]*(?:time|duration|seconds|secs?|latency)"
        rf"|(?:time|seconds|secs?|s)[ _.-]*(?:per|/)[ _.-]*(?:{names}))(?:$|[^a-z])"
    )
    for unit, names in _UNITS.items()
}
_THROUGHPUT = re.compile(r"(?:^|[^a-z])throughput(?:$|[^a-z])")
_WORDS = {
    "images": re.compile(r"images?|imgs?"),
    "examples": re.compile(r"examples?"),
    "sequences": re.compile(r"sequences?|seqs?"),
}
"""What samples are called in the name of a metric; anything else is plainly samples."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_BINS = 1000
"""Bins for each point at most: where points lie years apart, bins are longer than most points are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Work done a second.

    Attributes:
        name: training metric it was told from.
        unit: unit of work.
        width: seconds of a bin, as long as points of the metric lie apart and at least 1 s.
        start: start of the first bin, in microseconds.
        rates: mean rate in each bin; NaN where no point says anything.
        work: work done from one point to the next, the time before the first one included.
    """

    name: str
    unit: str
    width: float
    start: int
    rates: FloatArray
    work: CountedWork

    def within(self, window: Interval) -> FloatArray:
        """Return the rates of bins that lie in a stretch of time, those without left out."""
        size = self.width * 1e6
        first = max(int(np.ceil((window.start - self.start) / size)), 0)
        stop = max(int((window.end - self.start) // size), first)
        rates = self.rates[first:stop]
        return np.asarray(rates[~np.isnan(rates)], dtype=np.float64)


def parse_work_unit(name: str) -> tuple[str, bool] | None:
    """Return the unit of work a metric's name speaks of, and whether it is time for each; None when it is neither."""
    plain = _CAMEL.sub("_", name).lower()
    for patterns, each in ((_PER_SECOND, False), (_SECONDS_EACH, True)):
        for unit, pattern in patterns.items():
            if pattern.search(plain):
                return unit, each
    return ("samples", False) if _THROUGHPUT.search(plain) else None


def name_counted_unit(speed: Throughput) -> str:
    """Return what the name of a metric calls the work that it counts: `images` of `images_per_s`, else its unit."""
    if speed.unit != "samples":
        return speed.unit
    plain = _CAMEL.sub("_", speed.name).lower()
    words = set(re.findall(r"[a-z]+", plain))
    return next((unit for unit, known in _WORDS.items() if any(map(known.fullmatch, words))), speed.unit)


def throughput(training: "pa.Table", key: str | None = None, began: int | None = None) -> Throughput | None:
    """Return how fast a run worked; None where its training metrics do not tell.

    A metric whose name says so comes before the step column: a step may hold any number of samples.

    Args:
        training: in `series_table.TRAINING_SCHEMA`.
        key: metric to go by, whatever its name.
        began: when the GPUs began to work, in microseconds; None where that is not known.
    """
    if not len(training):
        return None
    names, steps = _names(training), columns.floats(training.column("step"))
    times, values = columns.integers(training.column("timestamp")), columns.floats(training.column("value"))
    known = columns.valid(training.column("timestamp")) & np.isfinite(values)
    if not key:
        rows = known & (names == SAMPLE_COUNTER)
        if (found := _by_samples(times[rows], values[rows], began)) is not None:
            return found
    for name in [key] if key else sorted(set(names), key=_rank):
        kind = parse_work_unit(name) or (("work", False) if key else None)
        if kind is None:
            continue
        if name in _BESIDE_A_COUNTER and not key and (counted := _by_steps(training, times, began)):
            return counted
        rows = known & (names == name) & (values > 0)
        found = _binned(name, kind[0], times[rows], 1 / values[rows] if kind[1] else values[rows], steps[rows])
        if found is not None:
            return found
    return None if key else _by_steps(training, times, began)


def _by_samples(times: IntArray, counts: FloatArray, began: int | None) -> Throughput | None:
    """Return how fast a counter of samples went up; one that begins at 0 tells all that was done."""
    points = select_step_points(times, counts)
    if points is None:
        return None
    work = count_by_steps(*points, began if points[1][0] > 0 else None)
    return None if work is None else _spread(SAMPLE_COUNTER, "samples", work, known=np.diff(points[1]) >= 0)


def _rank(name: str) -> tuple[int, int, str]:
    """Sort samples and tokens before steps, rates before times, and metrics of training before those of evaluation."""
    unit, each = parse_work_unit(name) or ("", False)
    order = ("samples", "tokens", STEPS, "epochs")
    place = order.index(unit) if unit in order else len(order)
    aside = re.search(r"val|eval|test", name.lower()) is not None
    return place + len(order) * aside, int(each), name


def _names(training: "pa.Table") -> Any:
    column: Any = training.column("name")
    return np.array(column.to_pylist(), dtype=object)


def _binned(name: str, unit: str, times: IntArray, rates: FloatArray, steps: FloatArray) -> Throughput | None:
    """Return rates on bins; a point speaks for the time since the point before."""
    times, rows = np.unique(times, return_index=True)
    work = count_by_rates(times, rates[rows], steps[rows]) if len(times) >= FEWEST_POINTS else None
    return None if work is None else _spread(name, unit, work)


def _by_steps(training: "pa.Table", times: IntArray, began: int | None) -> Throughput | None:
    """Return how fast the step counter went up, as far as it did: it starts anew when a run is resumed."""
    steps = columns.floats(training.column("step"))
    known = ~np.isnan(steps) & columns.valid(training.column("timestamp"))
    points = select_step_points(times[known], steps[known])
    if points is None:
        return None
    stamps, counts = points
    work = count_by_steps(stamps, counts, began)
    if work is None:
        return None
    gained = np.diff(counts)
    return _spread(STEP_COUNTER, STEPS, work, known=gained >= 0)


def _spread(name: str, unit: str, work: CountedWork, known: BoolArray | None = None) -> Throughput:
    """Return the work between points as mean rates over equal bins; what was done before the first is left out.

    Args:
        name: what tells the work.
        unit: unit of work.
        work: the work.
        known: between which points it is known; all when None.
    """
    times, amounts = work.times[1:], work.amounts[1:]
    known = np.ones(len(amounts), dtype=np.bool_) if known is None else known
    whole = float(times[-1] - times[0]) / 1e6
    width = max(1.0, float(np.median(np.diff(times))) / 1e6, whole / (_MOST_BINS * len(times)))
    count = max(int(whole // width), 1)
    spans = np.diff(times) / 1e6
    done = np.concatenate([[0.0], np.cumsum(np.where(known, amounts, 0.0))])
    covered = np.concatenate([[0.0], np.cumsum(np.where(known, spans, 0.0))])
    edges = times[0] + np.arange(count + 1) * width * 1e6
    moved, seconds = (np.diff(np.interp(edges, times, total)) for total in (done, covered))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(seconds > width / 2, moved / seconds, np.nan)
    return Throughput(name=name, unit=unit, width=width, start=int(times[0]), rates=means, work=work)
