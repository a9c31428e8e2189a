"""GPUs that work only part of the time, with nothing recorded that would tell why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gpureport.analysis.job import training_signs
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules import certainty, missing_metrics, shared_advice
from gpureport.analysis.rules.kind_description import AdvicePath, KindDescription
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.analysis.series import intervals
from gpureport.analysis.signals import low_use, low_use_figures, waiting_gpus
from gpureport.analysis.signals.low_use import LowUse
from gpureport.analysis.signals.low_use_figures import LowUseFigures
from gpureport.analysis.thresholds import read_limits
from gpureport.findings import Confidence, Finding, NotJudged, Severity, Threshold

_KIND = "low_util_cause_unknown"
_ADVICE = f"Log the CPU beside the GPU to learn why: {missing_metrics.recording_command([low_use.CPU])}."


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUtilCauseUnknown(Rule):
    """Mean utilisation outside idle gaps between 8 and 64 % for two minutes or 30 samples, and no CPU series.

    An episode ends when the mean rises above 72 %. Log gaps, idle gaps and start-up inside it are not part of it. Where
    samples are points far apart, the mean of a whole episode lies below 70 % by three standard errors. A job too
    short for an episode is judged by the mean of all its work, from 30 s on, with low confidence; with fewer than 30
    samples that mean, too, must lie below 70 % by three standard errors.
    Without a CPU series a wait for data looks like any other, so no cause is named. With one, `underutilised` speaks.
    """

    name = _KIND
    descriptions = (
        KindDescription(
            name=_KIND,
            title="Low GPU utilisation, cause unknown",
            recommendations=(_ADVICE, training_signs.REQUESTS_ADVICE),
            advice_paths=(
                AdvicePath(causes=("requests or input",), steps=shared_advice.PROBE),
                AdvicePath(steps=(*shared_advice.PROBE, "loader_workers", "larger_batch")),
            ),
            follows_from=(*waiting_gpus.WAIT_ROOTS,),
            gpu_time_class="low_use",
        ),
    )
    requires = ((UTILISATION,),)
    after = low_use.EXPLAINING_KINDS
    wants = (low_use.CPU,)

    enter: Threshold = low_use.ENTER
    leave: Threshold = low_use.LEAVE
    gpu: Threshold = low_use.BELOW
    idle: Threshold = low_use.IDLE
    over: ClassVar[Threshold] = low_use.OVER
    rows: ClassVar[Threshold] = low_use.ROWS
    shortest: Threshold = low_use.SHORTEST
    fewest: ClassVar[Threshold] = low_use.FEWEST
    watched: ClassVar[Threshold] = low_use.WATCHED

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, over all GPUs whose CPU was not recorded."""
        wanted = read_limits(self, low_use.Limits)
        if (short := low_use.explain_too_short(_KIND, context, wanted)) is not None:
            yield short
            return
        low = low_use.find_low_use(context, wanted)
        alone = [name for name in low.spans if not low_use.is_cpu_recorded(context, wanted, name, low.spans[name])]
        if alone:
            yield self._build_finding(context, low, low_use_figures.summarise_low_use(context, low, alone))

    def _build_finding(self, context: Context, low: LowUse, figures: LowUseFigures) -> Finding:
        cause = low_use_figures.find_cause(context, figures.devices)
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
            ),
            lost_gpu_seconds=figures.lost,
            cause=cause,
            samples=figures.samples,
            ruled_out=("idle gaps and log gaps, which are counted on their own",),
            summary=f"{figures.describe(context.gpus())}; the cause is unknown, since no CPU series was recorded.",
            recommendation=training_signs.REQUESTS_ADVICE if cause else _ADVICE,
        )
