"""GPUs and the device they may be waiting for, on one grid of bins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import missing_metrics
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.bins import Grid, build_grid, median_over_devices
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import FloatArray
from gpureport.findings import Interval, NotJudged, Threshold

SHORTEST_ONE_CORE_WAIT = pragmatic(60.0, "s", "compiling or saving keeps one core busy for less")
"""The shortest wait for one core."""

ONE_CORE_WAIT_OF_SHORT_JOB = pragmatic(30.0, "s", "half or more of a job shorter than a minute is no phase of it")
"""The shortest wait for one core in a job that is shorter than the shortest wait."""

WAIT_KINDS = ("cpu_bound", "io_bound", "cpu_bound_single", "transfer_bound")
"""Kinds of waiting for input; each leaves out the time that earlier ones explain."""


def find_shortest_one_core_wait(window: Interval, usual: Threshold = SHORTEST_ONE_CORE_WAIT) -> Threshold:
    """Return how long a job must have waited for one core, given the time from its first to its last work.

    Args:
        window: that time.
        usual: what settings say of it; they hold for short jobs as well.
    """
    is_short = usual == SHORTEST_ONE_CORE_WAIT and window.seconds < usual.value
    return ONE_CORE_WAIT_OF_SHORT_JOB if is_short else usual


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCandidate:
    """A device for which GPUs may be waiting, and those GPUs, on one grid.

    Attributes:
        source: the device, a host or the GPU itself.
        gpus: the GPUs that may wait for it, keyed by device id.
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


def find_host_candidates(context: Context) -> Iterator[WaitCandidate]:
    """Yield each host with working GPUs."""
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
    kind: str,
    context: Context,
    candidate: WaitCandidate,
    series: FloatArray,
    *,
    shortest: float,
    least: float,
    metric: str,
) -> NotJudged | None:
    """Return why a kind cannot be judged: the recording is too short, or the series covers too little of the job."""
    needed = max(shortest, 3 * candidate.bins.width)
    if context.whole.seconds < needed:
        return missing_metrics.too_short(kind, context.whole.seconds, needed)
    known = ~np.isnan(candidate.utilisation)
    seen = float((known & ~np.isnan(series)).sum()) / max(float(known.sum()), 1)
    if seen >= least:
        return None
    what = "CPU series" if metric.startswith("cpu_util") else f"series of {metric}"
    reason = f"the {what} covers only {{}} of the job"
    share = missing_metrics.share_of(seen)
    return missing_metrics.unjudged(kind, candidate.source.device.id, reason, [metric], share, code="covers_too_little")
