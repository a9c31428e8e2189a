"""Pairs of a log and what `gpureport.read` makes of it: where they lie, how one is read, and how it is written down.

A pair is `pairs/<source>/<name>.<suffix>` (any but `.json`), or a folder of that name, beside `<name>.json`. The JSON
says how the log is read, which a person writes, and what that gave, which `--update-golden` writes:

    options   arguments of `gpureport.read`; `{pair}` in one of them is the path of the pair: `"host": "{pair}/sar.txt"`
    source    what is read, where it is not the pair itself: `{pair}/gpu.csv`, `mlflow:{pair}/mlruns`
    gpu       stamps of a GPU log that is read in place of the pair, which is its host log, or `"training": "{pair}"`
    about     what the pair is for, where its name does not say it

Values are one line per device and column: `0.9 x3, null, 0.91`; times are the first and the distances in seconds. Above
40 parts they are their number, least, greatest and a hash.
"""

import hashlib
import itertools
import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Device, Quality, Recording, find_note_code
from tests.support import logs

PAIRS = Path(__file__).parent / "pairs"
_STATED = ("about", "options", "source", "gpu")
_MOST_PARTS = 40
_KEYS = {"device", "timestamp"}
_DEVICE = ["index", "node", "uuid", "bus_id", "serial", "model", "memory_total_bytes", "memory_reserved_bytes"]
_DEVICE += ["power_limit_watts", "power_limit_default_watts", "power_window", "driver", "mig", "mixed"]
_LINES = ("rejected", "headers", "noise", "events", "continued")


def list_pairs() -> list[Path]:
    entries = (entry for source in PAIRS.iterdir() if source.is_dir() for entry in source.iterdir())
    return sorted(entry for entry in entries if entry.suffix != ".json")


def expectation(pair: Path) -> Path:
    """Return the file that says what a pair gives: of `a.csv.gz` it is `a.json`."""
    return pair.with_name(f"{pair.name.partition('.')[0]}.json")


def describe(pair: Path, folder: Path) -> str:
    """Return what a pair gives, as its JSON; the log is read from a folder, so that no path of it matters."""
    path = expectation(pair)
    stated = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stated = {name: stated[name] for name in _STATED if name in stated}
    copy = Path(shutil.copytree(pair, folder / pair.name) if pair.is_dir() else shutil.copy(pair, folder))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = _refusal_or(lambda: _read(copy, stated))
    if warned:
        found["warnings"] = len(warned)
    return json.dumps(stated | found, indent=1, ensure_ascii=False) + "\n"


def _read(pair: Path, stated: dict[str, Any]) -> dict[str, Any]:
    options = {name: _named(value, pair) for name, value in stated.get("options", {}).items()}
    source = _named(stated.get("source", "{pair}"), pair)
    beside = "gpu" in stated
    if beside:
        source = _write_gpu_log(pair.parent / "beside", stated["gpu"])
        options = options if "training" in options else {"host": str(pair), **options}
    recordings = gpureport.read(source, **options)
    described = [describe_recording(recording, host_only=beside) for recording in recordings]
    if len(described) == 1:
        return described[0]
    return {"runs": [{"name": each.run.name} | found for each, found in zip(recordings, described, strict=True)]}


def _named(value: Any, pair: Path) -> Any:
    if isinstance(value, list):
        return [_named(each, pair) for each in value]
    return value.replace("{pair}", str(pair)) if isinstance(value, str) else value


def _write_gpu_log(folder: Path, stamps: Iterable[str]) -> Path:
    folder.mkdir()
    rows = "".join(f"{stamp}, 0, 50 %\n" for stamp in stamps)
    path = folder / "gpu.csv"
    path.write_text(f"timestamp, index, utilization.gpu [%]\n{rows}", encoding="utf-8")
    return path


