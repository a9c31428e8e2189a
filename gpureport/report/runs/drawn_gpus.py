"""Which GPUs of a run are drawn: all of few, of many the troubled and a typical one of each node; and their limits."""

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from gpureport.analysis.series.clock_and_power import gather_signals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_reserved
from gpureport.findings import Severity
from gpureport.recording import Device
from gpureport.report.model.pictures import MetricLimit
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

FEW_GPUS = 16
"""Most GPUs of which each is drawn and has a row of its own: a page of more is longer than anybody reads."""

_MOST_TROUBLED = 16
_SEVERITIES = tuple(reversed(Severity))


def group_by_node(gpus: Sequence[Device]) -> dict[str | None, list[Device]]:
    """Return the GPUs of each node, in order; the key is None where no node is named."""
    nodes: dict[str | None, list[Device]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu)
    return nodes


def choose_drawn_gpus(run: ReportRun) -> tuple[Device, ...]:
    """Return the GPUs that are drawn, in the order of the run."""
    gpus = run.run.gpus
    if len(gpus) <= FEW_GPUS:
        return gpus
    chosen = {*_list_troubled(run), *_list_typical(run)}
    return tuple(gpu for gpu in gpus if gpu.id in chosen)


def describe_choice(run: ReportRun, drawn: Sequence[Device]) -> str:
    """Return which GPUs are drawn as a sentence; empty where all are."""
    if len(drawn) == len(run.run.gpus):
        return ""
    place = "each node" if len(group_by_node(run.run.gpus)) > 1 else "them"
    return (
        f"{len(drawn)} of {len(run.run.gpus)} GPUs are drawn: the {_MOST_TROUBLED} at most that findings speak of "
        f"most gravely, and one of {place} with median utilisation."
    )


def _list_troubled(run: ReportRun) -> list[str]:
    graver: dict[str, tuple[int, float]] = {}
    for finding in run.analysis.findings:
        weight = _SEVERITIES.index(finding.severity), -(finding.lost_gpu_seconds or 0.0) / max(len(finding.devices), 1)
        is_noted = finding.severity is not Severity.INFO or finding.lost_gpu_seconds
        for device in finding.devices if is_noted and len(finding.devices) <= len(run.run.gpus) // 2 else ():
            graver[device] = min(graver.get(device, weight), weight)
    known = {gpu.id for gpu in run.run.gpus} & graver.keys()
    return sorted((device for device in graver if device in known), key=lambda device: graver[device])[:_MOST_TROUBLED]


def _list_typical(run: ReportRun) -> Iterator[str]:
    """Yield of each node the GPU with the median utilisation, of an even number the less busy one."""
    found = {each.device: each.metric("gpu_utilization_ratio") for each in run.analysis.statistics}
    use = {device: summary.mean for device, summary in found.items() if summary is not None}
    for gpus in group_by_node(run.run.gpus).values():
        yield sorted(gpus, key=lambda gpu: use.get(gpu.id, -1.0))[(len(gpus) - 1) // 2].id


def find_limits(series: DeviceSeries) -> tuple[MetricLimit, ...]:
    """Return the limits that are known of a GPU; of memory what a job can get of it."""
    signals, reserved = gather_signals(series), memory_reserved(series)
    known = signals.power_limit[~np.isnan(signals.power_limit)]
    hottest, most = signals.temperature_limit, float(np.median(known)) if len(known) else float("nan")
    usable = float(series.device.memory_total_bytes or "nan") - reserved
    memory = f"{display.memory(usable)} {'usable' if reserved else 'installed'}" if isfinite(usable) else ""
    limits = (
        ("gpu_temperature_celsius", hottest, f"limit {hottest:,.0f}{display.GAP}°C"),
        ("gpu_power_watts", most, f"limit {most:,.0f}{display.GAP}W"),
        ("gpu_memory_used_bytes", usable, memory),
    )
    return tuple(MetricLimit(metric=name, value=value, text=text) for name, value, text in limits if isfinite(value))
