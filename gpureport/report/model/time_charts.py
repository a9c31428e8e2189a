"""What the figures over GPU time show: bars by class, and strips of a timeline."""

from dataclasses import dataclass, field

from gpureport.columns import FloatArray
from gpureport.recording import Recording
from gpureport.report.model.pictures import ClassStretch


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShare:
    """A class of GPU time: its key, its name, its share of the bar, the GPU time, and in words what lies behind it."""

    key: str
    label: str
    ratio: float
    seconds: float
    text: str
    hours: str
    causes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBar:
    """Where GPU time went, of a whole run or step or (`whole` false) of one GPU; its ratios add up to 1.

    Beside it, and in none of its parts, the time in which no job held a GPU, in seconds and as GPU-hours.
    """

    label: str
    whole: bool
    total: str
    parts: tuple[ClassShare, ...]
    no_job_seconds: float = 0.0
    no_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingMark:
    """A stretch of a strip that a finding card speaks of; `whole` when the card speaks of nearly all of the run."""

    card: str
    severity: str
    start: float
    end: float
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEventLine:
    """Something the log says happened.

    Attributes:
        id: `E1`, `E2` ... in the order of the log.
        at: seconds since the first sample; None where the log does not tell.
        when: the same in words.
        name: what it is, in words.
        device: the device it names; empty when it names none.
        text: the message as the log has it.
        line: `line 812`.
        sentence: all of this in one line.
    """

    id: str
    at: float | None
    when: str
    name: str
    device: str
    text: str
    line: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLimit:
    """A limit that a metric of a GPU is held against, in the base unit of the metric, and in words: `limit 88 °C`."""

    metric: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStrip:
    """GPU utilisation of one GPU over time.

    Attributes:
        device: device id.
        label: `GPU 0`.
        mean: mean of each bucket as a ratio, weighted with the time samples stand for; NaN without samples.
        coarse: the same in few buckets, for a line of text.
        gaps: stretches without samples, or without a utilisation, as (start, end).
        marks: stretches that findings speak of.
        band: its classes of GPU time over time; empty where GPU time was not divided.
        limits: of its temperature, its power and its memory, those that are known.
    """

    device: str
    label: str
    mean: FloatArray
    coarse: FloatArray
    gaps: tuple[tuple[float, float], ...]
    marks: tuple[FindingMark, ...]
    band: tuple[ClassStretch, ...] = ()
    limits: tuple[MetricLimit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The strips of one run on one axis.

    Attributes:
        label: run or step.
        caption: sampling and time base in words.
        column: what a column of the figure is, in words; empty where there are none.
        seconds: length of the run.
        axis_seconds: length of the axis, the same for every run of the report.
        bucket_seconds: length of a bucket.
        absent: why there are no strips, as a sentence; empty where there are.
        strips: one a GPU that is drawn; none of a single moment, over which nothing can be drawn.
        undrawn_gpus: how many GPUs have no strip although there are strips.
        events: what the log says happened.
        recording: every sample behind the strips, for renderers that show more than the buckets.
    """

    label: str
    caption: str
    column: str
    seconds: float
    axis_seconds: float
    bucket_seconds: float
    absent: str
    strips: tuple[TimelineStrip, ...]
    events: tuple[LogEventLine, ...]
    recording: Recording = field(repr=False, compare=False)
    undrawn_gpus: int = 0
