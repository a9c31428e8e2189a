"""The table of gains: what each step was worth, what it changed, and whether that had been advised."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.changes import ChangeKind, summarize_by_kind
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.gains import AdvisedChange, GainSince, RelativeChange, StepGain, build_gains
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.setup import list_changes_of_job
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.comparison_parts import GainCell, GainRow, GainTable
from gpureport.report.model.shapes import Cell, Fact
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps import across, quality
from gpureport.report.sections.steps.figures import Figures, describe_training_source
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.display import drop_equal_ends
from gpureport.report.wording.reasons import count_family, describe_interval, describe_left_out, describe_reason
from gpureport.report.wording.words import WORDS, say


class _Column(NamedTuple):
    """A figure of the table: of a single step the metric, of a change what reads it, as a multiple or in per cent."""

    title: str
    metric: str
    read: Callable[[GainSince], RelativeChange | None]
    is_times: bool = False


_COLUMNS = (
    _Column("Whole job", WORK_RATE, lambda since: since.whole_job, is_times=True),
    _Column("Training alone", TRAINING_RATE, lambda since: since.training, is_times=True),
    _Column("GPU time", PER_WORK, lambda since: since.gpu_time),
    _Column("Cost", COST_PER_WORK, lambda since: since.cost),
    _Column("Energy", ENERGY_PER_WORK, lambda since: since.energy),
)
_ABSENT = {TRAINING_RATE: "no_training", COST_PER_WORK: "no_cost", ENERGY_PER_WORK: "no_energy"}
"""What is said where no step has a figure."""
_FATES = {
    ChangeKind.RESOLVED: "Gone",
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Still there",
    ChangeKind.CANNOT_TELL: "Assessed in only one of the two",
}


def build_gain_table(comparison: Comparison, links: Sequence[StepPair]) -> GainTable:
    """Return the table of gains of a chain, and what the last step could gain at most."""
    gains = build_gains(comparison, links)
    columns = [each for each in _COLUMNS if any(_read(each, gain.since_before) for gain in gains)]
    first, last, figures = gains[0].step, gains[-1], Figures(comparison)
    rows = [GainRow(head=_head(first), cells=tuple(_show(figures, first, each.metric) for each in columns), facts=())]
    for place, gain in enumerate(gains[1:]):
        facts = [*(_list_since_first(gain, columns) if place else ()), *_list_facts(gain)]
        cells = tuple(_format(each, gain.since_before) for each in columns)
        rows.append(GainRow(head=_head(gain.step), cells=cells, facts=tuple(facts)))
    overall = tuple(_list_overall_facts(gains))
    if len(gains) > 2 and (columns or overall):  # noqa: PLR2004 - of two steps the row above is the first
        small = f"{display.clean(first.label)} to {display.clean(last.step.label)}"
        cells = tuple(_format(each, last.since_first) for each in columns)
        rows.append(GainRow(head=Cell(text="All steps together", small=small), cells=cells, facts=overall))
    return GainTable(
        columns=("Step", *(column.title for column in columns)),
        rows=tuple(rows),
        potential=across.describe_potential(comparison),
        notes=tuple(_list_notes(figures, gains, columns)),
    )


def _read(column: _Column, since: GainSince | None) -> RelativeChange | None:
    return column.read(since) if since else None


def _head(step: Step) -> Cell:
    small = display.plural(len(step.runs), "run") if len(step.runs) > 1 else ""
    return Cell(text=display.clean(step.label), small=small)


def _show(figures: Figures, step: Step, metric: str) -> GainCell:
    """Return a figure of the first step."""
    value, shown = step.value(metric), figures.format(metric, [step])
    if value is None:
        return GainCell(text=display.NOT_RECORDED)
    text = shown.value(value)
    if metric == COST_PER_WORK:
        # an amount of money has its sign before it
        text = display.money(value / shown.scale.unit(value)[1], spending.currency(step.analyses))
    return GainCell(text=f"{text} {shown.per}".rstrip())


def _format(column: _Column, since: GainSince | None) -> GainCell:
    change = _read(column, since)
    if change is None:
        return GainCell(text="not known")
    show, show_range = differences.format_percent_change, differences.format_percent_range
    if column.is_times:
        show, show_range = differences.format_times, differences.format_times_range
    comparisons = count_family(change.reason)
    interval = drop_equal_ends(show_range(change.interval)) if change.interval else ""
    return GainCell(
        text=show(change.ratio),
        interval=describe_interval(interval, comparisons),
        verdict=change.verdict.short,
        comparisons=comparisons,
        established=change.verdict.is_established,
    )


def _list_notes(figures: Figures, gains: Sequence[StepGain], columns: Sequence[_Column]) -> Iterator[str]:
    if not columns:
        yield WORDS["gains.no_work"]
        return
    metrics, comparison = {column.metric for column in columns}, figures.comparison
    yield WORDS["gains.note"]
    if TRAINING_RATE in metrics:
        yield describe_training_source(comparison.steps)
    stopped = {run.run: run for delta in comparison.deltas for run in delta.left_out if run.stopped}
    if stopped:
        yield describe_left_out(list(stopped.values()))
    yield from (WORDS[f"gains.{words}"] for metric, words in _ABSENT.items() if metric not in metrics)
    if COST_PER_WORK in metrics and not figures.currency:
        yield WORDS["gains.no_currency"]
    changes = [change for gain in gains for each in columns if (change := _read(each, gain.since_before))]
    if any(change.verdict is Verdict.UNCONFIRMED for change in changes):
        yield WORDS["gains.unconfirmed"]
    yield from [describe_reason(each.reason) for each in changes if count_family(each.reason)][:1]


def _list_since_first(gain: StepGain, columns: Sequence[_Column]) -> Iterator[Fact]:
    """Yield how many times as fast a step is as the first one, with the verdicts, where that is known."""
    changes = [
        f"{display.lower_first(each.title)} {differences.format_times(change.ratio)} as fast, {change.verdict.short}"
        for each in columns
        if each.is_times and (change := _read(each, gain.since_first))
    ]
    if changes:
        yield Fact(name="Since first", text="; ".join(changes))


def _list_facts(gain: StepGain) -> Iterator[Fact]:
    """Yield what changed, quality, findings, and what had been advised, of a step against the one before it."""
    listed = differences.list_setup_changes(gain.changes)
    yield Fact(name="Changed", text=say("gains.changed", changes=listed, recorded=gain.params_recorded))
    if gain.quality:
        yield _describe_quality(gain.quality)
    fates = summarize_by_kind(gain.findings)
    if fates:
        said = []
        for fate, name in _FATES.items():
            titles = dict.fromkeys(_name_finding(*key) for key, each in fates.items() if each is fate)
            said += [f"{name}: {'; '.join(titles)}."] if titles else []
        yield Fact(name="Findings", text=" ".join(said))
    advised = [
        say(
            "gains.advised",
            **_describe_advice(change),
            others=len(list_changes_of_job(gain.changes)) > 1,
            outcome=_describe_outcome(gain),
            gone=fates.get((change.kind, change.cause)) is ChangeKind.RESOLVED,
            stays=fates.get((change.kind, change.cause)) is ChangeKind.PERSISTING,
        )
        for change in gain.advised
    ]
    advised += [say("gains.perhaps", **_describe_advice(change)) for change in gain.possibly_advised]
    if advised or gain.changes:
        # a param may have any name, so that it is never known that nothing was advised
        nothing = WORDS["gains.no_advice" if gain.params_recorded else "gains.no_params"]
        yield Fact(name="Advised", text=" ".join(advised) or nothing)


def _describe_advice(change: AdvisedChange) -> dict[str, str]:
    title, finding = STEPS[change.name].title, _name_finding(change.kind, change.cause)
    return {
        "title": title,
        "noun": display.lower_first(title),
        "step": display.clean(change.advised_in),
        "finding": finding,
    }


def _name_finding(kind: str, cause: str | None) -> str:
    return terms.kind_title(display.clean(kind), cause)


def _list_overall_facts(gains: Sequence[StepGain]) -> Iterator[Fact]:
    """Yield quality and what had been advised, of all steps together."""
    if gains[-1].quality_since_first:
        yield _describe_quality(gains[-1].quality_since_first)
    if any(gain.params_recorded for gain in gains[1:]):
        names = dict.fromkeys(_describe_advice(change)["noun"] for gain in gains for change in gain.advised)
        n, whole = sum(bool(gain.advised) for gain in gains), len(gains) - 1
        text = say("gains.all_advised", some=n < whole, n=n, whole=whole, names=display.join_words(list(names)))
        yield Fact(name="Advised", text=text)


def _describe_quality(changes: Sequence[QualityChange]) -> Fact:
    parts = []
    for change in changes:
        values = f"{quality.name_metric(change.name)} {' → '.join(quality.format_pair(change))}"
        known = change.before.runs and change.after.runs
        parts.append(f"{values}{quality.name_work(change)}{f', {change.verdict.short}' if known else ''}")
    return Fact(name="Quality", text="; ".join(parts))


def _describe_outcome(gain: StepGain) -> str:
    """Return what a step was worth: of the whole job, and where that is not established what else is."""
    since = gain.since_before
    job = since and since.gpu_time
    if since is None or (job is None and since.training is None):
        return WORDS["gains.no_outcome"]
    is_open = job is None or not job.verdict.is_established
    outcomes = []
    if job:
        outcomes.append(f"GPU time {differences.format_percent_change(job.ratio)}, {job.verdict.short}")
    if since.training and (job is None or (is_open and since.training.verdict.is_established)):
        times = differences.format_times(since.training.ratio)
        outcomes.append(f"training alone {times} as fast, {since.training.verdict.short}")
    if since.energy and job and is_open and since.energy.verdict.is_established:
        outcomes.append(f"energy {differences.format_percent_change(since.energy.ratio)}, {since.energy.verdict.short}")
    fell = [quality.name_metric(change.name) for change in gain.quality if change.fell]
    return "; ".join([*outcomes, *([f"but worse: {display.join_words(fell)}"] if fell else [])])
