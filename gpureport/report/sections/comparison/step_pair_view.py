"""One step against the one before it: what changed, what may be said of each figure, and what may be doubted."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS
from gpureport.comparison.setup import SetupChange
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.comparison_parts import StepPairView
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.comparison import figure_formats, finding_change_lines, quality_rows, step_pair_tables
from gpureport.report.wording import display
from gpureport.report.wording.differences import difference_wording, setup_wording
from gpureport.report.wording.differences.comparison_reasons import (
    CHECKS,
    describe_check,
    describe_left_out,
    describe_reason,
)
from gpureport.report.wording.differences.difference_wording import FigureFormat

_VALUE = 22
"""Most characters of a value, so that two stand side by side on a terminal."""
_NAME = 36
"""Most characters of the name of a setting or a metric: its last part often tells it from others."""
_LISTED = 5
"""Most names of settings that only tell runs apart."""
_SILENT = {"different_runs", "observed_time", "coverage", "source_kind"}
"""Checks that are shown only when they fail."""
_HARMLESS = {"timezone"}
"""Checks on which no figure depends."""

_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_LENGTHS = {"observed_time", "duration"}
"""Checks of how long a recording is, the limit of which is 20 s."""
_AGREE = {True: "yes", False: "doubtful", None: "unknown"}


def build_step_pair_views(
    comparison: Comparison, found: Sequence[StepPair], inputs: Sequence[ReportRun]
) -> tuple[StepPairView, ...]:
    """Return every step against the one before, and where that is another one against the first."""
    first = comparison.steps[0].label
    since = [comparison.between(first, link.step.label) if link.base.label != first else () for link in found]
    units = figure_formats.gather_work_units(comparison)
    return tuple(
        _build_step_pair_view(link, inputs, deltas, units=units) for link, deltas in zip(found, since, strict=True)
    )


def _build_step_pair_view(
    link: StepPair, inputs: Sequence[ReportRun], since: Sequence[Delta], *, units: figure_formats.WorkUnits
) -> StepPairView:
    figures = step_pair_tables.pair_formats_with_deltas(link.base, link.step, link.deltas, units=units)
    doubtful = {("hardware", check.check) for check in link.doubts}
    return StepPairView(
        label=f"{display.clean(link.base.label)} to {display.clean(link.step.label)}",
        changes=tuple(_list_changes([each for each in link.changes if (each.kind, each.key) not in doubtful])),
        figures=quality_rows.add_difference_rows(
            step_pair_tables.build_difference_table(figures, (link.base, link.step)), link.quality
        ),
        effects=quality_rows.add_verdict_rows(
            step_pair_tables.build_verdict_table(figures, since, (link.base, link.step)),
            link.quality,
            link.quality_since_first,
        ),
        whole=step_pair_tables.build_whole_recording_table(figures),
        verdicts=(*_list_verdicts(figures), *quality_rows.build_verdict_facts(link.quality)),
        training=tuple(quality_rows.build_quality_facts(link)),
        findings=tuple(finding_change_lines.build_finding_change_facts(link.finding_changes, inputs)),
        checks=_build_check_table(link.comparability),
        doubts=tuple(describe_doubt(check) for check in link.doubts),
        unknown=_describe_unknown(link.comparability),
    )


def _list_verdicts(figures: Sequence[tuple[FigureFormat, Delta]]) -> Iterator[Fact]:
    """Yield the verdict on each figure; why no more is said once where it is the same of several."""
    first: dict[Reason, str] = {}
    named: set[str] = set()
    for shown, delta in figures:
        reason = delta.reason if delta.reason and delta.reason.kind is not ReasonKind.NOT_REPEATED else None
        name, verdict = shown.for_delta(delta).title, difference_wording.describe_verdict(delta).capitalize()
        precision = list(difference_wording.describe_precision(delta, shown))
        if reason and delta.verdict is Verdict.NOT_ENOUGH_DATA and not precision:
            if reason in first:
                yield Fact(name=name, text=f"{verdict}, as for {first[reason]}.")
                continue
            first[reason] = shown.noun
        why = [display.clean_sentence(describe_reason(reason))] if reason else []
        new = [run for run in delta.left_out if run.run not in named]
        named.update(run.run for run in new)
        left_out = [display.clean_sentence(describe_left_out(new))] if new else []
        yield Fact(name=name, text=" ".join([f"{verdict}.", *why, *left_out, *precision]))


def _list_changes(changes: Sequence[SetupChange]) -> Iterator[Fact]:
    """Yield what changed, and the names of what only tells runs apart."""
    for change in changes:
        if not change.of_one_run:
            name = setup_wording.name_setting(change)
            name = name if change.kind == "hardware" else f"{change.kind} {name}"
            before, after = map(setup_wording.describe_values, (change.values_before, change.values_after))
            yield Fact(name=display.shorten_middle(name, _NAME), text=f"{before}, then {after}")
    names = [setup_wording.name_setting(change) for change in changes if change.of_one_run]
    if names:
        more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
        yield Fact(name="Of each run", text=f"{display.join_words([*names[:_LISTED], *more])} tell runs apart.")


def _build_check_table(checks: Sequence[Comparability]) -> Table:
    shown = [check for check in checks if check.check not in _SILENT or not check.comparable]
    rows = tuple(
        Row(
            head=Cell(text=CHECKS[check.check]),
            cells=tuple(
                Cell(text=display.shorten_middle(text, _VALUE))
                for text in (*_format_values(check), _AGREE[check.comparable])
            ),
        )
        for check in shown
    )
    return Table(columns=("", "Before", "After", "Comparable"), numeric=(False,) * 3, rows=rows)


def _format_values(check: Comparability) -> tuple[str, str]:
    """Return what was recorded of the earlier and of the later step."""
    before, after = (_format_value(check, value) for value in (check.before, check.after))
    return before, after


def _format_value(check: Comparability, value: str | float | None) -> str:
    if value is None:
        return _ABSENT.get(check.check, display.NOT_RECORDED)
    if isinstance(value, str):
        return display.clean(value)
    if check.check in _LENGTHS:
        return display.duration_below(value, SHORTEST_REPETITION_SECONDS)
    return display.quantity(value, check.unit)


def describe_doubt(check: Comparability) -> str:
    """Return what differs between two steps that may be no fair pair, and why it matters."""
    return f"{CHECKS[check.check]}: {' against '.join(_format_values(check))}. {describe_check(check)}"


def _describe_unknown(checks: Sequence[Comparability]) -> str:
    names = [CHECKS[each.check] for each in checks if each.comparable is None and each.check not in _HARMLESS]
    return f"Whether they agree cannot be told from what was recorded: {display.join_words(names)}." if names else ""
