"""The best groups, the effect of each setting, and statements about all steps."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpureport.comparison import figures as measured
from gpureport.comparison.across import across_findings
from gpureport.comparison.chain import Comparison
from gpureport.comparison.factors import Factor, step_folders
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, WORK_RATE, recorded_seconds
from gpureport.comparison.quality import MissingTarget, TimeToTarget, measure_time_to_target
from gpureport.comparison.study import BestGroup, FigureEffects, Study, select_focus
from gpureport.comparison.verdict import Verdict
from gpureport.recording import Run
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.head import Tile, VerdictCode
from gpureport.report.model.report_content import FindingCard
from gpureport.report.model.shapes import Fact, Table, build_table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.loss_sentence import describe_loss
from gpureport.report.sections.steps.figures import Figures, format_pair, name_metric, name_work
from gpureport.report.sections.steps.summary import build_step_tiles, name_value
from gpureport.report.wording import differences, display
from gpureport.report.wording.differences import build_change, format_percent_change, format_percent_range
from gpureport.report.wording.display import clean, duration, percent
from gpureport.report.wording.words import WORDS, choose_headline, name_some, say

_METRICS = {COST_PER_WORK: "cost", PER_WORK: "work", ENERGY_PER_WORK: "energy"}  # otherwise speed
_KINDS = {
    Verdict.BETTER: ("better", VerdictCode.BEST_GROUP),
    Verdict.UNCONFIRMED: ("unconfirmed", VerdictCode.BEST_GROUP_UNCONFIRMED),
    Verdict.NOT_ENOUGH_DATA: ("no_data", VerdictCode.BEST_GROUP_NOT_KNOWN),
}
_UNCLEAR = ("unclear", VerdictCode.NO_CLEAR_BEST_GROUP)
"""Key in `words.toml` and headline code for all other verdicts."""
_FORMS = Form.LONG | Form.PAPER
_NAME, _NAMED = 60, 6  # longest group name; most named settings
_ACROSS = {"scaling": "Scaling", "batch_size": "Batch size", "gpu_kinds": "GPU kinds"}
_SAME = 1e-9
_REPETITION = re.compile(r"(.*)(?<![^\W_])(?<!\.)(?:(?:r|rep|run)\d|[1-3])(?![^\W_.])[\d\W_]*(.*)", re.IGNORECASE)


def describe_study(study: Study, comparison: Comparison) -> tuple[str, VerdictCode | None, tuple[str, ...]]:
    best = study.best["cost"] or study.best["speed"]
    if best is None:
        return "", None, ()
    code = VerdictCode.BEST_GROUP_LOWER_QUALITY if best.lower_quality else _KINDS.get(best.verdict, _UNCLEAR)[1]
    told = (fact for fact in _list_best(study) if fact.name != WORDS["best_by.energy"])
    details = (*_list_effects(study, best, comparison), *(f"{fact.name}: {fact.text}" for fact in told))
    return choose_headline(list(_list_headlines(best, study, comparison))), code, details


def _list_effects(study: Study, best: BestGroup, comparison: Comparison) -> Iterator[str]:
    """Yield established effects of settings, unless the best group is clear or effects interact."""
    title = Figures(comparison).format(best.metric).title
    for found in study.effects:
        if found.metric == best.metric and best.verdict is not Verdict.BETTER and found.additive is not False:
            for head, _, change, ends, verdict in _list_rows(found):
                if verdict in {Verdict.BETTER.value, Verdict.WORSE.value}:
                    yield f"{title}, {head}: {change} ({ends}), {verdict}."


def _list_headlines(best: BestGroup, study: Study, comparison: Comparison) -> Iterator[str]:
    """Yield headlines about the best group, longest first."""
    values = next((group.values for group in study.groups if group.label == best.label), ())
    settings = [
        f"{clean(factor.name)} {clean(value)}" if factor.key else clean(value)
        for factor, value in zip(study.by, values, strict=False)
        if value is not None
    ]
    label = clean(best.label)
    names = (" with ".join(settings) or label, label)
    others = [value for step in comparison.steps if step.label != best.label and (value := step.value(best.metric))]
    worst = max(others, key=lambda value: abs(value - best.value), default=best.next_value)
    sizes = {"worst": percent(abs(best.value / worst - 1)), "next": percent(abs(best.change))}
    fields = {"first": _word(best, "first"), "ahead": _word(best, "ahead"), **sizes}
    for change in best.lower_quality[:1]:
        other, own = format_pair(change)
        for name in names:
            yield say("best.quality", name=name, metric=name_metric(change.name), own=own, other=other, **fields)
            yield say("best.quality_short", name=name, **fields)
    kind, _ = _KINDS.get(best.verdict, _UNCLEAR)
    keys = ("ahead_of_worst", "ahead_of_next") if kind == "better" else (kind,)
    yield from (say(f"best.{key}", name=name, **fields) for name in names for key in keys)
    yield say("best.name", name=display.shorten_middle(label, _NAME))


def _word(best: BestGroup, what: str) -> str:
    return WORDS[f"{what}.{_METRICS.get(best.metric, 'speed')}"]


def list_study(study: Study, comparison: Comparison) -> Iterator[Block]:
    left_out = {"each_run": study.varied.names, "repetitions": study.varied.repetitions}
    said = [say(f"study.{key}", names=_name_settings(names)) for key, names in left_out.items() if names]
    facts = [*_list_best(study), *(Fact(name="Left out", text=text) for text in said)]
    yield Block(forms=_FORMS, title="Best setting", level=3, facts=facts)
    rates = next((_list_changes(each) for each in study.effects if each.metric == WORK_RATE), [])
    for each in study.effects:
        products = [one * other for one, other in zip(_list_changes(each), rates, strict=False)]
        # omit a figure that only mirrors the rate
        is_told = products and all(abs(product - 1) < _SAME for product in products)
        if each.metric not in _METRICS or not is_told:
            title = Figures(comparison).format(each.metric).title
            table = _build_effects_table(each)
            yield Block(forms=_FORMS, title="What each setting did", label=title, level=3, table=table)


def _list_changes(effects: FigureEffects) -> list[float]:
    return [1 + (level.change or 0.0) for setting in effects.settings for level in setting.levels]


def _name_settings(factors: Sequence[Factor]) -> str:
    return name_some([clean(factor.name) for factor in factors], _NAMED)


def _list_best(study: Study) -> Iterator[Fact]:
    bests = list(filter(None, study.best.values()))
    yield from (Fact(name=_word(best, "best_by"), text=_describe_best(best)) for best in bests)
    if not bests:
        yield Fact(name="Not known", text=WORDS["study.no_best"])
    if any(best.metric == PER_WORK for best in bests) and any(factor.kind == "gpu" for factor in study.by):
        yield Fact(name="Not known", text=WORDS["study.no_prices"])
    if study.mixed_in:
        yield Fact(name="Also varied", text=say("study.mixed_in", names=_name_settings(study.mixed_in)))


def _describe_best(best: BestGroup) -> str:
    sign = 1.0 if best.change >= 0 else -1.0
    low, high = sorted(sign * end for end in best.interval or (0.0, 0.0))
    ends = f"{percent(low).removesuffix('%')} to {percent(high)}" if best.interval and low >= 0 else ""
    margin = say(
        "study.margin",
        size=percent(abs(best.change)),
        worse=percent(-low) if low < 0 else "",
        better=percent(high),
        ends=display.drop_equal_ends(ends),
        ahead=_word(best, "ahead"),
        next=clean(best.next),
    )
    rivals = _join(rival for rival in best.rivals if rival not in best.unconfirmed)
    said = say(
        f"study.{_KINDS.get(best.verdict, _UNCLEAR)[0]}",
        label=clean(best.label),
        margin=margin,
        tested=best.tested if best.tested > 1 else 0,
        rivals=rivals,
        worse=_join(best.unconfirmed) if rivals else "",
    )
    for change in best.lower_quality:
        other, own = format_pair(change)
        said += say(
            "study.quality",
            metric=name_metric(change.name),
            own=own,
            other=other,
            at=name_work(change),
            step=clean(change.base),
            unsure=change.verdict is Verdict.UNCONFIRMED,
        )
    return said + say("study.unknown", names=_join(best.unknown))


def _join(labels: Iterable[str]) -> str:
    return display.join_words([clean(label) for label in labels])


def _build_effects_table(effects: FigureEffects) -> Table:
    levels = [level for setting in effects.settings for level in setting.levels]
    intervals, is_free = sum(level.interval is not None for level in levels), effects.degrees >= 1
    notes = say(
        "study.effects",
        several=len(effects.settings) > 1,
        runs=effects.runs,
        missing=effects.missing_runs,
        full=not is_free,
        unconfirmed=not is_free and any(level.verdict is Verdict.UNCONFIRMED for level in levels),
        adjusted=intervals if is_free and intervals > 1 else 0,
        depends=effects.additive is False,
        unknown=effects.additive is None and len(effects.settings) > 1 and effects.degrees > 0,
    )
    columns = ("Setting", "Runs", "Change", "95% interval", "Verdict")
    return build_table(columns, _list_rows(effects), *notes.split("\n"), in_words=("Verdict",))


def _list_rows(effects: FigureEffects) -> Iterator[tuple[str, ...]]:
    relative = effects.relative
    for setting in effects.settings:
        name, (first, *levels) = clean(setting.factor.name), setting.levels
        if setting.confounded_with:
            runs = str(sum(level.runs for level in setting.levels))
            yield name, runs, "", "", f"changed together with {_name_settings(setting.confounded_with)}"
            continue
        for level in levels:
            size, ends, verdict = "", "", level.verdict.value if level.verdict else ""
            if level.change is not None:
                size = format_percent_change(1 + level.change) if relative else display.percentage_points(level.change)
            if level.interval is not None:
                ratios = [1 + end for end in level.interval]
                ends = format_percent_range(ratios) if relative else differences.format_points(level.interval)
            if level.verdict is Verdict.UNCONFIRMED and max(level.runs, first.runs) > 1:
                # several runs without repetitions are not “one run each”
                verdict = level.verdict.short
            head = f"{name}={name_value(level.value)} versus {name_value(first.value)}"
            yield head, str(level.runs), size, display.drop_equal_ends(ends), verdict


def build_study_tiles(comparison: Comparison, study: Study) -> tuple[Tile, ...]:
    found = []
    bests = list(filter(None, (study.best["cost"], study.best["speed"])))
    for best in bests:
        shown = Figures(comparison).format(best.metric)
        context = f"{clean(best.label)}; next {clean(best.next)}, {shown.value(best.next_value)}"
        found.append(Tile(label=shown.title, value=shown.value(best.value), context=context))
    step = select_focus(comparison, study)
    ranks = (f"the {_word(best, 'first')}" if best.verdict is Verdict.BETTER else "which comes first" for best in bests)
    whose = display.join(f"For {clean(step.label)}", next(ranks, ""), by=", ")
    others = build_step_tiles(replace(comparison, steps=(step,), deltas=()))[len(found) :]
    return *found, *(replace(tile, context=f"{whose}: {display.lower_first(tile.context)}") for tile in others)


def list_remaining(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None, cards: Sequence[FindingCard]
) -> Iterator[Fact]:
    step = select_focus(comparison, study)
    if recorded_seconds(step.analyses) < measured.SHORTEST_SECONDS or not (lost := describe_loss(step.analyses)):
        return
    yield Fact(name="Still lost", text=f"{clean(step.label)}: {display.lower_first(lost)}")
    own = [card for card in cards if inputs[card.run_index].step == clean(step.label) and card.lost_seconds]
    worst = max(own, key=lambda card: card.lost_seconds or 0.0, default=None)
    text = f"{worst.id}: {worst.title}, {worst.lost}" if worst else "No finding has a known loss."
    yield Fact(name="Largest left", text=text)


def list_across(comparison: Comparison, study: Study | None) -> Iterator[Fact]:
    steps, figures = comparison.steps, Figures(comparison)
    times = [found for step in steps if (found := measure_time_to_target(step, comparison.goals))]
    if times:
        said = "; ".join(f"{clean(each.step)}: {_describe_time(each, figures.currency)}" for each in times)
        yield Fact(name=f"Time to {name_metric(times[0].name)}={times[0].target:g}", text=f"{said}.")
    for each in across_findings(steps):
        kind, labels, text = each.finding.kind, each.steps, display.clean_sentence(each.finding.summary)
        if kind != "gpu_kinds" or labels == (select_focus(comparison, study).label,):
            # a finding about the batch size applies to all steps
            whose = "" if kind == "batch_size" else display.join_words([clean(label) for label in labels])
            yield Fact(name=_ACROSS[kind], text=display.join(whose, text, by=": "))


def build_target_tile(comparison: Comparison, study: Study | None) -> Tile | None:
    figures = Figures(comparison)
    found = measure_time_to_target(select_focus(comparison, study), comparison.goals)
    if found is None:
        return None
    before, _ = (None, None) if study else figures.ends(measured.SECONDS_TO_TARGET)
    spent = "" if found.gpu_seconds is None else display.gpu_time(found.gpu_seconds)
    missed = {run.missing for run in found.runs} == {MissingTarget.NOT_REACHED}
    not_known = "not reached" if missed else "not known"
    return Tile(
        label=f"Time to {name_metric(found.name)}={found.target:g}",
        before="" if before is None else duration(before),
        value=not_known if found.seconds is None else duration(found.seconds),
        change=None if study else build_change(figures.delta(measured.SECONDS_TO_TARGET)),
        context=spent or display.raise_first(_describe_time(found, figures.currency)),
    )


def _describe_time(found: TimeToTarget, currency: str) -> str:
    runs = len(found.runs)
    if found.seconds is None:
        missing = [run.missing for run in found.runs]
        counts = {reason.value: missing.count(reason) for reason in MissingTarget if reason in missing}
        parts = [f"{why}{f' in {count} of {runs} runs' if runs > 1 else ''}" for why, count in counts.items()]
        return display.join_words(parts)
    spent = [] if found.gpu_seconds is None else [display.gpu_time(found.gpu_seconds)]
    spent += [] if found.cost is None else [display.money(found.cost, clean(currency))]
    spent += [f"mean of {runs} runs"] if runs > 1 else []
    return f"{duration(found.seconds)} ({', '.join(spent)})"


def suggest_repetitions(runs: Sequence[Run]) -> str:
    marks = [_REPETITION.match(run.name) for run in runs if run.step is None]
    groups = {"folders": step_folders(runs), "names": [mark and mark[1] + mark[2] for mark in marks]}
    counts = {key: len({*names}) for key, names in groups.items() if None not in names and len(marks) == len(runs)}
    return next((say(f"across.{key}", n=n) for key, n in counts.items() if 1 < n < len(runs)), "")
