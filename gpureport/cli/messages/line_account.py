"""What was read of a run and what became of every line, as lines of text."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpureport.redaction import redact_text

if TYPE_CHECKING:
    from gpureport.data_quality import Quality
    from gpureport.recording import Run

_LISTED = 8
"""Events of a log, and columns that lack values, that are printed."""


def summarise_run(run: "Run") -> list[str]:
    """Return what was read, and what became of every line of it."""
    return [
        f"{run.id}  {describe_size(run)}",
        *account_lines(run.quality, run.started, tracked=run.tracked, examples=True),
    ]


def describe_stored(run: "Run", done: str, columns: Iterable[tuple[str, str]] | None) -> list[str]:
    """Return what the store holds now, in a sentence with the id of the run, then what was wrong with the data.

    Args:
        run: the run as stored.
        done: begin of the sentence: what was done with the run.
        columns: headings with the metrics they became, to account for every line; else only what was wrong.
    """
    account = account_lines(run.quality, run.started, tracked=run.tracked, examples=columns is not None)
    usual = {_equation(run.quality, tracked=run.tracked), *_absent_values(run.quality)}
    if columns is None:
        shown = [line for line in account if line not in usual]
    else:
        shown = account + [f"  column {redact_text(heading)}: {target}" for heading, target in columns]
    return [f"{done}: {_size(run)}, {_losses(run)}. Id {run.id}.", *shown]


def _losses(run: "Run") -> str:
    """Return how many lines, or points of a tracker, were lost."""
    lost = sum(entry.rows for entry in run.quality.rejected)
    noun = "point" if run.tracked else "line"
    return f"{lost} of {run.quality.lines} {noun}s lost" if lost else f"no {noun} lost"


def describe_size(run: "Run") -> str:
    """Return what a run is, on one line."""
    every = f", a sample every {_rounded(run.interval)} s" if run.interval else ""
    return f"{run.name}: {_size(run)}{every}"


def _size(run: "Run") -> str:
    """Return how many GPUs a run is of, and how long it is."""
    from gpureport.analysis.phrases import duration  # noqa: PLC0415 - loads the analysis

    length = duration((run.ended - run.started) / 1e6) if run.ended > run.started else "one sample"
    return f"{len(run.gpus)} GPU{plural(len(run.gpus))}, {length}"


def _rounded(seconds: float) -> str:
    """Return seconds in three digits or whole."""
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"  # noqa: PLR2004 - three digits


def account_lines(quality: "Quality", started: int, *, tracked: bool = False, examples: bool = False) -> list[str]:
    """Return what became of every line.

    Args:
        quality: the account.
        started: first sample of the run, in microseconds.
        tracked: whether points of a tracker are counted.
        examples: whether to quote a few rejected lines of each reason.
    """
    lines = [_equation(quality, tracked=tracked)]
    for entry in quality.rejected:
        lines.append(f"  rejected {entry.rows}: {entry.reason}{entry.at}")
        if examples:
            lines += [f"    line {each.line}: {each.text}" for each in entry.examples]
    lines += _absent_values(quality)
    lines += [f"  clock of {e.device} stepped by {e.step_seconds:.1f} s: {e.cause}" for e in quality.clock_steps]
    if quality.gaps:
        lines.append(f"  {count_gaps(quality)}")
    if quality.duplicates:
        verb = "shares" if quality.duplicates == 1 else "share"
        rows = f"{quality.duplicates} row{plural(quality.duplicates)}"
        lines.append(f"  {rows} {verb} the time stamp of the row before (kept)")
    if quality.synthetic_time:
        lines.append("  the log has no time stamps; times count from --interval")
    return lines + list(_events(quality, started)) + [f"  {note}" for note in quality.notes]


def _equation(quality: "Quality", *, tracked: bool) -> str:
    return point_equation(quality) if tracked else line_equation(quality)


def _absent_values(quality: "Quality") -> list[str]:
    """Return which columns lack values, a few by name."""
    lines = [
        f"  no value in {e.cells} cell{plural(e.cells)} of {e.column}: {e.reason}"
        for e in quality.absent_cells[:_LISTED]
    ]
    if len(quality.absent_cells) > _LISTED:
        lines.append(f"  and cells without a value in {len(quality.absent_cells) - _LISTED} more columns")
    return lines


def line_equation(quality: "Quality") -> str:
    """Return the sum that every line is part of."""
    rejected = sum(entry.rows for entry in quality.rejected)
    others = f"{rejected} rejected + {quality.headers} header{plural(quality.headers)} + {quality.noise} noise"
    others += f" + {quality.events} event{plural(quality.events)}"
    if quality.continued:
        others += f" + {quality.continued} further line{plural(quality.continued)} of these rows"
    lines, rows = quality.lines, quality.rows_kept
    return f"  {lines} line{plural(lines)} = {rows} row{plural(rows)} kept + {others}"


def point_equation(quality: "Quality") -> str:
    """Return the sum of all points of a tracker and all lines of the logs."""
    rejected = sum(entry.rows for entry in quality.rejected)
    beside = quality.headers + quality.events + quality.continued + quality.noise
    return (
        f"  {quality.lines} points = {quality.rows_kept} kept + {rejected} rejected + {beside} without a value to keep"
    )


def count_gaps(quality: "Quality") -> str:
    """Return how many gaps there are, and how long they are together."""
    total = sum(gap.end - gap.start for gap in quality.gaps) / 1e6
    return f"{len(quality.gaps)} gap{plural(len(quality.gaps))} without samples, {total:.0f} s over all GPUs"


def _events(quality: "Quality", started: int) -> Iterator[str]:
    """Yield what the log says happened, a few in full; plain messages last."""
    events = sorted(quality.log_events, key=lambda event: event.kind == "driver_message")
    for event in events[:_LISTED]:
        when = "" if event.at is None else f", {(event.at - started) / 1e6:.0f} s after the first sample"
        where = f" of {event.device}" if event.device else ""
        yield f"  {event.kind.replace('_', ' ')}{where}{when}: {event.text} (line {event.line})"
    if len(events) > _LISTED:
        yield f"  {len(events) - _LISTED} more event{plural(len(events) - _LISTED)}"


def plural(count: int) -> str:
    """Return the end of a noun that is counted."""
    return "" if count == 1 else "s"
