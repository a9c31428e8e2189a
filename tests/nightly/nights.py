"""Runs and policies by hand, for tests of gates."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from gpureport import settings
from gpureport.analysis import RULES
from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices, Rate
from gpureport.checks.baseline_changes import compare_with_baseline
from gpureport.checks.policy import Policy
from gpureport.checks.policy_evaluation import CheckInput, evaluate_policy, step_name
from gpureport.checks.policy_settings import read_policy
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.verdicts.repetition_noise import Noise
from gpureport.testing import Analysis, Check, Recording, analyze

TODAY = date(2026, 11, 21)
KINDS = frozenset(kind for rule in RULES for kind in rule.kinds)


def policy(folder: Path, text: str) -> Policy:
    """Return the policy a settings file of this text states."""
    path = folder / "gpureport.toml"
    path.write_text(text, encoding="utf-8")
    return read_policy(settings.read_settings(path))


def priced(recording: Recording, gpu_hour: float = 3600.0) -> Analysis:
    """Return an analysis with a price in EUR."""
    analysis = analyze(recording)
    prices = Prices(currency="EUR", rates=(Rate(amount=gpu_hour, source="here"),), carbon_intensity=360.0)
    return Analysis(
        **{name: getattr(analysis, name) for name in Analysis.__slots__} | {"cost": calculate_cost(analysis, prices)}
    )


def judged(limits: Policy | str, *analyses: Analysis, asked: frozenset[str] = KINDS) -> tuple[Check, ...]:
    """Return the checks of a policy, or of one limit."""
    wanted = Policy().with_limits([limits]) if isinstance(limits, str) else limits
    return evaluate_policy(wanted, CheckInput(analyses=analyses, selected_kinds=asked, today=TODAY))


def changed(
    limits: Policy | str, before: Sequence[SampledRun], after: Sequence[SampledRun], noise: Noise | None = None
) -> tuple[Check, ...]:
    """Return the checks of runs of one step against a baseline."""
    wanted = Policy().with_limits([limits]) if isinstance(limits, str) else limits
    analyses = tuple(run.analysis for run in after)
    found = {step_name(after[0].analysis): compare_with_baseline(before, after, noise)}
    return evaluate_policy(wanted, CheckInput(analyses=analyses, selected_kinds=KINDS, today=TODAY, comparisons=found))
