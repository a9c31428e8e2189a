"""What each step was worth, what the last one still loses and could gain, and what all steps together say."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.changes import ChangeKind, list_changes_of_job, summarize_by_kind
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SHORTEST_SECONDS,
    TRAINING_RATE,
    WORK_RATE,
    observed_seconds,
    recorded_seconds,
)
from gpureport.comparison.gains import (
    NOTABLE_RATIO,
    AdvisedChange,
    GainSince,
    RelativeChange,
    StepGain,
    build_gains,
    estimate_potential,
)
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study, select_focus
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.blocks import Block
from gpureport.report.model.findings import FindingCard
from gpureport.report.model.head import Change
from gpureport.report.model.shapes import Cell, Fact, build_table
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head.loss_sentence import describe_loss, describe_short_pauses
from gpureport.report.sections.steps.figures import Figures, describe_training_source
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.reasons import count_family, describe_interval, describe_left_out, describe_reason
from gpureport.report.wording.words import WORDS, say

_NAMED = 4
"""Kinds of GPU that are named."""
_LOSSES = 3
"""Classes of lost time that a sentence names."""
_STARTUP_SHARE, _LONG_SECONDS = 0.05, 600.0
"""Share of start-up that is large, and the length of a run in which that is no accident of a trial (pragmatic)."""


# --- the table of gains


class _Column(NamedTuple):
    """A figure of the table: its metric, what reads its change, a multiple or in per cent, and the words without it."""

    title: str
    metric: str
    read: Callable[[GainSince], RelativeChange | None]
    is_times: bool = False
    absent: str = ""


_COLUMNS = (
    _Column("Whole job", WORK_RATE, lambda since: since.whole_job, is_times=True),
    _Column("Training alone", TRAINING_RATE, lambda since: since.training, is_times=True, absent="no_training"),
    _Column("GPU time", PER_WORK, lambda since: since.gpu_time),
    _Column("Cost", COST_PER_WORK, lambda since: since.cost, absent="no_cost"),
    _Column("Energy", ENERGY_PER_WORK, lambda since: since.energy, absent="no_energy"),
)


def list_gains(comparison: Comparison, links: Sequence[StepPair]) -> Block:
    """Return the table of gains of a chain, a row a step, what the last step could gain at most, and advice taken."""
    gains = build_gains(comparison, links)
    columns = [each for each in _COLUMNS if any(_read(each, gain.since_before) for gain in gains)]
    figures, rows = Figures(comparison), []
    facts = [Fact(name="Potential", text=text)] if (text := _describe_potential(comparison)) else []
    for place, gain in enumerate(gains):
        step, since = gain.step, gain.since_before
        small = display.plural(len(step.runs), "run") if len(step.runs) > 1 else ""
        head = Cell(text=display.clean(step.label), small=small)
        rows.append([head, *(_format(each, since) if place else _show(figures, step, each.metric) for each in columns)])
        if place and (advice := _describe_advice(gain)):
            facts.append(Fact(name=f"Advice in {head.text}", text=advice))
    if len(gains) > 2:  # noqa: PLR2004 - of two steps the row above is the first
        head = Cell(text="All steps together", small=f"{rows[0][0].text} to {rows[-1][0].text}")
        rows.append([head, *(_format(each, gains[-1].since_first) for each in columns)])
        if any(gain.params_recorded for gain in gains[1:]):
            names = dict.fromkeys(_name_advice(change)["noun"] for gain in gains for change in gain.advised)
            n, whole = sum(bool(gain.advised) for gain in gains), len(gains) - 1
            text = say("gains.all_advised", some=n < whole, n=n, whole=whole, names=display.join_words(list(names)))
            facts.append(Fact(name="Advice in all", text=text))
    if not columns:
        return Block(anchor="gains", title="Gains", texts=[WORDS["gains.no_work"]], facts=facts)
    titles = ("Step", *(column.title for column in columns))
    table = build_table(titles, rows, *_list_notes(figures, gains, columns))
    return Block(anchor="gains", title="Gains", table=table, facts=facts)


def _read(column: _Column, since: GainSince | None) -> RelativeChange | None:
    return column.read(since) if since else None


def _show(figures: Figures, step: Step, metric: str) -> Cell:
    value, shown = step.value(metric), figures.format(metric, [step])
    if value is None:
        return Cell(text=display.NOT_RECORDED)
    text = shown.value(value)
    if metric == COST_PER_WORK:
        # an amount of money has its sign before it
        text = display.money(value / shown.scale.unit(value)[1], spending.currency(step.analyses))
    return Cell(text=f"{text} {shown.per}".rstrip())


def _format(column: _Column, since: GainSince | None) -> Cell:
    change = _read(column, since)
    if change is None:
        return Cell(text="not known")
    show, show_range = differences.format_percent_change, differences.format_percent_range
    if column.is_times:
        show, show_range = differences.format_times, differences.format_times_range
    comparisons = count_family(change.reason)
    ends = describe_interval(show_range(change.interval) if change.interval else "", comparisons)
    verdict = Change(text="", interval=ends, verdict=change.verdict.short, comparisons=comparisons)
    return Cell(text=show(change.ratio), change=verdict)


def _list_notes(figures: Figures, gains: Sequence[StepGain], columns: Sequence[_Column]) -> Iterator[str]:
    metrics, comparison = {column.metric for column in columns}, figures.comparison
    yield WORDS["gains.note"]
    if TRAINING_RATE in metrics:
        yield describe_training_source(comparison.steps)
    stopped = {run.run: run for delta in comparison.deltas for run in delta.left_out if run.stopped}
    if stopped:
        yield describe_left_out(list(stopped.values()))
    yield from (WORDS[f"gains.{each.absent}"] for each in _COLUMNS if each.absent and each not in columns)
    if COST_PER_WORK in metrics and not figures.currency:
        yield WORDS["gains.no_currency"]
    changes = [change for gain in gains for each in columns if (change := _read(each, gain.since_before))]
    if any(change.verdict is Verdict.UNCONFIRMED for change in changes):
        yield WORDS["gains.unconfirmed"]
    yield from [describe_reason(each.reason) for each in changes if count_family(each.reason)][:1]


def _describe_advice(gain: StepGain) -> str:
    """Return which changes an earlier finding had advised, and what became of it; empty where nothing changed."""
    fates = summarize_by_kind(gain.findings)
    advised = [
        say(
            "gains.advised",
            **_name_advice(change),
            others=len(list_changes_of_job(gain.changes)) > 1,
            gone=fates.get((change.kind, change.cause)) is ChangeKind.RESOLVED,
            stays=fates.get((change.kind, change.cause)) is ChangeKind.PERSISTING,
        )
        for change in gain.advised
    ]
    advised += [say("gains.perhaps", **_name_advice(change)) for change in gain.possibly_advised]
    # a param may have any name, so that it is never known that nothing was advised
    nothing = WORDS["gains.no_advice" if gain.params_recorded else "gains.no_params"] if gain.changes else ""
    return " ".join(advised) or nothing


def _name_advice(change: AdvisedChange) -> dict[str, str]:
    title, step = STEPS[change.name].title, display.clean(change.advised_in)
    finding = terms.kind_title(display.clean(change.kind), change.cause)
    return {"title": title, "noun": display.lower_first(title), "step": step, "finding": finding}


def _describe_potential(comparison: Comparison) -> str:
    last = comparison.steps[-1].analyses
    found = estimate_potential(comparison.remaining, last)
    step, pauses = display.clean(found.step), gpu_time.excessive_short_pauses(last)
    if found.lost_ratio is None:
        return say("potential.unseen", step=step)
    if found.unmeasured:
        kinds = display.join_words([display.lower_first(terms.kind_title(kind)) for kind in found.unmeasured])
        return say("potential.unmeasured", step=step, kinds=kinds)
    lost = found.lost_ratio + found.unseen_ratio
    if (lost < NOTABLE_RATIO and pauses is not None) or (found.at_most is None and found.pauses_ratio >= NOTABLE_RATIO):
        return say("potential.pauses", step=step, pauses=describe_short_pauses(pauses or found.pauses_ratio))
    if lost + found.pauses_ratio < NOTABLE_RATIO:
        return say("potential.little", step=step)
    if found.at_most is None:
        return say("potential.all", step=step, unseen=found.unseen_ratio >= NOTABLE_RATIO)

    def show(ratio: float) -> str:
        return display.percent(ratio) if ratio >= NOTABLE_RATIO else ""

    named = [loss for loss in found.losses if loss.lost_ratio >= NOTABLE_RATIO][:_LOSSES]
    parts = [f"{display.lower_first(terms.CLASSES[loss.name])} {show(loss.lost_ratio)}" for loss in named]
    parts += [say("potential.waits", share=show(found.pauses_ratio))]
    parts += [say("potential.rest", share=show(found.unseen_ratio))]
    startup = sum(loss.lost_ratio for loss in found.losses if loss.name == "startup")
    return say(
        "potential.most",
        times=differences.format_times(found.at_most),
        step=step,
        losses=display.join_words(list(filter(None, parts))),
        startup=startup >= _STARTUP_SHARE and observed_seconds(last) < _LONG_SECONDS,
    )


# --- what is still lost


def list_remaining(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None, cards: Sequence[FindingCard]
) -> Iterator[Fact]:
    """Yield what the last step of a chain or the best group still loses, and the finding that costs most there.

    Nothing where it is too short to tell.
    """
    step = select_focus(comparison, study)
    if recorded_seconds(step.analyses) < SHORTEST_SECONDS or not (lost := describe_loss(step.analyses)):
        return
    yield Fact(name="Still lost", text=f"{display.clean(step.label)}: {display.lower_first(lost)}")
    own = [card for card in cards if inputs[card.run_index].step == display.clean(step.label) and card.lost_seconds]
    worst = max(own, key=lambda card: card.lost_seconds or 0.0, default=None)
    text = f"{worst.id}: {worst.title}, {worst.lost}" if worst else "No finding says what it costs."
    yield Fact(name="Largest left", text=text)
