"""Sampling in words: how often a run was sampled."""

from gpureport import columns, sampling_rate
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display


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
