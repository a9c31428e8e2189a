"""A summary with the price of its GPU, and the sums over many of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum

from gpureport.analysis.account.cost import Prices
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES
from gpureport.fleet.fleet_report import ClassTime, RunName, TimeUse
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.recording import Device

HOUR = 3600
_PRICED_BY = ("provider", "instance", "spot")
"""Labels that prices depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedGpu:
    """One run on one GPU with its sums.

    Attributes:
        summary: the run on the GPU.
        price: of an hour of the GPU; None where none is stated.
        gpu_seconds: time of jobs.
        lost_seconds: the part of it that was lost.
    """

    summary: GpuSummary
    price: float | None
    gpu_seconds: float
    lost_seconds: float

    @property
    def run(self) -> RunName:
        """Its run."""
        return RunName(id=self.summary.run_id, name=self.summary.run_name, source=self.summary.source)

    def price_seconds(self, seconds: float) -> float | None:
        """Return what some time of the GPU cost; None without a price."""
        return None if self.price is None else self.price * seconds / HOUR


def price_summaries(summaries: Iterable[GpuSummary], prices: Prices) -> list[PricedGpu]:
    """Return the summaries with a GPU, in their order, with their prices."""

    @cache
    def find_price(model: str | None, labels: tuple[tuple[str, str], ...]) -> float | None:
        return prices.price_gpu(Device(id="", index=0, model=model), dict(labels)).amount

    priced = []
    for summary in summaries:
        if summary.device is None or summary.error:
            continue
        labels = tuple(pair for pair in (*summary.params, *summary.tags) if pair[0] in _PRICED_BY)
        priced.append(
            PricedGpu(
                summary=summary,
                price=find_price(summary.model, labels),
                gpu_seconds=summary.job_seconds,
                lost_seconds=summary.lost_seconds,
            )
        )
    return priced


def sum_use(gpus: Sequence[PricedGpu]) -> TimeUse:
    """Return what some runs did with their GPUs."""
    return TimeUse(
        runs=len({gpu.summary.run_id for gpu in gpus}),
        gpu_seconds=fsum(gpu.gpu_seconds for gpu in gpus),
        lost_gpu_seconds=fsum(gpu.lost_seconds for gpu in gpus),
        unknown_gpu_seconds=fsum(gpu.summary.unknown_seconds for gpu in gpus),
        no_job_gpu_seconds=fsum(dict(gpu.summary.seconds).get("no_job", 0.0) for gpu in gpus),
        cost=sum_cost(gpus, lambda gpu: gpu.gpu_seconds),
        lost_cost=sum_cost(gpus, lambda gpu: gpu.lost_seconds),
    )


def sum_cost(gpus: Iterable[PricedGpu], seconds: Callable[[PricedGpu], float]) -> float | None:
    """Return what some time of each GPU cost together; None where a GPU with such time has no price."""
    amounts = [gpu.price_seconds(length) for gpu in gpus if (length := seconds(gpu)) > 0]
    known = [amount for amount in amounts if amount is not None]
    return fsum(known) if known and len(known) == len(amounts) else None


def sum_classes(gpus: Sequence[PricedGpu]) -> tuple[ClassTime, ...]:
    """Return GPU time by class, in the order of GPU_TIME_CLASSES; those without time are left out."""
    amounts: defaultdict[str, list[float]] = defaultdict(list)
    costs: defaultdict[str, list[float | None]] = defaultdict(list)
    for gpu in gpus:
        for name, seconds in gpu.summary.seconds:
            if seconds > 0:
                amounts[name].append(seconds)
                costs[name].append(gpu.price_seconds(seconds))
    return tuple(
        ClassTime(name=name, gpu_seconds=fsum(amounts[name]), cost=_sum_known(costs[name]))
        for name in GPU_TIME_CLASSES
        if name in amounts
    )


def _sum_known(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if len(known) == len(costs) else None


def find_largest_loss(gpus: Sequence[PricedGpu]) -> ClassTime | None:
    """Return the lost class with most time; None where nothing was lost."""
    lost = [each for each in sum_classes(gpus) if each.name in LOST_CLASSES]
    return max(lost, key=lambda each: each.gpu_seconds, default=None)
