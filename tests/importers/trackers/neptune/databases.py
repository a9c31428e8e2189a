"""Databases as neptune-scale leaves them, written here with a protobuf encoder of our own."""

import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.importers.trackers.neptune.schedule import GIB, START

NAME = "run_operations.sqlite3"
_TABLES = """
create table run_operations (sequence_id integer primary key autoincrement, timestamp integer not null,
    operation_type integer not null, operation blob not null, operation_size_bytes integer not null);
create table metadata (id integer primary key autoincrement, version text not null, project text not null,
    run_id text not null);
"""
Value = bool | int | float | str


def number(value: int) -> bytes:
    value %= 1 << 64
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def field(place: int, value: bytes | int) -> bytes:
    if isinstance(value, bytes):
        return number(place << 3 | 2) + number(len(value)) + value
    return number(place << 3) + number(value)


def scalar(value: Value) -> bytes:
    if isinstance(value, bool):
        return field(5, int(value))
    if isinstance(value, int):
        return field(3, value)
    return number(1 << 3 | 1) + struct.pack("<d", value) if isinstance(value, float) else field(6, value.encode())


def moment(microseconds: int) -> bytes:
    return field(1, microseconds // 1_000_000) + field(2, microseconds % 1_000_000 * 1000)


def entry(path: str, value: Value) -> bytes:
    return field(1, path.encode()) + field(2, scalar(value))


def snapshot(
    at: int,
    *,
    step: float | None = None,
    assign: Mapping[str, Value] | None = None,
    append: Mapping[str, float] | None = None,
) -> bytes:
    data = b""
    if step is not None:
        data += field(1, field(1, int(step)) + field(2, round(step % 1 * 1e6)))
    data += field(2, moment(at))
    for path, value in (assign or {}).items():
        data += field(4, entry(path, value))
    for path, each in (append or {}).items():
        data += field(8, entry(path, float(each)))
    return data


def write(folder: Path, snapshots: list[bytes], *, version: str = "v5", open_log: bool = False) -> Path:
    place = folder / "ws_proj_scale-1_123" / NAME
    place.parent.mkdir(parents=True)
    create = field(3, moment(START - 1_000_000)) + field(4, b"scale-1") + field(5, b"exp-a")
    with closing(sqlite3.connect(place)) as database:
        database.executescript(_TABLES)
        if open_log:
            database.execute("pragma journal_mode=wal")
        database.execute("insert into metadata values (1, ?, 'ws/proj', 'scale-1')", [version])
        rows = [(1, create), *((0, message) for message in snapshots)]
        for kind, message in rows:
            database.execute("insert into run_operations values (null, 0, ?, ?, ?)", [kind, message, len(message)])
        database.commit()
        if open_log:
            # as a killed process leaves them: copied while the log is not yet part of the database
            for name in (NAME, f"{NAME}-wal"):
                (folder / name).write_bytes((place.parent / name).read_bytes())
    if open_log:
        for name in (NAME, f"{NAME}-wal"):
            (folder / name).replace(place.parent / name)
        (place.parent / f"{NAME}-shm").unlink(missing_ok=True)
    return place


def recipe(values: list[float], *, every: int = 5_000_000, space: str = "runtime") -> list[bytes]:
    about: dict[str, Value] = {f"{space}/details/hostname": "node-a", f"{space}/details/gpu/0/name": "NVIDIA X"}
    messages = [snapshot(START, assign=about | {"params/lr": 0.1, "params/amp": True, "params/layers": 12})]
    for step, value in enumerate(values):
        messages.append(
            snapshot(
                START + every * step,
                step=step,
                append={
                    f"{space}/monitoring/cpu/percent": 0.0 if step == 0 else 80.0,
                    f"{space}/monitoring/memory/virtual_used_GiB": 5.0,
                    f"{space}/monitoring/memory/virtual_utilized_percent": 20.0,
                    f"{space}/monitoring/network/recv_MiB": 10.0,
                    f"{space}/monitoring/process/num_fds": 9.0,
                    f"{space}/monitoring/gpu/0/gpu_utilization_percent": value,
                    f"{space}/monitoring/gpu/0/memory_used_MiB": 12288.0,
                    f"{space}/monitoring/gpu/0/memory_total_MiB": 16384.0,
                    f"{space}/monitoring/gpu/0/memory_free_MiB": 4096.0,
                    f"{space}/monitoring/gpu/0/memory_utilized_percent": 75.0,
                    f"{space}/monitoring/gpu/0/power_usage_watts": 250.0,
                    f"{space}/monitoring/gpu/0/temperature_celsius": 62.0,
                },
            )
        )
        messages.append(snapshot(START + every * step + 1000, step=step + 0.5, append={"train/loss": 1.0}))
    return messages


MEMORY = 12 * GIB
