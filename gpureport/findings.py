"""The results of an analysis: findings and their evidence, what could not be judged, and the outcome for each kind.

Times are integer microseconds since 1970-01-01 in the recording's time base (see `Run.timezone`). A reason code
is a stable snake_case name for a reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from operator import ge, gt, le, lt

from gpureport.names import group_pairs
from gpureport.redaction import redact_text


class Severity(StrEnum):
    """How much a finding matters, in ascending order."""

    INFO = "info"
    WARNING = "warning"
    PROBLEM = "problem"


class Confidence(StrEnum):
    """How certain a finding is: `high` if a column shows it directly, `low` if only coarse or tabulated values do."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Provenance(StrEnum):
    VENDOR = "vendor"
    LITERATURE = "literature"
    PRAGMATIC = "pragmatic"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit in a base unit, or a count of `rows` or `cores`, with its source in words."""

    value: float
    unit: str
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A half-open time interval [start, end) in microseconds."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e6


_RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured value and the limit it was compared with, or no limit if it is only context.

    The metric is a column, or a quantity in words (`duration`). The statistic shows how the series was reduced.
    """

    metric: str
    statistic: str
    observed: float
    unit: str
    threshold: Threshold | None = None
    relation: str = ""

    @property
    def meets_limit(self) -> bool:
        """Whether the value satisfies the relation to the limit, or has no limit."""
        if self.threshold is None:
            return True
        return self.relation in _RELATIONS and _RELATIONS[self.relation](self.observed, self.threshold.value)

    def as_context(self) -> "Evidence":
        return replace(self, threshold=None, relation="")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedStep:
    """A step from the catalogue that suits a finding, with unverified preconditions and a suggested amount."""

    name: str
    unknown: tuple[str, ...] = ()
    suggestion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A way in which GPU time was lost, or an important fact about the run.

    A finding without devices concerns the whole job, and one without intervals the whole run.
    `lost_gpu_seconds` is an upper bound, or None if unknown. `root` is the fingerprint of the finding
    that caused this one. The root's lost time includes this finding's on the same devices. `consequences`
    are findings caused by this one, and `samples` counts the samples used.
    """

    kind: str
    severity: Severity
    confidence: Confidence
    devices: tuple[str, ...]
    intervals: tuple[Interval, ...]
    evidence: tuple[Evidence, ...]
    lost_gpu_seconds: float | None
    summary: str
    recommendation: str = ""
    cause: str | None = None
    consequences: tuple[str, ...] = ()
    root: str | None = None
    samples: int = 0
    ruled_out: tuple[str, ...] = ()
    period_seconds: float | None = None
    steps: tuple[AdvisedStep, ...] = ()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        scope = "\n".join((self.kind, self.cause or "", *sorted(self.devices)))
        object.__setattr__(self, "fingerprint", sha256(scope.encode()).hexdigest()[:12])


Amount = tuple[float, str]
"""An amount in a sentence, as a number (a count, or in a base unit) and in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """A kind of finding that could not be judged for a device or the whole run, why, and what to record.

    The reason is a sentence, or a template to fill. `needed_seconds` is set if the recording is too short.
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
        if self.template:
            object.__setattr__(self, "reason", self.template.format(*(words for _, words in self.amounts)))


class Outcome(StrEnum):
    """The outcome for a kind of finding in a run. A kind is suspected if found only with low confidence."""

    FOUND = "found"
    SUSPECTED = "suspected"
    JUDGED = "judged, nothing found"
    CANNOT_JUDGE = "cannot judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome for one kind on a group of devices, given as ids and in words (`4 x NVIDIA L4`)."""

    kind: str
    group: str
    devices: tuple[str, ...]
    outcome: Outcome
    findings: tuple[str, ...] = ()
    missing: tuple[NotJudged, ...] = ()

    @property
    def reason(self) -> str:
        """Why the kind could not be judged, with device ids, or an empty string."""
        return self.reason_with(str)

    @property
    def reason_code(self) -> str:
        return "; ".join(dict.fromkeys(entry.code for entry in self.missing))

    @property
    def recording(self) -> str:
        return "; ".join(dict.fromkeys(entry.recording for entry in self.missing if entry.recording))

    def reason_with(self, name: Callable[[str], str]) -> str:
        """Return each reason once, with the names of its devices unless it applies to all."""
        holders = group_pairs((entry.reason, entry.device) for entry in self.missing)
        some = {reason: named for reason, named in holders.items() if all(named) and len(named) < len(self.devices)}
        of = {reason: ", ".join(name(each) for each in named if each) for reason, named in some.items()}
        return "; ".join(f"{of[reason]}: {reason}" if reason in of else reason for reason in holders)


class Practice(StrEnum):
    DONE = "done"
    WORTH_TRYING = "worth trying"
    CANNOT_JUDGE = "cannot be judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistEntry:
    """One item on the checklist, assessed for a run, with what to record if it cannot be judged."""

    item: str
    state: Practice
    reason: str
    recording: str = ""
    metrics: tuple[str, ...] = ()
    other_recordings: tuple[str, ...] = ()
    reason_code: str = ""


class CheckOutcome(StrEnum):
    """The outcomes for a limit set by the user, most severe first."""

    BROKEN = "broken"
    CANNOT_JUDGE = "cannot judge"
    ACKNOWLEDGED = "acknowledged"
    NOT_APPLIED = "does not apply"
    PASSED = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A limit set by the user, in standard form, and its result for a run, or for a step if it limits a change.

    The value is in a base unit (`points` and `%` for changes, `findings` for counts), with the lowest and highest
    possible values unless it is exact. The origin is the place where the limit is set (`gpureport.toml:4`).
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
        for name in ("limit", "run", "observed", "reason", "origin", "metric"):
            object.__setattr__(self, name, redact_text(getattr(self, name)))
