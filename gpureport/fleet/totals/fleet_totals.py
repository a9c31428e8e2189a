"""The report on many runs from their summaries."""

from collections import defaultdict
from collections.abc import Sequence
from math import fsum

from gpureport.analysis.account.cost import Prices
from gpureport.fleet.fleet_report import FailedRun, FleetPrices, FleetReport, RunName, UnassessedCheck
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.totals import label_groups, overlaps, priced_gpu, worst_runs
from gpureport.fleet.totals.fleet_health import assess_health
from gpureport.fleet.totals.priced_gpu import PricedGpu
from gpureport.fleet.totals.savings import merge_advice
from gpureport.fleet.totals.weeks import divide_by_week

LABELS = ("user", "project", "job", "node")
"""What runs are grouped by if nobody asks for anything else."""


def build_fleet_report(
    summaries: Sequence[GpuSummary], prices: Prices, labels: Sequence[str] = LABELS, selection: str = ""
) -> FleetReport:
    """Return the report on some runs.

    Args:
        summaries: of each run and GPU.
        prices: of GPU time.
        labels: what the runs are grouped by.
        selection: how the runs were selected, in words.
    """
    gpus = priced_gpu.price_summaries(summaries, prices)
    ranked = worst_runs.rank_runs(gpus)
    half_lost_in, half_lost_class = worst_runs.find_half_of_loss(ranked)
    longest, overlapping = overlaps.find_overlaps(gpus)
    dated = [gpu.summary for gpu in gpus if gpu.summary.started is not None]
    powered = [gpu for gpu in gpus if gpu.summary.energy_joules is not None]
    return FleetReport(
        selection=selection,
        started=min((each.started for each in dated if each.started is not None), default=None),
        ended=max((each.ended for each in dated if each.ended is not None), default=None),
        is_zoned=bool(dated) and all(each.timezone is not None for each in dated),
        use=priced_gpu.sum_use(gpus),
        gpus=_count_cards(gpus),
        nodes=len({gpu.summary.node for gpu in gpus if gpu.summary.node}),
        energy_joules=fsum(gpu.summary.energy_joules or 0.0 for gpu in powered) if powered else None,
        energy_gpu_seconds=fsum(gpu.gpu_seconds for gpu in powered),
        classes=priced_gpu.sum_classes(gpus),
        prices=_describe_prices(gpus, prices),
        half_lost_in=half_lost_in,
        half_lost_class=half_lost_class,
        worst_runs=worst_runs.list_worst_runs(ranked),
        pausing_runs=worst_runs.list_pausing_runs(gpus),
        groupings=tuple(label_groups.group_runs(gpus, label) for label in labels),
        savings=merge_advice(gpus),
        health=assess_health(gpus),
        weeks=divide_by_week(gpus),
        undated_gpu_seconds=fsum(gpu.gpu_seconds for gpu in gpus if gpu.summary.started is None),
        failed=tuple(FailedRun(run=_name(each), error=each.error) for each in summaries if each.error),
        without_gpu=tuple(_name(each) for each in summaries if each.device is None and not each.error),
        overlaps=longest,
        overlapping_gpu_seconds=overlapping,
        unassessed=_list_unassessed(gpus),
    )


def _name(summary: GpuSummary) -> RunName:
    return RunName(id=summary.run_id, name=summary.run_name, source=summary.source)


def _count_cards(gpus: Sequence[PricedGpu]) -> int | None:
    """Return how many different GPUs there are; None where runs may share one."""
    known = {gpu.summary.card for gpu in gpus}
    if None in known and len({gpu.summary.run_id for gpu in gpus}) > 1:
        return None
    return len(gpus) if None in known else len(known)


def _describe_prices(gpus: Sequence[PricedGpu], prices: Prices) -> FleetPrices:
    if not prices.rates:
        return FleetPrices()
    unpriced = {gpu.summary.model or "unknown model" for gpu in gpus if gpu.price is None and gpu.gpu_seconds > 0}
    return FleetPrices(currency=prices.currency, date=prices.date, unpriced_models=tuple(sorted(unpriced)))


def _list_unassessed(gpus: Sequence[PricedGpu]) -> tuple[UnassessedCheck, ...]:
    """Return the kinds that could not be judged, that on most GPU time first."""
    members: defaultdict[str, list[PricedGpu]] = defaultdict(list)
    for gpu in gpus:
        for kind in gpu.summary.not_judged:
            members[kind].append(gpu)
    found = [
        UnassessedCheck(
            kind=kind,
            runs=len({gpu.summary.run_id for gpu in own}),
            gpu_seconds=fsum(gpu.gpu_seconds for gpu in own),
        )
        for kind, own in members.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.gpu_seconds, each.kind)))
