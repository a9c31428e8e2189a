"""The quiet line above the headline: what was read, on which GPUs, and when."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from gpureport.report.runs.report_run import ReportRun, convert_to_local_time, format_gpu_models
from gpureport.report.wording import display
from gpureport.report.wording.display import format_range
from gpureport.report.wording.work_scale import name_work

TIMES = "\N{MULTIPLICATION SIGN}"
_NAMED, _NO_DATE = 3, 1970
"""Nodes that are named at most, and the year of times without a date."""


def build_subtitle(runs: Sequence[ReportRun], grouped: str = "") -> str:
    """Return the quiet line, its parts set apart by dots.

    Args:
        runs: step by step.
        grouped: the settings that make the groups; empty where the steps are a chain.
    """
    return " \N{MIDDLE DOT} ".join(filter(None, _list_parts(runs, grouped)))


def name_chain(runs: Sequence[ReportRun]) -> str:
    """Return the steps by their ends: `1-starved → 5-larger-batch`, or the one there is."""
    steps = list(dict.fromkeys(run.step for run in runs))
    return steps[0] if len(steps) == 1 else f"{steps[0]} \N{RIGHTWARDS ARROW} {steps[-1]}"


def _list_parts(runs: Sequence[ReportRun], grouped: str) -> Iterator[str]:
    steps = list(dict.fromkeys(run.step for run in runs))
    yield f"{len(steps)} groups by {grouped}" if grouped else name_chain(runs)
    yield _count_runs(runs, len(steps), is_grouped=bool(grouped))
    names = [format_gpu_models(run.run.gpus, in_turn=run.analysis.in_turn) or "no GPU" for run in runs]
    yield "; ".join(dict.fromkeys(names))
    yield _name_nodes(runs)
    yield _format_work(runs)
    yield _format_period(runs)
    if len(runs) == 1:
        (run,) = runs
        every = run.run.interval
        rate = f", recorded every {display.duration(every)}" if every else ""
        yield f"{display.duration(run.seconds)}{rate}"


def _count_runs(runs: Sequence[ReportRun], steps: int, *, is_grouped: bool) -> str:
    """Return how many steps of how many runs; of a single step, and of groups, all runs."""
    if len(runs) == 1:
        return ""
    if steps == 1 or is_grouped:
        return display.plural(len(runs), "run")
    counts = {sum(run.step == each.step for run in runs) for each in runs}
    each = f" {TIMES} {display.plural(counts.pop(), 'run')}" if len(counts) == 1 else f", {len(runs)} runs"
    return f"{steps} steps{each}"


def _name_nodes(runs: Sequence[ReportRun]) -> str:
    nodes = list(dict.fromkeys(gpu.node for run in runs for gpu in run.run.gpus if gpu.node))
    if len(nodes) > _NAMED:
        return f"{len(nodes)} nodes"
    return display.join_words([display.clean(node) for node in nodes])


def _format_work(runs: Sequence[ReportRun]) -> str:
    """Return the work of a run, of runs that differ from the least to the most; empty where it is not known of all."""
    works = [run.run.work for run in runs if run.run.work]
    units = {work.unit for work in works}
    if len(works) < len(runs) or len(units) != 1:
        return ""
    amounts = format_range([work.amount for work in works], lambda amount: display.quantity(amount, ""))
    each = " a run" if len(runs) > 1 else ""
    unit = name_work(units.pop())
    return f"{amounts} {unit.removesuffix('s') if amounts == '1' else unit}{each}"


def _format_period(runs: Sequence[ReportRun]) -> str:
    """Return from when to when the runs were recorded; empty where a log has no times, or zones differ."""
    if any(run.run.quality.synthetic_time for run in runs) or len({run.run.timezone for run in runs}) > 1:
        return ""
    start = convert_to_local_time(runs[0].run, min(run.run.started for run in runs))
    end = convert_to_local_time(runs[0].run, max(run.run.ended for run in runs))
    zone = f" {end:%Z}" if runs[0].run.timezone else ""
    if start.date() == end.date():
        until = "" if f"{start:%H:%M}" == f"{end:%H:%M}" else f" to {end:%H:%M}"
        return f"{_format_date(start)}, {start:%H:%M}{until}{zone}"
    return f"{_format_date(start)}, {start:%H:%M} to {_format_date(end)}, {end:%H:%M}{zone}"


def _format_date(moment: datetime) -> str:
    return f"{moment.day} {moment:%B} {moment.year}" if moment.year > _NO_DATE else "day not known"
