"""What a run holds besides hardware series: params, tags, the nodes of its processes, training metrics."""

from collections.abc import Iterator, Sequence

from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune.run_content import RunContent
from gpureport.importers.trackers.neptune_hardware.namespaces import Namespace
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, STEP_UNITS
from gpureport.importers.trackers.neptune_hardware.process_samples import DeviceRows
from gpureport.importers.trackers.training_metrics import TrainingMetric

_OWN_PREFIXES = ("sys/", "source_code/")
_INTEGRATIONS = "source_code/integrations/"
"""Where Neptune's integrations put their version; their names tell the framework."""
_PROCESS_FIELDS = {"hostname", "pid", "tid", "traceback"}
_TAG_VALUE = "true"


def collect_params(processes: Sequence[ProcessContent]) -> dict[str, str]:
    """Return the params of a run: its single values without those of Neptune and of its processes.

    Times are left out: they differ between any two runs and explain no difference.
    """
    found: dict[str, str] = {}
    for each in processes:
        inside = tuple(f"{space.path}/" for space in each.every)
        found |= {
            path: str(value).lower() if isinstance(value, bool) else str(value)
            for path, value in sorted(each.content.scalars.items())
            if path.startswith(_INTEGRATIONS)
            or (not path.startswith((*_OWN_PREFIXES, "monitoring/")) and not _describes_process(path, inside))
        }
    return found


def _describes_process(path: str, inside: tuple[str, ...]) -> bool:
    rest = next((path[len(start) :] for start in inside if path.startswith(start)), "")
    return rest in _PROCESS_FIELDS or rest.startswith("details/")


def collect_tags(processes: Sequence[ProcessContent]) -> dict[str, str]:
    """Return the tags of a run, whose value is `true`: in Neptune a tag is a word; and its user, project and nodes."""
    contents = [each.content for each in processes]
    tags = dict.fromkeys((tag for each in contents for tag in each.tags), _TAG_VALUE)
    labels = {
        "user": [str(each.scalars.get("sys/owner") or "") for each in contents],
        "project": [each.outline.project for each in contents],
        "node": [find_node(each.content, space) for each in processes for space in each.spaces],
    }
    return tags | {
        name: ", ".join(dict.fromkeys(filter(None, values))) for name, values in labels.items() if any(values)
    }


def find_node(content: RunContent, space: Namespace) -> str:
    """Return the name of the machine a process ran on; empty if not recorded."""
    for path in (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname"):
        if isinstance(said := content.scalars.get(path), str) and said:
            return said
    return ""


def find_gpu_model(contents: Sequence[RunContent], blocks: Sequence[DeviceRows], gpu: int) -> str | None:
    """Return the model of a GPU, which only the recipe records."""
    paths = dict.fromkeys(f"{block.namespace}/details/gpu/{gpu}/name" for block in blocks)
    found = (each.scalars.get(path) for each in contents for path in paths)
    return next((name for name in found if isinstance(name, str)), None)


def training_metrics(processes: Sequence[ProcessContent]) -> Iterator[TrainingMetric]:
    """Yield every series of numbers that is not a hardware series; a fractional step counts as not recorded."""
    for process in processes:
        for path, series in sorted(process.content.series.items()):
            if not process.hardware(path):
                steps = series.steps // STEP_UNITS
                known = (steps * STEP_UNITS == series.steps) & (series.steps != STEP_NOT_RECORDED)
                yield TrainingMetric(path, series.times, steps, series.values, known)
