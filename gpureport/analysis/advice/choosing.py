"""Which steps a finding gets: those of its kind and cause whose preconditions the run does not rule out."""

from collections.abc import Iterator
from functools import lru_cache

from gpureport.analysis.advice import paths
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.advice.facts import Facts, beside
from gpureport.findings import AdvisedStep, Finding


def steps(finding: Finding, known: Facts) -> tuple[AdvisedStep, ...]:
    """Return the steps for a finding, the most promising first.

    A step of which a precondition is known not to hold is left out. One of which a precondition is not known says
    which, and comes after those that are known to fit.

    Args:
        finding: the finding.
        known: what the run tells; where the finding measured the same in its own episodes, that counts.
    """
    return _steps(finding.kind, finding.cause, beside(known, finding))


@lru_cache(maxsize=256)
def _steps(kind: str, cause: str | None, told: Facts) -> tuple[AdvisedStep, ...]:
    """Return the steps of a kind and cause; a run can hold thousands of findings that ask for the same."""
    fitting = list(_fitting(kind, cause, told))
    return (*(step for step in fitting if not step.unknown), *(step for step in fitting if step.unknown))


def _fitting(kind: str, cause: str | None, told: Facts) -> Iterator[AdvisedStep]:
    for name in paths.of_kind(kind, cause):
        held = {condition.words: condition.holds(told) for condition in STEPS[name].conditions}
        if False not in held.values():
            yield AdvisedStep(name=name, unknown=tuple(words for words, holds in held.items() if holds is None))
