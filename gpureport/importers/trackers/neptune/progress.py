"""Training metrics of a run that say how much work was done, and what the others say by their names."""

from collections.abc import Iterator, Sequence

from gpureport.importers.count_text import first
from gpureport.importers.trackers.neptune.content import NO_STEP
from gpureport.importers.trackers.neptune.hardware.process import Process
from gpureport.importers.trackers.tracked_metrics import Metric, work
from gpureport.recording import Work
from gpureport.training_names import recognise_metric

_NAMED = 4


def done(processes: Sequence[Process], wanted: str | None) -> tuple[Work | None, list[str]]:
    """Return what a run accomplished, None where nothing it logged counts it; and what to know of that.

    Args:
        processes: what its processes wrote.
        wanted: name of the metric that counts work, where a person gives it.
    """
    metrics = list(_metrics(processes))
    found = work(metrics, wanted)
    notes = []
    if found is not None:
        notes.append(f"work done, by {found[1]}: {found[0].amount:.0f} {found[0].unit}")
    elif wanted is not None:
        names = first([metric.name for metric in metrics], _NAMED) or "none"
        notes.append(f"no training metric {wanted!r} counts work in this run; it has {names}")
    roles: dict[str, list[str]] = {}
    for name in dict.fromkeys(metric.name for metric in metrics):
        if said := recognise_metric(name):
            roles.setdefault(said.role, []).append(name)
    if roles:
        named = "; ".join(f"{role}: {first(found, _NAMED)}" for role, found in roles.items())
        notes.append(f"training metrics by their names: {named}")
    return None if found is None else found[0], notes


def _metrics(processes: Sequence[Process]) -> Iterator[Metric]:
    for each in processes:
        for path, series in sorted(each.content.series.items()):
            if not each.hardware(path):
                yield Metric(path, series.times, series.steps, series.values, series.steps != NO_STEP)
