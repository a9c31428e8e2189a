"""The runs of a report in the order of their steps, under names of readable length."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.recording import Recording
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun, label_runs
from gpureport.report.wording import display


def shorten_names(runs: Sequence[tuple[Recording, Analysis]]) -> list[tuple[Recording, Analysis]]:
    """Return the runs with names and step labels of readable length, different ones kept apart."""
    steps = dict.fromkeys(analysis.run.step for _, analysis in runs if analysis.run.step is not None)
    short = [display.shorten_middle(display.clean(step), LABEL_LENGTH) for step in steps]
    labels = {
        step: f"{label} ({short[:place].count(label) + 1})" if label in short[:place] else label
        for place, (step, label) in enumerate(zip(steps, short, strict=True))
    }
    named = []
    for recording, analysis in runs:
        name = display.shorten_middle(display.clean(analysis.run.name), LABEL_LENGTH)
        step = None if analysis.run.step is None else labels[analysis.run.step]
        named.append((recording, replace(analysis, run=replace(analysis.run, name=name, step=step))))
    return named


def sample_runs(runs: Sequence[tuple[Recording, Analysis]], key: str | None = None) -> list[SampledRun]:
    """Return runs as a comparison takes them; `key` is the training metric that counts work, whatever its name."""
    return [build_sampled_run(recording, analysis, key) for recording, analysis in runs]


def order_by_step(runs: Sequence[tuple[Recording, Analysis]], comparison: Comparison) -> tuple[ReportRun, ...]:
    """Return the runs step by step, replicates of a step next to each other, their work counted as compared."""
    # a comparison that counts work in samples holds other analyses, so recordings are matched by their run
    recordings: dict[tuple[str, str, str | None], list[Recording]] = {}
    for recording, analysis in runs:
        recordings.setdefault(_run_key(analysis), []).append(recording)
    ordered, labels = [], []
    for step in comparison.steps:
        for analysis in step.analyses:
            ordered.append((recordings[_run_key(analysis)].pop(0), analysis))
            labels.append(display.clean(step.label))
    return label_runs(ordered, labels)


def _run_key(analysis: Analysis) -> tuple[str, str, str | None]:
    """Return the key of a run. A run that is given twice has the same key both times."""
    return analysis.run.id, analysis.run.name, analysis.run.step
