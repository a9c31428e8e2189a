"""By how much repetitions in the store differ."""

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from gpureport.cli.runs import run_sampling
from gpureport.cli.runs.analyses import analyze_runs
from gpureport.cli.sources import source_names
from gpureport.comparison.verdicts.calibration import measure_store_noise, repetition_key

if TYPE_CHECKING:
    from gpureport.cli.options.analysis_options import AnalysisOptions
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.comparison.verdicts.repetition_noise import Noise
    from gpureport.store import Entry, Store


def measure_noise(
    options: "SourceOptions",
    analysis: "AnalysisOptions",
    steps: Collection[tuple[object, ...]],
    newest: int,
    without: Collection[str],
) -> "Noise":
    """Return by how much repetitions in the store differ. One run is read after another.

    Args:
        options: name the store, and the training metric that counts work.
        analysis: how runs are analysed. One that gpureport fails on is left out.
        steps: steps to read, as `repetition_key` names them.
        newest: how many runs to read at most.
        without: ids of runs that are compared: what they differ by is no noise.
    """
    place = source_names.find_store(options)
    chosen = [entry for entry in _find_repeated(place, without) if repetition_key(entry.run) in steps][-newest:]
    key = options.tracker.throughput
    analysed = (analyze_runs([place.read(entry)], analysis, fewest_runs=0) for entry in chosen)
    return measure_store_noise([run for each in analysed for run in run_sampling.sample_runs(each.runs, key)])


def _find_repeated(place: "Store", without: Collection[str]) -> "list[Entry]":
    """Return the runs that repeat another of the store, oldest first; only what the index finds alike is read."""
    indexed = [run for run in place.index().runs if run.step is not None and run.id not in without]
    settings = [(run.step, tuple(sorted(run.params)), run.models) for run in indexed]
    alike = Counter(settings)
    likely = [run.id for run, key in zip(indexed, settings, strict=True) if alike[key] > 1]
    entries = [entry for run_id in likely if (entry := place.get(run_id)) is not None]
    groups = Counter(repetition_key(entry.run) for entry in entries)
    return [entry for entry in entries if groups[repetition_key(entry.run)] > 1]
