"""One GPU that works differently from its peers, which agree among themselves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.detectors.balance.peer_differences import (
    PAIR,
    POWER,
    average_peers,
    compute_difference,
    compute_rolling_means,
    find_uneven_bins,
    group_by_model,
    is_surely_different,
)
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import Grid, build_grid
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

_KIND = "imbalance"
_COARSE_SECONDS = 5.0
"""Interval above which no difference is certain: the mean of the few point samples of a stretch is off by 8 to 13
points (measured at 5 to 30 s on jobs that alternate between work and waits); where in that range to begin is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance(ClassRule):
    """The mean utilisation of one GPU differs by over 20 points from the median of its peers, which agree within 12.

    Or all are above 80% and the mean power of one GPU differs by over 25% from the median of its peers, which agree
    within 20%. Means are taken over 30 s or eight samples. The difference must last at least 90 s and three such
    stretches. Of two GPUs the lower is named. Where samples are far apart, the means of the whole time must differ by
    20 points and three standard errors, and a shorter interruption does not count. Left out are GPUs of other models,
    GPUs that never worked, and time in which a GPU was slowed, idle, or busy at low power. Stages of a pipeline may
    differ by design.
    """

    name = _KIND
    requires = ((UTILISATION,),)
    after = (*("idle_gap", "startup_idle", "tail_idle", "thermal_throttle", "hw_throttle", "hollow_util"),)
    wants = (POWER,)

    differs: Threshold = pragmatic(0.20, "1", "steps of data-parallel ranks differ by a few points")
    agree: Threshold = pragmatic(0.12, "1", "where the others differ this much among themselves, none stands out")
    busy: ClassVar[float] = 0.80  # ranks that wait inside a collective keep their utilisation
    power_differs: Threshold = pragmatic(0.25, "1", "boards of a model differ by some 10% at the same work")
    power_agree: Threshold = pragmatic(0.20, "1", "slots of one machine are cooled differently")
    over: ClassVar[float] = 30.0  # s; means over many steps; sensors that see a quarter of the time need it
    rows: ClassVar[float] = 8.0  # rows; fewer point samples do not make a mean
    shortest: Threshold = pragmatic(90.0, "s", "an evaluation or a checkpoint on one rank is shorter")
    stretches: ClassVar[float] = 3.0  # rows; independent means in a row that must agree

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each GPU and signal, with all its episodes."""
        if context.window is None:
            return
        for peers in group_by_model(context):
            bins = build_grid(context.window, list(peers.values()))
            length = max(round(self.over / bins.width), round(self.rows))
            needed = max(self.shortest.value, self.stretches * length * bins.width)
            if context.whole.seconds < needed:
                yield missing_metrics.too_short(_KIND, context.whole.seconds, needed)
                continue
            yield from self._judge_peers(context, peers, bins, length, needed)

    def _judge_peers(
        self, context: Context, peers: dict[str, DeviceSeries], bins: Grid, length: int, needed: float
    ) -> Iterator[Finding]:
        numbers = np.arange(bins.count)
        starts, ends = bins.find_bin_edges(numbers, "right"), bins.find_bin_edges(numbers + 1, "left")
        explained = {
            name: intervals.collect_finding_spans(context.findings_on(name), name, self.after) for name in peers
        }
        is_explained = {name: intervals.overlap_seconds(starts, ends, spans) > 0 for name, spans in explained.items()}
        used = compute_rolling_means(bins, peers, UTILISATION, is_explained, length)
        uneven = find_uneven_bins(used, self.differs.value, self.agree.value, relative=False)
        yield from self._judge_signal(context, peers, bins, uneven, needed, "utilisation")
        power = compute_rolling_means(bins, peers, POWER, is_explained, length)
        is_full = np.all([series >= self.busy for series in used.values()], axis=0)
        is_even = ~np.any(list(uneven.values()), axis=0)
        odd_bins = find_uneven_bins(power, self.power_differs.value, self.power_agree.value, relative=True)
        loads = {name: rows & is_full & is_even for name, rows in odd_bins.items()}
        yield from self._judge_signal(context, peers, bins, loads, needed, "power")

    def _judge_signal(  # noqa: PLR0913, PLR0917 - what a finding is made of
        self,
        context: Context,
        peers: dict[str, DeviceSeries],
        bins: Grid,
        odd_bins: Mapping[str, BoolArray],
        needed: float,
        signal: str,
    ) -> Iterator[Finding]:
        for name, rows in odd_bins.items():
            is_coarse = bins.width > POINT_SAMPLE_SECONDS
            spans = bins.mask_to_spans(rows, needed if is_coarse else self.over, needed)
            spans = intervals.intersection(spans, context.work)
            if is_coarse and signal == "utilisation":
                is_sure = [
                    is_surely_different(peers, name, spans[row : row + 1], self.differs.value)
                    for row in range(len(spans))
                ]
                spans = spans[np.array(is_sure, dtype=np.bool_)]
            spans = self._keep_longer_side(peers, name, spans, signal)
            if len(spans):
                yield from self._build_finding(peers, name, spans, signal)

    def _keep_longer_side(self, peers: dict[str, DeviceSeries], name: str, spans: Spans, signal: str) -> Spans:
        """Return the stretches over which the means differ, on the side on which the GPU is for longer.

        A GPU that is ahead for as long as it is behind does the same work in all.
        """
        metric, limit = (UTILISATION, self.differs) if signal == "utilisation" else (POWER, self.power_differs)
        differences = np.array(
            [compute_difference(peers, name, metric, spans[row : row + 1]) for row in range(len(spans))]
        )
        far = spans[np.abs(differences) >= limit.value]
        above = differences[np.abs(differences) >= limit.value] > 0
        longer: Spans = far[
            above if 2 * intervals.total_seconds(far[above]) >= intervals.total_seconds(far) else ~above
        ]
        return longer

    def _build_finding(self, peers: dict[str, DeviceSeries], name: str, spans: Spans, signal: str) -> Iterator[Finding]:
        metric = UTILISATION if signal == "utilisation" else POWER
        own, others = average_peers(peers, name, metric, spans)
        if np.isnan(own) or not others:
            # means over half a minute reach into stretches in which a GPU has no value of its own
            return
        usual_mean = float(np.median(list(others.values())))
        seconds = intervals.total_seconds(spans)
        compared = [peers[each] for each in (name, *others)]
        readings = min(one.count_readings(metric, intervals.contains(spans, one.times)) for one in compared)
        is_sure = len(compared) > PAIR and max(one.interval for one in peers.values()) <= _COARSE_SECONDS
        yield Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=Confidence.HIGH if is_sure else Confidence.MEDIUM,
            devices=(name,),
            intervals=intervals.to_intervals(spans),
            evidence=tuple(self._build_evidence(own, usual_mean, seconds, signal, metric)),
            lost_gpu_seconds=_compute_lost_seconds(own, list(others.values()), seconds)
            if signal == "utilisation"
            else None,
            cause=signal,
            samples=readings,
            ruled_out=(
                "idle gaps, slowdowns and busy time at low power, left out for the GPU they concern",
                "a GPU never used",
            ),
            summary=_describe_difference(name, tuple(others), own, usual_mean, seconds, signal),
            recommendation=KINDS["imbalance"].advice[signal],
        )

    def _build_evidence(self, own: float, usual: float, seconds: float, signal: str, metric: str) -> Iterator[Evidence]:
        unit = "1" if signal == "utilisation" else "W"
        yield Evidence(metric=metric, statistic="mean", observed=own, unit=unit)
        yield Evidence(metric=metric, statistic=phrases.PEERS_MEAN, observed=usual, unit=unit)
        relative = signal == "power"
        yield compare_with_limit(
            metric,
            "difference, of its peers" if relative else "difference",
            abs(own - usual) / (usual if relative else 1.0),
            ">=",
            self.power_differs if relative else self.differs,
        )
        yield compare_with_limit("duration", "total", seconds, ">=", self.shortest)


def _compute_lost_seconds(own: float, others: Sequence[float], seconds: float) -> float:
    """Return the GPU-seconds that GPUs fell short of the busier side; at most, since stages may differ by design."""
    usual = float(np.median(others))
    return (usual - own) * seconds if own < usual else (own - usual) * seconds * len(others)


def _describe_difference(  # noqa: PLR0913, PLR0917 - the figures of one sentence
    name: str, others: Sequence[str], own: float, usual: float, seconds: float, signal: str
) -> str:
    whose = phrases.gpu_name(name)
    peers = phrases.gpu_name(others[0]) if len(others) == 1 else "the others"
    if signal == "utilisation":
        return (
            f"{whose} averaged {phrases.percent(own)} utilisation over {phrases.duration(seconds)}, {peers} "
            f"{phrases.percent(usual)}."
        )
    straggler = f" {phrases.capitalize(peers)} may be waiting for it." if own > usual else ""
    return (
        f"{whose} drew {own:.0f} W at full utilisation over {phrases.duration(seconds)}, {peers} {usual:.0f} W."
        f"{straggler}"
    )
