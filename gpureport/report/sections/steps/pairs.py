"""Gains of each step, the remaining potential, and each step compared with the previous one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison import figures as measured
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison, StepPair, compare, pair_steps
from gpureport.comparison.changes import ChangeKind, FindingChange, SetupChange, has_params, summarize_by_kind
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.blocks import merge_facts, merge_texts
from gpureport.report.model.blocks import Block
from gpureport.report.model.head import Change
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps import figures as printed
from gpureport.report.sections.steps.figures import Figures, Line
from gpureport.report.wording import differences, display, reasons, terms
from gpureport.report.wording.words import WORDS, name_some, say

_VALUE, _NAME = 22, 36
_LISTED = 5
_SILENT = {"different_runs", "observed_time", "coverage", "source_kind", "log_edges"}  # shown only if they fail
_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_LENGTHS = {"observed_time", "duration"}  # checks with a limit of 20 s
_AGREE = {False: "doubtful", None: "unknown"}
_FATES = {
    ChangeKind.RESOLVED: "Gone",
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Still there",
    ChangeKind.CANNOT_TELL: "Assessed in only one of the steps",
}
_Shown = Sequence[tuple[differences.FigureFormat, Delta]]
_LOSSES = 3  # maximum number of named losses
_STARTUP_SHARE, _LONG_SECONDS = 0.05, 600.0
"""Share of start-up that counts as large, and seconds below which a run counts as short."""


def list_pairs(comparison: Comparison, links: Sequence[StepPair]) -> Iterator[Block]:
    figures, first, noted, is_first = Figures(comparison), comparison.steps[0].label, set[str](), True
    labels = [f"{display.clean(link.base.label)} to {display.clean(link.step.label)}" for link in links]
    for link, label in zip(links, labels, strict=True):
        since = comparison.between(first, link.step.label) if link.base.label != first else ()
        sides = link.base, link.step
        shown = figures.list_pair(sides, link.deltas)
        doubtful = {("hardware", check.check) for check in link.doubts}
        lines = [*_list_lines(shown), *printed.list_quality_lines(link.quality)]
        beyond = {line.metric: line for line in _list_lines(figures.list_pair(sides, since))} if since else {}
        beyond |= {line.metric: line for line in printed.list_quality_lines(link.quality_since_first)} if since else {}
        notes = [*_list_notes(shown, sides), WORDS["quality.note"] if link.quality else ""]
        table = _build_table(lines, beyond, [note for note in notes if note not in noted])
        noted.update(notes)
        yield Block(title=label, level=3, warnings=[*map(_describe_doubt, link.doubts)], table=table)
        changes = [each for each in link.changes if (each.kind, each.key) not in doubtful]
        unchanged = WORDS["gains.unchanged"] if has_params(*sides) or not is_first else WORDS["gains.unrecorded"]
        changed = [*_list_changes(changes)] or [Fact(name="", text=unchanged)] * (has_params(*sides) or is_first)
        yield Block(title="Changed", level=4, facts=changed)
        # verdicts are in the table
        why = [Fact(name=line.title, text=line.why) for line in lines if line.why]
        if why:
            yield Block(title="How sure", level=4, texts=[WORDS["precision.note"]] if is_first else [], facts=why)
        found = [*_list_fates(link.finding_changes)] or [Fact(name="", text="Neither step has any.")]
        yield Block(title="Findings", level=4, facts=found)
        is_first = False
    unknown = []
    for link, label in zip(links, labels, strict=True):
        # figures do not depend on the time zone
        checks = [each.check for each in link.comparability if each.comparable is None and each.check != "timezone"]
        names = display.join_words([WORDS[f"check.{check}"] for check in checks])
        unknown.append((label, [say("agree.names", names=names)] if names else []))
    yield Block(
        title="Recorded in the same way, except where marked",
        level=3,
        texts=merge_texts(unknown),
        facts=merge_facts(
            [(label, [*_list_checks(link.comparability)]) for label, link in zip(labels, links, strict=True)]
        ),
    )


def compare_with_earlier(
    title: str,
    earlier: Sequence[SampledRun],
    later: Sequence[SampledRun],
    goals: TrainingGoals,
    *,
    is_baseline: bool = False,
) -> Block:
    comparison = compare([*(run.in_step("before") for run in earlier), *(run.in_step("after") for run in later)], goals)
    (link,) = pair_steps(comparison)
    sides = link.base, link.step
    shown = Figures(comparison).list_pair(sides, link.deltas)
    decides = any(delta.verdict is Verdict.UNCONFIRMED and max(delta.runs) > 1 for delta in link.deltas)
    why = [say("pair.rule", scatter=reasons.SINGLE_RUN_SCATTER)] if is_baseline and decides else []
    # explain verdicts in the table
    lines = [line._replace(verdict=replace(line.verdict, small=line.why)) for line in _list_lines(shown)]
    table = _build_table(lines, {}, _list_notes(shown, sides))
    return Block(title=title, table=table, texts=(*map(_describe_doubt, link.doubts), *why))


def _list_notes(shown: _Shown, steps: Sequence[Step]) -> Iterator[str]:
    if any(delta.window == "steady" for _, delta in shown):
        yield WORDS["pair.settled"]
    yield printed.describe_prices(steps, [delta.metric for _, delta in shown])


def _list_lines(shown: _Shown) -> Iterator[Line]:
    """Yield a line per figure. Excluded runs and repeated reasons are named only once."""
    named: set[str] = set()
    first: dict[Reason, str] = {}
    for each, delta in shown:
        before, after, size = each.format_sides(delta)
        reason = delta.reason if delta.reason and delta.reason.kind is not ReasonKind.NOT_REPEATED else None
        why = display.clean_sentence(reasons.describe_reason(reason))
        precision = list(each.describe_precision(delta))
        if reason and delta.verdict is Verdict.NOT_ENOUGH_DATA and not precision:
            why = f"Same as for {first[reason]}." if reason in first else why
            first.setdefault(reason, each.noun)
        left_out = reasons.describe_left_out([run for run in delta.left_out if run.run not in named])
        named.update(run.run for run in delta.left_out)
        yield Line(
            metric=delta.metric,
            title=f"{each.title}{differences.ONCE_SETTLED if delta.window == 'steady' else ''}",
            before=before,
            after=after,
            change=Cell(text=size, small=each.format_interval(delta), value=delta.difference),
            verdict=Cell(text=differences.describe_verdict(delta)),
            why=display.join(why, left_out, *precision, by=" "),
        )


def _build_table(lines: Sequence[Line], since: Mapping[str, Line], notes: Iterable[str]) -> Table:
    rows: list[list[Cell | str]] = []
    for line in lines:
        row: list[Cell | str] = [line.title, line.before, line.after]
        for each in (line, since.get(line.metric)) if since else (line,):
            row += [each.change, each.verdict] if each else ["", ""]
        rows.append(row)
    columns = ("", "Before", "After", "Difference", "Verdict", "Since first", "Verdict since first")
    return build_table(columns if since else columns[:5], rows, *notes, in_words=("Verdict", "Verdict since first"))


def _list_changes(changes: Sequence[SetupChange]) -> Iterator[Fact]:
    for change in changes:
        if not change.of_one_run:
            name = differences.name_setting(change)
            name = name if change.kind == "hardware" else f"{change.kind} {name}"
            values = map(differences.describe_values, (change.values_before, change.values_after))
            yield Fact(name=display.shorten_middle(name, _NAME), text=", then ".join(values))
    if names := [differences.name_setting(change) for change in changes if change.of_one_run]:
        yield Fact(name="Per run", text=f"{name_some(names, _LISTED)}: different in every run.")


def _list_checks(checks: Sequence[Comparability]) -> Iterator[Fact]:
    for check in checks:
        if check.check not in _SILENT or not check.comparable:
            before, after = (display.shorten_middle(text, _VALUE) for text in _format_sides(check))
            both = before if before == after else f"{before}, then {after}"
            doubt = "" if check.comparable else f"; comparability {_AGREE[check.comparable]}"
            yield Fact(name=WORDS[f"check.{check.check}"], text=f"{both}{doubt}")


def _format_sides(check: Comparability) -> Iterator[str]:
    for value in (check.before, check.after):
        if value is None:
            yield _ABSENT.get(check.check, display.NOT_RECORDED)
        elif isinstance(value, str):
            yield display.clean(value)
        elif check.check in _LENGTHS:
            yield display.duration_below(value, measured.SHORTEST_REPETITION_SECONDS)
        else:
            yield display.quantity(value, check.unit)


def _describe_doubt(check: Comparability) -> str:
    return f"{WORDS[f'check.{check.check}']}: {' versus '.join(_format_sides(check))}. {reasons.describe_check(check)}"


def _list_fates(changes: Sequence[FindingChange]) -> Iterator[Fact]:
    fates = summarize_by_kind(changes)
    for fate, name in _FATES.items():
        titles = (terms.kind_title(display.clean(kind), cause) for (kind, cause), each in fates.items() if each is fate)
        if named := dict.fromkeys(titles):
            yield Fact(name=name, text="; ".join(named))
    if why := dict.fromkeys(display.clean(reasons.describe_unknown_change(each)) for each in changes if each.unknown):
        yield Fact(name="Not known", text="; ".join(why))


class _Column(NamedTuple):
    title: str
    metric: str
    field: str
    is_times: bool = False
    absent: str = ""


_COLUMNS = (
    _Column("Whole job", measured.WORK_RATE, "whole_job", is_times=True),
    _Column("Training alone", measured.TRAINING_RATE, "training", is_times=True, absent="no_training"),
    _Column("GPU time", measured.PER_WORK, "gpu_time"),
    _Column("Cost", measured.COST_PER_WORK, "cost", absent="no_cost"),
    _Column("Energy", measured.ENERGY_PER_WORK, "energy", absent="no_energy"),
)


def list_gains(comparison: Comparison, links: Sequence[StepPair]) -> Block:
    found = gains.build_gains(comparison, links)
    columns = [each for each in _COLUMNS if any(_read(each, gain.since_before) for gain in found)]
    figures, rows = Figures(comparison), []
    facts = [Fact(name="Potential", text=text)] if (text := _describe_potential(comparison)) else []
    for place, gain in enumerate(found):
        step, since = gain.step, gain.since_before
        small = display.plural(len(step.runs), "run") if len({len(each.step.runs) for each in found}) > 1 else ""
        head = Cell(text=display.clean(step.label), small=small)
        rows.append([head, *(_format(each, since) if place else _show(figures, step, each.metric) for each in columns)])
        advice = _describe_advice(gain) if place else ""
        # with several steps, list only those that followed advice
        if advice and (len(found) == 2 or advice != WORDS["gains.no_advice"]):  # noqa: PLR2004 - two
            facts.append(Fact(name=f"Advice in {head.text}", text=advice))
    if len(found) > 2:  # noqa: PLR2004 - with two steps the row above is the first
        head = Cell(text="All steps together", small=f"{rows[0][0].text} to {rows[-1][0].text}")
        rows.append([head, *(_format(each, found[-1].since_first) for each in columns)])
    if not columns:
        return Block(anchor="gains", title="Gains", texts=[WORDS["gains.no_work"]], facts=facts)
    titles = ("Step", *(column.title for column in columns))
    table = build_table(titles, rows, *_list_gain_notes(figures, found, columns))
    return Block(anchor="gains", title="Gains", table=table, facts=facts)


def _read(column: _Column, since: gains.GainSince | None) -> gains.RelativeChange | None:
    return getattr(since, column.field) if since else None


def _show(figures: Figures, step: Step, metric: str) -> Cell:
    value, shown = step.value(metric), figures.format(metric, [step])
    if value is None:
        return Cell(text=display.NOT_RECORDED)
    text = shown.value(value)
    if metric == measured.COST_PER_WORK:
        # the currency precedes an amount
        text = display.money(value / shown.scale.unit(value)[1], spending.currency(step.analyses))
    return Cell(text=f"{text} {shown.per}".rstrip())


def _format(column: _Column, since: gains.GainSince | None) -> Cell:
    change = _read(column, since)
    if change is None:
        return Cell(text="not known")
    show, show_range = differences.format_percent_change, differences.format_percent_range
    if column.is_times:
        show, show_range = differences.format_times, differences.format_times_range
    comparisons = reasons.count_family(change.reason)
    ends = reasons.describe_interval(show_range(change.interval) if change.interval else "", comparisons)
    verdict = Change(text="", interval=ends, verdict=change.verdict.short, comparisons=comparisons)
    return Cell(text=show(change.ratio), change=verdict)


def _list_gain_notes(figures: Figures, found: Sequence[gains.StepGain], columns: Sequence[_Column]) -> Iterator[str]:
    metrics, comparison = {column.metric for column in columns}, figures.comparison
    yield WORDS["gains.note"]
    if measured.TRAINING_RATE in metrics:
        yield printed.describe_training_source(comparison.steps)
    stopped = {run.run: run for delta in comparison.deltas for run in delta.left_out if run.stopped}
    if stopped:
        yield reasons.describe_left_out(list(stopped.values()))
    yield from (WORDS[f"gains.{each.absent}"] for each in _COLUMNS if each.absent and each not in columns)
    if measured.COST_PER_WORK in metrics and not figures.currency:
        yield WORDS["gains.no_currency"]
    changes = [change for gain in found for each in columns if (change := _read(each, gain.since_before))]
    if any(change.verdict is Verdict.UNCONFIRMED for change in changes):
        yield WORDS["gains.unconfirmed"]
    yield from [reasons.describe_reason(each.reason) for each in changes if reasons.count_family(each.reason)][:1]


def _describe_advice(gain: gains.StepGain) -> str:
    fates = summarize_by_kind(gain.findings)
    advised = [
        say(
            "gains.advised",
            **_name_advice(change),
            others=len(gain.changes) > 1,
            gone=fates.get((change.kind, change.cause)) is ChangeKind.RESOLVED,
            stays=fates.get((change.kind, change.cause)) is ChangeKind.PERSISTING,
        )
        for change in gain.advised
    ]
    advised += [say("gains.perhaps", **_name_advice(change)) for change in gain.possibly_advised]
    # a param may have any name, so a change may follow advice unnoticed
    nothing = WORDS["gains.no_advice" if gain.params_recorded else "gains.no_params"] if gain.changes else ""
    return " ".join(advised) or nothing


def _name_advice(change: gains.AdvisedChange) -> dict[str, str]:
    title, step = STEPS[change.name].title, display.clean(change.advised_in)
    finding = terms.kind_title(display.clean(change.kind), change.cause)
    return {"title": title, "noun": display.lower_first(title), "step": step, "finding": finding}


def _describe_potential(comparison: Comparison) -> str:
    last = comparison.steps[-1].analyses
    found = gains.estimate_potential(comparison.remaining, last)
    step, pauses = display.clean(found.step), gpu_time.excessive_short_pauses(last)
    if found.lost_ratio is None:
        return say("potential.unseen", step=step)
    if found.unmeasured:
        kinds = display.join_words([display.lower_first(terms.kind_title(kind)) for kind in found.unmeasured])
        return say("potential.unmeasured", step=step, kinds=kinds)
    lost, least = found.lost_ratio + found.unseen_ratio, gains.NOTABLE_RATIO
    if (lost < least and pauses is not None) or (found.at_most is None and found.pauses_ratio >= least):
        return say("potential.pauses", step=step, pauses=display.percent(pauses or found.pauses_ratio))
    if lost + found.pauses_ratio < least:
        return say("potential.little", step=step)
    if found.at_most is None:
        return say("potential.all", step=step, unseen=found.unseen_ratio >= least)

    def show(ratio: float) -> str:
        return display.percent(ratio) if ratio >= least else ""

    named = [loss for loss in found.losses if loss.lost_ratio >= least][:_LOSSES]
    parts = [f"{display.lower_first(terms.CLASSES[loss.name])} {show(loss.lost_ratio)}" for loss in named]
    parts += [say("potential.waits", share=show(found.pauses_ratio))]
    parts += [say("potential.rest", share=show(found.unseen_ratio))]
    startup = sum(loss.lost_ratio for loss in found.losses if loss.name == "startup")
    return say(
        "potential.most",
        times=differences.format_times(found.at_most),
        step=step,
        losses=display.join_words(list(filter(None, parts))),
        startup=startup >= _STARTUP_SHARE and measured.observed_seconds(last) < _LONG_SECONDS,
    )
