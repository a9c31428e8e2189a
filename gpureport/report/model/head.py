"""What the first screen says: the headline, what to know with it, the tiles, and what to do next."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a figure changed from one step to another: `−52%`, or from tenfold on `12 times`, and its 95% interval.

    The verdict is empty for a figure without direction, the arrow (`up`, `down`) where it stayed the same. It is one of
    so many `comparisons` where that is why nothing is claimed although its interval alone would show a change. `since`
    is the step that it is measured from, where that is not the one before.
    """

    text: str
    interval: str = ""
    verdict: str = ""
    comparisons: int | None = None
    arrow: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One key figure; its unit is empty where `value` has its own, its change is from the first step to the last."""

    label: str
    value: str
    context: str
    before: str = ""
    unit: str = ""
    change: Change | None = None

    @property
    def figures(self) -> str:
        before = f"{self.before} → " if self.before else ""
        return f"{before}{self.value}{self.unit and f' {self.unit}'}"


class VerdictCode(StrEnum):
    FINDING = "finding"  # the worst there is; `Verdict.kind` says which
    HEALTHY = "healthy"
    SHORT_PAUSES = "short_pauses"  # no problem, but many short pauses that nothing explains
    LOST_TIME = "lost_time"  # a tenth of the GPU time or more, without a finding that calls for attention
    CAUSE_UNKNOWN = "cause_unknown"  # GPUs were little used, and the log doesn't show why
    PARTLY_OBSERVED = "partly_observed"  # no problem, but a part of the time holds no utilisation
    FEW_CHECKS = "few_checks"  # no problem, but fewer checks were assessed than were not
    NOTHING_ASSESSED = "nothing_assessed"
    NO_GPU = "no_gpu"
    NO_UTILISATION = "no_utilisation"
    TOO_SHORT = "too_short"
    RULES_FAILED = "rules_failed"  # a run that would be healthy breaks rules that a person set
    BETTER = "better"
    WORSE = "worse"
    DIFFERS = "differs"
    NO_CLEAR_CHANGE = "no_clear_change"
    NOT_ENOUGH_DATA = "not_enough_data"
    UNCONFIRMED = "unconfirmed"
    QUALITY_FELL = "quality_fell"
    STEPS_TOO_SHORT = "steps_too_short"
    BEST_GROUP = "best_group"
    BEST_GROUP_UNCONFIRMED = "best_group_unconfirmed"
    BEST_GROUP_LOWER_QUALITY = "best_group_lower_quality"
    BEST_GROUP_NOT_KNOWN = "best_group_not_known"
    NO_CLEAR_BEST_GROUP = "no_clear_best_group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result: headline, lead (`details`) and notes for a fold; the code is None of many runs.

    So many details, the first ones, are `doubts`, which a reader must know before he believes the headline; and so many
    notes `further_doubts`.
    """

    sentence: str
    details: tuple[str, ...]
    notes: tuple[str, ...] = ()
    doubts: int = 0
    further_doubts: int = 0
    code: VerdictCode | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A thing to do next; `finding` is the id of its row; a trial is against pauses that no finding explains."""

    title: str
    gain: str
    text: str
    certainty: str
    finding: str = ""
    command: str = ""
    is_trial: bool = False


class FirstScreen(Protocol):
    @property
    def verdict(self) -> Verdict: ...

    @property
    def quiet_line(self) -> str: ...

    @property
    def tiles(self) -> tuple[Tile, ...]: ...
