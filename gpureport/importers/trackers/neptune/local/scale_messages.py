"""Operations of neptune-scale: what each message says."""

import sqlite3
from dataclasses import dataclass, field

from gpureport.importers.trackers.neptune.local import protobuf_wire
from gpureport.importers.trackers.neptune.run_content import Scalar
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, STEP_UNITS
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND

_SNAPSHOT, _CREATE = 0, 1
_TABLES = {"metadata", "run_operations"}


@dataclass(slots=True)
class ScaleRunData:
    """What the operations of a run come to."""

    id: str = ""
    project: str = ""
    version: str = ""
    experiment: str = ""
    created: int | None = None
    last: int | None = None
    operations: int = 0
    scalars: dict[str, Scalar] = field(default_factory=dict)
    points: dict[str, list[tuple[int, float, int]]] = field(default_factory=dict)


def read_operations(connection: sqlite3.Connection) -> ScaleRunData:
    """Return what the operations of a database come to.

    Raises:
        ValueError: when an operation is no message, or there is no run; `sqlite3.Error` when it is no such database.
    """
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    if not tables >= _TABLES:
        raise ValueError(f"no such table: {min(_TABLES - tables)}")
    about = connection.execute("select version, project, run_id from metadata").fetchone()
    if about is None:
        raise ValueError("it names no run")
    done = ScaleRunData(version=str(about[0]), project=str(about[1]), id=str(about[2]))
    query = "select operation_type, operation from run_operations order by sequence_id"
    for kind, message in connection.execute(query):
        done.operations += 1
        if not isinstance(message, bytes):
            raise TypeError("an operation is no message")
        if kind == _CREATE:
            _create(done, message)
        elif kind == _SNAPSHOT:
            _snapshot(done, message)
    return done


def _create(done: ScaleRunData, message: bytes) -> None:
    """Apply the message that made the run: 3 is its time, 5 its experiment."""
    for number, value in protobuf_wire.fields(message):
        if number == 3 and isinstance(value, bytes):  # noqa: PLR2004 - number of a field
            done.created = _moment(value)
        elif number == 5 and isinstance(value, bytes):  # noqa: PLR2004 - as above
            done.experiment = value.decode(errors="replace")


def _snapshot(done: ScaleRunData, message: bytes) -> None:
    """Apply a message of values: 1 is its step, 2 its time, 4 what is assigned, 8 what is appended."""
    step, moment, appended = STEP_NOT_RECORDED, 0, []
    for number, value in protobuf_wire.fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            step = _step(value)
        elif number == 2:  # noqa: PLR2004 - number of a field
            moment = _moment(value)
        elif number == 4:  # noqa: PLR2004 - as above
            path, scalar = _entry(value)
            if scalar is not None:
                done.scalars[path] = scalar
        elif number == 8:  # noqa: PLR2004 - as above
            appended.append(_entry(value))
    _check_place(moment, step)
    done.last = moment if done.last is None else max(done.last, moment)
    for path, scalar in appended:
        if isinstance(scalar, int | float) and not isinstance(scalar, bool):
            done.points.setdefault(path, []).append((moment, float(scalar), step))


def _check_place(moment: int, step: int) -> None:
    """Refuse a time or step that no run can have.

    Raises:
        ValueError: saying so.
    """
    if not FIRST_MICROSECOND <= moment < LAST_MICROSECOND or not STEP_NOT_RECORDED <= step < -STEP_NOT_RECORDED:
        raise ValueError("an operation has a time that is no date, or a step that is no count")


def _step(message: bytes) -> int:
    """Return a step in millionths: 1 its whole part, 2 the millionths."""
    parts = {number: protobuf_wire.signed(value) for number, value in protobuf_wire.fields(message)}
    return parts.get(1, 0) * STEP_UNITS + parts.get(2, 0)


def _moment(message: bytes) -> int:
    """Return a time in microseconds: 1 its seconds, 2 nanoseconds."""
    parts = {number: protobuf_wire.signed(value) for number, value in protobuf_wire.fields(message)}
    return parts.get(1, 0) * 1_000_000 + parts.get(2, 0) // 1000


def _entry(message: bytes) -> tuple[str, Scalar | None]:
    """Return path and value of an entry; no value where it is of another kind, such as a file or a histogram."""
    path, scalar = "", None
    for number, value in protobuf_wire.fields(message):
        if number == 1 and isinstance(value, bytes):
            path = value.decode(errors="replace")
        elif number == 2 and isinstance(value, bytes):  # noqa: PLR2004 - number of a field
            scalar = _value(value)
    return path, scalar


def _value(message: bytes) -> Scalar | None:
    """Return a value: 1 a double, 3 a whole number, 5 whether, 6 a text."""
    for number, value in protobuf_wire.fields(message):
        if number == 1 and isinstance(value, float):
            return value
        if number == 3 and isinstance(value, int):  # noqa: PLR2004 - number of a field
            return protobuf_wire.signed(value)
        if number == 5:  # noqa: PLR2004 - as above
            return bool(value)
        if number == 6 and isinstance(value, bytes):  # noqa: PLR2004 - as above
            return value.decode(errors="replace")
    return None
