"""By how much a GPU differs from its peers, in bins and over stretches of time."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.bins import Grid, rolling_mean, split_bins
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray, IntArray

POWER = "gpu_power_watts"
PAIR = 2
_ERRORS = 3.0
"""Standard errors by which the difference of an episode's means keeps clear of the limit, where samples are points."""


def group_by_model(context: Context) -> Iterator[dict[str, DeviceSeries]]:
    """Yield the GPUs that worked, those of one model together, where there are several."""
    models: dict[str | None, dict[str, DeviceSeries]] = {}
    for name, series in context.gpus().items():
        if name in context.active:
            models.setdefault(series.device.model, {})[name] = series
    yield from (peers for peers in models.values() if len(peers) >= PAIR)


def compute_rolling_means(
    bins: Grid, peers: Mapping[str, DeviceSeries], metric: str, is_explained: Mapping[str, BoolArray], length: int
) -> dict[str, FloatArray]:
    """Return the rolling mean of each GPU over bins in which none of its time is explained, NaN in the others."""

    def average(name: str) -> FloatArray:
        means = np.where(is_explained[name], np.nan, bins.average_metric(peers[name], metric))
        return np.where(is_explained[name], np.nan, rolling_mean(means, length))

    return {name: average(name) for name in peers}


def find_uneven_bins(
    means: Mapping[str, FloatArray], differs: float, agree: float, *, relative: bool
) -> dict[str, BoolArray]:
    """Return the bins in which each GPU differs from its peers while these agree."""
    odd_bins = {name: np.zeros(len(one), dtype=np.bool_) for name, one in means.items()}
    for bins, block in split_bins(list(means.values())):
        lowest, highest = np.fmin.reduce(block), np.fmax.reduce(block)
        uneven = np.flatnonzero(highest - lowest > differs * (lowest if relative else 1.0))
        is_odd = _find_odd_devices(block[:, uneven], differs, agree, relative=relative)
        for rows, own in zip(odd_bins.values(), is_odd, strict=True):
            rows[bins][uneven] = own
    return odd_bins


def _find_odd_devices(
    means: npt.NDArray[np.float64], differs: float, agree: float, *, relative: bool
) -> Iterator[BoolArray]:
    """Yield in which columns each row differs from all others while these agree; of two, the lower differs.

    What the others are without a row follows from its rank in the column: nothing is ordered again.
    """
    order = np.argsort(means, axis=0, kind="stable")
    ordered = np.take_along_axis(means, order, axis=0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(means))[:, np.newaxis], axis=0)
    known = np.count_nonzero(~np.isnan(means), axis=0)
    for own, rank in zip(means, ranks, strict=True):
        count = known - (rank < known)
        lowest, low, high, highest = (
            _take_other(ordered, rank, place) for place in (0 * count, (count - 1) // 2, count // 2, count - 1)
        )
        usual = np.where(count > 0, (low + high) / 2, np.nan)
        spread = highest - lowest
        scale = usual if relative else np.ones(len(usual))
        differences = own - usual
        if len(means) == PAIR:
            differences = np.where(differences < 0, differences, 0.0)
        seen = count * 2 >= len(means) - 1
        yield seen & (np.abs(differences) > differs * scale) & (spread < agree * scale)


def _take_other(ordered: npt.NDArray[np.float64], rank: IntArray, place: IntArray) -> FloatArray:
    """Return the value at a place of each ordered column, the one of this rank left out."""
    places = (place + (place >= rank)).clip(0, len(ordered) - 1)
    taken: FloatArray = np.take_along_axis(ordered, places[np.newaxis], axis=0)[0]
    return taken


def is_surely_different(peers: Mapping[str, DeviceSeries], name: str, spans: Spans, differs: float) -> bool:
    """Return whether the mean of point samples of a GPU is away from that of its peers by more than their errors."""
    own = peers[name].find_values(UTILISATION, spans)
    others = np.concatenate([one.find_values(UTILISATION, spans) for each, one in peers.items() if each != name])
    if not len(own) or not len(others):
        return False
    error = float(np.sqrt(own.var() / len(own) + others.var() / len(others)))
    return abs(float(own.mean() - others.mean())) - _ERRORS * error >= differs


def _average_inside(series: DeviceSeries, metric: str, spans: Spans) -> float:
    values = series.find_values(metric, spans)
    return float(values.mean()) if len(values) else float("nan")


def average_peers(
    peers: Mapping[str, DeviceSeries], name: str, metric: str, spans: Spans
) -> tuple[float, dict[str, float]]:
    """Return the mean of a GPU in stretches of time, and those of its peers by name."""
    others = {each: _average_inside(one, metric, spans) for each, one in peers.items() if each != name}
    return _average_inside(peers[name], metric, spans), {
        each: mean for each, mean in others.items() if not np.isnan(mean)
    }


def compute_difference(peers: Mapping[str, DeviceSeries], name: str, metric: str, spans: Spans) -> float:
    """Return by how much the mean of a GPU is above that of its peers: of power, as a share of theirs."""
    own, others = average_peers(peers, name, metric, spans)
    usual = float(np.median(list(others.values()))) if others else float("nan")
    if metric == POWER:
        return (own - usual) / usual if usual > 0 else float("nan")
    return own - usual
