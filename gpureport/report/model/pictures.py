"""What pictures show: where GPU time went, use over time, the signals of a GPU, and strips of a timeline.

Times are seconds since the first sample. Texts are empty where there is nothing to say; `small` stands under a label.
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
    """A class of GPU time: its key, which has a fill in `charts/palette.py`, and its name."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSegment:
    key: str
    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBar:
    """The GPU time of one step, or of one GPU of a single run; its segments add up to its length.

    GPUs share one length and have no total. Where there is no change from the step before, a note takes its place, bad
    where it is worth a colour. `beside` is a second figure: the rate of training alone, the power of a GPU.
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
    """Bars of GPU time, per unit of work where that is known; columns head the total and the figure beside it."""

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
    """One quantity over time, in the unit of its label: `Temperature, 30 to 90 °C`.

    Of the main line, `usual` is the median outside the shaded stretches, and `meanwhile` the mean within them. What is
    an alert shows what went wrong, and has a colour.
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
    metric: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStrip:
    """GPU utilisation of one GPU, means over buckets (NaN without samples; `coarse` for a line of text), and gaps."""

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
    """The strips of one run on an axis that every run of the report shares; none where `absent` says why."""

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
