"""GPUs that work only part of the time, with nothing recorded that would tell why."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.analysis import certainty, phrases
from gpureport.analysis.detectors.low_use.low_use_rule import LowUseRule
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import events
from gpureport.analysis.job.phases import JOB
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.signals import job_load, low_use, low_use_figures
from gpureport.analysis.signals.core_count import CPU
from gpureport.analysis.signals.job_load import OtherLoad
from gpureport.analysis.signals.low_use import LowUse
from gpureport.analysis.signals.low_use_figures import LowUseFigures
from gpureport.findings import Confidence, Evidence, Finding, Severity

_KIND = "low_util_cause_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUtilCauseUnknown(LowUseRule):
    """Mean utilisation outside idle gaps between 8 and 64% for two minutes or 30 samples, and nothing that shows why.

    The time of low use ends when the mean rises above 72%. Log gaps, idle gaps and start-up are not part of it. Where
    samples are far apart, the mean of the whole time must lie below 70% by three standard errors. A shorter job, from
    30 s on, is assessed by the mean of all its work, with low confidence. With fewer than 30 samples that mean, too,
    must lie below 70% by three standard errors. A training log whose loop waited for data in 20% of each iteration or
    more names that as the cause. Without a CPU series a wait for data looks like any other, so no
    cause is named. With a CPU series, `underutilised` covers this case, unless the median CPU use is at least 75%
    while the job itself keeps less than half a core busy, and less than half of the load: then the job may lack the
    CPU, or wait for something else.
    """

    name = _KIND
    wants = (CPU, JOB)

    def group_gpus(self, context: Context, low: LowUse) -> Sequence[Sequence[str]]:
        """Return the GPUs whose CPU was not recorded, then of each node those whose CPU other programs fill."""
        watched = {name for name, spans in low.spans.items() if low_use.is_cpu_recorded(context, name, spans)}
        beside: dict[str | None, list[str]] = {}
        for name, spans in low.spans.items():
            if job_load.find_other_load(context, name, spans) is not None:
                beside.setdefault(context.series[name].device.node, []).append(name)
        return [[name for name in low.spans if name not in watched], *beside.values()]

    def build_finding(self, context: Context, low: LowUse, figures: LowUseFigures) -> Finding:
        """Return the finding over these GPUs."""
        other = job_load.find_other_load(context, figures.devices[0], low.spans[figures.devices[0]])
        share = events.data_wait_share(context.recording)
        requests = events.DATA if share else low_use_figures.find_cause(context, figures.devices)
        why = "without a CPU log the cause is unknown" if other is None else _describe_other_load(other)
        if share:
            why = f"{phrases.percent(share)} of each iteration was waiting for data, as the training log says"
        interval = max(context.series[name].interval for name in figures.devices)
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=certainty.lowest_confidence(
                Confidence.LOW if low.is_short_job else Confidence.MEDIUM,
                certainty.confidence_by_readings(figures.samples // len(figures.devices), interval),
            ),
            devices=figures.devices,
            intervals=intervals.to_intervals(figures.spans),
            evidence=(
                *low_use_figures.build_use_evidence(context, low, figures, self.enter),
                low_use_figures.build_duration_evidence(low, figures, self.over, self.shortest),
                *([] if other is None else _build_load_evidence(other)),
                *([Evidence(metric=events.WAITING, statistic="median", observed=share, unit="1")] if share else ()),
            ),
            lost_gpu_seconds=figures.lost,
            cause=requests if share or other is None else job_load.BESIDE_OTHERS,
            samples=figures.samples,
            ruled_out=("idle gaps and log gaps, which are counted on their own",),
            summary=f"{figures.describe(context.gpus())}; {why}.",
            recommendation=KINDS[_KIND].advice[
                requests if requests == events.DATA else job_load.BESIDE_OTHERS if other else requests or ""
            ],
        )


def _describe_other_load(other: OtherLoad) -> str:
    return (
        f"the CPU was {phrases.percent(other.cpu)} busy with other programs, the job itself hardly used it "
        f"({other.job:.2f} cores), and the log doesn't show what the GPU waited for"
    )


def _build_load_evidence(other: OtherLoad) -> tuple[Evidence, ...]:
    return (
        compare_with_limit(CPU, "median", other.cpu, ">=", job_load.FULL),
        compare_with_limit(JOB, "median", other.job, "<", job_load.HARDLY),
    )
