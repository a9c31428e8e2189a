"""Reads Trackio's store: one SQLite database per project, with one row of JSON text for each set of logged values."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport.columns import FloatArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers import tracker_series
from gpureport.importers.account import NOT_SELECTED, TORN
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import extra_name
from gpureport.importers.mlflow.stores import LocalStore, find_experiments
from gpureport.importers.protocol import ReadOptions
from gpureport.importers.protocol.tracker import RunInfo, Selection, Tracked, Tracker, describe_devices
from gpureport.importers.read_only_sqlite import holds_tables, open_database
from gpureport.importers.tracker_series import Series
from gpureport.recording import HOST, Device

_TABLES = ("metrics", "system_metrics")
_GPU = re.compile(r"gpu/([0-9]{1,4})/(.+)")
_CORE = re.compile(r"cpu/[0-9]+/")
_COLUMNS = {
    "utilization": ("gpu_utilization_ratio", 0.01),
    "memory_utilization": ("gpu_memory_controller_ratio", 0.01),
    "allocated_memory": ("gpu_memory_used_bytes", 2**30),
    "total_memory": ("gpu_memory_total_bytes", 2**30),
    "power": ("gpu_power_watts", 1.0),
    "power_limit": ("gpu_power_limit_requested_watts", 1.0),
    "temp": ("gpu_temperature_celsius", 1.0),
    "sm_clock": ("gpu_sm_clock_hertz", 1e6),
    "memory_clock": ("gpu_memory_clock_hertz", 1e6),
    "pcie_rx": ("pcie_receive_bytes_per_second", 1024e3),
    "pcie_tx": ("pcie_transmit_bytes_per_second", 1024e3),
    "throttle_thermal": ("clock_event_sw_thermal_slowdown", 1.0),
    "throttle_power": ("clock_event_sw_power_cap", 1.0),
    "throttle_hw_slowdown": ("clock_event_hw_slowdown", 1.0),
    "uncorrected_memory_errors": ("gpu_ecc_uncorrected_total", 1.0),
    "cpu/utilization": ("cpu_utilization_ratio", 0.01),
    "busiest/utilization": ("cpu_busiest_core_ratio", 0.01),
    "memory/used": ("host_memory_used_bytes", 2**30),
    "memory/percent": ("host_memory_used_ratio", 0.01),
    "disk/read_mb_per_sec": ("host_disk_read_bytes_per_second", 2**20),
    "network/recv_mb_per_sec": ("host_network_receive_bytes_per_second", 2**20),
}
_RUNS = """
    select RUN, run_name, min(timestamp),
           coalesce(max(case when system glob '*"gpu/[0-9]*' then system end), max(system))
    from (select RUN, run_name, timestamp, null system from metrics
          union all select RUN, run_name, timestamp, case when json_valid(metrics) then cast(metrics as text) end
          from system_metrics)
    group by 1 order by 3 desc
