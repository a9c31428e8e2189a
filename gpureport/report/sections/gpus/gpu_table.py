"""The GPUs of a run side by side, and in words which differ from the others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean, median

from gpureport.analysis.results import DeviceStatistics
from gpureport.report.model.report_content import GpuTable
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.runs.drawn_gpus import FEW_GPUS
from gpureport.report.runs.report_run import ReportRun, device_name
from gpureport.report.sections.gpus import node_rows
from gpureport.report.wording import display

_ROBUST = 3 * 1.4826
"""Three robust standard deviations, in medians of absolute deviations."""

_PEERS = 3
_MOST_SENTENCES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A figure of the table.

    Attributes:
        title: heading of the column.
        prose: what it is called in a sentence.
        value: the figure of a GPU.
        shown: how it is written.
        margin: the smallest difference from the other GPUs that is worth a word.
        summary: how the figures of several GPUs become one.
    """

    title: str
    prose: str
    value: Callable[[DeviceStatistics], float | None]
    shown: Callable[[float], str]
    margin: float
    summary: Callable[[Sequence[float]], float] = fmean


def _mean(metric: str) -> Callable[[DeviceStatistics], float | None]:
    return lambda gpu: summary.mean if (summary := gpu.metric(metric)) else None


def _median(metric: str) -> Callable[[DeviceStatistics], float | None]:
    return lambda gpu: summary.p50 if (summary := gpu.metric(metric)) else None


def _max(metric: str) -> Callable[[DeviceStatistics], float | None]:
    return lambda gpu: summary.max if (summary := gpu.metric(metric)) else None


def _idle_ratio(gpu: DeviceStatistics) -> float | None:
    summary = gpu.metric("gpu_utilization_ratio")
    if gpu.idle_seconds is None or summary is None or summary.seconds <= 0:
        return None
    return gpu.idle_seconds / summary.seconds


_COLUMNS = (
    _Column(
        title="Utilisation mean",
        prose="mean utilisation",
        value=_mean("gpu_utilization_ratio"),
        shown=display.percent,
        margin=0.05,
    ),
    _Column(title="Use up to 5%", prose="idle share", value=_idle_ratio, shown=display.percent, margin=0.03),
    _Column(
        title="SM clock median",
        prose="median SM clock",
        value=_median("gpu_sm_clock_hertz"),
        shown=display.clock,
        margin=30e6,
    ),
    _Column(
        title="Temperature max",
        prose="highest temperature",
        value=_max("gpu_temperature_celsius"),
        shown=display.temperature,
        margin=5.0,
        summary=max,
    ),
    _Column(title="Power mean", prose="mean power", value=_mean("gpu_power_watts"), shown=display.power, margin=15.0),
    _Column(
        title="Energy",
        prose="energy",
        value=lambda gpu: gpu.energy_joules,
        shown=display.energy,
        margin=float("inf"),
        summary=fsum,
    ),
    _Column(
        title="Peak memory",
        prose="peak memory",
        value=lambda gpu: gpu.memory_peak_bytes,
        shown=display.memory,
        margin=float(2**30),
        summary=max,
    ),
    _Column(
        title="Memory free at peak, of installed",
        prose="free memory",
        value=lambda gpu: gpu.memory_headroom_ratio,
        shown=display.percent,
        margin=float("inf"),
        summary=min,
    ),
)


_COUNTED = _Column(
    title="Energy counted",
    prose="energy as counted",
    value=lambda gpu: gpu.energy_counter.total if gpu.energy_counter else None,
    shown=display.energy,
    margin=float("inf"),
    summary=fsum,
)
"""Shown where the driver's counter was read, beside the integral of power."""


def _columns(figures: Iterable[DeviceStatistics]) -> tuple[_Column, ...]:
    return (*_COLUMNS, _COUNTED) if any(each.energy_counter for each in figures) else _COLUMNS


def build_gpu_tables(runs: Sequence[ReportRun]) -> tuple[GpuTable, ...]:
    """Return one table a run that has GPUs, without columns that no run recorded."""
    with_gpus = [run for run in runs if run.run.gpus]
    unknown = _unrecorded_columns(with_gpus)
    found = [_table(run, unknown) for run in with_gpus]
    few = [place for place, run in enumerate(with_gpus) if len(run.run.gpus) < _PEERS]
    # The same sentence is shown only at the first run with few GPUs.
    told = [replace(table, same="") if place in few[1:] else table for place, table in enumerate(found)]
    return tuple([_add_missing_note(told[0], unknown, with_gpus), *told[1:]] if told else [])


