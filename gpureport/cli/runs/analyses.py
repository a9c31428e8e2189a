"""Analyses of recordings, as every command that judges makes them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.internal_errors import InternalError, report_internal_error
from gpureport.cli.messages.verbosity import print_note

if TYPE_CHECKING:
    from gpureport.analysis.results import Analysis
    from gpureport.analysis.rules.rule import Rule
    from gpureport.cli.options.shared_options import PriceOptions
    from gpureport.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRuns:
    """Runs with their analyses.

    Attributes:
        runs: those that could be served.
        rules: the rules they were judged by.
        kinds: the kinds that were asked for.
        faults: recordings that gpureport failed on, with the error of each.
    """

    runs: tuple[tuple["Recording", "Analysis"], ...]
    rules: tuple["Rule", ...]
    kinds: frozenset[str]
    faults: tuple[tuple["Recording", InternalError], ...] = ()


def analyze_runs(  # noqa: PLR0913, PLR0917 - what the command line says of it
    found: Sequence["Recording"],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    config: Path | None,
    prices: "PriceOptions | None" = None,
    fewest_runs: int = 1,
) -> AnalysedRuns:
    """Return every recording with its analysis, showing progress when it takes long on a terminal.

    Each that gpureport fails on is told on standard error and left out.

    Args:
        found: the recordings.
        select: kinds to look for, all when none is named.
        ignore: kinds not to look for.
        config: the settings file, None for the one of this folder.
        prices: what the command line says of prices; None where cost is not asked for.
        fewest_runs: runs without which the command can do nothing.

    Raises:
        InternalError: when gpureport fails on so many that fewer are left.
    """
    from gpureport.analysis import RULES  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.analysis.cost.prices import Prices, read_prices  # noqa: PLC0415 - as above
    from gpureport.analysis.engine.selection import apply_settings, list_ignored_settings, select_kinds  # noqa: PLC0415 - as above
    from gpureport.cli.runs.run_analyzer import RunAnalyzer  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    kinds = select_kinds(RULES, select, ignore)
    settings = read_settings(config)
    rules = apply_settings(RULES, settings)
    for text in list_ignored_settings(RULES, settings):
        print_note(text)
    said = read_prices(settings).given(prices.gpu_hour_price, prices.carbon_intensity) if prices else Prices()
    judge = RunAnalyzer(rules=rules, kinds=frozenset(kinds), prices=said)
    with click.progressbar(found, label="Analysing", file=sys.stderr, hidden=not _long(found)) as bar:
        made = [(recording, judge.try_analysis(recording)) for recording in bar]
    runs = tuple((recording, one) for recording, one in made if not isinstance(one, InternalError))
    faults = tuple((recording, one) for recording, one in made if isinstance(one, InternalError))
    if faults and len(runs) < fewest_runs:
        raise faults[0][1]
    for _, one in faults:
        report_internal_error(one)
    return AnalysedRuns(runs=runs, rules=rules, kinds=judge.kinds, faults=faults)


def _long(found: Sequence["Recording"]) -> bool:
    """Return whether the work takes over a second, on a terminal."""
    rows_a_second = 3_000_000
    return sys.stderr.isatty() and sum(len(recording.series) for recording in found) > rows_a_second
