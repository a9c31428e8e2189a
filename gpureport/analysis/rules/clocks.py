"""Low clocks: lowered by heat, hardware or the power limit, or locked by a user."""

from collections.abc import Iterator

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.rulebook import Context, Found, Limits, compare_with_limit, measured, rule
from gpureport.analysis.series import CLOCK, POWER, TEMPERATURE, UTILISATION, intervals
from gpureport.analysis.series import clock_and_power as signals
from gpureport.analysis.series.clock_and_power import ClockSignals, HeldClock, find_event_rows, gather_signals, median
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.statistics import rolling_mean
from gpureport.columns import BoolArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, Provenance, Severity, Threshold
from gpureport.metrics import find_gpu

BRAKE, CAP, HEAT, SLOWDOWN = signals.BRAKE, signals.CAP, signals.HEAT, signals.SLOWDOWN
UNEXPLAINED = "hardware slowdown, reason not recorded"  # only the bit for any hardware slowdown was set
_REACH = "p95 while busy, as a share of the limit"
_BY_ANOTHER_CAP = "capped below its limit"
Slowdowns = dict[str, tuple[HeldClock | None, intervals.Spans]]


def _list_counted(series: DeviceSeries, *reasons: str) -> Iterator[Evidence]:
    for reason in reasons:
        counted = signals.hold_clock_by_events(series, reason).counted or np.nan
        yield measured(signals.counter_name(reason), "rise over the recording", counted, "s")


def _find_heat(series: DeviceSeries, s: ClockSignals, limits: Limits) -> HeldClock | None:
    """Return when heat lowered the clock, or None if unknown.

    Without event bits and counters, clock, temperature and power decide. A power cap keeps power at
    its limit; heat keeps it lower. A GPU is hot near its temperature limit. If clock and power
    fall much further, temperatures near the highest in the run also count as hot.
    """
    if signals.are_events_recorded(series, *HEAT):
        return signals.hold_clock_by_events(series, *HEAT)
    limit, rows = s.temperature_limit, np.zeros_like(s.busy)
    degrees = s.temperature[s.busy & ~np.isnan(s.temperature) & (s.temperature >= limits.hot).any()]
    own = max(limits.hot, np.quantile(degrees, 0.95) - limits.hottest) if len(degrees) else np.nan
    for hot, cool, fallen, sunk in (
        (limit - limits.near_limit, limit - limits.cool, limits.clock_drop, np.inf),
        (own, own, limits.fallen, limits.power_fallen),
    ):
        is_hot, is_cool = s.busy & (s.temperature >= hot), s.busy & (s.temperature < cool)
        full = signals.high_quantile(s.clock, is_cool)
        most = sunk * signals.high_quantile(s.power, is_cool)
        if np.isnan(most):  # without power: load lowers the clock at once, heat only in a warm GPU
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
    return signals.hold_clock(rows, is_direct=False) if rows.any() or _is_known(s) else None


def _come_since(rows: BoolArray, ended: BoolArray) -> BoolArray:
    place = np.arange(len(rows))
    return np.maximum.accumulate(np.where(rows, place, -1)) > np.maximum.accumulate(np.where(ended, place, -1))


def _find_braking(series: DeviceSeries, s: ClockSignals, limits: Limits) -> HeldClock | None:
    if signals.are_events_recorded(series, BRAKE, SLOWDOWN):
        bare = find_event_rows(series, SLOWDOWN) & s.busy & ~find_event_rows(series, *HEAT)
        # a change in the performance state sets the same bit
        is_unclear = bare.any() and (np.isnan(s.clock).all() or np.isnan(s.clock_max))
        if is_unclear and not find_event_rows(series, BRAKE).any():
            return None
        brake = series.values(f"clock_event_{BRAKE}") > 0
        return signals.add_counters(series, brake | (bare & (s.clock < limits.hw_clock * s.clock_max)), BRAKE)
    if not _is_known(s) or not series.is_recorded(UTILISATION):
        return None
    use = series.values(UTILISATION)
    sustained = rolling_mean(use, max(5, round(limits.settled / series.interval))) >= limits.at_work
    cool = sustained & (use >= limits.at_work) & (s.temperature < s.temperature_limit - limits.cool)
    is_cut = s.clock < limits.hw_drop * signals.high_quantile(s.clock, cool)
    return signals.hold_clock(cool & is_cut & (s.power < limits.hw_power * s.power_limit), is_direct=False)


