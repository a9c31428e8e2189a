"""What the figures of runs are called: one name each, in every table, tile, chart, sentence and format."""

from collections.abc import Mapping

from gpureport.comparison.figures import (
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
_PLURALS = {"ches": "ch", "shes": "sh", "sses": "ss", "xes": "x", "ies": "y", "ss": "ss", "us": "us", "s": ""}
"""Ends of plurals, and what one ends in: `batches`, `classes`, `entries`; a last `ss` or `us` is no plural."""


def name_one(unit: str) -> str:
    """Return what one of a unit is called, `image` of `images`; the unit itself where it is no plural."""
    ending = next((ending for ending in _PLURALS if unit.endswith(ending)), "")
    return f"{unit.removesuffix(ending)}{_PLURALS[ending]}" if ending else unit


def name_for_one(title: str) -> str:
    """Return a name of a figure per one unit of work: a change of it in per cent is that of a thousand."""
    before, _, unit = title.rpartition(_BATCH)
    noun, _, rest = unit.partition(" ")
    return f"{before}{name_one(noun)}{rest and f' {rest}'}" if before and name_one(noun) != noun else title


def name_figure(metric: str, per: str = "") -> str:
    """Return what a figure is called.

    Args:
        metric: its name in JSON.
        per: the batch of work that it is for; 1,000 units of work when empty.
    """
    return FIGURE_NAMES[metric].format(per=per or per_batch(None))
