"""Describes how a log's lines were read, and lists stored runs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from gpureport.cli.messages import count, make_printable
from gpureport.data_quality import Quality
from gpureport.number_format import format_duration
from gpureport.recording import Run
from gpureport.redaction import redact_text

_LISTED = 8


def summarise_run(run: Run) -> list[str]:
    seconds = run.interval or 0.0
    every = f", a sample every {seconds:.3g} s" if seconds < 100 else f", a sample every {seconds:.0f} s"  # noqa: PLR2004 - three digits
    size = f"{_describe_size(run)}{every if run.interval else ''}"
    return [f"{run.id}  {run.name}: {size}", *_describe_lines(run, examples=True)]


def describe_stored(run: Run, done: str, columns: Iterable[tuple[str, str]] | None) -> list[str]:
    lost = sum(entry.rows for entry in run.quality.rejected)
    noun = "point" if run.tracked else "line"
    losses = f"{lost:,} of {run.quality.lines:,} {noun}s lost" if lost else f"no {noun}s lost"
    usual = {_describe_sum(run), *_describe_absent(run.quality)} if columns is None else ()
    shown = [line for line in _describe_lines(run, examples=columns is not None) if line not in usual]
    shown += [f"  column {redact_text(heading)}: {target}" for heading, target in columns or ()]
    return [f"{done}: {_describe_size(run)}, {losses}. Id {run.id}.", *shown]


def _describe_size(run: Run) -> str:
    length = format_duration((run.ended - run.started) / 1e6) if run.ended > run.started else "one sample"
    return f"{count(len(run.gpus), 'GPU')}, {length}"


def _describe_lines(run: Run, *, examples: bool) -> Iterator[str]:
    quality = run.quality
    yield _describe_sum(run)
    for entry in quality.rejected:
        yield f"  rejected {entry.rows:,}: {entry.reason}{entry.at}"
        yield from (f"    line {each.line}: {each.text}" for each in entry.examples if examples)
    yield from _describe_absent(quality)
    yield from (f"  clock of {e.device} stepped by {e.step_seconds:.1f} s: {e.cause}" for e in quality.clock_steps)
    if quality.gaps:
        total = sum(gap.end - gap.start for gap in quality.gaps) / 1e6
        yield f"  {count(len(quality.gaps), 'gap')} without samples, {total:,.0f} s across all GPUs"
    if quality.duplicates:
        yield f"  {count(quality.duplicates, 'row')} with the timestamp of the previous row (kept)"
    if quality.synthetic_time:
        yield "  the log has no timestamps, so times are computed from --interval"
    # plain messages come last
    events = sorted(quality.log_events, key=lambda event: event.kind == "driver_message")
    for event in events[:_LISTED]:
        when = "" if event.at is None else f", {(event.at - run.started) / 1e6:,.0f} s after the first sample"
        where = f" of {event.device}" if event.device else ""
        yield f"  {event.kind.replace('_', ' ')}{where}{when}: {event.text} (line {event.line})"
    if len(events) > _LISTED:
        yield f"  {count(len(events) - _LISTED, 'more event')}"
    yield from (f"  {note}" for note in quality.notes)


def _describe_sum(run: Run) -> str:
    quality = run.quality
    lost = sum(entry.rows for entry in quality.rejected)
    if run.tracked:
        beside = quality.headers + quality.events + quality.continued + quality.noise
        kept = f"{quality.rows_kept:,} kept + {lost:,} rejected + {beside:,} without a value to keep"
        return f"  {quality.lines:,} points = {kept}"
    parts = [f"{count(quality.rows_kept, 'row')} kept", f"{lost:,} rejected", count(quality.headers, "header")]
    parts += [f"{quality.noise:,} noise", count(quality.events, "event")]
    parts += [f"{count(quality.continued, 'continuation line')} of these rows"] if quality.continued else []
    return f"  {count(quality.lines, 'line')} = {' + '.join(parts)}"


def _describe_absent(quality: Quality) -> Iterator[str]:
    for each in quality.absent_cells[:_LISTED]:
        yield f"  no value in {count(each.cells, 'cell')} of {each.column}: {each.reason}"
    if (more := len(quality.absent_cells) - _LISTED) > 0:
        yield f"  cells in {more} more columns have no value"


def find_date(run: Run) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=run.started)


def render_text(runs: Sequence[Run]) -> str:
    names = [make_printable(run.name) for run in runs]
    width, lines = max(map(len, names), default=0), []
    for run, name in zip(runs, names, strict=True):
        began = "no timestamps" if run.quality.synthetic_time else f"{find_date(run):%Y-%m-%d %H:%M}"
        gpus, lasted = len(run.gpus), format_duration((run.ended - run.started) / 1e6)
        step = f"  step {make_printable(run.step)}" if run.step else ""
        words = f"{began:16}  {name:{width}}  {gpus:3} {'GPU ' if gpus == 1 else 'GPUs'}  {lasted:>12}"
        lines.append(f"{run.id}  {words}{step}\n")
    return "".join(lines)


def render_json(runs: Sequence[Run]) -> str:
    lines = ",\n".join(json.dumps(each, allow_nan=False) for each in _list_facts(runs))
    return f'{{"schema": "gpureport.runs/1", "runs": [\n{lines}\n]}}\n'


def render_csv(runs: Sequence[Run]) -> str:
    rows, text = [], io.StringIO()
    for facts in _list_facts(runs):
        labels = {f"{kind}:{key}": value for kind in ("tag", "param") for key, value in facts.pop(f"{kind}s").items()}
        rows.append(
            {key: "; ".join(value) if isinstance(value, list) else value for key, value in facts.items()} | labels
        )
    writer = csv.DictWriter(text, [*dict.fromkeys(name for row in rows for name in row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _list_facts(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    from gpureport.report.formats.analysis_json import iso_time

    for run in runs:
        started, ended = (iso_time(time, run.timezone) for time in (run.started, run.ended))
        yield {
            "id": run.id,
            "name": run.name,
            "step": run.step,
            "started": None if run.quality.synthetic_time else started,
            "ended": None if run.quality.synthetic_time else ended,
            "timezone": run.timezone,
            "duration_seconds": (run.ended - run.started) / 1e6,
            "interval_seconds": run.interval,
            "gpus": len(run.gpus),
            "models": [*dict.fromkeys(gpu.model for gpu in run.gpus if gpu.model)],
            "hosts": [*dict.fromkeys(device.node for device in run.devices if device.node)],
            "uuids": [gpu.uuid for gpu in run.gpus if gpu.uuid],
            "source_kinds": [source.kind for source in run.sources],
            "tags": dict(run.tags),
            "params": dict(run.params),
        }
