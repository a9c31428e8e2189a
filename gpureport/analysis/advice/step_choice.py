"""Which steps a finding gets: those of its kind and cause whose preconditions the run does not rule out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from gpureport.analysis.advice.run_facts import RunFacts, adapt_facts
from gpureport.analysis.advice.steps import STEPS
from gpureport.analysis.advice.worker_count import suggest_workers
from gpureport.analysis.kinds import AdvicePath
from gpureport.analysis.rules import RULES
from gpureport.findings import AdvisedStep, Finding

WORKERS = "loader_workers"
"""The step that adds loader workers."""
_MOST = 3
"""Steps that a recommendation names; the others stand below the finding."""
PATHS: dict[str, tuple[AdvicePath, ...]] = {kind.name: kind.paths for rule in RULES for kind in rule.descriptions}
"""The steps of each kind, by groups of causes; the first path that fits a finding is its own."""


def find_steps(kind: str, cause: str | None = None) -> tuple[str, ...]:
    """Return the names of the steps for a finding, the most promising first; none for a kind without any."""
    fitting = (path for path in PATHS.get(kind, ()) if not path.causes or cause in path.causes)
    return next((path.steps for path in fitting), ())


def choose_steps(finding: Finding, known: RunFacts) -> tuple[AdvisedStep, ...]:
    """Return the steps for a finding, the most promising first.

    A step that was taken, of which a precondition is known not to hold, or which is for another framework, is left
    out. One that params say was not taken comes first. One of which a precondition is not known says which, and comes
    last.

    Args:
        finding: the finding.
        known: what the run tells; where the finding measured the same in its own episodes, that counts.
    """
    facts = adapt_facts(known, finding)
    chosen = _choose_steps(finding.kind, finding.cause, facts)
    return tuple(
        replace(step, suggestion=suggest_workers(facts, finding)) if step.name == WORKERS else step for step in chosen
    )


def choose_workers_trial(known: RunFacts) -> AdvisedStep | None:
    """Return more loader workers as a trial for a run that is little used for no known reason; None where ruled out."""
    step = _fit_step(WORKERS, known)
    return None if step is None else replace(step, suggestion=suggest_workers(known))


def write_recommendation(finding: Finding, known: RunFacts) -> str:
    """Return what to do in short: where params tell of steps on the way, what they say and which steps are next."""
    facts = adapt_facts(known, finding)
    settings = _list_settings(finding.kind, finding.cause, facts)
    chosen = _choose_steps(finding.kind, finding.cause, facts)
    if not settings or not chosen:
        return finding.recommendation
    titles = [STEPS[step.name].title for step in chosen[:_MOST]]
    order = "; ".join(f"{place}. {title}" for place, title in enumerate(titles, 1)) if len(titles) > 1 else titles[0]
    joined = " and ".join([", ".join(settings[:-1]), settings[-1]] if len(settings) > 1 else settings)
    return f"With {joined}, try {'in this order: ' if len(titles) > 1 else ''}{order}."


@lru_cache(maxsize=256)
def _choose_steps(kind: str, cause: str | None, facts: RunFacts) -> tuple[AdvisedStep, ...]:
    """Return the steps of a kind and cause; a run can hold thousands of findings that ask for the same."""
    return tuple(sorted(_list_fitting_steps(kind, cause, facts), key=lambda step: _rank(step, facts)))


def _rank(step: AdvisedStep, facts: RunFacts) -> int:
    return 0 if STEPS[step.name].is_taken(facts) is False else 2 if step.unknown else 1


def _list_fitting_steps(kind: str, cause: str | None, facts: RunFacts) -> Iterator[AdvisedStep]:
    for name in find_steps(kind, cause):
        step = _fit_step(name, facts)
        if step is not None:
            yield step


def _fit_step(name: str, facts: RunFacts) -> AdvisedStep | None:
    """Return a step with what is not known of it; None where it was taken, is ruled out or for another framework."""
    if STEPS[name].frameworks and facts.framework not in STEPS[name].frameworks:
        return None
    held = {words: holds(facts) for words, holds in STEPS[name].needs}
    if False in held.values() or STEPS[name].is_taken(facts):
        return None
    return AdvisedStep(name=name, unknown=tuple(words for words, holds in held.items() if holds is None))


@lru_cache(maxsize=256)
def _list_settings(kind: str, cause: str | None, facts: RunFacts) -> tuple[str, ...]:
    """Return the params that say of a step of this kind whether it was taken, as they were written."""
    names = (
        name
        for step in find_steps(kind, cause)
        if (taken := STEPS[step].taken) is not None and taken[0](facts) is not None
        for name in taken[1]
    )
    settings = (getattr(facts.setup, name) for name in names)
    return tuple(dict.fromkeys(setting.text for setting in settings if setting is not None))
