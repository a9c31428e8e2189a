"""A run of the report: its label, the names of its devices, and times counted from its first sample."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from gpureport.analysis.job.phases import NO_JOB
from gpureport.analysis.results import Analysis
from gpureport.analysis.series import intervals
from gpureport.findings import Finding, Interval
from gpureport.recording import Device, Recording, Run
from gpureport.report.wording import display

SYNTHETIC_TIME = "the log has no time stamps; times count from --interval"
LOCAL_TIME = "local time of the recording machine"
LABEL_LENGTH = 60
"""Most characters of a name from outside."""

_NAMED = 6
_NODE = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRun:
    """A run with its label; `step` is the label of the step it belongs to."""

    label: str
    step: str
    recording: Recording
    analysis: Analysis
    _by_id: dict[str, Device] = field(init=False, repr=False, compare=False)
    _gpu_ids: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note its devices once, whose names many findings ask for."""
        object.__setattr__(self, "_by_id", {device.id: device for device in self.run.devices})
        object.__setattr__(self, "_gpu_ids", frozenset(device.id for device in self.run.gpus))

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.analysis.run

    @property
    def seconds(self) -> float:
        """Time from first to last sample."""
        return max((self.run.ended - self.run.started) / 1e6, 0.0)

    @property
    def samples(self) -> int:
        """Samples of the GPU that has most."""
        return max((len(self.recording.rows.rows_of(gpu.id)) for gpu in self.run.gpus), default=0)

    def since_start(self, microseconds: int) -> float:
        """Return a time of the recording as seconds since the first sample."""
        return (microseconds - self.run.started) / 1e6

    def held_stretches(self, finding: Finding) -> tuple[Interval, ...]:
        """Return the stretches of a finding in which a job held any of its GPUs; all where it is that none did."""
        devices, no_job = finding.devices or tuple(gpu.id for gpu in self.run.gpus), self.analysis.no_job
        if finding.cause == NO_JOB or not no_job.keys() >= set(devices):
            return finding.intervals
        free = (intervals.to_spans(no_job[device]) for device in devices)
        return intervals.to_intervals(intervals.leave_out_common(intervals.to_spans(finding.intervals), free))

    def device(self, device: str) -> str:
        """Return the name of a device: `GPU 0`, `node_1 GPU 0`, `host`."""
        known = self._by_id.get(device)
        return device_name(known) if known else display.clean(device)

    def devices(self, ids: Sequence[str]) -> str:
        """Return several devices in words: `GPUs 0 and 3`, `all 8 GPUs`, `12 of 64 GPUs`."""
        unique, gpus = list(dict.fromkeys(ids)), self._gpu_ids
        if not unique:
            unique = [gpu.id for gpu in self.run.gpus]
        if len(gpus) > 1 and gpus.issuperset(unique) and len(unique) == len(gpus):
            return "both GPUs" if len(gpus) == 2 else f"all {len(gpus)} GPUs"  # noqa: PLR2004 - both means two
        if len(unique) > _NAMED:
            return f"{len(unique)} of {len(gpus)} GPUs"
        return _join_device_names([self.device(device) for device in unique])


def device_name(device: Device) -> str:
    """Return the name of a device for people."""
    name = "host" if device.index is None else f"GPU {device.index}"
    return f"{display.shorten_middle(display.clean(device.node), _NODE)} {name}" if device.node else name


def _join_device_names(names: list[str]) -> str:
    """Return names as a list; `GPUs` is written once."""
    numbers = [name.removeprefix("GPU ") for name in names]
    if all(number.isdigit() for number in numbers):
        return f"GPU{'s' if len(numbers) > 1 else ''} {display.join_words(numbers)}"
    return display.join_words(names)


def label_runs(runs: Sequence[tuple[Recording, Analysis]], steps: Sequence[str]) -> tuple[ReportRun, ...]:
    """Return the runs with labels that differ: the step's, with the run's name where a step has several runs.

    The step is said once where the name, of folders, begins or ends with it.
    """
    labelled = []
    for (recording, analysis), step in zip(runs, steps, strict=True):
        name = display.shorten_middle(display.clean(analysis.run.name), LABEL_LENGTH)
        whole = name if name.startswith(f"{step}/") or name.endswith(f"/{step}") else f"{step}, {name}"
        label = whole if list(steps).count(step) > 1 else step
        labelled.append(ReportRun(label=label, step=step, recording=recording, analysis=analysis))
    return tuple(labelled)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def format_time(run: Run, microseconds: int) -> str:
    """Return a time on the run's own clock to the nearest second, with an offset only where the log has a zone.

    Without stamps in the log it is the time since the first sample.
    """
    if run.quality.synthetic_time:
        return display.elapsed((microseconds - run.started) / 1e6)
    at = convert_to_local_time(run, microseconds)
    return f"{at:%Y-%m-%d} {_format_clock(run, at)}"


def format_period(run: Run, started: int, ended: int) -> str:
    """Return from when to when, both in microseconds, as `format_time`; a date that both have is said once."""
    start, end = convert_to_local_time(run, started), convert_to_local_time(run, ended)
    is_day = start.date() == end.date() and not run.quality.synthetic_time
    return f"{format_time(run, started)} to {_format_clock(run, end) if is_day else format_time(run, ended)}"


def _format_clock(run: Run, at: datetime) -> str:
    return f"{at:%H:%M:%S{'' if run.timezone is None else '%z'}}"


def convert_to_local_time(run: Run, microseconds: int) -> datetime:
    """Return a time of a run to the nearest second, as its own clock shows it."""
    at = _EPOCH + timedelta(seconds=round(microseconds / 1e6))
    return at if run.timezone is None else at.astimezone(_zone(run.timezone))


def clock_note(run: Run) -> str:
    """Return which clock the times of a run are on."""
    if run.quality.synthetic_time:
        return SYNTHETIC_TIME
    return LOCAL_TIME if run.timezone is None else display.clean(run.timezone)


def format_gpu_models(devices: Iterable[Device], *, in_turn: bool = False) -> str:
    """Return how many GPUs of which model: `8 x NVIDIA H100 80GB HBM3`, or `NVIDIA A40, 3 in turn`."""
    names = [
        display.shorten_middle(display.clean(device.model), LABEL_LENGTH) if device.model else "GPU of unknown model"
        for device in devices
    ]
    if in_turn:
        return f"{display.join_words(list(dict.fromkeys(names)))}, {len(names)} in turn"
    return display.join_words([f"{names.count(name)} \N{MULTIPLICATION SIGN} {name}" for name in dict.fromkeys(names)])
