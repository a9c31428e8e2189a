"""Data for the pictures: where GPU time went, use over time, GPU signals, and timelines.

Times are seconds since the first sample. Texts may be empty. `small` is printed below a label.
"""

from dataclasses import dataclass, field

from gpureport.columns import FloatArray
from gpureport.recording import Recording
from gpureport.report.model.head import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassName:
    """A class of GPU time, with its key in `charts/palette.py` and its name."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSegment:
    """The time of one class in a bar, as a value in the unit of the bars and as text."""

    key: str
    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBar:
    """The GPU time of one step, or of one GPU of a single run. The segments add up to the bar.

    `total` is empty for GPUs. `change` is from the previous step. A bar without a change has a `note` (`first step`,
    `7.5% lost to heat`), which is coloured if `is_bad`. `beside` is a second figure: training throughput, utilisation
    or GPU power.
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
    """Bars of GPU time, per unit of work if the work is known.

    `columns` are the headings of the total and the second figure. `rest` describes what is not drawn.
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
    """An interval of one class of GPU time, in seconds since the first sample."""

    key: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow:
    """A run's mean GPU utilisation per bucket (NaN without samples), and a band of GPU time classes.

    The band shows the share of each class per `band_seconds`, in arbitrary order.
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
    """GPU utilisation of several runs on a time axis `seconds` long."""

    caption: str
    rows: tuple[UseRow, ...]
    seconds: float
    ticks: tuple[Tick, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalLine:
    """A line in a panel: its name, and the mean per bucket (NaN without samples)."""

    label: str
    mean: FloatArray
    is_main: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalPanel:
    """One quantity over time. All values are in the unit of the lines.

    The label includes the range of the axis: `Temperature, 30 to 90 °C`. For the main line, `usual` is the median
    outside the shaded intervals and `meanwhile` the mean within them. `is_alert` selects a warning colour.
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
    """The signals of one GPU over time. `spans` are the shaded intervals of a finding."""

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
    """A class of GPU time in a bar."""

    key: str
    label: str
    ratio: float
    seconds: float
    text: str
    hours: str
    causes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBar:
    """The GPU time of a run or step (`whole`) or of one GPU, excluding `no_job`."""

    label: str
    whole: bool
    total: str
    parts: tuple[ClassShare, ...]
    no_job_seconds: float = 0.0
    no_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingMark:
    """An interval of a finding on a strip. A `whole` mark covers nearly all of the run."""

    card: str
    severity: str
    start: float
    end: float
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEventLine:
    """An event from the log, described by `sentence`. `at` is None if its time is not known."""

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
    """A limit of a metric, in the base unit and in words (`limit 88 °C`)."""

    metric: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStrip:
    """Utilisation of one GPU over time, as time-weighted means per bucket (NaN without samples).

    `coarse` has fewer buckets, for a line of text. `gaps` are intervals without samples.
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
    """One run's strips on the report's time axis. If there are no strips, `absent` says why.

    `caption` describes the sampling and the clock; `column` is the time per column of the figure.
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
