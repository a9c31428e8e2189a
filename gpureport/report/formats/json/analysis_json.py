"""The JSON of `gpureport analyze` (schema `gpureport.analysis/1`): it grows, it never renames.

Numbers are in base units, times ISO 8601: with an offset where the zone of the log is known, without one where
it is not.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from gpureport.analysis.results import (
    Analysis,
    ClockEventTotal,
    Cost,
    CounterReading,
    DeviceStatistics,
    GpuTime,
    Job,
    MetricSummary,
)
from gpureport.comparison.steps import Step
from gpureport.data_quality import LogEvent
from gpureport.findings import Answer, ChecklistEntry, Finding, Interval, NotJudged
from gpureport.importers.protocol.reject_reasons import find_note_code, find_reject_code
from gpureport.recording import Run
from gpureport.report.formats.json.across_json import across_runs_json
from gpureport.report.formats.json.advice_json import advice_json, steps_json
from gpureport.report.formats.json.evidence_json import evidence_json

SCHEMA = "gpureport.analysis/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render(analyses: Sequence[Analysis], steps: Sequence[Step] = ()) -> str:
    """Return the analyses as JSON text, one a run.

    Args:
        analyses: of each run.
        steps: the same runs by step, for findings over several of them.
    """
    runs = [_analysis(analysis) for analysis in analyses]
    content = {"schema": SCHEMA, "runs": runs, "across_runs": across_runs_json(steps), "advice": advice_json(analyses)}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def iso_time(microseconds: int, timezone: str | None) -> str:
    """Return a time of a recording as ISO 8601 with milliseconds, in the zone of the log where it is known."""
    time = _EPOCH + timedelta(microseconds=microseconds)
    shown = time.astimezone(ZoneInfo(timezone)) if timezone else time.replace(tzinfo=None)
    return shown.isoformat(timespec="milliseconds")


def _analysis(analysis: Analysis) -> dict[str, Any]:
    zone = analysis.run.timezone
    whole = {each.device: each for each in analysis.whole_statistics}
    entry = {
        "run": _run(analysis.run),
        "quality": _quality(analysis, zone),
        "jobs": [_job(job, zone) for job in analysis.jobs],
        "no_job": {
            device: [[iso_time(span.start, zone), iso_time(span.end, zone)] for span in spans]
            for device, spans in analysis.no_job.items()
        },
        "phases": [{"kind": phase.kind, **_span(phase.interval, zone)} for phase in analysis.phases],
        "statistics": {each.device: _statistics(whole.get(each.device, each)) for each in analysis.statistics},
        "job_statistics": {each.device: _statistics(each) for each in analysis.statistics if each.device in whole},
        "stages": {each.stage: {one.device: _statistics(one) for one in each.statistics} for each in analysis.stages},
        "gpu_time": {each.device: dict(each.seconds) for each in analysis.gpu_time},
        "throttle_ledger": [_ledger_entry(each) for each in analysis.throttle_ledger],
        "gpu_time_causes": {each.device: _causes(each) for each in analysis.gpu_time},
        "findings": [_finding(finding, analysis) for finding in analysis.findings],
        "not_judged": [_not_judged(each) for each in analysis.not_judged],
        "limits": list(analysis.limits),
        "limit_codes": list(analysis.limit_codes),
        "answers": [_answer(answer) for answer in analysis.answers],
        "checklist": [_checklist_entry(entry) for entry in analysis.checklist],
    }
    return entry | ({} if analysis.cost is None else {"cost": _cost(analysis.cost)})


def _job(job: Job, zone: str | None) -> dict[str, Any]:
    work = {f"work_{name}": at for name, at in _span(job.window, zone).items()}
    return {"number": job.number, **_span(job.interval, zone), **work, "devices": list(job.active)}


def _causes(time: GpuTime) -> dict[str, dict[str, float]]:
    causes: dict[str, dict[str, float]] = {}
    for part in time.parts:
        causes.setdefault(part.name, {})[part.cause] = part.seconds
    return causes


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "kind": answer.kind,
        "group": answer.group,
        "devices": list(answer.devices),
        "outcome": answer.outcome,
        "findings": list(answer.findings),
        "reason": answer.reason,
        "reason_code": answer.reason_code,
        "recording": answer.recording,
    }


def _checklist_entry(entry: ChecklistEntry) -> dict[str, Any]:
    return {
        "item": entry.item,
        "state": entry.state,
        "reason": entry.reason,
        "reason_code": entry.reason_code,
        "recording": entry.recording,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "step": run.step,
        "started": iso_time(run.started, run.timezone),
        "ended": iso_time(run.ended, run.timezone),
        "timezone": run.timezone,
        "interval_seconds": run.interval,
        "sources": [asdict(source) for source in run.sources],
        "devices": [asdict(device) for device in run.devices],
        "stages": [
            {"name": stage.name, "node": stage.node, **_span(Interval(stage.start, stage.end), run.timezone)}
            for stage in run.stages
        ],
        "params": dict(run.params),
        "tags": dict(run.tags),
        "work": None if run.work is None else {"amount": run.work.amount, "unit": run.work.unit},
    }


def _quality(analysis: Analysis, zone: str | None) -> dict[str, Any]:
    quality = analysis.run.quality
    absent: dict[str, dict[str, int]] = {}
    for entry in quality.absent_cells:
        absent.setdefault(entry.column, {})[entry.reason] = entry.cells
    return {
        "lines": quality.lines,
        "rows_kept": quality.rows_kept,
        "rejected": [asdict(entry) | {"code": find_reject_code(entry.reason)} for entry in quality.rejected],
        "headers": quality.headers,
        "noise": quality.noise,
        "events": quality.events,
        "continued": quality.continued,
        "absent_cells": absent,
        "gaps": [{"device": gap.device, **_span(Interval(gap.start, gap.end), zone)} for gap in quality.gaps],
        "duplicates": quality.duplicates,
        "clock_steps": [asdict(step) | {"at": iso_time(step.at, zone)} for step in quality.clock_steps],
        "log_events": [asdict(event) | {"at": _at(event, zone)} for event in quality.log_events],
        "synthetic_time": quality.synthetic_time,
        "imputed_points": quality.imputed_points,
        "coverage_ratio": analysis.coverage_ratio,
        "notes": list(quality.notes),
        "note_codes": list(map(find_note_code, quality.notes)),
        "unfinished": quality.unfinished,
        "pauses": None if analysis.pauses is None else asdict(analysis.pauses),
    }


def _at(event: LogEvent, zone: str | None) -> str | None:
    return None if event.at is None else iso_time(event.at, zone)


def _span(interval: Interval, zone: str | None) -> dict[str, str]:
    return {"start": iso_time(interval.start, zone), "end": iso_time(interval.end, zone)}


def _statistics(statistics: DeviceStatistics) -> dict[str, Any]:
    figures = {
        "idle_seconds": statistics.idle_seconds,
        "gpu_memory_peak_bytes": statistics.memory_peak_bytes,
        "gpu_memory_headroom_ratio": statistics.memory_headroom_ratio,
        "energy_joules": statistics.energy_joules,
        "energy_seconds": statistics.energy_seconds,
        "energy_bridged_seconds": statistics.energy_bridged_seconds,
        "power_doubt": statistics.power_doubt or None,
        "energy_counter": _counter(statistics.energy_counter, "joules"),
        "observed_seconds": statistics.observed_seconds,
    }
    gpu = statistics.device != "host"
    return {summary.metric: _summary(summary) for summary in statistics.metrics} | (
        figures if gpu else {"observed_seconds": statistics.observed_seconds}
    )


def _summary(summary: MetricSummary) -> dict[str, Any]:
    entry = {name: value for name, value in asdict(summary).items() if name not in {"metric", "below"}}
    return entry | ({"below": {f"{limit:g}": share for limit, share in summary.below}} if summary.below else {})


def _finding(finding: Finding, analysis: Analysis) -> dict[str, Any]:
    run, zone = analysis.run, analysis.run.timezone
    cost = {} if analysis.cost is None else {"cost": analysis.cost.cost_of(finding)}
    device = finding.devices[0] if len(finding.devices) == 1 else None
    indices = [gpu.index for gpu in run.gpus if gpu.id in finding.devices]
    index = next((gpu.index for gpu in run.gpus if gpu.id == device), None)
    spans = finding.intervals
    period = {} if finding.period_seconds is None else {"period_seconds": finding.period_seconds}
    return period | {
        "kind": finding.kind,
        "gpu": index,
        "device": device,
        "devices": list(finding.devices),
        "gpus": indices,
        "start": iso_time(spans[0].start, zone) if spans else None,
        "end": iso_time(spans[-1].end, zone) if spans else None,
        "intervals": [[iso_time(span.start, zone), iso_time(span.end, zone)] for span in spans],
        "severity": finding.severity,
        "confidence": finding.confidence,
        "lost_gpu_seconds": finding.lost_gpu_seconds,
        **cost,
        "cause": finding.cause,
        "consequences": list(finding.consequences),
        "root": finding.root,
        "samples": finding.samples,
        "ruled_out": list(finding.ruled_out),
        "evidence": [evidence_json(evidence) for evidence in finding.evidence],
        "summary": finding.summary,
        "recommendation": finding.recommendation,
        "steps": steps_json(finding.steps),
        "fingerprint": finding.fingerprint,
    }


def _not_judged(entry: NotJudged) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "device": entry.device,
        "reason": entry.reason,
        "code": entry.code,
        "recording": entry.recording,
        "metrics": list(entry.metrics),
    }


def _counter(reading: CounterReading | None, unit: str) -> dict[str, Any] | None:
    """Return what a counter rose by, with its unit in the names; null where it was not read twice."""
    if reading is None:
        return None
    return {
        unit: reading.total,
        f"in_gaps_{unit}": reading.in_gaps,
        "read_over_seconds": reading.seconds,
        "restarts": reading.restarts,
        "impossible": reading.impossible,
    }


def _ledger_entry(entry: ClockEventTotal) -> dict[str, Any]:
    return {
        "device": entry.device,
        "reason": entry.reason,
        "effect": entry.effect,
        "busy_seconds": entry.busy_seconds,
        "counted": _counter(entry.counted, "seconds"),
        "clock_hertz": entry.clock_hertz,
        "reference_clock_hertz": entry.reference_hertz,
        "reference": entry.reference,
        "lost_ratio": entry.lost_ratio,
    }


def _cost(cost: Cost) -> dict[str, Any]:
    """Return what a run cost; `price` is that of every GPU, null where they differ."""
    amounts = {gpu.amount for gpu in cost.gpus}
    return {
        "currency": cost.currency or None,
        "date": cost.date or None,
        "price": amounts.pop() if len(amounts) == 1 else None,
        "total": cost.total,
        "idle": cost.idle,
        "gpus": {gpu.device: {"price": gpu.amount, "source": gpu.source or None} for gpu in cost.gpus},
        "energy_joules": cost.energy_joules,
        "energy_counted": cost.counted,
        "carbon_intensity_grams_per_kwh": cost.carbon_intensity,
        "carbon_source": cost.carbon_source or None,
        "carbon_grams": cost.carbon_grams,
    }
