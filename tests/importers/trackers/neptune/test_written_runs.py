"""Runs as exporter, client and neptune-scale write them, made here, and all that is read of each."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.dumps import Row
from tests.importers.trackers.neptune.folders import Operation, operation
from tests.importers.trackers.neptune.schedule import GIB, START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import describe, hold

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)
ONE = Schedule(utilization=[LOAD])
BERLIN, LOS_ANGELES = "Europe/Berlin", "America/Los_Angeles"
VALUES = [97.0, 0.0, 0.0, 50.0, 97.0, 0.0]
OWN: dict[str, object] = {
    **{"params/lr": 0.1, "params/amp": True, "params/net": "resnet", "sys/tags": ["b", "a"], "sys/failed": False},
    **{"source_code/entrypoint": "train.py", "source_code/integrations/neptune-pytorch": "2.0.1"},
}
Written = Callable[[Path], object]


def later(ticks: float, name: str, values: list[float], **more: Any) -> Schedule:
    """Return a process in a namespace of its own, which begins some ticks after the others."""
    start = START + round(ticks * TICK)
    return Schedule(utilization=[values], namespace=f"monitoring/{name}", start=start, **more)


def at(text: str, ticks: int) -> Schedule:
    start = round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1e6)
    return Schedule(utilization=[square(busy=7, idle=4, ticks=ticks)], cpu=[50.0] * ticks, start=start)


def rows(schedules: tuple[Schedule, ...] | Schedule = RUN, **more: Any) -> list[Row]:
    return dumps.run(*(schedules if isinstance(schedules, tuple) else (schedules,)), **more)


def export(*parts: list[Row]) -> Written:
    def write(place: Path) -> None:
        for number, part in enumerate(parts):
            dumps.write_to(place / dumps.name(dumps.PROJECT) / f"part_{number}.parquet", part, groups=3)

    return write


def without_values(given: list[Row]) -> list[Row]:
    powers = [row for row in given if row["attribute_path"].endswith("gpu_power_0")]
    for row in (powers[0], powers[1], powers[-1]):
        row["float_value"] = float("nan")
    return given


def taken_up_again() -> list[Row]:
    first, again = (
        Schedule(utilization=[square(busy=4, idle=1, ticks=10)], cpu=[cpu] * 10, start=START + late * TICK)
        for cpu, late in ((0.0, 0), (90.0, 400))
    )
    known = {"project_id": dumps.PROJECT, "run_id": "OPT-1"}
    found = [row for row in rows(first) if row["attribute_type"] != "float_series"]
    for path, values in again.series().items():
        found += [known | row for row in dumps.points(path, first.series().get(path, []) + values)]
    return found


def client(given: list[Operation], **more: Any) -> Written:
    return lambda place: folders.write(place, given, **more)


def changed(change: Callable[[list[str]], str], **more: Any) -> Written:
    """Return a folder of the client whose lines somebody changed."""

    def write(place: Path) -> None:
        log = folders.write(place, folders.operations(RUN), **more) / "data-1.log"
        log.write_text(change(log.read_text().splitlines()))

    return write


def uploaded(place: Path) -> None:
    given = folders.operations(RUN)
    kept = folders.write(place, given[:60], mode="async", first=1201, put=1200 + len(given))
    rest = [json.dumps({"obj": each, "version": number, "at": 1.0}) for number, each in enumerate(given[60:], 1261)]
    (kept / "data-1261.log").write_text("\n".join(rest))


def several_processes(place: Path) -> None:
    folders.write(place, folders.operations(RUN), mode="async")
    other = folders.write(place / "x", folders.operations(later(30, "validation", [80.0] * 5)), mode="async")
    other.rename(place / "async" / f"run__{folders.RUN}__1405__zzzzzzzz")


def several_containers(place: Path) -> None:
    folders.write(place, folders.operations(RUN))
    folders.write(place, folders.operations(RUN), container="model", run="M-1")
    folders.write(place, folders.operations(RUN), container="project", run="P-1", about={})


def stages_as_runs(place: Path) -> None:
    folders.write(place, folders.operations(RUN))
    other = later(-9, "preprocessing", [80.0] * 5)
    folders.write(place, folders.operations(other), run="aaaaaaaa-eb52-4187-b43c-3cb0bae4f42f")


def scale(*more: bytes, **how: Any) -> Written:
    return lambda place: databases.write(place, [*databases.recipe(VALUES, **how), *more])


TAKEN_BACK = [
    *folders.floats("loss", loss(START, 3)),
    operation("ClearFloatLog", "loss"),
    *folders.floats("loss", [(START, float("nan")), (START + TICK, 0.5)]),
    *folders.operations(RUN),
    operation("AssignFloat", "params/lr", value=0.1),
    operation("DeleteAttribute", "params/lr"),
    operation("RemoveStrings", "sys/tags", values=["sample"]),
    operation("AssignDatetime", "when", value=START // 1000),
]
FAR = [
    row | {"timestamp": row.get("timestamp") and datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)} for row in rows(ONE)
]
SAID = [{"project_id": dumps.PROJECT, "run_id": "OPT-1"} | row for row in dumps.text("a/stdout", ["hunter2"], START)]
NEPTUNE_3 = {"runtime/monitoring/gpu/0/gpu_utilization_percent": [(START + TICK * place, 50.0) for place in range(5)]}
NODE_B = rows(later(0, "0000000b", [70.0] * 5), hostname="node-b")
CASES: dict[str, Written] = {
    "export": export(rows()),
    "export_says_more": export([*rows(series={"train/loss": loss(START, 40)}, singles=OWN), *SAID]),
    "export_of_stages": export(
        rows(
            (later(0, "preprocessing", [20.0] * 6), later(7, "training", [90.0] * 9)),
            series={"training/loss": loss(START + 7 * TICK, 4)},
        )
    ),
    "export_with_metrics_called_like_gauges": export(
        rows(series={name: loss(START, 5) for name in ("train/memory", "eval/gpu", "train/cpu")})
    ),
    "export_of_series_alone": export([row for row in rows() if row["attribute_type"] == "float_series"]),
    "export_of_runs_in_one_file": export(
        [*rows()[:90], *rows(later(0, "training", [10.0] * 4), run_id="OPT-2")], rows()[90:]
    ),
    "export_of_a_point_without_a_time": export(
        [*rows(series={"loss": loss(START, 2)}), rows(series={"loss": loss(START, 3)})[-1] | {"timestamp": None}]
    ),
    "export_of_a_value_without_a_path": export(
        [*rows(singles={"sys/tags": ["a", None]}), rows()[0] | {"attribute_path": None}]
    ),
    "export_of_values_that_are_no_numbers": export(without_values(rows((RUN, later(30, "validation", LOAD))))),
    "export_of_times_no_clock_shows": export(FAR),
    "export_of_los_angeles": export(dumps.local(rows(ONE, series={"train/loss": loss(START, 9)}), LOS_ANGELES)),
    "export_of_an_hour_that_comes_twice": export(dumps.local(rows(at("2025-10-26T00:20", 900)), BERLIN)),
    "export_of_an_hour_that_is_skipped": export(dumps.local(rows(at("2026-03-29T00:40", 300)), BERLIN)),
    "export_of_neptune_3": export(
        [
            row
            for row in dumps.run(series=NEPTUNE_3, created=START - 25_200_000_000)
            if row["attribute_path"] != "sys/id"
        ]
    ),
    "export_of_ranks_that_watch_the_same_gpus": export(
        rows(
            tuple(
                Schedule(utilization=[LOAD, [35.0] * 20], namespace=f"monitoring/{n:08x}", start=START + 90_000 * n)
                for n in range(4)
            )
        )
    ),
    "export_of_stages_that_touch": export(
        rows((later(0, "preprocessing", [20.0] * 6), later(5.4, "training", [90.0] * 6)))
    ),
    "export_of_a_stage_within_a_process": export(
        rows((later(0, "launcher", [50.0] * 60), later(20.1, "training", [90.0] * 10)))
    ),
    **{
        f"export_of_processes_with_a_gpu_each_{name}": export(
            rows(tuple(later(n * apart, f"rank{n}", [80.0 - 20 * n] * 5, numbers=()) for n in range(2)))
        )
        for name, apart in (("at_once", 0.05), ("in_turn", 9))
    },
    "export_of_numbered_gpus": export(rows(Schedule(utilization=[[50.0] * 3, [60.0] * 3], numbers=(2, 3)))),
    "export_of_machines": export(
        [*rows(later(0, "0000000a", [50.0] * 5)), *(row for row in NODE_B if row["attribute_path"].startswith("mon"))]
    ),
    "export_of_a_stage_taken_up_again": export(taken_up_again()),
    "client": client(folders.operations(RUN)),
    "client_with_limits_of_0": client(
        [each | ({"max": 0} if "gpu_power" in each["path"][-1] else {}) for each in folders.operations(RUN)]
    ),
    "client_log_cut_and_lost": changed(lambda lines: "\n".join(lines)[:-30], mode="async", put=300),
    "client_log_torn": changed(lambda lines: "\n".join([*lines[:5], lines[5][:20], *lines[6:]])),
    "client_log_uploaded_in_part": uploaded,
    "client_of_several_processes": several_processes,
    "client_of_other_containers": several_containers,
    "client_of_stages_as_runs": stages_as_runs,
    "client_that_takes_back": client(TAKEN_BACK),
    "client_whose_monitoring_ended": client(
        [*folders.operations(RUN), *folders.floats("loss", [(START + 60 * TICK, 0.1)])]
    ),
    "client_with_a_value_twice": client(
        [*folders.operations(RUN), *folders.floats("monitoring/training/gpu_1", [(RUN.ticks[3], 44.0)])]
    ),
    "client_without_memory": client([each for each in folders.operations(RUN) if "gpu_memory" not in each["path"][-1]]),
    "scale": scale(),
    "scale_with_a_namespace_of_its_own": scale(space="training"),
    "scale_with_a_sample_that_failed": scale(
        databases.snapshot(START + 3 * TICK, step=6, append={"runtime/monitoring/gpu/0/power_usage_watts": 100.0})
    ),
}
"""What writes a store."""
READINGS: dict[str, list[dict[str, Any]]] = {
    "export_of_stages": [{}, {"stage": "training"}, {"stage": "validation"}],
    "export_of_times_no_clock_shows": [{}, {"tz": BERLIN}],
    "export_of_los_angeles": [{}, {"tz": LOS_ANGELES}],
    "export_of_an_hour_that_comes_twice": [{"tz": BERLIN}],
    "export_of_an_hour_that_is_skipped": [{}, {"tz": BERLIN}],
    "export_of_neptune_3": [{"tz": LOS_ANGELES}],
    "export_of_numbered_gpus": [{}, {"gpus": (3,)}],
    "client": [{}, {"gpu_memory_total": 80 * GIB}],
    "client_of_stages_as_runs": [{}, {"group": "pipeline"}],
}
"""The options a case is read with, one reading after the other, where it is not read once without."""


@pytest.mark.parametrize("name", CASES)
def test_a_written_run(name: str, tmp_path: Path, *, update_golden: bool) -> None:
    CASES[name](tmp_path)
    hold(
        f"neptune/{name}", [describe(tmp_path, **options) for options in READINGS.get(name, [{}])], update=update_golden
    )
