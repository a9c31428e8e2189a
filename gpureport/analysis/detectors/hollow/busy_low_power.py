"""GPUs that report to be busy and hardly do anything: a hung collective, or kernels too small to fill them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import missing_metrics
from gpureport.analysis.detectors.hollow import hollow_causes, hollow_episodes, hollow_wording
from gpureport.analysis.detectors.hollow.hollow_causes import HANG, HollowSigns
from gpureport.analysis.detectors.hollow.hollow_groups import HollowGroup, group_episodes
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals import load
from gpureport.analysis.signals.clock_signals import CLOCKS, list_event_metrics, read_clocks
from gpureport.analysis.signals.power_of_limit import POWER, PowerOfLimit, build_power_of_limit
from gpureport.analysis.thresholds import pragmatic, read_limits
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

_KIND = "hollow_util"
_SURE_READINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowUtil(ClassRule):
    """Utilisation of at least 80% in 85% of the samples, and next to no work, over 15 s or eleven samples.

    Next to no work: mean power above idle below 36% of what the limit in force leaves, unless DCGM saw memory busy (the
    power reached for half a minute stands for a limit that nobody knows: it clears no GPU);
    where DCGM counted the activity of multiprocessors, less than half of it, or all of them spinning at less than
    15% of that power. Within the job, for at least 30 s and five intervals. Not while heat, hardware or the power
    limit lower the clock, nor at a clock below 75% of the highest, which explains low power by itself. Causes: hang
    (a GPU of the job did nothing meanwhile; or no memory traffic, nearly no power where that was not recorded, and
    the other GPUs alike, unless the busiest core is known to have time), straggler (another GPU worked hard
    meanwhile), else launch-bound; none is named where a hang and kernels that only wait look the same, as on a GPU
    by itself. A GPU that receives 10 GB/s or more, and sends less than half of it, probably waits for copies.
    """

    name = _KIND
    requires = ((UTILISATION,), (POWER, hollow_episodes.SM))
    after = hollow_episodes.EXPLAINING_KINDS
    wants = (
        "gpu_power_limit_watts",
        "gpu_power_limit_default_watts",
        hollow_episodes.SM,
        hollow_episodes.DRAM,
        hollow_causes.TENSOR,
        hollow_causes.CONTROLLER,
        hollow_causes.CORE,
        load.RECEIVED,
        load.SENT,
        CLOCKS[0],
        "gpu_sm_clock_max_hertz",
        *list_event_metrics("sw_power_cap"),
    )

    busy: Threshold = pragmatic(0.80, "1", "kernels that spin or follow each other closely keep it above")
    busy_share: Threshold = pragmatic(0.85, "1", "share of the samples; a pause now and then is no other state")
    power: Threshold = pragmatic(
        0.36, "1", "training that fills a GPU draws more than half of what the limit leaves, spinning kernels a tenth"
    )
    active: ClassVar[Threshold] = hollow_episodes.ACTIVE
    shortest: Threshold = pragmatic(30.0, "s", "a shorter stretch is a phase of the job")
    copied: ClassVar[Threshold] = hollow_causes.KEEPS_GPU_WAITING
    problem: Threshold = pragmatic(0.05, "1", "share of the job lost in a hang that decides its cost")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield a finding for each group of GPUs that were hollow at the same time for the same reason."""
        if context.window is None:
            return
        scales = {device: build_power_of_limit(series, at_least=True) for device, series in context.gpus().items()}
        needed = max(
            self.shortest.value, hollow_episodes.SHORTEST_ROWS * max(c.interval for c in context.gpus().values())
        )
        if context.whole.seconds < needed:
            yield from self._report_unjudged(context, ())
            yield missing_metrics.too_short(_KIND, context.whole.seconds, needed)
            return
        groups = list(group_episodes(self._find_episodes(context, scales), hollow_causes.TOGETHER))
        yield from self._report_unjudged(context, {device for group in groups for device in group.devices})
        for group in groups:
            yield self._build_finding(context, group, scales)

    def _report_unjudged(self, context: Context, found: Collection[str]) -> Iterator[NotJudged]:
        """Yield why GPUs without a finding are not judged: the highest power recorded clears none."""
        for device, series in context.gpus().items():
            known = device in found or build_power_of_limit(series) is not None
            if known or series.is_recorded(hollow_episodes.SM):
                continue
            if series.explain_implausibility(POWER):
                yield missing_metrics.implausible(_KIND, device, POWER)
            elif not series.is_recorded(POWER):
                yield missing_metrics.not_recorded(_KIND, device, POWER)
            else:
                reason = f"the power limit was not recorded and is not known for {series.device.model or 'this GPU'}"
                yield missing_metrics.unjudged(
                    _KIND, device, reason, ["gpu_power_limit_watts"], code="unknown_power_limit"
                )

    def _find_episodes(self, context: Context, scales: Mapping[str, PowerOfLimit | None]) -> "list[HollowGroup]":
        """Return each episode of each GPU on its own, with its signs and cause."""
        limits = read_limits(self, hollow_episodes.Limits)
        episodes = {
            name: hollow_episodes.find_job_episodes(context, one, scales[name], limits)
            for name, one in context.gpus().items()
        }
        peers, groups = hollow_causes.find_peer_signs(context, episodes, scales), []
        for name, spans in episodes.items():
            for one in np.split(spans, len(spans)) if len(spans) else ():
                signs = hollow_causes.measure_signs(context, name, one, scales[name], next(peers))
                cause = hollow_causes.name_cause(signs)
                groups.append(HollowGroup(devices=(name,), spans=one, signs=(signs,), cause=cause))
        return groups

    def _build_finding(
        self, context: Context, group: "HollowGroup", scales: Mapping[str, PowerOfLimit | None]
    ) -> Finding:
        seconds = intervals.total_seconds(group.spans)
        whole = max((context.window or context.whole).seconds, 1e-6)
        everybody = tuple(context.gpus())
        hung = group.cause == HANG
        signs = group.find_median_signs()
        lost = seconds * len(group.devices) * (1.0 if hung else 1.0 - signs.compute_done_share())
        series = [context.series[name] for name in group.devices]
        readings = [one.count_readings(POWER, hollow_causes.find_rows_inside(one, group.spans)) for one in series]
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM if hung and seconds / whole >= self.problem.value else Severity.WARNING,
            confidence=_rate_confidence(signs, [scales[name] for name in group.devices], min(readings)),
            devices=group.devices,
            intervals=intervals.to_intervals(group.spans),
            evidence=tuple(self._build_evidence(context, group, signs, seconds)),
            lost_gpu_seconds=lost,
            cause=group.cause,
            samples=sum(readings),
            ruled_out=hollow_wording.list_ruled_out(signs, clock_known=all(_is_clock_known(one) for one in series)),
            summary=hollow_wording.describe_episodes(group.devices, everybody, seconds, signs, group.cause),
            recommendation=KINDS["hollow_util"].advice[group.cause or ""],
        )

    def _build_evidence(
        self, context: Context, group: "HollowGroup", signs: HollowSigns, seconds: float
    ) -> Iterator[Evidence]:
        used = [
            float(np.nanmean(one.values(UTILISATION)[hollow_causes.find_rows_inside(one, group.spans)]))
            for one in (context.series[name] for name in group.devices)
        ]
        yield compare_with_limit(UTILISATION, "mean", min(used), ">=", self.busy)
        is_active_known = not np.isnan(signs.active)
        if not np.isnan(signs.power_share):
            power = compare_with_limit(
                "gpu_power_watts", "mean above idle, of what the limit leaves", signs.power_share, "<", self.power
            )
            yield power.as_context() if is_active_known else power
        if is_active_known:
            active = compare_with_limit(hollow_episodes.SM, "mean", signs.active, "<", hollow_episodes.ACTIVE)
            yield active if active.meets_limit else active.as_context()
        for metric, value in (
            (hollow_causes.TENSOR, signs.tensor),
            ("memory traffic", signs.memory_traffic),
            (hollow_causes.CORE, signs.busiest_core_load),
        ):
            if not np.isnan(value):
                yield Evidence(metric=metric, statistic="mean", observed=value, unit="1")
        if group.cause == load.COPYING:
            yield compare_with_limit(load.RECEIVED, "mean", signs.received, ">=", self.copied)
        yield compare_with_limit("duration", "total", seconds, ">=", self.shortest)


def _rate_confidence(signs: HollowSigns, scales: Sequence[PowerOfLimit | None], readings: int) -> Confidence:
    """Return low confidence if the limit was not logged, high with a logged limit and enough readings."""
    if not np.isnan(signs.active):
        return Confidence.HIGH
    if any(scale is None or scale.source for scale in scales):
        return Confidence.LOW
    return Confidence.HIGH if readings >= _SURE_READINGS else Confidence.MEDIUM


def _is_clock_known(series: DeviceSeries) -> bool:
    clock, highest = read_clocks(series)
    return highest > 0 and not bool(np.isnan(clock).all())
