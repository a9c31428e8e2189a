"""GPUs of one model that differ within a job: they do more or less work, or are slower."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job.jobs import POINT_SAMPLE_SECONDS
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules.clocks import is_hardly_reached
from gpureport.analysis.series import CLOCK, POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.series.clock_and_power import HEAT, are_events_recorded, gather_signals
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.intervals import Spans, contains, intersection, overlap_seconds, total_seconds, union
from gpureport.analysis.series.statistics import build_grid, rolling_mean
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Confidence, Finding, Severity

_PAIR, _FEWEST = 2, 4
_MOST_BLOCKS = 100_000  # maximum number, even if a clock jumps by years
_HELD = ("slow_gpu", "power_limited", "clocks_locked")
_METRICS = {"utilisation": UTILISATION, "power": POWER}
"""The metrics to compare: utilisation in points, power as a ratio."""
_CAUSES = {"thermal_throttle": "heat", "hw_throttle": "hardware", "power_limited": "cap", "power_cap": "cap"}


@rule("imbalance")
def find_uneven_gpus(context: Context, limits: Limits) -> Found:
    for peers in (each for each in context.peers() if len(each) >= _PAIR):
        grid = build_grid(context.job, list(peers.values()))
        length = max(round(limits.over / grid.width), round(limits.rows))
        needed = max(limits.shortest, limits.stretches * length * grid.width)
        if context.whole.seconds < needed:
            yield doubts.too_short("imbalance", context.whole.seconds, needed)
            continue
        cells, means = grid.cells, {signal: list[FloatArray]() for signal in _METRICS}
        held = [{name for name in peers if context.findings(kind, name)} for kind in _HELD]
        is_held = {name for names in held if 2 * len(names) <= len(peers) for name in names}
        explaining = {found.kind for found in context.earlier_findings} - {*_HELD}
        for name, series in peers.items():
            is_left_out = overlap_seconds(*cells, context.spans_on(name, explaining)) > 0
            for signal, metric in _METRICS.items():
                values = np.where(is_left_out, np.nan, grid.average_metric(series, metric))
                means[signal].append(np.where(is_left_out, np.nan, rolling_mean(values, length)))
        odd = {signal: _find_odd(np.stack(each), signal, limits) for signal, each in means.items()}
        is_full = np.all([used >= limits.busy for used in means["utilisation"]], axis=0)
        odd["power"] &= is_full & ~odd["utilisation"].any(axis=0)
        is_coarse = grid.width > POINT_SAMPLE_SECONDS
        for signal, rows in odd.items():
            for name, is_odd in zip(peers, rows, strict=True):
                spans = grid.mask_to_spans(is_odd, needed if is_coarse else limits.over, needed)
                spans = intersection(spans, context.work)
                sizes = np.array([_measure_difference(peers, name, signal, span, limits) for span in spans])
                far = np.abs(sizes) >= _list_limits(signal, limits)[0]
                seconds = spans[:, 1] - spans[:, 0]
                # only the direction that lasts longer counts
                is_ahead = 2 * seconds[far & (sizes > 0)].sum() >= seconds[far].sum()
                spans = spans[far & ((sizes > 0) == is_ahead)]
                if len(spans) and (is_ahead or signal != "power" or name not in is_held):
                    yield _build_finding(context, peers, name, signal, spans, limits)


def _list_limits(signal: str, limits: Limits) -> tuple[float, float]:
    return (limits.power_differs, limits.power_agree) if signal == "power" else (limits.differs, limits.agree)


def _find_odd(means: FloatArray, signal: str, limits: Limits) -> BoolArray:
    """Return the bins (columns) in which a GPU (row) differs from all others. Of two GPUs, the lower one differs."""
    differs, agree = _list_limits(signal, limits)
    ordered, columns = np.sort(means, axis=0), np.arange(means.shape[1])
    others = np.count_nonzero(~np.isnan(means), axis=0) - 1

    def take(place: IntArray) -> FloatArray:
        here, after = (ordered[(place + step).clip(0, len(means) - 1), columns] for step in (0, 1))
        return np.asarray(np.where(here < means, here, after), dtype=np.float64)

    usual = (take((others - 1) // 2) + take(others // 2)) / 2
    scale = usual if signal == "power" else np.ones_like(usual)
    is_known = (others > 0) & (2 * others >= len(means) - 1)
    is_agreed = is_known & (take(others - 1) - take(0 * others) < agree * scale)
    is_far = (np.abs(means - usual) > differs * scale) & ((means < usual) | (len(means) > _PAIR))
    return np.asarray(is_agreed & is_far, dtype=np.bool_)


def _read_samples(peers: Mapping[str, DeviceSeries], signal: str, spans: Spans) -> dict[str, FloatArray]:
    samples = {name: one.find_values(_METRICS[signal], spans) for name, one in peers.items()}
    return {name: values for name, values in samples.items() if len(values)}


def _measure_difference(
    peers: Mapping[str, DeviceSeries], name: str, signal: str, span: IntArray, limits: Limits
) -> float:
    samples = _read_samples(peers, signal, span[np.newaxis])
    own = samples.pop(name, None)
    if own is None or not samples:
        return 0.0
    usual = float(np.median([each.mean() for each in samples.values()]))
    pooled = np.concatenate([*samples.values()])
    if signal == "power":
        return float(own.mean() - usual) / usual if usual > 0 else 0.0
    error = limits.errors * float(np.sqrt(own.var() / len(own) + pooled.var() / len(pooled)))
    is_coarse = max(one.interval for one in peers.values()) > POINT_SAMPLE_SECONDS
    is_chance = is_coarse and abs(float(own.mean() - pooled.mean())) - error < limits.differs
    return 0.0 if is_chance else float(own.mean()) - usual


def _build_finding(  # noqa: PLR0913, PLR0917 - the GPUs, the metric and the times
    context: Context, peers: Mapping[str, DeviceSeries], name: str, signal: str, spans: Spans, limits: Limits
) -> Finding:
    metric, is_power, unit = _METRICS[signal], signal == "power", "W" if signal == "power" else "1"
    means = {each: float(values.mean()) for each, values in _read_samples(peers, signal, spans).items()}
    own, others, seconds = means[name], [each for each in means if each != name], total_seconds(spans)
    usual = float(np.median([means[each] for each in others]))
    is_sure = len(others) >= _PAIR and max(one.interval for one in peers.values()) <= limits.coarse
    beside = phrases.gpu_name(others[0]) if len(others) == 1 else "the others"
    by = ("difference, relative to peers", abs(own - usual) / usual) if is_power else ("difference", abs(own - usual))
    return context.finding(
        "imbalance",
        Severity.WARNING,
        Confidence.HIGH if is_sure else Confidence.MEDIUM,
        (name,),
        measured(metric, "mean", own, unit),
        measured(metric, phrases.PEERS_MEAN, usual, unit),
        limits.compare(metric, *by, ">=", "power_differs" if is_power else "differs"),
        limits.compare("duration", "total", seconds, ">=", "shortest"),
        spans=spans,
        lost=None if is_power else ((usual - own if own < usual else (own - usual) * len(others)) * seconds),
        cause=signal,
        samples=min(peers[each].count_readings(metric, contains(spans, peers[each].times)) for each in means),
        words={"peers": beside, "waiter": phrases.capitalize(beside) if own > usual else ""}
        | {name: f"{x:.0f} W" if is_power else x for name, x in (("own", own), ("usual", usual))},
    )


class Change(NamedTuple):
    """A metric's usual and lowest sustained level, the times of both, and the number of readings at the lowest."""

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


