"""Checks of analysed runs against the limits of the settings and the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options import night_date
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpureport.checks.policy import Policy
    from gpureport.cli.results.gate import AgainstBaseline
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.findings import Check

_NO_BASELINE_HERE = "gpureport check and nightly compare with a baseline"
"""Why a command without a baseline judges none."""


def read_policy(config: Path | None, limits: tuple[str, ...]) -> "Policy":
    """Return what the settings and the command line limit.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    from gpureport.checks.policy import read_policy  # noqa: PLC0415 - loads numpy
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    return read_policy(read_settings(config)).with_limits(limits)


def check_limits(
    wanted: "Policy",
    analysed: "AnalysedRuns",
    against: "AgainstBaseline | None" = None,
    *,
    throughput: str | None = None,
) -> "tuple[Check, ...]":
    """Return the check of every limit of a policy.

    Args:
        wanted: the policy.
        analysed: the runs.
        against: the steps set against their baseline, or why there is none; None for a command without.
        throughput: training metric that counts the work, whatever its name.
    """
    from gpureport.checks.observed_value import Why  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy_evaluation import NO_BASELINE_NAMED, CheckInput  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy_evaluation import evaluate_policy as checked  # noqa: PLC0415 - as above
    from gpureport.checks.training_figures import TrainedRun, read_training  # noqa: PLC0415 - as above

    why = Why(NO_BASELINE_NAMED.code, _NO_BASELINE_HERE) if against is None else NO_BASELINE_NAMED
    if against and against.reason:
        why = Why(against.code, against.reason)
    trained = [read_training(recording, analysis, throughput) for recording, analysis in analysed.runs]
    checked_runs = CheckInput(
        analyses=tuple(run.analysis for run in trained),
        selected_kinds=analysed.kinds,
        today=night_date.today(),
        comparisons=against.steps if against else {},
        why_no_baseline=why,
        training={run.analysis.run.id: TrainedRun(run=run, goals=analysed.goals) for run in trained},
    )
    return checked(wanted, checked_runs)


def read_policy_without_baseline(config: Path | None, limits: tuple[str, ...]) -> "Policy":
    """Return the policy for a command without a baseline.

    Raises:
        SettingsError: as `read_policy` does, and when a limit of the command line needs a baseline.
    """
    from gpureport.checks.policy import Policy  # noqa: PLC0415 - loads numpy

    if Policy().with_limits(limits).needs_baseline:
        raise SettingsError(
            "--fail-on", "a change needs a baseline", "use gpureport check --baseline NAME", code="no_baseline"
        )
    return read_policy(config, limits)


def report_failed_limits(found: "Collection[Check]") -> int:
    """Say which rules of the command line are broken or not assessed; return 1 for a broken one."""
    from gpureport.checks import check_wording  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy import OPTION  # noqa: PLC0415 - as above

    typed = [check for check in found if check.origin == OPTION]
    failures = list(check_wording.describe_failures(typed))
    lines = [f"{check_wording.FAILED}: {clause}" for clause in failures]
    lines += [f"{check_wording.NOT_ASSESSED}: {clause}" for clause in check_wording.describe_unassessed(typed)]
    for line in lines:
        click.echo(f"gpureport: {make_printable(line)}", err=True)
    return int(bool(failures))
