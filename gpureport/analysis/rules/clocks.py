"""Clocks below what a GPU could run at: slowed by heat or hardware, at the power limit, or set by somebody."""

from typing import Any

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.names import CLOCK, POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, compare_with_limit, measured, rule
from gpureport.analysis.series import clock_and_power as signals
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import ClockSignals, find_event_rows, gather_signals, median
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.intervals import NO_SPANS, Spans
from gpureport.analysis.series.statistics import rolling_mean
from gpureport.columns import BoolArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, Provenance, Severity, Threshold
from gpureport.metrics import find_gpu

BRAKE, CAP, HEAT, SLOWDOWN = signals.BRAKE, signals.CAP, signals.HEAT, signals.SLOWDOWN
CLOCK_MAX, LIMIT = "gpu_sm_clock_max_hertz", signals.LIMIT
_REACH = "p95 while busy, of the limit"
_BY_ANOTHER_CAP = "capped below its limit"


Slowdown = tuple[BoolArray, Spans, bool]  # rows in which a GPU was slowed, its episodes, and whether the driver says so
Slowdowns = dict[str, Slowdown | None]


def _find_heat(series: DeviceSeries, s: ClockSignals, limits: Limits) -> BoolArray | None:
    """Return the rows in which heat lowered the clock: by the driver's word, else by clock, temperature and power.

    A power cap keeps power at its limit; heat lowers the clock further and leaves power unused. The load varies by
    more, so means around each sample decide, until the clock is back. A GPU is hot at its limit, if known, or where
    it is hottest in its run, if clock and power fall much further than a warm GPU's.
    """
    if signals.are_events_recorded(series, *HEAT):
        return find_event_rows(series, *HEAT)
    limit, rows = s.temperature_limit, np.zeros_like(s.busy)
    degrees = s.temperature[s.busy & ~np.isnan(s.temperature) & (s.temperature >= limits.hot).any()]
    own = max(limits.hot, np.quantile(degrees, 0.95) - limits.hottest) if len(degrees) else np.nan
    for hot, cool, fallen, sunk in (
        (limit - limits.near_limit, limit - limits.cool, limits.clock_drop, np.inf),
        (own, own, limits.fallen, limits.power_fallen),
    ):
        is_hot, is_cool = s.busy & (s.temperature >= hot), s.busy & (s.temperature < cool)
        full, most = signals.high_quantile(s.clock, is_cool), sunk * signals.high_quantile(s.power, is_cool)
        if np.isnan(most):  # more load lowers the clock at once, heat only in a warm GPU
            full = signals.high_quantile(s.clock, is_cool & (s.temperature >= hot - limits.hottest), 0.5)
        suspect = is_hot & (s.clock < fallen * full)
        if suspect.any():
            length = max(5, round(limits.settled / series.interval))
            clock, power, of_limit = (
                rolling_mean(np.where(s.busy, values, np.nan), length)
                for values in (s.clock, s.power, s.power / s.power_limit)
            )
            is_free = ~(of_limit >= limits.power_free) & ((sunk < np.inf) | ~np.isnan(of_limit))
            ended = ~is_hot | (clock >= limits.clock_back * full)
            low = suspect & (clock < fallen * full) & is_free & (np.isnan(most) | (power < most))
            rows |= low | (_come_since(low, ended) & _come_since(low[::-1], ended[::-1])[::-1])
    return rows if rows.any() or _is_known(s) else None


def _come_since(rows: BoolArray, ended: BoolArray) -> BoolArray:
    place = np.arange(len(rows))
    return np.maximum.accumulate(np.where(rows, place, -1)) > np.maximum.accumulate(np.where(ended, place, -1))


