"""The headline and the lead: how much was lost and to what, what is left out, and what to do first."""

from collections.abc import Iterator

from gpureport.analysis.kinds import GROUPS
from gpureport.analysis.signals.load import NOTABLE, measure_pauses_ratio
from gpureport.comparison.gains import NOTABLE_RATIO, measure_excessive_short_pauses
from gpureport.fleet.fleet_report import CardVerdict, FleetReport, Grouping
from gpureport.fleet.page.amounts import Amounts
from gpureport.fleet.page.class_words import name_label, name_loss, shorten_name, sort_losses
from gpureport.fleet.page.period import name_period
from gpureport.report.model.head import Verdict
from gpureport.report.wording import display
from gpureport.report.wording.headlines import choose_headline

_UNKNOWN = 0.05
"""Share of the GPU time without data from which the share lost is a lower bound."""

_FEW = 0.25
"""Share of the runs that half of the loss must lie in for the headline to name their number."""


_MANY = 3
"""Runs from which it says something that one of them lost half: of two, one always does."""


def build_verdict(report: FleetReport, amounts: Amounts) -> Verdict:
    """Return the headline, of at most 16 words, and the lead."""
    return Verdict(sentence=write_headline(report, amounts), details=tuple(_write_lead(report, amounts)))


def write_headline(report: FleetReport, amounts: Amounts) -> str:
    """Return the per cent that was lost, of how much, what it cost, and where most of it was lost."""
    use = report.use
    if not use.gpu_seconds:
        return f"No GPU time was recorded in {display.plural(use.runs + len(report.failed), 'run')}"
    whole = f"{amounts.format_time(use.gpu_seconds)} {amounts.long_unit}"
    if use.unknown_gpu_seconds >= use.gpu_seconds * (1 - NOTABLE_RATIO):
        energy = f", which took {display.energy(report.energy_joules)}" if report.energy_joules else ""
        return f"No utilisation was recorded in {whole}{energy}"
    period = f" {name_period(report)}".rstrip()
    pauses = measure_excessive_short_pauses({each.name: each.gpu_seconds for each in report.classes})
    if use.lost_gpu_seconds < use.gpu_seconds * NOTABLE_RATIO and pauses is not None:
        return f"What was lost of {whole} is not known: short pauses took {display.percent(pauses)}"
    if use.lost_gpu_seconds < use.gpu_seconds * NOTABLE_RATIO:
        return choose_headline([f"Hardly any of {whole} lost{period}", f"Hardly any of {whole} lost"])
    least = "At least " if pauses is not None or use.unknown_gpu_seconds >= use.gpu_seconds * _UNKNOWN else ""
    start = f"{least}{display.percent(use.lost_gpu_seconds / use.gpu_seconds)} of {whole} lost"
    money = f", {amounts.format_money(use.lost_cost)}" if use.lost_cost is not None and amounts.currency else ""
    return choose_headline(
        [f"{start}{when}{money}{where}" for where in _list_culprits(report) for when in (period, "")] or [start]
    )


def _list_culprits(report: FleetReport) -> Iterator[str]:
    """Yield where most was lost, the fullest words first, then nothing."""
    loss = next(iter(sort_losses(report.classes)), None)
    if 0 < report.half_lost_in <= max(report.use.runs * _FEW, 1) and report.use.runs >= _MANY:
        runs = display.plural(report.half_lost_in, "run")
        if report.half_lost_class:
            yield f"; half in {runs}, mainly {name_loss(report.half_lost_class)}"
        yield f"; half in {runs}"
    elif loss is not None:
        yield f", mainly {name_loss(loss.name)}"
    yield ""


def _write_lead(report: FleetReport, amounts: Amounts) -> Iterator[str]:
    """Yield what is in no figure or in doubt, in one sentence, and what to do first."""
    doubts = [*_list_missing_runs(report), *_list_doubtful_time(report, amounts)]
    if doubts:
        yield f"{doubts[0][:1].upper()}{doubts[0][1:]}{''.join(f'; {doubt}' for doubt in doubts[1:])}."
    yield from filter(None, (_describe_first_step(report, amounts),))


def _list_missing_runs(report: FleetReport) -> Iterator[str]:
    """Yield how many runs are in no figure."""
    parts = [
        f"{display.plural(len(report.failed), 'run')} that failed" if report.failed else "",
        f"{display.plural(len(report.without_gpu), 'run')} without a GPU" if report.without_gpu else "",
    ]
    named = [part for part in parts if part]
    if named:
        yield f"left out: {display.join_words(named)}"


def _list_doubtful_time(report: FleetReport, amounts: Amounts) -> Iterator[str]:
    """Yield how much of the time has no data, names nobody, or is counted twice."""
    whole = report.use.gpu_seconds
    unknown = report.use.unknown_gpu_seconds
    if whole and unknown >= whole * NOTABLE_RATIO:
        yield f"{display.percent(unknown / whole)} of the GPU time has no data"
    yield from _describe_short_pauses(report)
    for by in report.groupings[:1]:
        yield from _describe_unlabelled(by, whole)
    if report.overlapping_gpu_seconds:
        yield f"{amounts.format_time_and_unit(report.overlapping_gpu_seconds)} may be counted twice"


def _describe_short_pauses(report: FleetReport) -> Iterator[str]:
    """Yield how much of the observed time short pauses may have lost, and the run with most."""
    ratio = measure_pauses_ratio({each.name: each.gpu_seconds for each in report.classes})
    if report.pausing_runs and ratio >= NOTABLE:
        where = f", the longest in {shorten_name(report.pausing_runs[0].name)}" if report.use.runs > 1 else ""
        yield f"short pauses took {display.percent(ratio)} of the observed time, and may be waits{where}"


def _describe_unlabelled(by: Grouping, whole: float) -> Iterator[str]:
    """Yield how much of the GPU time has no such label, where that is worth saying."""
    word = display.lower_first(name_label(by.label))
    unnamed = next((group for group in by.groups if group.name is None), None)
    if unnamed and len(by.groups) == 1 and by.rest is None:
        yield f"no run states its {word}"
    elif unnamed and whole and unnamed.use.gpu_seconds >= whole * NOTABLE_RATIO:
        yield f"{display.percent(unnamed.use.gpu_seconds / whole)} of the GPU time names no {word}"


def _describe_first_step(report: FleetReport, amounts: Amounts) -> str:
    """Return what would save most, and how many GPUs to take out."""
    pulled = sum(card.verdict is CardVerdict.PULL for card in report.health.cards)
    pull = f"pull {display.plural(pulled, 'GPU')}" if pulled else ""
    if not report.savings or not report.savings[0].gpu_seconds:
        return f"First: {pull}." if pull else ""
    best = report.savings[0]
    amount, runs = amounts.format_both(best.gpu_seconds, best.cost), display.plural(best.runs, "run")
    # what looks for a cause saves nothing by itself
    gain = f"{amount} lost in {runs}" if best.step in GROUPS["probe"] else f"up to {amount}, in {runs}"
    return f"First: {display.lower_first(shorten_name(best.title))}, {gain}{f'; then {pull}' if pull else ''}."
