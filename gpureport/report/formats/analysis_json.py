"""JSON output of `gpureport analyze` (schema `gpureport.analysis/1`), and the conversion of results to JSON.

Keys may be added, but not renamed. Numbers are in base units. Times are ISO 8601, with an offset if it is known.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import Analysis, Cost, CounterReading, DeviceStatistics
from gpureport.comparison.across import BatchDoubt, PeakDoubt, across_findings
from gpureport.comparison.evidence import Reason
from gpureport.comparison.quality_at_work import NoWork
from gpureport.comparison.steps import Step
from gpureport.data_quality import LogGap
from gpureport.findings import AdvisedStep, Evidence, Finding, Interval
from gpureport.importers.account import find_note_code, find_reject_code
from gpureport.recording import Run, Stage
from gpureport.report.wording.reasons import describe_memory_reason, describe_no_work, describe_reason

SCHEMA = "gpureport.analysis/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ANSWER = "kind group devices outcome findings reason reason_code recording"
_ACROSS = "kind severity confidence steps summary recommendation fingerprint evidence"

Content = dict[str, Any]
Made = Mapping[type, Callable[[Any], Content]]
"""Maps a type of result to a function that returns keys to add or replace."""

_REASONS: Mapping[type, Callable[[Any], str]] = {
    Reason: describe_reason,
    NoWork: describe_no_work,
    BatchDoubt: describe_memory_reason,
    PeakDoubt: describe_memory_reason,
}
_MADE: Made = {
    AdvisedStep: lambda step: {"suggestion": step.suggestion or None},
    Evidence: lambda said: {
        "threshold": said.threshold and said.threshold.value,
        "provenance": said.threshold and {"kind": said.threshold.provenance, "source": said.threshold.source},
    },
}


def render(analyses: Sequence[Analysis], steps: Sequence[Step] = ()) -> str:
    runs = [_analysis(analysis) for analysis in analyses]
    return dump({"schema": SCHEMA, "runs": runs, "across_runs": across_runs(steps), "advice": advice(analyses)})


def dump(content: Content, made: Made | None = None) -> str:
    """Return JSON. A result becomes an object with its fields and the keys from `made`."""
    more = {**_MADE, **(made or {})}

    def encode(value: Any) -> Content:
        return list_fields(value) | more.get(type(value), lambda _: {})(value)

    return json.dumps(content, indent=1, allow_nan=False, default=encode) + "\n"


def list_fields(value: Any, without: str = "") -> Content:
    """Return the fields shown in a result's repr, and the codes of its verdict and reason."""
    names = [each.name for each in fields(value) if each.repr and each.name not in without.split()]
    said = {name: getattr(value, name) for name in names}
    for name, each in said.items():
        ends = each if isinstance(each, tuple) else (each,)
        said[name] = None if any(isinstance(end, float) and not isfinite(end) for end in ends) else each
    if "verdict" in said:
        said["verdict_code"] = said["verdict"].code if said["verdict"] else ""
    reason = said.get("reason", "")
    if reason is None or type(reason) in _REASONS:
        words = "" if reason is None else _REASONS[type(reason)](reason)
        said |= {"reason": words, "reason_code": getattr(reason, "kind", reason) or ""}
    return said


def take(source: object, keys: str, **made: Any) -> Content:
    return {key: made[key] if key in made else getattr(source, key) for key in keys.split()}


def iso_time(microseconds: int, timezone: str | None) -> str:
    time = _EPOCH + timedelta(microseconds=microseconds)
    shown = time.astimezone(ZoneInfo(timezone)) if timezone else time.replace(tzinfo=None)
    return shown.isoformat(timespec="milliseconds")


def _span(span: Interval | Stage | LogGap, zone: str | None) -> Content:
    return {"start": iso_time(span.start, zone), "end": iso_time(span.end, zone)}


def _intervals(spans: Sequence[Interval], zone: str | None) -> list[list[str]]:
    return [list(_span(span, zone).values()) for span in spans]


def _analysis(analysis: Analysis) -> Content:
    zone = analysis.run.timezone
    whole = {each.device: each for each in analysis.whole_statistics}
    statistics = {each.device: each for each in analysis.statistics}
    return {
        "run": _run(analysis.run),
        "quality": _quality(analysis, zone),
        "jobs": [
            {
                "number": job.number,
                **_span(job.interval, zone),
                **{f"work_{name}": at for name, at in _span(job.window, zone).items()},
                "devices": list(job.active),
            }
            for job in analysis.jobs
        ],
        "no_job": {device: _intervals(spans, zone) for device, spans in analysis.no_job.items()},
        "phases": [{"kind": phase.kind, **_span(phase.interval, zone)} for phase in analysis.phases],
        "statistics": {name: _statistics(whole.get(name, each)) for name, each in statistics.items()},
        "job_statistics": {name: _statistics(each) for name, each in statistics.items() if name in whole},
        "stages": {each.stage: {one.device: _statistics(one) for one in each.statistics} for each in analysis.stages},
        "gpu_time": {each.device: dict(each.seconds) for each in analysis.gpu_time},
        "throttle_ledger": [
            list_fields(each, "reference_hertz")
            | {"counted": _counter(each.counted, "seconds"), "reference_clock_hertz": each.reference_hertz}
            for each in analysis.throttle_ledger
        ],
        "gpu_time_causes": {
            each.device: {
                name: {part.cause: part.seconds for part in each.parts if part.name == name}
                for name in dict.fromkeys(part.name for part in each.parts)
            }
            for each in analysis.gpu_time
        },
        "findings": [_finding(finding, analysis) for finding in analysis.findings],
        "not_judged": [take(each, "kind device reason code recording metrics") for each in analysis.not_judged],
        "limits": analysis.limits,
        "limit_codes": analysis.limit_codes,
        "answers": [take(answer, _ANSWER) for answer in analysis.answers],
        "checklist": [take(entry, "item state reason reason_code recording") for entry in analysis.checklist],
    } | ({} if analysis.cost is None else {"cost": _cost(analysis.cost)})


