"""Why fewer steps count than the training loop logged, in one line."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain.uncounted_steps import UncountedSteps, find_uncounted_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.wording import display

_LISTED = 3
"""Runs that are named; the others are counted."""


def describe_uncounted_steps(runs: Sequence[SampledRun]) -> str:
    """Return of which runs not every logged step counts, and why; empty where there are none."""
    found = [each for run in runs if (each := find_uncounted_steps(run)) is not None]
    if not found:
        return ""
    more = len(found) - _LISTED
    parts = [*map(_describe_run, found[:_LISTED]), *([f"and {display.plural(more, 'more run')}"] if more > 0 else [])]
    return f"Not every logged step counts: {'; '.join(parts)}."


def _describe_run(found: UncountedSteps) -> str:
    numbers = f"{display.integer(found.counted)} of {display.integer(found.logged)}"
    return f"{display.clean(found.run)} {numbers} ({', '.join(_list_reasons(found))})"


def _list_reasons(found: UncountedSteps) -> Iterator[str]:
    if found.undated:
        yield f"nothing tells when the first {display.integer(found.undated)} were done"
    if found.earlier:
        yield f"the counter went on from {display.integer(found.earlier)}"
    if round(found.outside):
        yield f"{display.integer(found.outside)} outside the recording"
