"""Runs to hold rules against, and the only check of a rule."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpureport import Analysis
from gpureport.testing import Check, Work, check
from tests.statistics.runs import level, made

PASSED, BROKEN, CANNOT = "passed", "broken", "cannot judge"


def one(rules: Any, *runs: Analysis, **more: Any) -> Check:
    (found,) = check(rules, *runs, **more)
    return found


def told(found: Check) -> tuple[str, str]:
    return found.outcome.value, found.reason_code


def night(name: str, mean: float, count: int = 1800, seed: int = 0, **more: Any) -> Analysis:
    return made(name, util=level(mean, count, seed), power=200.0, **more)


def worked(name: str, seconds: float, amount: int = 600, step: str | None = None, every: float = 0.1) -> Analysis:
    """Return a run that took so long for its steps, sampled ten times a second."""
    util = level(95, round(seconds / every), 1)
    return made(name, step=step, util=util, every=every, work=Work(amount=amount, unit="steps"))


def of_step(runs: Sequence[Analysis], step: str = "nightly") -> list[Analysis]:
    return [replace(run, run=replace(run.run, step=step)) for run in runs]
