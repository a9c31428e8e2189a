"""What to try where GPUs lose much time in short pauses, and no finding says why."""

from collections.abc import Sequence

from gpureport.analysis.advice import choose
from gpureport.analysis.advice.facts import RunFacts, gather_facts
from gpureport.analysis.signals.load import LOW_USE_KINDS, NOTABLE, WAIT_KINDS
from gpureport.comparison.steps.step_figures import SHORTEST_REPETITION_SECONDS, recorded_seconds
from gpureport.report.model.head import Action
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.next_actions.action_words import PROFILE, TRY_BESIDE_OTHERS, TRY_WORKERS
from gpureport.report.sections.findings.rows.row_groups import RowGroup
from gpureport.report.sections.head import low_use_sentences
from gpureport.report.wording import display

_EXPLAINED = {*WAIT_KINDS, *LOW_USE_KINDS, "hollow_util", "imbalance", "workers_headroom"}
"""Kinds with advice of their own on what GPUs wait for."""


def find_trial(runs: Sequence[ReportRun], groups: Sequence[RowGroup]) -> Action | None:
    """Return to try more loader workers, or to profile where these are ruled out; None where nothing calls for it.

    Args:
        runs: the runs of the last step.
        groups: the findings of these runs.
    """
    analyses = [run.analysis for run in runs]
    pauses = gpu_time.short_pauses_ratio(analyses)
    if (
        pauses < NOTABLE
        or recorded_seconds(analyses) < SHORTEST_REPETITION_SECONDS
        or any(group.kind in _EXPLAINED for group in groups)
    ):
        return None
    is_low = low_use_sentences.is_low_mid_job(analyses)
    what = (
        low_use_sentences.describe_computing_mid_job(analyses)
        if is_low
        else f"Short pauses took {display.percent(pauses)} of the observed time"
    )
    facts = _gather_facts(runs[-1])
    trial = choose.choose_workers_trial(facts)
    wording = PROFILE if trial is None else TRY_BESIDE_OTHERS if facts.others_fill_cpu else TRY_WORKERS
    how = wording.how.format(workers="" if trial is None else trial.suggestion)
    return Action(
        title=wording.title,
        gain=wording.gain,
        text=f"{what}; the log doesn't show why. {how}",
        certainty="No check found a cause.",
        is_trial=True,
    )


def _gather_facts(run: ReportRun) -> RunFacts:
    analysis = run.analysis
    missing = {entry.kind for entry in analysis.not_judged}
    return gather_facts(analysis.run, analysis.statistics, analysis.findings, missing)
