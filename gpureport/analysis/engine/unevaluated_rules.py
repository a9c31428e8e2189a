"""Kinds that were not judged because the run has no GPUs, or only a few samples of each."""

from collections.abc import Collection, Iterator, Sequence

from gpureport.analysis.rules import certainty, missing_metrics
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.findings import NotJudged


def list_unevaluated_kinds(context: Context, rules: Sequence[Rule], answered: Collection[str]) -> Iterator[NotJudged]:
    """Yield the kinds that rules left without a word because there was nothing to look at."""
    gpus = context.gpus()
    readings = max((len(series) for series in gpus.values()), default=0)
    if readings >= certainty.SURE_READINGS:
        return
    for kind in (kind for rule in rules for kind in rule.descriptions):
        if kind.name in answered or (kind.judges_few_samples if gpus else not kind.needs_gpus):
            continue
        if gpus:
            yield missing_metrics.too_few(kind.name, readings)
        else:
            reason = "no GPU was recorded"
            log, metrics = missing_metrics.GPU_LOG, missing_metrics.GPU_LOG_METRICS
            yield NotJudged(kind=kind.name, device=None, reason=reason, recording=log, metrics=metrics)
