"""Strips of GPU utilisation over time: means of buckets, stretches without samples, and marks of findings."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.analysis.series.intervals import find_runs, union
from gpureport.columns import FloatArray
from gpureport.findings import Severity
from gpureport.recording import Device
from gpureport.report.model.findings import FindingCard
from gpureport.report.model.pictures import FindingMark, Timeline, TimelineStrip
from gpureport.report.runs.over_time import (
    FEW_GPUS,
    SHORTEST,
    ClassHistory,
    accumulate,
    choose_drawn_gpus,
    describe_choice,
    find_limits,
    list_events,
)
from gpureport.report.runs.report_run import ReportRun, clock_note, device_name, format_time
from gpureport.report.wording import display

_COLUMNS, _COARSE_COLUMNS = 600, 60
_WHOLE_RUN = 0.95


def build_timelines(
    runs: Sequence[ReportRun], cards: Sequence[FindingCard], histories: Mapping[int, ClassHistory]
) -> Iterator[Timeline]:
    """Yield the strips of every run, on axes of one length; `histories` are by the place of a run."""
    axis, clocks = (
        max((run.seconds for run in runs), default=0.0),
        {(clock_note(run.run), run.run.interval) for run in runs},
    )
    for position, run in enumerate(runs):
        gpus, every, is_moment = run.run.gpus, run.run.interval or 0.0, run.seconds <= 0
        # a bucket is never shorter than a sample: below that it would only repeat samples
        count = min(_COLUMNS // (1 if len(gpus) <= FEW_GPUS else 2), max(int(run.seconds / (every or 1.0)), 1))
        edges = np.linspace(0.0, max(run.seconds, SHORTEST), count + 1)
        drawn = choose_drawn_gpus(run)
        absent = "" if gpus else "No GPU was recorded in this run."
        if gpus and is_moment:
            absent = (
                f"One sample {'of each GPU ' if len(gpus) > 1 else ''}was read, so there is nothing to draw over time."
            )
        started = "" if run.run.quality.synthetic_time else f"starts {format_time(run.run, run.run.started)}, "
        sampling = "a single sample" if is_moment or not every else f"one sample every {display.duration(every)}"
        said = f"{sampling}; {started}{clock_note(run.run)}"
        # what holds of all runs stands under data quality
        said = started.strip(", ") if started and len(runs) > 1 and len(clocks) == 1 else said
        mine = [card for card in cards if card.run_index == position]
        yield Timeline(
            label=run.label,
            caption=display.join(said, describe_choice(run, drawn), by=" "),
            column="" if is_moment or not every else f"each column is the mean of {display.duration(edges[1])}",
            seconds=run.seconds,
            axis_seconds=axis,
            bucket_seconds=float(edges[1]),
            absent=absent,
            strips=() if absent else tuple(_strips(run, drawn, edges, mine, histories[position])),
            events=list_events(run),
            recording=run.recording,
            undrawn_gpus=0 if absent else len(gpus) - len(drawn),
        )


def _strips(
    run: ReportRun, drawn: Sequence[Device], edges: FloatArray, cards: Sequence[FindingCard], history: ClassHistory
) -> Iterator[TimelineStrip]:
    marked = list(_finding_marks(run, cards))
    history.prepare([gpu.id for gpu in drawn])
    for gpu in drawn:
        cells = build_device_series(run.recording, gpu)
        # a utilisation value speaks of the window before its stamp, so its cell lies that much earlier
        zero = run.run.started + cells.shift
        starts, ends = (cells.start - zero) / 1e6, (cells.end - zero) / 1e6
        sums = accumulate(starts, ends, cells.values("gpu_utilization_ratio"))
        mean = np.clip(sums.means(edges), 0.0, 1.0)
        gaps = [*_gaps(cells, starts, ends, run.seconds), *edges[np.column_stack(find_runs(np.isnan(mean)))]]
        yield TimelineStrip(
            device=gpu.id,
            label=device_name(gpu),
            mean=mean,
            coarse=np.clip(sums.means(np.linspace(0.0, edges[-1], _COARSE_COLUMNS + 1)), 0.0, 1.0),
            gaps=tuple((float(start), float(end)) for start, end in (union(np.array(gaps)) if gaps else ())),
            marks=tuple(mark for devices, mark in marked if not devices or gpu.id in devices),
            band=history.list_stretches([gpu.id]),
            band_seconds=history.bucket_seconds,
            limits=find_limits(cells),
        )


def _gaps(cells: DeviceSeries, starts: FloatArray, ends: FloatArray, seconds: float) -> Iterator[tuple[float, float]]:
    # before its first sample, in its log gaps, and after its last
    if not len(cells):
        yield 0.0, seconds
        return
    edge = 2 * cells.interval
    if starts[0] > edge:
        yield 0.0, float(starts[0])
    yield from ((float(ends[row - 1]), float(starts[row])) for row in cells.gap_rows)
    if ends[-1] < seconds - edge:
        yield float(ends[-1]), seconds


def _finding_marks(run: ReportRun, cards: Sequence[FindingCard]) -> Iterator[tuple[tuple[str, ...], FindingMark]]:
    """Yield the stretches that cards speak of, each with its devices; facts without a loss need no mark."""
    by_kind = {(card.kind, fingerprint): card for card in cards for fingerprint in card.fingerprints}
    for finding in run.analysis.findings:
        card = by_kind[display.clean(finding.kind), finding.fingerprint]
        if finding.severity is Severity.INFO and not finding.lost_gpu_seconds:
            continue
        total = sum(interval.seconds for interval in finding.intervals)
        whole = not finding.intervals or total > _WHOLE_RUN * run.seconds
        spans = [(run.since_start(each.start), run.since_start(each.end)) for each in finding.intervals]
        for start, end in [(0.0, run.seconds)] if whole else spans:
            mark = FindingMark(card=card.id, severity=finding.severity.value, start=start, end=end, whole=whole)
            yield finding.devices, mark