def _is_known(s: ClockSignals) -> bool:
    needed = (s.clock, s.temperature, s.power, s.power_limit)
    return not np.isnan(s.temperature_limit) and not any(np.isnan(values).all() for values in needed)


_DETECTORS = {"thermal_throttle": _find_heat, "hw_throttle": _find_braking}


@memoized
def find_slowdowns(series: DeviceSeries, limits: Limits, whole: Interval) -> tuple[Slowdowns, HeldClock]:
    found, slowed = Slowdowns(), signals.hold_clock(np.zeros(len(series), dtype=np.bool_))
    for kind, detect in _DETECTORS.items():
        held, spans = detect(series, gather_signals(series), limits), intervals.NO_SPANS
        if held and (held.rows.any() or held.counted):
            spans = _find_episodes(series, held, limits, whole)
            # a row at the end of an episode belongs to it, like the last sample of a log
            inside = intervals.contains(spans, series.times) | np.isin(series.times, spans[:, 1])
            held = held._replace(share=held.share * inside, rows=held.rows & inside)
            share, lowered = np.maximum(slowed.share, held.share), slowed.lowered | held.lowered
            slowed = slowed._replace(share=share, lowered=lowered)
        found[kind] = held, spans
    return found, slowed


def _join(series: DeviceSeries, spans: intervals.Spans, limits: Limits, whole: Interval) -> intervals.Spans:
    near = round((max(limits.merge, 2.5 * series.interval) - series.interval) * 1e6)
    spans = intervals.difference(intervals.union(spans, within=near), intervals.to_spans(series.gaps))
    spans = intervals.drop_shorter(spans, max(limits.shortest, 1.5 * series.interval))
    return intervals.drop_shorter(intervals.intersection(spans, intervals.to_spans([whole])), limits.shortest)


def _find_episodes(series: DeviceSeries, held: HeldClock, limits: Limits, whole: Interval) -> intervals.Spans:
    s, rows = gather_signals(series), held.rows
    spans = series.find_owned(rows)
    if len(spans) > 1 and not np.isnan(s.temperature[rows]).all():
        # the controller stopped throttling for a moment
        cooled = (s.temperature < float(np.nanmedian(s.temperature[rows])) - limits.near_limit) | ~s.busy
        so_far = np.concatenate([[0], np.cumsum(cooled)])
        first = np.searchsorted(series.times, spans[:-1, 1])
        stop = np.searchsorted(series.times, spans[1:, 0])
        is_near = spans[1:, 0] - spans[:-1, 1] <= limits.release * series.interval * 1e6
        holes = np.column_stack([spans[:-1, 1], spans[1:, 0]])[is_near & (so_far[stop] == so_far[first])]
        spans = np.concatenate([spans, holes])
    spans = _join(series, spans, limits, whole)
    if held.counted < limits.counted:
        return spans
    steps = intervals.union(held.steps, within=round(limits.merge * 1e6))
    steps = intervals.difference(steps, intervals.to_spans(series.gaps))
    return intervals.union(np.concatenate([spans, intervals.intersection(steps, intervals.to_spans([whole]))]))


@rule("throttling")
def find_throttling(context: Context, limits: Limits) -> Found:
    for kind in _DETECTORS:
        for device, series in context.gpus().items():
            held, spans = find_slowdowns(series, limits, context.whole)[0][kind]
            needed = max(limits.shortest, 1.5 * series.interval)
            if held is None:
                yield doubts.unjudged(kind, "signals_not_recorded", device)
            elif context.whole.seconds < needed and not held.counted:
                yield doubts.too_short(kind, context.whole.seconds, needed)
            elif len(spans) or held.in_gaps >= limits.counted:
                yield _tell_slowdown(context, limits, series, kind, held)


