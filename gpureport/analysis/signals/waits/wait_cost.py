"""What a wait for input cost the GPUs, as figures, evidence and words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import certainty, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.utilisation_levels import build_level_evidence
from gpureport.analysis.signals.waits.wait_episodes import ComparedEpisodes
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.findings import Confidence, Evidence, Interval, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCost:
    """What waiting cost."""

    spans: Spans
    seconds: float
    utilisation: float
    lost_gpu_seconds: float
    lost_share: float
    samples: int
    level_evidence: tuple[Evidence, ...]


def measure_wait(window: Interval, gpus: Mapping[str, DeviceSeries], spans: Spans) -> WaitCost:
    """Return what waiting in stretches of the job cost the GPUs."""
    waiting_seconds = [
        intervals.overlap_seconds(one.start - one.shift, one.end - one.shift, spans) for one in gpus.values()
    ]
    utilisations = [one.values(UTILISATION) for one in gpus.values()]
    lost = sum(float(np.nansum((1 - np.clip(u, 0, 1)) * h)) for u, h in zip(utilisations, waiting_seconds, strict=True))
    sampled = sum(float(h[~np.isnan(u)].sum()) for u, h in zip(utilisations, waiting_seconds, strict=True))
    return WaitCost(
        spans=spans,
        seconds=intervals.total_seconds(spans),
        utilisation=1 - lost / max(sampled, 1e-9),
        lost_gpu_seconds=lost,
        lost_share=lost / (window.seconds * len(gpus)),
        samples=sum(one.count_readings(UTILISATION, intervals.contains(spans, one.times)) for one in gpus.values()),
        level_evidence=build_level_evidence(gpus, dict.fromkeys(gpus, spans)),
    )


def rate_confidence(candidate: WaitCandidate, cost: WaitCost, comparison: ComparedEpisodes) -> Confidence:
    """Return high confidence if samples are dense and many and well-fed time was there to compare with."""
    interval = max(one.interval for one in (candidate.source, *candidate.gpus.values()))
    close = interval <= 5  # noqa: PLR2004 - the interval above which nine samples span a minute
    return certainty.lowest_confidence(
        Confidence.HIGH if comparison.has_comparison and close else Confidence.MEDIUM,
        certainty.confidence_by_readings(cost.samples // len(candidate.gpus), interval),
    )


def list_ruled_out(what: str, comparison: ComparedEpisodes) -> tuple[str, ...]:
    """Return which other explanations were excluded."""
    sentence = f"{what} beside busy GPUs: there it is at {phrases.percent(comparison.fed_mean)}"
    return ("start-up and tail of the job", *([sentence] if comparison.has_comparison else []))


def describe_wait(cost: WaitCost) -> str:
    """Return how little GPUs worked, and for how long, in words that follow their names."""
    return f"averaged {phrases.percent(cost.utilisation)} utilisation over {phrases.duration(cost.seconds)}"


def build_utilisation_evidence(cost: WaitCost, limit: Threshold) -> Evidence:
    """Return the utilisation of the GPUs meanwhile, against its limit."""
    return compare_with_limit(UTILISATION, "mean", cost.utilisation, "<", limit)


def build_duration_evidence(cost: WaitCost, shortest: Threshold) -> Evidence:
    """Return how long episodes lasted, against the shortest that counts."""
    return compare_with_limit("duration", "total", cost.seconds, ">=", shortest)