def _find_braking(series: DeviceSeries, s: ClockSignals, limits: Limits) -> BoolArray | None:
    """Return the rows in which hardware lowered the clock, but not for heat; a GPU with pauses does so by itself."""
    if signals.are_events_recorded(series, BRAKE, SLOWDOWN):
        bare = find_event_rows(series, SLOWDOWN) & s.busy & ~find_event_rows(series, *HEAT)
        brake = find_event_rows(series, BRAKE)
        # a change of performance state sets the same bit
        if bare.any() and not brake.any() and (np.isnan(s.clock).all() or np.isnan(s.clock_max)):
            return None
        return np.asarray(brake | (bare & (s.clock < limits.hw_clock * s.clock_max)), dtype=np.bool_)
    use = series.values(UTILISATION)
    sustained = rolling_mean(use, max(5, round(limits.settled / series.interval))) >= limits.at_work
    cool = sustained & (use >= limits.at_work) & (s.temperature < s.temperature_limit - limits.cool)
    is_cut = s.clock < limits.hw_drop * signals.high_quantile(s.clock, cool)
    rows = cool & is_cut & (s.power < limits.hw_power * s.power_limit)
    return rows if _is_known(s) and series.is_recorded(UTILISATION) else None


def _is_known(s: ClockSignals) -> bool:
    needed = (s.clock, s.temperature, s.power, s.power_limit)
    return not np.isnan(s.temperature_limit) and not any(np.isnan(values).all() for values in needed)


_HEAT = "thermal_throttle"
_DETECTORS = {_HEAT: (_find_heat, HEAT), "hw_throttle": (_find_braking, (BRAKE, SLOWDOWN))}


@memoized
def find_slowdowns(series: DeviceSeries, limits: Limits, whole: Interval) -> tuple[Slowdowns, BoolArray]:
    """Return what slowed a GPU by kind, None where unknown, and the rows in which anything did."""
    found, slowed = Slowdowns(), np.zeros(len(series), dtype=np.bool_)
    for kind, (detect, reasons) in _DETECTORS.items():
        rows, spans = detect(series, gather_signals(series), limits), NO_SPANS
        if rows is not None and rows.any():
            spans = _find_episodes(series, rows, limits, whole)
            # a row at its end belongs to it, as the last sample of a log does
            rows = rows & (intervals.contains(spans, series.times) | np.isin(series.times, spans[:, 1]))
            slowed |= rows
        found[kind] = None if rows is None else (rows, spans, signals.are_events_recorded(series, *reasons))
    return found, slowed


def _join(series: DeviceSeries, spans: Spans, limits: Limits, whole: Interval) -> Spans:
    near = round((max(limits.merge, 2.5 * series.interval) - series.interval) * 1e6)
    spans = intervals.difference(intervals.union(spans, within=near), intervals.to_spans(series.gaps))
    spans = intervals.drop_shorter(spans, max(limits.shortest, 1.5 * series.interval))
    return intervals.drop_shorter(intervals.intersection(spans, intervals.to_spans([whole])), limits.shortest)


def _find_episodes(series: DeviceSeries, rows: BoolArray, limits: Limits, whole: Interval) -> Spans:
    s, spans = gather_signals(series), intervals.rows_to_spans(series.start, series.end, rows)
    if len(spans) > 1 and not np.isnan(s.temperature[rows]).all():
        # between two a GPU stayed as hot: the controller let go for a moment
        cooled = (s.temperature < float(np.nanmedian(s.temperature[rows])) - limits.near_limit) | ~s.busy
        so_far = np.concatenate([[0], np.cumsum(cooled)])
        first, stop = np.searchsorted(series.times, spans[:-1, 1]), np.searchsorted(series.times, spans[1:, 0])
        is_near = spans[1:, 0] - spans[:-1, 1] <= limits.release * series.interval * 1e6
        holes = np.column_stack([spans[:-1, 1], spans[1:, 0]])[is_near & (so_far[stop] == so_far[first])]
        spans = np.concatenate([spans, holes])
    return _join(series, spans, limits, whole)


@rule("throttling")
def find_throttling(context: Context, limits: Limits) -> Found:
    """Yield one finding for each GPU and kind with all its episodes."""
    metrics = [*(f"clock_event_{name}" for name in (*HEAT, SLOWDOWN, BRAKE)), CLOCK, CLOCK_MAX, LIMIT]
    for kind in _DETECTORS:
        for device, series in context.gpus().items():
            slowdown = find_slowdowns(series, limits, context.whole)[0][kind]
            needed = max(limits.shortest, 1.5 * series.interval)
            if slowdown is None:
                reason = "neither the driver's reasons nor what shows a slowdown without them was recorded"
                yield missing_metrics.unjudged(kind, device, reason, metrics, code="signals_not_recorded")
            elif context.whole.seconds < needed:
                yield missing_metrics.too_short(kind, context.whole.seconds, needed)
            elif len(slowdown[1]):
                yield _build_slowdown(context, series, kind, slowdown, limits)


