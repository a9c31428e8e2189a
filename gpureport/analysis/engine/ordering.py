"""In which order rules run, and what happens to a rule whose metrics were not recorded."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from gpureport.analysis import missing_metrics
from gpureport.analysis.rulebook import Context, Rule
from gpureport.findings import NotJudged


def order_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules, each behind those whose findings it needs, otherwise in the order given.

    Raises:
        ValueError: rules need each other's findings in a circle.
    """
    maker = {kind: place for place, rule in enumerate(rules) for kind in rule.kinds}
    needs = {
        place: sorted({maker[kind] for kind in rule.after if kind in maker} - {place})
        for place, rule in enumerate(rules)
    }
    try:
        return tuple(rules[place] for place in TopologicalSorter(needs).static_order())
    except CycleError as error:
        circle = " -> ".join(rules[place].kinds[0] for place in error.args[1])
        raise ValueError(f"rules wait for each other: {circle}") from error


def report_unmet_requirements(rule: Rule, context: Context) -> Iterator[NotJudged]:
    """Yield one entry a kind when a group of metrics the rule requires was not recorded for any device."""
    missing = [group for group in rule.requires if not any(context.recorded(metric) for metric in group)]
    if not missing:
        return
    absent = [group[0] for group in missing]
    implausible = next(
        (name for name in absent if any(one.explain_implausibility(name) for one in context.series.values())), None
    )
    for kind in rule.kinds:
        yield (
            missing_metrics.not_recorded(kind, None, *absent)
            if implausible is None
            else missing_metrics.implausible(kind, None, implausible)
        )


def merge_not_judged(entries: Sequence[NotJudged], gpus: Collection[str]) -> tuple[NotJudged, ...]:
    """Return the entries, those that say the same of every GPU as one of the whole run."""
    alike: dict[NotJudged, set[str]] = {}
    wholes = [replace(entry, device=None) for entry in entries]
    for whole, entry in zip(wholes, entries, strict=True):
        alike.setdefault(whole, set()).add(entry.device or "")
    everybody = set(gpus)
    shared = {whole for whole, devices in alike.items() if devices >= everybody}
    merged = dict.fromkeys(whole if whole in shared else entry for whole, entry in zip(wholes, entries, strict=True))
    return tuple(merged)
