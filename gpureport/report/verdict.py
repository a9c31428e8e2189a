"""The result in one sentence and four figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.base import Analysis
from gpureport.comparison.measures import PER_WORK, SHORTEST_SECONDS, idle_ratio, observed_seconds
from gpureport.comparison.steps import Comparison, Delta, Step
from gpureport.report import difference, display, gpu_time, groups, spending, step_table
from gpureport.report.inputs import models
from gpureport.report.model import Tile, Verdict
from gpureport.report.parts import FindingCard
from gpureport.report.step_table import batch

_NOTABLE = 0.005
_NOTHING = 0.0005
"""Share below which a part would print as less than 0.1 %."""

_NAMED = 3
_HOUR = 3600.0
_UNSEEN = 0.05
"""Share of the GPU time without utilisation from which the verdict says so."""

_SHORTEST, _FEWEST = 10.0, 5
"""Seconds and samples below which no share is told."""

_REASONS = {
    "throttled": "to throttling",
    "waiting_for_input": "waiting for input",
    "idle": "idle",
    "unused": "on GPUs never used",
    "hollow": "busy with little work",
    "startup": "at start-up",
    "tail": "after the work ended",
    "low_use": "to low use of unknown cause",
}
_CANNOT = "cannot be told"
NO_THROUGHPUT = (
    "The work done is not known, so shares are all there is, and shares alone can mislead: a run that got faster can "
    "show a larger idle share. Give the work of each run with --work N:UNIT."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the sentence rests on.

    Attributes:
        cards: the findings.
        judged: how many kinds could be judged.
        missing: how many could not.
        samples: samples of one GPU in the last step.
        seconds: time from first to last sample of the last step.
    """

    cards: tuple[FindingCard, ...]
    judged: int
    missing: int
    samples: int
    seconds: float

    @property
    def too_short(self) -> bool:
        """Whether the last step is too short for a share of it to mean anything."""
        return self.seconds < _SHORTEST or self.samples < _FEWEST

    @property
    def open(self) -> list[FindingCard]:
        """Open cards that are more than information, without those that follow from one of them."""
        called = [card for card in self.cards if card.is_open and card.severity != "info"]
        named = {card.id for card in called}
        return [card for card in called if card.root not in named]


def verdict(comparison: Comparison, findings: Findings) -> Verdict:
    """Return the sentence about the last step, and about the way there where there are several."""
    last = comparison.steps[-1]
    several = len(comparison.steps) > 1
    brief = [step for step in (comparison.steps[0], last) if observed_seconds(step.analyses) < SHORTEST_SECONDS]
    sentence, aside = change(comparison) if several and not brief else ("", "")
    loss = _loss(last, findings)
    if sentence and loss.startswith(("Up to", "At least")):
        loss = f"{loss[0].lower()}{loss[1:]}"
    details = [*filter(None, [aside]), f"In the last step: {loss}"] if sentence else []
    if not several or not sentence:
        sentence = loss
    if several and brief:
        steps = display.listing([step.label for step in brief])
        details.append(f"Steps are not set against each other: less than a minute was recorded of {steps}.")
    details.extend(_details(comparison, findings))
    return Verdict(sentence=sentence, details=tuple(details))


def change(comparison: Comparison) -> tuple[str, str]:
    """Return what may be said of first and last step, and how idle time moved beside it; empty where unknown."""
    first, last = comparison.steps[0], comparison.steps[-1]
    judged = comparison.judged(first.label, last.label)
    if judged is None or judged.difference is None:
        return "", ""
    found = {delta.metric: delta for delta in comparison.between(first.label, last.label)}
    idle = found["idle_ratio"]
    aside = ""
    if idle.difference is not None and not idle.primary:
        aside = _idle_moved(idle, step_table.shown("idle_ratio", None))
    return difference.sentence(judged, step_table.shown(judged.metric, last.work_unit)), aside


