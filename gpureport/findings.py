"""What an analysis finds: findings with their evidence, and what could not be judged.

Times are integer microseconds since 1970-01-01, on the time base of the recording (see `Run.timezone`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from operator import ge, gt, le, lt

from gpureport.redaction import redact_text


class Severity(StrEnum):
    """How much a finding matters, mildest first."""

    INFO = "info"
    WARNING = "warning"
    PROBLEM = "problem"


class Confidence(StrEnum):
    """How sure a finding is: high rests on a direct column, low on coarse or tabulated values."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Provenance(StrEnum):
    """Where a threshold comes from."""

    VENDOR = "vendor"
    LITERATURE = "literature"
    PRAGMATIC = "pragmatic"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit in a physical unit or in time, with where it comes from.

    Attributes:
        value: the limit in `unit`.
        unit: base unit (`1` for a ratio, `s`, `Cel`, `W`, `By`, `Hz`, or `rows` and `cores`, which are counted).
        provenance: kind of origin.
        source: the origin in words.
    """

    value: float
    unit: str
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A half-open stretch of time [start, end) in microseconds."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return (self.end - self.start) / 1e6


_RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured value set against the limit that made it count.

    Attributes:
        metric: column name, or a quantity in words where no single column gives it (`duration`).
        statistic: how the series was reduced (`mean`, `max`, `p95`, `share of busy time`).
        observed: the value, in `unit`.
        unit: base unit of `observed` and of the threshold.
        threshold: the limit, or None where the value is only context.
        relation: how the observed value compares with the limit (`<=`, `<`, `>=`, `>`), empty without one.
    """

    metric: str
    statistic: str
    observed: float
    unit: str
    threshold: Threshold | None = None
    relation: str = ""

    @property
    def meets_limit(self) -> bool:
        """Whether the value meets the limit by its relation; True without a limit."""
        if self.threshold is None:
            return True
        compare = _RELATIONS.get(self.relation)
        return compare is not None and compare(self.observed, self.threshold.value)

    def as_context(self) -> "Evidence":
        """Return the value alone, without a limit."""
        return replace(self, threshold=None, relation="")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedStep:
    """A step of the advice catalogue that fits a finding.

    Attributes:
        name: name of the step in the catalogue.
        unknown: preconditions of it that the recording does not tell, in words.
        suggestion: how far to go in this run and why, as a sentence; empty where the step has no size.
    """

    name: str
    unknown: tuple[str, ...] = ()
    suggestion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One way GPU time was lost or a fact about the run that matters.

    Attributes:
        kind: the rule's name.
        severity: info, warning or problem.
        confidence: high, medium or low.
        devices: device ids concerned; empty when the whole job is.
        intervals: when, in order and disjoint; empty for the whole run.
        evidence: measured values with their limits.
        lost_gpu_seconds: GPU time lost at most; None where it cannot be put in GPU time.
        cause: what lies behind it, in one word, where known.
        consequences: fingerprints of findings that follow from this one.
        root: fingerprint of the finding this one follows from; on the same devices its lost time is part of
            that one's.
        samples: how many readings it rests on; rows that repeat one count once where the refresh is known.
        ruled_out: other explanations that were excluded, in words.
        period_seconds: how often it recurs; None for what does not.
        summary: one sentence.
        recommendation: what to do, in short.
        steps: what to do one by one, the most promising first.
    """

    kind: str
    severity: Severity
    confidence: Confidence
    devices: tuple[str, ...]
    intervals: tuple[Interval, ...]
    evidence: tuple[Evidence, ...]
    lost_gpu_seconds: float | None
    summary: str
    recommendation: str
    cause: str | None = None
    consequences: tuple[str, ...] = ()
    root: str | None = None
    samples: int = 0
    ruled_out: tuple[str, ...] = ()
    period_seconds: float | None = None
    steps: tuple[AdvisedStep, ...] = ()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the fingerprint from kind, devices and cause, so that it is the same night after night."""
        scope = "\n".join((self.kind, self.cause or "", *sorted(self.devices)))
        object.__setattr__(self, "fingerprint", sha256(scope.encode()).hexdigest()[:12])


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount that a sentence names.

    Attributes:
        value: in a base unit, or a count.
        text: the same in words, without what is counted.
        noun: what is counted; empty where `text` holds the unit.
    """

    value: float
    text: str
    noun: str = ""

    @property
    def words(self) -> str:
        """The amount with what is counted."""
        return f"{self.text} {self.noun}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """A kind that could not be judged, why, and what to record so that it can.

    Attributes:
        kind: the rule's name.
        device: device id, or None for the whole run.
        reason: why not, in one sentence; made from the template where there is one.
        recording: the command or field whose log would answer it.
        template: the reason with `{}` in the place of each amount; empty where it names none.
        amounts: what stands in these places.
        metrics: columns that `recording` asks for; empty where it asks for something else.
        needed_seconds: how long a recording must be, where this one is too short; None for every other reason.
        code: the reason in one word of snake_case, which stays when the sentence changes: `not_recorded`.
    """

    kind: str
    device: str | None
    reason: str = ""
    recording: str
    template: str = ""
    amounts: tuple[Amount, ...] = ()
    metrics: tuple[str, ...] = ()
    needed_seconds: float | None = None
    code: str = ""

    def __post_init__(self) -> None:
        """Put the amounts into the reason."""
        if self.template:
            object.__setattr__(self, "reason", self.template.format(*(amount.words for amount in self.amounts)))


class CheckOutcome(StrEnum):
    """What became of a limit that a person set, the gravest first."""

    BROKEN = "broken"
    CANNOT_JUDGE = "cannot judge"
    ACKNOWLEDGED = "acknowledged"
    NOT_APPLIED = "does not apply"
    PASSED = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A limit that a person set, checked on a run.

    Attributes:
        limit: the limit in words, as it can be written again.
        run: name of the run, or of the step for a change; the source as named where it could not be read.
        outcome: what became of it.
        observed: what was found, in words; empty where nothing is known.
        reason: why it cannot be judged, what was acknowledged, or what else a reader must know; empty where nothing is.
        origin: where the limit is stated (`gpureport.toml:4`, `--fail-on`).
        metric: name of what is limited, for machines.
        value: what was found, in `unit`; None where nothing is known.
        unit: base unit of the value: `points` and `%` for changes, `findings` for a count of them.
        bounds: the lowest and the highest it can be; None where the value is exact.
        reason_code: the reason in one word of snake_case, which stays when the sentence changes; may be empty.
    """

    limit: str
    run: str
    outcome: CheckOutcome
    observed: str = ""
    reason: str = ""
    origin: str = ""
    metric: str = ""
    value: float | None = None
    unit: str = ""
    bounds: tuple[float, float] | None = None
    reason_code: str = ""

    def __post_init__(self) -> None:
        """Replace secrets in its texts, which settings and options may hold."""
        for name in ("limit", "run", "observed", "reason", "origin", "metric"):
            object.__setattr__(self, name, redact_text(getattr(self, name)))
