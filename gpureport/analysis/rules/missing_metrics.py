"""What to record so that a question can be answered next time."""

import math
from collections.abc import Iterable

from gpureport.analysis.rules import phrases
from gpureport.findings import NotJudged
from gpureport.metrics import BY_NAME, Scope

GPU_LOG = "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used --format=csv -l 1 -f gpu.csv"
"""A log of GPUs where there is none."""

_DMON = {"dmon rxpci": "t", "dmon txpci": "t"}
"""Letter of `dmon -s` by what it records and --query-gpu has no field for."""


def not_recorded(kind: str, device: str | None, *metrics: str) -> NotJudged:
    """Return that a kind cannot be judged, since metrics were not recorded."""
    names = " and ".join(metrics)
    were = "was" if len(metrics) == 1 else "were"
    return NotJudged(
        kind=kind, device=device, reason=f"{names} {were} not recorded", recording=recording_command(metrics)
    )


def implausible(kind: str, device: str | None, metric: str) -> NotJudged:
    """Return that a kind cannot be judged, since the readings of a metric cannot be right."""
    reason = f"{metric} was recorded, but cannot be right"
    return NotJudged(kind=kind, device=device, reason=reason, recording=recording_command([metric]))


def too_short(kind: str, covered: float, needed: float, what: str = "the recording covers") -> NotJudged:
    """Return that a recording, or what is said to be in it, is shorter than what a kind must last."""
    length = phrases.duration(covered)
    if length == phrases.duration(needed):
        # rounded to what is needed, it would deny itself
        length = f"{math.floor(10 * covered) / 10:.1f} s"
    covers = f"{what} only {length}" if covered > 0 else "the recording holds only one moment"
    return NotJudged(
        kind=kind,
        device=None,
        reason=covers,
        recording=f"a log of at least {phrases.duration(needed)}",
    )


def too_few(kind: str, readings: int) -> NotJudged:
    """Return that a recording has fewer readings of each GPU than anything can be said from."""
    return NotJudged(
        kind=kind,
        device=None,
        reason=f"the recording holds only {phrases.count_of(readings, 'sample')} of each GPU",
        recording="a log of the whole job, with samples 5 s apart or less",
    )


def query_command(fields: Iterable[str]) -> str:
    """Return the nvidia-smi command that logs fields once a second, with what places each row."""
    # a ratio is had from two fields
    names = dict.fromkeys(("timestamp", "index", *(part for field in fields for part in field.split(","))))
    return f"nvidia-smi --query-gpu={','.join(names)} --format=csv -l 1 -f gpu.csv"


def recording_command(metrics: Iterable[str]) -> str:
    """Return the command whose log holds the metrics, from the table of metrics.

    Args:
        metrics: column names; GPU ones lead to nvidia-smi commands, host ones to a line on the host log.
    """
    wanted = [BY_NAME[name] for name in metrics]
    fields = dict.fromkeys(metric.recorded_by for metric in wanted if metric.queried)
    watched = dict.fromkeys(_DMON[metric.recorded_by] for metric in wanted if metric.recorded_by in _DMON)
    calls = dict.fromkeys(metric.recorded_by for metric in wanted if metric.scope is Scope.HOST)
    parts = []
    if fields:
        parts.append(query_command(fields))
    if watched:
        parts.append(f"nvidia-smi dmon -s {''.join(watched)} -o DT > dmon.log")
    if calls:
        parts.append(f"a CSV with a timestamp and {' and '.join(calls)} once a second, given with --host")
    return "; ".join(parts)
