"""Why less work counts than the training loop logged, in one line."""

from collections.abc import Sequence

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.wording import display

_LISTED = 3
"""Runs that are named; the others are counted."""

_NOTABLE = 0.01
"""Share of the work that rates tell of from which it is worth a word that it does not count (pragmatic)."""


def describe_excluded_work(runs: Sequence[SampledRun]) -> str:
    """Return of which runs not all the work counts that their rates tell of, and why; empty where there are none."""
    found = [text for run in runs if (text := _describe_excluded(run))]
    if not found:
        return ""
    listed = "; ".join(_list_some(found))
    return f"Not counted as work, because the steps took so long that they must include a pause: {listed}."


def _describe_excluded(run: SampledRun) -> str:
    """Return how much of the work that rates tell of does not count; empty where hardly any, or others tell it."""
    speed = run.logged_work
    if speed is None or speed.work.excluded < _NOTABLE * (speed.work.amount + speed.work.excluded):
        return ""
    share = display.percent(speed.work.excluded / (speed.work.amount + speed.work.excluded))
    name, source = display.clean(run.analysis.run.name), display.clean(speed.name)
    return f"{share} of the {display.clean(speed.unit)} of {name} ({source})"


def _list_some(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _LISTED
    return [*texts[:_LISTED], *([f"and {display.plural(more, 'more run')}"] if more > 0 else [])]
