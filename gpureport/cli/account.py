"""What was read of a run and what became of every line, as lines of text."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpureport.number_format import format_duration
from gpureport.redaction import redact_text

if TYPE_CHECKING:
    from gpureport.data_quality import Quality
    from gpureport.recording import Run

_LISTED = 8
"""Events of a log, and columns that lack values, that are printed."""


def summarise_run(run: "Run") -> list[str]:
    """Return what was read, and what became of every line of it."""
    seconds = run.interval or 0.0
    every = f", a sample every {seconds:.3g} s" if seconds < 100 else f", a sample every {seconds:.0f} s"  # noqa: PLR2004 - three digits
    return [f"{run.id}  {run.name}: {_size(run)}{every if run.interval else ''}", *_account(run, examples=True)]


def describe_stored(run: "Run", done: str, columns: Iterable[tuple[str, str]] | None) -> list[str]:
    """Return what the store holds now, in a sentence with the id of the run, then what was wrong with the data.

    Args:
        run: the run as stored.
        done: begin of the sentence: what was done with the run.
        columns: headings with the metrics they became, to account for every line; else only what was wrong.
    """
    lost, noun = sum(entry.rows for entry in run.quality.rejected), "point" if run.tracked else "line"
    losses = f"{lost} of {run.quality.lines} {noun}s lost" if lost else f"no {noun} lost"
    usual = {_equation(run), *_absent_values(run.quality)} if columns is None else ()
    shown = [line for line in _account(run, examples=columns is not None) if line not in usual]
    shown += [f"  column {redact_text(heading)}: {target}" for heading, target in columns or ()]
    return [f"{done}: {_size(run)}, {losses}. Id {run.id}.", *shown]


def _size(run: "Run") -> str:
    """Return how many GPUs a run is of, and how long it is."""
    length = format_duration((run.ended - run.started) / 1e6) if run.ended > run.started else "one sample"
    return f"{_count(len(run.gpus), 'GPU')}, {length}"


def _account(run: "Run", *, examples: bool) -> Iterator[str]:
    """Yield what became of every line, with a few rejected ones of each reason where `examples` are wanted."""
    quality = run.quality
    yield _equation(run)
    for entry in quality.rejected:
        yield f"  rejected {entry.rows}: {entry.reason}{entry.at}"
        yield from (f"    line {each.line}: {each.text}" for each in entry.examples if examples)
    yield from _absent_values(quality)
    yield from (f"  clock of {e.device} stepped by {e.step_seconds:.1f} s: {e.cause}" for e in quality.clock_steps)
    if quality.gaps:
        total = sum(gap.end - gap.start for gap in quality.gaps) / 1e6
        yield f"  {_count(len(quality.gaps), 'gap')} without samples, {total:.0f} s over all GPUs"
    if quality.duplicates:
        verb = "shares" if quality.duplicates == 1 else "share"
        yield f"  {_count(quality.duplicates, 'row')} {verb} the time stamp of the row before (kept)"
    if quality.synthetic_time:
        yield "  the log has no time stamps; times count from --interval"
    # plain messages last
    events = sorted(quality.log_events, key=lambda event: event.kind == "driver_message")
    for event in events[:_LISTED]:
        when = "" if event.at is None else f", {(event.at - run.started) / 1e6:.0f} s after the first sample"
        where = f" of {event.device}" if event.device else ""
        yield f"  {event.kind.replace('_', ' ')}{where}{when}: {event.text} (line {event.line})"
    if len(events) > _LISTED:
        yield f"  {_count(len(events) - _LISTED, 'more event')}"
    yield from (f"  {note}" for note in quality.notes)


def _equation(run: "Run") -> str:
    """Return the sum that every line is part of; of a tracker all points and all lines of the logs."""
    quality = run.quality
    lost = sum(entry.rows for entry in quality.rejected)
    if run.tracked:
        beside = quality.headers + quality.events + quality.continued + quality.noise
        kept = f"{quality.rows_kept} kept + {lost} rejected + {beside} without a value to keep"
        return f"  {quality.lines} points = {kept}"
    parts = [f"{_count(quality.rows_kept, 'row')} kept", f"{lost} rejected", _count(quality.headers, "header")]
    parts += [f"{quality.noise} noise", _count(quality.events, "event")]
    parts += [f"{_count(quality.continued, 'further line')} of these rows"] if quality.continued else []
    return f"  {_count(quality.lines, 'line')} = {' + '.join(parts)}"


def _absent_values(quality: "Quality") -> Iterator[str]:
    """Yield which columns lack values, a few by name."""
    absent = quality.absent_cells
    for each in absent[:_LISTED]:
        yield f"  no value in {_count(each.cells, 'cell')} of {each.column}: {each.reason}"
    if len(absent) > _LISTED:
        yield f"  and cells without a value in {len(absent) - _LISTED} more columns"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
