"""Failures: lost GPUs, memory errors, slow links, and recorders that miss samples or stop early."""

import re
from collections.abc import Iterator
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from gpureport import columns
from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import jobs
from gpureport.analysis.rulebook import Context, Found, Limits, compare_with_limit, measured, rule
from gpureport.analysis.series import CLOCK, MEMORY, POWER, TEMPERATURE, UTILISATION, intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import BoolArray
from gpureport.data_quality import gap_seconds
from gpureport.findings import Confidence, Finding, Interval, Provenance, Severity, Threshold

LOST_CAUSES = ("lost", "no answer")  # causes that mean a GPU is gone; an Xid error alone does not
_MEASURED = (UTILISATION, TEMPERATURE, POWER, CLOCK)
_XID = "gpu_xid_code"
_ERRORS = ("Unknown Error", "ERR!")  # printed instead of a reading
_FALLEN, _MILD = {None, 79}, {45, 63}
"""Xid codes of a lost GPU (None: without a code), and of a stopped process or repaired memory."""
_XID_MESSAGE = re.compile(r"\bXid\b(?: *\((?:PCI:)?[0-9A-Fa-f:.]+\))?[: ]+(\d{1,3})\b")
_ADDRESS = re.compile(r"\b(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.[0-7])?\b")


class _Loss(NamedTuple):
    device: str | None
    at: int
    code: int | None
    text: str


@rule("gpu_lost")
def find_gpu_lost(context: Context, limits: Limits) -> Found:
    losses, found = sorted(_list_losses(context), key=lambda loss: loss.at), False
    if not losses and not any(map(context.recorded, (*_MEASURED, MEMORY))):
        yield doubts.not_recorded("gpu_lost", None, UTILISATION)
        return
    for device in [*context.gpus(), None]:
        own = [loss for loss in losses if loss.device == device]
        said = [loss for loss in own if loss.code in _FALLEN]
        errors = [loss for loss in own if loss not in said]
        # a message that names no GPU refers to a GPU that stopped responding
        if (device or (said and not found)) and (lost := _judge_loss(context, limits, device, said)):
            found = True
            yield lost
        if errors:
            codes, end = sorted({loss.code for loss in errors if loss.code}), context.whole.end
            yield context.finding(
                "gpu_lost",
                Severity.WARNING if _MILD.issuperset(codes) else Severity.PROBLEM,
                Confidence.HIGH,
                filter(None, [device]),
                limits.compare("messages of the driver", "count", float(len(errors)), ">=", "said"),
                spans=(Interval(errors[0].at, end),) if errors[0].at < end else (),
                cause="xid",
                samples=len(errors),
                words={"codes": phrases.join_words([*map(str, codes)]), "silent": False},
            )
    for absent in () if found else context.recording.run.quality.absent_cells:
        if absent.reason in _ERRORS and absent.cells >= limits.rows:
            failing = [
                name
                for name, one in context.gpus().items()
                if any(one.count_values(each) < len(one) for each in _MEASURED if each in one.column_names)
            ]
            yield context.finding(
                "gpu_lost",
                Severity.WARNING,
                Confidence.HIGH,
                failing,
                limits.compare(f"cells of {absent.column} with errors", "count", float(absent.cells), ">=", "rows"),
                cause="sensor",
                samples=absent.cells,
                words={"column": absent.column, "text": absent.reason, "silent": False},
            )


def _list_losses(context: Context) -> Iterator[_Loss]:
    gpus = context.gpus()
    for event in context.recording.run.quality.log_events:
        code = _XID_MESSAGE.search(event.text)
        if event.at is None or (event.kind != "gpu_lost" and code is None):
            continue
        named = _read_addresses(event.text)
        meant = [name for name, one in gpus.items() if named & _read_addresses(one.device.bus_id or "")] or list(gpus)
        device = event.device or (meant[0] if len(meant) == 1 else None)
        yield _Loss(device, event.at, int(code[1]) if code else None, event.text.strip("[]") if event.device else "")
    for name, series in gpus.items():
        codes, times = series.known_values(_XID), series.times[series.find_known_rows(_XID)]
        # the first code may come from an earlier job
        for place in (np.flatnonzero((codes[1:] != codes[:-1]) & (codes[1:] != 0)) + 1).tolist():
            yield _Loss(name, int(times[place]), int(codes[place]), "")


