"""The content of the first screen: headline, lead, tiles, and what to do next."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a figure changed from one step to another.

    Attributes:
        text: the change as a percentage (`−52%`), or as a multiple if at least tenfold (`12 times`).
        interval: its 95% interval in words (`−58 to −45%`), if any.
        verdict: `better`, `worse`, `no clear change`, `not enough data`, `unconfirmed (one run each)` or `unconfirmed
            (one run on one side)`; empty if neither direction is better.
        comparisons: number of comparisons if only the Holm correction prevents a clear verdict; else None.
        arrow: `up` or `down`; empty if the figure stayed the same.
        since: the step from which the change is measured, unless it is the previous one.
    """

    text: str
    interval: str = ""
    verdict: str = ""
    comparisons: int | None = None
    arrow: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A key figure. `unit` is empty if `value` contains it. `change` is from the first step to the last."""

    label: str
    value: str
    context: str
    before: str = ""
    unit: str = ""
    change: Change | None = None

    @property
    def figures(self) -> str:
        return f"{self.before and f'{self.before} → '}{self.value}{self.unit and f' {self.unit}'}"


class VerdictCode(StrEnum):
    FINDING = "finding"  # The worst finding; `Verdict.kind` is its kind.
    HEALTHY = "healthy"
    # No problem, but many unexplained short pauses.
    SHORT_PAUSES = "short_pauses"
    # At least a tenth of the GPU time was lost, but no finding needs attention.
    LOST_TIME = "lost_time"
    CAUSE_UNKNOWN = "cause_unknown"  # Low utilisation for which the log shows no cause.
    # No problem, but utilisation is missing for part of the time.
    PARTLY_OBSERVED = "partly_observed"
    # No problem, but the job failed, many checks were not assessed, or the training log reports waits.
    FEW_CHECKS = "few_checks"
    NOTHING_ASSESSED = "nothing_assessed"
    NO_GPU = "no_gpu"
    NO_UTILISATION = "no_utilisation"
    TOO_SHORT = "too_short"
    # No problem, except that some of the user's rules failed.
    RULES_FAILED = "rules_failed"
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
    """The result. `sentence` is the headline.

    Attributes:
        details: the sentences of the lead; the first `doubts` are about the headline.
        notes: further sentences, hidden at first; the first `further_doubts` of them are caveats.
        code: the headline as a code; None on a page about many runs.
    """

    sentence: str
    details: tuple[str, ...]
    notes: tuple[str, ...] = ()
    doubts: int = 0
    further_doubts: int = 0
    code: VerdictCode | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One of up to three actions, most promising first.

    `finding` is the id of the row that led to it, if any. A trial addresses unexplained pauses.
    """

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
