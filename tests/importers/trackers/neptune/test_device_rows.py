"""GPUs that several processes watched."""

from pathlib import Path

import pytest

from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import START, TICK, Schedule, square
from tests.importers.trackers.tracked import column, recording, rejected

LOAD = square(busy=3, idle=2, ticks=20)


def test_ranks_that_watch_the_same_gpus_count_once(tmp_path: Path) -> None:
    ranks = [
        Schedule(utilization=[LOAD, [35.0] * 20], namespace=f"monitoring/{rank:08x}", start=START + 90_000 * rank)
        for rank in range(4)
    ]
    found = recording(dumps.write(tmp_path, dumps.run(*ranks)))
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert len(found.rows_of("gpu:0")) == 20
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]
    per_rank = 19 + 20 * 5 + 12 + 20
    assert rejected(found) == [("another_process_recorded_the_same_device", 3 * per_rank)]
    assert len(found.run.stages) == 1


def test_stages_that_touch_are_kept_whole(tmp_path: Path) -> None:
    one = Schedule(utilization=[[20.0] * 6], namespace="monitoring/preprocessing")
    two = Schedule(utilization=[[90.0] * 6], namespace="monitoring/training", start=START + 5 * TICK + 4_000_000)
    found = recording(dumps.write(tmp_path, dumps.run(one, two)))
    assert (len(found.rows_of("gpu:0")), found.run.quality.rejected) == (12, ())


def test_a_process_over_all_stages_gives_way_to_them(tmp_path: Path) -> None:
    launcher = Schedule(utilization=[[50.0] * 60], namespace="monitoring/launcher")
    inner = Schedule(utilization=[[90.0] * 10], namespace="monitoring/training", start=START + 20 * TICK + 1_000_000)
    found = recording(dumps.write(tmp_path, dumps.run(launcher, inner)))
    stages = column(found, "gpu:0", "stage")
    assert (stages.count("training"), stages.count("launcher")) == (10, 51)
    assert stages[20:31].count("training") == 10


@pytest.mark.parametrize(("apart", "gpus"), [(500_000, ["gpu:0", "gpu:1"]), (9 * TICK, ["gpu:0"])])
def test_processes_that_see_one_gpu_each(tmp_path: Path, apart: int, gpus: list[str]) -> None:
    """At the same time they are two, in succession one that both used."""
    ranks = [
        Schedule(utilization=[[value] * 5], namespace=f"monitoring/rank{rank}", start=START + rank * apart, numbers=())
        for rank, value in enumerate((80.0, 60.0))
    ]
    found = recording(dumps.write(tmp_path, dumps.run(*ranks)))
    assert [device.id for device in found.run.gpus] == gpus
    assert column(found, gpus[-1], "gpu_utilization_ratio")[-5:] == [0.6] * 5


def test_physical_numbers_are_kept(tmp_path: Path) -> None:
    found = recording(dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3, [60.0] * 3], numbers=(2, 3)))))
    assert [device.id for device in found.run.gpus] == ["gpu:2", "gpu:3"]
    one = recording(tmp_path, gpus=(3,))
    assert [device.id for device in one.run.gpus] == ["gpu:3"]
    assert rejected(one) == [("gpu_not_selected", 9)]


def test_machines_are_told_apart(tmp_path: Path) -> None:
    rows = dumps.run(Schedule(utilization=[[50.0] * 5], namespace="monitoring/0000000a"))
    rows += [
        row
        for row in dumps.run(Schedule(utilization=[[70.0] * 5], namespace="monitoring/0000000b"), hostname="node-b")
        if row["attribute_path"].startswith("monitoring/")
    ]
    found = recording(dumps.write(tmp_path, rows))
    assert [device.id for device in found.run.devices] == ["node-a/gpu:0", "node-b/gpu:0", "node-a/host", "node-b/host"]
    assert column(found, "node-b/gpu:0", "gpu_utilization_ratio") == [0.7] * 5
    assert {stage.node for stage in found.run.stages} == {"node-a", "node-b"}


def test_a_stage_taken_up_again(tmp_path: Path) -> None:
    first = Schedule(utilization=[square(busy=4, idle=1, ticks=10)], cpu=[0.0] * 10)
    again = Schedule(utilization=[square(busy=4, idle=1, ticks=10)], cpu=[90.0] * 10, start=START + 400 * TICK)
    rows = dumps.run(first, series={})
    series = first.series()
    rows = [row for row in rows if row["attribute_type"] != "float_series"]
    for path, values in again.series().items():
        rows += [
            {"project_id": dumps.PROJECT, "run_id": "OPT-1", **row}
            for row in dumps.points(path, series.get(path, []) + values)
        ]
    found = recording(dumps.write(tmp_path, rows))
    assert {gap.device for gap in found.run.quality.gaps} == {"gpu:0", "host"}
    assert found.run.quality.imputed_points == 4 + 9
    cpu = column(found, "host", "cpu_utilization_ratio")
    assert cpu == [None, *[0.0] * 9, None, *[0.9] * 9]
    imputed = column(found, "gpu:0", "imputed")
    assert imputed.count(True) * 5 == len(imputed)