def _read_addresses(text: str) -> set[tuple[int, ...]]:
    return {tuple(int(part or "0", 16) for part in parts) for parts in _ADDRESS.findall(text)}


def find_answers(series: DeviceSeries, *, by_memory: bool = True) -> BoolArray:
    known = [series.known_rows(metric) for metric in (*_MEASURED, *([MEMORY] if by_memory else []))]
    return np.asarray(np.any(known, axis=0), dtype=np.bool_)


def _judge_loss(context: Context, limits: Limits, device: str | None, said: list[_Loss]) -> Finding | None:
    silent, empty, case, text = intervals.NO_SPANS, 0, "unnamed", said[0].text if said else ""
    if device is not None:
        series = context.series[device]
        # nvidia-smi tables still list the memory of a GPU with errors
        answered = find_answers(series, by_memory=not said or series.column_names.isdisjoint(_MEASURED))
        times, answers = series.times, series.times[answered]
        if not said and (not len(answers) or answers[-1] == times[-1]):
            return None
        since = said[0].at if said else int(answers[-1])
        gone = times[~answered & (times >= since)]
        # a lost GPU has no readings until it responds again
        begins, ends = np.append(since, gone), np.append(answers, max(context.whole.end, since))
        silent = intervals.union(np.column_stack([begins, ends[np.searchsorted(answers, begins, side="right")]]))
        back = "back" if len(answers) and answers[-1] > since else "end" if len(silent) else "last"
        empty, case = len(gone), back if len(answers) else "never"
        if not said and (empty < limits.rows or intervals.total_seconds(silent) < limits.silent):
            return None
    return context.finding(
        "gpu_lost",
        Severity.PROBLEM,
        Confidence.HIGH if said else Confidence.MEDIUM,
        filter(None, [device]),
        limits.compare("messages of the driver", "count", len(said) or np.nan, ">=", "said"),
        limits.compare("rows without any value", "count", empty or np.nan, ">=", "rows"),
        spans=silent,
        lost=intervals.total_seconds(silent) if device else None,
        cause="lost" if said else "no answer",
        case=case,
        samples=len(said) or empty,
        words={"code": str(said[0].code or "") if said else "", "text": text, "silent": not said},
    )


_COUNTED = {
    "uncorrected": {
        "gpu_ecc_uncorrected_total": "uncorrectable memory error",
        "gpu_ecc_double_bit_total": "uncorrectable memory error",
        "gpu_remapped_rows_uncorrectable_total": "bad memory row",
        "gpu_retired_pages_double_bit_total": "bad memory page",
    },
    "corrected": {
        "gpu_ecc_corrected_total": "corrected memory error",
        "gpu_ecc_single_bit_total": "corrected memory error",
        "gpu_remapped_rows_correctable_total": "corrected-error row remapping",
        "gpu_retired_pages_single_bit_total": "corrected-error page retirement",
    },
}
_COUNTERS = [next(iter(nouns)) for nouns in _COUNTED.values()]
_PENDING = ("gpu_remapped_rows_pending", "gpu_retired_pages_pending")


