"""What sysstat, procps and psutil recorded side by side says the same."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from tests.importers.logs.host.series import CAPTURED, CAPTURES, LOCAL, extract, is_identified, read
from tests.quick_share import keep_quick

CPU, CORE, WAIT = "cpu_utilization_ratio", "cpu_busiest_core_ratio", "cpu_iowait_ratio"
READ, WRITTEN, LOAD = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second", "host_load_average"
USED, TOTAL, SHARE = "host_memory_used_bytes", "host_memory_total_bytes", "host_memory_used_ratio"
CORE_COUNT = "cpu_logical_cores"
CORES, RESIDENT = "process_cpu_cores", "process_memory_used_bytes"
HOLDS: dict[str, tuple[str, str | None, set[str]]] = {
    "mpstat.json": ("mpstat -o JSON", None, {CORE_COUNT, CPU, CORE, WAIT}),
    "mpstat.txt": ("mpstat", None, {CORE_COUNT, CPU, CORE, WAIT}),
    "pidstat.txt": ("pidstat", None, {CORES, RESIDENT}),
    "pidstat_h.txt": ("pidstat", None, {CORES, RESIDENT}),
    "psutil.csv": ("a CSV", "UTC", {CORE_COUNT, CPU, CORE, WAIT, USED, TOTAL, CORES, RESIDENT}),
    "sadf.json": ("sadf -j", "UTC", {CORE_COUNT, CPU, CORE, WAIT, READ, WRITTEN}),
    "sadf_epoch.csv": ("sadf -d", "UTC", {CORE_COUNT, CPU, CORE, WAIT, READ, WRITTEN}),
    "sadf_local.csv": ("sadf -d", None, {CORE_COUNT, CPU, CORE, WAIT, USED, TOTAL, SHARE}),
    "sadf_local.json": ("sadf -j", None, {CPU, WAIT, USED, SHARE}),
    "sadf_utc.csv": ("sadf -d", "UTC", {CORE_COUNT, CPU, CORE, WAIT, USED, SHARE, READ, WRITTEN, LOAD}),
    "sar_12h.txt": ("sar", None, {CORE_COUNT, CPU, CORE, WAIT, USED, SHARE, READ, WRITTEN}),
    "sar_de.txt": ("sar", None, {CORE_COUNT, CPU, WAIT, READ, WRITTEN, LOAD}),
    "sar_live.txt": ("sar", None, {CORE_COUNT, CPU, CORE, WAIT, USED, SHARE, READ, WRITTEN}),
    "top.txt": ("top -b", None, {CPU, WAIT, USED, TOTAL, SHARE, LOAD, CORES, RESIDENT}),
    "top_cores.txt": ("top -b", None, {CORE_COUNT, CPU, CORE, WAIT, USED, TOTAL, SHARE, LOAD, CORES, RESIDENT}),
    "vmstat.txt": ("vmstat", None, {CPU, WAIT, READ, WRITTEN}),
    "vmstat_utc.txt": ("vmstat", "UTC", {CPU, WAIT, READ, WRITTEN}),
}
"""What each capture is called, the zone it states, and the metrics it holds."""
MACHINE_CORES = 2
_STRETCH = 130
"""Bytes that are more than a line."""
_NEAR = 600_000
"""Microseconds by which readings of one second are apart."""


def test_every_capture_is_described() -> None:
    """None is forgotten."""
    assert sorted(HOLDS) == CAPTURED


@pytest.mark.parametrize("name", CAPTURED)
def test_a_capture_is_told_and_read(name: str) -> None:
    """Each form is told by its content, and no line is rejected."""
    found = read(CAPTURES / name)
    _, zone, metrics = HOLDS[name]
    assert found.outcome.timezone == zone
    assert set(found.table.column_names) - {"device", "timestamp", "imputed"} == metrics
    assert found.outcome.quality.rejected == ()
    assert found.outcome.intervals["host"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("metric", [CPU, CORE, WAIT, CORES])
@pytest.mark.parametrize("name", CAPTURED)
def test_means_are_those_of_psutil(name: str, metric: str) -> None:
    """In the time both cover, the mean load is that of psutil within a point (1.5 for rounded or shifted ones)."""
    reference, found = read(CAPTURES / "psutil.csv"), read(CAPTURES / name)
    if metric not in HOLDS[name][2]:
        assert metric not in found.table.column_names
        return
    shift = 0 if found.outcome.timezone else LOCAL
    spans = [reference.outcome.span, tuple(time - shift for time in found.outcome.span)]
    low, high = max(span[0] for span in spans) - _NEAR, min(span[1] for span in spans) + _NEAR
    allowed = 0.015 if name.startswith(("top", "vmstat")) else 0.01
    assert found.mean(metric, low, high) == pytest.approx(reference.mean(metric, low, high), abs=allowed)


@pytest.mark.parametrize("name", [name for name, (_, _, metrics) in HOLDS.items() if CORE_COUNT in metrics])
def test_cores_are_counted(name: str) -> None:
    """By a banner, by the lines or columns of all cores: each program saw the same machine."""
    counted = read(CAPTURES / name).column(CORE_COUNT)
    assert set(counted[~np.isnan(counted)].tolist()) == {MACHINE_CORES}


@pytest.mark.parametrize("name", ["top.txt", "top_cores.txt"])
def test_top_and_psutil_agree_on_memory(name: str) -> None:
    """Both say what is in use without the page cache."""
    reference, found = read(CAPTURES / "psutil.csv"), read(CAPTURES / name)
    assert found.column(TOTAL).max() == pytest.approx(reference.column(TOTAL).max(), rel=0.001)
    assert found.column(USED).mean() == pytest.approx(reference.column(USED).mean(), rel=0.05)


@pytest.mark.parametrize("name", CAPTURED)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_a_cut_log_is_a_prefix(tmp_path_factory: pytest.TempPathFactory, name: str, share: float) -> None:
    """Cut anywhere, each row says what it says in the whole log or less, and never something else."""
    whole = (CAPTURES / name).read_bytes()
    assert prefix(tmp_path_factory.mktemp("cut") / "host.log", whole[: round(share * len(whole))], name)


@pytest.mark.parametrize("name", keep_quick(CAPTURED, 4))
def test_cut_at_every_byte_of_a_line(tmp_path: Path, name: str) -> None:
    """No part of a cell is taken for the cell."""
    whole = (CAPTURES / name).read_bytes()
    start = whole.index(b"\n", len(whole) // 2)
    for place in range(start, start + _STRETCH):
        assert prefix(tmp_path / "host.log", whole[:place], name)


@cache
def whole_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a whole capture."""
    return read(CAPTURES / name).rows()


def prefix(path: Path, content: bytes, name: str) -> bool:
    """Return whether what is left of a capture is refused, or says of each time what the whole one does, or less."""
    path.write_bytes(content)
    try:
        left = extract(path).rows()
    except SourceError:
        return True
    assert is_identified(path)
    full = whole_rows(name)
    pairs = zip(left, full, strict=False)
    return len(left) <= len(full) and all({key: whole.get(key) for key in row} == row for row, whole in pairs)