def _unrecorded_columns(runs: Sequence[ReportRun]) -> tuple[_Column, ...]:
    """Return the columns without a value for any GPU of any run; never all, since a table needs one."""
    figures = [statistics for run in runs for statistics in run.analysis.statistics]
    lacking = tuple(column for column in _COLUMNS if all(column.value(each) is None for each in figures))
    return lacking[1:] if len(lacking) == len(_COLUMNS) else lacking


def _add_missing_note(table: GpuTable, unknown: Sequence[_Column], runs: Sequence[ReportRun]) -> GpuTable:
    """Return a table with what is not among its columns said under it."""
    if not unknown:
        return table
    names = display.join_words([column.prose for column in unknown])
    moment = ", or not told by a single sample" if any(run.samples == 1 for run in runs) else ""
    note = f"Not recorded{' in any run' if len(runs) > 1 else ''}{moment}: {names}."
    return replace(table, table=replace(table.table, notes=(*table.table.notes, note)))


def _table(run: ReportRun, unknown: Sequence[_Column]) -> GpuTable:
    by_device = {statistics.device: statistics for statistics in run.analysis.statistics}
    shown = [column for column in _columns(run.analysis.statistics) if column not in unknown]
    found = [
        [column.value(statistics) if (statistics := by_device.get(gpu.id)) else None for gpu in run.run.gpus]
        for column in shown
    ]
    cells = [_cells(column, values, compared=run.samples > 1) for column, values in zip(shown, found, strict=True)]
    rows = tuple(
        Row(head=Cell(text=device_name(gpu).replace(" ", display.GAP)), cells=row)
        for gpu, row in zip(run.run.gpus, zip(*cells, strict=True), strict=True)
    )
    few = len(rows) <= FEW_GPUS
    columns = [(values, column.summary, column.shown) for column, values in zip(shown, found, strict=True)]
    table = Table(
        columns=("GPU" if few else "Node or GPU", *(column.title for column in shown)),
        numeric=(True,) * len(shown),
        rows=rows if few else tuple(node_rows.build_node_rows(run.run.gpus, rows, columns)),
        notes=() if few else (node_rows.NOTE,),
    )
    return GpuTable(
        label=run.label,
        table=table,
        outliers=tuple(_limit_sentences(list(_outlier_sentences(shown, rows)))),
        same=_no_outlier_sentence(len(rows), run.samples),
    )


def _no_outlier_sentence(gpus: int, samples: int) -> str:
    if samples == 1:
        return "Of one sample of each GPU none can be said to stand apart."
    if gpus < _PEERS:
        return f"With fewer than {_PEERS} GPUs none can be said to stand apart."
    return "No GPU stands apart from the others (three robust standard deviations, and a difference that matters)."


def _cells(column: _Column, values: Sequence[float | None], *, compared: bool) -> list[Cell]:
    notes = _outlier_notes(values, column) if compared else [""] * len(values)
    return [
        Cell(text=display.or_not_recorded(value, column.shown), small=note, value=value, flagged=bool(note))
        for value, note in zip(values, notes, strict=True)
    ]


def _outlier_notes(values: Sequence[float | None], column: _Column) -> list[str]:
    """Return for each GPU what the others show, where it differs from them; empty where it does not."""
    known = [value for value in values if value is not None]
    if len(known) < _PEERS:
        return [""] * len(values)
    middle = median(known)
    limit = max(_ROBUST * median(abs(value - middle) for value in known), column.margin)
    return [
        f"others {column.shown(median(_without(known, value)))}"
        if value is not None and abs(value - middle) > limit
        else ""
        for value in values
    ]


def _without(values: Sequence[float], value: float) -> list[float]:
    place = values.index(value)
    return [*values[:place], *values[place + 1 :]]


def _limit_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and how many GPUs more differ."""
    left = len(sentences) - _MOST_SENTENCES
    return [*sentences[:_MOST_SENTENCES], *([f"{display.plural(left, 'more GPU')} differ."] if left > 0 else [])]


def _outlier_sentences(columns: Sequence[_Column], rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        notes = [
            f"{column.prose} {cell.text} ({cell.small})"
            for column, cell in zip(columns, row.cells, strict=True)
            if cell.flagged
        ]
        if notes:
            yield f"{row.head.text} differs from the others: {display.join_words(notes)}."
