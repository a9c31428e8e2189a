"""One call per stage after reading: compare runs, check them against rules, and build the page of results."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from gpureport.api import Analysis, Comparison, analyze, report
from gpureport.checks.baseline_changes import compare_with_baseline
from gpureport.checks.policy_evaluation import CheckInput, evaluate_policy, step_name
from gpureport.checks.policy_settings import read_policy
from gpureport.checks.training_figures import TrainedRun
from gpureport.comparison.steps.sampled_run import SampledRun, build_sampled_run
from gpureport.comparison.training.training_goals import parse_target, read_goals
from gpureport.findings import Check
from gpureport.recording import Recording
from gpureport.report.formats.json import comparison_json
from gpureport.settings import Settings, check_sections, read_settings

TODAY = date(2026, 11, 21)
"""The day on which checks are made, which decides whether an acknowledgement still applies."""


def check(
    rules: str | Sequence[str] | Mapping[str, Any] | Path,
    *runs: Recording | Analysis,
    baseline: Sequence[Recording | Analysis] = (),
    target: str | None = None,
) -> tuple[Check, ...]:
    """Return what each rule gives for each run, in the order of the rules.

    Args:
        rules: rules as `--fail-on` takes them, or a `gpureport.toml` with `[[policy]]`, or its content.
        runs: the runs to check, those of one step label as repetitions; what an analysis ignored was not looked for.
        baseline: runs that changes are measured from; rules on changes are not assessed without it.
        target: value that a training metric is to reach, such as `"val_accuracy=0.78"`.

    Raises:
        SettingsError: when a rule or a setting is not valid.
    """
    limits: Sequence[str] = ()
    if isinstance(rules, Path):
        stated = read_settings(rules)
    elif isinstance(rules, Mapping):
        stated = check_sections(Settings(file="gpureport.toml", content=dict(rules)))
    else:
        stated, limits = Settings(), [rules] if isinstance(rules, str) else rules
    goals = read_goals(stated).with_overrides((), None if target is None else parse_target(target))
    analyses = [*map(_analysed, runs)]
    checked, before = [*map(_sampled, analyses)], [_sampled(_analysed(run)) for run in baseline]
    steps: dict[str, list[SampledRun]] = {}
    for run in checked:
        steps.setdefault(step_name(run.analysis), []).append(run)
    return evaluate_policy(
        read_policy(stated).with_limits(limits),
        CheckInput(
            analyses=tuple(run.analysis for run in checked),
            selected_kinds=frozenset(kind for analysis in analyses for kind in analysis.kinds),
            today=TODAY,
            comparisons={
                label: compare_with_baseline(before, step, None, goals) for label, step in steps.items() if before
            },
            training={run.analysis.run.id: TrainedRun(run=run, goals=goals) for run in checked},
        ),
    )


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as `gpureport compare --format json` prints it: gains, groups, study, findings and all."""
    document: dict[str, Any] = json.loads(comparison_json.render(comparison, comparison.by))
    return document


def _analysed(run: Recording | Analysis) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


def _sampled(analysis: Analysis) -> SampledRun:
    return build_sampled_run(analysis.recording, analysis)


def build_page(
    results: Recording | Analysis | Comparison | Sequence[Recording | Analysis], form: str = "txt", title: str = ""
) -> str:
    """Return the page of one run, of several as steps, or of a comparison.

    Args:
        results: what the page shows; recordings are analysed first.
        form: `txt` (a terminal), `md`, `html` or `json`.
        title: title of the page; the names of the runs when empty.
    """
    return report(results, format=form, title=title or None)
