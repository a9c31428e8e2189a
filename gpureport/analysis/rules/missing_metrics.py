"""What to record so that a question can be answered next time."""

import math
from collections.abc import Iterable, Iterator

from gpureport.analysis.rules import phrases
from gpureport.findings import Amount, NotJudged
from gpureport.metrics import BY_NAME, Scope

GPU_LOG = "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used --format=csv -l 1 -f gpu.csv"
"""A log of GPUs where there is none."""

_DMON = {"dmon rxpci": "t", "dmon txpci": "t"}
"""Letter of `dmon -s` by what it records and --query-gpu has no field for."""


GPU_LOG_METRICS = ("gpu_utilization_ratio", "gpu_memory_used_bytes")
"""The metrics in it."""


def length_of(seconds: float) -> Amount:
    """Return a length of time for a sentence."""
    return Amount(value=seconds, text=phrases.duration(seconds))


def share_of(ratio: float) -> Amount:
    """Return a share for a sentence."""
    return Amount(value=ratio, text=phrases.percent(ratio))


def count_of(number: int, noun: str) -> Amount:
    """Return a count for a sentence; `noun` is the singular of what is counted."""
    return Amount(value=number, text=f"{number}", noun=noun if number == 1 else f"{noun}s")


def unjudged(kind: str, device: str | None, reason: str, metrics: Iterable[str], *amounts: Amount) -> NotJudged:
    """Return that a kind cannot be judged without metrics.

    Args:
        kind: the kind.
        device: device id; None for the whole run.
        reason: why not, with `{}` in the place of each amount.
        metrics: columns whose recording would answer it.
        amounts: what stands in these places.
    """
    wanted = tuple(metrics)
    return NotJudged(
        kind=kind,
        device=device,
        reason=reason,
        recording=recording_command(wanted),
        template=reason if amounts else "",
        amounts=amounts,
        metrics=wanted,
    )


def not_recorded(kind: str, device: str | None, *metrics: str) -> NotJudged:
    """Return that a kind cannot be judged, since metrics were not recorded."""
    names = " and ".join(metrics)
    were = "was" if len(metrics) == 1 else "were"
    return unjudged(kind, device, f"{names} {were} not recorded", metrics)


def implausible(kind: str, device: str | None, metric: str) -> NotJudged:
    """Return that a kind cannot be judged, since the readings of a metric cannot be right."""
    return unjudged(kind, device, f"{metric} was recorded, but cannot be right", [metric])


def too_short(kind: str, covered: float, needed: float, what: str = "the recording covers") -> NotJudged:
    """Return that a recording, or the named part of it, is shorter than a kind must last."""
    length = phrases.duration(covered)
    if length == phrases.duration(needed):
        # rounded to what is needed, it would deny itself
        length = f"{math.floor(10 * covered) / 10:.1f} s"
    least = name_length(needed)
    if covered <= 0:
        reason = "the recording holds only one moment"
        return NotJudged(kind=kind, device=None, reason=reason, recording=least, needed_seconds=needed)
    return NotJudged(
        kind=kind,
        device=None,
        recording=least,
        template=f"{what} only {{}}",
        amounts=(Amount(value=covered, text=length),),
        needed_seconds=needed,
    )


def too_few(kind: str, readings: int) -> NotJudged:
    """Return that a recording has too few samples of each GPU to judge a kind."""
    return NotJudged(
        kind=kind,
        device=None,
        template="the recording holds only {} of each GPU",
        amounts=(count_of(readings, "sample"),),
        recording="a log of the whole job, with samples 5 s apart or less",
    )


def name_length(seconds: float) -> str:
    """Return how long a recording must be."""
    return f"a log of at least {phrases.duration(seconds)}"


def query_command(fields: Iterable[str]) -> str:
    """Return the nvidia-smi command that logs fields once a second, with what places each row."""
    # a ratio is had from two fields
    names = dict.fromkeys(("timestamp", "index", *(part for field in fields for part in field.split(","))))
    return f"nvidia-smi --query-gpu={','.join(names)} --format=csv -l 1 -f gpu.csv"


def recording_command(metrics: Iterable[str]) -> str:
    """Return the commands whose logs hold the metrics, from the table of metrics.

    Args:
        metrics: column names; GPU ones lead to nvidia-smi commands, host ones to a line on the host log.
    """
    fields = queried_fields(metrics)
    return "; ".join([*([query_command(fields)] if fields else []), *_other_logs(metrics)])


def recorded_fields(metrics: Iterable[str]) -> str:
    """Return the same with fields of nvidia-smi in the place of the command that logs them."""
    fields = queried_fields(metrics)
    return "; ".join([*([f"nvidia-smi: {', '.join(fields)}"] if fields else []), *_other_logs(metrics)])


def queried_fields(metrics: Iterable[str]) -> list[str]:
    """Return the fields of `nvidia-smi --query-gpu` that hold metrics; a ratio is had from two of them."""
    queried = (BY_NAME[name].recorded_by for name in metrics if name in BY_NAME and BY_NAME[name].queried)
    return list(dict.fromkeys(field for fields in queried for field in fields.split(",")))


def _other_logs(metrics: Iterable[str]) -> Iterator[str]:
    wanted = [BY_NAME[name] for name in metrics]
    watched = dict.fromkeys(_DMON[metric.recorded_by] for metric in wanted if metric.recorded_by in _DMON)
    calls = dict.fromkeys(metric.recorded_by for metric in wanted if metric.scope is Scope.HOST)
    if watched:
        yield f"nvidia-smi dmon -s {''.join(watched)} -o DT > dmon.log"
    if calls:
        *first, last = ("a timestamp", *calls)
        yield f"a CSV with {', '.join(first)} and {last} once a second, given with --host"
