"""Reads a run's speed, curves and samples per step from its training metrics and params."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.names import recognise_metric
from gpureport.rates import FEWEST_POINTS, CountedWork, count_by_rates, count_by_steps, select_step_points
from gpureport.recording import Run
from gpureport.redaction import HIDDEN

if TYPE_CHECKING:
    import pyarrow as pa

STEPS, SAMPLES = "steps", "samples"
STEP_COUNTER, _SAMPLE_COUNTER = "step", "consumed samples"
"""Work counted by the step column, and the series in which Megatron counts samples."""
# step times logged with a step number exclude pauses between lines
_BESIDE_A_COUNTER = {"iteration_time", "it/s"}
_UNITS = {
    SAMPLES: r"samples?|images?|imgs?|examples?|sequences?|seqs?|records?|frames?",
    "tokens": r"tokens?|toks?",
    STEPS: r"steps?|iterations?|iters?|its?|batch(?:es)?",
    "epochs": r"epochs?",
}
_PER_SECOND = r"(?:^|[^a-z])(?:{0})[ _.-]*(?:per|/|p)[ _.-]*s(?:ec(?:ond)?)?s?(?:$|[^a-z])"
_SECONDS_EACH = (
    r"(?:^|[^a-z])(?:(?:{0})[ _.-]*(?:time|duration|seconds|secs?|latency)"
    r"|(?:time|seconds|secs?|s)[ _.-]*(?:per|/)[ _.-]*(?:{0}))(?:$|[^a-z])"
)
_THROUGHPUT = r"(?:^|[^a-z])throughput(?:$|[^a-z])"
_MOST_BINS = 1000  # maximum number of bins per point; if points lie years apart, bins are longer than usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    name: str
    unit: str
    width: float  # Bin width in seconds: the usual spacing of points, but at least 1 s.
    rates: FloatArray  # Means over the bins for which work is known.
    work: CountedWork  # Work from one point to the next, and before the first point.

    @property
    def stated_unit(self) -> str:
        """The unit in the metric's name, such as `images` in `images_per_s`, or its usual unit."""
        found = re.search(r"(?:^|[^a-z])(image|img|example|sequence|seq)s?(?:$|[^a-z])", _simplify(self.name))
        if not found or self.unit != SAMPLES:
            return self.unit
        return {"img": "images", "seq": "sequences"}.get(found[1], f"{found[1]}s")

    @property
    def seconds(self) -> float:
        return len(self.rates) * self.width


