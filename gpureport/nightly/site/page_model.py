"""What the pages of the site hold: text and drawings ready to print, nothing is computed here."""

from dataclasses import dataclass

from gpureport.nightly.site.trend_curve import Curve


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A change of one figure as a row: its number on the page of its figure, and where that is."""

    number: int
    date: str
    label: str
    figure: str
    before: str
    after: str
    change: str
    interval: str
    verdict: str
    gradual: bool
    altered: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Changes that begin together.

    Attributes:
        date: the first night of them.
        label: another name of it.
        group: step and GPUs; empty where the history has one group.
        sentence: what changed.
        verdict: `worse`, `better` or `changed`, by the job's own figure.
        altered: which params changed with it; empty where none did.
        changes: each figure that changed.
    """

    date: str
    label: str
    group: str
    sentence: str
    verdict: str
    altered: str
    changes: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MainCurve:
    """The course of the job's own figure on the first page."""

    title: str
    group: str
    curve: Curve
    top: str
    bottom: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """A figure on the index: its newest value, the night if `late`, its course, and its page."""

    title: str
    newest: str
    late: str
    since: str
    curve: Curve
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of the runs of one step on one model of GPU."""

    name: str
    rows: tuple[FigureRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictMark:
    """How a gate ended: the word, the whole line, and how it looks; empty where no rule is set."""

    word: str
    line: str
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRow:
    """A run of a night, or a source without data.

    Attributes:
        date: the night.
        label: what else it is known by.
        name: the run, or the source.
        group: its step and GPUs.
        values: key figures, in their order; empty without data.
        findings: how many findings of each severity there are.
        limits: how many limits ended how; empty where none was held against it.
        verdict: the verdict on the run.
        reason: why there are no data; empty where there are.
        report: name of the report; empty where it is kept no longer.
    """

    date: str
    label: str
    name: str
    group: str
    values: tuple[str, ...]
    findings: str
    limits: str
    verdict: VerdictMark
    reason: str
    report: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightTable:
    """Nights with the titles of their key figures; `limits` says whether any night had limits."""

    columns: tuple[str, ...]
    limits: bool
    rows: tuple[NightRow, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The steps and GPUs of the nights with data, each once."""
        return tuple(dict.fromkeys(row.group for row in self.rows if not row.reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """A limit that was held against the newest night, and where the report says more.

    Attributes:
        limit: the limit in words.
        outcome: what became of it.
        style: how the outcome looks.
        observed: what was found; empty where nothing is known.
        reason: what else a reader must know; empty where nothing is.
        run: name of the run, or of the step for a change.
        report: name of the report; empty where it is kept no longer.
    """

    limit: str
    outcome: str
    style: str
    observed: str
    reason: str
    run: str
    report: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A night of one figure."""

    date: str
    label: str
    value: str
    report: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The first page."""

    newest: str
    headline: str
    state: tuple[str, ...]
    main: tuple[MainCurve, ...]
    verdict: VerdictMark
    limits: tuple[LimitRow, ...]
    limits_said: str
    events: tuple[EventRow, ...]
    unchanged: str
    more_events: int
    groups: tuple[Group, ...]
    nights: NightTable
    more_nights: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePage:
    """The page of one figure."""

    title: str
    group: str
    curve: Curve
    top: str
    bottom: str
    first: str
    last: str
    changes: tuple[ChangeRow, ...]
    unchanged: str
    rows: tuple[PointRow, ...]
    note: str
