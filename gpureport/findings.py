"""What an analysis says: findings with their evidence, and what could not be judged.

Times are integer microseconds since 1970-01-01, on the time base of the recording (see `Run.timezone`).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256


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
        unit: base unit (`1` for a ratio, `s`, `Cel`, `W`, `By`, `Hz`, or `rows`).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured value set against the limit that made it count.

    Attributes:
        metric: column name, or a quantity in words where no single column gives it (`duration`).
        statistic: how the series was reduced (`mean`, `max`, `p95`, `share of busy time`).
        observed: the value, in `unit`.
        unit: base unit of `observed` and of the threshold.
        threshold: the limit, or None where the value is only context.
        relation: how the observed value stands to the limit (`<=`, `<`, `>=`, `>`), empty without one.
    """

    metric: str
    statistic: str
    observed: float
    unit: str
    threshold: Threshold | None = None
    relation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One way GPU time was lost or a fact about the run that matters.

    Attributes:
        kind: the rule's name.
        severity: info, warning or problem.
        confidence: high, medium or low.
        devices: device ids concerned; empty when the whole job is.
        intervals: when, in order and disjoint; empty when the whole run is meant.
        evidence: measured values with their limits.
        lost_gpu_seconds: GPU time lost at most; None where it cannot be put in GPU time.
        cause: what lies behind it, in one word, where known.
        consequences: fingerprints of findings that follow from this one.
        samples: how many readings it rests on; rows that repeat one count once where the refresh is known.
        ruled_out: other explanations that were excluded, in words.
        period_seconds: how often it recurs; None for what does not.
        summary: one sentence.
        recommendation: what to do.
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
    samples: int = 0
    ruled_out: tuple[str, ...] = ()
    period_seconds: float | None = None
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the fingerprint from kind, devices and cause, so that it is the same night after night."""
        scope = "\n".join((self.kind, self.cause or "", *sorted(self.devices)))
        object.__setattr__(self, "fingerprint", sha256(scope.encode()).hexdigest()[:12])


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """A kind that could not be judged, why, and what to record so that it can.

    Attributes:
        kind: the rule's name.
        device: device id, or None for the whole run.
        reason: why not, in one sentence.
        recording: the command or field whose log would answer it.
    """

    kind: str
    device: str | None
    reason: str
    recording: str
