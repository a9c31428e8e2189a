"""Tables for a run: GPUs (by node if many) and outliers, stages, and reasons for lowered clocks."""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from math import fsum, inf
from statistics import fmean, median
from typing import NamedTuple

from gpureport.analysis.results import ClockEventTotal, DeviceStatistics, Effect, StageStatistics
from gpureport.report.model.report_content import GpuTable, RunTable
from gpureport.report.model.shapes import Cell, Row, Table, build_table
from gpureport.report.runs.over_time import FEW_GPUS, group_by_node
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun, device_name
from gpureport.report.wording import display

_ROBUST = 3 * 1.4826  # three robust standard deviations
_PEERS, _MOST_SENTENCES, _MOST_ROWS = 3, 8, 30
_BY_NODE = (
    "Each row is a node: the means of its GPUs, but the highest temperature and peak memory, total energy and "
    "minimum free memory. GPUs that differ from all others follow."
)
_BY_STAGE = "Means are taken over time and GPUs. Each stage includes only samples recorded by its process."
_USE = "gpu_utilization_ratio"
_EFFECTS = {Effect.HARMFUL: "harmful", Effect.UNCLASSIFIED: "not classified", Effect.BENIGN: "normal"}
_CLOCK_COLUMNS = ("Kind", "Busy samples", "Counted", "Median clock", "Unthrottled clock", "Busy time lost")
_CLOCK_NOTE = (
    "Busy samples: time covered by busy samples that show the reason. Counted: the driver's own count, "
    "exact at any interval. Several reasons can apply at once, so do not add up their shares."
)
_ALIKE = "No GPU differs notably from the others (by three robust standard deviations and a minimum amount)."
_AT_REST = {"gpu_idle"}  # reasons that occur only when idle
_MOST_REASONS = 24
_ABSENT = {display.NOT_RECORDED, "none seen", "not known"}


class _Column(NamedTuple):
    """`margin` is the smallest difference that makes an outlier. `summary` combines GPUs."""

    title: str
    prose: str
    value: Callable[[DeviceStatistics], float | None]
    shown: Callable[[float], str]
    margin: float
    summary: Callable[[Sequence[float]], float]


def _take(metric: str, figure: str) -> Callable[[DeviceStatistics], float | None]:
    return lambda gpu: getattr(summary, figure) if (summary := gpu.metric(f"gpu_{metric}")) else None


def _measure_idle(*gpus: DeviceStatistics) -> float | None:
    known = [gpu for gpu in gpus if gpu.idle_seconds is not None]
    seconds = fsum(summary.seconds for gpu in known if (summary := gpu.metric(_USE)))
    return fsum(gpu.idle_seconds or 0.0 for gpu in known) / seconds if seconds > 0 else None


_FREE = "Share of memory free at peak"
_COLUMNS = (
    _Column("Utilisation mean", "mean utilisation", _take("utilization_ratio", "mean"), display.percent, 0.05, fmean),
    _Column("Near idle", "time near idle", _measure_idle, display.percent, 0.03, fmean),
    _Column("SM clock median", "median SM clock", _take("sm_clock_hertz", "p50"), display.clock, 30e6, fmean),
    _Column(
        "Temperature max", "highest temperature", _take("temperature_celsius", "max"), display.temperature, 5.0, max
    ),
    _Column("Power mean", "mean power", _take("power_watts", "mean"), display.power, 15.0, fmean),
    _Column("Energy", "energy", lambda gpu: gpu.energy_joules, display.energy, inf, fsum),
    _Column("Peak memory", "peak memory", lambda gpu: gpu.memory_peak_bytes, display.memory, 2.0**30, max),
    _Column(_FREE, "free memory", lambda gpu: gpu.memory_headroom_ratio, display.percent, inf, min),
)
# shown next to the integral of power
_COUNTED = _Column(
    "Energy counted", "", lambda gpu: one.total if (one := gpu.energy_counter) else None, display.energy, inf, fsum
)


