"""What all steps together say, what the last one still loses and could gain, and how repetitions are given."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import combinations

from gpureport.analysis import phrases
from gpureport.comparison import gains
from gpureport.comparison.across import HEADROOM, largest_batch, memory_fits, scaling
from gpureport.comparison.chain import Comparison
from gpureport.comparison.changes import RemainingLoss, measure_remaining_loss
from gpureport.comparison.factors import MOST_FACTORS, describe_factors, is_repetition_param, parse_factors
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS, observed_seconds, recorded_seconds
from gpureport.comparison.folders import step_folders
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study, select_focus
from gpureport.comparison.time_to_target import MissingTarget, TimeToTarget, measure_time_to_target
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.shapes import Fact
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.loss_sentence import describe_short_pauses, list_losses
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.sections.steps.quality import name_metric
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.reasons import describe_memory_reason
from gpureport.report.wording.words import say

_NAMED = 4
"""Kinds of GPU that are named."""
_LOSSES = 3
"""Classes of lost time that a sentence names."""
_STARTUP_SHARE, _LONG_SECONDS = 0.05, 600.0
"""Share of start-up that is large, and the length of a run in which that is no accident of a trial (pragmatic)."""


def list_remaining(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None, cards: Sequence[FindingCard]
) -> Iterator[Fact]:
    """Yield what the last step of a chain or the best group still loses, and the finding that costs most there.

    Nothing where it is too short to tell.
    """
    step, first = select_focus(comparison, study), None if study else comparison.steps[0]
    left = measure_remaining_loss(step.label, step.analyses)
    if recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS or not left.held_gpu_seconds:
        return
    yield Fact(name="Still lost", text=_describe_loss(first, step, left))
    largest = left.largest
    if largest is None:
        yield Fact(name="Largest left", text="No finding says what it costs.")
        return
    run = [run for run in inputs if run.step == display.clean(step.label)][-1]
    known = [card for card in cards if card.is_open and set(card.fingerprints) & set(largest.fingerprints)]
    worst = max(known, key=lambda card: card.lost_seconds or 0.0, default=None)
    several = left.runs > 1
    text = say(
        "left.largest",
        id=worst.id if worst and not several else "",
        title=terms.kind_title(display.clean(largest.kind), largest.cause),
        devices=run.devices(largest.devices) if largest.devices else "",
        cost=gpu_time.format_held(largest.lost_gpu_seconds * left.runs, left.runs),
        share=display.percent(largest.lost_gpu_seconds / left.held_gpu_seconds),
        several=several,
        found=largest.runs if largest.runs < left.runs else 0,
        runs=left.runs,
        worst=worst.id if worst and worst.lost_ratio else "",
        most=display.percent(worst.lost_ratio) if worst and worst.lost_ratio else "",
    )
    yield Fact(name="Largest left", text=text)


def _describe_loss(first: Step | None, last: Step, left: RemainingLoss) -> str:
    lost, seconds = dict(left.lost_gpu_seconds), _base_seconds(left)
    ratio = sum(lost.values()) / seconds if seconds else 0.0
    was = measure_remaining_loss(first.label, first.analyses) if first else None
    base = _base_seconds(was) if was else 0.0
    pauses = gpu_time.excessive_short_pauses(last.analyses)
    fields = {
        "step": display.clean(last.label),
        "held": gpu_time.format_held(seconds * left.runs, left.runs),
        "observed": 0 < seconds < left.held_gpu_seconds,
        "first": display.clean(first.label) if first else "",
        "was": display.percent(sum(dict(was.lost_gpu_seconds).values()) / base) if was and base else "",
    }
    if left.unseen_gpu_seconds >= (1 - gains.NEGLIGIBLE_RATIO) * left.held_gpu_seconds:
        held = gpu_time.format_held(left.held_gpu_seconds * left.runs, left.runs)
        return say("left.unknown", **fields | {"held": held})
    if ratio < gains.NOTABLE_RATIO and pauses is not None:
        return say("left.pauses", pauses=phrases.capitalize(describe_short_pauses(pauses)), **fields)
    if ratio < gains.NEGLIGIBLE_RATIO:
        return say("left.little", **fields)
    return say(
        "left.lost",
        least=gpu_time.is_lower_bound(last.analyses),
        share=display.percent(ratio),
        classes=list_losses(lost, seconds, last.analyses),
        **fields,
    )


def _base_seconds(left: RemainingLoss) -> float:
    """Return the GPU-seconds that a loss is a share of, as in the headline: the observed ones where most are not."""
    few = left.unseen_gpu_seconds > gains.MOST_UNSEEN_RATIO * left.held_gpu_seconds
    return left.held_gpu_seconds - (left.unseen_gpu_seconds if few else 0.0)


def describe_potential(comparison: Comparison) -> str:
    """Return how many times as fast the last step could be at most, and what it would have to lose for that."""
    last, notable = comparison.steps[-1].analyses, gains.NOTABLE_RATIO
    found = gains.estimate_potential(comparison.remaining, last)
    step, pauses = display.clean(found.step), gpu_time.excessive_short_pauses(last)
    if found.lost_ratio is None:
        return say("potential.unseen", step=step)
    if found.unmeasured:
        kinds = display.join_words([display.lower_first(terms.kind_title(kind)) for kind in found.unmeasured])
        return say("potential.unmeasured", step=step, kinds=kinds)
    lost = found.lost_ratio + found.unseen_ratio
    if (lost < notable and pauses is not None) or (found.at_most is None and found.pauses_ratio >= notable):
        return say("potential.pauses", step=step, pauses=describe_short_pauses(pauses or found.pauses_ratio))
    if lost + found.pauses_ratio < notable:
        return say("potential.little", step=step)
    if found.at_most is None:
        return say("potential.all", step=step, unseen=found.unseen_ratio >= notable)

    def show(ratio: float) -> str:
        return display.percent(ratio).replace(display.GAP, "") if ratio >= notable else ""

    named = [loss for loss in found.losses if loss.lost_ratio >= notable][:_LOSSES]
    parts = [f"{display.lower_first(terms.CLASSES[loss.name])} {show(loss.lost_ratio)}" for loss in named]
    parts += [
        say("potential.waits", share=show(found.pauses_ratio)),
        say("potential.rest", share=show(found.unseen_ratio)),
    ]
    startup = sum(loss.lost_ratio for loss in found.losses if loss.name == "startup")
    return say(
        "potential.most",
        times=differences.format_times(found.at_most),
        step=step,
        losses=display.join_words([part for part in parts if part]),
        startup=startup >= _STARTUP_SHARE and observed_seconds(last) < _LONG_SECONDS,
    )


def list_across(comparison: Comparison, study: Study | None) -> Iterator[Fact]:
    """Yield the time to the target, how work scales with GPUs, the largest batch, and which GPUs would hold a step."""
    steps, figures = comparison.steps, Figures(comparison)
    times = [each for step in steps if (each := measure_time_to_target(step, comparison.goals))]
    if times:
        said = "; ".join(_describe_time(each, figures.currency) for each in times)
        yield Fact(name=f"Time to {name_metric(times[0].name)}={times[0].target:g}", text=f"{said}.")
    for each in scaling(steps):
        sides = {"step": display.clean(each.step), "base": display.clean(each.base)}
        ends = format_interval(each.interval, display.percent) if each.interval else ""
        share, (few, many) = display.percent(each.efficiency), each.gpus
        yield Fact(name="Scaling", text=say("across.scaling", share=share, few=few, many=many, ends=ends, **sides))
    if batch := largest_batch(steps):
        text = say(
            "across.batch",
            sizes=display.join_words([display.integer(size) for size in batch.sizes]),
            why=describe_memory_reason(batch.reason) if batch.max_batch is None else "",
            each=display.memory(batch.bytes_each),
            most=display.integer(batch.max_batch or 0),
            free=display.percent(HEADROOM.value),
        )
        yield Fact(name="Batch size", text=text)
    (fit,) = memory_fits([select_focus(comparison, study)])
    if fit.peak_bytes is not None:
        models = [f"{kind.model} ({display.memory(kind.memory_bytes)})" for kind in fit.kinds if kind.fits]
        more = [f"{len(models) - _NAMED} with more memory"] if len(models) > _NAMED else []
        text = say(
            "across.kinds",
            step=display.clean(fit.step),
            known=bool(fit.kinds),
            peak=display.memory(fit.peak_bytes),
            models=display.join_words([*models[:_NAMED], *more]),
            free=display.percent(fit.headroom),
            why=describe_memory_reason(fit.reason),
            unknown=len(fit.unknown),
        )
        yield Fact(name="GPU kinds", text=text)


def _describe_time(found: TimeToTarget, currency: str) -> str:
    """Return when a step reached the target and what that took, or why it has no time, by how many of its runs."""
    step, runs = display.clean(found.step), len(found.runs)
    if found.seconds is None:
        missing = [run.missing for run in found.runs]
        counts = {reason.value: missing.count(reason) for reason in MissingTarget if reason in missing}
        parts = [f"{why}{f' in {count} of {runs} runs' if runs > 1 else ''}" for why, count in counts.items()]
        return f"{step}: {display.join_words(parts)}"
    spent = [] if found.gpu_seconds is None else [display.gpu_time(found.gpu_seconds)]
    spent += [] if found.cost is None else [display.money(found.cost, display.clean(currency))]
    spent += [f"mean of {runs} runs"] if runs > 1 else []
    return f"{step}: {display.duration(found.seconds)} ({', '.join(spent)})"


def suggest_repetitions(comparison: Comparison) -> str:
    """Return how to give single runs as repetitions of a step; empty where labels say it, or nothing suggests it.

    Folders or params do where they make several groups, with two runs or more in each on average.
    """
    runs = [analysis.run for step in comparison.steps for analysis in step.analyses]
    is_compared = len(comparison.steps) > 1 and all(len(step.runs) == 1 for step in comparison.steps)
    if not is_compared or any(run.step is not None for run in runs):
        return ""
    folders = set(step_folders(runs))
    if None not in folders and 1 < len(folders) <= len(runs) // 2:
        return say("across.folders", n=len(folders))
    settings = [{key: value for key, value in run.params if not is_repetition_param(key)} for run in runs]
    groups = [dict(group) for group in dict.fromkeys(tuple(sorted(each.items())) for each in settings)]
    option = next(_list_options(groups), None) if 1 < len(groups) <= len(runs) // 2 else None
    if option is None:
        return ""
    return say(
        "across.params", names=display.clean(describe_factors(parse_factors(option))), option=shlex.quote(option)
    )


def _list_options(groups: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield values of `--by` that tell the groups apart, those with the fewest params first."""
    common = sorted(set.intersection(*map(set, groups)))
    varying = [key for key in common if len({group[key] for group in groups}) > 1]
    for count in range(1, MOST_FACTORS + 1):
        for keys in combinations(varying, count):
            if len({tuple(group[key] for key in keys) for group in groups}) == len(groups):
                yield ",".join(f"param:{key}" for key in keys)
