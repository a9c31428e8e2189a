"""The four figures at the head of a report, of its last step; of repeated steps they are means over the runs."""

from collections.abc import Sequence

from gpureport.analysis.results import Analysis
from gpureport.comparison.steps.step_figures import PER_WORK, idle_ratio
from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.report.model.head import Tile
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import format_gpu_models
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.findings import loss_wording
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss
from gpureport.report.wording import display, terms

_HOUR = 3600.0
_CANNOT = "cannot be told"
_RESTING = frozenset(("short_pauses", "low_use", "waiting_for_input", "unused", "startup", "tail"))
"""Classes of GPU time beside idle in which GPUs rest."""

_UNSEEN = frozenset(("no_samples", "gpu_lost", "no_job"))
"""Classes of GPU time that no sample of a job with a utilisation covers."""

_APART, _NAMED = 0.02, 3
"""Difference from which the idle share and the class are told apart, and classes named at most."""


def build_tiles(comparison: Comparison, findings: Findings) -> tuple[Tile, ...]:
    """Return GPU-hours, idle share, GPU-hours lost and open findings of the last step."""
    step = comparison.steps[-1]
    return (
        _hours_tile(comparison),
        _idle_tile(step.analyses, findings),
        _lost_tile(step, findings),
        _findings_tile(step, findings),
    )


def _mean_of(step: Step) -> str:
    """Return that a figure is a mean, as the end of a sentence; empty for a single run."""
    runs = len(step.analyses)
    return f", a mean of {runs} runs" if runs > 1 else ""


def _hours_tile(comparison: Comparison) -> Tile:
    step = comparison.steps[-1]
    held = gpu_time.job_gpu_seconds(step.analyses)
    gpus = format_gpu_models(step.analyses[0].run.gpus) or "no GPU"
    per_work = _per_work(comparison)
    if per_work is not None and step.work_unit:
        shown = figure_formats.choose_format(
            PER_WORK, step.work_unit, in_seconds=figure_formats.uses_seconds(comparison)
        )
        shown = shown if step.value(PER_WORK) is not None else shown.once_settled()
        spent = loss_wording.format_gpu_time(held, len(step.analyses))
        return Tile(label=shown.title, value=shown.value(per_work), context=f"{spent} on {gpus}{_mean_of(step)}")
    unheld = _CANNOT if step.analyses[0].run.gpus else display.NOT_RECORDED
    value = display.number(held / _HOUR / len(step.analyses)) if held else unheld
    return Tile(label="GPU-hours", value=value, context=f"{gpus}{_mean_of(step)}; work done not given")


def _per_work(comparison: Comparison) -> float | None:
    """Return GPU-seconds for a batch of work, of what had settled where only training metrics tell."""
    last = comparison.steps[-1]
    value = last.value(PER_WORK)
    if value is None and len(comparison.steps) > 1:
        deltas = comparison.between(comparison.steps[-2].label, last.label)
        value = next((delta.after for delta in deltas if delta.metric == PER_WORK), None)
    return value


def _idle_tile(analyses: Sequence[Analysis], findings: Findings) -> Tile:
    label, idle = "Idle share", idle_ratio(analyses)
    gpus = any(analysis.run.gpus for analysis in analyses)
    if findings.too_short and gpus:
        return Tile(label=label, value=_CANNOT, context="the recording is too short")
    if idle is None:
        context = "no utilisation was recorded" if gpus else "no GPU was recorded"
        return Tile(label=label, value=display.NOT_RECORDED, context=context)
    context = "of the time covered by samples, at a utilisation of 5% or less"
    context += _idle_in_breakdown(analyses, idle)
    return Tile(label=label, value=display.percent(idle), context=context)


