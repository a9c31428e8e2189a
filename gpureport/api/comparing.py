"""`gpureport.compare`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from gpureport.api.analyzing import analyze
from gpureport.api.notebook_results import Analysis, Comparison
from gpureport.comparison.chain import step_comparison
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.recording import Recording

Run = Recording | Analysis
"""A run, analysed or not."""


def compare(runs: Sequence[Run] | Mapping[str, Run | Sequence[Run]], *, throughput: str | None = None) -> Comparison:
    """Return each step set against the one before it, with intervals and verdicts.

    Args:
        runs: recordings or analyses in the order of their steps, or a dict of steps: `{"before": [run, run], "after":
            run}`. In a list, runs with the same step label are repetitions of one step; a run without a label is a
            step of its own.
        throughput: training metric that counts the work done, whatever its name.

    Raises:
        ValueError: when there are fewer than two steps.
    """
    analyses = tuple(_in_steps(runs) if isinstance(runs, Mapping) else map(_analysed, runs))
    sampled = [build_sampled_run(each.recording, each, throughput) for each in analyses]
    found = step_comparison.compare(sampled) if sampled else None
    if found is None or len(found.steps) == 1:
        msg = "a comparison needs at least two steps"
        raise ValueError(msg)
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    return Comparison(**values, analyses=analyses, throughput=throughput)


def _in_steps(steps: Mapping[str, Run | Sequence[Run]]) -> Iterator[Analysis]:
    """Yield the runs of each step under its label."""
    for label, runs in steps.items():
        for run in [runs] if isinstance(runs, Recording | Analysis) else runs:
            yield _labelled(_analysed(run), label)


def _analysed(run: Run) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


def _labelled(analysis: Analysis, step: str) -> Analysis:
    run = replace(analysis.run, step=step)
    return replace(analysis, run=run, recording=replace(analysis.recording, run=run))
