"""What pictures show: where GPU time went, use over time, the signals of a GPU, and strips of a timeline.

Times are seconds since the first sample. Texts are empty where there is nothing to say; `small` stands under a label.
"""

from dataclasses import dataclass, field

from gpureport.columns import FloatArray
from gpureport.recording import Recording
from gpureport.report.model.head import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis: where it is, and what is written at it."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassName:
    """A class of GPU time: its key, which has a fill in `charts/palette.py`, and its name."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSegment:
    """The time of one class in a bar: its length in the unit of the bars, and the same in words."""

    key: str
    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBar:
    """The GPU time of one step, or of one GPU of a single run; its segments add up to its length.

    `total` is empty for GPUs, whose bars share one length. A `change` is from the step before; where there is none a
    `note` takes its place: `first step`, `7.5% lost to heat`; it is bad where it is worth a colour. `beside` is a
    second figure: the rate of training alone, the power of a GPU.
    """

    label: str
    segments: tuple[TimeSegment, ...]
    total: str
    small: str = ""
    interval: tuple[float, float] | None = None
    interval_text: str = ""
    change: Change | None = None
    note: str = ""
    is_bad: bool = False
    beside: str = ""
    beside_change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpent:
    """Bars whose length is GPU time: per unit of work where the work is known, which the caption says.

    `columns` are the headings of the total and of the figure beside it, `rest` says what is not drawn.
    """

    caption: str
    columns: tuple[str, str]
    bars: tuple[SpentBar, ...]
    end: float
    ticks: tuple[Tick, ...]
    legend: tuple[ClassName, ...] = ()
    since_first: Change | None = None
    beside_since_first: Change | None = None
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassStretch:
    """A stretch of time in one class of GPU time, in seconds since the first sample."""

    key: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow:
    """GPU utilisation over time of one run: a mean per bucket, NaN without samples, and the classes below the curve.

    In each `band_seconds` from the start the classes of the band have their shares; their order is not known.
    """

    label: str
    small: str
    mean: FloatArray
    bucket_seconds: float
    band: tuple[ClassStretch, ...]
    total: str
    text: str
    band_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOverTime:
    """Small multiples of GPU utilisation on one time axis, which is `seconds` long."""

    caption: str
    rows: tuple[UseRow, ...]
    seconds: float
    ticks: tuple[Tick, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalLine:
    """A line of a panel: name, mean of each bucket (NaN without samples), and whether it is the one to look at."""

    label: str
    mean: FloatArray
    is_main: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalPanel:
    """One quantity over time; all values are in the unit of the lines.

    The label has the ends of the axis: `Temperature, 30 to 90 °C`. Of the main line, `usual` is the median outside the
    shaded stretches, and `meanwhile` the mean within them. What is an alert shows what went wrong, and has a colour.
    """

    quantity: str
    label: str
    lines: tuple[SignalLine, ...]
    low: float
    high: float
    usual: float | None = None
    meanwhile: float | None = None
    limit: float | None = None
    limit_text: str = ""
    is_limit_reached: bool = False
    is_filled: bool = False
    is_alert: bool = False
    is_of_host: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalHistory:
    """The signals of one GPU over time, in seconds since the first sample, with the stretches that a finding shades."""

    gpu: str
    title: str
    caption: str
    panels: tuple[SignalPanel, ...]
    start: float
    end: float
    bucket_seconds: float
    ticks: tuple[Tick, ...]
    spans: tuple[tuple[float, float], ...] = ()
    span_text: str = ""


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