def _simplify(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def parse_work_unit(name: str) -> tuple[str, bool] | None:
    plain = _simplify(name)
    for form, is_time in ((_PER_SECOND, False), (_SECONDS_EACH, True)):
        for unit, names in _UNITS.items():
            if re.search(form.format(names), plain):
                return unit, is_time
    return (SAMPLES, False) if re.search(_THROUGHPUT, plain) else None


def measure_throughput(training: "pa.Table", key: str | None = None, began: int | None = None) -> Throughput | None:
    # a metric named as a rate is preferred to the step column, since a step may have any number of samples; the metric
    # `key` is used whatever its name, and `began` is when the GPUs became busy, in microseconds
    if not len(training):
        return None
    column: Any = training.column("name")
    names = np.array(column.to_pylist(), dtype=object)
    steps, values = columns.floats(training.column("step")), columns.floats(training.column("value"))
    times, timed = columns.integers(training.column("timestamp")), columns.valid(training.column("timestamp"))
    known = timed & np.isfinite(values)
    if not key:
        rows = known & (names == _SAMPLE_COUNTER)
        if (found := _by_counter(_SAMPLE_COUNTER, SAMPLES, times[rows], values[rows], began)) is not None:
            return found
    rows = timed & ~np.isnan(steps)
    counted = None if key else _by_counter(STEP_COUNTER, STEPS, times[rows], steps[rows], began)
    for name in [key] if key else sorted(set(names), key=_rank):
        unit, is_time = parse_work_unit(name) or ("work" if key else "", False)
        if not unit:
            continue
        if counted is not None and name in _BESIDE_A_COUNTER:
            break
        rows = known & (names == name) & (values > 0)
        stamps, first = np.unique(times[rows], return_index=True)
        each = recognise_metric(name)
        rates = (1 / (values[rows] * (each.seconds if each else 1.0)) if is_time else values[rows])[first]
        work = count_by_rates(stamps, rates, steps[rows][first]) if len(stamps) >= FEWEST_POINTS else None
        if work is not None:
            return _spread(name, unit, work, np.ones(len(work.amounts) - 1, dtype=np.bool_))
    return counted


def _rank(name: str) -> tuple[int, bool, str]:
    unit, is_time = parse_work_unit(name) or ("", False)
    place = [*_UNITS, ""].index(unit)
    return place + len(_UNITS) * bool(re.search(r"val|eval|test", name.lower())), is_time, name


def _by_counter(name: str, unit: str, times: IntArray, counts: FloatArray, began: int | None) -> Throughput | None:
    points = select_step_points(times, counts)
    if points is None:
        return None
    # a sample counter that starts at 0 counts all the work
    work = count_by_steps(*points, began if unit == STEPS or points[1][0] > 0 else None)
    return None if work is None else _spread(name, unit, work, np.diff(points[1]) >= 0)


def _spread(name: str, unit: str, work: CountedWork, known: BoolArray) -> Throughput:
    """Return the speed, with mean rates over equal bins where the work is `known`."""
    times, spans = work.times[1:], np.diff(work.times[1:]) / 1e6
    whole = float(times[-1] - times[0]) / 1e6
    width = max(1.0, float(np.median(spans)), whole / (_MOST_BINS * len(times)))
    edges = times[0] + np.arange(max(int(whole // width), 1) + 1) * width * 1e6
    done, seconds = (
        np.diff(np.interp(edges, times, np.concatenate([[0.0], np.cumsum(np.where(known, each, 0.0))])))
        for each in (work.amounts[1:], spans)
    )
    told = seconds > width / 2
    return Throughput(name=name, unit=unit, width=width, rates=done[told] / seconds[told], work=work)


@dataclass(frozen=True, kw_only=True)
class TrainingCurve:
    name: str
    times: IntArray  # Microseconds since 1970; empty if any value has no time.
    values: FloatArray  # Includes NaN and infinities; a curve that ends in one has diverged.
    steps: FloatArray  # Values of the step column; NaN where it is empty.

    @cached_property
    def known(self) -> FloatArray:
        return self.values[np.isfinite(self.values)]

    @property
    def is_finished(self) -> bool:
        return len(self.known) > 0 and not self.has_diverged

    @property
    def has_diverged(self) -> bool:
        return len(self.values) > 0 and not bool(np.isfinite(self.values[-1]))


def build_training_curves(training: "pa.Table") -> tuple[TrainingCurve, ...]:
    # a missing value was logged as NaN; a metric with a redacted name has no curve, since different names may look
    # alike
    column: Any = training.column("name").unify_dictionaries()
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return ()
    codes = np.concatenate([columns.integers(chunk.indices, null=-1) for chunk in chunks])
    values, steps = columns.floats(training.column("value")), columns.floats(training.column("step"))
    times, timed = columns.integers(training.column("timestamp")), columns.valid(training.column("timestamp"))
    order = np.lexsort((times, codes))
    curves = []
    for code in columns.present(codes):
        first, stop = np.searchsorted(codes[order], [code, code + 1])
        rows = order[first:stop]
        stamps = times[rows] if timed[rows].all() else np.zeros(0, dtype=np.int64)
        name = chunks[0].dictionary[code].as_py()
        if HIDDEN not in name:
            curves.append(TrainingCurve(name=name, times=stamps, values=values[rows], steps=steps[rows]))
    return tuple(sorted(curves, key=lambda curve: curve.name))


_BATCH_SIZES = (
    r"(?:^|[^a-z])(?:global|effective|total)_?(?:train_?)?batch_?size$",
    r"(?:^|[^a-z])train_?batch_?size$",
    r"(?:^|[^a-z])(?:batch_?size|bs)$",
    # without "size", only the whole name or its last part counts, since "log_every_batch" is not a size
    r"(?:^|[./])(?:(?:global|effective|total)_)?(?:train_)?batch$",
)
_PER_DEVICE = r"per_(?:device|gpu)_(?:train_)?batch_size$"
_ACCUMULATED = r"(?:^|[^a-z])(?:gradient_accumulation_steps|accumulate_grad_batches|grad_accum(?:_steps)?)$"


def batch_size(run: Run) -> float | None:
    """Return the samples per step across all GPUs, or None if no param gives them."""
    params = {key.lower(): value for key, value in run.params}
    if (each := _find_param(params, _PER_DEVICE)) is not None:
        return each * max(len(run.gpus), 1) * (_find_param(params, _ACCUMULATED) or 1.0)
    return next((size for form in _BATCH_SIZES if (size := _find_param(params, form)) is not None), None)


def _find_param(params: dict[str, str], form: str) -> float | None:
    for key in sorted(params):
        if re.search(form, key) and not re.search(r"eval|val_|test", key):
            try:
                value = float(params[key])
            except ValueError:
                continue
            return value if 0 < value < float("inf") else None
    return None