def build_gpu_tables(runs: Sequence[ReportRun]) -> tuple[GpuTable, ...]:
    with_gpus = [run for run in runs if run.run.gpus]
    figures = [statistics for run in with_gpus for statistics in run.analysis.statistics]
    known = [column for column in _COLUMNS if any(column.value(each) is not None for each in figures)] or [_COLUMNS[0]]
    unknown = display.join_words([column.prose for column in _COLUMNS if column not in known])
    where = " in any run" if len(with_gpus) > 1 else ""
    where += ", or unknown from a single sample" if any(each.samples == 1 for each in with_gpus) else ""
    # only the first table says what was not recorded
    note = f"Not recorded{where}: {unknown}." if unknown else ""
    return tuple(_build_gpu_table(run, known, "" if place else note) for place, run in enumerate(with_gpus))


def _build_gpu_table(run: ReportRun, known: Sequence[_Column], note: str) -> GpuTable:
    gpus = run.run.gpus
    by_device = {statistics.device: statistics for statistics in run.analysis.statistics}
    columns = [*known, *([_COUNTED] if any(each.energy_counter for each in by_device.values()) else [])]
    values = [[column.value(by_device[gpu.id]) if gpu.id in by_device else None for gpu in gpus] for column in columns]
    cells = [list(_build_cells(*each, compared=run.samples > 1)) for each in zip(columns, values, strict=True)]
    rows = tuple(
        Row(head=Cell(text=device_name(gpu).replace(" ", display.GAP)), cells=row)
        for gpu, row in zip(gpus, zip(*cells, strict=True), strict=True)
    )
    few = len(rows) <= FEW_GPUS
    table = Table(
        columns=("GPU" if few else "Node or GPU", *(column.title for column in columns)),
        numeric=(True,) * len(columns),
        rows=rows if few else tuple(_build_node_rows(run, rows, columns, values)),
        notes=tuple(filter(None, ("" if few else _BY_NODE, note))),
    )
    outliers = []
    for each in rows:
        flagged = [(by.prose, cell) for by, cell in zip(columns, each.cells, strict=True) if cell.flagged]
        notes = [f"{prose} {cell.text} ({cell.small})" for prose, cell in flagged]
        outliers += [f"{each.head.text} differs from the others: {display.join_words(notes)}."] if notes else []
    left = len(outliers) - _MOST_SENTENCES
    outliers[_MOST_SENTENCES:] = [f"{display.plural(left, 'more GPU')}: see the table."] if left > 0 else []
    few_samples = "One sample per GPU is too few to find an outlier." if run.samples == 1 else ""
    few_gpus = f"With fewer than {_PEERS} GPUs, no GPU can be called an outlier." if len(rows) < _PEERS else ""
    return GpuTable(label=run.label, table=table, outliers=tuple(outliers), same=few_samples or few_gpus or _ALIKE)


def _build_cells(column: _Column, values: Sequence[float | None], *, compared: bool) -> Iterator[Cell]:
    known = [value for value in values if value is not None]
    middle = median(known) if known else 0.0
    apart = median(abs(value - middle) for value in known) if compared and len(known) >= _PEERS else inf
    for at, value in enumerate(values):
        note = ""
        if value is not None and abs(value - middle) > max(_ROBUST * apart, column.margin):
            others = median(each for place, each in enumerate(values) if each is not None and place != at)
            note = f"others {column.shown(others)}"
        yield Cell(text=display.or_not_recorded(value, column.shown), small=note, value=value, flagged=bool(note))


def _build_node_rows(
    run: ReportRun, rows: Sequence[Row], columns: Sequence[_Column], values: Sequence[Sequence[float | None]]
) -> Iterator[Row]:
    places, listed = {gpu.id: place for place, gpu in enumerate(run.run.gpus)}, 0
    for node, gpus in group_by_node(run.run.gpus).items():
        own, cells = [places[gpu.id] for gpu in gpus], []
        for column, each in zip(columns, values, strict=True):
            known = [value for place in own if (value := each[place]) is not None]
            value = column.summary(known) if known else None
            cells.append(Cell(text=display.or_not_recorded(value, column.shown), value=value))
        name = f"{display.clean(node)}, {len(gpus)} GPUs" if node else f"All {len(gpus)} GPUs"
        yield Row(head=Cell(text=name), cells=tuple(cells))
        apart = [rows[place] for place in own if any(cell.flagged for cell in rows[place].cells)][: _MOST_ROWS - listed]
        listed += len(apart)
        yield from apart


