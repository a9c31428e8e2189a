"""Kinds that nobody may take for judged: those of a run without GPUs, or with hardly a sample of each."""

from collections.abc import Collection, Iterator, Sequence

from gpureport.analysis.rules import certainty, missing_metrics
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.findings import NotJudged

_WITHOUT_GPUS = ("no_progress",)
"""Kinds that speak of the training alone."""
_OF_A_MOMENT = ("power_limited", "mem_headroom", "mem_pressure", "ecc_error", "no_progress")
"""Kinds that a few readings tell, or whose rules say themselves that they do not."""


def entries(context: Context, rules: Sequence[Rule], answered: Collection[str]) -> Iterator[NotJudged]:
    """Yield the kinds that rules left without a word because there was nothing to look at.

    Args:
        context: the recording.
        rules: the rules it was judged by.
        answered: kinds that were found, or said not to be judged.
    """
    gpus = context.gpus()
    readings = max((len(cells) for cells in gpus.values()), default=0)
    if readings >= certainty.SURE_READINGS:
        return
    told = _OF_A_MOMENT if gpus else _WITHOUT_GPUS
    for kind in dict.fromkeys(kind for rule in rules for kind in rule.kinds):
        if kind in told or kind in answered:
            continue
        if gpus:
            yield missing_metrics.too_few(kind, readings)
        else:
            yield NotJudged(kind=kind, device=None, reason="no GPU was recorded", recording=missing_metrics.GPU_LOG)
