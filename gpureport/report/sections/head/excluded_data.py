"""What a verdict leaves out: rejected lines, recordings without end, idle time without finding."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.job.phases import WITHOUT_LASTING_WORK
from gpureport.analysis.results import Analysis
from gpureport.comparison import gains
from gpureport.importers.protocol.reject_reasons import CHOSEN, NO_TIME
from gpureport.recording import Run
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display, numbered_labels, terms

_MOST_NAMES = 120
"""Characters of a list of names above which all but the first are counted."""

_AROUND = ("startup_idle", "tail_idle")
"""Kinds that are idle time outside the job."""


def rejections(runs: Sequence[Run]) -> Iterator[str]:
    """Yield per run with more rejected than kept lines how many, why, and which option reads them."""
    for run in runs:
        rejected = [entry for entry in run.quality.rejected if entry.reason not in CHOSEN]
        count = sum(entry.rows for entry in rejected)
        if count <= run.quality.rows_kept:
            continue
        most = max(rejected, key=lambda entry: entry.rows)
        whose = f" of {display.clean(run.name)}" if len(runs) > 1 else ""
        noun = "points" if run.tracked else "lines"
        why = f"{'' if len(rejected) == 1 else 'most of them: '}{display.clean(most.reason)}"
        remedy = "pass --interval SECONDS to read them" if most.reason == NO_TIME else "see Data quality"
        total = display.integer(run.quality.lines)
        yield f"{display.integer(count)} of {total} {noun}{whose} were rejected ({why}): {remedy}."


def describe_unfinished_recordings(runs: Sequence[Run]) -> str:
    """Return which recordings have no end, so that they may be a part of their job; empty where there are none.

    Beside other runs they need work of their own, or nothing tells how fast they were.
    """
    cut = [run for run in runs if run.quality.unfinished]
    if not cut:
        return ""
    named = numbered_labels.list_labels([numbered_labels.clean_name(run.name) for run in cut])
    if len(named) > _MOST_NAMES:
        more = display.plural(len(cut) - 1, "more run")
        named = f"{numbered_labels.clean_name(cut[0].name)} and {more}"
    todo = _ask_for_work(cut) if len(runs) > 1 else ""
    if len(cut) == 1:
        return f"{named} is unfinished: it is still recording, or its recorder was killed{todo}."
    return f"{named} are unfinished: they are still recording, or their recorders were killed{todo}."


def _ask_for_work(cut: Sequence[Run]) -> str:
    """Return of which unfinished runs the work is not known, and what to do, if any."""
    lacking = [run for run in cut if run.work is None]
    if not lacking:
        return ""
    them = "it" if len(lacking) == 1 else "them"
    if len(lacking) == len(cut):
        whose = "its work" if len(cut) == 1 else "their work"
    else:
        whose = f"the work of {numbered_labels.list_labels([display.clean(run.name) for run in lacking])}"
    return f"; {whose} is not known: give one --work for each source, or leave {them} out"


def describe_idle_without_finding(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Describe the idle time that no finding covers, if it is a notable share."""
    job_seconds = gpu_time.job_gpu_seconds(analyses)
    times = [time for analysis in analyses if not _never_worked(analysis) for time in analysis.gpu_time]
    idle = gpu_time.seconds_by_cause(times).get("idle", {})
    seconds = idle.get(OUTSIDE, 0.0)
    if not job_seconds or seconds / job_seconds < gains.NOTABLE_RATIO:
        return
    share = f"Idle before or after work: {display.percent(seconds / job_seconds)}"
    unjudged = sorted({entry.kind for analysis in analyses for entry in analysis.not_judged} & {*_AROUND})
    if unjudged:
        titles = [display.lower_first(terms.kind_title(kind)) for kind in unjudged]
        yield f"{share}; not assessed: {display.join_words(titles)}."
    elif set(idle) != {OUTSIDE}:
        # the lead tells of idle time, and would say the same where there is no other
        yield f"{share}."


def _never_worked(analysis: Analysis) -> bool:
    """Return whether a finding has all the idle time of a run, since no GPU ever worked."""
    return any(found.kind == "startup_idle" and found.cause in WITHOUT_LASTING_WORK for found in analysis.findings)
