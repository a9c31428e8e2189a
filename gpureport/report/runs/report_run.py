"""Runs in a report: labels, steps, device names and times, and the subtitle."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import fsum
from zoneinfo import ZoneInfo

from gpureport.analysis.job.jobs import NO_JOB
from gpureport.analysis.results import Analysis
from gpureport.analysis.series import intervals
from gpureport.comparison.chain import Comparison
from gpureport.comparison.run import UTILISATION
from gpureport.findings import Finding, Interval
from gpureport.names import group_pairs
from gpureport.recording import Device, Recording, Run
from gpureport.report.wording import display
from gpureport.report.wording.scales import choose_rate_unit, name_work

LABEL_LENGTH = 60  # Maximum length of a name from a log.
_NAMED, _NAMED_NODES, _NODE = 6, 3, 40  # Devices and nodes to name; letters per node name.
_MOST_HELD = 0.95  # If jobs fill this share, only the whole log's length is given.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class ReportRun:
    label: str
    step: str
    recording: Recording
    analysis: Analysis

    @cached_property
    def _names(self) -> dict[str, str]:
        return {device.id: device_name(device) for device in self.run.devices}

    @property
    def run(self) -> Run:
        return self.analysis.run

    @property
    def seconds(self) -> float:
        return max((self.run.ended - self.run.started) / 1e6, 0.0)

    @property
    def samples(self) -> int:
        return max((len(self.recording.rows.rows_of(gpu.id)) for gpu in self.run.gpus), default=0)

    def since_start(self, microseconds: int) -> float:
        return (microseconds - self.run.started) / 1e6

    def job_intervals(self, finding: Finding) -> tuple[Interval, ...]:
        """Return a finding's intervals without the time when no job used its GPUs."""
        devices, no_job = finding.devices or [gpu.id for gpu in self.run.gpus], self.analysis.no_job
        if finding.cause == NO_JOB or not no_job.keys() >= set(devices):
            return finding.intervals
        free = (intervals.to_spans(no_job[device]) for device in devices)
        return intervals.to_intervals(intervals.leave_out_common(intervals.to_spans(finding.intervals), free))

    def device(self, device: str) -> str:
        return self._names.get(device) or display.clean(device)

    def devices(self, ids: Sequence[str]) -> str:
        """Return `GPUs 0 and 3`, `all 8 GPUs` or `12 of 64 GPUs`. An empty list means all GPUs."""
        gpus = {gpu.id for gpu in self.run.gpus}
        unique = list(dict.fromkeys(ids)) or [gpu.id for gpu in self.run.gpus]
        if len(gpus) > 1 and gpus.issuperset(unique) and len(unique) == len(gpus):
            return "both GPUs" if len(gpus) == 2 else f"all {len(gpus)} GPUs"  # noqa: PLR2004 - two are called both
        if len(unique) > _NAMED:
            return f"{len(unique)} of {len(gpus)} GPUs"
        names = [self.device(device) for device in unique]
        numbers = [name.removeprefix("GPU ") for name in names]
        if all(number.isdigit() for number in numbers):
            return f"GPU{'s' if len(numbers) > 1 else ''} {display.join_words(numbers)}"
        return display.join_words(names)


def device_name(device: Device) -> str:
    name = "host" if device.index is None else f"GPU {device.index}"
    return f"{display.shorten_middle(display.clean(device.node), _NODE)} {name}" if device.node else name


def shorten_names(runs: Sequence[tuple[Recording, Analysis]]) -> Iterator[tuple[Recording, Analysis]]:
    steps = dict.fromkeys(analysis.run.step for _, analysis in runs if analysis.run.step is not None)
    short = [display.shorten_middle(display.clean(step), LABEL_LENGTH) for step in steps]
    labels = {
        step: f"{label} ({short[:place].count(label) + 1})" if label in short[:place] else label
        for place, (step, label) in enumerate(zip(steps, short, strict=True))
    }
    for recording, analysis in runs:
        name = display.shorten_middle(display.clean(analysis.run.name), LABEL_LENGTH)
        step = None if analysis.run.step is None else labels[analysis.run.step]
        yield recording, replace(analysis, run=replace(analysis.run, name=name, step=step))


def order_by_step(runs: Sequence[tuple[Recording, Analysis]], comparison: Comparison) -> Iterator[ReportRun]:

    def key(analysis: Analysis) -> tuple[str, str, str | None]:
        return analysis.run.id, analysis.run.name, analysis.run.step

    # a comparison may contain copies of analyses
    recordings = group_pairs((key(analysis), recording) for recording, analysis in runs)
    held = [(display.clean(step.label), analysis) for step in comparison.steps for analysis in step.analyses]
    steps = [step for step, _ in held]
    for step, analysis in held:
        # a run's name may contain the step
        name = display.shorten_middle(display.clean(analysis.run.name), LABEL_LENGTH)
        whole = name if name.startswith(f"{step}/") or name.endswith(f"/{step}") else f"{step}, {name}"
        label = whole if steps.count(step) > 1 else step
        recording = recordings[key(analysis)].pop(0)
        yield ReportRun(label=label, step=step, recording=recording, analysis=analysis)


def format_time(run: Run, microseconds: int) -> str:
    """Return a time on the run's clock or, without timestamps, since the first sample."""
    if run.quality.synthetic_time:
        return display.elapsed((microseconds - run.started) / 1e6)
    at = _convert_to_local_time(run, microseconds)
    return f"{at:%Y-%m-%d} {_format_clock(run, at)}"


