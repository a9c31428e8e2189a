"""W&B's stream of system metrics becomes the series of the GPUs and of their machine."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.logs.wandb.metric_names import parse_metric_name
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import column, kept


def made(folder: Path, text: str) -> Recording:
    """Return an export as it is read."""
    path = folder / "sys_metrics.csv"
    path.write_text(text)
    return Reading(find_runs(path)[0], ReadOptions(), Labels()).recording()


def lines(*rows: Mapping[str, object]) -> str:
    """Return rows as JSON lines, 15 s apart."""
    stamped = [{**row, "_timestamp": other_tools.EPOCH + 15 * place} for place, row in enumerate(rows)]
    return "".join(json.dumps(row) + "\n" for row in stamped)


@pytest.mark.parametrize("prefix", ["system.", "system/", ""])
def test_names_with_and_without_a_prefix(tmp_path: Path, prefix: str) -> None:
    """The prefix says nothing; numbers are taken in the units the SDK writes."""
    gpu = f"{prefix}gpu.0."
    row = {
        f"{gpu}gpu": 61,
        f"{gpu}memory": 40,
        f"{gpu}temp": 59,
        f"{gpu}powerWatts": 12.509,
        f"{gpu}enforcedPowerLimitWatts": 70.0,
        f"{gpu}smClock": 300,
        f"{gpu}smActive": 36.7,
    }
    found = made(tmp_path, lines(row))
    (cells,) = found.rows_of("gpu:0").to_pylist()
    assert cells["gpu_utilization_ratio"] == pytest.approx(0.61)
    assert cells["gpu_memory_controller_ratio"] == pytest.approx(0.4)
    assert cells["gpu_power_watts"] == pytest.approx(12.509)
    assert cells["gpu_sm_clock_hertz"] == 300e6
    assert cells["gpu_sm_active_ratio"] == pytest.approx(0.367)
    assert found.run.gpus[0].power_limit_watts == 70
    assert found.run.timezone == "UTC"


def test_memory_installed_is_told_from_share_and_bytes(tmp_path: Path) -> None:
    """W&B's own sample: 270598144 bytes are 1.68… % of 15 GiB."""
    row = {"system.gpu.0.memoryAllocated": 1.6800944010416665, "system.gpu.0.memoryAllocatedBytes": 270598144}
    found = made(tmp_path, lines(row, {"system.gpu.0.memoryAllocated": 5.0}))
    assert found.run.gpus[0].memory_total_bytes == 16106127360
    assert found.rows_of("gpu:0").column("extra_memoryAllocated").to_pylist() == [None, "5.0"]


def test_cores_make_the_load_of_the_machine(tmp_path: Path) -> None:
    """What the process used is not what the machine did: only cores speak of it."""
    row = {"system.cpu": 99.0, "system.cpu.0.cpu_percent": 50, "system.cpu.1.cpu_percent": 100, "system.gpu.0.gpu": 1}
    found = made(tmp_path, lines(row, {"system.cpu": 99.0, "system.gpu.0.gpu": 1}))
    assert column(found, "cpu_utilization_ratio", "host") == [0.75, None]
    assert column(found, "cpu_busiest_core_ratio", "host") == [1, None]
    assert found.rows_of("host").column("extra_cpu").to_pylist() == ["99.0", "99.0"]


def test_cells_of_a_frame_may_be_missing(tmp_path: Path) -> None:
    """Pandas leaves a cell empty where a row lacks a metric: nothing was recorded."""
    text = ",system.gpu.0.gpu,system.gpu.1.gpu,_timestamp\n0,5,,1773478800\n1,,NaN,1773478815\n2,7,8,1773478830.5\n"
    found = made(tmp_path, text)
    assert column(found, "gpu_utilization_ratio", "gpu:0") == [0.05, 0.07]
    assert column(found, "gpu_utilization_ratio", "gpu:1") == [0.08]
    assert (kept(found), found.run.quality.noise) == (3, 1)


def test_a_sample_of_a_long_run_is_said(tmp_path: Path) -> None:
    """W&B hands out 500 rows unless asked for more."""
    notes = [made(tmp_path, other_tools.wandb_lines(rows)).run.quality.notes for rows in (499, 500)]
    assert [len(note) for note in notes] == [0, 1]


def test_names_that_are_not_of_this_machine(tmp_path: Path) -> None:
    """What W&B asked another machine's exporter is not read, and it is said."""
    found = made(tmp_path, lines({"system.gpu.0.gpu": 5, "system.gpu.0.gpu/l:node2": 99}))
    assert column(found, "gpu_utilization_ratio") == [0.05]
    assert any("other machines" in note for note in found.run.quality.notes)


@pytest.mark.parametrize(
    "text", ["loss", "gpu.process.0.gpu", "gpu.0", "system.gpu.x.gpu", "_step", "gpu.0.gpu/l:node1"]
)
def test_other_names_are_none(text: str) -> None:
    """Metrics of the training, and what is said of the process, are no system metrics."""
    assert parse_metric_name(text) is None
