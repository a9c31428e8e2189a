"""Every reader that is given damaged texts: the texts to begin with, and how a text reaches it."""

import gzip
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import gpureport
from gpureport.testing import Recording
from tests.importers.trackers import test_tables_of_runs
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule
from tests.support import logs
from tests.support.program import run_program

SEEDS = Path(__file__).with_name("seeds")
SAMPLES, PAIRS = Path("sample_logs").resolve(), Path("tests/readers/pairs").resolve()
_INTERNAL = 5
"""Exit code of an error that nobody expected."""
_RUN = Made(id=run_id(1), name="run1", series=monitored(range(0, 20_000, 1000)), start=0, end=20_000)
_PLAN = Schedule(utilization=[[50.0] * 5])
_TRAINERS = (
    *(path.read_bytes() for path in sorted(PAIRS.glob("training/te[xn]*.t*"))),
    b'{"log_history": [{"loss": 2.5, "step": 10, "epoch": 0.5}, {"eval_loss": 2.1, "step": 20, "epoch": 1.0}]}\n',
    b'{"time": 1773480420, "step": 1, "loss": 2.5}\n{"time": 1773480430, "step": 2, "loss": NaN}\n',
    b"Wall time,Step,Value\n1773480420.5,1,2.5\n1773480430.5,2,2.4\n",
)


OPTIONS: dict[str, list[str]] = tomllib.loads((SEEDS / "options.toml").read_text(encoding="utf-8"))
"""Options that take a text of a form, with some."""
KINDS = ("nvidia_smi", "gpustat", "nvitop", "dcgm", "wandb", "prometheus", "monitors")
_CONFIG = ("check", "gpu.csv", "--fail-on", "problem", "--config")
_STORE = "mlflow:{}/store"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reader: it is given a file of any content in a folder of its own, with what it needs beside it."""

    seeds: Sequence[bytes]
    read: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda _: None


def run(place: Path, *arguments: str) -> int:
    """Run the program in a folder; return its exit code, which no text may make that of an internal error."""
    done = run_program(place, *arguments)
    assert done.code != _INTERNAL, done.err
    assert "Traceback" not in done.err
    return done.code


def read(source: Path | str, **options: object) -> list[Recording]:
    """Read all runs of a source; every line of each is accounted for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # of a run of a tracker that cannot be read
        warnings.simplefilter("ignore", UserWarning)
        found = gpureport.read(source, **options)  # type: ignore[arg-type] # any option
    for each in found:
        assert each.run.quality.accounted, each.run.quality
    return found


def read_log(path: Path) -> None:
    """Read a log alone, in one of several ways that its content chooses."""
    way = crc32(path.read_bytes()) % 6
    ways: dict[int, dict[str, object]] = {4: {"tz": "Europe/Berlin"}, 5: {"gpus_per_tick": 2}}
    for each in read(path, interval=1.0, **ways.get(way, {})):
        assert len(each.series) == each.run.quality.rows_kept


def _head(path: Path, lines: int = 40, most: int = 6000) -> bytes:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    # JSON and XML are none when they are cut
    return data[:most] if data[:1] in b"{[<" else b"\n".join(data.split(b"\n")[:lines]) + b"\n"


def _list_captures(kind: str) -> list[bytes]:
    return [_head(path) for path in sorted((PAIRS / kind).glob("captured_*")) if path.suffix != ".json"]


@cache
def _make_logs() -> dict[str, list[bytes]]:
    recorded = (
        path for path in (SAMPLES / "recorded/phases").glob("*.gz") if not path.name.startswith(("host", "vmstat"))
    )
    samples = [*SAMPLES.glob("*/nvidia-smi.csv"), *SAMPLES.glob("*/*.log"), *SAMPLES.glob("gpu_lost/*.gz"), *recorded]
    texts = [logs.log(60), logs.log(40, gpus=4), logs.log(30).replace(",", ";").replace(".", ","), logs.log(2)]
    texts.append("utilization.gpu [%], power.draw [W]\n" + "".join(f"{s} %, {s}.25 W\n" for s in range(60)))
    others = {
        "gpustat": [logs.gpustat_log(3), logs.gpustat_log(12, indent=None)],
        "nvitop": [logs.nvitop_csv(12)],
        "dcgm": [logs.dmon_log(10), logs.dmon_log(10, stamped=True), logs.long_csv(6), logs.wide_csv(12)],
        "wandb": [logs.wandb_csv(20)],
        "prometheus": [logs.prometheus_answer(DCGM_FI_DEV_XID_ERRORS=["0", "79"], DCGM_FI_DEV_FB_USED=["1"])],
    }
    found = {kind: [*map(str.encode, own), *_list_captures(kind)] for kind, own in others.items()}
    found["monitors"] = [_head(path) for path in sorted((PAIRS / "monitors").iterdir()) if path.suffix != ".json"]
    found["dcgm"] += [_head(path) for path in sorted((PAIRS / "dcgm").glob("*.txt"))]
    return found | {"nvidia_smi": [*map(str.encode, texts), *map(_head, sorted(samples))]}