@rule("ecc_error")
def find_memory_errors(context: Context, limits: Limits) -> Found:
    for device, series in context.gpus().items():
        readings = max(series.count_values(name) for nouns in _COUNTED.values() for name in nouns)
        if readings < doubts.FEW_READINGS:
            once = doubts.unjudged("ecc_error", "read_only_once", device)
            yield once if readings else doubts.not_recorded("ecc_error", device, *_COUNTERS)
            continue
        failed = series.known_values("gpu_remapped_rows_failure")
        pending = any(series.values(name)[-1:].sum() > 0 for name in _PENDING)
        for cause, nouns in _COUNTED.items():
            rises, spans, is_grave = dict[str, float](), [intervals.NO_SPANS], cause == "uncorrected"
            for name in nouns:
                rows = series.find_known_rows(name)
                steps, times = np.diff(series.values(name)[rows]).clip(0), series.times[rows]
                if steps.sum() >= limits.rise:
                    rises[name] = float(steps.sum())
                    spans.append(np.column_stack([times[:-1], times[1:]])[steps > 0])
            counted = [phrases.count_of(int(rise), nouns[name]) for name, rise in rises.items()]
            # a failed remapping has no counter
            if rises or (is_grave and len(failed) and failed[0] == 0 and failed.any()):
                yield context.finding(
                    "ecc_error",
                    Severity.PROBLEM if is_grave else Severity.INFO,
                    Confidence.HIGH,
                    (device,),
                    *(limits.compare(name, "rise in the run", rise, ">=", "rise") for name, rise in rises.items()),
                    spans=intervals.union(np.concatenate(spans)),
                    cause=cause,
                    case=None if rises else "failed",
                    samples=max(map(series.count_values, rises), default=len(series)),
                    words={"counted": phrases.join_words(counted), "pending": pending},
                )


_LINK = {"pcie_link_generation": "gen {:.0f}", "pcie_link_width": "x{:.0f}"}


@rule("pcie_degraded")
def find_slow_links(context: Context, limits: Limits) -> Found:
    for device, series in context.gpus().items():
        known = [name for name in _LINK if series.is_recorded(name) and series.is_recorded(f"{name}_max")]
        if not known or not series.is_recorded(UTILISATION):
            absent = [UTILISATION] if known else [f"{name}{end}" for name in _LINK for end in ("", "_max")]
            yield doubts.not_recorded("pcie_degraded", device, *absent)
            continue
        busy = series.values(UTILISATION) > limits.busy
        rows = {name: busy & series.known_rows(name) for name in known}
        samples = int(np.any([*rows.values()], axis=0).sum())
        best = {name: float(series.values(name)[own].max()) for name, own in rows.items() if own.any()}
        most = {name: float(series.known_values(f"{name}_max").max()) for name in best}
        # each generation doubles the data rate
        ratio = prod(
            min(2.0 ** (best[name] - most[name]) if "generation" in name else best[name] / max(most[name], 1.0), 1.0)
            for name in best
        )
        mild = ratio >= limits.common
        now, highest = (" ".join(_LINK[name].format(each[name]) for name in best) for each in (best, most))
        if samples < limits.fewest:
            yield doubts.unjudged("pcie_degraded", "too_few_busy_samples", device, doubts.count_of(samples, "sample"))
        elif ratio < 1:
            yield context.finding(
                "pcie_degraded",
                Severity.INFO if mild else Severity.PROBLEM if ratio <= limits.problem else Severity.WARNING,
                doubts.confidence_of(samples),
                (device,),
                *(measured(name, "max while busy", best[name], "") for name in best),
                *(measured(f"{name}_max", "max", most[name], "") for name in best),
                limits.compare("data rate of the link", "of the highest", ratio, ">=" if mild else "<", "common"),
                samples=samples,
                words={"share": ratio, "now": now, "most": highest},
            )


_JITTER = 1.0  # seconds; a GPU whose gap exceeds the others' by less is only late
_WHY = "3.5 intervals, and 5 s if samples are under 2 s apart: collectors may be late by 2.6 intervals or some seconds"


