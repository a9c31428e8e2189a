"""Pieces that sections of a report consist of: tables, bars, finding cards, strips of a timeline."""

from dataclasses import dataclass, field

from gpureport.columns import FloatArray
from gpureport.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A table cell: the text, a small line under it, and the value behind it (None when not recorded)."""

    text: str
    small: str = ""
    value: float | None = None
    flagged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A table row: a heading cell and the cells after it."""

    head: Cell
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `numeric` says of each column after the first whether it holds figures."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[Row, ...]
    note: str = ""


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
class EvidenceLine:
    """One measured value in words, the limit it was held against, and where that limit comes from."""

    quantity: str
    observed: str
    limit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One stretch of time a finding speaks of."""

    device: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceStep:
    """A step of the advice catalogue as a finding gives it.

    Attributes:
        name: its name in the catalogue.
        title: what it is called.
        do: what to do.
        when: when it helps.
        unknown: what must hold for it and is not known; empty when all is.
        risk: what it can cost.
        check: how to see that it worked.
        source: where it comes from.
    """

    name: str
    title: str
    do: str
    when: str
    unknown: str
    risk: str
    check: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCard:
    """All findings of one kind and cause in one run, as one thing to read.

    Attributes:
        id: `F1`, `F2` ... in the order shown.
        kind: name of the rule.
        title: the kind in words, with the GPUs concerned.
        severity: the highest of them: `problem`, `warning` or `info`.
        confidence: the lowest of them.
        status: `open`, or what became of it by the last step.
        is_open: whether it counts as open.
        run: label of the run; empty when the report holds one run.
        run_index: position of the run in `Report.timeline`.
        lost_seconds: GPU-seconds lost at most; None where it cannot be put in GPU time.
        lost: the same in words, with the share of the run's GPU-hours.
        lost_ratio: share of the run's GPU-hours; None as `lost_seconds`.
        summary: one sentence.
        evidence: measured values; of the worst where there are several.
        recommendations: what to do, each once.
        cause: what lies behind it, where known.
        where: devices and time in words.
        count: how many findings it gathers.
        occurrences: when, in order; at most as many as are listed.
        omitted: how many more there are, in words; empty when none.
        ruled_out: other explanations that were excluded.
        explains: ids of cards that follow from this one, which are the next ones.
        root: id of the card this one follows from; empty when it stands for itself.
        steps: what to do one by one, the most promising first.
        fingerprints: of the findings it gathers.
        lost_cost: what the lost time cost in the currency of the prices; None where no price is stated.
        repeats: id of the card that says the same of another run, and lost more; empty where none does.
    """

    id: str
    kind: str
    title: str
    severity: str
    confidence: str
    status: str
    is_open: bool
    run: str
    run_index: int
    lost_seconds: float | None
    lost: str
    lost_ratio: float | None
    summary: str
    evidence: tuple[EvidenceLine, ...]
    recommendations: tuple[str, ...]
    cause: str
    where: str
    count: int
    occurrences: tuple[Occurrence, ...]
    omitted: str
    ruled_out: tuple[str, ...]
    explains: tuple[str, ...]
    fingerprints: tuple[str, ...]
    lost_cost: float | None = None
    root: str = ""
    steps: tuple[AdviceStep, ...] = ()
    repeats: str = ""


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
class TimelineStrip:
    """GPU utilisation of one GPU over time.

    Attributes:
        device: device id.
        label: `GPU 0`.
        mean: mean of each bucket as a ratio, weighted with the time samples stand for; NaN without samples.
        coarse: the same in few buckets, for a line of text.
        gaps: stretches without samples, or without a utilisation, as (start, end).
        marks: stretches that findings speak of.
    """

    device: str
    label: str
    mean: FloatArray
    coarse: FloatArray
    gaps: tuple[tuple[float, float], ...]
    marks: tuple[FindingMark, ...]


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
        strips: one a GPU; none of a single moment, over which nothing can be drawn.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A named statement."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of an explanation.

    Attributes:
        title: its heading; empty for none.
        paragraphs: prose, one paragraph each.
        facts: named statements.
        code: lines to be copied as they are.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a name stands for, in sections."""

    title: str
    sections: tuple[Section, ...]