def _build_slowdown(context: Context, series: DeviceSeries, kind: str, slowdown: Slowdown, limits: Limits) -> Finding:
    rows, spans, is_direct = slowdown
    s, is_heat, slowed = gather_signals(series), kind == _HEAT, find_slowdowns(series, limits, context.whole)[1]
    seconds, (start, end) = intervals.total_seconds(spans), series.averaging_windows(context.whole)
    loss, (reference, description) = (
        signals.compute_loss(series, rows, slowed),
        signals.choose_reference_clock(s, slowed),
    )
    lost = None if loss is None else float((loss * (end - start)).sum() / 1e6)
    clocks = s.clock[rows & s.busy & ~np.isnan(s.clock)]
    ratio = float(clocks.mean()) / reference if len(clocks) else np.nan
    is_brake = (find_event_rows(series, BRAKE) & rows).any()
    hottest, source = float(np.fmax.reduce(s.temperature[rows], initial=np.nan)), s.temperature_limit_source
    limit = Threshold(value=s.temperature_limit, unit="Cel", provenance=Provenance.VENDOR, source=source)
    watts = s.power[rows & is_heat & ~np.isnan(s.power)]
    clock = limits.compare(CLOCK, f"mean, of {description}", ratio, "<", "clock_drop" if is_heat else "hw_drop")
    fall = phrases.percent(max(1 - ratio, 0))
    samples, whole = series.count_readings(UTILISATION, rows), max((context.window or context.whole).seconds, 1e-6)
    is_grave = not is_heat or (lost or 0.0) / whole >= limits.problem or seconds / whole >= limits.lasting
    return context.finding(
        kind,
        Severity.PROBLEM if is_grave else Severity.WARNING,
        certainty.by_readings(samples, series.interval, Confidence.HIGH if is_direct else Confidence.MEDIUM),
        [series.device.id],
        [
            limits.compare("duration", "total", seconds, ">=", "shortest"),
            compare_with_limit(TEMPERATURE, "max", hottest, ">=", limit),
            measured(POWER, "mean while slowed", float(np.mean(watts)) if len(watts) else np.nan, "W"),
            clock.as_context() if is_direct else clock,
        ],
        spans=spans,
        lost=lost,
        cause="heat" if is_heat else "power brake" if is_brake else "hardware",
        samples=samples,
        what="a power brake" if is_brake else "the hardware",
        heat="" if np.isnan(hottest) else f"{hottest:.0f} °C",
        fall="" if np.isnan(ratio) or fall == phrases.percent(0) else fall,
        probably="" if is_direct else "probably",
        not_known="not known" if lost is None else "",
    )


@rule("power_limits")
def find_power_limits(context: Context, limits: Limits) -> Found:
    """Yield at most one finding of each kind for each GPU."""
    for series in context.gpus().values():
        lowered = list(_judge_limit(context, series, limits))
        yield from _judge_cap(context, series, limits, is_lowered=any(isinstance(one, Finding) for one in lowered))
        yield from lowered


