"""What a run cost, and what part of that was idle, by stated prices."""

from collections.abc import Sequence

from gpureport.analysis.cost.prices import Prices
from gpureport.analysis.results import Analysis, Cost, CounterReading, GpuPrice, GpuTime

_HOUR, _KWH = 3600, 3.6e6
_MOST_OF_IT = 0.95
"""Share of the run a counter must have been read over to stand for its energy."""


def calculate_cost(analysis: Analysis, prices: Prices) -> Cost | None:
    """Return what the run of an analysis cost, None where neither a price nor a carbon intensity is stated."""
    if not prices.rates and prices.carbon_intensity is None:
        return None
    gpus = prices.price_gpus(analysis.run)
    joules, counted = _sum_energy(analysis)
    known = joules is not None and prices.carbon_intensity is not None
    return Cost(
        currency=prices.currency if prices.rates else "",
        date=prices.date if prices.rates else "",
        gpus=gpus if prices.rates else (),
        total=_sum_prices(analysis.gpu_time, gpus, idle=False),
        idle=_sum_prices(analysis.gpu_time, gpus, idle=True) if _knows_idle_time(analysis) else None,
        carbon_intensity=prices.carbon_intensity,
        carbon_source=prices.carbon_source,
        energy_joules=joules,
        counted=counted,
        carbon_grams=(joules or 0.0) / _KWH * (prices.carbon_intensity or 0.0) if known else None,
    )


def _sum_prices(times: Sequence[GpuTime], gpus: Sequence[GpuPrice], *, idle: bool) -> float | None:
    """Return the price of the time of jobs, or of idle time; None where a GPU has no price or nothing has a length."""
    amounts = {gpu.device: gpu.amount for gpu in gpus}
    total, length = 0.0, 0.0
    for time in times:
        amount = amounts.get(time.device)
        if amount is None:
            return None
        length += time.job_seconds
        counted = sum(seconds for name, seconds in time.seconds if _is_idle(name)) if idle else time.job_seconds
        total += counted / _HOUR * amount
    return total if length > 0 else None


def _knows_idle_time(analysis: Analysis) -> bool:
    known = {each.device for each in analysis.statistics if each.idle_seconds is not None}
    return all(gpu.id in known for gpu in analysis.run.gpus)


def _is_idle(name: str) -> bool:
    """Whether a class of GPU time is idle time amid the work, of whatever cause, or that of a GPU left unused."""
    return name in {"idle", "unused"} or name.startswith("idle_")


def _sum_energy(analysis: Analysis) -> tuple[float | None, bool]:
    """Return the energy of all GPUs in joules, and whether the driver counted all of it."""
    figures = {each.device: each for each in analysis.statistics}
    gpus = [figures.get(gpu.id) for gpu in analysis.run.gpus]
    whole = (analysis.run.ended - analysis.run.started) / 1e6
    # the driver counts on where no job holds a GPU
    counters = [None if each is None or analysis.no_job else each.energy_counter for each in gpus]
    counted = [_read_counter(counter, whole) for counter in counters]
    integrals = [None if each is None else each.energy_joules for each in gpus]
    joules_of_gpus = [one if one is not None else other for one, other in zip(counted, integrals, strict=True)]
    known = [joules for joules in joules_of_gpus if joules is not None]
    if not gpus or len(known) < len(gpus):
        return None, False
    return sum(known), None not in counted


def _read_counter(counter: CounterReading | None, whole: float) -> float | None:
    """Return what a counter rose by, None where part of it is not known or it stands still."""
    if counter is None or counter.restarts or counter.impossible or counter.total <= 0:
        return None
    return counter.total if counter.seconds >= _MOST_OF_IT * whole else None