def _run(run: Run) -> Content:
    zone = run.timezone
    return list_fields(run, "quality interval") | {
        "started": iso_time(run.started, zone),
        "ended": iso_time(run.ended, zone),
        "interval_seconds": run.interval,
        "stages": [{"name": stage.name, "node": stage.node, **_span(stage, zone)} for stage in run.stages],
        "params": dict(run.params),
        "tags": dict(run.tags),
    }


def _quality(analysis: Analysis, zone: str | None) -> Content:
    quality = analysis.run.quality
    absent: dict[str, dict[str, int]] = {}
    for cells in quality.absent_cells:
        absent.setdefault(cells.column, {})[cells.reason] = cells.cells
    return list_fields(quality) | {
        "rejected": [list_fields(each) | {"code": find_reject_code(each.reason)} for each in quality.rejected],
        "absent_cells": absent,
        "gaps": [{"device": gap.device, **_span(gap, zone)} for gap in quality.gaps],
        "clock_steps": [list_fields(step) | {"at": iso_time(step.at, zone)} for step in quality.clock_steps],
        "log_events": [
            list_fields(event) | {"at": None if event.at is None else iso_time(event.at, zone)}
            for event in quality.log_events
        ],
        "coverage_ratio": analysis.coverage_ratio,
        "note_codes": [find_note_code(note, [each.locator for each in analysis.run.sources]) for note in quality.notes],
        "pauses": analysis.pauses,
    }


def _statistics(statistics: DeviceStatistics) -> Content:
    metrics = {summary.metric: list_fields(summary, "metric below") for summary in statistics.metrics}
    for summary in statistics.metrics:
        if summary.below:
            metrics[summary.metric]["below"] = {f"{limit:g}": share for limit, share in summary.below}
    if statistics.device == "host":
        return metrics | {"observed_seconds": statistics.observed_seconds}
    made = {
        "gpu_memory_peak_bytes": statistics.memory_peak_bytes,
        "gpu_memory_headroom_ratio": statistics.memory_headroom_ratio,
        "power_doubt": statistics.power_doubt or None,
        "energy_counter": _counter(statistics.energy_counter, "joules"),
    }
    return metrics | list_fields(statistics, "device metrics memory_peak_bytes memory_headroom_ratio") | made


def _counter(reading: CounterReading | None, unit: str) -> Content | None:
    if reading is None:
        return None
    return {
        unit: reading.total,
        f"in_gaps_{unit}": reading.in_gaps,
        "read_over_seconds": reading.seconds,
        "restarts": reading.restarts,
        "impossible": reading.impossible,
    }


def _finding(finding: Finding, analysis: Analysis) -> Content:
    indices = {gpu.id: gpu.index for gpu in analysis.run.gpus}
    device = finding.devices[0] if len(finding.devices) == 1 else None
    spans = _intervals(finding.intervals, analysis.run.timezone)
    made: Content = {
        "gpu": None if device is None else indices.get(device),
        "device": device,
        "gpus": [index for name, index in indices.items() if name in finding.devices],
        "start": spans[0][0] if spans else None,
        "end": spans[-1][1] if spans else None,
        "intervals": spans,
    }
    if analysis.cost:
        made["cost"] = analysis.cost.cost_of(finding)
    return list_fields(finding, "period_seconds" if finding.period_seconds is None else "") | made


def _cost(cost: Cost) -> Content:
    amounts = {gpu.amount for gpu in cost.gpus}
    return list_fields(cost, "counted carbon_intensity") | {
        "currency": cost.currency or None,
        "date": cost.date or None,
        "price": amounts.pop() if len(amounts) == 1 else None,
        "gpus": {gpu.device: {"price": gpu.amount, "source": gpu.source or None} for gpu in cost.gpus},
        "energy_counted": cost.counted,
        "carbon_intensity_grams_per_kwh": cost.carbon_intensity,
        "carbon_source": cost.carbon_source or None,
    }


def advice(analyses: Sequence[Analysis]) -> Content:
    named = {step.name for analysis in analyses for finding in analysis.findings for step in finding.steps}
    return {name: take(step, "title do when risk check source") for name, step in STEPS.items() if name in named}


def across_runs(steps: Sequence[Step]) -> list[Content]:
    return [
        take(found.finding, _ACROSS, steps=found.steps) | list_fields(found.content) for found in across_findings(steps)
    ]