def format_period(run: Run, started: int, ended: int) -> str:
    start, end = _convert_to_local_time(run, started), _convert_to_local_time(run, ended)
    is_day = start.date() == end.date() and not run.quality.synthetic_time
    return f"{format_time(run, started)} to {_format_clock(run, end) if is_day else format_time(run, ended)}"


def _format_clock(run: Run, at: datetime) -> str:
    return f"{at:%H:%M:%S{'' if run.timezone is None else '%z'}}"


def _convert_to_local_time(run: Run, microseconds: int) -> datetime:
    at = _EPOCH + timedelta(seconds=round(microseconds / 1e6))
    try:
        return at if run.timezone is None else at.astimezone(ZoneInfo(run.timezone))
    except (KeyError, ValueError, OSError):
        return at


def clock_note(run: Run) -> str:
    if run.quality.synthetic_time:
        return "the log has no timestamps; times are computed from --interval"
    return "local time of the recording machine" if run.timezone is None else display.clean(run.timezone)


def format_gpu_models(devices: Iterable[Device], *, in_turn: bool = False) -> str:
    """Return `8 x NVIDIA H100 80GB HBM3` or `NVIDIA A40, 3 used in turn`."""
    models = [display.clean(device.model or "GPU of unknown model") for device in devices]
    names = [display.shorten_middle(model, LABEL_LENGTH) for model in models]
    if in_turn:
        return f"{display.join_words(list(dict.fromkeys(names)))}, {len(names)} used in turn"
    return display.join_words([f"{names.count(name)} \N{MULTIPLICATION SIGN} {name}" for name in dict.fromkeys(names)])


def build_subtitle(runs: Sequence[ReportRun], grouped: str = "") -> str:
    return " \N{MIDDLE DOT} ".join(filter(None, _list_parts(runs, grouped)))


def name_chain(runs: Sequence[ReportRun]) -> str:
    first, last = runs[0].step, runs[-1].step
    return first if first == last else f"{first} \N{RIGHTWARDS ARROW} {last}"


def _list_parts(runs: Sequence[ReportRun], grouped: str) -> Iterator[str]:
    steps = list(dict.fromkeys(run.step for run in runs))
    yield f"{len(steps)} groups by {grouped}" if grouped else name_chain(runs)
    if len(runs) > 1:
        count = display.plural(len(runs), "run")
        sizes = {sum(run.step == step for run in runs) for step in steps}
        each = f" \N{MULTIPLICATION SIGN} {display.plural(sizes.pop(), 'run')}" if len(sizes) == 1 else f", {count}"
        yield count if len(steps) == 1 or grouped else f"{len(steps)} steps{each}"
    models = (format_gpu_models(run.run.gpus, in_turn=run.analysis.in_turn) or "no GPU" for run in runs)
    yield "; ".join(dict.fromkeys(models))
    nodes = dict.fromkeys(display.clean(gpu.node) for run in runs for gpu in run.run.gpus if gpu.node)
    yield f"{len(nodes)} nodes" if len(nodes) > _NAMED_NODES else display.join_words(list(nodes))
    yield _format_work(runs)
    yield _format_days(runs)
    if len(runs) == 1:
        every, whole, jobs = runs[0].run.interval, runs[0].seconds, runs[0].analysis.jobs
        held = fsum(job.interval.seconds for job in jobs)
        length, often = display.duration(whole), f", recorded every {display.duration(every)}" if every else ""
        part = f"{display.plural(len(jobs), 'job')} in {display.duration(held)} of "
        yield f"{part if 0 < held < _MOST_HELD * whole else ''}{length}{often}"
        known = [use for each in runs[0].analysis.statistics if (use := each.metric(UTILISATION)) and use.seconds]
        if known:
            mean = fsum(each.mean * each.seconds for each in known) / fsum(each.seconds for each in known)
            yield f"mean GPU utilisation {display.percent(mean)}"


def _format_work(runs: Sequence[ReportRun]) -> str:
    works = [run.run.work for run in runs if run.run.work]
    units = {work.unit for work in works}
    if len(works) < len(runs) or len(units) != 1:
        return ""
    amounts = display.format_range([work.amount for work in works], lambda amount: display.quantity(amount, ""))
    unit, per = name_work(units.pop()), " per run" if len(runs) > 1 else ""
    if not per and runs[0].seconds:
        factor, time = choose_rate_unit([rate := works[0].amount / runs[0].seconds], "")
        per = f" ({display.number(rate * factor)}{time[time.rindex('/') :]})"
    return f"{amounts} {unit.removesuffix('s') if amounts == '1' else unit}{per}"


def _format_days(runs: Sequence[ReportRun]) -> str:
    if any(run.run.quality.synthetic_time for run in runs) or len({run.run.timezone for run in runs}) > 1:
        return ""
    start = _convert_to_local_time(runs[0].run, min(run.run.started for run in runs))
    end = _convert_to_local_time(runs[0].run, max(run.run.ended for run in runs))
    zone = f" {end:%Z}" if runs[0].run.timezone else ""
    days = [f"{at.day} {at:%B} {at.year}" if at.year > _EPOCH.year else "day not known" for at in (start, end)]
    if start.date() != end.date():
        return f"{days[0]}, {start:%H:%M} to {days[1]}, {end:%H:%M}{zone}"
    until = "" if f"{start:%H:%M}" == f"{end:%H:%M}" else f" to {end:%H:%M}"
    return f"{days[0]}, {start:%H:%M}{until}{zone}"