class Peers(NamedTuple):
    """Busy GPUs of one model, and tables of means per GPU (row) and block of time (column)."""

    names: list[str]
    blocks: Spans
    tables: Mapping[str, FloatArray]


@memoized
def compare_peers(context: Context, block: float, readings: float) -> tuple[Peers, ...]:
    window, made = context.job, list[Peers]()
    for peers in context.peers():
        interval = max(one.interval for one in peers.values())
        count = int(window.seconds / max(block, readings * interval, window.seconds / _MOST_BLOCKS))
        if len(peers) < _PAIR or count < _FEWEST:
            continue
        edges = np.linspace(window.start, window.end, count + 1).astype(np.int64)
        tables: dict[str, list[FloatArray]] = {UTILISATION: [], CLOCK: [], POWER: [], TEMPERATURE: []}
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


def _find_usual(table: FloatArray) -> FloatArray:
    known = np.count_nonzero(~np.isnan(table), axis=0)
    # a lone value is not usual; the last one in order is then NaN
    middle = np.where(known < _PAIR, -1, known // 2)
    return np.asarray(np.sort(table, axis=0)[middle, np.arange(len(middle))], dtype=np.float64)


def find_lower(peers: Peers, metric: str, least: float, limits: Limits) -> dict[str, Change]:
    """Return the GPUs with lower values than equally busy peers for most of the work.

    The difference must exceed the usual spread. For clocks, only the faster GPUs count, so half the GPUs may be slow.
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
            spans = union(peers.blocks[low], within=1)
            found[name] = Change(*levels, spans, spans, int(np.count_nonzero(low)), is_standing=True)
    return found


@rule("slow_gpu")
def find_slow_gpus(context: Context, limits: Limits) -> Found:
    if len(context.active) >= _PAIR and context.window and context.window.seconds < limits.shortest:
        yield doubts.too_short("slow_gpu", context.window.seconds, limits.shortest, "the work lasted")
        return
    for peers in compare_peers(context, limits.block, limits.readings):
        metric, least = (POWER, "weaker") if np.isnan(peers.tables[CLOCK]).all() else (CLOCK, "slower")
        if np.isnan(peers.tables[metric]).all():
            yield from (doubts.not_recorded("slow_gpu", device, CLOCK) for device in peers.names)
        slow = find_lower(peers, metric, getattr(limits, least), limits)
        causes = dict[str, list[str]]()
        for name in slow:
            causes.setdefault(_find_cause(context, peers, name, limits), []).append(name)
        for cause, names in causes.items():
            change = slow[max(names, key=lambda name: slow[name].fall)]
            warm, cool = _compare_heat(peers, names)
            unit = "Hz" if metric == CLOCK else "W"
            is_sure = metric == CLOCK and cause not in {"warm", "board"}
            yield context.finding(
                "slow_gpu",
                Severity.INFO if cause in {"heat", "hardware"} else Severity.WARNING,
                Confidence.HIGH if is_sure and 2 * len(slow) < len(peers.names) else Confidence.MEDIUM,
                names,
                measured(metric, "median of its means", change.level, unit),
                measured(metric, phrases.PEERS_MEAN, change.usual, unit),
                limits.compare(metric, "difference, relative to peers", change.fall, ">=", least),
                spans=union(np.concatenate([slow[name].spans for name in names])),
                cause="heat" if cause == "warm" else cause,
                case=cause,
                samples=change.readings,
                words={
                    "gpus": phrases.gpu_names(names, peers.names),
                    "what": "clock" if metric == CLOCK else "power",
                    "share": 1 - change.fall,
                    "level": show(change.level, unit),
                    "usual": show(change.usual, unit),
                    "warm": warm if warm - cool >= limits.hotter else None,
                    "cool": cool,
                },
            )


def _compare_heat(peers: Peers, names: Sequence[str]) -> tuple[float, float]:
    rows = np.isin(peers.names, names)
    warm, cool = (float(np.median(np.nan_to_num(peers.tables[TEMPERATURE][each]))) for each in (rows, ~rows))
    return warm, cool


def _find_cause(context: Context, peers: Peers, device: str, limits: Limits) -> str:
    for kind, cause in (*_CAUSES.items(), ("clocks_locked", "locked")):
        having = [name for name in peers.names if not all(map(is_hardly_reached, context.findings(kind, name)))]
        if device in having and 2 * len(having) <= len(peers.names):
            return cause
    warm, cool = _compare_heat(peers, [device])
    if warm >= limits.hot and warm - cool >= limits.hotter and not are_events_recorded(context.series[device], *HEAT):
        return "warm"
    return "board" if all(context.findings("power_cap", name) for name in peers.names) else "not shown"
