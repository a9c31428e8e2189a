"""What a metric is, and the rows that the table of metrics is written in."""

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """How a metric behaves in time, in OpenTelemetry's words."""

    GAUGE = "gauge"
    COUNTER = "counter"
    STATE = "state"


class Scope(StrEnum):
    """What a metric describes."""

    GPU = "gpu"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One column: its name, base unit, storage type and meaning.

    Attributes:
        name: column name in snake_case with the base unit as suffix.
        unit: base unit (UCUM: `1`, `By`, `By/s`, `W`, `J`, `Hz`, `Cel`, `s`), empty for a state.
        dtype: Arrow type the column is stored as.
        kind: gauge, counter or state.
        scope: GPU or host.
        otel: OpenTelemetry name, empty where its conventions have none.
        covers: the stretch of time that one value describes.
        recorded_by: the nvidia-smi query field, the monitor of nvidia-smi and its column, the DCGM field, or the host
            command that yields it.
        brief: one sentence of meaning.
        may_exceed_one: whether it is a ratio that is no part of a whole.
    """

    name: str
    unit: str
    dtype: str
    kind: MetricKind
    scope: Scope
    otel: str
    covers: str
    recorded_by: str
    brief: str
    may_exceed_one: bool = False


MOMENT = "the moment of the reading"


def gauge(  # noqa: PLR0913 - a table row has as many cells as the table has columns
    name: str,
    unit: str,
    dtype: str,
    recorded_by: str,
    brief: str,
    *,
    covers: str = MOMENT,
    otel: str = "",
    kind: MetricKind = MetricKind.GAUGE,
    scope: Scope = Scope.GPU,
    may_exceed_one: bool = False,
) -> Metric:
    """Return a gauge of a GPU, unless the row says otherwise."""
    return Metric(
        name=name,
        unit=unit,
        dtype=dtype,
        kind=kind,
        scope=scope,
        otel=otel,
        covers=covers,
        recorded_by=recorded_by,
        brief=brief,
        may_exceed_one=may_exceed_one,
    )


def state(name: str, recorded_by: str, brief: str, *, dtype: str = "bool", covers: str = MOMENT) -> Metric:
    """Return a state of a GPU."""
    return gauge(name, "", dtype, recorded_by, brief, covers=covers, kind=MetricKind.STATE)


def counter(  # noqa: PLR0913 - as above
    name: str, unit: str, dtype: str, recorded_by: str, brief: str, *, covers: str, otel: str = ""
) -> Metric:
    """Return a counter of a GPU, which only rises until the driver is loaded again."""
    return gauge(name, unit, dtype, recorded_by, brief, covers=covers, otel=otel, kind=MetricKind.COUNTER)


def host(  # noqa: PLR0913 - as above
    name: str, unit: str, dtype: str, recorded_by: str, brief: str, *, covers: str, otel: str = ""
) -> Metric:
    """Return a gauge of the host."""
    return gauge(name, unit, dtype, recorded_by, brief, covers=covers, otel=otel, scope=Scope.HOST)