def build_stage_tables(runs: Sequence[ReportRun]) -> tuple[RunTable, ...]:
    columns = ("Stage", "Length", "GPU utilisation", "Near idle", "Power of a GPU", "Peak memory", "CPU utilisation")
    held = [run for run in runs if len(run.analysis.stages) > 1]
    tables = (build_table(columns, map(_build_stage_row, run.analysis.stages), _BY_STAGE) for run in held)
    return tuple(RunTable(label=run.label, table=table) for run, table in zip(held, tables, strict=True))


def _build_stage_row(stage: StageStatistics) -> list[Cell | str]:
    def take_mean(metric: str) -> float | None:
        found = [summary for one in stage.statistics if (summary := one.metric(metric))]
        seconds = sum(summary.seconds for summary in found)
        return sum(summary.mean * summary.seconds for summary in found) / seconds if seconds > 0 else None

    peaks = [one.memory_peak_bytes for one in stage.statistics if one.memory_peak_bytes is not None]
    figures: Sequence[tuple[float | None, Callable[[float], str]]] = (
        (max((one.observed_seconds for one in stage.statistics), default=0.0), display.duration),
        (take_mean(_USE), display.percent),
        (_measure_idle(*stage.statistics), display.percent),
        (take_mean("gpu_power_watts"), display.power),
        (max(peaks, default=None), display.memory),
        (take_mean("cpu_utilization_ratio"), display.percent),
    )
    name = display.shorten_middle(display.clean(stage.stage), LABEL_LENGTH)
    return [name, *(display.or_not_recorded(value, show) for value, show in figures)]


def build_clock_tables(runs: Sequence[ReportRun]) -> tuple[RunTable, ...]:
    held = ((run, [entry for entry in run.analysis.throttle_ledger if _measure_reason(entry) > 0]) for run in runs)
    return tuple(RunTable(label=run.label, table=_build_clock_table(run, shown)) for run, shown in held if shown)


def _measure_reason(entry: ClockEventTotal) -> float:
    seconds = max(entry.busy_seconds or 0.0, entry.counted.total if entry.counted else 0.0)
    return 0.0 if entry.reason in _AT_REST else seconds


def _build_clock_table(run: ReportRun, shown: Sequence[ClockEventTotal]) -> Table:
    ranked = sorted(shown, key=lambda entry: (list(_EFFECTS).index(entry.effect), -_measure_reason(entry)))
    ordered, left = ranked[:_MOST_REASONS], len(shown) - _MOST_REASONS
    cells = []
    for entry in ordered:
        counter, seconds = entry.counted, entry.counted.total if entry.counted else None
        said = [f"{display.duration(counter.in_gaps)} in log gaps"] if counter and counter.in_gaps > 0 else []
        said += ["restarted"] if counter and counter.restarts else []
        counted, busy = (display.or_not_recorded(each, display.duration) for each in (seconds, entry.busy_seconds))
        row = [
            Cell(text=_EFFECTS[entry.effect]),
            Cell(text=busy, value=entry.busy_seconds),
            Cell(text=counted, small=display.join_words(said), value=seconds),
            Cell(text="none seen" if entry.clock_hertz is None else display.clock(entry.clock_hertz)),
            Cell(text="not known" if entry.reference_hertz is None else display.clock(entry.reference_hertz)),
            Cell(text="not known" if entry.lost_ratio is None else display.percent(entry.lost_ratio)),
        ]
        cells.append(row)
    known = [any(cell.text not in _ABSENT for cell in column) for column in zip(*cells, strict=True)]
    names = [f"{entry.reason.replace('_', ' ')}, {run.device(entry.device)}" for entry in ordered]
    rows: list[list[Cell | str]] = [[name, *compress(row, known)] for name, row in zip(names, cells, strict=True)]
    more = f"{display.plural(left, 'more row')} in the JSON." if left > 0 else ""
    return build_table(("Reason", *compress(_CLOCK_COLUMNS, known)), rows, _CLOCK_NOTE, more, in_words=("Kind",))
