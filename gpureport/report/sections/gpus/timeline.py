"""Strips of GPU utilisation over time: means of buckets, stretches without samples, and marks of findings."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray
from gpureport.findings import Severity
from gpureport.recording import Device
from gpureport.report.model.findings import FindingCard
from gpureport.report.model.pictures import FindingMark, Timeline, TimelineStrip
from gpureport.report.runs import log_events
from gpureport.report.runs.drawn_gpus import FEW_GPUS, choose_drawn_gpus, describe_choice, find_limits
from gpureport.report.runs.over_time import SHORTEST, ClassHistory, accumulate
from gpureport.report.runs.report_run import ReportRun, clock_note, device_name, format_time
from gpureport.report.wording import display

_UTILISATION = "gpu_utilization_ratio"
_COLUMNS = 600
_COARSE_COLUMNS = 60
_WHOLE_RUN = 0.95


def build_timelines(
    runs: Sequence[ReportRun], cards: Sequence[FindingCard], histories: Mapping[int, ClassHistory]
) -> tuple[Timeline, ...]:
    """Return the strips of every run that has GPUs, on axes of one length; `histories` are by the place of a run."""
    axis = max((run.seconds for run in runs), default=0.0)
    return tuple(_timeline(position, run, axis, cards, histories[position]) for position, run in enumerate(runs))


def _timeline(
    position: int, run: ReportRun, axis: float, cards: Sequence[FindingCard], history: ClassHistory
) -> Timeline:
    buckets = _COLUMNS if len(run.run.gpus) <= FEW_GPUS else _COLUMNS // 2
    # A bucket is never shorter than a sample: below that it would only repeat samples.
    count = min(buckets, max(int(run.seconds / (run.run.interval or 1.0)), 1))
    edges = np.linspace(0.0, max(run.seconds, SHORTEST), count + 1)
    absent, drawn = _why_no_strips(run), choose_drawn_gpus(run)
    mine = [card for card in cards if card.run_index == position]
    return Timeline(
        label=run.label,
        caption=" ".join(filter(None, (_caption(run), describe_choice(run, drawn)))),
        column=_describe_column(run, edges),
        seconds=run.seconds,
        axis_seconds=axis,
        bucket_seconds=float(edges[1]),
        absent=absent,
        strips=() if absent else tuple(_strips(run, drawn, edges, mine, history)),
        events=log_events.list_events(run),
        recording=run.recording,
        undrawn_gpus=0 if absent else len(run.run.gpus) - len(drawn),
    )


def _caption(run: ReportRun) -> str:
    started = "" if run.run.quality.synthetic_time else f"starts {format_time(run.run, run.run.started)}, "
    start = f"{started}{clock_note(run.run)}"
    if not run.run.interval or run.seconds <= 0:
        return f"a single sample; {start}"
    return f"one sample every {display.duration(run.run.interval)}; {start}"


def _why_no_strips(run: ReportRun) -> str:
    if not run.run.gpus:
        return "No GPU was recorded in this run."
    if run.seconds > 0:
        return ""
    each = "One sample of each GPU was read" if len(run.run.gpus) > 1 else "One sample was read"
    return f"{each}, so there is nothing to draw over time."


def _describe_column(run: ReportRun, edges: FloatArray) -> str:
    if not run.run.interval or run.seconds <= 0:
        return ""
    return f"each column is the mean of {display.duration(edges[1])}"


def _strips(
    run: ReportRun, drawn: Sequence[Device], edges: FloatArray, cards: Sequence[FindingCard], history: ClassHistory
) -> Iterator[TimelineStrip]:
    marked = list(_finding_marks(run, cards))
    history.prepare([gpu.id for gpu in drawn])
    for gpu in drawn:
        cells = build_device_series(run.recording, gpu)
        # A utilisation value speaks of the window before its stamp, so its cell lies that much earlier.
        zero = run.run.started + cells.shift
        starts, ends = (cells.start - zero) / 1e6, (cells.end - zero) / 1e6
        values = cells.values(_UTILISATION)
        sums = accumulate(starts, ends, values)
        mean = np.clip(sums.means(edges), 0.0, 1.0)
        yield TimelineStrip(
            device=gpu.id,
            label=device_name(gpu),
            mean=mean,
            coarse=np.clip(sums.means(np.linspace(0.0, edges[-1], _COARSE_COLUMNS + 1)), 0.0, 1.0),
            gaps=tuple(
                _merge_stretches([*_gaps(cells, starts, ends, run.seconds), *_unrecorded_stretches(mean, edges)])
            ),
            marks=tuple(mark for devices, mark in marked if not devices or gpu.id in devices),
            band=history.list_stretches([gpu.id]),
            band_seconds=history.bucket_seconds,
            limits=find_limits(cells),
        )


def _gaps(cells: DeviceSeries, starts: FloatArray, ends: FloatArray, seconds: float) -> Iterator[tuple[float, float]]:
    if not len(cells):
        yield 0.0, seconds
        return
    edge = 2 * cells.interval
    if starts[0] > edge:
        yield 0.0, float(starts[0])
    for row in cells.gap_rows:
        yield float(ends[row - 1]), float(starts[row])
    if ends[-1] < seconds - edge:
        yield float(ends[-1]), seconds


def _unrecorded_stretches(mean: FloatArray, edges: FloatArray) -> Iterator[tuple[float, float]]:
    steps = np.flatnonzero(np.diff(np.concatenate([[0], np.isnan(mean), [0]])))
    for first, stop in steps.reshape(-1, 2):
        yield float(edges[first]), float(edges[stop])


def _merge_stretches(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    ordered = sorted(span for span in spans if span[0] < span[1])
    while ordered:
        start, end = ordered.pop(0)
        while ordered and ordered[0][0] <= end:
            end = max(end, ordered.pop(0)[1])
        yield start, end


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
