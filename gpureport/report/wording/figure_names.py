"""What the figures of runs are called: one name each, in every table, tile, chart, sentence and format."""

from collections.abc import Mapping

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_BATCH,
    WORK_RATE,
)
from gpureport.report.wording.work_scale import name_work

PER_RUN = "a run"
"""What figures without work are for."""

FIGURE_NAMES: Mapping[str, str] = {
    WORK_RATE: "Whole-job throughput",
    TRAINING_RATE: "Training throughput",
    PER_WORK: "GPU time {per}",
    COST_PER_WORK: "Cost {per}",
    SECONDS_TO_TARGET: "Time to target",
    "gpu_seconds": f"GPU time {PER_RUN}",
    ENERGY_PER_WORK: "Energy {per}",
    "energy_joules": f"Energy {PER_RUN}",
    "idle_ratio": "Idle share",
    "gpu_utilization_ratio": "GPU utilisation",
    "gpu_power_watts": "Power of a GPU",
    "gpu_sm_clock_hertz": "SM clock",
    "gpu_graphics_clock_hertz": "Graphics clock",
    "gpu_memory_used_bytes": "Peak memory",
}
"""By metric, in the order of columns; `per` is the batch of work, as `per_batch` names it."""


def per_batch(unit: str | None) -> str:
    """Return the batch that figures per unit of work have in JSON: `per 1,000 images`, or units in general."""
    return f"per {WORK_BATCH:,} {name_work(unit)}"


_BATCH = f"{WORK_BATCH:,} "
_NO_PLAIN_PLURAL = ("ches", "shes", "sses", "xes", "ies", "ss", "us")
"""Ends of units that do not name one of them when the s is left out: `batches`, `classes`, `entries`."""


def name_for_one(title: str) -> str:
    """Return a name of a figure per one unit of work: a change of it in per cent is that of a thousand.

    It stays as it is where one unit cannot be named by leaving out an s.
    """
    before, _, unit = title.rpartition(_BATCH)
    noun, _, rest = unit.partition(" ")
    if not before or not noun.endswith("s") or noun.endswith(_NO_PLAIN_PLURAL):
        return title
    return f"{before}{noun.removesuffix('s')}{rest and f' {rest}'}"


def name_figure(metric: str, per: str = "") -> str:
    """Return what a figure is called.

    Args:
        metric: its name in JSON.
        per: the batch of work that it is for; 1,000 units of work when empty.
    """
    return FIGURE_NAMES[metric].format(per=per or per_batch(None))
