"""Groups beside each other: the best of them, what each setting did, and the figures at the head."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.comparison.chain import Comparison
from gpureport.comparison.effects import FigureEffects, SettingEffect
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import COST_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.study import BestGroup, Study
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.head import Tile, VerdictCode
from gpureport.report.model.shapes import Cell, Fact, ReportSection, Row, Table
from gpureport.report.sections.steps.charts import name_value
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.sections.steps.quality import format_pair, name_metric, name_work
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.headlines import choose_headline
from gpureport.report.wording.display import drop_equal_ends
from gpureport.report.wording.words import WORDS, say

_METRICS = {COST_PER_WORK: "cost", PER_WORK: "work"}
"""What a group is best by in `words.toml`, otherwise speed."""
_CODES = {
    Verdict.BETTER: VerdictCode.BEST_GROUP,
    Verdict.UNCONFIRMED: VerdictCode.BEST_GROUP_UNCONFIRMED,
    Verdict.NOT_ENOUGH_DATA: VerdictCode.BEST_GROUP_NOT_KNOWN,
}
_NAME, _NAMED = 60, 6
"""Most characters of a group in the shortest headline, and most settings that are named."""
_SAME = 1e-9
"""Logarithm below which two figures say the same."""


def describe_study(study: Study, comparison: Comparison) -> tuple[str, VerdictCode | None, tuple[str, ...]]:
    """Return the best group in a sentence and in one word, and what to know beside it; empty where none is known."""
    best = study.best_by_cost or study.best_by_speed
    if best is None:
        return "", None, ()
    code = _CODES.get(best.verdict, VerdictCode.NO_CLEAR_BEST_GROUP)
    code = VerdictCode.BEST_GROUP_LOWER_QUALITY if best.lower_quality else code
    details = tuple(f"{fact.name}: {fact.text}" for fact in _list_best(study))
    return choose_headline(list(_list_headlines(best, study, comparison))), code, details


def _list_headlines(best: BestGroup, study: Study, comparison: Comparison) -> Iterator[str]:
    """Yield headlines on the best group, the fullest first: `batch 256 with 8 workers is cheapest: 31% cheaper …`."""
    values = next((group.values for group in study.groups if group.label == best.label), ())
    settings = [
        f"{display.clean(factor.name)} {display.clean(value)}" if factor.key else display.clean(value)
        for factor, value in zip(study.by, values, strict=False)
        if value is not None
    ]
    label = display.clean(best.label)
    names = (" with ".join(settings) or label, label)
    others = [value for step in comparison.steps if step.label != best.label and (value := step.value(best.metric))]
    worst = max(others, key=lambda value: abs(value - best.value), default=best.next_value)
    sizes = {"worst": display.percent(abs(best.value / worst - 1)), "next": display.percent(abs(best.change))}
    fields = {"first": _word(best, "first"), "ahead": _word(best, "ahead"), **sizes}
    for name in names if best.lower_quality else ():
        other, own = format_pair(best.lower_quality[0])
        metric = name_metric(best.lower_quality[0].name)
        yield say("best.quality", name=name, metric=metric, own=own, other=other, **fields)
        yield say("best.quality_short", name=name, **fields)
    better = ("best.ahead_of_worst", "best.ahead_of_next")
    keys = {
        Verdict.UNCONFIRMED: ("best.unconfirmed",),
        Verdict.NOT_ENOUGH_DATA: ("best.no_data",),
        Verdict.BETTER: better,
    }
    for name in names:
        yield from (say(key, name=name, **fields) for key in keys.get(best.verdict, ("best.unclear",)))
    yield say("best.name", name=display.shorten_middle(label, _NAME))


def _word(best: BestGroup, what: str) -> str:
    return WORDS[f"{what}.{_METRICS.get(best.metric, 'speed')}"]


def build_study_sections(study: Study, comparison: Comparison) -> Iterator[ReportSection]:
    """Yield the best groups, then a table of effects for each figure that says something of its own."""
    facts = list(_list_best(study))
    for names, key in ((study.varied.names, "study.each_run"), (study.varied.repetitions, "study.repetitions")):
        if names:
            facts.append(Fact(name="Left out", text=say(key, names=_name_settings(names))))
    if facts:
        yield ReportSection(heading="Best setting", facts=tuple(facts))
    rate = next((each for each in study.effects if each.metric == WORK_RATE), None)
    for each in study.effects:
        if each.metric not in {COST_PER_WORK, PER_WORK} or rate is None or not _is_inverse(each, rate):
            title = Figures(comparison).format(each.metric).title
            yield ReportSection(heading="What each setting did", label=title, table=_build_effects_table(each))


def _name_settings(factors: Sequence[Factor]) -> str:
    """Return the names of settings, of many the first few and how many more there are."""
    names = [display.clean(factor.name) for factor in factors]
    more = len(names) - _NAMED
    return display.join_words([*names[:_NAMED], f"{more} more"] if more > 1 else names)


def _list_best(study: Study) -> Iterator[Fact]:
    """Yield the group that takes the least money or GPU time and the fastest one, and what else varied."""
    bests = [best for best in (study.best_by_cost, study.best_by_speed) if best]
    for best in bests:
        yield Fact(name=_word(best, "best_by"), text=_describe_best(best))
    if study.best_by_cost and study.best_by_cost.metric == PER_WORK and "gpu" in {factor.kind for factor in study.by}:
        yield Fact(name="Not known", text=WORDS["study.no_prices"])
    if not bests:
        yield Fact(name="Not known", text=WORDS["study.no_best"])
    if study.mixed_in:
        yield Fact(name="Also varied", text=say("study.mixed_in", names=_name_settings(study.mixed_in)))


def _describe_best(best: BestGroup) -> str:
    """Return the best group with its margin over the next, or that none is clear."""
    sign = 1.0 if best.change >= 0 else -1.0
    low, high = sorted(sign * end for end in best.interval or (0.0, 0.0))
    ends = f"{display.percent(low).removesuffix('%')} to {display.percent(high)}" if best.interval and low >= 0 else ""
    margin = say(
        "study.margin",
        size=display.percent(abs(best.change)),
        worse=display.percent(-low) if low < 0 else "",
        better=display.percent(high),
        ends=drop_equal_ends(ends),
        ahead=_word(best, "ahead"),
        next=display.clean(best.next),
    )
    known = {Verdict.BETTER: "better", Verdict.UNCONFIRMED: "unconfirmed", Verdict.NOT_ENOUGH_DATA: "no_data"}
    rivals = [display.clean(rival) for rival in best.rivals if rival not in best.unconfirmed]
    said = say(
        f"study.{known.get(best.verdict, 'unclear')}",
        label=display.clean(best.label),
        margin=margin,
        tested=best.tested if best.tested > 1 else 0,
        rivals=display.join_words(rivals),
        worse=display.join_words([display.clean(label) for label in best.unconfirmed]) if rivals else "",
    )
    for change in best.lower_quality:
        other, own = format_pair(change)
        step, unsure = display.clean(change.base), change.verdict is Verdict.UNCONFIRMED
        fields = {"metric": name_metric(change.name), "own": own, "other": other, "at": name_work(change)}
        said += say("study.quality", **fields, step=step, unsure=unsure)
    return said + say("study.unknown", names=display.join_words([display.clean(label) for label in best.unknown]))


def _is_inverse(one: FigureEffects, other: FigureEffects) -> bool:
    """Return whether every change of one figure undoes that of the other."""
    changes, twins = (
        [level.change or 0.0 for setting in each.settings for level in setting.levels] for each in (one, other)
    )
    return len(changes) == len(twins) and all(
        abs((1 + change) * (1 + twin) - 1) < _SAME for change, twin in zip(changes, twins, strict=True)
    )


def _build_effects_table(effects: FigureEffects) -> Table:
    """Return one row a value of each setting, against the first value of that setting."""
    rows = [row for setting in effects.settings for row in _list_rows(setting, relative=effects.relative)]
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
    return Table(
        columns=("Setting", "Runs", "Change", "95% interval", "Verdict"),
        numeric=(True, True, True, False),
        rows=tuple(Row(head=Cell(text=head), cells=tuple(Cell(text=text) for text in texts)) for head, *texts in rows),
        notes=tuple(notes.split("\n")),
    )


def _list_rows(setting: SettingEffect, *, relative: bool) -> Iterator[tuple[str, ...]]:
    """Yield the cells of rows: setting, runs, change, interval and verdict."""
    name, (first, *levels) = display.clean(setting.factor.name), setting.levels
    if setting.confounded_with:
        runs = str(sum(level.runs for level in setting.levels))
        yield name, runs, "", "", f"changed together with {_name_settings(setting.confounded_with)}"
        return
    for level in levels:
        change, ends, verdict = "", "", level.verdict.value if level.verdict else ""
        if level.change is not None:
            change = format_percent_change(1 + level.change) if relative else display.percentage_points(level.change)
        if level.interval is not None and relative:
            ends = format_percent_range((1 + level.interval[0], 1 + level.interval[1]))
        elif level.interval is not None:
            low, high = map(display.percentage_points, level.interval)
            ends = f"{low.partition(display.GAP)[0]} to {high}"
        if level.verdict is Verdict.UNCONFIRMED and max(level.runs, first.runs) > 1:
            # several runs without a repetition to tell their scatter are not one run each
            verdict = level.verdict.short
        head = f"{name}={name_value(level.value)} against {name_value(first.value)}"
        yield head, str(level.runs), change, drop_equal_ends(ends), verdict


def choose_best(comparison: Comparison, study: Study) -> Comparison:
    """Return the comparison with the best group alone, or the last one where none is best."""
    step = next((step for step in comparison.steps if step.label == study.best_label), comparison.steps[-1])
    return replace(comparison, steps=(step,), deltas=())


def build_study_tiles(comparison: Comparison, study: Study, of_best: Sequence[Tile]) -> tuple[Tile, ...]:
    """Return four figures: which groups are the best, then more of the best one.

    Args:
        comparison: the groups as steps.
        study: what is said of them together.
        of_best: figures of the best group.
    """
    tiles = []
    for best in filter(None, (study.best_by_cost, study.best_by_speed)):
        shown = Figures(comparison).format(best.metric)
        context = f"{display.clean(best.label)}; next {display.clean(best.next)}, {shown.value(best.next_value)}"
        tiles.append(Tile(label=shown.title, value=shown.value(best.value), context=context))
    label = display.clean(choose_best(comparison, study).steps[0].label)
    rest = (replace(tile, context=f"{label}: {display.lower_first(tile.context)}") for tile in of_best[len(tiles) :])
    return (*tiles, *rest)