@cache
def _make_files() -> dict[str, bytes]:
    """Return the files of a store of one run with a night, and the JSON of a comparison, by their names."""
    with TemporaryDirectory() as name:
        place = Path(name)
        write_logs(place)
        assert run(place, "ingest", "gpu.csv", "--name", "old", "--step", "a", "--tag", "by=hand") == 0
        run(place, "nightly", "gpu.csv", "--date", "2026-03-14", "--site", "site")
        compared = run_program(place, "compare", "gpu.csv", "other.csv", "--format", "json")
        (place / "comparison.json").write_text(compared.out)
        return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def write_logs(place: Path) -> None:
    logs.write(place, gpu=logs.log(30), other=logs.log(20))


def _write_log_of_captures(place: Path) -> None:
    rows = [*map(logs.row, range(3300, 3600))]
    hours = [line.replace("2026/03/14 09", f"2026/11/21 {hour}") for hour in (15, 16) for line in rows]
    logs.write(place, gpu="\n".join([logs.HEADER, *hours, ""]))


def write_store(place: Path) -> None:
    for name, content in _make_files().items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)


def _find(place: Path, pattern: str) -> Path:
    return min(place.rglob(pattern))


def _stored(pattern: str, *commands: str) -> Target:
    """Return a target that replaces a file of the store, and runs commands on it."""

    def read_store(path: Path) -> None:
        _find(path.parent / ".gpureport", pattern).write_bytes(path.read_bytes())
        for command in commands:
            run(path.parent, *command.split())

    (name,) = (name for name in _make_files() if Path(name).match(pattern))
    return Target(seeds=[_make_files()[name]], read=read_store, prepare=write_store)


def _tracked(pattern: str, source: str, write: Callable[[Path], object]) -> Target:
    """Return a target that replaces a file of a tracker's store, and reads all its runs."""

    def read_tracker(path: Path) -> None:
        _find(path.parent, pattern).write_bytes(path.read_bytes())
        read(source.format(path.parent))

    with TemporaryDirectory() as name:
        write(Path(name))
        seed = _find(Path(name), pattern).read_bytes()
    return Target(seeds=[seed], read=read_tracker, prepare=write)


def _beside(option: str, *seeds: bytes, **more: object) -> Target:
    return Target(
        seeds=seeds, read=lambda path: read(path.parent / "gpu.csv", **{option: path}, **more), prepare=write_logs
    )


def _given(*words: str, seeds: Sequence[bytes]) -> Target:
    return Target(seeds=seeds, read=lambda path: run(path.parent, *words, path.name), prepare=write_logs)


def _typed(words: str, texts: Sequence[str]) -> Target:
    def type_text(path: Path) -> None:
        # what a shell hands over
        run(path.parent, *words.split(), path.read_bytes().decode(errors="surrogateescape").replace("\0", ""))

    return Target(seeds=[text.encode() for text in texts], read=type_text, prepare=write_store)


def _put_beside(name: str, seeds: Sequence[bytes]) -> Target:
    def read_both(path: Path) -> None:
        (path.parent / name).write_bytes(path.read_bytes())
        read(path.parent / "gpu.csv")

    return Target(seeds=seeds, read=read_both, prepare=write_logs)


def _write_mlflow(write: Callable[[Path, Sequence[Made]], object], place: Path) -> None:
    write(place / "store", [_RUN])


def _write_neptune(place: Path) -> None:
    folders.write(place / ".neptune", folders.operations(_PLAN))


