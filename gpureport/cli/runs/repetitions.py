"""What repetitions in the store differ by."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from gpureport.cli.runs import named_runs, run_sampling
from gpureport.comparison.verdicts.calibration import alike, calibrated

if TYPE_CHECKING:
    from gpureport.cli.options.shared_options import SourceOptions
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.comparison.verdicts.repetition_noise import Noise
    from gpureport.recording import Recording


def measure_noise(
    options: "SourceOptions",
    analysed: "Callable[[Sequence[Recording], int], AnalysedRuns]",
    meant: Collection[tuple[object, ...]] | None = None,
    most: int | None = None,
) -> "Noise":
    """Return what repetitions in the store differ by; its runs are read one after another.

    Args:
        options: name the store, and the training metric that counts work.
        analysed: analyses recordings, of which so many must be left that gpureport does not fail on.
        meant: steps that count, as `alike` names them; all where None.
        most: how many runs at most, the newest; all where None.
    """
    place = named_runs.find_store(options)
    entries = [entry for entry in place.entries() if entry.run.step is not None]
    groups = [alike(entry.run) for entry in entries]
    repeated = [
        entry
        for entry, group in zip(entries, groups, strict=True)
        if groups.count(group) > 1 and (meant is None or group in meant)
    ]
    chosen = repeated if most is None else repeated[-most:]
    key = options.throughput
    runs = [run for entry in chosen for run in run_sampling.sample_runs(analysed([place.read(entry)], 0).runs, key)]
    return calibrated(runs)