"""
"""Selects runs with hardware values of their own; rows with sums over GPUs do not show what a run recorded."""


def _read_numbers(text: Any) -> dict[str, float] | None:
    with suppress(ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        found = json.loads(text).items()
        known = ("NaN", "Infinity", "-Infinity")
        return {key: float(one) for key, one in found if isinstance(one, int | float) or one in known}
    return None


class TrackioStore(LocalStore):
    def query(self, query: str, *values: str) -> list[Any]:
        """Return rows; `RUN` stands for the column that identifies a run, which had no id before version 0.24."""
        with open_database(self.path, _TABLES, "Trackio") as connection:
            names = [name for _, name, *_ in connection.execute("pragma table_info(metrics)")]
            query = query.replace("RUN", "run_id" if "run_id" in names else "run_name")
            return connection.execute(query, values).fetchall()

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        find_experiments(self.where, {self.path.stem: self.path.stem}, experiment)
        found = []
        for key, name, began, system in self.query(_RUNS):
            names = _read_numbers(system) or {}
            devices: set[str | None] = {match[1] for match in map(_GPU.match, names) if match}
            devices |= {None for each in names if not each.startswith("gpu/")}
            info = RunInfo(
                id=str(key),
                key=f"{self.path.stem}/{key}",
                name=str(name),
                status="status not recorded",
                started=(parse_time(str(began)) or [None])[0],
                hardware=describe_devices(devices),
            )
            found.append(info)
        return found

    def points(self, table: str, run_id: str, counts: Counter[str]) -> dict[str, Series]:
        step = "step" if table == "metrics" else "0"
        found = defaultdict[str, list[tuple[int, float, int]]](list)
        for at, number, text in self.query(f"select timestamp, {step}, metrics from {table} where RUN = ?", run_id):  # noqa: S608
            time, content = parse_time(str(at)), _read_numbers(text)
            if time is None or content is None or not isinstance(number, int):
                counts[TORN] += 1
                continue
            for name, value in content.items():
                found[name].append((time[0], value, number))
        return {name: tracker_series.make_series(sorted(own, key=itemgetter(0, 2))) for name, own in found.items()}

    def config(self, run_id: str) -> dict[str, Any]:
        with suppress(SourceError, ValueError, TypeError, RecursionError):
            for (text,) in self.query("select config from configs where RUN = ?", run_id):
                return dict(json.loads(text))
        return {}


def _build_devices(
    points: Mapping[str, Series], gpus: tuple[int, ...] | None, counts: Counter[str]
) -> dict[Device, pa.Table]:
    ticks, read = tracker_series.place_on_ticks([*points.values()])
    values: dict[int | None, dict[str, FloatArray]] = defaultdict(dict)
    for (key, own), row in zip(points.items(), read, strict=True):
        match = _GPU.fullmatch(key)
        gpu, fate = int(match[1]) if match else None, "kept"
        if gpus is not None and gpu not in {None, *gpus}:
            fate = NOT_SELECTED
        elif gpu is None and key.startswith("gpu/"):
            # sums and means over the GPUs add nothing
            fate = "noise"
        else:
            what = match[2] if match else _CORE.sub("busiest/", key)
            column, factor = _COLUMNS.get(what, (extra_name(what), 1.0))
            values[gpu][column] = np.fmax(row * factor, values[gpu].get(column, np.nan))
        counts[fate] += len(own.times)
    series = {}
    for gpu, held in sorted(values.items(), key=lambda item: (item[0] is None, item[0] or 0)):
        device = Device(id=HOST if gpu is None else f"gpu:{gpu}", index=gpu)
        known = {name: each for name, each in held.items() if not np.isnan(each).all()}
        if "gpu_memory_total_bytes" in known:
            device = replace(device, memory_total_bytes=round(np.nanmax(known["gpu_memory_total_bytes"])))
        if "gpu_power_limit_requested_watts" in known:
            device = replace(device, power_limit_watts=float(np.nanmin(known["gpu_power_limit_requested_watts"])))
        if known:
            series[device] = tracker_series.build_device_table(device.id, ticks, known)
    return series


def _record(store: TrackioStore, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    counts: Counter[str] = Counter()
    series = _build_devices(store.points("system_metrics", info.id, counts), options.gpus, counts)
    metrics, config = store.points("metrics", info.id, counts), store.config(info.id)
    quality = Quality(
        lines=counts.total(),
        rows_kept=counts["kept"],
        noise=counts["noise"],
        rejected=tracker_series.list_rejected({why: counts[why] for why in (TORN, NOT_SELECTED)}),
    )
    return tracker_series.build_tracked(
        f"trackio:{store.where}#{info.id}",
        series,
        metrics,
        name=info.name,
        quality=quality,
        throughput=selection.throughput,
        state=(counts, sorted(config.items())),
        params=tuple((key, str(value)) for key, value in config.items() if not key.startswith("_")),
        tags=tuple(("user", str(value)) for key, value in config.items() if key == "_Username" and value),
    )


TRACKIO = Tracker(
    kind="trackio",
    title="Trackio",
    holds=lambda path: holds_tables(path, _TABLES),
    open=lambda path, *_: TrackioStore(Path(path), path),
    record=_record,
)
