"""Kinds that were not judged because the run has no GPUs, or only a few samples of each."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from gpureport.analysis import certainty, missing_metrics
from gpureport.analysis.rulebook import Context, Rule
from gpureport.findings import NotJudged

_MEAN = "the table holds one mean of the whole run, and no check is made of it"


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
            yield missing_metrics.unjudged(
                kind.name, None, "no GPU was recorded", missing_metrics.GPU_LOG_METRICS, code="no_gpu_recorded"
            )


def drop_useless_recordings(entries: Sequence[NotJudged], context: Context) -> Iterator[NotJudged]:
    """Yield the entries, without advice to record again where the log holds the columns and no value in any of them."""
    if context.recording.run.is_mean:
        yield from (
            NotJudged(kind=each.kind, device=None, reason=_MEAN, recording="", code="single_mean") for each in entries
        )
        return
    columns = set(context.recording.rows.schema.names)
    for entry in entries:
        lacking = [name for name in entry.metrics if not context.recorded(name)]
        if not lacking or not columns.issuperset(lacking):
            yield entry
            continue
        were = "was" if len(lacking) == 1 else "were"
        reason = f"{' and '.join(lacking)} {were} logged, but without a value: this machine does not report it"
        yield replace(
            entry, reason=reason, template="", amounts=(), recording="", metrics=(), code="logged_without_values"
        )
