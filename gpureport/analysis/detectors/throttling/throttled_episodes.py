"""Stretches of throttled samples, and how long the clock was held in them."""

from collections.abc import Iterator

import numpy as np

from gpureport.analysis.detectors.throttling.throttle_wording import ThrottledEpisodes
from gpureport.analysis.detectors.throttling.throttled_samples import BRAKE, HW_CLOCK_DROP, THERMAL, ThrottledSamples
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import counter_name, measure_counted_time
from gpureport.analysis.signals.clock_signals import ClockSignals
from gpureport.analysis.thresholds import vendor
from gpureport.columns import BoolArray
from gpureport.findings import Evidence, Threshold

_LONGEST_RELEASE_INTERVALS = 3.5


def measure_throttled_seconds(series: DeviceSeries, stretches: Spans, throttled: ThrottledSamples) -> float:
    """Return the throttled time in stretches: the counted time, plus time that only samples show."""
    if throttled.counted is None or throttled.counted.total_seconds <= 0:
        return intervals.total_seconds(stretches)
    rows = throttled.rows
    sampled = intervals.rows_to_spans(series.start, series.end, rows)
    sampled_only = intervals.difference(intervals.intersection(sampled, stretches), throttled.counted.spans)
    return (
        throttled.counted.measure_seconds_within(stretches)
        + throttled.counted.gap_seconds
        + intervals.total_seconds(sampled_only)
    )


def build_counter_evidence(series: DeviceSeries, episodes: ThrottledEpisodes) -> Iterator[Evidence]:
    """Yield the increment of each counter of the kind."""
    for reason in THERMAL if episodes.is_heat else (BRAKE,):
        counted = measure_counted_time(series, reason)
        if counted is not None and counted.total_seconds > 0:
            yield Evidence(
                metric=counter_name(reason),
                statistic="rise over the recording",
                observed=counted.total_seconds,
                unit="s",
            )


def join_while_hot(
    series: DeviceSeries, signals: ClockSignals, rows: BoolArray, episodes: Spans, slack: float
) -> Spans:
    """Join episodes between which the GPU stayed busy and as hot as in them: the controller let go for a moment."""
    hot = signals.temperature[rows & ~np.isnan(signals.temperature)]
    if len(episodes) < 2 or len(hot) == 0:  # noqa: PLR2004 - two make a hole
        return episodes
    has_cooled = (signals.temperature < float(np.median(hot)) - slack) | ~signals.busy
    counted = np.concatenate([[0], np.cumsum(has_cooled)])
    first = np.searchsorted(series.times, episodes[:-1, 1], side="left")
    stop = np.searchsorted(series.times, episodes[1:, 0], side="left")
    is_near = episodes[1:, 0] - episodes[:-1, 1] <= _LONGEST_RELEASE_INTERVALS * series.interval * 1e6
    holes = np.column_stack([episodes[:-1, 1], episodes[1:, 0]])[is_near & (counted[stop] == counted[first])]
    return intervals.union(np.concatenate([episodes, holes]))


def find_rows(series: DeviceSeries, stretches: Spans) -> BoolArray:
    """Return the rows in stretches; one at their end belongs to them, as the last sample of a log does."""
    return np.asarray(
        intervals.contains(stretches, series.times) | np.isin(series.times, stretches[:, 1]), dtype=np.bool_
    )


def list_sample_evidence(episodes: ThrottledEpisodes, clock_drop: Threshold) -> Iterator[Evidence]:
    """Yield how hot a slowed GPU was, what it drew, and how far its clock fell.

    Args:
        episodes: when it was slowed.
        clock_drop: ratio below which a clock that heat lowers lies.
    """
    hot = episodes.signals.temperature[episodes.rows]
    if not np.isnan(hot).all():
        hottest = float(np.nanmax(hot))
        limit = (
            vendor(episodes.signals.temperature_limit, "Cel", episodes.signals.temperature_limit_source)
            if episodes.signals.temperature_limit_source
            else None
        )
        relation = ">=" if hottest >= episodes.signals.temperature_limit else "<"
        yield Evidence(
            metric="gpu_temperature_celsius",
            statistic="max",
            observed=hottest,
            unit="Cel",
            threshold=limit,
            relation=relation,
        )
    power = episodes.signals.power[episodes.rows]
    if episodes.is_heat and not np.isnan(power).all():
        mean_power = float(np.nanmean(power))
        yield Evidence(metric="gpu_power_watts", statistic="mean while slowed", observed=mean_power, unit="W")
    if episodes.reference and not np.isnan(episodes.clock_ratio):
        limit = clock_drop if episodes.is_heat else HW_CLOCK_DROP
        statistic = f"mean, of {episodes.reference.description}"
        clock = compare_with_limit("gpu_sm_clock_hertz", statistic, episodes.clock_ratio, "<", limit)
        yield clock.as_context() if episodes.samples.is_direct else clock
