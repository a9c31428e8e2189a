"""Whether two recorders watched the same GPU, judged by what they read at nearly the same time.

Measured on genuine logs: of 31 GPUs whose rows were given to two recorders in turn none was taken for two, and of 13
pairs of GPUs of one log none for one, with temperatures or without.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from gpureport.columns import FloatArray, IntArray

_PAIRS = 30
"""Readings of both at nearly the same time that a judgement needs (pragmatic)."""
_SHARE = 0.95
"""Share of them that must agree: nodes of one job warm up alike, but not to the degree all the time (pragmatic)."""
_TEMPERATURES = 5
"""Degrees that one of them shows at least: several idle GPUs stay at the same few (pragmatic)."""
_CHANCE = 0.5
"""Readings of one GPU differ by at most this share of what readings at any two moments do (pragmatic)."""
_SUCCESSIVE = 2.0
"""Two recorders of one GPU disagree about as much as successive readings of one recorder do.

If they disagree by more than this factor, they watched different GPUs (pragmatic).
"""
_STANDARD_ERRORS = 3.0
"""Means of two series of one GPU differ by less, one time in 400 aside."""


class Agreement(Enum):
    """What two series of one time are of: one GPU, two GPUs, or there is no telling."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Steady:
    """How close two readings of what hardly changes from one to the next lie, in its base unit."""

    close: float


@dataclass(frozen=True, slots=True)
class _Quick:
    """How far means of what changes from reading to reading may differ, in its base unit and as a share of the mean."""

    step: float
    share: float = 0.0


_TEMPERATURE, _POWER = "gpu_temperature_celsius", "gpu_power_watts"
METRICS: dict[str, _Steady | _Quick] = {
    _TEMPERATURE: _Steady(1.0),
    "gpu_memory_used_bytes": _Steady(64 * 2.0**20),
    _POWER: _Quick(1.0, 0.01),
    "gpu_utilization_ratio": _Quick(0.01),
}
"""What is compared. Boards of a model draw several per cent more or less than each other at the same work (pragmatic:
1 % and the 1 W and 1 % in which tools write power and utilisation)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What one recorder read of one GPU, by time.

    Attributes:
        times: in microseconds, rising.
        values: those of each of METRICS, NaN where there is none.
    """

    times: IntArray
    values: dict[str, FloatArray]


def combine_verdicts(verdicts: Iterable[Agreement]) -> Agreement:
    """Return what two recorders watched by what is known of each GPU: one GPU tells for all."""
    known = set(verdicts)
    if Agreement.DIFFERENT in known:
        return Agreement.DIFFERENT
    return Agreement.SAME if Agreement.SAME in known else Agreement.UNKNOWN


def compare_series(one: Series, other: Series, pace: int) -> Agreement:
    """Return whether two series are of one GPU, by their readings less than `pace` microseconds apart."""
    return combine_verdicts(_judge_metrics(one, other, pace))


def _judge_metrics(one: Series, other: Series, pace: int) -> Iterator[Agreement]:
    """Yield what each metric tells."""
    if not len(one.times) or not len(other.times):
        return
    after = np.clip(np.searchsorted(one.times, other.times), 0, len(one.times) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(one.times[before] - other.times) < np.abs(one.times[after] - other.times)
    near = np.where(nearer, before, after)
    close = np.abs(one.times[near] - other.times) <= pace
    for name, metric in METRICS.items():
        mine, theirs = one.values[name], other.values[name]
        read = close & ~np.isnan(mine[near] - theirs)
        if read.sum() < _PAIRS:
            continue
        if isinstance(metric, _Steady):
            agree = _share_between(theirs[read], mine[before][read], mine[after][read], metric.close)
            own = _share_between(mine[1:-1], mine[:-2], mine[2:], metric.close)
            yield _judge_steady_metric(name, agree, own, mine[near][read])
        else:
            yield _judge_quick_metric(name, metric, mine, mine[near][read], theirs[read])


def _share_between(values: FloatArray, before: FloatArray, after: FloatArray, close: float) -> float:
    """Return the share of readings that lie between those before and after them, or hardly beside."""
    low, high = np.fmin(before, after) - close, np.fmax(before, after) + close
    known = ~np.isnan(values - low)
    return float(((values >= low) & (values <= high))[known].mean()) if known.any() else 1.0


def _judge_steady_metric(name: str, share: float, own: float, values: FloatArray) -> Agreement:
    """Return what the share of readings tells that lie between those of the other, and of its own, around them."""
    if share < _SHARE:
        return Agreement.DIFFERENT if 1 - share > _SUCCESSIVE * (1 - own) else Agreement.UNKNOWN
    varies = name == _TEMPERATURE and len(np.unique(values)) >= _TEMPERATURES
    return Agreement.SAME if varies else Agreement.UNKNOWN


def _judge_quick_metric(
    name: str, metric: _Quick, series: FloatArray, ones: FloatArray, others: FloatArray
) -> Agreement:
    """Return what readings tell of something that changes at once.

    Work in step looks the same on GPUs of one job, and only power tells two boards apart then.
    """
    difference = (ones - others).astype(np.float64)
    near = float(np.abs(difference).mean())
    successive = float(np.nanmean(np.abs(np.diff(series)))) if np.isfinite(np.diff(series)).any() else np.inf
    any_two = float(np.abs(np.random.default_rng(0).permutation(ones) - others).mean())
    error = _STANDARD_ERRORS * float(difference.std()) / len(difference) ** 0.5
    mean = abs(float(difference.mean()))
    if near > _SUCCESSIVE * successive + metric.step or mean > error + metric.step + metric.share * float(ones.mean()):
        return Agreement.DIFFERENT
    tells = name == _POWER and any_two > metric.step and near <= _CHANCE * any_two
    return Agreement.SAME if tells else Agreement.UNKNOWN
