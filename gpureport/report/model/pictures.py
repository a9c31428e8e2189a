"""What the pictures of the open page show: where GPU time went, use over time, and the signals of the worst GPU.

Texts are empty where there is nothing to say; `small` is a line under a label.
"""

from dataclasses import dataclass

from gpureport.columns import FloatArray
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
