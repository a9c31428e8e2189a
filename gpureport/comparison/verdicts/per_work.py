"""What a unit of work took once a run had settled, as its training metrics tell how fast work went."""

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    HOUR,
    PER_WORK,
    TRAINING_RATE,
    WORK_BATCH,
    WORK_RATE,
)

_POWER = "gpu_power_watts"


def compute_per_work(run: SampledRun, metric: str) -> float | None:
    """Return the rate of work, or what WORK_BATCH units of it took; None where training metrics do not tell.

    Args:
        run: the run.
        metric: WORK_RATE, TRAINING_RATE, PER_WORK, COST_PER_WORK or ENERGY_PER_WORK.
    """
    rate = run.rate
    if not rate:
        return None
    seconds = len(run.analysis.run.gpus) * WORK_BATCH / rate
    price, watts = run.gpu_hour_price, _watts(run) if metric == ENERGY_PER_WORK else None
    found = {
        WORK_RATE: rate,
        TRAINING_RATE: rate,
        PER_WORK: seconds,
        COST_PER_WORK: None if price is None else seconds / HOUR * price,
        ENERGY_PER_WORK: None if watts is None else seconds * watts,
    }
    return found[metric]


def _watts(run: SampledRun) -> float | None:
    return run.steady_mean(_POWER, 0.0) if run.steady_seconds(_POWER, 0.0) else None
