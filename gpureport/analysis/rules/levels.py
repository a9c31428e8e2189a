"""Levels that hold, in values that scatter: over the time of one series, and among equal GPUs of one job."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.names import CLOCK, POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules.clocks import is_hardly_reached
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import HEAT, are_events_recorded, gather_signals
from gpureport.analysis.series.device_series import memoized
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Severity

_PAUSE = 5.0
"""Usual distances between readings above which a pause lies between two, in which nothing is known."""
_MOST_BLOCKS = 100_000  # in a log whose clock leaps by years they are wider
_ENOUGH = 8_192  # readings, evenly over the time, that show every level
_BLOCKS = 4.0
"""Seconds for which a level must hold where readings are dense; where they are not, it holds for two longer ones."""


class Change(NamedTuple):
    """A level that was left: the usual one, the lowest that held; when each held; readings below.

    A standing difference, from other GPUs or from the log without the job, changes nothing in the time of the job.
    """

    usual: float
    level: float
    usual_spans: Spans
    spans: Spans
    readings: int
    is_standing: bool = False

    @property
    def fall(self) -> float:
        return 1 - self.level / self.usual


def show(value: float, unit: str) -> str:
    if unit in {"1", "Hz"}:
        return phrases.percent(value) if unit == "1" else phrases.megahertz(value)
    return f"{phrases.number(value)} {unit}".rstrip() if unit != "By/s" else f"{value / 1e6:.0f} MB/s"


def _find_quartiles(places: IntArray, values: FloatArray, count: int) -> npt.NDArray[np.float64]:
    """Return the quartiles of the values in each block, NaN in empty ones; `places` never fall."""
    edges = np.searchsorted(places, np.arange(count + 1))
    numbers = np.diff(edges)
    ordered = np.append(values[np.lexsort((values, places))], np.nan)
    ranks = edges[:-1] + (np.array([[0.25], [0.5], [0.75]]) * (numbers - 1).clip(0)).astype(np.int64)
    return np.where(numbers > 0, ordered[ranks], np.nan)


def find_fall(
    times: IntArray, values: FloatArray, limits: Limits, *, least: float | None = None, later: bool = False
) -> Change | None:
    """Return where values above 0 stay below the highest level that held; None where they do not.

    Both levels hold for a part of the time, and as long as a level must. The middle halves of the readings lie apart by
    `least`: bursts, single moments and recurring phases are no level. With `later`, the usual level has to come first.
    """
    least = limits.fall if least is None else least
    if len(values) < 4 * limits.readings:
        return None
    every = max(len(values) // _ENOUGH, 1)
    times, values = times[::every], values[::every]
    distances = np.diff(times) / 1e6
    interval = max(float(np.median(distances)), 1e-3)
    passed = np.append(0.0, np.cumsum(np.minimum(distances, _PAUSE * interval)))
    hold = float(np.clip(limits.part * passed[-1], limits.shortest, limits.longest))
    length = max(hold / _BLOCKS, limits.readings * interval)
    count, held = int(passed[-1] / length), max(int(np.ceil(hold / length - 0.01)), 2)
    if count < 2 * held:
        return None
    places = np.minimum((passed / passed[-1] * count).astype(np.int64), count - 1)
    low, middle, high = _find_quartiles(places, values, count)
    if np.isnan(middle).any():
        return None
    windows = np.median(np.lib.stride_tricks.sliding_window_view(middle, held), axis=1)
    usual = np.full(count, windows.max())
    if later:
        usual = np.append(np.full(held, -np.inf), np.maximum.accumulate(windows)[: count - held])
    first, stop = intervals.find_runs(middle <= (1 - least) * usual)
    first, stop = first[stop - first >= held], stop[stop - first >= held]
    if not 0 < len(first) < limits.recurs:
        return None
    blocks, top = np.arange(count + 1), float(usual[first[0]])
    is_low = np.searchsorted(first, blocks[:-1], "right") > np.searchsorted(stop, blocks[:-1], "right")
    is_usual = (middle >= (1 - least / 2) * top) & ~is_low & ((blocks[:-1] < first[0]) | (not later))
    if not is_usual.any() or np.median(low[is_usual]) <= np.median(high[is_low]):
        return None
    lowest = float(windows[is_low[: len(windows)] & is_low[held - 1 :]].min())
    edges = np.searchsorted(places, blocks)
    begins = times[edges[:-1]]
    ends = np.minimum(np.append(begins[1:], times[-1]), times[edges[1:] - 1] + round(_PAUSE * interval * 1e6))
    usual_spans, spans = (intervals.rows_to_spans(begins, ends, rows) for rows in (is_usual, is_low))
    readings = every * int(np.diff(edges)[is_low].sum())
    return Change(top, lowest, usual_spans, spans, readings)


_PAIR, _FEWEST = 2, 4
_CAUSES = {"thermal_throttle": "heat", "hw_throttle": "hardware", "power_limited": "cap", "power_cap": "cap"}

Table = npt.NDArray[np.float64]
"""A figure of each GPU, a row, in each block, a column; NaN if unknown."""


class Peers(NamedTuple):
    """GPUs of one model that worked, blocks of work, and the means of each by metric."""

    names: list[str]
    blocks: Spans
    tables: Mapping[str, Table]


@memoized
def compare_peers(context: Context, block: float, readings: float) -> tuple[Peers, ...]:
    """Return the GPUs that worked, by model; of utilisation all readings count, else busy ones."""
    window, made = context.window or context.whole, list[Peers]()
    for peers in context.peers():
        interval = max(one.interval for one in peers.values())
        count = int(window.seconds / max(block, readings * interval, window.seconds / _MOST_BLOCKS))
        if len(peers) < _PAIR or count < _FEWEST:
            continue
        edges = np.linspace(window.start, window.end, count + 1).astype(np.int64)
        tables: dict[str, list[Table]] = {UTILISATION: [], CLOCK: [], POWER: [], TEMPERATURE: []}
        for series in peers.values():
            signals = gather_signals(series)
            first = np.searchsorted(series.times, edges + series.shift)
            columns = (series.values(UTILISATION), signals.clock, signals.power, signals.temperature)
            for (metric, rows), values in zip(tables.items(), columns, strict=True):
                known = (values > 0) & signals.busy if metric != UTILISATION else ~np.isnan(values)
                numbers, sums = (
                    np.where(np.diff(first) > 0, np.add.reduceat(np.append(each, 0), first)[:-1], 0)
                    for each in (known.astype(np.int64), np.where(known, values, 0.0))
                )
                rows.append(np.where(numbers * 2 >= readings, sums / np.maximum(numbers, 1), np.nan))
        blocks = np.column_stack([edges[:-1], edges[1:]])
        made.append(Peers(list(peers), blocks, {metric: np.array(rows) for metric, rows in tables.items()}))
    return tuple(made)


def _find_usual(table: Table) -> Table:
    known = np.count_nonzero(~np.isnan(table), axis=0)
    middle = np.where(known == _PAIR, 1, known // 2).clip(0, len(table) - 1)
    return np.where(known >= _PAIR, np.take_along_axis(np.sort(table, axis=0), middle[np.newaxis], axis=0)[0], np.nan)


def find_lower(peers: Peers, metric: str, least: float, limits: Limits) -> dict[str, Change]:
    """Return the GPUs with less than usual of a metric for most of the work, while as busy as usual.

    The difference is clear of that of most GPUs; of the clock, of most of those above the others, so that half may be
    slow. A slow clock may keep a GPU busier. Of utilisation a difference is in points, else a share.
    """
    used, table = peers.tables[UTILISATION], peers.tables[metric]
    if metric != UTILISATION:
        more, done = used - _find_usual(used), used * table
        is_alike = (more <= limits.alike) | ((metric == CLOCK) & (done <= (1 + limits.alike) * _find_usual(done)))
        table = np.where(is_alike & (more >= -limits.alike) & (used >= limits.busy), table, np.nan)
    usual = _find_usual(table)
    below = (usual - table) / (1 if metric == UTILISATION else usual)
    scatter = np.where((below <= 0) | (metric != CLOCK), np.abs(below), np.nan)
    spread = _find_usual(scatter) if len(table) > _PAIR else 0.0
    is_low, found = (below >= least) & (below >= limits.spread * spread), dict[str, Change]()
    for name, own, low in zip(peers.names, table, is_low, strict=True):
        known = np.count_nonzero(~np.isnan(own))
        if known * 2 >= len(low) and np.count_nonzero(low) >= max(limits.most * known, 1):
            levels = float(np.median(usual[low])), float(np.median(own[low]))
            spans = intervals.union(peers.blocks[low], within=1)
            found[name] = Change(*levels, spans, spans, int(np.count_nonzero(low)), is_standing=True)
    return found


@rule("slow_gpu")
def find_slow_gpus(context: Context, limits: Limits) -> Found:
    """Yield a finding for the GPUs that are slower for one cause."""
    if len(context.active) >= _PAIR and context.window and context.window.seconds < limits.shortest:
        yield missing_metrics.too_short("slow_gpu", context.window.seconds, limits.shortest, "the work takes")
        return
    for peers in compare_peers(context, limits.block, limits.readings):
        metric, least = (POWER, "weaker") if np.isnan(peers.tables[CLOCK]).all() else (CLOCK, "slower")
        if np.isnan(peers.tables[metric]).all():
            yield from (missing_metrics.not_recorded("slow_gpu", device, CLOCK) for device in peers.names)
        slow = find_lower(peers, metric, getattr(limits, least), limits)
        causes: dict[str, list[str]] = {}
        for name in slow:
            causes.setdefault(_find_cause(context, peers, name, limits), []).append(name)
        for cause, names in causes.items():
            change = slow[max(names, key=lambda name: slow[name].fall)]
            spans = intervals.union(np.concatenate([slow[name].spans for name in names]))
            warm, cool = _compare_heat(peers, names)
            unit, is_sure = "Hz" if metric == CLOCK else "W", metric == CLOCK and cause not in {"warm", "board"}
            yield context.finding(
                "slow_gpu",
                Severity.INFO if cause in {"heat", "hardware"} else Severity.WARNING,
                Confidence.HIGH if is_sure and 2 * len(slow) < len(peers.names) else Confidence.MEDIUM,
                names,
                [
                    measured(metric, "median of its means", change.level, unit),
                    measured(metric, phrases.PEERS_MEAN, change.usual, unit),
                    limits.compare(metric, "difference, of its peers", change.fall, ">=", least),
                ],
                spans=spans,
                cause="heat" if cause == "warm" else cause,
                case=cause,
                samples=change.readings,
                gpus=phrases.gpu_names(names, peers.names),
                share=phrases.percent(1 - change.fall),
                what="clock" if metric == CLOCK else "power",
                level=show(change.level, unit),
                usual=show(change.usual, unit),
                heat=f"{warm:.0f} °C instead of {cool:.0f} °C" if warm - cool >= limits.hotter else "",
            )


def _compare_heat(peers: Peers, names: Sequence[str]) -> tuple[float, float]:
    rows = np.isin(peers.names, names)
    if rows.all() or not rows.any():
        return 0.0, 0.0
    warm, cool = (float(np.median(np.nan_to_num(peers.tables[TEMPERATURE][each]))) for each in (rows, ~rows))
    return warm, cool


def _find_cause(context: Context, peers: Peers, device: str, limits: Limits) -> str:
    """Return why a GPU is slow, by findings on it and not on most of its peers, or by its heat alone."""
    for kind, cause in (*_CAUSES.items(), ("clocks_locked", "locked")):
        having = [name for name in peers.names if not all(map(is_hardly_reached, context.findings(kind, name)))]
        if device in having and 2 * len(having) <= len(peers.names):
            return cause
    warm, cool = _compare_heat(peers, [device])
    if warm >= limits.hot and warm - cool >= limits.hotter and not are_events_recorded(context.series[device], *HEAT):
        return "warm"
    return "board" if all(context.findings("power_cap", name) for name in peers.names) else "not shown"
