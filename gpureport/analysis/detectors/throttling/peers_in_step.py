"""A slowed GPU beside the others of its run: how much hotter it got, and what they lost if they waited for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.throttling.throttled_episodes import find_highest
from gpureport.analysis.job.phases import ACTIVE, UTILISATION
from gpureport.analysis.rules import phrases
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Evidence, Interval

POWER = "gpu_power_watts"

FALL = pragmatic(
    0.03,
    "1",
    "three times the most, 0.9%, by which the mean power of a steady load changed from minute to minute in three "
    "recorded logs of one GPU each: 17 pairs of minutes without a sample below 90% utilisation",
)
"""Share by which every other GPU must draw less for its wait to be likely."""

_FEWEST = 10.0  # rows; fewer busy samples do not make a mean
"""Busy samples that a mean power takes, both while the other was slowed and else."""

HOTTER = 8.0  # Cel; a GPU this much hotter than its peers has a cooling fault of its own
"""By how much a GPU must be hotter than the others for that to be said."""

_MOST_COMPARED = 64
"""GPUs that stand for all others, at most, evenly spaced among them.

Where all are slowed, each would be compared with each. Measured on 2,000 slowed GPUs of 24 rows each: their analysis
takes 3.2 s of processor time instead of 31.4.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPeers:
    """Other GPUs that drew less power while one was slowed.

    Attributes:
        count: how many; all of its model.
        fall: by which share less, a median over them.
    """

    count: int
    fall: float

    def describe(self, lost: float | None) -> str:
        """Return what they lost if they work in step with it, as a sentence after another; empty where not known."""
        if not lost:
            return ""
        whose = "other one" if self.count == 1 else "others"
        return f" If the {whose} waited in step, up to {phrases.gpu_time(lost * self.count)} more was lost."

    def list_evidence(self) -> Iterator[Evidence]:
        """Yield how much less power they drew."""
        statistic = "fall on the other GPUs meanwhile"
        yield compare_with_limit(POWER, statistic, self.fall, ">=", FALL).as_context()


def find_waiting_peers(peers: Sequence[DeviceSeries], spans: Spans, work: Interval) -> WaitingPeers | None:
    """Return the other GPUs, where every one of them drew less power while one was slowed than else.

    Args:
        peers: the other GPUs of its model.
        spans: when it was slowed.
        work: when the job worked.
    """
    falls = [_measure_power_fall(series, spans, work) for series in peers]
    known = [fall for fall in falls if fall is not None and fall >= FALL.value]
    if not falls or len(known) < len(falls):
        return None
    return WaitingPeers(count=len(falls), fall=float(np.median(known)))


def _measure_power_fall(series: DeviceSeries, spans: Spans, work: Interval) -> float | None:
    """Return by which share a busy GPU drew less within some stretches than else; None where not known."""
    if not series.is_recorded(POWER) or not series.is_recorded(UTILISATION):
        return None
    power = series.values(POWER)
    busy = (series.values(UTILISATION) > ACTIVE.value) & ~np.isnan(power)
    busy &= (series.times >= work.start) & (series.times <= work.end)
    inside = intervals.overlap_seconds(series.start, series.end, spans) > 0
    meanwhile, usual = power[busy & inside], power[busy & ~inside]
    if min(len(meanwhile), len(usual)) < _FEWEST or usual.mean() <= 0:
        return None
    return 1 - float(meanwhile.mean() / usual.mean())


def describe_hotter_than_peers(series: DeviceSeries, gpus: Sequence[DeviceSeries], spans: Spans) -> str:
    """Say when a GPU got far hotter than the others at the same time, as a sentence after another; else empty."""
    others = [one for one in gpus if one is not series]
    chosen = np.linspace(0, len(others) - 1, min(len(others), _MOST_COMPARED)).round().astype(np.int64)
    peers = [others[place] for place in chosen.tolist()]
    own, *highest = (find_highest(one, "gpu_temperature_celsius", spans) for one in (series, *peers))
    known = [value for value in highest if value is not None]
    if not known or own is None:
        return ""
    excess = own - float(np.median(known))
    whom = "the other GPUs" if len(peers) == len(others) else f"{len(known)} of the other GPUs"
    return f" It was {excess:.0f} °C hotter than {whom}." if excess > HOTTER else ""