def _tell_slowdown(context: Context, limits: Limits, series: DeviceSeries, kind: str, held: HeldClock) -> Finding:
    found, all_held = find_slowdowns(series, limits, context.whole)
    s, spans, rows, slowed = gather_signals(series), found[kind][1], held.share > 0, all_held.share
    is_heat, is_counted = kind == "thermal_throttle", held.counted > 0
    seconds = held.counted + float(series.seconds[held.rows].sum()) if is_counted else intervals.total_seconds(spans)
    loss = signals.compute_loss(series, held, slowed) if len(spans) else None
    start, end = series.averaging_windows(context.whole)
    lost = None if loss is None else float((loss * (end - start)).sum() / 1e6)
    reference, description = signals.choose_reference_clock(s, slowed)
    ratio = signals.mean(s.clock[rows & held.lowered & s.busy & ~np.isnan(s.clock)]) / reference
    hottest = float(np.fmax.reduce(s.temperature[rows], initial=np.nan))
    cause = "heat"
    if not is_heat:
        is_hot = hottest >= s.temperature_limit - limits.near_limit
        is_told = not held.is_direct or (signals.are_events_recorded(series, *HEAT) and not is_hot)
        is_brake = is_counted or (find_event_rows(series, BRAKE) & rows).any()
        cause = "power brake" if is_brake else "hardware" if is_told else UNEXPLAINED
    limit = Threshold(
        value=s.temperature_limit,
        unit="Cel",
        provenance=Provenance.VENDOR,
        source=s.temperature_limit_source,
    )
    watts = signals.mean(s.power[rows & is_heat & ~np.isnan(s.power)])
    clock = limits.compare(
        CLOCK,
        f"mean, of {description}",
        ratio,
        "<",
        "clock_drop" if is_heat else "hw_drop",
    )
    samples = series.count_readings(UTILISATION, rows)
    whole = max(context.job.seconds, 1e-6)
    is_grave = not is_heat or (lost or 0.0) / whole >= limits.problem or seconds / whole >= limits.lasting
    how, least = ("counted by the driver", "counted") if is_counted else ("total", "shortest")
    return context.finding(
        kind,
        Severity.INFO if seconds < limits.shortest else Severity.PROBLEM if is_grave else Severity.WARNING,
        # the driver's counters are reliable even with few samples
        doubts.lowest(
            Confidence.HIGH if held.is_direct and cause != UNEXPLAINED else Confidence.MEDIUM,
            Confidence.HIGH if is_counted else doubts.confidence_of(samples, series.interval),
        ),
        [series.device.id],
        limits.compare("duration", how, seconds, ">=", least),
        compare_with_limit(TEMPERATURE, "max", hottest, ">=", limit),
        measured(POWER, "mean while slowed", watts, "W"),
        clock.as_context() if held.is_direct else clock,
        *_list_counted(series, *(HEAT if is_heat else (BRAKE,))),
        spans=spans,
        lost=lost,
        cause=cause,
        samples=samples,
        words={
            "heat": hottest,
            "fall": max(1 - ratio, 0.0) or None,
            "length": seconds,
            "direct": held.is_direct,
            "drawn": not np.isnan(s.power).all(),
            "bare": cause == UNEXPLAINED,
            "unknown": lost is None,
        },
    )


@rule("power_limits")
def find_power_limits(context: Context, limits: Limits) -> Found:
    for series in context.gpus().values():
        lowered = list(_judge_limit(context, series, limits))
        yield from _judge_cap(context, series, limits, is_lowered=any(isinstance(one, Finding) for one in lowered))
        yield from lowered


