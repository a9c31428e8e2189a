"""What a baseline can hold, as `gpureport baseline set` says at once."""

from typing import TYPE_CHECKING

from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.options.analysis_options import AnalysisOptions
from gpureport.cli.runs import run_sampling
from gpureport.cli.runs.analyses import analyze_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpureport.store.store import Store


def describe_baseline(place: "Store", name: str, throughput: str | None) -> "Iterator[str]":
    """Yield the smallest change that a rule can hold against a baseline.

    Args:
        place: the store.
        name: the baseline.
        throughput: training metric that counts the work, whatever its name.
    """
    from gpureport.checks import baseline_precision  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    try:
        with internal_errors(f"the baseline {name}"):
            runs = analyze_runs(read_baseline(place, name), AnalysisOptions(), fewest_runs=0).runs
            sampled = run_sampling.sample_runs(runs, throughput)
            lines = [*baseline_precision.list_statements(sampled)] if sampled else []
    except InternalError as error:
        report_internal_error(error)
        return
    yield from lines
