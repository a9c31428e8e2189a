"""What would save most: the steps that findings ask for, merged over all runs."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from gpureport.analysis.advice.choose import STEPS
from gpureport.fleet.fleet_report import Saving
from gpureport.fleet.gpu_summary import FindingSummary
from gpureport.fleet.totals.priced_gpu import PricedGpu
from gpureport.report.sections.findings.words import find_advice

_MOST_EXAMPLES = 3
"""Runs named, and further steps named."""

Loss = tuple[PricedGpu, FindingSummary, float]  # a GPU, a finding on it, and the seconds it lost


def merge_advice(gpus: Sequence[PricedGpu]) -> tuple[Saving, ...]:
    """Return the steps of the catalogue by what they could save at most, the most first.

    Only the first step of a finding gets its time; without a shown cause, only to record more does.
    """
    losses: defaultdict[str, list[Loss]] = defaultdict(list)
    for gpu in gpus:
        for finding, seconds in gpu.summary.root_losses():
            is_known = finding.cause not in {"not shown", "unknown"}
            fitting = [each for each in finding.steps if is_known or each == "record_more"]
            if seconds > 0 and fitting:
                losses[fitting[0]].append((gpu, finding, seconds))
    merged = (_merge_losses(step, own) for step, own in losses.items())
    savings = sorted(merged, key=lambda each: (-each.gpu_seconds, each.step))
    taken: set[str] = set()
    for place, saving in enumerate(savings):
        if (title := _name_action(losses[saving.step])) and title not in taken:
            savings[place] = replace(saving, title=title)
        taken.add(title)
    return tuple(savings)


def _name_action(losses: Sequence[Loss]) -> str:
    """Return what the reports of these runs call what to do about the finding that lost most.

    Empty where they name GPUs in it.
    """
    lost: defaultdict[tuple[str, str | None, tuple[str, ...]], float] = defaultdict(float)
    for _, finding, seconds in losses:
        lost[finding.kind, finding.cause, finding.steps] += seconds
    title, *_ = find_advice(*max(lost, key=lambda each: lost[each])) or ("",)
    return "" if "{" in title else title


def _merge_losses(step: str, losses: Sequence[Loss]) -> Saving:
    runs: defaultdict[str, float] = defaultdict(float)
    kinds: defaultdict[str, float] = defaultdict(float)
    others = Counter(step for _, finding, _ in losses for step in finding.steps[1:])
    for gpu, finding, seconds in losses:
        runs[gpu.summary.run_id] += seconds
        kinds[finding.kind] += seconds
    names = {gpu.summary.run_id: gpu.run for gpu, _, _ in losses}
    costs = [gpu.price_seconds(seconds) for gpu, _, seconds in losses]
    known = [cost for cost in costs if cost is not None]
    return Saving(
        step=step,
        title=STEPS[step].title if step in STEPS else step.replace("_", " "),
        kinds=tuple(_by_amount(kinds)),
        runs=len(runs),
        gpu_seconds=fsum(seconds for _, _, seconds in losses),
        cost=fsum(known) if len(known) == len(costs) else None,
        examples=tuple(names[run] for run in _by_amount(runs)[:_MOST_EXAMPLES]),
        other_steps=tuple(_by_amount(others)[:_MOST_EXAMPLES]),
    )


def _by_amount(amounts: Mapping[str, float]) -> list[str]:
    """Return names by their amount, the largest first; of equal ones the first in the alphabet."""
    return sorted(amounts, key=lambda name: (-amounts[name], name))
