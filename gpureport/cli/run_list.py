"""Stored runs as a list: a line a run for people, JSON (schema `gpureport.runs/1`) or CSV."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from gpureport.cli.messages import make_printable
from gpureport.number_format import format_duration
from gpureport.recording import Run

SCHEMA = "gpureport.runs/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_text(runs: Sequence[Run]) -> str:
    """Return a line for each run."""
    names = [make_printable(run.name) for run in runs]
    width = max(map(len, names), default=0)
    lines = []
    for run, name in zip(runs, names, strict=True):
        began = f"{_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d %H:%M}"
        began = "no time stamps" if run.quality.synthetic_time else began
        gpus, lasted = len(run.gpus), format_duration((run.ended - run.started) / 1e6)
        step = f"  step {make_printable(run.step)}" if run.step else ""
        words = f"{began:16}  {name:{width}}  {gpus:3} {'GPU ' if gpus == 1 else 'GPUs'}  {lasted:>12}"
        lines.append(f"{run.id}  {words}{step}\n")
    return "".join(lines)


def render_json(runs: Sequence[Run]) -> str:
    """Return the runs as JSON, one a line."""
    lines = ",\n".join(json.dumps(_describe_run(run), allow_nan=False) for run in runs)
    return f'{{"schema": "{SCHEMA}", "runs": [\n{lines}\n]}}\n'


def render_csv(runs: Sequence[Run]) -> str:
    """Return the runs as a table with a column per tag and param; several values share a cell."""
    rows = []
    for run in runs:
        entry = _describe_run(run)
        labels = {f"{kind}:{key}": value for kind in ("tag", "param") for key, value in entry.pop(f"{kind}s").items()}
        plain = {key: "; ".join(value) if isinstance(value, list) else value for key, value in entry.items()}
        rows.append(plain | labels)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*dict.fromkeys(name for row in rows for name in row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _describe_run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "step": run.step,
        "started": _format_time(run.started, run),
        "ended": _format_time(run.ended, run),
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


def _format_time(microseconds: int, run: Run) -> str | None:
    """Return a time as ISO 8601 with milliseconds, as `gpureport.analysis/1` writes it."""
    if run.quality.synthetic_time:
        return None
    time = _EPOCH + timedelta(microseconds=microseconds)
    zoned = time.astimezone(ZoneInfo(run.timezone)) if run.timezone else time.replace(tzinfo=None)
    return zoned.isoformat(timespec="milliseconds")
