"""Stretches in which a GPU did nothing while the job was running."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpureport.analysis import answering, idle_runs, intervals, waiting, wording
from gpureport.analysis.base import Context
from gpureport.analysis.cells import Cells
from gpureport.analysis.idle_runs import IdleRun
from gpureport.analysis.intervals import Spans
from gpureport.analysis.phases import LATE, UTILISATION
from gpureport.analysis.thresholds import pragmatic, vendor
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_SURE_SAMPLES = 5
_LONE = 1.5
"""Intervals a single sample may speak for, with jitter."""
_DATA = (
    "The GPU waits for input: add loader workers, prefetch and pin memory, move preprocessing offline or onto the GPU."
)
_UNKNOWN = (
    "See what the job does at this time: write checkpoints asynchronously and less often, keep loader workers "
    "alive between epochs, prefetch, and overlap evaluation and logging with training."
)


_PEERS = (
    "The other GPUs went on: look for a dead or waiting rank on this one (its process, its log, the collective it "
    "waits in)."
)
_UNUSED = "This GPU was never used: release it or check CUDA_VISIBLE_DEVICES."
_ADVICE = {"data": _DATA, "peers busy": _PEERS, "unused": _UNUSED, "unknown": _UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """An idle run of one GPU within the job, and what lies behind it."""

    device: str
    interval: Interval
    run: IdleRun
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGap:
    """At least 5 s within the job in which a GPU's utilisation reaches 5 % or less and never exceeds 12 %.

    A moment of little work, such as a stray kernel, does not end a gap; a log gap does. Where samples are
    further apart than what a value covers, so many low samples in a row must be unlikely to come from the
    texture of the samples around them; and low samples within an episode of waiting for input are part of it. Rows
    that repeat a reading of the driver count once, and no gap is shorter than the time from one reading to the next.
    Causes: data (within an episode of waiting for input), unused (this GPU never worked while another did), peers busy
    (at least a minute in which another GPU worked for 90 % of the time), else unknown.
    """

    kinds: ClassVar[tuple[str, ...]] = ("idle_gap",)
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = waiting.KINDS
    wants: ClassVar[tuple[str, ...]] = ("gpu_power_watts",)
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = (("idle_gap", tuple(_ADVICE.values())),)

    idle: Threshold = pragmatic(0.05, "1", "background kernels of a monitor or a display stay below it")
    still: Threshold = pragmatic(0.12, "1", "one stray kernel of 0.1 s in a 1-s window stays below it")
    shortest: Threshold = pragmatic(5.0, "s", "shorter gaps cannot be told from sampling at 1 s")
    bridge: Threshold = pragmatic(1.6, "s", "one sample at 1 s, with jitter")
    bridge_busy: Threshold = pragmatic(0.2, "s", "a stray kernel, not a training step")
    bridge_ratio: Threshold = pragmatic(0.3, "1", "a stray kernel of 0.15 s in a window of 0.5 s")
    null: Threshold = pragmatic(10.0, "s", "a driver that answers N/A for a moment")
    chance: Threshold = pragmatic(0.05, "1", "the usual level of significance, over all places a run could be")
    neighbours: Threshold = pragmatic(30.0, "rows", "enough to know the texture around a run")
    coarse: Threshold = vendor(
        2.0, "s", "NVML: a utilisation value covers at most 1 s; further apart are point samples"
    )
    hang: Threshold = pragmatic(60.0, "s", "ranks of one job do not wait this long for each other")
    peers: Threshold = pragmatic(0.9, "1", "share of the gap in which another GPU worked, with room for its own pauses")
    warning: Threshold = pragmatic(0.02, "1", "share of the job above which gaps are worth a change")
    problem: Threshold = pragmatic(0.20, "1", "share of the job above which gaps decide its cost")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding a gap and GPU, in time order, and the GPUs without utilisation."""
        if context.whole.seconds < self.shortest.value:
            yield answering.too_short("idle_gap", context.whole.seconds, self.shortest.value)
            return
        if context.window is None:
            return
        for device, cells in context.gpus().items():
            if cells.recorded(UTILISATION):
                yield from self._finer(device, cells)
                yield from self._of(context, context.window, device, cells)
            else:
                yield answering.absent("idle_gap", device, UTILISATION)

    def _finer(self, device: str, cells: Cells) -> Iterator[NotJudged]:
        """Say where the driver gives new values too seldom for the gaps asked for."""
        period = cells.period(UTILISATION) or 0.0
        if self.shortest.value < period:
            yield NotJudged(
                kind="idle_gap",
                device=device,
                reason=(
                    f"the driver gives a new utilisation every {wording.duration(period)}, so gaps between "
                    f"{wording.duration(self.shortest.value)} and that cannot be seen, however fast the log is written"
                ),
                recording="a trace of the job (nsys profile, or the profiler of the framework)",
            )

    def _limits(self, shortest: float) -> idle_runs.Limits:
        return idle_runs.Limits(
            idle=self.idle.value + 1e-6,
            still=self.still.value + 1e-6,
            bridge_seconds=self.bridge.value,
            bridge_busy=self.bridge_busy.value,
            bridge_ratio=self.bridge_ratio.value,
            null_seconds=self.null.value,
            shortest_seconds=shortest,
            chance=self.chance.value,
            neighbours=round(self.neighbours.value),
        )

    def _of(self, context: Context, window: Interval, device: str, cells: Cells) -> Iterator[Finding]:
        own = context.active.get(device, window)
        late = own.start - window.start <= LATE.value * 1e6
        begin = max(window.start, own.start) if late else window.start
        shortest = max(self.shortest.value, cells.period(UTILISATION) or 0.0)
        runs = idle_runs.find(cells, self._limits(shortest), window)
        parts = [Interval(max(run.start, begin), min(run.end, window.end)) for run in runs]
        waits = _waits(context)
        starved = _starved(waits, parts)
        if cells.interval > self.coarse.value:
            # low samples of a wait are that wait; a gap right behind it is not
            least = max(shortest, _LONE * cells.interval)
            parts = [_beyond(waits, part, least) if held else part for part, held in zip(parts, starved, strict=True)]
            runs = tuple(
                _within(cells, run, part) if held else run for run, part, held in zip(runs, parts, starved, strict=True)
            )
            starved = [False] * len(parts)
        gaps = [
            _Gap(device=device, interval=part, run=run, cause="data" if held else self._cause(context, device, part))
            for part, run, held in zip(parts, runs, starved, strict=True)
            if part.seconds >= shortest
        ]
        lost = sum(gap.interval.seconds for gap in gaps) / window.seconds
        several = len(context.gpus()) > 1
        for gap in gaps:
            yield self._finding(gap, cells.resolution(UTILISATION), lost, several=several)

    def _level(self, mean: float) -> Evidence:
        """Return the mean of a gap; where bridged kernels raise it, without the limit that single samples keep to."""
        low = mean <= self.still.value
        return Evidence(
            metric=UTILISATION,
            statistic="mean" if low else "mean, short kernels included",
            observed=mean,
            unit="1",
            threshold=self.still if low else None,
            relation="<=" if low else "",
        )

    def _cause(self, context: Context, device: str, gap: Interval) -> str:
        if device not in context.active:
            return "unused"
        if gap.seconds < self.hang.value:
            return "unknown"
        others = (one for name, one in context.gpus().items() if name != device)
        busy = any(_busy_seconds(one, gap, self.still.value) >= self.peers.value * gap.seconds for one in others)
        return "peers busy" if busy else "unknown"

    def _severity(self, lost: float) -> Severity:
        if lost >= self.problem.value:
            return Severity.PROBLEM
        return Severity.WARNING if lost >= self.warning.value else Severity.INFO

    def _finding(self, gap: _Gap, step: float, lost: float, *, several: bool) -> Finding:
        interval, run, samples = gap.interval, gap.run, gap.run.samples
        certain = interval.seconds >= self.shortest.value + 1.5 * step and samples >= _SURE_SAMPLES
        return Finding(
            kind="idle_gap",
            severity=self._severity(lost),
            confidence=Confidence.HIGH if certain else Confidence.MEDIUM if samples > 1 else Confidence.LOW,
            devices=(gap.device,),
            intervals=(interval,),
            evidence=(
                self._level(run.mean),
                Evidence(
                    metric="duration",
                    statistic="length",
                    observed=interval.seconds,
                    unit="s",
                    threshold=self.shortest,
                    relation=">=",
                ),
                Evidence(metric="idle time of this GPU in gaps", statistic="share of the job", observed=lost, unit="1"),
            ),
            lost_gpu_seconds=interval.seconds,
            cause=gap.cause,
            samples=samples,
            ruled_out=_ruled_out(run, several=several),
            summary=(
                f"{wording.gpu(gap.device)} was idle for {wording.duration(interval.seconds)} while the job was "
                f"running (mean utilisation {wording.percent(run.mean)})."
            ),
            recommendation=_ADVICE[gap.cause],
        )


