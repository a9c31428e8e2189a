"""What the figures over GPU time show: bars by class, and strips of a timeline. Times are seconds since the start."""

from dataclasses import dataclass, field

from gpureport.columns import FloatArray
from gpureport.recording import Recording
from gpureport.report.model.pictures import ClassStretch


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShare:
    """A class of GPU time: its share of the bar, the GPU time, and in words what lies behind it."""

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

    Beside it, and in none of its parts, the time in which no job held a GPU.
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
    """Something the log says happened: `E1` at a time, None where the log does not say; `sentence` has all of it."""

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

    A mean is weighted with the time samples stand for, NaN without samples; `coarse` has few buckets, for a line of
    text. Gaps are stretches without a utilisation. The band is as that of a `UseRow`.
    """

    device: str
    label: str
    mean: FloatArray
    coarse: FloatArray
    gaps: tuple[tuple[float, float], ...]
    marks: tuple[FindingMark, ...]
    band: tuple[ClassStretch, ...] = ()
    band_seconds: float = 0.0
    limits: tuple[MetricLimit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The strips of one run on an axis that every run of the report shares; none where `absent` says why.

    `caption` has sampling and time base, `column` what a column of the figure is. The recording has every sample.
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