def _refusal_or(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return read()
    except GpureportError as error:
        return {"refused": type(error).__name__, "code": error.code}


def describe_recording(recording: Recording, *, host_only: bool = False) -> dict[str, Any]:
    """Return all that matters of a recording, as text in lists and dicts; nothing of it that is empty."""
    run, quality = recording.run, recording.run.quality
    check_account(recording)
    devices = [device for device in run.devices if device.index is None or not host_only]
    found: dict[str, Any] = {
        "kinds": " + ".join(source.kind for source in run.sources),
        "account": _account(quality),
        "rejected": [f"{each.rows} x {each.reason}, first line {each.first_line}" for each in quality.rejected],
        "absent": [f"{each.cells} x {each.reason} in {each.column}" for each in quality.absent_cells],
        "duplicates": quality.duplicates,
        "synthetic_time": quality.synthetic_time,
        "imputed_points": quality.imputed_points,
        "unfinished": quality.unfinished,
        "coverage": None if quality.coverage_ratio in {None, 1.0} else f"{quality.coverage_ratio:.4g}",
        "gaps": [f"{each.device}: {_since(run.started, each.start, each.end)}" for each in quality.gaps],
        "clock_steps": [
            f"{each.device}: {_since(run.started, each.at)}, {each.step_seconds:g} s, {each.cause}, shift"
            f" {each.shift_seconds:g} s"
            for each in quality.clock_steps
        ],
        "events": [
            f"{each.kind} {'' if each.at is None else _since(run.started, each.at)} line {each.line} {each.device}: "
            f"{each.text}"
            for each in quality.log_events
        ],
        "notes": list(map(find_note_code, quality.notes)),
        "timezone": run.timezone,
        "interval": None if run.interval is None else f"{run.interval:.6g}",
        "step": run.step,
        "stages": [f"{each.name}: {_since(run.started, each.start, each.end)} {each.node}" for each in run.stages],
        "params": dict(run.params),
        "tags": dict(run.tags),
        "work": None if run.work is None else f"{run.work.amount:g} {run.work.unit}",
        "devices": {device.id: _device(device) for device in devices},
        "series": {device.id: dict(_columns(recording.rows_of(device.id))) for device in devices},
        "training": dict(_training(recording.training)),
    }
    return {name: value for name, value in found.items() if value}


def outline(read: Callable[[], Recording]) -> list[str] | str:
    """Return what a reading gives, a line per column and reason; the code where a log is refused."""
    try:
        recording = read()
    except GpureportError as error:
        return f"{type(error).__name__}, {error.code}"
    run, quality = recording.run, recording.run.quality
    check_account(recording)
    began = np.datetime64(run.started, "us")
    lines = [f"{began}, {_since(run.started, run.ended)}, {run.timezone}; {_account(quality)}"]
    if run.params or run.tags or run.step:
        lines.append(f"{run.name}, step {run.step}, params {dict(run.params)}, tags {dict(run.tags)}")
    lines += [f"clock step at {_since(run.started, each.at)}, {each.cause}" for each in quality.clock_steps]
    lines += ["unfinished"] * quality.unfinished + ["synthetic time"] * quality.synthetic_time
    for device in run.devices:
        lines.append(f"{device.id} {_device(device)}")
        lines += (f"  {name}: {cells}" for name, cells in _columns(recording.rows_of(device.id)) if name != "time")
    for name, points in _training(recording.training):
        lines.append(f"{name}: {points['time']}; step {points['step']}; value {points['value']}")
    lines += (f"{each.rows} x {each.reason}, first line {each.first_line}" for each in quality.rejected)
    lines += (f"{each.cells} x {each.reason} in {each.column}" for each in quality.absent_cells)
    return lines + [f"note {find_note_code(note)}" for note in quality.notes]


def hold(path: Path, described: object, *, update: bool) -> None:
    """Hold what was read against the JSON of a path, which `--update-golden` writes."""
    text = json.dumps(described, indent=1, ensure_ascii=False) + "\n"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; --update-golden writes it"
    assert text == path.read_text(encoding="utf-8")


def check_account(recording: Recording) -> None:
    """Hold a recording to what is true of each: every line is accounted for, and rows are in the order of time."""
    quality = recording.run.quality
    assert quality.accounted
    # of training metrics and of MLflow, points are counted
    by_points = recording.training.num_rows or recording.run.sources[0].kind == "mlflow"
    assert quality.rows_kept == len(recording.series) or by_points
    for rows in recording.by_device().values():
        assert (np.diff(_micros(rows)) >= 0).all()


def kept(recording: Recording) -> int:
    """Return how many rows are in the series, after checking that every line is accounted for."""
    check_account(recording)
    return recording.run.quality.rows_kept


def seconds(recording: Recording, device: str = "gpu:0", start: int = int(logs.EPOCH * 1e6)) -> list[float]:
    return [(time - start) / 1e6 for time in _micros(recording.rows_of(device)).tolist()]


def rows_of(recording: Recording) -> dict[tuple[object, object], dict[str, object]]:
    return {(row["device"], row["timestamp"]): row for row in recording.series.to_pylist()}


def assert_part(part: Recording, whole: Recording, what: str = "") -> None:
    """Assert that each row is one of the whole log, with no value that it does not have."""
    check_account(part)
    expected = rows_of(whole)
    for key, own in rows_of(part).items():
        assert key in expected, what
        assert all(value is None or value == expected[key].get(name) for name, value in own.items()), what


def _account(quality: Quality) -> str:
    counts = {name: getattr(quality, name) for name in _LINES[1:]}
    counts = {"kept": quality.rows_kept, "rejected": sum(each.rows for each in quality.rejected), **counts}
    return f"{quality.lines} lines = " + " + ".join(f"{count} {name}" for name, count in counts.items() if count)


def _since(start: int, *times: int) -> str:
    return " to ".join(f"{(time - start) / 1e6:+g} s" for time in times)


def _device(device: Device) -> str:
    values = {name: getattr(device, name) for name in _DEVICE}
    return ", ".join(
        f"{name} {value}"
        for name, value in values.items()
        if not (value is None or value is False or value == "unknown")
    )


def _micros(rows: "pa.Table") -> Any:
    return rows.column("timestamp").cast(pa.int64()).to_numpy()


def _columns(rows: "pa.Table") -> Iterator[tuple[str, str]]:
    times = _micros(rows)
    first = str(np.datetime64(int(times[0]), "us")).removesuffix(".000000") if len(times) else ""
    yield "time", _join([first, *(f"{distance / 1e6:+g}" for distance in np.diff(times).tolist())])
    for name in rows.column_names:
        column = rows.column(name)
        is_filled = pc.any(column).as_py() if name == "imputed" else column.null_count < len(column)
        if name not in _KEYS and is_filled:
            yield name, _join(_cells(column))


def _cells(column: "pa.ChunkedArray[Any]") -> list[str]:
    digits = 6 if pa.types.is_float32(column.type) else 9
    return [
        f"{cell:.{digits}g}" if isinstance(cell, float) else json.dumps(cell, ensure_ascii=False)
        for cell in column.to_pylist()
    ]


def _join(cells: Sequence[str]) -> str:
    runs = [(cell, len(list(equal))) for cell, equal in itertools.groupby(cells)]
    if len(runs) <= _MOST_PARTS:
        return ", ".join(cell if count == 1 else f"{cell} x{count}" for cell, count in runs)
    numbers = [float(cell) for cell in cells if cell.lstrip("+-")[:1].isdigit() and "T" not in cell]
    extremes = f", {min(numbers):g} to {max(numbers):g}" if numbers else ""
    return f"{len(cells)} from {cells[0]}{extremes}, {hashlib.sha256(', '.join(cells).encode()).hexdigest()[:12]}"


def _training(table: "pa.Table") -> Iterator[tuple[str, dict[str, str]]]:
    rows = sorted(table.to_pylist(), key=lambda row: str(row["name"]))
    for name, points in itertools.groupby(rows, key=lambda row: str(row["name"])):
        held = list(points)
        times = ["null" if row["timestamp"] is None else row["timestamp"].isoformat() for row in held]
        cells = {key: [json.dumps(row[key]) for row in held] for key in ("step", "value")}
        yield name, {"time": _join(times), "step": _join(cells["step"]), "value": _join(cells["value"])}
