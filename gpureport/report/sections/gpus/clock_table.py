"""Clock event reasons of a run: those that occurred, the harmful ones first."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

from gpureport.analysis.results import ClockEventTotal, Effect
from gpureport.report.model.report_content import RunTable
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

_EFFECTS = {Effect.HARMFUL: "harmful", Effect.UNCLASSIFIED: "not classified", Effect.BENIGN: "normal"}
_COLUMNS = ("Reason", "Kind", "Busy samples", "Counted", "Median clock", "Unthrottled clock", "Busy time lost")
_SETTING_OR_REST = {"gpu_idle"}
"""Reasons that only occur at rest."""
_LISTED = 24
_ABSENT = {display.NOT_RECORDED, "none seen", "not known"}
_MEANINGS = {
    "Busy samples": "time of the samples on which the reason shows while the GPU is busy",
    "Counted": "by the driver, exact at any sampling",
}
_MISSING = {
    "Busy samples": "which reasons showed at a sample",
    "Counted": "the driver's own counters of each reason",
    "Median clock": "clocks",
    "Unthrottled clock": "clocks without a reason",
    "Busy time lost": "what the reasons cost",
}
"""What a column is called in the note if no row has a value."""
_NOTE = "Reasons can hold a clock together, so the shares must not be added up."


def build_clock_tables(runs: Sequence[ReportRun]) -> tuple[RunTable, ...]:
    """Return one table a run on whose busy GPUs a reason showed or was counted."""
    return tuple(
        RunTable(label=run.label, table=_build_table(run, shown))
        for run in runs
        if (shown := [entry for entry in run.analysis.throttle_ledger if _has_time(entry)])
    )


def _has_time(entry: ClockEventTotal) -> bool:
    counted = entry.counted is not None and entry.counted.total > 0
    return entry.reason not in _SETTING_OR_REST and bool(entry.busy_seconds or counted)


def _build_table(run: ReportRun, shown: Sequence[ClockEventTotal]) -> Table:
    def rank(entry: ClockEventTotal) -> tuple[int, float]:
        seconds = max(entry.busy_seconds or 0.0, entry.counted.total if entry.counted else 0.0)
        return list(_EFFECTS).index(entry.effect), -seconds

    rows = [_build_row(run, entry) for entry in sorted(shown, key=rank)[:_LISTED]]
    known = [any(row.cells[place].text not in _ABSENT for row in rows) for place in range(len(_COLUMNS) - 1)]
    columns = tuple(compress(_COLUMNS, (True, *known)))
    notes = [*(f"{name}: {words}." for name, words in _MEANINGS.items() if name in columns), _NOTE]
    lacking = [_MISSING[name] for name in _COLUMNS if name not in columns]
    harmful = [entry for entry in run.analysis.throttle_ledger if entry.effect is Effect.HARMFUL]
    seen = {entry.reason for entry in harmful if _has_time(entry)}
    never = list(dict.fromkeys(entry.reason.replace("_", " ") for entry in harmful if entry.reason not in seen))
    named = {"Not recorded": lacking, "Recorded and never seen": never}
    notes += [f"{what}: {display.join_words(names)}." for what, names in named.items() if names]
    notes += [f"{display.plural(len(shown) - _LISTED, 'more row')} in the JSON."] if len(shown) > _LISTED else []
    return Table(
        columns=columns,
        numeric=(False, *[True] * (len(columns) - 2)),
        rows=tuple(replace(row, cells=tuple(compress(row.cells, known))) for row in rows),
        notes=tuple(notes),
    )


def _build_row(run: ReportRun, entry: ClockEventTotal) -> Row:
    counter = entry.counted
    said = [f"{display.duration(counter.in_gaps)} in log gaps"] if counter and counter.in_gaps > 0 else []
    said += ["started anew"] if counter and counter.restarts else []
    seconds = counter.total if counter else None
    return Row(
        head=Cell(text=f"{entry.reason.replace('_', ' ')}, {run.device(entry.device)}"),
        cells=(
            Cell(text=_EFFECTS[entry.effect]),
            Cell(text=display.or_not_recorded(entry.busy_seconds, display.duration), value=entry.busy_seconds),
            Cell(
                text=display.or_not_recorded(seconds, display.duration), small=display.join_words(said), value=seconds
            ),
            Cell(text="none seen" if entry.clock_hertz is None else display.clock(entry.clock_hertz)),
            Cell(text="not known" if entry.reference_hertz is None else display.clock(entry.reference_hertz)),
            Cell(text="not known" if entry.lost_ratio is None else display.percent(entry.lost_ratio)),
        ),
    )