def _judge_limit(context: Context, series: DeviceSeries, limits: Limits) -> Found:
    s, (default, source), usual = gather_signals(series), signals.find_default_limit(series), "default"
    if np.isnan(default):
        default, source, usual = float(np.fmax.reduce(s.power_limit, initial=np.nan)), "as logged", "highest"
    lowered, spans = s.power_limit < limits.lowered * default, intervals.NO_SPANS
    if not (lowered | np.isnan(s.power_limit)).all():
        spans = _join(series, series.find_owned(lowered), limits, context.whole)
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
            # the duration does not matter, so coarse samples are enough
            doubts.confidence_of(samples) if source == "as logged" else Confidence.LOW,
            [series.device.id],
            limits.compare(signals.LIMIT, f"median, of the {usual} ({source})", limit / default, "<", "lowered"),
            limits.compare(POWER, _REACH, reach, "<" if case else ">=", "reached"),
            _clock_at_limit(s, s.busy & lowered & (s.power >= limits.reached * s.power_limit), limits),
            limits.compare("duration", "total", length, ">=", "shortest"),
            spans=spans,
            case=case,
            samples=samples,
            words={
                "limit": limit,
                "share": limit / default,
                "usual": usual,
                "default": default,
                "length": length,
                "after": after if after >= limits.shortest else None,
            },
        )
    elif np.isnan(s.power_limit).all() or usual == "highest":
        yield doubts.unjudged("power_limited", "unknown_power_limit", series.device.id)


def is_hardly_reached(found: Finding) -> bool:
    return any(each.statistic == _REACH and each.relation == "<" for each in found.evidence)


def _clock_at_limit(s: ClockSignals, rows: BoolArray, limits: Limits) -> Evidence:
    ratio = median(s.clock[rows]) / s.clock_max
    return limits.compare(CLOCK, "median at the limit, of the highest", ratio, "<", "slow")


def _judge_cap(context: Context, series: DeviceSeries, limits: Limits, *, is_lowered: bool) -> Found:
    s, device = gather_signals(series), series.device.id
    is_direct = signals.are_events_recorded(series, CAP)
    if not is_direct and (np.isnan(s.power).all() or np.isnan(s.power_limit).all()):
        yield doubts.unjudged("power_cap", "signals_not_recorded", device)
        return
    if context.whole.seconds < limits.shortest:
        yield doubts.too_short("power_cap", context.whole.seconds, limits.shortest)
        return
    at_limit = series.values(f"clock_event_{CAP}") > 0 if is_direct else s.power >= limits.at_limit * s.power_limit
    held = signals.add_counters(series, at_limit & s.busy, CAP)
    spans = _join(series, np.concatenate([series.find_owned(held.rows), held.steps]), limits, context.whole)
    share = float((held.share * series.seconds)[s.busy].sum()) / max(float(series.seconds[s.busy].sum()), 1e-9)
    if not len(spans) or share < limits.least:
        return
    rows = held.lowered & s.busy
    of_busy = limits.compare("power cap", "share of busy time", share, ">=", "least")
    samples, limit = series.count_readings(POWER, rows), median(s.power_limit[rows])
    sure = doubts.confidence_of(samples, series.interval)
    medium = doubts.lowest(Confidence.MEDIUM, sure)
    limit = signals.find_default_limit(series)[0] if np.isnan(limit) else limit
    low, level, high = (signals.high_quantile(s.power, rows, part) for part in (0.05, 0.5, 0.95))
    is_below = not is_lowered and high < limits.far_below * limit and high - low < limits.even * level
    if is_below and share >= limits.mostly:
        yield context.finding(
            "power_limited",
            Severity.WARNING,
            medium,
            [device],
            limits.compare(POWER, "median at the cap, as a share of the limit", level / limit, "<", "far_below"),
            measured(POWER, "level at the cap", level, "W"),
            measured(signals.LIMIT, "in force", limit, "W"),
            of_busy,
            spans=spans,
            cause=_BY_ANOTHER_CAP,
            samples=samples,
            words={"limit": level, "share": level / limit, "default": limit},
        )
        return
    clock, model = _clock_at_limit(s, rows, limits), find_gpu(series.device.model)
    is_slow = not is_lowered and clock.observed < limits.slow and not (model and model.clock_events_masked)
    case = "chosen" if is_lowered else "slow" if is_slow else ""
    yield context.finding(
        "power_cap",
        Severity.WARNING if is_slow else Severity.INFO,
        sure if is_direct else medium,
        [device],
        of_busy,
        clock if is_slow else clock.as_context(),
        *_list_counted(series, CAP),
        spans=spans,
        case=case,
        samples=samples,
        words={
            "share": share,
            "all": phrases.percent(share) == "100%",
            "speed": clock.observed,
            "normal": not case,
        },
    )


