"""The stages of a run side by side."""

from collections.abc import Callable, Sequence

from gpureport.analysis.results import DeviceStatistics, StageStatistics
from gpureport.report.model.report_content import RunTable
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun
from gpureport.report.wording import display

_NOTE = "Means are over time and GPUs; each stage by the samples its own process recorded."


def build_stage_tables(runs: Sequence[ReportRun]) -> tuple[RunTable, ...]:
    """Return one table a run that has several stages."""
    return tuple(
        RunTable(label=run.label, table=_table(run.analysis.stages)) for run in runs if len(run.analysis.stages) > 1
    )


def _table(stages: Sequence[StageStatistics]) -> Table:
    columns: tuple[tuple[str, Callable[[StageStatistics], str]], ...] = (
        (
            "Length",
            lambda stage: display.duration(max((one.observed_seconds for one in stage.statistics), default=0.0)),
        ),
        (
            "GPU utilisation",
            lambda stage: display.or_not_recorded(_mean(stage, "gpu_utilization_ratio"), display.percent),
        ),
        ("Use up to 5%", lambda stage: display.or_not_recorded(_idle(stage), display.percent)),
        ("Power of a GPU", lambda stage: display.or_not_recorded(_mean(stage, "gpu_power_watts"), display.power)),
        ("Peak memory", lambda stage: display.or_not_recorded(_peak(stage), display.memory)),
        (
            "CPU utilisation",
            lambda stage: display.or_not_recorded(_mean(stage, "cpu_utilization_ratio"), display.percent),
        ),
    )
    rows = tuple(
        Row(
            head=Cell(text=display.shorten_middle(display.clean(stage.stage), LABEL_LENGTH)),
            cells=tuple(Cell(text=shown(stage)) for _, shown in columns),
        )
        for stage in stages
    )
    titles = ("Stage", *(title for title, _ in columns))
    return Table(columns=titles, numeric=(True,) * len(columns), rows=rows, notes=(_NOTE,))


def _mean(stage: StageStatistics, metric: str) -> float | None:
    """Return the mean of a metric over the time of all devices that recorded it."""
    found = [summary for one in stage.statistics if (summary := one.metric(metric))]
    seconds = sum(summary.seconds for summary in found)
    if seconds <= 0:
        return None
    return sum(summary.mean * summary.seconds for summary in found) / seconds


def _idle(stage: StageStatistics) -> float | None:
    found = [(one.idle_seconds, _seconds(one)) for one in stage.statistics if one.idle_seconds is not None]
    seconds = sum(whole for _, whole in found)
    return sum(idle for idle, _ in found) / seconds if seconds > 0 else None


def _seconds(one: DeviceStatistics) -> float:
    summary = one.metric("gpu_utilization_ratio")
    return 0.0 if summary is None else summary.seconds


def _peak(stage: StageStatistics) -> int | None:
    return max((one.memory_peak_bytes for one in stage.statistics if one.memory_peak_bytes is not None), default=None)
