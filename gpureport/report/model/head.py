"""What the first screen says: the headline, what to know with it, the tiles, and what to do next."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a figure changed from one step to another.

    Attributes:
        text: in per cent with its sign (`−52%`), from tenfold on as times (`12 times`).
        interval: its 95% interval in words (`−58 to −45%`); empty where there is none.
        verdict: `better`, `worse`, `no clear change`, `not enough data` or `unconfirmed (one run each)`, against
            several `unconfirmed (one run on one side)`; empty for a figure without direction.
        comparisons: of how many comparisons it is one, where that is why nothing is claimed although its interval alone
            would show a change; None where it is not why.
        arrow: `up` or `down`; empty where the figure stayed the same.
        since: which step it is measured from, where it is not the one before.
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
    # no problem, but many short pauses that nothing explains
    SHORT_PAUSES = "short_pauses"
    # a tenth of the GPU time or more, without a finding that calls for attention
    LOST_TIME = "lost_time"
    CAUSE_UNKNOWN = "cause_unknown"  # GPUs were little used, and the log doesn't show why
    # no problem, but a part of the time holds no utilisation
    PARTLY_OBSERVED = "partly_observed"
    # no problem, but fewer checks were assessed than were not, or the training log counts long waits for data
    FEW_CHECKS = "few_checks"
    NOTHING_ASSESSED = "nothing_assessed"
    NO_GPU = "no_gpu"
    NO_UTILISATION = "no_utilisation"
    TOO_SHORT = "too_short"
    # a run that would be healthy breaks rules that a person set
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
    """The result.

    Attributes:
        details: the lead, one or two sentences: how sure it is, what is left, what to do.
        notes: what else is worth knowing, shown in a fold.
        doubts: how many details, the first ones, a reader must know before he believes the headline.
        further_doubts: how many notes, the first ones, are doubts too.
        code: what the headline says, in one word; None of many runs.
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
    """A thing to do next; at most three are shown, the most promising first.

    `finding` is the id of the row that it rests on, if any; a trial is against short pauses, which no finding explains.
    """

    title: str
    gain: str
    text: str
    certainty: str
    finding: str = ""
    command: str = ""
    is_trial: bool = False


class FirstScreen(Protocol):
    """What begins with a first screen: the report of some runs, the page on many."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def quiet_line(self) -> str: ...

    @property
    def tiles(self) -> tuple[Tile, ...]: ...
