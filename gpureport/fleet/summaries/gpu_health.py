"""Signs of a sick GPU in one run, from what was found and what was recorded."""

from collections.abc import Iterable, Sequence
from math import fsum

import numpy as np

from gpureport import columns
from gpureport.analysis.results import Analysis
from gpureport.findings import Finding, Severity
from gpureport.fleet.gpu_summary import GpuHealth, HealthCheck
from gpureport.recording import Recording

_TEMPERATURE = "gpu_temperature_celsius"
_HEAT, _HARDWARE, _LOST, _LINK, _ERRORS = "thermal_throttle", "hw_throttle", "gpu_lost", "pcie_degraded", "ecc_error"
_CORRECTED = ("gpu_ecc_corrected_total", "gpu_ecc_single_bit_total")
_UNCORRECTED = ("gpu_ecc_uncorrected_total", "gpu_ecc_double_bit_total")
"""Two recorders of the same errors: those of the one that saw more count."""
_REMAPPED = ("gpu_remapped_rows_correctable_total", "gpu_remapped_rows_uncorrectable_total")


def read_health(recording: Recording, analysis: Analysis, device: str) -> GpuHealth:
    """Return the signs of a sick GPU in one run."""
    statistics = next((one for one in analysis.statistics if one.device == device), None)
    temperature = statistics.metric(_TEMPERATURE) if statistics else None
    findings = [each for each in analysis.findings if device in each.devices]
    unjudged = {each.kind for each in analysis.not_judged if each.device in {None, device}}
    slow = [each for each in findings if each.kind == _LINK and each.severity is not Severity.INFO]
    return GpuHealth(
        max_temperature_celsius=temperature.max if temperature else None,
        heat_slowed_seconds=_sum_seconds(findings, _HEAT, unjudged),
        hardware_slowed_seconds=_sum_seconds(findings, _HARDWARE, unjudged),
        ecc_corrected=_count_errors(recording, device, findings, _CORRECTED, unjudged),
        ecc_uncorrected=_count_errors(recording, device, findings, _UNCORRECTED, unjudged),
        remapped_rows=_read_last_sum(recording, device, _REMAPPED),
        gpu_lost=_check([one for one in findings if one.kind == _LOST and one.cause != "sensor"], _LOST, unjudged),
        slow_link=_check(slow, _LINK, unjudged),
    )


def _check(findings: Sequence[Finding], kind: str, unjudged: Iterable[str]) -> HealthCheck:
    if findings:
        return HealthCheck.FOUND
    return HealthCheck.NOT_ASSESSED if kind in unjudged else HealthCheck.CLEAR


def _sum_seconds(findings: Sequence[Finding], kind: str, unjudged: Iterable[str]) -> float | None:
    """Return for how long the findings of a kind lasted; None where it could not be judged."""
    of_kind = [each for each in findings if each.kind == kind]
    if not of_kind:
        return None if kind in unjudged else 0.0
    return fsum(part.seconds for each in of_kind for part in each.intervals)


def _count_errors(
    recording: Recording, device: str, findings: Sequence[Finding], counters: Sequence[str], unjudged: Iterable[str]
) -> int | None:
    """Return by how much counters of memory errors rose in the run, if recorded."""
    rises = [
        each.observed
        for finding in findings
        if finding.kind == _ERRORS
        for each in finding.evidence
        if each.metric in counters
    ]
    if rises:
        return int(max(rises))
    is_recorded = any(len(_read_values(recording, device, name)) for name in counters)
    return 0 if is_recorded and _ERRORS not in unjudged else None


def _read_last_sum(recording: Recording, device: str, counters: Sequence[str]) -> int | None:
    """Return the sum of the last values of some counters; None where none was recorded."""
    last = [values[-1] for name in counters if len(values := _read_values(recording, device, name))]
    return int(sum(last)) if last else None


def _read_values(recording: Recording, device: str, metric: str) -> columns.FloatArray:
    """Return the recorded values of a metric of one device."""
    table = recording.rows_of(device)
    if metric not in table.column_names:
        return np.zeros(0)
    values = columns.floats(table.column(metric))
    return values[~np.isnan(values)]
