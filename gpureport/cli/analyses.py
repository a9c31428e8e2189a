"""Analyses of recordings, as every command that judges makes them."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpureport.analysis.base import Analysis, Rule
    from gpureport.cli.options import PriceOptions
    from gpureport.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """Runs with their analyses, the rules they were judged by, and the kinds that were asked for."""

    runs: tuple[tuple["Recording", "Analysis"], ...]
    rules: tuple["Rule", ...]
    kinds: frozenset[str]


def analysed(
    found: Sequence["Recording"],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    config: Path | None,
    prices: "PriceOptions | None" = None,
) -> Analysed:
    """Return every recording with its analysis, showing progress when it takes long on a terminal.

    Args:
        found: the recordings.
        select: kinds to look for, all when none is named.
        ignore: kinds not to look for.
        config: the settings file, None for the one of this folder.
        prices: what the command line says of prices; None where cost is not asked for.
    """
    from gpureport.analysis import RULES, analyze  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.analysis.cost import cost  # noqa: PLC0415 - as above
    from gpureport.analysis.prices import Prices, stated  # noqa: PLC0415 - as above
    from gpureport.analysis.selection import check, configured, narrowed  # noqa: PLC0415 - as above
    from gpureport.settings import read  # noqa: PLC0415 - only here

    kinds = check(RULES, select, ignore)
    settings = read(config)
    rules = configured(RULES, settings)
    said = stated(settings).given(prices.gpu_hour_price, prices.carbon_intensity) if prices else Prices()

    def judged(recording: "Recording") -> "Analysis":
        analysis = narrowed(analyze(recording, rules), kinds)
        return replace(analysis, cost=cost(analysis, said))

    with ThreadPoolExecutor(min(len(found), os.cpu_count() or 1) or 1) as pool:
        # NumPy lets go of the interpreter while it computes, so that runs are analysed side by side
        analyses = pool.map(judged, found)
        with click.progressbar(
            zip(found, analyses, strict=True),
            length=len(found),
            label="Analysing",
            file=sys.stderr,
            hidden=not _long(found),
        ) as bar:
            return Analysed(runs=tuple(bar), rules=rules, kinds=frozenset(kinds))


def _long(found: Sequence["Recording"]) -> bool:
    """Return whether the work takes over a second, on a terminal."""
    rows_a_second = 3_000_000
    return sys.stderr.isatty() and sum(len(recording.series) for recording in found) > rows_a_second
