"""The runs that lost most GPU time, and in how few of them half of it was lost."""

from collections import defaultdict
from collections.abc import Sequence

from gpureport.analysis.results import sum_seconds_by_class
from gpureport.comparison.gains import measure_excessive_short_pauses
from gpureport.fleet.fleet_report import RunName, RunUse
from gpureport.fleet.totals.label_groups import read_label
from gpureport.fleet.totals.priced_gpu import PricedGpu, find_largest_loss, sum_use

_MOST_RUNS = 20
"""Runs that are listed."""


def group_by_run(gpus: Sequence[PricedGpu]) -> dict[str, list[PricedGpu]]:
    """Return the GPUs of each run by its id."""
    runs: defaultdict[str, list[PricedGpu]] = defaultdict(list)
    for gpu in gpus:
        runs[gpu.summary.run_id].append(gpu)
    return dict(runs)


def rank_runs(gpus: Sequence[PricedGpu]) -> list[list[PricedGpu]]:
    """Return the GPUs of each run that lost time, the run that lost most first."""
    lost = [(sum(gpu.lost_seconds for gpu in own), run, own) for run, own in group_by_run(gpus).items()]
    return [own for amount, _, own in sorted(lost, key=lambda each: (-each[0], each[1])) if amount > 0]


def list_worst_runs(ranked: Sequence[Sequence[PricedGpu]]) -> tuple[RunUse, ...]:
    """Return the runs that lost most, the worst first."""
    return tuple(
        RunUse(
            run=own[0].run,
            user=read_label(own[0].summary, "user"),
            use=sum_use(own),
            largest_loss=find_largest_loss(own),
            is_lower_bound=_measure_long_pauses(own) > 0,
        )
        for own in ranked[:_MOST_RUNS]
    )


def list_pausing_runs(gpus: Sequence[PricedGpu]) -> tuple[RunName, ...]:
    """Return the runs with over 30% of short pauses, those with the longest first."""
    found = [(_measure_long_pauses(own), run, own[0].run) for run, own in group_by_run(gpus).items()]
    ordered = sorted((each for each in found if each[0] > 0), key=lambda each: (-each[0], each[1]))
    return tuple(name for _, _, name in ordered[:_MOST_RUNS])


def _measure_long_pauses(gpus: Sequence[PricedGpu]) -> float:
    """Return the GPU-seconds of short pauses of one run; 0 up to 30% of the time."""
    seconds = sum_seconds_by_class(gpu.summary.seconds for gpu in gpus)
    return 0.0 if measure_excessive_short_pauses(seconds) is None else seconds["short_pauses"]


def find_half_of_loss(ranked: Sequence[Sequence[PricedGpu]]) -> tuple[int, str | None]:
    """Return the fewest runs with half of the time lost, and the class they lost most in."""
    whole = sum(gpu.lost_seconds for own in ranked for gpu in own)
    counted, lost = 0, 0.0
    for own in ranked:
        counted, lost = counted + 1, lost + sum(gpu.lost_seconds for gpu in own)
        if lost >= whole / 2:
            break
    largest = find_largest_loss([gpu for own in ranked[:counted] for gpu in own])
    return counted, largest.name if largest else None
