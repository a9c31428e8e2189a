"""Analyses of recordings, as every command that judges makes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpureport.cli.messages.internal_errors import InternalError, report_internal_error
from gpureport.cli.messages.progress import show_stage
from gpureport.cli.messages.verbosity import print_note
from gpureport.comparison.training import NO_GOALS, TrainingGoals, read_goals

if TYPE_CHECKING:
    from gpureport.analysis.account.cost import Prices
    from gpureport.analysis.results import Analysis
    from gpureport.analysis.rulebook import Rule
    from gpureport.cli.options.analysis_options import AnalysisOptions
    from gpureport.cli.options.option_values import GpuHourPrice
    from gpureport.recording import Recording
    from gpureport.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRuns:
    """Runs with their analyses.

    Attributes:
        runs: those that could be served.
        rules: the rules they were judged by.
        kinds: the selected kinds.
        goals: what a person says of training metrics.
        faults: recordings that gpureport failed on, with the error of each.
    """

    runs: tuple[tuple["Recording", "Analysis"], ...]
    rules: tuple["Rule", ...]
    kinds: frozenset[str]
    goals: TrainingGoals = NO_GOALS
    faults: tuple[tuple["Recording", InternalError], ...] = ()


def read_run_prices(
    settings: "Settings", price: "GpuHourPrice | None", carbon_intensity: float | None = None
) -> "Prices":
    """Return the prices of the settings, or those of the command line instead."""
    from gpureport.analysis.account.cost import read_prices  # noqa: PLC0415 - loads numpy and pyarrow

    amount, currency = (price.amount, price.currency) if price else (None, "")
    return read_prices(settings).with_overrides(amount, carbon_intensity, currency)


def analyze_runs(recordings: Sequence["Recording"], options: "AnalysisOptions", fewest_runs: int = 1) -> AnalysedRuns:
    """Return every recording with its analysis; on a terminal show progress.

    A recording that gpureport fails on is reported on standard error and left out.

    Args:
        recordings: the recordings.
        options: what to look for, at which prices.
        fewest_runs: runs without which the command can do nothing.

    Raises:
        InternalError: when gpureport fails on so many that fewer are left.
    """
    from gpureport.analysis import RULES  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.analysis.account.selection import apply_settings, list_ignored_settings, select_kinds  # noqa: PLC0415 - as above
    from gpureport.cli.runs.run_analyzer import RunAnalyzer  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    kinds = select_kinds(RULES, options.select, options.ignore)
    settings = read_settings(options.config)
    rules = apply_settings(RULES, settings)
    for text in list_ignored_settings(RULES, settings):
        print_note(text)
    goals = read_goals(settings).with_overrides(options.better, options.target)
    prices = read_run_prices(settings, options.gpu_hour_price, options.carbon_intensity)
    analyzer = RunAnalyzer(rules=rules, kinds=frozenset(kinds), prices=prices)
    results = []
    with show_stage("Analysing") as stage:
        for place, recording in enumerate(recordings, 1):
            stage.update(f"Analysing {recording.run.name} ({place} of {len(recordings)})")
            results.append((recording, analyzer.try_analysis(recording)))
    runs = tuple((recording, result) for recording, result in results if not isinstance(result, InternalError))
    faults = tuple((recording, result) for recording, result in results if isinstance(result, InternalError))
    if faults and len(runs) < fewest_runs:
        raise faults[0][1]
    for _, fault in faults:
        report_internal_error(fault)
    return AnalysedRuns(runs=runs, rules=rules, kinds=analyzer.kinds, goals=goals, faults=faults)
