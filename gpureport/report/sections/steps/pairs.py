"""One step against the one before it: what changed, what may be said of each figure, and what may be doubted."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison, StepPair, compare, pair_steps
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind, WholeRecordingFigure
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    SHORTEST_REPETITION_SECONDS,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.run import SampledRun
from gpureport.comparison.setup import SetupChange
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.comparison_parts import EarlierComparison, StepPairView
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.steps import finding_changes, quality
from gpureport.report.sections.steps.figures import ENERGY, PAIR_FIGURES, Figures, list_price_notes
from gpureport.report.wording import differences, display
from gpureport.report.wording.differences import FigureFormat
from gpureport.report.wording.terms import FIGURE_NAMES
from gpureport.report.wording.reasons import (
    SINGLE_RUN_SCATTER,
    describe_check,
    describe_left_out,
    describe_reason,
    list_reasons,
)
from gpureport.report.wording.words import WORDS, say

_VALUE = 22
"""Most characters of a value, so that two stand side by side on a terminal."""
_NAME = 36
"""Most characters of the name of a setting or a metric: its last part often tells it from others."""
_LISTED = 5
"""Most names of settings that only tell runs apart."""
_SILENT = {"different_runs", "observed_time", "coverage", "source_kind"}
"""Checks that are shown only when they fail."""
_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_LENGTHS = {"observed_time", "duration"}
"""Checks of how long a recording is, the limit of which is 20 s."""
_AGREE = {True: "yes", False: "doubtful", None: "unknown"}
_Shown = Sequence[tuple[FigureFormat, Delta]]
"""Figures of two steps in the order shown."""


def build_step_pairs(
    comparison: Comparison, links: Sequence[StepPair], inputs: Sequence[ReportRun]
) -> Iterator[StepPairView]:
    """Yield every step against the one before, and where that is another one against the first."""
    figures, first = Figures(comparison), comparison.steps[0].label
    for link in links:
        since = comparison.between(first, link.step.label) if link.base.label != first else ()
        shown, sides = _list_figures(figures, link.base, link.step, link.deltas), (link.base, link.step)
        doubtful = {("hardware", check.check) for check in link.doubts}
        yield StepPairView(
            label=f"{display.clean(link.base.label)} to {display.clean(link.step.label)}",
            changes=tuple(_list_changes([each for each in link.changes if (each.kind, each.key) not in doubtful])),
            figures=quality.add_difference_rows(_build_difference_table(shown, sides), link.quality),
            effects=quality.add_verdict_rows(_build_verdict_table(shown, since, sides), link),
            whole=_build_whole_recording_table(shown),
            verdicts=(*_list_verdicts(shown), *quality.list_verdicts(link.quality)),
            training=tuple(quality.list_facts(link.quality)),
            findings=tuple(finding_changes.list_finding_changes(link.finding_changes, inputs)),
            checks=_build_check_table(link.comparability),
            doubts=tuple(map(_describe_doubt, link.doubts)),
            unknown=_describe_unknown(link.comparability),
        )


def compare_with_earlier(
    title: str,
    earlier: Sequence[SampledRun],
    later: Sequence[SampledRun],
    goals: TrainingGoals,
    *,
    is_baseline: bool = False,
) -> EarlierComparison:
    """Return the change of every figure of some runs since earlier ones, with the verdict on each.

    Args:
        title: what the earlier runs are, as a heading.
        earlier: the runs before.
        later: the runs now.
        goals: what a person says of training metrics.
        is_baseline: whether rules on a change compare with them.
    """
    comparison = compare([*(run.in_step("before") for run in earlier), *(run.in_step("after") for run in later)], goals)
    (link,) = pair_steps(comparison)
    shown = _list_figures(Figures(comparison), link.base, link.step, link.deltas)
    decides = any(delta.verdict is Verdict.UNCONFIRMED and max(delta.runs) > 1 for delta in link.deltas)
    why = [say("pair.rule", scatter=SINGLE_RUN_SCATTER)] if is_baseline and decides else []
    return EarlierComparison(
        title=title,
        table=_build_verdict_table(shown, (), (link.base, link.step)),
        notes=(*map(_describe_doubt, link.doubts), *why),
    )


def _list_figures(figures: Figures, base: Step, step: Step, deltas: Sequence[Delta]) -> _Shown:
    """Return how figures are printed with their differences: per unit of work where that is known; recorded clocks."""
    found, sides = {delta.metric: delta for delta in deltas}, (base, step)
    has_work = any(side.work_unit for side in sides)
    left_out = {ENERGY} if has_work else {PER_WORK, ENERGY_PER_WORK, COST_PER_WORK, WORK_RATE}
    if all(side.training_source is None for side in sides):
        left_out.add(TRAINING_RATE)
    if all(run.gpu_hour_price is None for side in sides for run in side.runs):
        left_out.add(COST_PER_WORK)
    if not any(SECONDS_TO_TARGET in side.values for side in sides):
        left_out.add(SECONDS_TO_TARGET)
    left_out |= {each for each in PAIR_FIGURES if found[each].whole.difference is None and not found[each].interval}
    return [(figures.format(each, sides), found[each]) for each in FIGURE_NAMES if each not in left_out]


def _build_table(columns: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[Cell]], *notes: str) -> Table:
    return Table(
        columns=("", *columns),
        numeric=tuple(numeric),
        rows=tuple(Row(head=head, cells=tuple(cells)) for head, *cells in rows),
        notes=tuple(filter(None, notes)),
    )


def _list_sides(shown: FigureFormat, plain: Delta | WholeRecordingFigure) -> list[Cell]:
    """Return before, after and the difference."""
    sides = plain.before, plain.after
    texts = *shown.format_pair(*sides), shown.format_difference(plain.difference, sides)
    return [Cell(text=text) for text in texts]


def _list_notes(shown: _Shown, steps: Sequence[Step]) -> Iterator[str]:
    if any(delta.window == "steady" for _, delta in shown):
        yield WORDS["pair.settled"]
    yield from list_price_notes(steps, [delta.metric for _, delta in shown])


def _build_difference_table(shown: _Shown, steps: Sequence[Step]) -> Table:
    """Return one row a figure: before, after, and how far apart, of what had settled where it had."""
    rows = [
        [Cell(text=each.title_of(delta)), *_list_sides(each, delta), Cell(text=each.format_interval(delta))]
        for each, delta in shown
    ]
    columns = ("Before", "After", "Difference", "95% interval")
    return _build_table(columns, (True,) * 4, rows, *_list_notes(shown, steps))


def _build_verdict_table(shown: _Shown, first: Sequence[Delta], steps: Sequence[Step]) -> Table:
    """Return one row a figure: before, after, what changed, what may be said of it, also since the first."""
    since = {delta.metric: delta for delta in first}
    rows = []
    reasons: list[tuple[Reason | None, str]] = []
    for each, delta in shown:
        far, judged = since.get(delta.metric), []
        for one in (delta, *([far] if far else [])):
            change = each.format_difference(one.difference, (one.before, one.after))
            judged.append(Cell(text=change, small=each.format_interval(one), value=one.difference))
            judged.append(Cell(text=differences.describe_verdict(one)))
        rows.append([Cell(text=each.title_of(delta)), *_list_sides(each, delta)[:2], *judged])
        near, beyond = (one.reason and one.reason.of_any_run if one else None for one in (delta, far))
        reasons += [(near, each.noun), *([(beyond, f"{each.noun} since the first step")] if beyond != near else [])]
    columns = ("Before", "After", "Difference", "Verdict", *(("Since first", "Verdict since first") if since else ()))
    numeric = (True, True, True, False, *((True, False) if since else ()))
    return _build_table(columns, numeric, rows, *_list_notes(shown, steps), list_reasons(reasons))


def _build_whole_recording_table(shown: _Shown) -> Table | None:
    """Return the figures over whole recordings, start-up and end included; None where nothing else is shown."""
    shown = [(each, delta) for each, delta in shown if delta.window != "training"]
    if all(delta.window != "steady" for _, delta in shown):
        return None
    rows = []
    for each, delta in shown:
        size, before = delta.whole.difference, delta.whole.before
        relative = differences.format_percent_change(1 + size / before) if before and size else ""
        rows.append([Cell(text=each.title), *_list_sides(each, delta.whole), Cell(text=relative)])
    return _build_table(("Before", "After", "Difference", "Relative"), (True,) * 4, rows)


def _list_verdicts(shown: _Shown) -> Iterator[Fact]:
    """Yield the verdict on each figure; why no more is said once where it is the same of several."""
    first: dict[Reason, str] = {}
    named: set[str] = set()
    for each, delta in shown:
        reason = delta.reason if delta.reason and delta.reason.kind is not ReasonKind.NOT_REPEATED else None
        name, verdict = each.title_of(delta), differences.describe_verdict(delta).capitalize()
        precision = list(each.describe_precision(delta))
        if reason and delta.verdict is Verdict.NOT_ENOUGH_DATA and not precision:
            if reason in first:
                yield Fact(name=name, text=f"{verdict}, as for {first[reason]}.")
                continue
            first[reason] = each.noun
        left_out = describe_left_out([run for run in delta.left_out if run.run not in named])
        named.update(run.run for run in delta.left_out)
        why = display.clean_sentence(describe_reason(reason))
        yield Fact(name=name, text=" ".join(filter(None, (f"{verdict}.", why, left_out, *precision))))


def _list_changes(changes: Sequence[SetupChange]) -> Iterator[Fact]:
    """Yield what changed, and the names of what only tells runs apart."""
    for change in changes:
        if not change.of_one_run:
            name = differences.name_setting(change)
            name = name if change.kind == "hardware" else f"{change.kind} {name}"
            values = map(differences.describe_values, (change.values_before, change.values_after))
            yield Fact(name=display.shorten_middle(name, _NAME), text=", then ".join(values))
    if names := [differences.name_setting(change) for change in changes if change.of_one_run]:
        more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
        yield Fact(name="Of each run", text=f"{display.join_words([*names[:_LISTED], *more])} tell runs apart.")


def _build_check_table(checks: Sequence[Comparability]) -> Table:
    shown = [check for check in checks if check.check not in _SILENT or not check.comparable]
    rows = [
        [
            Cell(text=WORDS[f"check.{check.check}"]),
            *(
                Cell(text=display.shorten_middle(text, _VALUE))
                for text in (*_format_sides(check), _AGREE[check.comparable])
            ),
        ]
        for check in shown
    ]
    return _build_table(("Before", "After", "Comparable"), (False,) * 3, rows)


def _format_sides(check: Comparability) -> Iterator[str]:
    """Yield what was recorded of the earlier and of the later step."""
    for value in (check.before, check.after):
        if value is None:
            yield _ABSENT.get(check.check, display.NOT_RECORDED)
        elif isinstance(value, str):
            yield display.clean(value)
        elif check.check in _LENGTHS:
            yield display.duration_below(value, SHORTEST_REPETITION_SECONDS)
        else:
            yield display.quantity(value, check.unit)


def _describe_doubt(check: Comparability) -> str:
    """Return what differs between two steps that may be no fair pair, and why it matters."""
    return f"{WORDS[f'check.{check.check}']}: {' against '.join(_format_sides(check))}. {describe_check(check)}"


def _describe_unknown(checks: Sequence[Comparability]) -> str:
    """Return what may make a comparison doubtful; no figure depends on the time zone."""
    names = [WORDS[f"check.{each.check}"] for each in checks if each.comparable is None and each.check != "timezone"]
    return say("agree.names", names=display.join_words(names)) if names else ""