@rule("log_gap")
def find_log_gaps(context: Context, limits: Limits) -> Found:
    if context.recording.run.quality.synthetic_time:
        yield doubts.unjudged("log_gap", "no_timestamps")
        return
    gpus, none, free = context.gpus(), intervals.NO_SPANS, context.time_without_job
    gaps = {}
    for name in gpus:
        rows, series = context.recording.rows.rows_of(name), context.all_series[name]
        logged = series if len(rows) == len(series) else DeviceSeries(series.device, rows, series.window)
        left = intervals.difference(intervals.to_spans(logged.gaps), free.get(name, none))
        # half an interval at each end of a pause between jobs is job time
        gaps[name] = intervals.drop_shorter(left, series.interval)
    shared = reduce(intervals.intersection, gaps.values()) if gaps else none
    own = {name: intervals.drop_shorter(intervals.difference(one, shared), _JITTER) for name, one in gaps.items()}
    for name, spans in ((name, one) for name, one in {"": shared, **own}.items() if len(one)):
        seconds = intervals.total_seconds(spans)
        longest = float(np.ptp(spans, axis=1).max()) / 1e6
        needed = gap_seconds(max(series.interval for series in gpus.values()))
        far = Threshold(value=needed, unit="s", provenance=Provenance.PRAGMATIC, source=_WHY)
        pauses = jobs.summarise_pauses([gpus[name]] if name else gpus.values())
        unowned = pauses.seconds if pauses else np.nan
        yield context.finding(
            "log_gap",
            Severity.INFO,
            # the usual interval between samples determines what a gap is
            doubts.confidence_of(min(map(len, gpus.values()))),
            (name,) if name else (),
            compare_with_limit("distance between samples", "max", longest, ">", far),
            measured("time without samples", "sum", seconds, "s"),
            measured("time in shorter pauses that no sample covers", "sum", unowned, "s"),
            spans=spans,
            samples=len(spans) + 1,
            words={
                "gpu": phrases.gpu_name(name) if name else "",
                "gaps": len(spans) if len(spans) > 1 else None,
                "pauses": pauses.count if pauses else None,
                "rest": unowned,
                "share": seconds / max(context.whole.seconds, 1e-6),
            },
        )


@rule("monitoring_ended")
def find_early_ends(context: Context, limits: Limits) -> Found:
    if context.recording.run.quality.synthetic_time:
        yield doubts.unjudged("monitoring_ended", "no_timestamps")
        return
    column, hosts = context.recording.training.column("timestamp"), context.hosts().values()
    own = {name: series.times[find_answers(series)] for name, series in context.gpus().items()}
    others = [(f"the host log of {one.device.node or ''}".removesuffix(" of "), one.times) for one in hosts]
    others += [("the training metrics", np.sort(columns.integers(column)[columns.valid(column)]))]
    others += [(phrases.gpu_name(name), times) for name, times in own.items()]
    others = sorted((other for other in others if len(other[1])), key=lambda other: -int(other[1][-1]))
    if len(others) <= 1:
        yield doubts.unjudged("monitoring_ended", "nothing_to_compare")
        return
    own, later = {name: times for name, times in own.items() if len(times)}, {}
    for name, times in own.items():
        limit = int(times[-1]) + round(max(limits.early, limits.steps * context.series[name].interval) * 1e6)
        for what, seen in others if not context.findings("gpu_lost", name) else ():
            after = int(seen[-1] - times[-1])
            readings = len(seen) - int(np.searchsorted(seen, limit, side="right"))
            # if a series also begins later by the same time, its clock is different
            is_shifted = seen[0] > times[-1] or abs(int(seen[0] - times[0]) - after) <= limits.shifted * after
            if name not in later and readings >= doubts.FEW_READINGS and not is_shifted:
                later[name] = what, seen
    for devices in [tuple(later)] if later and len(later) == len(own) else [(name,) for name in later]:
        other, times = later[devices[0]]
        missing = Interval(min(int(own[name][-1]) for name in devices), int(times[-1]))
        share = missing.seconds / max((max(context.whole.end, missing.end) - context.whole.start) / 1e6, 1e-9)
        much, readings = share >= limits.warning, int((times > missing.start).sum())
        what = "time without samples at the end"
        yield context.finding(
            "monitoring_ended",
            Severity.WARNING if much else Severity.INFO,
            doubts.confidence_of(readings),
            devices,
            limits.compare(what, "length", missing.seconds, ">=", "early"),
            limits.compare(what, "share of the run", share, ">=" if much else "<", "warning"),
            measured(other, "goes on for", missing.seconds, "s"),
            spans=(missing,),
            case="gone" if other.startswith("GPU ") else "",
            samples=readings,
            words={"all": len(devices) == len(context.gpus()), "other": other, "share": share},
        )
