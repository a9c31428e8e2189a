"""A timeline of many GPUs, split into pieces that fit on a page of paper."""

from dataclasses import replace

from gpureport.report.model.time_charts import Timeline

STRIPS_PER_PAGE = 64
"""Most strips whose labels can still be read on one page."""


def split_into_pages(run: Timeline) -> tuple[Timeline, ...]:
    """Return the run as timelines of at most a page; none for a run without GPUs."""
    firsts = range(0, len(run.strips), STRIPS_PER_PAGE)
    return tuple(replace(run, strips=run.strips[first : first + STRIPS_PER_PAGE]) for first in firsts)
