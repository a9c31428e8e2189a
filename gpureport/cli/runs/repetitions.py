"""By how much repetitions in the store differ."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from gpureport.cli.runs import run_sampling, source_names
from gpureport.cli.runs.analyses import analyze_runs
from gpureport.comparison.verdicts.calibration import measure_store_noise, repetition_key

if TYPE_CHECKING:
    from gpureport.cli.options.analysis_options import AnalysisOptions
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.comparison.verdicts.repetition_noise import Noise


def measure_noise(
    options: "SourceOptions",
    analysis: "AnalysisOptions",
    steps: Collection[tuple[object, ...]] | None = None,
    newest: int | None = None,
    without: Collection[str] = (),
) -> "Noise":
    """Return by how much repetitions in the store differ. One run is read after another.

    Args:
        options: name the store, and the training metric that counts work.
        analysis: how runs are analysed. One that gpureport fails on is left out.
        steps: steps to read, as `alike` names them; all when None.
        newest: how many runs to read at most; all when None.
        without: ids of runs that are compared: what they differ by is no noise.
    """
    place = source_names.find_store(options)
    entries = [entry for entry in place.entries() if entry.run.step is not None and entry.run.id not in without]
    groups = [repetition_key(entry.run) for entry in entries]
    repeated = [
        entry
        for entry, group in zip(entries, groups, strict=True)
        if groups.count(group) > 1 and (steps is None or group in steps)
    ]
    chosen = repeated if newest is None else repeated[-newest:]
    key = options.tracker.throughput
    analysed = (analyze_runs([place.read(entry)], analysis, fewest_runs=0) for entry in chosen)
    return measure_store_noise([run for each in analysed for run in run_sampling.sample_runs(each.runs, key)])
