"""The JSON of `gpureport analyze` (schema `gpureport.analysis/1`), and what it shares with that of a comparison.

It grows, it never renames. Numbers are in base units, times ISO 8601: with an offset where the zone of the log is
known, without one where it is not.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import Analysis, ClockEventTotal, Cost, CounterReading, DeviceStatistics, MetricSummary
from gpureport.comparison.across import AcrossFinding, BatchSize, MemoryFit, Scaling, across_findings
from gpureport.comparison.steps import Step
from gpureport.data_quality import LogGap
from gpureport.findings import AdvisedStep, Evidence, Finding, Interval
from gpureport.importers.protocol.reject_reasons import find_note_code, find_reject_code
from gpureport.recording import Run, Stage
from gpureport.report.wording.differences.comparison_reasons import describe_memory_reason

SCHEMA = "gpureport.analysis/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RUN = "id name step started ended timezone interval_seconds sources devices stages params tags work"
_QUALITY = (
    "lines rows_kept rejected headers noise events continued absent_cells gaps duplicates clock_steps log_events "
    "synthetic_time imputed_points coverage_ratio notes note_codes unfinished pauses"
)
_STATISTICS = (
    "idle_seconds gpu_memory_peak_bytes gpu_memory_headroom_ratio energy_joules energy_seconds energy_bridged_seconds "
    "power_doubt energy_counter observed_seconds"
)
_FINDING = (
    "kind gpu device devices gpus start end intervals severity confidence lost_gpu_seconds {cost} cause consequences "
    "root samples ruled_out evidence summary recommendation steps fingerprint"
)
_ANSWER = "kind group devices outcome findings reason reason_code recording"
_LEDGER = "device reason effect busy_seconds counted clock_hertz reference_clock_hertz reference lost_ratio"
_COST = (
    "currency date price total idle gpus energy_joules energy_counted carbon_intensity_grams_per_kwh carbon_source "
    "carbon_grams"
)
_ACROSS = "kind severity confidence steps summary recommendation fingerprint evidence"

Content = dict[str, Any]


def render(analyses: Sequence[Analysis], steps: Sequence[Step] = ()) -> str:
    """Return the analyses as JSON text, one a run; the same runs by step are for findings over several of them."""
    runs = [_analysis(analysis) for analysis in analyses]
    return dump({"schema": SCHEMA, "runs": runs, "across_runs": across_runs(steps), "advice": advice(analyses)})


def dump(content: Content) -> str:
    """Return a document as JSON text; a result is an object of its fields."""
    return json.dumps(content, indent=1, allow_nan=False, default=list_fields) + "\n"


def list_fields(value: Any) -> Content:
    """Return the fields of a result that its repr shows, unchanged."""
    return {each.name: getattr(value, each.name) for each in fields(value) if each.repr}


def take(value: object, keys: str, **made: Any) -> Content:
    """Return what stands under each key: what was made for it, otherwise the attribute of that name."""
    return {key: made[key] if key in made else getattr(value, key) for key in keys.split()}


def iso_time(microseconds: int, timezone: str | None) -> str:
    """Return a time of a recording as ISO 8601 with milliseconds, in the zone of the log where it is known."""
    time = _EPOCH + timedelta(microseconds=microseconds)
    shown = time.astimezone(ZoneInfo(timezone)) if timezone else time.replace(tzinfo=None)
    return shown.isoformat(timespec="milliseconds")


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
        "throttle_ledger": [_ledger_entry(each) for each in analysis.throttle_ledger],
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


def _span(span: Interval | Stage | LogGap, zone: str | None) -> Content:
    return {"start": iso_time(span.start, zone), "end": iso_time(span.end, zone)}


def _intervals(spans: Sequence[Interval], zone: str | None) -> list[list[str]]:
    return [list(_span(span, zone).values()) for span in spans]


def _run(run: Run) -> Content:
    return take(
        run,
        _RUN,
        started=iso_time(run.started, run.timezone),
        ended=iso_time(run.ended, run.timezone),
        interval_seconds=run.interval,
        stages=[{"name": stage.name, "node": stage.node, **_span(stage, run.timezone)} for stage in run.stages],
        params=dict(run.params),
        tags=dict(run.tags),
    )


def _quality(analysis: Analysis, zone: str | None) -> Content:
    quality = analysis.run.quality
    absent: dict[str, dict[str, int]] = {}
    for cells in quality.absent_cells:
        absent.setdefault(cells.column, {})[cells.reason] = cells.cells
    return take(
        quality,
        _QUALITY,
        rejected=[asdict(each) | {"code": find_reject_code(each.reason)} for each in quality.rejected],
        absent_cells=absent,
        gaps=[{"device": gap.device, **_span(gap, zone)} for gap in quality.gaps],
        clock_steps=[asdict(step) | {"at": iso_time(step.at, zone)} for step in quality.clock_steps],
        log_events=[
            asdict(event) | {"at": None if event.at is None else iso_time(event.at, zone)}
            for event in quality.log_events
        ],
        coverage_ratio=analysis.coverage_ratio,
        note_codes=list(map(find_note_code, quality.notes)),
        pauses=analysis.pauses,
    )


def _statistics(statistics: DeviceStatistics) -> Content:
    metrics = {summary.metric: _summary(summary) for summary in statistics.metrics}
    return metrics | take(
        statistics,
        "observed_seconds" if statistics.device == "host" else _STATISTICS,
        gpu_memory_peak_bytes=statistics.memory_peak_bytes,
        gpu_memory_headroom_ratio=statistics.memory_headroom_ratio,
        power_doubt=statistics.power_doubt or None,
        energy_counter=_counter(statistics.energy_counter, "joules"),
    )


def _summary(summary: MetricSummary) -> Content:
    entry = {name: value for name, value in list_fields(summary).items() if name not in {"metric", "below"}}
    return entry | ({"below": {f"{limit:g}": share for limit, share in summary.below}} if summary.below else {})


def _counter(reading: CounterReading | None, unit: str) -> Content | None:
    """Return what a counter rose by, with its unit in the names; None where it was not read twice."""
    if reading is None:
        return None
    return {
        unit: reading.total,
        f"in_gaps_{unit}": reading.in_gaps,
        "read_over_seconds": reading.seconds,
        "restarts": reading.restarts,
        "impossible": reading.impossible,
    }


def _ledger_entry(entry: ClockEventTotal) -> Content:
    counted = _counter(entry.counted, "seconds")
    return take(entry, _LEDGER, counted=counted, reference_clock_hertz=entry.reference_hertz)


def _finding(finding: Finding, analysis: Analysis) -> Content:
    indices = {gpu.id: gpu.index for gpu in analysis.run.gpus}
    device = finding.devices[0] if len(finding.devices) == 1 else None
    spans = _intervals(finding.intervals, analysis.run.timezone)
    period = {} if finding.period_seconds is None else {"period_seconds": finding.period_seconds}
    return period | take(
        finding,
        _FINDING.format(cost="cost" if analysis.cost else ""),
        gpu=None if device is None else indices.get(device),
        device=device,
        gpus=[index for name, index in indices.items() if name in finding.devices],
        start=spans[0][0] if spans else None,
        end=spans[-1][1] if spans else None,
        intervals=spans,
        cost=analysis.cost and analysis.cost.cost_of(finding),
        evidence=[evidence(each) for each in finding.evidence],
        steps=advised_steps(finding.steps),
    )


def _cost(cost: Cost) -> Content:
    """Return what a run cost; `price` is that of every GPU, None where they differ."""
    amounts = {gpu.amount for gpu in cost.gpus}
    return take(
        cost,
        _COST,
        currency=cost.currency or None,
        date=cost.date or None,
        price=amounts.pop() if len(amounts) == 1 else None,
        gpus={gpu.device: {"price": gpu.amount, "source": gpu.source or None} for gpu in cost.gpus},
        energy_counted=cost.counted,
        carbon_intensity_grams_per_kwh=cost.carbon_intensity,
        carbon_source=cost.carbon_source or None,
    )


def evidence(value: Evidence) -> Content:
    """Return one measured value with its limit, the same in every document."""
    limit = value.threshold
    return take(value, "metric statistic observed unit relation") | {
        "threshold": limit and limit.value,
        "provenance": limit and {"kind": limit.provenance, "source": limit.source},
    }


def advice(analyses: Sequence[Analysis]) -> Content:
    """Return the steps that any finding names, once each."""
    named = {step.name for analysis in analyses for finding in analysis.findings for step in finding.steps}
    return {name: take(step, "title do when risk check source") for name, step in STEPS.items() if name in named}


def advised_steps(steps: Sequence[AdvisedStep]) -> list[Content]:
    """Return the steps of a finding: their names, what is not known of each, and how far to go with it."""
    return [{"name": step.name, "unknown": step.unknown, "suggestion": step.suggestion or None} for step in steps]


def across_runs(steps: Sequence[Step]) -> list[Content]:
    """Return findings over several runs: what findings of one run say, the steps they rest on, and their figures."""
    return [_across_finding(found) for found in across_findings(steps)]


def _across_finding(found: AcrossFinding) -> Content:
    said = [evidence(each) for each in found.finding.evidence]
    figures = list_fields(found.content) if isinstance(found.content, Scaling) else with_memory_reason(found.content)
    return take(found.finding, _ACROSS, steps=found.steps, evidence=said) | figures


def with_memory_reason(found: BatchSize | MemoryFit) -> Content:
    """Return figures of memory, with the reason behind them as a sentence and as a code."""
    return list_fields(found) | {"reason": describe_memory_reason(found.reason), "reason_code": found.reason or ""}
