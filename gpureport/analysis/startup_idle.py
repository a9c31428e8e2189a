"""Time before the job's first sustained GPU work and after its last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import answering, intervals, wording
from gpureport.analysis.base import Context
from gpureport.analysis.phases import ACTIVE, LATE, NO_WORK, UTILISATION
from gpureport.analysis.statistics import IDLE_RATIO
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_STARTUP = (
    "Shorten the way to the first step: cache compiled kernels and preprocessed data, import lazily, load weights "
    "and build the input pipeline at the same time, and reserve the GPU only when the job can use it."
)
_TAIL = "Release the GPU as soon as training ends; export, evaluate on the CPU and upload without holding it."
_NEVER = (
    "Check that the job uses the GPU at all (device selection, CUDA_VISIBLE_DEVICES, the installed framework build)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupIdle:
    """At least 10 s before the first sustained activity of any GPU (utilisation above 12 %), or after the last.

    The log may have ended up to one interval after its last sample. Both are properties of the job: a GPU that
    rests while another works has an idle gap. A GPU that begins up to a minute after the first is still starting
    up. Lost is the time at a utilisation of at most 12 %. A job in which no GPU ever has sustained work above 12 % is
    named as such: what it lost is its time at 5 % and less, and the unused share of the rest.
    """

    kinds: ClassVar[tuple[str, ...]] = ("startup_idle", "tail_idle")
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = ()
    wants: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = (
        ("startup_idle", (_STARTUP, _NEVER)),
        ("tail_idle", (_TAIL,)),
    )

    shortest: Threshold = pragmatic(10.0, "s", "importing a framework takes as long")
    long: Threshold = literature(1200.0, "s", "SageMaker Debugger, MaxInitializationTime: 20 min")
    share: Threshold = pragmatic(0.05, "1", "share of the recording that is worth a change")
    bursts: Threshold = pragmatic(0.05, "1", "more work than a few autotuning kernels")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield start-up, late starts of single GPUs, and tail, each at most once."""
        whole, window = context.whole, context.window
        if whole.seconds < self.shortest.value:
            yield from (answering.too_short(kind, whole.seconds, self.shortest.value) for kind in self.kinds)
            return
        if window is None:
            yield self._never(context)
            return
        yield from self._finding(context, "startup_idle", Interval(whole.start, window.start), ())
        for device, own in context.active.items():
            if own.start - window.start <= LATE.value * 1e6:
                yield from self._finding(context, "startup_idle", Interval(window.start, own.start), (device,))
        yield from self._finding(context, "tail_idle", Interval(window.end, whole.end), ())

    def _finding(self, context: Context, kind: str, interval: Interval, devices: tuple[str, ...]) -> Iterator[Finding]:
        step = context.recording.run.interval or 0.0
        late = kind == "tail_idle" and interval.seconds < self.shortest.value
        beyond = min(step, interval.seconds, self.shortest.value) if late else 0.0
        if interval.seconds + beyond < self.shortest.value:
            return
        resting = _resting(context, interval, devices or context.gpus(), ACTIVE.value)
        sampled = _resting(context, interval, devices or context.gpus(), 1.0)
        if resting < self.shortest.value / 2:
            # nearly all of it lies in a gap of the log, about which nothing is known
            return
        share = interval.seconds / context.whole.seconds
        bursts = 1 - resting / sampled
        long = interval.seconds > self.long.value or share > self.share.value
        whose = wording.gpu(devices[0]) if devices else "the GPUs"
        when = "before the first sustained work of" if kind == "startup_idle" else "after the last sustained work of"
        yield Finding(
            kind=kind,
            severity=Severity.WARNING if long else Severity.INFO,
            confidence=Confidence.HIGH if bursts <= self.bursts.value else Confidence.LOW,
            devices=devices,
            intervals=(interval,),
            evidence=(_length(interval.seconds, beyond, self.shortest), _share(share, self.share)),
            lost_gpu_seconds=resting,
            samples=_samples(context, interval),
            summary=(
                f"{wording.duration(interval.seconds)} passed {when} {whose} (utilisation above "
                f"{wording.percent(ACTIVE.value)}), {wording.percent(share)} of the recording."
                + (f" Short bursts fill {wording.percent(bursts)} of it." if bursts > self.bursts.value else "")
            ),
            recommendation=_STARTUP if kind == "startup_idle" else _TAIL,
        )

    def _never(self, context: Context) -> Finding:
        whole = context.whole
        idle = _resting(context, whole, context.gpus(), IDLE_RATIO)
        share = idle / (whole.seconds * max(len(context.gpus()), 1))
        return Finding(
            kind="startup_idle",
            severity=Severity.WARNING,
            confidence=Confidence.HIGH if _samples(context, whole) else Confidence.LOW,
            devices=(),
            intervals=(whole,),
            evidence=(
                _length(whole.seconds, 0.0, self.shortest),
                Evidence(metric=UTILISATION, statistic="share of time at 5 % and less", observed=share, unit="1"),
            ),
            lost_gpu_seconds=_unused(context),
            cause=NO_WORK,
            samples=_samples(context, whole),
            summary=(
                f"No sustained work above {wording.percent(ACTIVE.value)} in the {wording.duration(whole.seconds)} of "
                f"this recording; utilisation was at most 5 % for {wording.percent(share)} of it."
            ),
            recommendation=_NEVER,
        )


def _resting(context: Context, interval: Interval, devices: Iterable[str], limit: float) -> float:
    """Return the GPU time within an interval that was sampled at a utilisation of at most `limit`."""
    seconds = 0.0
    for device in devices:
        cells = context.cells[device]
        start, end = cells.tiles(context.whole)
        inside = intervals.overlap(start, end, intervals.spans([interval]))
        seconds += float(inside[cells.values(UTILISATION) <= limit + 1e-6].sum())
    return seconds


def _unused(context: Context) -> float:
    """Return the GPU time at a utilisation of at most 5 %, and the unused share of all other samples."""
    seconds = 0.0
    for cells in context.gpus().values():
        start, end = cells.tiles(context.whole)
        used = cells.values(UTILISATION)
        unused = np.where(used <= IDLE_RATIO + 1e-6, 1.0, 1 - np.clip(used, 0, 1))
        seconds += float(np.nansum(unused * intervals.overlap(start, end, intervals.spans([context.whole]))))
    return seconds


def _length(seconds: float, beyond: float, limit: Threshold) -> Evidence:
    return Evidence(
        metric="duration",
        statistic="length, at most (the log may end an interval late)" if beyond else "length",
        observed=seconds + beyond,
        unit="s",
        threshold=limit,
        relation=">=",
    )


def _share(share: float, limit: Threshold) -> Evidence:
    relation = ">" if share > limit.value else "<="
    return Evidence(
        metric="duration",
        statistic="share of the recording",
        observed=share,
        unit="1",
        threshold=limit,
        relation=relation,
    )


def _samples(context: Context, interval: Interval) -> int:
    gpus = context.gpus().values()
    return sum(cells.readings(UTILISATION, cells.rows(interval.start, interval.end)) for cells in gpus)
