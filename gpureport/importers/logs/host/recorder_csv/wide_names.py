"""Headings that people's recorders write over the load of a machine, and what they mean."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpureport.importers.logs.host.figures import KIB

_TIMES = {
    *("timestamp", "time", "datetime", "date_time", "date", "unix", "unix_time", "unixtime", "unix_timestamp", "epoch"),
    *("ts", "time_s", "timestamp_s", "time_ms", "timestamp_ms", "epoch_s", "epoch_ms", "local_time", "wall_time"),
}
_UTC_TIMES = {"timestamp_utc", "time_utc", "utc", "utc_time", "datetime_utc"}
_SIZE = r"(?P<unit>b|bytes|kb|kib|mb|mib|gb|gib|tb|tib)"
_RATE = r"(?:_?(?:per_s|per_sec|per_second|s|sec|ps))"
_SCALES = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SHARE = r"(?:_?(?:percent|pct|perc|usage|util|utilization|utilisation|load_percent|total|used|ratio|fraction))*"
_CPU = rf"(?:(?:system|sys|host|total|overall|avg|mean)_)?cpu{_SHARE}"
_CORE = rf"(?:cpu|core){_SHARE}_?(?:core_?)?(?P<core>\d+){_SHARE}"
_MEMORY = r"(?:host_|system_|sys_)?(?:ram|mem|memory|virtual_memory)"
_OWN = (
    r"cpu_utilization_ratio|cpu_busiest_core_ratio|cpu_iowait_ratio|host_memory_used_(?:bytes|ratio)"
    r"|host_memory_total_bytes|host_load_average|host_disk_(?:read|write)_bytes_per_second|cpu_power_watts"
    r"|process_cpu_cores|process_memory_used_bytes"
)
_PROCESS = r"(?:process|proc|pid|python|train)"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column holds.

    Attributes:
        metric: the metric, `timestamp`, or `core` for one of several cores.
        scale: what a number is multiplied with.
        share: whether it is a share whose heading does not say of what: 93 may be 93 % or 0.93 may be.
        assumed: what its heading was taken for, where it leaves that open.
        utc: whether it is a time in UTC.
    """

    metric: str
    scale: float = 1.0
    share: bool = False
    assumed: str = ""
    utc: bool = False


TIME, CORE = "timestamp", "core"


def _ratio(metric: str) -> Callable[["re.Match[str]"], Meaning]:
    def mean(match: "re.Match[str]") -> Meaning:
        heading = match[0]
        if re.search("ratio|fraction", heading):
            return Meaning(metric)
        return Meaning(metric, 0.01, share=not re.search("percent|pct|perc", heading))

    return mean


def _bytes(metric: str) -> Callable[["re.Match[str]"], Meaning]:
    def mean(match: "re.Match[str]") -> Meaning:
        unit = match["unit"]
        assumed = f"{unit[0].upper()}iB" if unit in {"kb", "mb", "gb", "tb"} else ""
        return Meaning(metric, float(KIB ** _SCALES[unit[0]]), assumed=assumed)

    return mean


def _plain(metric: str) -> Callable[["re.Match[str]"], Meaning]:
    return lambda _: Meaning(metric)


_PATTERNS: tuple[tuple["re.Pattern[str]", Callable[["re.Match[str]"], Meaning]], ...] = tuple(
    (re.compile(pattern), mean)
    for pattern, mean in (
        (_CPU, _ratio("cpu_utilization_ratio")),
        (_CORE, _ratio(CORE)),
        (r"cpu_(?:max_core|busiest_core|core_max|max)_?(?:percent|pct|ratio)?", _ratio("cpu_busiest_core_ratio")),
        (r"(?:cpu_)?io_?wait(?:_(?:percent|pct|ratio))?", _ratio("cpu_iowait_ratio")),
        (rf"{_MEMORY}_?(?:used_)?(?:percent|pct|perc|usage|util|utilization|ratio)", _ratio("host_memory_used_ratio")),
        (rf"{_MEMORY}(?:_used|_usage)?_{_SIZE}", _bytes("host_memory_used_bytes")),
        (rf"{_MEMORY}_total_{_SIZE}", _bytes("host_memory_total_bytes")),
        (r"(?:load|load_?avg|load_average)_?(?:1|1m|1min)", _plain("host_load_average")),
        (rf"(?:disk|io)_?read_{_SIZE}{_RATE}", _bytes("host_disk_read_bytes_per_second")),
        (rf"(?:disk|io)_?writ(?:e|ten)_{_SIZE}{_RATE}", _bytes("host_disk_write_bytes_per_second")),
        (rf"{_PROCESS}_cpu{_SHARE}", _ratio("process_cpu_cores")),
        (rf"{_PROCESS}_(?:rss|mem|memory|ram)(?:_used|_rss)?_{_SIZE}", _bytes("process_memory_used_bytes")),
        (_OWN, lambda match: Meaning(match[0])),
    )
)


def meaning(heading: str) -> Meaning | None:
    """Return what a column holds, None where that is not known."""
    name = re.sub(r"[^a-z0-9]+", "_", heading.strip().lower().replace("%", " percent ")).strip("_")
    if name in _TIMES | _UTC_TIMES:
        return Meaning(TIME, utc=name in _UTC_TIMES)
    for pattern, mean in reversed(_PATTERNS):
        if match := pattern.fullmatch(name):
            return mean(match)
    return None
