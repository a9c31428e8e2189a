"""Episodes in which GPUs work little while something else is busy, and what sets them apart from other time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.columns import BoolArray, FloatArray

_ERRORS = 3.0
"""Standard errors by which the mean of an episode keeps clear of a limit."""
_ERRORS_OF_SELECTED = 4.0
"""Standard errors between two means, one of them selected for its level.

Of 1800 permuted series none passes; at three standard errors 16 do.
"""
FEWEST_FED_BINS = 9
_FED_SECONDS = 30.0
_FED_SHARE = 0.1
"""How many bins, how long, and which part of the episodes GPUs must be well fed to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes an episode: ratios, seconds and rows.

    Attributes:
        gpu: utilisation below which the mean of a whole episode must lie for certain.
        enter: rolling mean an episode must reach.
        leave: rolling mean that ends it.
        over: seconds the mean is taken over, at least.
        rows: samples it is taken over, at least.
        shortest: seconds of an episode.
        bridge: widest hole that is closed, in seconds.
        bins: bins such a hole may span anyhow.
    """

    gpu: float
    enter: float
    leave: float
    over: float
    rows: float
    shortest: float
    bridge: float
    bins: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEpisodes:
    """Episodes in which a series is higher than while the GPUs are well fed.

    Attributes:
        spans: the episodes that are left.
        fed_mean: mean of the series while the GPUs were well fed; NaN if that was too rare to compare.
    """

    spans: Spans
    fed_mean: float

    @property
    def has_comparison(self) -> bool:
        """Whether the GPUs were well fed for long enough to compare."""
        return not np.isnan(self.fed_mean)


def compute_rolling_share(series: FloatArray, length: int, test: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """Return the share of the bins around each, `length` of them, that pass a test; NaN ones are left out."""
    return rolling_mean(np.where(np.isnan(series), np.nan, test(series)), length)


def find_low_episodes(
    context: Context, candidate: WaitCandidate, where: BoolArray, limits: Limits, claimed: tuple[str, ...]
) -> Spans:
    """Return when the rolling mean of the GPUs is low and a condition holds, outside the time of `claimed` kinds."""
    if context.window is None:
        return intervals.NO_SPANS
    mean = rolling_mean(candidate.utilisation, candidate.count_bins_with_samples(limits.over, limits.rows))
    low = np.where(where, np.nan_to_num(mean, nan=1.0), 1.0)
    inside = candidate.bins.mark_runs(*intervals.find_hysteresis_runs(low, enter=limits.enter, leave=limits.leave))
    width = candidate.bins.width
    shortest = max(limits.shortest, 3 * width)
    spans = candidate.bins.mask_to_spans(inside, max(limits.bridge, limits.bins * width), shortest)
    spans = intervals.intersection(spans, context.work)
    for device in candidate.gpus:
        spans = intervals.difference(
            spans, intervals.collect_finding_spans(context.findings_on(device), device, claimed)
        )
    sure = [
        is_surely_below(candidate.utilisation[candidate.bins.find_bin_slice(start, end)], limits.gpu)
        or not candidate.is_coarse
        for start, end in spans
    ]
    return intervals.drop_shorter(spans[np.array(sure, dtype=np.bool_)], shortest)


def drop_partly_fed(candidate: WaitCandidate, spans: Spans, level: float, share: float) -> Spans:
    """Return the stretches in which the GPUs reach a level of utilisation in less than a share of the bins."""
    parts = [candidate.utilisation[candidate.bins.find_bin_slice(start, end)] for start, end in spans]
    is_low = [np.nanmean(np.where(np.isnan(part), np.nan, part >= level)) < share for part in parts]
    return spans[np.array(is_low, dtype=np.bool_)]


def is_surely_below(samples: FloatArray, limit: float) -> bool:
    """Return whether the mean of point samples lies below a limit by three standard errors.

    Three, since a long log has many places at which a mean can be low by chance.
    """
    known = samples[~np.isnan(samples)]
    return bool(len(known) > 1 and known.mean() + _ERRORS * known.std(ddof=1) / np.sqrt(len(known)) <= limit)


def compare_with_fed_gpus(  # noqa: PLR0913 - a comparison has two sides and two limits
    candidate: WaitCandidate,
    spans: Spans,
    series: FloatArray,
    *,
    length: int,
    fed_level: float,
    least_difference: float,
) -> ComparedEpisodes:
    """Keep the episodes in which a series is higher than while the GPUs are well fed.

    GPUs do not wait for something that is just as high while they are busy. They are well fed where their mean
    utilisation over `length` bins reaches `fed_level`. Means that differ by less than `least_difference` are one level.
    """
    parts = [candidate.bins.find_bin_slice(start, end) for start, end in spans]
    outside = rolling_mean(candidate.utilisation, length) >= fed_level
    for part in parts:
        outside[part] = False
    fed_values = series[outside & ~np.isnan(series)]
    inside = sum(part.stop - part.start for part in parts)
    if len(fed_values) < max(FEWEST_FED_BINS, _FED_SECONDS / candidate.bins.width, _FED_SHARE * inside):
        return ComparedEpisodes(spans=spans, fed_mean=float("nan"))
    is_higher = np.array(
        [is_surely_higher(series[part], fed_values, least_difference) for part in parts], dtype=np.bool_
    )
    return ComparedEpisodes(spans=spans[is_higher], fed_mean=float(fed_values.mean()))


def is_surely_higher(values: FloatArray, other_values: FloatArray, least_difference: float) -> bool:
    """Return whether a mean is higher than another by a difference and by four standard errors."""
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return False
    error = float(np.sqrt(values.var() / len(values) + other_values.var() / len(other_values)))
    return float(values.mean() - other_values.mean()) >= max(least_difference, _ERRORS_OF_SELECTED * error)
