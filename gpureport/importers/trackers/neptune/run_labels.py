"""What a run says beside its series: what it was configured with, how it was labelled, and where its processes ran."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune.run_content import RunContent, Scalar
from gpureport.importers.trackers.neptune_hardware.namespaces import Namespace
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, STEP_UNITS
from gpureport.importers.trackers.neptune_hardware.process_samples import DeviceRows
from gpureport.recording import TRAINING_SCHEMA, empty_training

_OWN_PREFIXES = ("sys/", "source_code/")
_PROCESS_FIELDS = {"hostname", "pid", "tid", "traceback"}
_TAG_VALUE = "true"


def collect_params(processes: Sequence[ProcessContent]) -> dict[str, str]:
    """Return what a run was configured with: single values that are neither Neptune's own nor a process's.

    Times are left out: no two runs share one, and none explains a difference.
    """
    found: dict[str, str] = {}
    for each in processes:
        inside = tuple(f"{space.path}/" for space in each.every)
        found |= {
            path: _format_scalar(value)
            for path, value in sorted(each.content.scalars.items())
            if not path.startswith((*_OWN_PREFIXES, "monitoring/")) and not _describes_process(path, inside)
        }
    return found


def _describes_process(path: str, inside: tuple[str, ...]) -> bool:
    rest = next((path[len(start) :] for start in inside if path.startswith(start)), "")
    return rest in _PROCESS_FIELDS or rest.startswith("details/")


def _format_scalar(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def collect_tags(contents: Sequence[RunContent]) -> dict[str, str]:
    """Return the tags of a run; Neptune's are words without a value."""
    return dict.fromkeys((tag for each in contents for tag in each.tags), _TAG_VALUE)


def find_node(content: RunContent, space: Namespace) -> str:
    """Return the name of the machine a process ran on, empty where not recorded."""
    for path in (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname"):
        if isinstance(said := content.scalars.get(path), str) and said:
            return said
    return ""


def find_gpu_model(contents: Sequence[RunContent], blocks: Sequence[DeviceRows], gpu: int) -> str | None:
    """Return the marketing name of a GPU, which only the recipe records."""
    paths = dict.fromkeys(f"{block.namespace}/details/gpu/{gpu}/name" for block in blocks)
    found = (each.scalars.get(path) for each in contents for path in paths)
    return next((name for name in found if isinstance(name, str)), None)


def _whole_steps(steps: columns.IntArray) -> "pa.Array[Any]":
    """Return steps as whole numbers, null where there is none or it is a fraction."""
    whole = steps // STEP_UNITS
    known = whole * STEP_UNITS == steps
    known &= steps != STEP_NOT_RECORDED
    return columns.array(whole, pa.int64(), known)


def build_training_table(processes: Sequence[ProcessContent], span: tuple[int, int] | None) -> "pa.Table":
    """Return every series of numbers that says nothing of hardware, in the order of time.

    Args:
        processes: what processes wrote.
        span: the time to keep, in microseconds; all when None.
    """
    found = [
        (path, series)
        for each in processes
        for path, series in sorted(each.content.series.items())
        if not each.hardware(path)
    ]
    if not found:
        return empty_training()
    names = list(dict.fromkeys(path for path, _ in found))
    times = np.concatenate([each.times for _, each in found])
    order = np.argsort(times, kind="stable")
    if span is not None:
        order = order[(times[order] >= span[0]) & (times[order] <= span[1])]
    stamps = columns.array(times[order], pa.timestamp("us"))
    del times
    codes = np.concatenate([np.full(len(each.times), names.index(path), dtype=np.int32) for path, each in found])
    named = columns.categories(codes[order], names)
    steps = np.concatenate([each.steps for _, each in found])[order]
    counted = _whole_steps(steps)
    values = columns.array_with_nulls(np.concatenate([each.values for _, each in found])[order], pa.float64())
    arrays = [stamps, counted, named, values]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)