def _judge_limit(context: Context, series: DeviceSeries, limits: Limits) -> Found:
    s, (default, source), usual = gather_signals(series), signals.find_default_limit(series), "default"
    if np.isnan(default):
        default, source, usual = float(np.fmax.reduce(s.power_limit, initial=np.nan)), "as logged", "highest"
    lowered, spans = s.power_limit < limits.lowered * default, NO_SPANS
    if not (lowered | np.isnan(s.power_limit)).all():
        spans = _join(series, intervals.rows_to_spans(series.start, series.end, lowered), limits, context.whole)
        lowered &= intervals.contains(spans, series.times)
    if lowered.any():
        limit = median(s.power_limit[lowered])
        samples = series.count_readings(POWER, lowered if len(spans) else slice(None))
        reach = signals.high_quantile(s.power, s.busy & lowered) / limit
        case = "unknown" if np.isnan(reach) else "" if reach >= limits.reached else "not reached"
        length = intervals.total_seconds(spans) if len(spans) else np.nan
        after = (int(spans[0, 0]) - context.whole.start) / 1e6 if len(spans) else 0.0
        yield context.finding(
            "power_limited",
            Severity.INFO if case else Severity.WARNING,
            # how long the limit held does not matter, so a coarse log is as sure
            certainty.by_readings(samples) if source == "as logged" else Confidence.LOW,
            [series.device.id],
            [
                limits.compare(LIMIT, f"median, of the {usual} ({source})", limit / default, "<", "lowered"),
                limits.compare(POWER, _REACH, reach, "<" if case else ">=", "reached"),
                _clock_at_limit(s, s.busy & lowered & (s.power >= limits.reached * s.power_limit), limits),
                limits.compare("duration", "total", length, ">=", "shortest"),
            ],
            spans=spans,
            case=case,
            samples=samples,
            usual=usual,
            after=phrases.duration(after) if after >= limits.shortest else "",
            length=phrases.duration(length) if len(spans) else "",
            **_name_watts(limit, default),
        )
    elif np.isnan(s.power_limit).all() or usual == "highest":
        reason, metrics = "the power limit or its default is not known", (LIMIT, signals.DEFAULT_LIMIT)
        yield missing_metrics.unjudged("power_limited", series.device.id, reason, metrics, code="unknown_power_limit")


def is_hardly_reached(found: Finding) -> bool:
    return any(each.statistic == _REACH and each.relation == "<" for each in found.evidence)


def _name_watts(limit: float, default: float) -> dict[str, Any]:
    return {"limit": f"{limit:.0f} W", "share": phrases.percent(limit / default), "default": f"{default:.0f} W"}


def _clock_at_limit(s: ClockSignals, rows: BoolArray, limits: Limits) -> Evidence:
    ratio = median(s.clock[rows]) / s.clock_max
    return limits.compare(CLOCK, "median at the limit, of the highest", ratio, "<", "slow")


def _judge_cap(context: Context, series: DeviceSeries, limits: Limits, *, is_lowered: bool) -> Found:
    s, device = gather_signals(series), series.device.id
    is_direct = signals.are_events_recorded(series, CAP)
    if not is_direct and (np.isnan(s.power).all() or np.isnan(s.power_limit).all()):
        reason = "neither clock event reasons nor power and its limit were recorded"
        metrics = (f"clock_event_{CAP}", LIMIT)
        yield missing_metrics.unjudged("power_cap", device, reason, metrics, code="signals_not_recorded")
        return
    if context.whole.seconds < limits.shortest:
        yield missing_metrics.too_short("power_cap", context.whole.seconds, limits.shortest)
        return
    at_limit = find_event_rows(series, CAP) if is_direct else s.power >= limits.at_limit * s.power_limit
    rows = at_limit & s.busy
    spans = _join(series, intervals.rows_to_spans(series.start, series.end, rows), limits, context.whole)
    share = float(series.seconds[rows].sum()) / max(float(series.seconds[s.busy].sum()), 1e-9)
    if not len(spans) or share < limits.least:
        return
    of_busy = limits.compare("power cap", "share of busy time", share, ">=", "least")
    samples, limit = series.count_readings(POWER, rows), median(s.power_limit[rows])
    limit = signals.find_default_limit(series)[0] if np.isnan(limit) else limit
    low, level, high = (signals.high_quantile(s.power, rows, part) for part in (0.05, 0.5, 0.95))
    is_below = not is_lowered and high < limits.far_below * limit and high - low < limits.even * level
    if is_below and share >= limits.mostly:
        yield context.finding(
            "power_limited",
            Severity.WARNING,
            certainty.by_readings(samples, series.interval, Confidence.MEDIUM),
            [device],
            [
                limits.compare(POWER, "median at the cap, of the limit", level / limit, "<", "far_below"),
                measured(POWER, "level at the cap", level, "W"),
                measured(LIMIT, "in force", limit, "W"),
                of_busy,
            ],
            spans=spans,
            cause=_BY_ANOTHER_CAP,
            samples=samples,
            **_name_watts(level, limit),
        )
        return
    clock, model = _clock_at_limit(s, rows, limits), find_gpu(series.device.model)
    is_slow = not is_lowered and clock.observed < limits.slow and not (model and model.clock_events_masked)
    case, part = "chosen" if is_lowered else "slow" if is_slow else "", phrases.percent(share)
    yield context.finding(
        "power_cap",
        Severity.WARNING if is_slow else Severity.INFO,
        certainty.by_readings(samples, series.interval, Confidence.HIGH if is_direct else Confidence.MEDIUM),
        [device],
        [of_busy, clock if is_slow else clock.as_context()],
        spans=spans,
        case=case,
        samples=samples,
        when="throughout" if part == phrases.percent(1) else f"for {part} of its busy time",
        clock="" if np.isnan(clock.observed) else phrases.percent(clock.observed),
        normal="" if case else "normal",
    )


