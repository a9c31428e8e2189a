"""The runs of a night against the baseline and last week, for its report."""

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from gpureport.cli.runs import analyses, run_sampling
from gpureport.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpureport.cli.options.analysis_options import AnalysisOptions
    from gpureport.cli.results.gate import AgainstBaseline
    from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
    from gpureport.report.model.comparison_parts import EarlierComparison
    from gpureport.store.store import Store

WEEK = 7
"""Days back to the night that a night is compared with; else the nearest later one is taken."""


def compare_with_baseline(
    name: str | None, against: "AgainstBaseline", runs: analyses.AnalysedRuns, throughput: str | None
) -> "Iterator[EarlierComparison]":
    """Yield the comparison of each step with a named baseline, or why there is none."""
    from gpureport.report.model.comparison_parts import EarlierComparison  # noqa: PLC0415 - loads the report
    from gpureport.report.sections.steps.pairs import compare_with_earlier  # noqa: PLC0415 - as above

    if name is None:
        return
    name = redact_text(name)
    if against.reason:
        yield EarlierComparison(title=f"Baseline {name}", notes=(f"Not compared: {against.reason.rstrip('?.')}.",))
        return
    for step, group in _group_by_step(runs).items():
        later = run_sampling.sample_runs(group.runs, throughput)
        title = f"Baseline {name}{f' · {step}' if step else ''}"
        yield compare_with_earlier(title, against.runs, later, runs.goals, is_baseline=True)


def compare_with_last_week(
    night: "NightlyRecord",
    nights: "Iterable[NightlyRecord]",
    runs: analyses.AnalysedRuns,
    store: "Store",
    options: "AnalysisOptions",
) -> "Iterator[EarlierComparison]":
    """Yield the comparison of each job with its runs of last week, if any."""
    from gpureport.report.model.comparison_parts import EarlierComparison  # noqa: PLC0415 - loads the report
    from gpureport.report.sections.steps.pairs import compare_with_earlier  # noqa: PLC0415 - as above

    earlier = [each for each in nights if 0 < _days_between(each, night) <= WEEK]
    groups = list(dict.fromkeys((run.step, run.model) for run in night.measured_runs))
    by_id = {recording.run.id: (recording, analysis) for recording, analysis in runs.runs}
    for step, model in groups:
        job = f" · {step}" if step else ""
        own = [run for run in night.measured_runs if (run.step, run.model) == (step, model)]
        day, before = _find_week_ago(earlier, (step, model), store)
        if not before:
            yield EarlierComparison(
                title=f"Last week{job}", notes=("No run of this job in the week before is stored.",)
            )
            continue
        found = analyses.analyze_runs(
            [store.read(entry) for run in before if (entry := store.get(str(run.run_id)))], options, fewest_runs=0
        )
        if found.runs:
            later = run_sampling.sample_runs([by_id[str(run.run_id)] for run in own])
            yield compare_with_earlier(f"Night of {day}{job}", run_sampling.sample_runs(found.runs), later, runs.goals)


def _find_week_ago(
    nights: "Iterable[NightlyRecord]", group: tuple[str, str], store: "Store"
) -> "tuple[str, list[NightlyRun]]":
    """Return the night a week ago, else the next one, that measured a job, and its stored runs."""
    for each in sorted(nights, key=lambda night: night.date):
        runs = [
            run
            for run in each.measured_runs
            if (run.step, run.model) == group and store.get(str(run.run_id)) is not None
        ]
        if runs:
            return each.date, runs
    return "", []


def _days_between(earlier: "NightlyRecord", later: "NightlyRecord") -> int:
    return (date.fromisoformat(later.date) - date.fromisoformat(earlier.date)) // timedelta(days=1)


def _group_by_step(runs: analyses.AnalysedRuns) -> dict[str, analyses.AnalysedRuns]:
    """Return the runs of each step label; without one each run is a step."""
    labels = dict.fromkeys(recording.run.step or recording.run.name for recording, _ in runs.runs)
    return {
        label: replace(runs, runs=tuple(each for each in runs.runs if (each[0].run.step or each[0].run.name) == label))
        for label in labels
    }
