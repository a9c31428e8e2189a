"""GPUs beside the machine that feeds them: what the rules about waiting for it share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, UTILISATION
from gpureport.analysis.rules import certainty, missing_metrics, phrases
from gpureport.analysis.rules.kind_description import RootCause
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import Grid, build_grid, median_over_devices, rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.utilisation_levels import build_level_evidence
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Evidence, Interval, NotJudged, Threshold

_ERRORS = 3.0
"""Standard errors by which the mean of an episode keeps clear of a limit."""

_ERRORS_OF_SELECTED = 4.0
"""The same between two means one of which was chosen for its level: of 1800 permuted series none passes, at 3 16 do."""

_FEWEST_FED_BINS = 9
_FED_SECONDS = 30.0
_FED_SHARE = 0.1
"""How many bins, how long, and which part of the episodes GPUs must be well fed to compare with."""

SHORTEST_ONE_CORE_WAIT = pragmatic(60.0, "s", "compiling or saving keeps one core busy for less")
"""The shortest wait for one core."""

WAIT_KINDS = ("cpu_bound", "io_bound", "cpu_bound_single", "transfer_bound")
"""Kinds of waiting for input, each leaving alone what the ones before it explain."""

WAIT_ROOTS = tuple(RootCause(kind=kind) for kind in WAIT_KINDS)
"""The same as roots of other findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCandidate:
    """A device whose series may tell why GPUs wait, and those GPUs, on one grid.

    Attributes:
        source: the host, or the GPU itself.
        gpus: the GPUs that work beside it, keyed by device id.
        bins: equal bins over the job window.
        utilisation: median utilisation of the GPUs in each bin, NaN where none was sampled.
    """

    source: DeviceSeries
    gpus: Mapping[str, DeviceSeries]
    bins: Grid
    utilisation: FloatArray

    def average_metric(self, metric: str) -> FloatArray:
        """Return the mean of a metric of the source in each bin, NaN where there is none."""
        return self.bins.average_metric(self.source, metric)

    def count_bins(self, seconds: float, rows: float) -> int:
        """Return how many bins span some seconds, and no fewer than `rows`."""
        return max(round(seconds / self.bins.width), round(rows))

    def count_bins_with_samples(self, seconds: float, rows: float) -> int:
        """Return how many bins span some seconds and hold `rows` samples of each GPU."""
        interval = max(one.interval for one in self.gpus.values())
        return max(int(np.ceil(max(seconds, rows * interval) / self.bins.width)), 1)

    @property
    def is_coarse(self) -> bool:
        """Whether utilisation is sampled at points, far apart from each other."""
        return max(one.interval for one in self.gpus.values()) > POINT_SAMPLE_SECONDS

    def find_values_inside(self, spans: Spans, metric: str) -> FloatArray:
        """Return the source's values of a metric within stretches of time."""
        values = self.source.values(metric)[intervals.contains(spans, self.source.times - self.source.shift)]
        return values[~np.isnan(values)]


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
    bins: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEpisodes:
    """Episodes in which a series stands out against the time in which the GPUs lack nothing.

    Attributes:
        spans: the episodes that are left.
        fed_mean: mean of the series while the GPUs were well fed; NaN where that was too seldom to compare.
    """

    spans: Spans
    fed_mean: float

    @property
    def has_comparison(self) -> bool:
        """Whether there was time to compare with."""
        return not np.isnan(self.fed_mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCost:
    """What waiting cost.

    Attributes:
        spans: when.
        seconds: how long.
        utilisation: mean utilisation of the GPUs meanwhile, as a ratio.
        lost_gpu_seconds: GPU-seconds without a kernel.
        lost_share: the same, of the GPU time of the job.
        samples: readings of the utilisation.
        level_evidence: how long the GPUs paused, and worked below some levels.
    """

    spans: Spans
    seconds: float
    utilisation: float
    lost_gpu_seconds: float
    lost_share: float
    samples: int
    level_evidence: tuple[Evidence, ...]


def find_host_candidates(context: Context) -> Iterator[WaitCandidate]:
    """Yield each host that has GPUs which work."""
    for host in context.hosts().values():
        beside = {
            name: one
            for name, one in context.gpus().items()
            if host.device.node in {None, one.device.node} and name in context.active
        }
        if context.window is not None and beside:
            yield build_candidate(context.window, host, beside)


def build_candidate(window: Interval, source: DeviceSeries, gpus: Mapping[str, DeviceSeries]) -> WaitCandidate:
    """Return a device and GPUs on one grid over the job window."""
    bins = build_grid(window, [source, *gpus.values()])
    used = median_over_devices([bins.average_metric(one, UTILISATION) for one in gpus.values()])
    return WaitCandidate(source=source, gpus=gpus, bins=bins, utilisation=used)


def explain_unjudged(  # noqa: PLR0913 - what a sentence needs
    kind: str, context: Context, found: WaitCandidate, series: FloatArray, *, shortest: float, least: float, metric: str
) -> NotJudged | None:
    """Return why a kind cannot be judged: the recording is too short, or the series covers too little of the job."""
    needed = max(shortest, 3 * found.bins.width)
    if context.whole.seconds < needed:
        return missing_metrics.too_short(kind, context.whole.seconds, needed)
    known = ~np.isnan(found.utilisation)
    seen = float((known & ~np.isnan(series)).sum()) / max(float(known.sum()), 1)
    if seen >= least:
        return None
    what = "CPU series" if metric.startswith("cpu_util") else f"series of {metric}"
    reason = f"the {what} covers only {{}} of the job"
    return missing_metrics.unjudged(kind, found.source.device.id, reason, [metric], missing_metrics.share_of(seen))


def compute_rolling_share(series: FloatArray, length: int, test: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """Return the share of the bins around each, `length` of them, that pass a test; NaN ones are left out."""
    return rolling_mean(np.where(np.isnan(series), np.nan, test(series)), length)


def find_low_episodes(
    context: Context, found: WaitCandidate, where: BoolArray, limits: Limits, claimed: tuple[str, ...]
) -> Spans:
    """Return when the GPUs' rolling mean is low and a condition on the machine holds.

    Args:
        context: the recording, with earlier findings.
        found: the machine.
        where: whether the condition holds in each bin.
        limits: what makes an episode.
        claimed: kinds whose time is theirs.
    """
    if context.window is None:
        return intervals.NO_SPANS
    mean = rolling_mean(found.utilisation, found.count_bins_with_samples(limits.over, limits.rows))
    low = np.where(where, np.nan_to_num(mean, nan=1.0), 1.0)
    inside = found.bins.mark_runs(*intervals.find_hysteresis_runs(low, enter=limits.enter, leave=limits.leave))
    width = found.bins.width
    shortest = max(limits.shortest, 3 * width)
    spans = found.bins.mask_to_spans(inside, max(limits.bridge, limits.bins * width), shortest)
    spans = intervals.intersection(spans, context.work)
    for device in found.gpus:
        spans = intervals.difference(spans, intervals.collect_finding_spans(context.found, device, claimed))
    sure = [
        is_surely_below(found.utilisation[found.bins.find_bin_slice(start, end)], limits.gpu) or not found.is_coarse
        for start, end in spans
    ]
    return intervals.drop_shorter(spans[np.array(sure, dtype=np.bool_)], shortest)


def drop_unrecorded(found: WaitCandidate, spans: Spans, *metrics: str) -> Spans:
    """Return the stretches in which the source holds a value of each metric: what else was so is not known."""
    rows = [
        all(len(found.find_values_inside(spans[row : row + 1], name)) for name in metrics) for row in range(len(spans))
    ]
    return spans[np.array(rows, dtype=np.bool_)]


def is_surely_below(samples: FloatArray, limit: float) -> bool:
    """Return whether the mean of point samples lies below a limit by three standard errors.

    Three, since a long log has many places at which a mean can be low by chance.
    """
    known = samples[~np.isnan(samples)]
    return bool(len(known) > 1 and known.mean() + _ERRORS * known.std(ddof=1) / np.sqrt(len(known)) <= limit)


def compare_with_fed_gpus(  # noqa: PLR0913 - a comparison has two sides and two limits
    found: WaitCandidate, spans: Spans, series: FloatArray, *, length: int, fed: float, apart: float
) -> ComparedEpisodes:
    """Keep the episodes in which a series is higher than while the GPUs are well fed.

    What is as high beside busy GPUs is not what the others wait for. So a series put in another order in time
    explains nothing, whatever its level.

    Args:
        found: the machine.
        spans: the episodes.
        series: one value a bin.
        length: bins over which the mean utilisation says that the GPUs are well fed.
        fed: that mean.
        apart: difference of the means below which two levels count as one.
    """
    parts = [found.bins.find_bin_slice(start, end) for start, end in spans]
    outside = rolling_mean(found.utilisation, length) >= fed
    for part in parts:
        outside[part] = False
    calm = series[outside & ~np.isnan(series)]
    inside = sum(part.stop - part.start for part in parts)
    if len(calm) < max(_FEWEST_FED_BINS, _FED_SECONDS / found.bins.width, _FED_SHARE * inside):
        return ComparedEpisodes(spans=spans, fed_mean=float("nan"))
    kept = np.array([_is_surely_higher(series[part], calm, apart) for part in parts], dtype=np.bool_)
    return ComparedEpisodes(spans=spans[kept], fed_mean=float(calm.mean()))


def _is_surely_higher(some: FloatArray, others: FloatArray, apart: float) -> bool:
    """Whether a mean is higher than another by a difference and by four standard errors."""
    some = some[~np.isnan(some)]
    if len(some) == 0:
        return False
    error = float(np.sqrt(some.var() / len(some) + others.var() / len(others)))
    return float(some.mean() - others.mean()) >= max(apart, _ERRORS_OF_SELECTED * error)


def measure_wait(window: Interval, gpus: Mapping[str, DeviceSeries], spans: Spans) -> WaitCost:
    """Return what waiting in stretches of the job cost the GPUs."""
    held = [intervals.overlap_seconds(one.start - one.shift, one.end - one.shift, spans) for one in gpus.values()]
    used = [one.values(UTILISATION) for one in gpus.values()]
    lost = sum(float(np.nansum((1 - np.clip(u, 0, 1)) * h)) for u, h in zip(used, held, strict=True))
    sampled = sum(float(h[~np.isnan(u)].sum()) for u, h in zip(used, held, strict=True))
    return WaitCost(
        spans=spans,
        seconds=intervals.total_seconds(spans),
        utilisation=1 - lost / max(sampled, 1e-9),
        lost_gpu_seconds=lost,
        lost_share=lost / (window.seconds * len(gpus)),
        samples=sum(one.count_readings(UTILISATION, intervals.contains(spans, one.times)) for one in gpus.values()),
        level_evidence=build_level_evidence(gpus, dict.fromkeys(gpus, spans)),
    )


def rate_confidence(found: WaitCandidate, cost: WaitCost, against: ComparedEpisodes) -> Confidence:
    """Return high where samples are close and many, and busy GPUs were there to compare with."""
    interval = max(one.interval for one in (found.source, *found.gpus.values()))
    close = interval <= 5  # noqa: PLR2004 - the interval above which nine samples span a minute
    return certainty.weakest(
        Confidence.HIGH if against.has_comparison and close else Confidence.MEDIUM,
        certainty.by_readings(cost.samples // len(found.gpus), interval),
    )


def list_ruled_out(what: str, against: ComparedEpisodes) -> tuple[str, ...]:
    """Return which other explanations were excluded.

    Args:
        what: what was compared, with its verb: `the CPU is as busy`.
        against: what it was compared with.
    """
    said = f"{what} beside busy GPUs: there it is at {phrases.percent(against.fed_mean)}"
    return ("start-up and tail of the job", *([said] if against.has_comparison else []))


def describe_wait(cost: WaitCost) -> str:
    """Return how little GPUs worked and what that cost, in words that follow their names."""
    worked = phrases.percent(cost.utilisation)
    return f"worked {worked} of the time: {phrases.duration(cost.lost_gpu_seconds)} of GPU time went into waiting"


def build_utilisation_evidence(cost: WaitCost, limit: Threshold) -> Evidence:
    """Return how much the GPUs worked meanwhile, against what they must stay below."""
    return Evidence(
        metric=UTILISATION,
        statistic="mean",
        observed=cost.utilisation,
        unit="1",
        threshold=limit,
        relation="<",
    )


def build_duration_evidence(cost: WaitCost, shortest: Threshold) -> Evidence:
    """Return how long episodes lasted, against what one must last."""
    return Evidence(
        metric="duration",
        statistic="sum of episodes",
        observed=cost.seconds,
        unit="s",
        threshold=shortest,
        relation=">=",
    )
