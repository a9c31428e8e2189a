"""`gpureport.compare`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from gpureport.api.analyzing import analyze
from gpureport.api.notebook_results import Analysis, Comparison
from gpureport.comparison import chain
from gpureport.comparison.factors import CHAIN_KINDS, Factor, assign_steps, parse_factors
from gpureport.comparison.run import build_sampled_run
from gpureport.comparison.training import make_goals
from gpureport.recording import Recording

Run = Recording | Analysis
"""A run, analysed or not."""


def compare(
    runs: Sequence[Run] | Mapping[str, Run | Sequence[Run]],
    *,
    throughput: str | None = None,
    by: str = "step",
    better: Mapping[str, str] | None = None,
    target: str | None = None,
) -> Comparison:
    """Return each step set against the one before it, with intervals and verdicts.

    Args:
        runs: recordings or analyses in the order of their steps, or a dict of steps: `{"before": [run, run], "after":
            run}`. In a list, runs with the same step label are repetitions of one step; a run without a label is a
            step of its own.
        throughput: training metric that counts the work done, whatever its name.
        by: what makes a step, as `--by` takes it: `"param:batch_size"`, `"gpu,param:precision"`. Groups stand in the
            order of their values; with `"folder"` steps stand by the numbers that their folders begin with, else by the
            start of their first runs. A dict names its steps itself.
        better: which way training metrics get better whose names do not say: `{"my_metric": "higher"}`, or `"lower"`.
        target: value a training metric is to reach, such as `"val_accuracy=0.78"`; the time until then is compared.

    Raises:
        ValueError: when there are fewer than two steps, `by` names no settings, or `better` or `target` says nothing.
        SettingsError: when a run lacks a param or tag of `by`, or its log lies in no folder that tells its step.
    """
    grouping = parse_factors(by)
    if isinstance(runs, Mapping) and by != "step":
        msg = "a dict names its steps itself: with by, give a list of runs"
        raise ValueError(msg)
    analyses = tuple(_in_steps(runs) if isinstance(runs, Mapping) else _label_steps([*map(_analysed, runs)], grouping))
    factors = tuple(factor for factor in grouping if factor.kind not in CHAIN_KINDS)
    goals = make_goals(better or {}, target)
    sampled = [build_sampled_run(each.recording, each, throughput) for each in analyses]
    found = chain.compare(sampled, goals=goals) if sampled else None
    if found is None or len(found.steps) == 1:
        msg = "a comparison needs at least two steps"
        raise ValueError(msg)
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    return Comparison(**values, analyses=analyses, throughput=throughput, by=factors)


def _in_steps(steps: Mapping[str, Run | Sequence[Run]]) -> Iterator[Analysis]:
    """Yield the runs of each step under its label."""
    for label, runs in steps.items():
        for run in [runs] if isinstance(runs, Recording | Analysis) else runs:
            yield _labelled(_analysed(run), label)


def _label_steps(analyses: Sequence[Analysis], by: Sequence[Factor]) -> list[Analysis]:
    """Return the runs with what `by` names as their step, groups in the order of their values."""
    return [
        analyses[place] if label is None else _labelled(analyses[place], label)
        for place, label in assign_steps([analysis.run for analysis in analyses], by)
    ]


def _analysed(run: Run) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


def _labelled(analysis: Analysis, step: str) -> Analysis:
    run = replace(analysis.run, step=step)
    return replace(analysis, run=run, recording=replace(analysis.recording, run=run))
