"""Reasons behind verdicts, as values: the report puts them into words."""

from dataclasses import dataclass, replace
from enum import StrEnum


class ReasonKind(StrEnum):
    """What keeps a difference from being judged, or from a surer verdict."""

    NOT_RECORDED = "not_recorded"
    NO_PRICE = "no_price"
    OTHER_WORK_UNIT = "other_work_unit"
    UNKNOWN_WORK = "unknown_work"
    UNFINISHED = "unfinished"
    UNEQUAL_WORK = "unequal_work"
    ZERO = "zero"
    SINGLE_FIGURE = "single_figure"
    SHORT_STEADY_STATE = "short_steady_state"
    SHORT_RUN = "short_run"
    FEW_SAMPLES = "few_samples"
    FEW_RATES = "few_rates"
    FEW_BATCHES = "few_batches"
    NOT_COMPARABLE = "not_comparable"
    SAME_RECORDING = "same_recording"
    MANY_COMPARISONS = "many_comparisons"
    WITHIN_USUAL_NOISE = "within_usual_noise"
    NOT_REPEATED = "not_repeated"
    TARGET_NOT_REACHED = "target_not_reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason with its figures.

    Attributes:
        kind: what the reason is.
        run: name of the run that is too short or unfinished; empty where the reason is about no single run.
        amount: what that run holds, in seconds or samples; of many comparisons how many there are; of unequal work by
            what share the most work exceeds the least.
        least: what a run must hold, in the same unit; of batches how many.
        check: of what is not comparable, the check that failed.
    """

    kind: ReasonKind
    run: str = ""
    amount: float = 0.0
    least: float = 0.0
    check: str = ""

    @property
    def of_any_run(self) -> "Reason":
        """The same without the run, so that several differences share it."""
        return replace(self, run="", amount=0.0) if self.run else self
