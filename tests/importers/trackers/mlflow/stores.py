"""MLflow stores made by hand, in the form its versions 2.9 to 3.17 write them; no MLflow is needed."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Point = tuple[int, float, int]
"""Milliseconds, value, step."""
START = 1_795_221_673_408
TICKS = [10_050 + 10_050 * place for place in range(9)]
"""Milliseconds after START at which a monitor logs."""
HARDWARE: dict[str, float] = json.loads(Path(__file__).with_name("hardware.json").read_text(encoding="utf-8"))
_LARGEST = 1.7976931348623157e308


@dataclass(frozen=True, kw_only=True)
class Made:
    id: str
    name: str = "run"
    series: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    status: str = "FINISHED"
    start: int = START
    end: int | None = START + 100_000
    deleted: bool = False
    experiment: str = "first"


def run_id(number: int) -> str:
    return f"{number:06x}" + "ab" * 13


def monitored(
    ticks: Sequence[int], values: Mapping[str, float] | None = None, node: str = "", first_step: int = 0
) -> dict[str, list[Point]]:
    prefix = f"system/{node}/" if node else "system/"
    return {
        prefix + name: [(START + tick, value, first_step + place) for place, tick in enumerate(ticks)]
        for name, value in (HARDWARE if values is None else values).items()
    }


def database(path: Path, runs: Sequence[Made]) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("tables.sql").read_text(encoding="utf-8"))
    experiments = list(dict.fromkeys(run.experiment for run in runs))
    for number, name in enumerate(experiments, 1):
        connection.execute("insert into experiments values (?, ?, ?, 'active')", (number, name, f"/x/{number}"))
    for run in runs:
        stage, where = "deleted" if run.deleted else "active", f"/nowhere/{run.id}/artifacts"
        number = experiments.index(run.experiment) + 1
        row = (run.id, run.name, run.status, run.start, run.end, stage, where, number)
        connection.execute("insert into runs values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for table, pairs in (("params", run.params), ("tags", run.tags)):
            rows = [(key, value, run.id) for key, value in pairs.items()]
            connection.executemany(f"insert into {table} values (?, ?, ?)", rows)  # noqa: S608 - a name from above
        for key, points in run.series.items():
            for time, value, step in points:
                bare = (key, *_stored(value), time, run.id, step)
                connection.execute("insert or ignore into metrics values (?1, ?2, ?4, ?5, ?6, ?3)", bare)
                connection.execute("insert or replace into latest_metrics values (?1, ?2, ?4, ?6, ?3, ?5)", bare)
    connection.commit()
    connection.close()
    return path


def _stored(value: float) -> tuple[float, int]:
    if value != value:  # noqa: PLR0124 - only a NaN differs from itself
        return 0.0, 1
    return min(max(value, -_LARGEST), _LARGEST), 0


def folder(path: Path, runs: Sequence[Made]) -> Path:
    numbers = {
        name: f"{900_000_000_000_000_000 + place}"
        for place, name in enumerate(dict.fromkeys(r.experiment for r in runs))
    }
    for name, number in numbers.items():
        (path / number).mkdir(parents=True)
        text = (
            f"artifact_location: file:///x/{number}\nexperiment_id: '{number}'\nlifecycle_stage: active\nname: {name}\n"
        )
        (path / number / "meta.yaml").write_text(text, encoding="utf-8")
    for run in runs:
        _run(path / numbers[run.experiment] / run.id, run, numbers[run.experiment])
    return path


def _run(path: Path, run: Made, experiment: str) -> None:
    states = ["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]
    meta = {
        "artifact_uri": f"file:///nowhere/{run.id}/artifacts",
        "end_time": "null" if run.end is None else str(run.end),
        "entry_point_name": "''",
        "experiment_id": f"'{experiment}'",
        "lifecycle_stage": "deleted" if run.deleted else "active",
        "run_id": run.id,
        "run_name": run.name,
        "start_time": str(run.start),
        "status": str(states.index(run.status) + 1),
        "tags": "[]",
    }
    contents = {"meta.yaml": "".join(f"{key}: {value}\n" for key, value in meta.items())}
    contents |= {f"params/{key}": value for key, value in run.params.items()}
    contents |= {f"tags/{key}": value for key, value in run.tags.items()}
    for key, points in run.series.items():
        contents[f"metrics/{key}"] = "".join(f"{time} {value} {step}\n" for time, value, step in points)
    for name, content in contents.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content, encoding="utf-8")