@rule("clocks_locked")
def find_locked_clocks(context: Context, limits: Limits) -> Found:
    found: list[tuple[float, float, float, DeviceSeries]] = []
    for device, series in context.gpus().items():
        s = gather_signals(series)
        if not signals.are_events_recorded(series, *signals.CHOSEN) and np.isnan(s.clock).all():
            yield doubts.not_recorded("clocks_locked", device, f"clock_event_{signals.CHOSEN[0]}", CLOCK)
        elif s.busy.sum() < limits.fewest:
            few = doubts.count_of(int(s.busy.sum()), "busy sample")
            yield doubts.unjudged("clocks_locked", "too_few_busy_samples", device, few)
        else:
            chosen = find_event_rows(series, *signals.CHOSEN) & s.busy
            share = float(series.seconds[chosen].sum() / max(series.seconds[s.busy].sum(), 1e-9))
            highest = float(np.fmax.reduce(s.clock)) if np.isnan(s.clock_max) else s.clock_max
            ratio = median(s.clock[s.busy]) / highest if highest > 0 else np.nan
            is_constant = _stands_still(series, s, limits)
            if not ratio >= limits.highest if share >= limits.held else ratio < limits.below and is_constant:
                found.append((ratio, share, highest, series))
            elif is_constant and np.isnan(s.clock_max):
                yield doubts.not_recorded("clocks_locked", device, "gpu_sm_clock_max_hertz")
            elif ratio < limits.slow and not signals.are_events_recorded(series, CAP) and np.isnan(s.power_limit).all():
                yield doubts.unjudged("clocks_locked", doubts.SLOW_CLOCK, device, (ratio, phrases.percent(ratio)))
    if not found:
        return
    ratio, share, highest, series = min(found, key=lambda one: 1.0 if np.isnan(one[0]) else one[0])
    is_told, s = all(one[1] >= limits.held for one in found), gather_signals(series)
    samples = [int(gather_signals(one).busy.sum()) for *_, one in found]
    sure = doubts.confidence_of(min(samples))
    yield context.finding(
        "clocks_locked",
        Severity.INFO,
        sure if is_told else doubts.lowest(sure, Confidence.MEDIUM),
        [one.device.id for *_, one in found],
        limits.compare("clock set", "share of busy time", share or np.nan, ">=", "held"),
        limits.compare(
            CLOCK,
            "median while busy, of the highest",
            ratio,
            "<",
            "highest" if share >= limits.held else "below",
        ),
        samples=sum(samples),
        words={
            "probably": not is_told,
            "clock": median(s.clock[s.busy]) or None,
            "several": len(found) > 1,
            "seen": bool(np.isnan(s.clock_max)),
            "highest": np.nan if np.isnan(ratio) else highest,
        },
    )


def _stands_still(series: DeviceSeries, s: ClockSignals, limits: Limits) -> bool:
    rows = s.busy & ~(series.values(UTILISATION) < limits.busy) & ~np.isnan(s.clock)
    rows &= ~find_event_rows(series, CAP, SLOWDOWN, BRAKE, *HEAT)
    if rows.sum() < max(limits.steady, limits.below * s.busy.sum()):
        return False
    low, high = np.quantile(s.clock[rows], [0.01, 0.99])
    return bool(high - low <= limits.step and not (s.power >= limits.power_free * s.power_limit)[rows].any())