def _idle_in_breakdown(analyses: Sequence[Analysis], idle: float) -> str:
    """Return how much of the idle time the class of that name holds, where other classes hold some of it.

    Both are set against each other by the time that samples cover: a log gap is no reason why they differ. What is
    printed is the share of all GPU time, as in the bars.
    """
    seconds = gpu_time.seconds_by_class(time for analysis in analyses for time in analysis.gpu_time)
    covered = sum(amount for name, amount in seconds.items() if name not in _UNSEEN)
    apart = seconds.get("idle", 0.0) / (covered or 1.0)
    printed = display.percent(seconds.get("idle", 0.0) / (sum(seconds.values()) or 1.0))
    if apart - idle > _APART:
        return f"; idle gaps below hold {printed}, because a brief burst of work does not end an idle gap"
    others = sorted(_RESTING & set(seconds), key=lambda name: -seconds[name])[:_NAMED]
    if idle - apart < _APART or not others:
        return ""
    named = display.join_words([display.lower_first(terms.CLASSES[name]) for name in others])
    if apart < loss_wording.NOTHING:
        return f"; counted below under {named}"
    return (
        f"; in the breakdown below, {printed} of all GPU time is listed as idle; the rest of this idle time is listed "
        f"under {named}"
    )


def _lost_tile(step: Step, findings: Findings) -> Tile:
    label, analyses = "GPU-hours lost", step.analyses
    if not any(analysis.run.gpus for analysis in analyses):
        return Tile(label=label, value=display.NOT_RECORDED, context="no GPU was recorded")
    if explain_unknown_loss(step, findings):
        context = "the recording is too short" if findings.too_short else "no utilisation was recorded"
        return Tile(label=label, value=_CANNOT, context=context)
    held, lost = gpu_time.job_gpu_seconds(analyses), sum(gpu_time.lost_seconds_by_class(analyses).values())
    if not held:
        return Tile(label=label, value=_CANNOT, context="rows of several GPUs may be mixed")
    if not lost and loss_wording.loss_bound(analyses) == "at least":
        return Tile(label=label, value="not known", context="some was lost to throttling")
    hours = lost / _HOUR / len(analyses)
    unseen = gpu_time.unobserved_ratio(analyses)
    seen = held * (1 - unseen)
    if unseen > loss_wording.MOST:
        base, ratio = (
            f"the {loss_wording.format_gpu_time(seen, len(analyses))} observed; of the rest it cannot be told",
            lost / seen,
        )
    else:
        base, ratio = "all GPU-hours", lost / held
    context = f"{loss_wording.loss_bound(analyses)} {display.percent(ratio)} of {base}{_mean_of(step)}"
    amount = spending.lost_cost(analyses)
    if amount is not None:
        price = spending.common_price(analyses)
        costs = display.money(amount / len(analyses), spending.currency(analyses))
        context += f"; costs {costs}" + (f" at {price} a GPU-hour" if price else "")
    return Tile(label=label, value=display.number(hours), context=context)


def _findings_tile(step: Step, findings: Findings) -> Tile:
    # repetitions show one finding several times: it counts once, at its highest severity
    worst: dict[str, str] = {}
    for card in sorted(findings.open, key=lambda card: card.severity == "problem"):
        worst[card.title] = card.severity
    count = list(worst.values())
    parts = [f"{display.plural(count.count(name), name)}" for name in ("problem", "warning") if name in count]
    besides = {card.title for card in findings.cards if card.is_open and card.severity == "info"} - set(worst)
    called = {card.title for card in findings.cards if card.is_open and card.severity != "info"} - set(worst)
    facts = [f"{len(besides)} for information besides"] if besides else []
    facts += [f"{len(called)} {'follows' if len(called) == 1 else 'follow'} from another"] if called else []
    runs = [f"in any of {len(step.analyses)} runs"] if len(step.analyses) > 1 and parts else []
    kinds = display.plural(findings.missing, "kind") if findings.missing else ""
    missing = f"{kinds} could not be judged" if kinds else "every kind could be judged"
    context = "; ".join([*([" ".join([display.join_words(parts), *runs])] if parts else []), *facts, missing])
    return Tile(label="Open findings", value=str(len(count)), context=context)