def _idle_moved(delta: Delta, shown: difference.Shown) -> str:
    before, after = (display.optional(value, shown.value) for value in (delta.before, delta.after))
    moved = f"stayed at {after}" if before == after else f"went from {before} to {after}"
    return f"The idle share {moved}: {delta.verdict.value}."


def _untold(step: Step, findings: Findings) -> str:
    """Return why nothing can be said about GPU time; empty when something can."""
    if not any(analysis.run.gpus for analysis in step.analyses):
        return "No GPU was recorded, so nothing can be said about GPU time."
    if findings.too_short:
        whose = " of each GPU" if max(len(analysis.run.gpus) for analysis in step.analyses) > 1 else ""
        count = display.plural(findings.samples, "sample")
        length = f"in {display.duration(findings.seconds)}" if findings.seconds > 0 else "in all"
        return f"Too short to judge: {count}{whose} {length}."
    if gpu_time.unseen_ratio(step.analyses) >= 1 - _NOTHING:
        return "GPU time could not be judged: no utilisation was recorded."
    return ""


def _bound(analyses: Sequence[Analysis]) -> str:
    """Return whether what is known of the loss is its upper or its lower end."""
    unknown = any(groups.unknown_loss(analysis.findings) for analysis in analyses)
    return "at least" if unknown else "up to"


def _loss(step: Step, findings: Findings) -> str:
    if untold := _untold(step, findings):
        return untold
    held = gpu_time.held_seconds(step.analyses)
    if not findings.judged and findings.missing:
        return "Nothing could be judged with this data."
    lost = gpu_time.lost_seconds(step.analyses)
    ratio = sum(lost.values()) / held
    if ratio < _NOTABLE and not findings.open:
        return _nothing_found(findings)
    if ratio < _NOTABLE and _bound(step.analyses) == "at least":
        return "GPU time was lost, how much is not known."
    if ratio < _NOTABLE:
        verb = "is" if len(findings.open) == 1 else "are"
        return f"Hardly any GPU time was lost; {display.plural(len(findings.open), 'finding')} {verb} open."
    share = f"{_bound(step.analyses)} {display.percent(ratio)}"
    return f"{share[:1].upper()}{share[1:]} of {display.gpu_hours(held)} was lost: {_told(lost, held)}."


def _told(lost: dict[str, float], held: float) -> str:
    """Return the largest classes with their shares, and what the others come to."""
    if len(lost) == 1:
        return f"all of it {_REASONS[next(iter(lost))]}"
    named = [name for name in lost if lost[name] / held >= _NOTABLE][:_NAMED]
    shares = [f"{display.percent(lost[name] / held)} {_REASONS[name]}" for name in named]
    rest = sum(amount for name, amount in lost.items() if name not in named) / held
    return display.listing([*shares, f"{display.percent(rest)} else"] if rest >= _NOTHING else shares)


def _nothing_found(findings: Findings) -> str:
    kinds = f"the {display.plural(findings.judged, 'kind')}" if findings.judged else "the kinds"
    text = f"No loss found among {kinds} that could be judged"
    return f"{text}; {findings.missing} could not be judged." if findings.missing else f"{text}."


def _details(comparison: Comparison, findings: Findings) -> Iterator[str]:
    final = comparison.steps[-1].analyses
    unseen = gpu_time.unseen_ratio(final)
    if findings.open and not findings.too_short:
        card = findings.open[0]
        yield f"Look first at {card.id}: {card.title}, {card.lost}."
    if _UNSEEN < unseen < 1 - _NOTHING and not findings.too_short:
        yield f"{display.percent(unseen)} of the GPU time holds no utilisation, so nothing can be said about it."
    if len(comparison.steps) > 1:
        yield from caution(comparison)
    known = comparison.primary == PER_WORK or all(
        analysis.run.work for step in comparison.steps for analysis in step.analyses
    )
    if not findings.too_short and not known:
        yield NO_THROUGHPUT
    if findings.missing:
        yield (
            f"{display.plural(findings.missing, 'kind')} could not be judged with this data: see what could not be "
            "judged, and what to record."
        )


