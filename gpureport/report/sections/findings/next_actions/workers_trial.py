"""What to try where GPUs lose much time in short pauses, and no finding says why."""

from collections.abc import Sequence

from gpureport.analysis.advice import step_choice
from gpureport.analysis.advice.run_facts import RunFacts, gather_facts
from gpureport.analysis.results import Analysis
from gpureport.analysis.signals import low_use
from gpureport.analysis.signals.low_use import LOW_USE_KINDS
from gpureport.analysis.signals.waits.waiting_gpus import WAIT_KINDS
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
    pauses = gpu_time.notable_short_pauses(analyses)
    if (
        pauses is None
        or low_use_sentences.measure_mid_job_seconds(analyses) < low_use.SHORTEST.value * _count_gpus(analyses)
        or any(group.kind in _EXPLAINED for group in groups)
    ):
        return None
    facts = _gather_facts(runs[-1])
    trial = step_choice.choose_workers_trial(facts)
    wording = PROFILE if trial is None else TRY_BESIDE_OTHERS if facts.others_fill_cpu else TRY_WORKERS
    how = wording.how.format(workers="" if trial is None else trial.suggestion)
    return Action(
        title=wording.title,
        gain=wording.gain,
        text=f"{_describe_pauses(analyses, pauses)}; the log doesn't show why. {how}",
        certainty="No check found a cause.",
    )


def _count_gpus(analyses: Sequence[Analysis]) -> int:
    return sum(len(analysis.gpu_time) for analysis in analyses)


def _describe_pauses(analyses: Sequence[Analysis], pauses: float) -> str:
    """Return how much GPUs computed where that is little, else how much of their time went by in short pauses."""
    if low_use_sentences.is_low_mid_job(analyses):
        return low_use_sentences.describe_computing_mid_job(analyses)
    return f"Short pauses take {display.percent(pauses)} of the time"


def _gather_facts(run: ReportRun) -> RunFacts:
    analysis = run.analysis
    missing = {entry.kind for entry in analysis.not_judged}
    return gather_facts(analysis.run, analysis.statistics, analysis.findings, missing)
