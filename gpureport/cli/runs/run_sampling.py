"""Runs as a comparison takes them, several at a time."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.analysis.results import Analysis
    from gpureport.comparison.run import SampledRun
    from gpureport.recording import Recording


def sample_runs(runs: "Sequence[tuple[Recording, Analysis]]", key: str | None = None) -> "list[SampledRun]":
    """Return runs as a comparison takes them.

    Args:
        runs: recordings with their analyses.
        key: training metric that counts work, whatever its name.
    """
    from gpureport.comparison.run import build_sampled_run  # noqa: PLC0415 - loads numpy

    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1) or 1) as pool:
        # NumPy lets go of the interpreter while it computes
        return list(pool.map(lambda run: build_sampled_run(run[0], run[1], key), runs))