def caution(comparison: Comparison) -> Iterator[str]:
    """Yield what to mind about the verdicts on a chain of steps."""
    if all(len(step.runs) == 1 for step in comparison.steps):
        yield "Each step is a single run: what is said of a pair need not hold when it is run again."
    if comparison.tested > 1:
        yield f"Verdicts allow for {comparison.tested} comparisons, so that none is claimed because there are many."


def tiles(step: Step, findings: Findings) -> tuple[Tile, ...]:
    """Return GPU-hours, idle share, GPU-hours lost and open findings of one step."""
    return (
        _hours_tile(step),
        _idle_tile(step.analyses, findings),
        _lost_tile(step, findings),
        _findings_tile(findings),
    )


def _hours_tile(step: Step) -> Tile:
    held = gpu_time.held_seconds(step.analyses)
    gpus = models(step.analyses[0].run.gpus) or "no GPU"
    per_work = step.value(PER_WORK)
    if per_work is not None and step.work_unit:
        label = f"GPU-hours per {batch({step.work_unit})}"
        return Tile(label=label, value=display.number(per_work / _HOUR), context=f"{display.gpu_hours(held)} on {gpus}")
    unheld = _CANNOT if step.analyses[0].run.gpus else display.NOT_RECORDED
    value = display.number(held / _HOUR) if held else unheld
    return Tile(label="GPU-hours", value=value, context=f"{gpus}; work done not given")


def _idle_tile(analyses: Sequence[Analysis], findings: Findings) -> Tile:
    label, idle = "Idle share", idle_ratio(analyses)
    gpus = any(analysis.run.gpus for analysis in analyses)
    if findings.too_short and gpus:
        return Tile(label=label, value=_CANNOT, context="the recording is too short")
    if idle is None:
        context = "no utilisation was recorded" if gpus else "no GPU was recorded"
        return Tile(label=label, value=display.NOT_RECORDED, context=context)
    context = f"of the time covered by samples, at a utilisation of 5{display.GAP}% or less"
    return Tile(label=label, value=display.percent(idle), context=context)


def _lost_tile(step: Step, findings: Findings) -> Tile:
    label, analyses = "GPU-hours lost", step.analyses
    if not any(analysis.run.gpus for analysis in analyses):
        return Tile(label=label, value=display.NOT_RECORDED, context="no GPU was recorded")
    if _untold(step, findings):
        context = "the recording is too short" if findings.too_short else "no utilisation was recorded"
        return Tile(label=label, value=_CANNOT, context=context)
    held, lost = gpu_time.held_seconds(analyses), sum(gpu_time.lost_seconds(analyses).values())
    if not lost and _bound(analyses) == "at least":
        return Tile(label=label, value="not known", context="some was lost to throttling")
    context = f"{_bound(analyses)} {display.percent(lost / held)} of all GPU-hours"
    amount = spending.lost_cost(analyses)
    if amount is not None:
        currency = next((analysis.cost.currency for analysis in analyses if analysis.cost), "")
        price = spending.same_price(analyses)
        context += f"; costs {display.money(amount, currency)}" + (f" at {price} a GPU-hour" if price else "")
    return Tile(label="GPU-hours lost", value=display.number(lost / _HOUR), context=context)


def _findings_tile(findings: Findings) -> Tile:
    count = [card.severity for card in findings.open]
    parts = [f"{display.plural(count.count(name), name)}" for name in ("problem", "warning") if name in count]
    besides = sum(card.is_open and card.severity == "info" for card in findings.cards)
    follow = sum(card.is_open and card.severity != "info" for card in findings.cards) - len(count)
    facts = [f"{besides} for information besides"] if besides else []
    facts += [f"{follow} {'follows' if follow == 1 else 'follow'} from another"] if follow else []
    kinds = display.plural(findings.missing, "kind") if findings.missing else ""
    missing = f"{kinds} could not be judged" if kinds else "every kind could be judged"
    context = "; ".join([*([display.listing(parts)] if parts else []), *facts, missing])
    return Tile(label="Open findings", value=str(len(findings.open)), context=context)
