"""What the pictures of the open page show: where GPU time went, use over time, and the signals of the worst GPU."""

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
    """The time of one class in a bar: key, name, length in the unit of the bars, and the length in words."""

    key: str
    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBar:
    """The GPU time of one step, or of one GPU of a single run.

    Attributes:
        label: the step or the GPU.
        small: a line under the label; empty for none.
        segments: its classes in the order drawn; their values add up to the length of the bar.
        total: length in words; empty for GPUs, whose bars share one length that the axis tells.
        interval: ends of its 95% interval in the unit of the bars; None where none can be told.
        interval_text: the same in words; empty without one.
        change: from the step before; None for the first step and for GPUs.
        note: what stands beside the total where there is no change: `first step`, `7.5% lost to heat`.
        is_bad: whether the note tells of a loss worth a colour.
        beside: a second figure: the rate of training alone, the power of a GPU.
        beside_change: how that changed from the step before.
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
    """Bars whose length is GPU time: per unit of work where the work is known.

    Attributes:
        caption: the unit, and how to read it.
        columns: headings of the total and of the figure beside it; the second is empty where there is none.
        bars: one a step, or one a GPU.
        end: end of the axis in the unit of the bars.
        ticks: of the axis.
        legend: the classes that some bar shows, in the order of the segments.
        since_first: the change of the total from the first step to the last; None where there is none.
        beside_since_first: the same of the figure beside it.
        rest: what is not drawn, in one sentence: GPUs like those shown; empty where all are drawn.
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
    """GPU utilisation over time of one run, or of one GPU.

    Attributes:
        label: the step or the GPU.
        small: which of its runs, where it has several.
        mean: mean utilisation of each bucket as a ratio; NaN without samples.
        bucket_seconds: length of a bucket.
        band: the classes under the curve.
        total: length of the run in words.
        text: what to see: `GPU 34% busy in 96 s of training`.
    """

    label: str
    small: str
    mean: FloatArray
    bucket_seconds: float
    band: tuple[ClassStretch, ...]
    total: str
    text: str


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
    """One quantity over time.

    Attributes:
        quantity: what it shows: `Temperature`, `GPU utilisation`.
        label: the quantity with the ends of its axis: `Temperature, 30 to 90 °C`, `GPU utilisation, 0 to 100%`.
        lines: the GPU it is about, and the others in grey.
        low: lower end of the axis in the unit of the lines.
        high: upper end.
        usual: median of the main line outside the shaded stretches, in the unit of the lines; None where not recorded.
        meanwhile: mean of the main line within them; None without any.
        limit: a line across at this value: the temperature limit, the power limit, installed memory; None for none.
        limit_text: the limit in words, which the note has too.
        is_limit_reached: whether the GPU came to its limit, or near it.
        is_filled: whether the area under the line is filled, as for shares from zero.
        is_alert: whether what it shows is what went wrong: its note, a line and a limit reached have a colour.
        is_of_host: whether it is of the machine rather than of a GPU, and has another colour.
        note: what to see, in a few words: `up to 88 °C, limit 88 °C`, `1,710 → 1,497 MHz`.
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
    """The signals of one GPU over time, with the stretches that a finding speaks of.

    Attributes:
        gpu: the GPU: `GPU 2`.
        title: `GPU 2 over time`.
        caption: which line is which, and what is shaded.
        panels: one a quantity, on one axis.
        start: begin of the axis in seconds since the first sample.
        end: end of it.
        bucket_seconds: length of a bucket.
        ticks: of the axis.
        spans: the shaded stretches.
        span_text: what is shaded, in words, which the caption has too: `slowed by heat, 7 min 34 s`.
    """

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
