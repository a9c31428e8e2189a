"""Sampling in words: how often a run was sampled, and how many of its rows are new readings of the driver."""

from collections.abc import Iterator, Sequence

from gpureport import columns, sampling_rate
from gpureport.analysis.results import MetricSummary
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

_NAMES = {"gpu_utilization_ratio": "utilisation", "gpu_power_watts": "power"}
_NEARLY = 0.9995


def describe_readings(run: ReportRun) -> str:
    """Return how many readings of utilisation and power the rows hold at most.

    Empty where every row is a reading of its own, as far as the samples show.
    """
    gpus = {gpu.id for gpu in run.run.gpus}
    known = [entry for entry in run.analysis.statistics if entry.device in gpus]
    found = {name: [each for entry in known if (each := entry.metric(name))] for name in _NAMES}
    recorded = {_NAMES[name]: summaries for name, summaries in found.items() if summaries}
    if not recorded:
        return display.NOT_RECORDED
    rows = max(sum(each.samples for each in summaries) for summaries in recorded.values())
    refreshes = [text for name, summaries in recorded.items() for text in _describe_metric(name, summaries)]
    return f"{display.plural(rows, 'row')}; {'; '.join(refreshes)}" if refreshes else ""


def describe_sampling(run: ReportRun) -> str:
    """Return how often a run with two samples or more was sampled: `every 1 s, in part every 10 s`."""
    usual = display.duration(run.run.interval or 0.0)
    others = [other for seconds in _other_intervals(run) if (other := display.duration(seconds)) != usual]
    return f"every {usual}{', in part every ' if others else ''}{', '.join(dict.fromkeys(others))}"


def _other_intervals(run: ReportRun) -> list[float]:
    """Return the sampling intervals of the first device in seconds if the log changes its rate, else nothing."""
    device = next(iter(run.run.gpus or run.run.hosts), None)
    pace = (
        sampling_rate.measure_sampling_rate(columns.integers(run.recording.rows.rows_of(device.id).column("timestamp")))
        if device
        else None
    )
    if pace is None or not (pace.slow or pace.denser):
        return []
    return sorted({pace.interval, pace.denser or pace.interval, *(each.interval for each in pace.slow)})


def _describe_metric(name: str, summaries: Sequence[MetricSummary]) -> Iterator[str]:
    """Yield how often a metric was refreshed; nothing if every row is a new reading."""
    rows = sum(each.samples for each in summaries)
    readings = sum(each.effective_samples for each in summaries)
    repeated = _share(1 - sum(each.changes for each in summaries) / max(rows - len(summaries), 1))
    if readings < rows:
        count = display.plural(readings, "reading")
        yield f"{name}: at most {count}, {repeated} of rows repeat the one before"


def _share(ratio: float) -> str:
    nearly = _NEARLY <= ratio < 1
    return "more than 99.9%" if nearly else display.percent(ratio)
