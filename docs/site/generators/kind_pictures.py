"""The pictures of docs/reference/kinds.md, from the sample logs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import gpureport
from gpureport.metrics import METRICS

ROOT = Path(__file__).parents[3]
_SAMPLES = ROOT / "sample_logs"
_WIDTH, _LEFT, _PANEL, _GAP, _POINTS = 640, 8, 56, 24, 240
_SCALES = {
    "1": (100, "%"),
    "By": (2**-30, " GiB"),
    "Hz": (1e-6, " MHz"),
    "By/s": (1e-9, " GB/s"),
    "Cel": (1, " °C"),
    "W": (1, " W"),
}
_UTILISATION = "gpu_utilization_ratio"
_POWER = "gpu_power_watts"
_CLOCK = "gpu_sm_clock_hertz"
_MEMORY = "gpu_memory_used_bytes"
_TEMPERATURE = "gpu_temperature_celsius"
_CPU = "cpu_utilization_ratio"
SERIES = {
    "idle_gap": (_UTILISATION,),
    "periodic_stall": (_UTILISATION,),
    "startup_idle": (_UTILISATION,),
    "tail_idle": (_UTILISATION,),
    "thermal_throttle": (_CLOCK, _TEMPERATURE),
    "hw_throttle": (_CLOCK, _TEMPERATURE),
    "power_cap": (_POWER, _CLOCK),
    "power_limited": (_POWER, _CLOCK),
    "cpu_bound": (_UTILISATION, _CPU),
    "io_bound": (_UTILISATION, "cpu_iowait_ratio"),
    "cpu_bound_single": (_UTILISATION, "cpu_busiest_core_ratio"),
    "transfer_bound": (_UTILISATION, "pcie_receive_bytes_per_second"),
    "workers_headroom": (_UTILISATION, "host_memory_used_ratio"),
    "host_memory_pressure": (_UTILISATION, "host_memory_used_ratio"),
    "underutilised": (_UTILISATION, _CPU),
    "low_util_cause_unknown": (_UTILISATION,),
    "mem_headroom": (_MEMORY, _UTILISATION),
    "mem_pressure": (_MEMORY, _UTILISATION),
    "mem_prealloc": (_MEMORY, _UTILISATION),
    "mem_leak": (_MEMORY, _UTILISATION),
    "clocks_locked": (_CLOCK, _UTILISATION),
    "ecc_error": ("gpu_ecc_uncorrected_total", _UTILISATION),
    "gpu_lost": (_UTILISATION, _POWER),
    "monitoring_ended": (_UTILISATION, _CPU),
    "pcie_degraded": ("pcie_link_generation", _UTILISATION),
    "log_gap": (_UTILISATION,),
    "no_progress": (_UTILISATION, _POWER),
    "hollow_util": (_UTILISATION, _POWER),
    "imbalance": (_UTILISATION, _POWER),
    "unused_gpu": (_UTILISATION, _MEMORY),
    "zombie_memory": (_MEMORY, _UTILISATION),
    "full_precision": (_UTILISATION, _POWER),
    "rate_falls": (_UTILISATION, _CLOCK),
    "slow_gpu": (_CLOCK,),
    "unexplained_change": (_CLOCK, _POWER),
    "oversized_gpu": (_UTILISATION, _MEMORY),
}
"""The series in the picture of each kind, from top to bottom."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#59626f}.a{stroke:#0072b2}.b{stroke:#aab4bf}"
    "path{fill:none;stroke-width:1.5}"
    ".s{fill:#d55e00;opacity:.16}.g{stroke:#c9d0d8;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#a0aab7}.a{stroke:#56b4e9}.b{stroke:#59626f}"
    ".s{fill:#ff7a3d;opacity:.28}.g{stroke:#2a3039}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A sample log and the finding in it.

    Attributes:
        series: its rows, times in seconds since the first.
        gpu: the device of the finding.
        spans: beginning and end of the finding, in seconds.
        length: seconds from the first row to the last, or to the end of the finding.
    """

    series: pd.DataFrame
    gpu: str
    spans: list[list[float]]
    length: float

    def place(self, seconds: float) -> float:
        """Return the position of a time in the picture."""
        return _LEFT + (_WIDTH - 2 * _LEFT) * min(max(seconds / self.length, 0), 1)


def draw_kind(kind: str) -> str:
    """Return the picture of a kind: series from its sample, with the time of the finding marked."""
    sample = _read_sample(kind)
    recorded = [name for name in SERIES[kind] if name in sample.series and sample.series[name].notna().any()]
    height = len(recorded) * (_PANEL + _GAP)
    drawn = [line for row, metric in enumerate(recorded) for line in _draw_metric(sample, metric, row)]
    title = f"{kind}: {', '.join(map(_title, recorded))} over {sample.length / 60:.0f} min"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}">'
        f"<style>{_STYLE}</style>{''.join(drawn)}</svg>\n"
    )


def _read_sample(kind: str) -> _Sample:
    recording = gpureport.read(_SAMPLES / kind)[0]
    series = recording.series.to_pandas()
    start = series["timestamp"].min()
    series = series.assign(timestamp=(series["timestamp"] - start).dt.total_seconds())
    own = [finding for finding in gpureport.analyze(recording).findings if finding.kind == kind]
    spans = [
        [round(moment / 1e6) - start.timestamp() for moment in (each.intervals[0].start, each.intervals[-1].end)]
        for each in own
        if each.intervals
    ]
    return _Sample(
        series=series,
        gpu=next((each.devices[0] for each in own if len(each.devices) == 1), "gpu:0"),
        spans=spans,
        length=max([series["timestamp"].max(), *(end for _, end in spans)]),
    )


def _draw_metric(sample: _Sample, metric: str, row: int) -> Iterator[str]:
    """Yield one metric, with the finding's GPU in colour and the others in grey."""
    top = row * (_PANEL + _GAP) + _GAP
    known = sample.series[sample.series[metric].notna()]
    unit = next((each.unit for each in METRICS if each.name == metric), "")
    scale, suffix = _SCALES.get(unit, (1, ""))
    most = 1.0 if unit == "1" else float(known[metric].max()) * 1.05 or 1.0
    for first, last in sample.spans:
        left, right = sample.place(first), sample.place(last)
        yield f'<rect class="s" x="{left:.0f}" y="{top}" width="{max(right - left, 2):.0f}" height="{_PANEL}"/>'
    yield f'<path class="g" d="M{_LEFT} {top + _PANEL}.5H{_WIDTH - _LEFT}"/>'
    yield f'<text x="{_LEFT}" y="{top - 7}">{_title(metric)}, 0 to {most * scale:,.0f}{suffix}</text>'
    devices = sorted(known["device"].unique(), key=lambda device: device == sample.gpu)
    for device in devices:
        shade = "a" if device in {sample.gpu, "host"} or len(devices) == 1 else "b"
        line = _line(sample, known[known["device"] == device], known[metric] / most)
        path = "".join(f"{step}{x:.0f} {top + _PANEL * (1 - min(share, 1)):.1f}" for step, x, share in line)
        yield f'<path class="{shade}" d="{path}"/>'


def _line(sample: _Sample, rows: pd.DataFrame, shares: "pd.Series[float]") -> Iterator[tuple[str, float, float]]:
    """Yield the points of a series, as means if rows are denser than points; time without samples stays empty."""
    step = max(sample.length / _POINTS, 1e-9)
    means = shares[rows.index].astype(float).groupby((rows["timestamp"] // step).astype(int)).mean()
    pause = max(rows["timestamp"].diff().median() * 4 / step, 2)
    last = -pause - 1
    for point, share in zip(means.index.tolist(), means.tolist(), strict=True):
        yield "M" if point - last > pause else "L", sample.place(point * step), share
        last = point


def _title(metric: str) -> str:
    """Return the name of a metric in words, without its unit."""
    words = re.sub("_(ratio|bytes|celsius|watts|hertz)(?=_|$)|_per_second", "", metric).replace("_", " ")
    for written in ("GPU", "CPU", "PCIe", "SM", "ECC"):
        words = re.sub(rf"\b{written.lower()}\b", written, words)
    return words[0].upper() + words[1:]
