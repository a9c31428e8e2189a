"""Analyses of recordings, as every command that judges makes them, and runs as a comparison takes them."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gpureport.analysis import RULES, analyze
from gpureport.analysis.account import selection
from gpureport.analysis.account.cost import Prices, calculate_cost, read_prices
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.cli.messages import internal_errors, print_note, report_internal_error, show_stage
from gpureport.cli.options import Options
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.comparison.training import TrainingGoals, read_goals
from gpureport.errors import InternalError
from gpureport.recording import Recording, Run
from gpureport.settings import Settings, read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRuns:
    """Runs with their analyses, the rules and kinds they were judged by, what a person says of training metrics.

    `faults` are the recordings that gpureport failed on, with the error of each.
    """

    runs: tuple[tuple[Recording, Analysis], ...]
    rules: tuple[Rule, ...]
    kinds: frozenset[str]
    goals: TrainingGoals
    faults: tuple[tuple[Recording, InternalError], ...] = ()


def read_run_prices(settings: Settings, options: Options) -> Prices:
    """Return the prices of the settings, or those of the command line instead."""
    price = options.gpu_hour_price
    amount, currency = (price.amount, price.currency) if price else (None, "")
    prices = read_prices(settings).with_overrides(amount, options.carbon_intensity, currency)
    if price and not prices.currency:
        print_note(f"gpureport: --gpu-hour-price {price.amount:g} names no currency; write '{price.amount:g} EUR'")
    return prices


def analyze_runs(recordings: Sequence[Recording], options: Options, fewest_runs: int = 1) -> AnalysedRuns:
    """Return every recording with its analysis; on a terminal show progress.

    A recording that gpureport fails on is reported on standard error and left out, unless fewer than `fewest_runs`,
    without which the command can do nothing, are left: then its error is raised.
    """
    kinds = frozenset(selection.select_kinds(RULES, options.select, options.ignore))
    settings = read_settings(options.config)
    rules = selection.apply_settings(RULES, settings)
    for text in selection.list_ignored_settings(RULES, settings):
        print_note(text)
    goals = read_goals(settings).with_overrides(options.better, options.target)
    prices = read_run_prices(settings, options)
    runs: list[tuple[Recording, Analysis]] = []
    faults: list[tuple[Recording, InternalError]] = []
    with show_stage("Analysing") as say:
        for place, recording in enumerate(recordings, 1):
            say(f"Analysing {recording.run.name} ({place} of {len(recordings)})")
            try:
                with internal_errors(describe_run(recording.run)):
                    analysis = selection.keep_kinds(analyze(recording, rules), set(kinds))
                    runs.append((recording, replace(analysis, cost=calculate_cost(analysis, prices))))
            except InternalError as error:
                faults.append((recording, error))
    if faults and len(runs) < fewest_runs:
        raise faults[0][1]
    for _, fault in faults:
        report_internal_error(fault)
    return AnalysedRuns(runs=tuple(runs), rules=rules, kinds=kinds, goals=goals, faults=tuple(faults))


def describe_run(run: Run) -> str:
    """Return what a person knows a run by: its log, else its name."""
    return run.sources[0].locator if len(run.sources) == 1 else run.name


def sample_runs(runs: Sequence[tuple[Recording, Analysis]], key: str | None = None) -> list[SampledRun]:
    """Return runs as a comparison takes them; `key` is the training metric that counts work, whatever its name."""
    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1) or 1) as pool:
        # NumPy lets go of the interpreter while it computes
        return list(pool.map(lambda run: build_sampled_run(run[0], run[1], key), runs))
