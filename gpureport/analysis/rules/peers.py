"""Equal GPUs of one job, compared block by block: one that is as busy as the others and slower."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context, Limits, rule
from gpureport.analysis.rules.levels import Change, show
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_signals import CLOCKS, gather_signals
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity

CLOCK, POWER, UTILISATION, TEMPERATURE = (
    CLOCKS[0],
    "gpu_power_watts",
    "gpu_utilization_ratio",
    "gpu_temperature_celsius",
)
_PAIR, _FEWEST = 2, 4
_CAUSES = {"thermal_throttle": "heat", "hw_throttle": "hardware", "power_limited": "cap", "power_cap": "cap"}

Table = npt.NDArray[np.float64]
"""A figure of each GPU, a row, in each block, a column; NaN where it is not known."""


class Peers(NamedTuple):
    """GPUs of one model that worked, blocks of their work, and the means of each in them by metric."""

    names: list[str]
    blocks: Spans
    tables: Mapping[str, Table]


def compare_peers(context: Context, limits: Limits) -> tuple[Peers, ...]:
    """Return the comparison of each model of which several GPUs worked for some blocks."""
    key = ("peers", limits.block, limits.readings)
    return context.cached(key, lambda: tuple(_compare_peers(context, limits)))


def _compare_peers(context: Context, limits: Limits) -> Iterator[Peers]:
    """Yield the GPUs that worked, those of one model together; of utilisation all readings count, else busy ones."""
    window, models = context.window or context.whole, dict[str | None, dict[str, DeviceSeries]]()
    for name, series in context.gpus().items():
        if name in context.active:
            models.setdefault(series.device.model, {})[name] = series
    for peers in models.values():
        count = int(window.seconds / max(limits.block, limits.readings * max(one.interval for one in peers.values())))
        if len(peers) < _PAIR or count < _FEWEST:
            continue
        edges = np.linspace(window.start, window.end, count + 1).astype(np.int64)
        tables: dict[str, list[Table]] = {UTILISATION: [], CLOCK: [], POWER: [], TEMPERATURE: []}
        for series in peers.values():
            signals = gather_signals(series)
            places = np.searchsorted(edges, series.times - series.shift, side="right") - 1
            inside = (places >= 0) & (places < count)
            columns = (series.values(UTILISATION), signals.clock, signals.power, signals.temperature)
            for (metric, rows), values in zip(tables.items(), columns, strict=True):
                known = inside & ((values > 0) & signals.busy if metric != UTILISATION else ~np.isnan(values))
                numbers, sums = (np.bincount(places[known], weight, count) for weight in (None, values[known]))
                rows.append(np.where(numbers * 2 >= limits.readings, sums / np.maximum(numbers, 1), np.nan))
        made = {metric: np.array(rows) for metric, rows in tables.items()}
        yield Peers(list(peers), np.column_stack([edges[:-1], edges[1:]]), made)


def _find_usual(table: Table) -> Table:
    """Return the median of the GPUs in each block, of two the higher; NaN where fewer are known."""
    known = np.count_nonzero(~np.isnan(table), axis=0)
    middle = np.where(known == _PAIR, 1, known // 2).clip(0, len(table) - 1)
    return np.where(known >= _PAIR, np.take_along_axis(np.sort(table, axis=0), middle[np.newaxis], axis=0)[0], np.nan)


def find_lower(peers: Peers, metric: str, least: float, limits: Limits) -> dict[str, Change]:
    """Return the GPUs that have less than usual of a metric for most of the work, where they are as busy as usual.

    The difference is clear of that by which most GPUs differ. Of utilisation it counts in points, else as a share.
    """
    used, table = peers.tables[UTILISATION], peers.tables[metric]
    if metric != UTILISATION:
        table = np.where((np.abs(used - _find_usual(used)) <= limits.alike) & (used >= limits.busy), table, np.nan)
    usual = _find_usual(table)
    below = (usual - table) / (1 if metric == UTILISATION else usual)
    spread = _find_usual(np.abs(below)) if len(table) > _PAIR else 0.0
    is_low, found = (below >= least) & (below >= limits.spread * spread), dict[str, Change]()
    for name, own, low in zip(peers.names, table, is_low, strict=True):
        known = np.count_nonzero(~np.isnan(own))
        if known * 2 >= len(low) and np.count_nonzero(low) >= max(limits.most * known, 1):
            levels = float(np.median(usual[low])), float(np.median(own[low])), float(own[low].mean())
            spans = intervals.union(peers.blocks[low], within=1)
            found[name] = Change(*levels, spans, spans, int(np.count_nonzero(low)))
    return found


@rule("slow_gpu")
def find_slow_gpus(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield a finding for the GPUs that are slower for one cause."""
    if len(context.active) >= _PAIR and context.window and context.window.seconds < limits.shortest:
        yield missing_metrics.too_short("slow_gpu", context.window.seconds, limits.shortest, "the work takes")
        return
    for peers in compare_peers(context, limits):
        metric, least = (POWER, "weaker") if np.isnan(peers.tables[CLOCK]).all() else (CLOCK, "slower")
        if np.isnan(peers.tables[metric]).all():
            yield from (missing_metrics.not_recorded("slow_gpu", device, CLOCK) for device in peers.names)
        slow = find_lower(peers, metric, getattr(limits, least), limits)
        causes: dict[str, list[str]] = {}
        for name in slow:
            causes.setdefault(_find_cause(context, peers, name), []).append(name)
        for cause, names in causes.items():
            change = slow[max(names, key=lambda name: slow[name].fall)]
            spans = intervals.union(np.concatenate([slow[name].spans for name in names]))
            rows = np.isin(peers.names, names)
            warm, cool = (float(np.median(np.nan_to_num(peers.tables[TEMPERATURE][each]))) for each in (rows, ~rows))
            unit = "Hz" if metric == CLOCK else "W"
            yield Finding(
                kind="slow_gpu",
                severity=Severity.INFO if cause in {"heat", "hardware"} else Severity.WARNING,
                confidence=Confidence.HIGH if metric == CLOCK and len(peers.names) > _PAIR else Confidence.MEDIUM,
                devices=tuple(names),
                intervals=intervals.to_intervals(spans),
                evidence=(
                    Evidence(metric=metric, statistic="median of its means", observed=change.level, unit=unit),
                    Evidence(metric=metric, statistic=phrases.PEERS_MEAN, observed=change.usual, unit=unit),
                    limits.compare(metric, "difference, of its peers", change.fall, ">=", least),
                ),
                lost_gpu_seconds=sum(slow[name].fall * intervals.total_seconds(slow[name].spans) for name in names),
                cause=cause,
                samples=change.readings,
                summary=KINDS["slow_gpu"].say(
                    "",
                    gpus=phrases.gpu_names(names, peers.names),
                    share=phrases.percent(1 - change.fall),
                    what="clock" if metric == CLOCK else "power",
                    figures=f"{show(change.level, unit)}, that of the others {show(change.usual, unit)},",
                    heat=f"{warm:.0f} °C, they at {cool:.0f} °C" if warm - cool >= limits.hotter else "",
                    why=KINDS["slow_gpu"].says[cause],
                ),
                recommendation=KINDS["slow_gpu"].advise(cause),
            )


def _find_cause(context: Context, peers: Peers, device: str) -> str:
    """Return why a GPU is slow, by what was found of it and not of most of its peers."""
    for kind, cause in (*_CAUSES.items(), ("clocks_locked", "locked")):
        having = [name for name in peers.names if context.findings(kind, name)]
        if device in having and 2 * len(having) <= len(peers.names):
            return cause
    return "not shown"
