"""GPUs that work differently from their peers, which agree among themselves."""

from collections.abc import Mapping

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS
from gpureport.analysis.names import POWER, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import build_grid, rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Confidence, Finding, Severity

_PAIR = 2
_HELD = ("slow_gpu", "power_limited", "clocks_locked")
"""Kinds that explain why a GPU draws less than most of its peers."""
_METRICS = {"utilisation": UTILISATION, "power": POWER}
"""What GPUs are compared by: utilisation in points, power as a share of the peers'."""


@rule("imbalance")
def find_uneven_gpus(context: Context, limits: Limits) -> Found:
    """Yield at most one finding per GPU and signal, with all its episodes."""
    for peers in (each for each in context.peers() if len(each) >= _PAIR):
        grid = build_grid(context.window or context.whole, list(peers.values()))
        length = max(round(limits.over / grid.width), round(limits.rows))
        needed = max(limits.shortest, limits.stretches * length * grid.width)
        if context.whole.seconds < needed:
            yield missing_metrics.too_short("imbalance", context.whole.seconds, needed)
            continue
        cells, means = grid.cells, {signal: list[FloatArray]() for signal in _METRICS}
        held = [{name for name in peers if context.findings(kind, name)} for kind in _HELD]
        is_held = {name for names in held if 2 * len(names) <= len(peers) for name in names}
        for name, series in peers.items():
            explained = [
                part for found in context.findings_on(name) if found.kind not in _HELD for part in found.intervals
            ]
            is_left_out = intervals.overlap_seconds(*cells, intervals.to_spans(explained)) > 0
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
                spans = intervals.intersection(spans, context.work)
                sizes = np.array([_measure_difference(peers, name, signal, span, limits) for span in spans])
                far, seconds = np.abs(sizes) >= _list_limits(signal, limits)[0], spans[:, 1] - spans[:, 0]
                # a GPU that is ahead for as long as it is behind does as much work
                is_ahead = 2 * seconds[far & (sizes > 0)].sum() >= seconds[far].sum()
                spans = spans[far & ((sizes > 0) == is_ahead)]
                if len(spans) and (is_ahead or signal != "power" or name not in is_held):
                    yield _build_finding(context, peers, name, signal, spans, limits)


def _list_limits(signal: str, limits: Limits) -> tuple[float, float]:
    is_power = signal == "power"
    return (limits.power_differs, limits.power_agree) if is_power else (limits.differs, limits.agree)


def _find_odd(means: FloatArray, signal: str, limits: Limits) -> BoolArray:
    """Return in which bins (columns) a GPU (row) is far from the median of the others, which agree; of two the lower.

    Others are read from the ordered column: from its own value on, one place further.
    """
    differs, agree = _list_limits(signal, limits)
    lowest = np.fmin.reduce(means)
    if not (np.fmax.reduce(means) - lowest > differs * (lowest if signal == "power" else 1.0)).any():
        return np.zeros(means.shape, dtype=np.bool_)
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
    """Return by how much a GPU's mean is above its peers', 0 where chance may explain it."""
    samples = _read_samples(peers, signal, span[np.newaxis])
    own = samples.pop(name, None)
    if own is None or not samples:
        return 0.0
    usual, pooled = float(np.median([each.mean() for each in samples.values()])), np.concatenate([*samples.values()])
    if signal == "power":
        return float(own.mean() - usual) / usual if usual > 0 else 0.0
    error = limits.errors * float(np.sqrt(own.var() / len(own) + pooled.var() / len(pooled)))
    is_coarse = max(one.interval for one in peers.values()) > POINT_SAMPLE_SECONDS
    is_chance = is_coarse and abs(float(own.mean() - pooled.mean())) - error < limits.differs
    return 0.0 if is_chance else float(own.mean()) - usual


def _build_finding(  # noqa: PLR0913, PLR0917 - who differs, in what and when
    context: Context, peers: Mapping[str, DeviceSeries], name: str, signal: str, spans: Spans, limits: Limits
) -> Finding:
    metric, is_power, unit = _METRICS[signal], signal == "power", "W" if signal == "power" else "1"
    means = {each: float(values.mean()) for each, values in _read_samples(peers, signal, spans).items()}
    own, others, seconds = means[name], [each for each in means if each != name], intervals.total_seconds(spans)
    usual = float(np.median([means[each] for each in others]))
    lost = (usual - own if own < usual else (own - usual) * len(others)) * seconds
    is_sure = len(others) >= _PAIR and max(one.interval for one in peers.values()) <= limits.coarse
    beside = phrases.gpu_name(others[0]) if len(others) == 1 else "the others"
    by = ("difference, of its peers", abs(own - usual) / usual) if is_power else ("difference", abs(own - usual))
    return context.finding(
        "imbalance",
        Severity.WARNING,
        Confidence.HIGH if is_sure else Confidence.MEDIUM,
        (name,),
        (
            measured(metric, "mean", own, unit),
            measured(metric, phrases.PEERS_MEAN, usual, unit),
            limits.compare(metric, *by, ">=", "power_differs" if is_power else "differs"),
            limits.compare("duration", "total", seconds, ">=", "shortest"),
        ),
        spans=spans,
        lost=None if is_power else lost,
        cause=signal,
        samples=min(peers[each].count_readings(metric, intervals.contains(spans, peers[each].times)) for each in means),
        ruled_out=(
            "idle gaps, slowdowns and busy time at low power, left out for the GPU they concern",
            "a GPU never used",
        ),
        own=f"{own:.0f} W" if is_power else phrases.percent(own),
        peers=beside,
        usual=f"{usual:.0f} W" if is_power else phrases.percent(usual),
        waiter=phrases.capitalize(beside) if own > usual else "",
    )
