"""The headline of a run: a sentence in the present tense on its worst finding."""

from collections.abc import Callable, Sequence

from gpureport.analysis import phrases
from gpureport.findings import Severity
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import finding_groups
from gpureport.report.sections.findings.finding_groups import Group
from gpureport.report.sections.head.headlines import hardware_headlines, idle_headlines, use_headlines
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts
from gpureport.report.wording import display

_SEVERITIES = list(Severity)
_NOTABLE = 0.1
"""Share of the run from which a fact that calls for no action is the headline of a run without problems."""


def _take_first_sentence(facts: FindingFacts) -> str:
    return display.clean_sentence(facts.finding.summary).split(". ")[0].rstrip(".") + "."


_MAKERS: dict[str, Callable[[FindingFacts], str]] = {
    **idle_headlines.MAKERS,
    **use_headlines.MAKERS,
    **hardware_headlines.MAKERS,
    **dict.fromkeys(("rate_falls", "slow_gpu", "unexplained_change"), _take_first_sentence),
}


def find_worst(runs: Sequence[ReportRun]) -> FindingFacts | None:
    """Return the worst findings of some runs: by severity, then by GPU time lost; None where all is well.

    What follows from another finding is never the worst. A fact counts where it takes a tenth of its run.
    """
    every = [group for place, run in enumerate(runs) for group in finding_groups.groups(place, run)]
    calling = [group for group in every if group.root is None and _calls_for_attention(group)]
    worst = max(calling, key=_weigh, default=None)
    if worst is None:
        return None
    return FindingFacts(group=worst, followers=tuple(group for group in every if worst.explains(group)))


def _calls_for_attention(group: Group) -> bool:
    if group.severity is not Severity.INFO:
        return True
    if group.worst.kind not in {"no_progress", "log_gap", "startup_idle", "tail_idle"}:
        return False
    facts = FindingFacts(group=group)
    whole = group.run.seconds
    return whole > 0 and (facts.share if facts.share is not None else facts.seconds / whole) >= _NOTABLE


def _weigh(group: Group) -> tuple[int, float]:
    return _SEVERITIES.index(group.severity), group.lost or 0.0


def describe_finding(facts: FindingFacts) -> str:
    """Return the headline on findings; of a kind without one of its own, its title and what it lost."""
    maker = _MAKERS.get(facts.finding.kind)
    if maker is not None:
        return phrases.capitalize(maker(facts))
    title = display.shorten(display.clean(finding_groups.title(facts.group)), 80)
    lost = f": {display.percent(facts.share)} of the GPU time lost" if facts.share else ""
    return f"{title}{lost}."
