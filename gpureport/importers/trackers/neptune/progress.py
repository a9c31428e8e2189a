"""Training metrics of a run that say how much work was done, and what the others say by their names."""

from collections.abc import Iterator, Sequence

from gpureport.importers.count_text import first
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED
from gpureport.importers.trackers.training_metrics import TrainingMetric, measure_work
from gpureport.recording import Work
from gpureport.training_names import recognise_metric

_NAMED = 4


def measure_progress(processes: Sequence[ProcessContent], wanted: str | None) -> tuple[Work | None, list[str]]:
    """Return what a run accomplished, None where nothing it logged counts it; and what to know of that.

    Args:
        processes: what its processes wrote.
        wanted: name of the metric that counts work, where a person gives it.
    """
    metrics = list(_training_metrics(processes))
    found = measure_work(metrics, wanted)
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


def _training_metrics(processes: Sequence[ProcessContent]) -> Iterator[TrainingMetric]:
    for each in processes:
        for path, series in sorted(each.content.series.items()):
            if not each.hardware(path):
                yield TrainingMetric(path, series.times, series.steps, series.values, series.steps != STEP_NOT_RECORDED)
