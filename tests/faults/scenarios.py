"""Commands that write, and the folders they write to."""

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tests.importers.trackers.mlflow.stores import HARDWARE, START, Made, database, folder, monitored, run_id
from tests.store.runs import noisy
from tests.support.logs import stamp

_NIGHT = ("--site", "site", "--junit", "junit.xml", "--summary", "summary.md", "--fail-on", "idle_ratio <= 99%")
_TEXT_FORMATS = ("html", "json", "md", "txt", "svg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command and what it begins with.

    Attributes:
        name: as tables name it.
        arguments: the command line.
        prepare: commands that make what it begins with.
        clears: the command that clears away what was left half done a day ago; None where its next run does.
        points: how many faults are tried, fewer where the command takes long or makes few calls.
    """

    name: str
    arguments: Sequence[str]
    prepare: Sequence[Sequence[str]] = ()
    clears: Sequence[str] | None = None
    points: int = 24


def write_logs(place: Path) -> None:
    """Write the logs that the commands read, short ones, and a folder of MLflow with two runs."""
    (place / "tmp").mkdir(parents=True)
    for seed, name in enumerate(("old", "new", "third")):
        (place / f"{name}.csv").write_text(noisy(seed, rows=200).replace("2026/03/14", f"2026/03/{14 + seed}"))
    ticks = [10_000 * tick for tick in range(1, 31)]
    runs = []
    for number in range(2):
        shift = 400_000 * number
        hardware = monitored(
            [shift + tick for tick in ticks], HARDWARE | {"gpu_0_utilization_percentage": 30.0 + 40 * number}
        )
        speed = {"samples_per_second": [(START + shift + tick, 100.0 * (number + 1), tick) for tick in ticks]}
        runs.append(
            Made(
                id=run_id(number + 1),
                name=("base", "faster")[number],
                series=hardware | speed,
                start=START + shift,
                end=START + shift + 310_000,
            )
        )
    folder(place / "mlruns", runs)
    database(place / "mlflow.db", runs)
    text = noisy(3, rows=2000).encode()
    (place / "packed.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    (place / "packed.csv.zst").write_bytes(pa.compress(text, "zstd", asbytes=True))
    (place / "recorded").mkdir()
    (place / "recorded" / "gpu.csv").write_text(noisy(4, rows=2000, gpus=1))
    host = [f"{stamp(second)},{second % 100}.0,8" for second in range(2000)]
    (place / "recorded" / "host.csv").write_text("\n".join(["timestamp,cpu_percent,cpu_count", *host, ""]))


OLD = ("ingest", "old.csv", "--name", "old", "--step", "a", "--tag", "by=hand")
_NIGHT_1 = ("nightly", "old.csv", *_NIGHT, "--date", "2026-03-14")
_NIGHT_2 = ("nightly", "new.csv", *_NIGHT, "--date", "2026-03-15", "--baseline", "main")
_NIGHT_3 = ("nightly", "third.csv", *_NIGHT, "--date", "2026-03-16")
_REPORT = ("report", "old.csv", *(word for each in _TEXT_FORMATS for word in ("-o", f"out/r.{each}")))
_COMPARED = f"mlflow:mlruns#{run_id(1)}", f"mlflow:mlruns#{run_id(2)}"
_STORE = ("ingest", "third.csv")
_SET = ("baseline", "set", "main", "old")
_CLEAN = ("ingest", "third.csv", "--force")
SCENARIOS = (
    Scenario(name="ingest, new store", arguments=("ingest", "new.csv"), clears=_CLEAN),
    Scenario(name="ingest, another run", arguments=("ingest", "new.csv"), prepare=(OLD,), clears=_CLEAN),
    Scenario(
        name="ingest, replaced run",
        arguments=("ingest", "old.csv", "--force", "--step", "b"),
        prepare=(OLD,),
        clears=_CLEAN,
    ),
    Scenario(
        name="ingest, two logs", arguments=("ingest", "new.csv", "third.csv"), prepare=(OLD,), clears=_CLEAN, points=16
    ),
    Scenario(name="label", arguments=("runs", "step", "old", "b"), prepare=(OLD,), clears=_CLEAN),
    Scenario(name="runs rm", arguments=("runs", "rm", "old"), prepare=(OLD, _STORE), clears=_CLEAN),
    Scenario(name="runs export", arguments=("runs", "export", "old", "-o", "out.parquet"), prepare=(OLD,)),
    Scenario(name="baseline set", arguments=_SET, prepare=(OLD,), clears=_SET),
    Scenario(
        name="baseline set, replaced",
        arguments=("baseline", "set", "main", "third", "old"),
        prepare=(OLD, _STORE, _SET),
        clears=_SET,
    ),
    Scenario(name="baseline rm", arguments=("baseline", "rm", "main"), prepare=(OLD, _SET), clears=_SET),
    Scenario(name="nightly, first", arguments=_NIGHT_1, clears=_NIGHT_3, points=3),
    Scenario(name="nightly, second", arguments=_NIGHT_2, prepare=(_NIGHT_1, _SET), clears=_NIGHT_3, points=3),
    Scenario(name="report, five formats", arguments=_REPORT, points=4),
    Scenario(name="report, replaced", arguments=("report", "new.csv", *_REPORT[2:]), prepare=(_REPORT,), points=3),
    Scenario(name="report, PDF and PNG", arguments=("report", "old.csv", "-o", "r.pdf", "-o", "r.png"), points=3),
    Scenario(name="check", arguments=("check", "old.csv", *_NIGHT[2:]), points=12),
    Scenario(name="publish, folder", arguments=("publish", "new.csv", "old.csv", "--to", "public"), prepare=(OLD,)),
    Scenario(name="publish, artifact", arguments=("publish", "old.csv", "--to", _COMPARED[0])),
    Scenario(name="publish, figures", arguments=("publish", "comparison.json", "--to", "mlflow:mlruns"), points=10),
)
READERS = (
    Scenario(name="ingest, log", arguments=("ingest", "new.csv"), prepare=(OLD,)),
    Scenario(name="ingest, gzip", arguments=("ingest", "packed.csv.gz"), prepare=(OLD,)),
    Scenario(name="ingest, zstd", arguments=("ingest", "packed.csv.zst"), prepare=(OLD,)),
    Scenario(name="ingest, recording", arguments=("ingest", "recorded"), prepare=(OLD,), points=12),
    Scenario(name="ingest, MLflow folder", arguments=("ingest", _COMPARED[0]), prepare=(OLD,)),
    Scenario(name="ingest, MLflow database", arguments=("ingest", f"mlflow:mlflow.db#{run_id(1)}"), prepare=(OLD,)),
    Scenario(name="ingest, known run", arguments=("ingest", "old.csv", "--tag", "seen=yes"), prepare=(OLD,)),
    Scenario(name="ingest, replaced run", arguments=("ingest", "old.csv", "--force", "--step", "b"), prepare=(OLD,)),
    Scenario(name="label", arguments=("runs", "step", "old", "b"), prepare=(OLD,)),
    Scenario(name="runs list", arguments=("runs", "list"), prepare=(OLD, _STORE)),
    Scenario(name="analyze, stored run", arguments=("analyze", "old", "--format", "json"), prepare=(OLD,), points=10),
    Scenario(name="compare, stored runs", arguments=("compare", "old", "third"), prepare=(OLD, _STORE), points=6),
    Scenario(name="baseline set", arguments=_SET, prepare=(OLD,)),
    Scenario(
        name="check, baseline",
        arguments=("check", "third.csv", "--baseline", "main", "--fail-on", "no new problem"),
        prepare=(OLD, _SET),
        points=6,
    ),
    Scenario(name="fleet", arguments=("fleet",), prepare=(OLD, _STORE, ("fleet",), ("ingest", "new.csv")), points=3),
    Scenario(name="publish, figures", arguments=("publish", "comparison.json", "--to", "mlflow:mlruns"), points=10),
    Scenario(name="nightly, second", arguments=_NIGHT_2, prepare=(_NIGHT_1, _SET), points=4),
)
"""Commands that read what may not be read whole."""
COMPARE = ("compare", *_COMPARED, "--format", "json")
"""Its output is `comparison.json`."""


def reset(place: Path, template: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place, symlinks=True)
