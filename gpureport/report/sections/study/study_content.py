"""What a study says of all groups together: the best of them, and what each setting did."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison
from gpureport.comparison.effects import FigureEffects, LevelEffect, SettingEffect
from gpureport.comparison.figures import COST_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.study import Study
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.shapes import Cell, Fact, ReportSection, Row, Table
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.study.study_headline import list_best_facts, name_settings
from gpureport.report.wording import display
from gpureport.report.wording.differences.relative_changes import format_percent_change, format_percent_range
from gpureport.report.wording.display import drop_equal_ends

_EFFECTS = "What each setting did"
_ABSENT = "not given"
_SAME = 1e-9
"""Logarithm below which two figures say the same."""


def build_study_sections(comparison: Comparison, study: Study) -> tuple[ReportSection, ...]:
    """Return the best groups, then a table of effects for each figure that says something of its own."""
    facts = tuple(_list_facts(study))
    found = [ReportSection(heading="Best setting", facts=facts)] if facts else []
    unit = comparison.steps[0].work_unit
    currency = spending.currency([analysis for step in comparison.steps for analysis in step.analyses])
    units = figure_formats.gather_work_units(comparison)
    for effects in _list_distinct(study.effects):
        shown = figure_formats.choose_format(effects.metric, unit, currency, units=units)
        found.append(ReportSection(heading=_EFFECTS, label=shown.title, table=build_effects_table(effects)))
    return tuple(found)


def _list_facts(study: Study) -> Iterator[Fact]:
    """Yield the best groups, what else varied, and params that have no effect of their own."""
    yield from list_best_facts(study)
    for names, why in (
        (study.varied.names, "another value in every run"),
        (study.varied.repetitions, "for repetitions only"),
    ):
        if names:
            yield Fact(name="Left out", text=f"{name_settings(names)}: {why}.")


def _list_distinct(effects: Sequence[FigureEffects]) -> Iterator[FigureEffects]:
    """Yield the figures, without GPU time or cost where that is only the whole-job rate the other way round."""
    rate = next((each for each in effects if each.metric == WORK_RATE), None)
    for each in effects:
        if each.metric not in {COST_PER_WORK, PER_WORK} or rate is None or not _is_inverse(each, rate):
            yield each


def _is_inverse(one: FigureEffects, other: FigureEffects) -> bool:
    """Return whether every change of one figure undoes that of the other."""
    changes, twins = (
        [level.change or 0.0 for setting in each.settings for level in setting.levels] for each in (one, other)
    )
    return len(changes) == len(twins) and all(
        abs((1 + change) * (1 + twin) - 1) < _SAME for change, twin in zip(changes, twins, strict=True)
    )


def build_effects_table(effects: FigureEffects) -> Table:
    """Return one row a value of each setting, against the first value of that setting."""
    return Table(
        columns=("Setting", "Runs", "Change", "95% interval", "Verdict"),
        numeric=(True, True, True, False),
        rows=tuple(row for setting in effects.settings for row in _list_rows(setting, relative=effects.relative)),
        notes=tuple(_list_notes(effects)),
    )


def _list_rows(setting: SettingEffect, *, relative: bool) -> Iterator[Row]:
    name = display.clean(setting.factor.name)
    if setting.confounded_with:
        others = name_settings(setting.confounded_with)
        texts = (str(sum(level.runs for level in setting.levels)), "", "", f"changed together with {others}")
        yield Row(head=Cell(text=name), cells=tuple(Cell(text=text) for text in texts))
        return
    first = _format_value(setting.levels[0])
    for level in setting.levels[1:]:
        texts = (
            str(level.runs),
            _format_change(level.change, relative=relative),
            _format_interval(level.interval, relative=relative),
            _describe_verdict(level, setting),
        )
        head = Cell(text=f"{name}={_format_value(level)} against {first}")
        yield Row(head=head, cells=tuple(Cell(text=text) for text in texts))


def _describe_verdict(level: LevelEffect, setting: SettingEffect) -> str:
    """Return a verdict in words; several runs without a repetition to tell their scatter are not one run each."""
    if level.verdict is None:
        return ""
    several = level.verdict is Verdict.UNCONFIRMED and max(level.runs, setting.levels[0].runs) > 1
    return "unconfirmed" if several else level.verdict.value


def _format_value(level: LevelEffect) -> str:
    return _ABSENT if level.value is None else display.clean(level.value)


def _format_change(change: float | None, *, relative: bool) -> str:
    if change is None:
        return ""
    return format_percent_change(1 + change) if relative else display.percentage_points(change)


def _format_interval(interval: tuple[float, float] | None, *, relative: bool) -> str:
    if interval is None:
        return ""
    low, high = interval
    if relative:
        return drop_equal_ends(format_percent_range((1 + low, 1 + high)))
    ends = f"{display.percentage_points(low).partition(display.GAP)[0]} to {display.percentage_points(high)}"
    return drop_equal_ends(ends)


def _list_notes(effects: FigureEffects) -> Iterator[str]:
    several = len(effects.settings) > 1
    others = ", the others held equal" if several else ""
    yield f"Each row is the change from the first value of a setting{others}; {effects.runs} runs."
    if effects.missing_runs:
        yield f"Left out: {display.plural(effects.missing_runs, 'run')} without this figure."
    intervals = sum(level.interval is not None for setting in effects.settings for level in setting.levels)
    if effects.degrees < 1:
        yield "No interval: every run is needed to tell one effect from another. Repeat settings."
        if Verdict.UNCONFIRMED in {level.verdict for setting in effects.settings for level in setting.levels}:
            yield "Unconfirmed: more than noise commonly explains, but without repetitions a repeat may not show it."
    elif intervals > 1:
        yield f"Verdicts are adjusted for {intervals} effects."
    if effects.additive is False:
        yield "What one setting does depends on another: go by the groups, not by these means over them."
    elif effects.additive is None and several and effects.degrees > 0:
        yield "Whether what one setting does depends on another cannot be told without repetitions."