def _busy_seconds(cells: Cells, gap: Interval, still: float) -> float:
    """Return how long a GPU worked during the gap of another."""
    # no cell reaches further than this from its stamp; a day has thousands of gaps, and few rows lie in each
    reach = round(2e6 * cells.interval) + cells.shift
    rows = cells.rows(gap.start - reach, gap.end + reach)
    start, end = cells.start[rows] - cells.shift, cells.end[rows] - cells.shift
    inside = intervals.overlap(start, end, intervals.spans([gap]))
    return float(inside[cells.values(UTILISATION)[rows] > still].sum())


def _starved(episodes: Spans, parts: list[Interval]) -> list[bool]:
    """Return which gaps lie in episodes of waiting for input for at least half of their length."""
    edges = np.array([(part.start, part.end) for part in parts], dtype=np.int64).reshape(-1, 2)
    shared = intervals.overlap(edges[:, 0], edges[:, 1], episodes)
    return [2 * seconds >= part.seconds for seconds, part in zip(shared.tolist(), parts, strict=True)]


def _beyond(episodes: Spans, gap: Interval, least: float) -> Interval:
    """Return the longest part of a gap outside episodes of waiting, an empty one where none is long enough."""
    left = intervals.difference(intervals.spans([gap]), episodes)
    parts = [part for part in intervals.intervals(left) if part.seconds >= least]
    return max(parts, key=lambda part: part.seconds, default=Interval(gap.start, gap.start))


def _within(cells: Cells, run: IdleRun, part: Interval) -> IdleRun:
    """Return what lies behind a part of an idle run."""
    rows = cells.rows(part.start + cells.shift, part.end + cells.shift)
    return replace(run, samples=cells.readings(UTILISATION, rows))


def _waits(context: Context) -> Spans:
    found = (finding for kind in waiting.KINDS for finding in context.findings(kind))
    return intervals.spans(part for finding in found for part in finding.intervals)


def _ruled_out(run: IdleRun, *, several: bool) -> tuple[str, ...]:
    said = ["missing samples: a stretch without samples is a log gap"]
    if run.needed > 1:
        said.append(f"chance: {run.samples} low samples in a row, {run.needed} would already surprise")
    if several:
        said.append("start-up and tail of the job, which are counted over all GPUs")
    return tuple(said)