def _make_recording() -> bytes:
    said: dict[str, Any] = {"command": ["a"], "host": "n", "exit_code": 0, "params": {"a": "64"}, "tags": {"user": "a"}}
    with TemporaryDirectory() as name:
        return (logs.write_recording(Path(name), "", zone="Europe/Berlin", **said) / "run.json").read_bytes()


def _seed(name: str) -> bytes:
    return (SEEDS / name).read_bytes()


def _mapped() -> bytes:
    return logs.wrapper_csv(20).encode()


TARGETS: dict[str, Callable[[], Target]] = {
    **{f"log of {kind}": partial(lambda kind: Target(seeds=_make_logs()[kind], read=read_log), kind) for kind in KINDS},
    **{f"option {words}": partial(_typed, words, texts) for words, texts in OPTIONS.items()},
    "host log": lambda: Target(
        seeds=[*_list_captures("host"), _head(PAIRS / "host/sockets_are_added_up_and_midnight_is_passed.log")],
        read=lambda path: read(path.parent / "gpu.csv", host=path, tz="UTC"),
        prepare=_write_log_of_captures,
    ),
    "training log": lambda: _beside("training", _head(SAMPLES / "no_progress/training.csv"), *_TRAINERS, tz="UTC"),
    "log with a map": lambda: Target(
        seeds=[_mapped()],
        read=lambda path: read(path, column_map=path.parent / "map.toml"),
        prepare=lambda place: (place / "map.toml").write_text(logs.MAP),
    ),
    "map": lambda: Target(
        seeds=[logs.MAP.encode(), (SAMPLES / "mapped/map.toml").read_bytes()],
        read=lambda path: read(path.parent / "wrapper.csv", column_map=path),
        prepare=lambda place: (place / "wrapper.csv").write_bytes(_mapped()),
    ),
    "file of labels": lambda: _put_beside("gpu.csv.json", [_seed("labels.json")]),
    "table of labels": lambda: Target(
        seeds=[_seed("sacct.txt"), b"run,user,gpu hours\na.csv,ada,5\n"],
        read=lambda path: read(path.parent / "gpu.csv", labels={"table": path}),
        prepare=write_logs,
    ),
    "run.json of a recording": lambda: _put_beside("run.json", [_make_recording()]),
    "settings": lambda: _given(*_CONFIG, seeds=[_seed("settings.toml"), _seed("policy.toml"), _seed("names.toml")]),
    "policy": lambda: _given("check", "gpu.csv", "--policy", seeds=[_seed("policy.toml")]),
    "steps": lambda: _given("compare", "--steps", seeds=[_seed("steps.toml")]),
    "run.json of a store": lambda: _stored("run.json", "runs list", "analyze old", "runs step old b"),
    "store.json": lambda: _stored("store.json", "runs list"),
    "series of a store": lambda: _stored("hardware.parquet", "analyze old", "runs export old -o x.parquet"),
    "night of a history": lambda: _stored("history/*.parquet", "nightly --site site"),
    "comparison": lambda: Target(
        seeds=[_make_files()["comparison.json"]],
        read=lambda path: run(path.parent, "publish", path.name, "--to", "mlflow:mlruns"),
        prepare=lambda place: folder(place / "mlruns", [_RUN]),
    ),
    "meta.yaml of MLflow": lambda: _tracked(f"{_RUN.id}/meta.yaml", _STORE, partial(_write_mlflow, folder)),
    "metric of MLflow": lambda: _tracked("gpu_0_utilization_percentage", _STORE, partial(_write_mlflow, folder)),
    "database of MLflow": lambda: _tracked("store", _STORE, partial(_write_mlflow, database)),
    "database of Trackio": lambda: _tracked(
        "store", "trackio:{}/store", lambda place: test_tables_of_runs.database(place / "store")
    ),
    "operations of Neptune": lambda: _tracked("data-1.log", "neptune:{}/.neptune", _write_neptune),
    "description of Neptune": lambda: _tracked("metadata.json", "neptune:{}/.neptune", _write_neptune),
    "database of Neptune Scale": lambda: _tracked(
        databases.NAME, "neptune:{}", lambda place: databases.write(place, databases.recipe([0.0, 50.0, 90.0]))
    ),
    "export of Neptune": lambda: _tracked(
        "*.parquet", "neptune:{}", lambda place: dumps.write(place, dumps.run(_PLAN))
    ),
}
"""What makes each target, by its name."""