@rule("clocks_locked")
def find_locked_clocks(context: Context, limits: Limits) -> Found:
    """Yield at most one finding on all GPUs with set clocks: a bit says so, or the clock stands still."""
    found: list[tuple[float, float, float, DeviceSeries]] = []
    for device, series in context.gpus().items():
        s = gather_signals(series)
        if not signals.are_events_recorded(series, *signals.CHOSEN) and np.isnan(s.clock).all():
            yield missing_metrics.not_recorded("clocks_locked", device, f"clock_event_{signals.CHOSEN[0]}", CLOCK)
        elif s.busy.sum() < limits.fewest:
            few, reason = missing_metrics.count_of(int(s.busy.sum()), "busy sample"), "only {} show the clock at work"
            code = "too_few_busy_samples"
            yield missing_metrics.unjudged("clocks_locked", device, reason, [UTILISATION], few, code=code)
        else:
            chosen = find_event_rows(series, *signals.CHOSEN) & s.busy
            share = float(series.seconds[chosen].sum() / max(series.seconds[s.busy].sum(), 1e-9))
            highest = float(np.fmax.reduce(s.clock)) if np.isnan(s.clock_max) else s.clock_max
            ratio = median(s.clock[s.busy]) / highest if highest > 0 else float("nan")
            if not ratio >= limits.highest if share >= limits.held else _stands_still(series, s, ratio, limits):
                found.append((ratio, share, highest, series))
    if not found:
        return
    ratio, share, highest, series = min(found, key=lambda one: 1.0 if np.isnan(one[0]) else one[0])
    is_told, s = all(one[1] >= limits.held for one in found), gather_signals(series)
    devices, samples = [one.device.id for *_, one in found], [int(gather_signals(one).busy.sum()) for *_, one in found]
    limit = "highest" if share >= limits.held else "below"
    yield context.finding(
        "clocks_locked",
        Severity.INFO,
        certainty.by_readings(min(samples), most=Confidence.HIGH if is_told else Confidence.MEDIUM),
        devices,
        [
            limits.compare("clock set", "share of busy time", share or np.nan, ">=", "held"),
            limits.compare(CLOCK, "median while busy, of the highest", ratio, "<", limit),
        ],
        samples=sum(samples),
        probably="" if is_told else "probably",
        clock=phrases.megahertz(median(s.clock[s.busy])) if s.clock[s.busy].any() else "",
        more="or more" if len(found) > 1 else "",
        was="seen was" if np.isnan(s.clock_max) else "is",
        highest="" if np.isnan(ratio) else phrases.megahertz(highest),
    )


def _stands_still(series: DeviceSeries, s: ClockSignals, ratio: float, limits: Limits) -> bool:
    if not ratio < limits.below:
        return False
    rows = s.busy & ~(series.values(UTILISATION) < limits.busy) & ~np.isnan(s.clock)
    rows &= ~find_event_rows(series, CAP, SLOWDOWN, BRAKE, *HEAT)
    if rows.sum() < max(limits.steady, limits.below * s.busy.sum()):
        return False
    low, high = np.quantile(s.clock[rows], [0.01, 0.99])
    return bool(high - low <= limits.step and not (s.power >= limits.power_free * s.power_limit)[rows].any())
