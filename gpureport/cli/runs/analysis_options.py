"""What a command on runs was asked for besides the runs, and their analyses by it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.runs import analyses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.cli.options.shared_options import PriceOptions, SourceOptions
    from gpureport.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """Options of the analysis and of the sources.

    Attributes:
        select: kinds to look for, all when none is named.
        ignore: kinds not to look for.
        prices: what the command line says of prices.
        config: the settings file, None for the one of this folder.
        options: what is said of the sources.
    """

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    prices: "PriceOptions"
    config: Path | None
    options: "SourceOptions"

    def analysed(self, found: "Sequence[Recording]", fewest_runs: int = 1) -> analyses.AnalysedRuns:
        """Return runs with their analyses.

        Raises:
            InternalError: when gpureport fails on so many that fewer than `fewest_runs` are left.
        """
        return analyses.analyze_runs(found, self.select, self.ignore, self.config, self.prices, fewest_runs)
